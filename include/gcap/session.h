// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// session.h: a small host that runs a model on an EP: selection, memory for what lies between nodes, replay.
#ifndef GCAP_SESSION_H_
#define GCAP_SESSION_H_

#include <stdbool.h>
#include <stddef.h>

#include "gcap/ep.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Runs that gcap_session_warm_up makes at most, as ONNX Runtime's kMaxGraphCaptureRunAttempts.
#define GCAP_SESSION_MAX_WARM_UP_RUNS 8

typedef struct gcap_run_options {
  size_t struct_size;  // set by gcap_run_options_init
  // Names the model's shapes and the addresses bound in this run; GCAP_GRAPH_ID_NONE: never capture. Default 0.
  int graph_id;
  // False: return as soon as the work is issued; ONNX Runtime's disable_synchronize_execution_providers. Default true.
  bool synchronize;
  // True: a run whose capture failed is done again, eagerly, so that the results are there. The device has done nothing
  // by then, but each kernel's compute is called twice. False: the caller gets CAPTURE_INVALIDATED instead, compute was
  // called once, and the next run of the id is eager. Default true.
  bool rerun_failed_capture;
  // True: a replay with other addresses than the capture's is refused by the tensor's name, instead of computing on
  // memory that the caller did not mean. Set it in every run of the id. Costs a comparison a tensor. Default false.
  bool check_bindings;
} gcap_run_options_t;

// Fills in the defaults. Programs call the init function, which says how large their struct is.
GCAP_API void gcap_run_options_set_defaults(gcap_run_options_t* options);
static inline void gcap_run_options_init(gcap_run_options_t* options) {
  options->struct_size = sizeof(*options);
  gcap_run_options_set_defaults(options);
}

// Session: a model on an EP. From gcap_session_create.
// Thread:   run from any thread; runs are serialised where the EP does not support concurrent ones. Each thread has its
//           own warm-up and its own graphs. Destroy it when no other thread runs it, nor has work of it under way.
// Capture:  nothing may be called while the calling thread captures for somebody else.
// Lifetime: its EP outlives it. The model may go after creation. An EP that captures graphs serves one session in its
//           life, since its graphs hold the session's addresses; ONNX Runtime makes an EP for each session, too.
typedef struct gcap_session gcap_session_t;

// Puts the model on the first of the EPs that supports every one of its nodes, makes the kernels and copies the
// constants to the device.
//   INVALID_ARGUMENT  no EP, or a malformed model: the index, name and value at fault are named
//   UNIMPLEMENTED     no EP supports all nodes: the message names, for each EP, the first node that it refused
//   FAILED_PRECONDITION  the EP captures graphs and has served another session
GCAP_API gcap_status_t gcap_session_create(const gcap_model_t* model, gcap_ep_t* const* eps, size_t num_eps,
                                           gcap_session_t** out_session) GCAP_NODISCARD;

// Ends the session, after waiting for the calling thread's work. NULL is fine. Its graphs stay in the EP, out of reach,
// and go with it.
//   FAILED_PRECONDITION  the calling thread is capturing; nothing was destroyed
GCAP_API gcap_status_t gcap_session_destroy(gcap_session_t* session) GCAP_NODISCARD;

GCAP_API const char* gcap_session_ep_name(const gcap_session_t* session);

// Runs the model once. `inputs` and `outputs` are device tensors in the model's order, of its shapes. With a graph id,
// every run of that id on a thread must bind the same addresses: a replay reads and writes those of the capture. Change
// their contents, not the addresses. A capture that fails is undone and the run done again eagerly, so that the results
// are there; only kernels with side effects outside their outputs notice.
//   INVALID_ARGUMENT     a shape, type or NULL address that does not match the model, named
//   FAILED_PRECONDITION  check_bindings: the graph is bound to another address, or was captured without the option
//   CAPTURE_INVALIDATED  the capture failed, and rerun_failed_capture is false
// Other failures are those of the EP and its kernels.
GCAP_API gcap_status_t gcap_session_run(gcap_session_t* session, const gcap_run_options_t* options,
                                        const gcap_tensor_t* inputs, const gcap_tensor_t* outputs) GCAP_NODISCARD;

// Runs the model until the calling thread has its graph of `options->graph_id`, so that the next run is a replay.
// Explicit, since it executes the model several times; a single run never does.
//   FAILED_PRECONDITION  the EP does not capture graphs, or the id is GCAP_GRAPH_ID_NONE
//   INVALID_ARGUMENT     as gcap_session_run
//   UNAVAILABLE          not captured after GCAP_SESSION_MAX_WARM_UP_RUNS runs; the message has the last failure
GCAP_API gcap_status_t gcap_session_warm_up(gcap_session_t* session, const gcap_run_options_t* options,
                                            const gcap_tensor_t* inputs, const gcap_tensor_t* outputs) GCAP_NODISCARD;

// Releases the calling thread's graph of that id.
//   NOT_FOUND  there is none
GCAP_API gcap_status_t gcap_session_release_captured_graph(gcap_session_t* session, int graph_id) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_SESSION_H_
