// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph.h: captured graphs kept by annotation id: warm up, capture, instantiate, replay, release.
#ifndef GCAP_GRAPH_H_
#define GCAP_GRAPH_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/capture.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// An annotation id names one captured graph: one model, one set of shapes and addresses (ONNX Runtime's
// gpu_graph_id). Ids are >= 0; this one means: never capture this run.
#define GCAP_GRAPH_ID_NONE (-1)

// What an id is up to.
//
//   COLD --first run--> WARMING --enough runs--> READY --begin--> CAPTURING --end--> CAPTURED --release--> COLD
//                                                  ^                  |
//                                                  +---- COOLING <----+ (capture failed: some runs stay eager)
typedef enum gcap_graph_state {
  GCAP_GRAPH_COLD = 0,
  GCAP_GRAPH_WARMING,
  GCAP_GRAPH_READY,
  GCAP_GRAPH_CAPTURING,
  GCAP_GRAPH_CAPTURED,
  GCAP_GRAPH_COOLING,
} gcap_graph_state_t;

const char* gcap_graph_state_name(gcap_graph_state_t state);  // "CAPTURED"

// How a run is to be executed.
typedef enum gcap_graph_run_kind {
  GCAP_GRAPH_RUN_EAGER = 0,  // issue the work; it runs
  GCAP_GRAPH_RUN_CAPTURE,    // issue the work; it is recorded, and runs at gcap_graph_manager_end_run
} gcap_graph_run_kind_t;

typedef struct gcap_graph_manager_options {
  // Eager runs of an id before its capture; ONNX Runtime's min_num_runs_before_cuda_graph_capture. Default 2. 0
  // captures the first run, which must then initialise no library and find its memory reserved.
  uint32_t min_num_runs_before_capture;
  // Runs that stay eager after a failed capture; doubles with each failure in a row, up to 1,024 times. Default 1.
  uint32_t backoff_runs;
  gcap_capture_options_t capture;
} gcap_graph_manager_options_t;

void gcap_graph_manager_options_init(gcap_graph_manager_options_t* options);

// Counters of one id, since it was first run or last released.
typedef struct gcap_graph_info {
  gcap_graph_state_t state;
  uint64_t eager_runs;
  uint64_t captures;        // that succeeded
  uint64_t failures;        // captures that did not
  uint64_t replays;         // launches, the first one after the capture included
  size_t nodes;             // of the graph, 0 when not captured
  uint64_t capture_ns;      // begin to end of the last capture, host time
  uint64_t instantiate_ns;  // of the last capture, host time
} gcap_graph_info_t;

// Graph manager: the graphs of one stream user, by id. From gcap_graph_manager_create.
// Thread:   thread-safe. begin_run and end_run of one run are called by one thread, and one run at a time is open.
//           Replays of one manager are serialised.
//           What a captured run registers with gcap_capture_on_close or _retain must not call this manager.
// Capture:  begin_run, end_run and info are legal while its own capture is open. replay, release and destroy refuse
//           with FAILED_PRECONDITION on a thread that is capturing.
// Lifetime: the streams outlive it. It takes a plain cudaStream_t: gcap_stream_t is not needed.
typedef struct gcap_graph_manager gcap_graph_manager_t;

// `options` NULL: the defaults.
//   INVALID_ARGUMENT  a capture mode that does not exist
gcap_status_t gcap_graph_manager_create(const gcap_graph_manager_options_t* options,
                                        gcap_graph_manager_t** out_manager) GCAP_NODISCARD;

// Aborts an open run, releases all graphs (see gcap_graph_manager_release), ends the manager. NULL is fine. On failure
// what could not be released is leaked, never left half destroyed, and the status says why.
//   FAILED_PRECONDITION  the calling thread is capturing, or another thread has a run open; nothing was destroyed
//   CUDA_ERROR           as gcap_graph_manager_release
gcap_status_t gcap_graph_manager_destroy(gcap_graph_manager_t* manager) GCAP_NODISCARD;

// Opens a run of `id` on `stream` and says how to execute it. For RUN_CAPTURE the stream is capturing on return; the
// scope is gcap_capture_current(). A run whose end was never called is aborted first.
//   INVALID_ARGUMENT     id below -1, the default stream where a capture is due, or, with an id, cudaStreamPerThread:
//                        it is another stream on every thread that replays
//   ALREADY_EXISTS       the id is captured: replay it
//   FAILED_PRECONDITION  another thread has a run open
gcap_status_t gcap_graph_manager_begin_run(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                           gcap_graph_run_kind_t* out_kind) GCAP_NODISCARD;

// Ends the run. `run_status` is the outcome of the caller's work, NULL for success; it is read, not consumed. A
// capture that succeeded is instantiated and launched once, so the run's results are there either way; with
// `synchronize` the stream is synchronised as well.
//   CAPTURE_INVALIDATED  the capture failed, or `run_status` did: nothing of the run was executed, the id cools down,
//                        and the same work may be issued again eagerly. The message names the first failure
//   CUDA_ERROR           the run was issued, but waiting for it or cleaning up after it failed
//   FAILED_PRECONDITION  no run is open on this thread
gcap_status_t gcap_graph_manager_end_run(gcap_graph_manager_t* manager, gcap_status_t run_status,
                                         bool synchronize) GCAP_NODISCARD;

// True when gcap_graph_manager_replay would find a graph.
bool gcap_graph_manager_is_captured(gcap_graph_manager_t* manager, int id);

// Launches the graph of `id` on the stream that captured it: one call of the runtime. With `synchronize` it waits for
// the stream before it returns (ONNX Runtime's disable_synchronize_execution_providers, negated); the thread's capture
// mode is relaxed for the wait, so that it breaks no capture of another thread.
//   NOT_FOUND            no graph of that id
//   FAILED_PRECONDITION  another thread is capturing a run of this manager on that stream
//   CUDA_ERROR           the launch or the wait failed
gcap_status_t gcap_graph_manager_replay(gcap_graph_manager_t* manager, int id, bool synchronize) GCAP_NODISCARD;

// The same for a host that asks at every run: `*out_replayed` is false, and the status NULL, when there is no graph.
// One look-up, no allocation.
gcap_status_t gcap_graph_manager_try_replay(gcap_graph_manager_t* manager, int id, bool synchronize,
                                            bool* out_replayed) GCAP_NODISCARD;

// Forgets the graph of `id`: waits for its launches by an event on its stream, destroys the executable, runs what was
// retained for it, and sets the id to COLD. Safe from any thread.
//   NOT_FOUND            no graph of that id
//   FAILED_PRECONDITION  the graph's stream is capturing; the id stays captured
//   CUDA_ERROR           as the message says, the id stays captured, or the graph and what it retains are kept for ever
//                        because its launches could not be waited for, or only a handle was lost
gcap_status_t gcap_graph_manager_release(gcap_graph_manager_t* manager, int id) GCAP_NODISCARD;
gcap_status_t gcap_graph_manager_release_all(gcap_graph_manager_t* manager) GCAP_NODISCARD;

// Counters of `id`; an id never seen, or released, is COLD with zeros.
void gcap_graph_manager_get_info(gcap_graph_manager_t* manager, int id, gcap_graph_info_t* out_info);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_H_
