// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// session.h: a small host that runs a model on an EP: selection of the EP, memory for intermediate values, replay.
#ifndef GCAP_SESSION_H_
#define GCAP_SESSION_H_

#include <stdbool.h>
#include <stddef.h>

#include "gcap/ep.h"
#include "gcap/run_options.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// The most runs that gcap_session_warm_up makes, as ONNX Runtime's kMaxGraphCaptureRunAttempts.
#define GCAP_SESSION_MAX_WARM_UP_RUNS 8

// Session: a model on an EP. From gcap_session_create.
// Thread:   thread-safe. Runs are serialized if the EP supports no concurrent runs. Else each thread has its own
//           warm-up and its own graphs. No other thread may run the session, or have a run's work in flight, while
//           the session is destroyed.
// Capture:  no function may be called on a thread that is capturing.
// Lifetime: the EP outlives the session: gcap_ep_destroy refuses while a session lives. The model may end after
//           gcap_session_create. An EP that captures graphs serves one session that runs, until the EP ends, since its
//           graphs hold the session's addresses. (ONNX Runtime, too, makes an EP for each session.)
// Errors:   "of the EP" means: what the EP's function returns (ep.h). Besides those listed, INVALID_ARGUMENT if a
//           required argument is NULL.
typedef struct gcap_session gcap_session_t;

// Creates a session of the model on the first EP that supports all nodes, makes the kernels, and copies the constants
// to the device.
//   INVALID_ARGUMENT     no EP, an EP that is NULL or leaves a run resource NULL, or a malformed model; the message has
//                        the index, the name and the wrong value
//   UNIMPLEMENTED        no EP supports all nodes; the message names, for each EP, the first node that the EP refused
//   FAILED_PRECONDITION  the EP captures graphs, and serves another session or has run one (gcap_ep_claim)
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           a constant could not be copied
//   others               of the EP (gcap_ep_get_run_resources, gcap_ep_create_kernel), and of its allocator
GCAP_API gcap_status_t gcap_session_create(const gcap_model_t* model, gcap_ep_t* const* eps, size_t num_eps,
                                           gcap_session_t** out_session) GCAP_NODISCARD;

// Waits for the calling thread's work and ends the session. NULL is fine. The session's graphs stay in the EP, cannot
// be replayed any more, and end with the EP.
//   FAILED_PRECONDITION  the calling thread is capturing, or its stream of the EP is; or a run of the session calls its
//                        kernels, so this may be a kernel's compute; nothing was destroyed
//   RESOURCE_EXHAUSTED   of the EP (gcap_ep_synchronize); nothing was destroyed
//   UNAVAILABLE          of the EP (gcap_ep_synchronize); nothing was destroyed
//   LEAKED               the session is gone; the wait failed, so that the device may still read the constants, which
//                        are kept; or the EP's allocator did not take a constant back
GCAP_API gcap_status_t gcap_session_destroy(gcap_session_t* session) GCAP_NODISCARD;

GCAP_API const char* gcap_session_ep_name(const gcap_session_t* session);

// Runs the model once. `options` NULL: the defaults. `inputs` and `outputs` are device tensors in the model's order and
// of the model's shapes. With a graph id, every run of that id on a thread must bind the same addresses, since a replay
// reads and writes the capture's: change the contents, not the addresses. If the capture fails, the run is undone and
// repeated eagerly; see rerun_failed_capture.
//   INVALID_ARGUMENT     a tensor's type or shape is not the model's, or its address is NULL; the message names the
//                        tensor
//   FAILED_PRECONDITION  check_bindings: the graph is bound to another address, or was captured without the option
//   CAPTURE_INVALIDATED  the capture failed, and rerun_failed_capture is false
//   RESOURCE_EXHAUSTED   no host memory, or no scratch memory (gcap_scratch_alloc)
//   others               of the EP and its kernels
GCAP_API gcap_status_t gcap_session_run(gcap_session_t* session, const gcap_run_options_t* options,
                                        const gcap_tensor_t* inputs, const gcap_tensor_t* outputs) GCAP_NODISCARD;

// Runs the model until the calling thread has a graph of `options->graph_id`, so that the next run is a replay. This
// executes the model several times; gcap_session_run executes the model once. `options` NULL: the defaults.
//   FAILED_PRECONDITION  the EP does not capture graphs, or the id is GCAP_GRAPH_ID_NONE; or as gcap_session_run
//   UNAVAILABLE          not captured after GCAP_SESSION_MAX_WARM_UP_RUNS runs; the message has the last failure
//   others               as gcap_session_run
GCAP_API gcap_status_t gcap_session_warm_up(gcap_session_t* session, const gcap_run_options_t* options,
                                            const gcap_tensor_t* inputs, const gcap_tensor_t* outputs) GCAP_NODISCARD;

// Releases the calling thread's graph of `graph_id`.
//   FAILED_PRECONDITION  the EP cannot release graphs
//   others               of the EP (gcap_ep_release_captured_graph); usually NOT_FOUND if there is no such graph
GCAP_API gcap_status_t gcap_session_release_captured_graph(gcap_session_t* session, int graph_id) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_SESSION_H_
