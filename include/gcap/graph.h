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

// What an id is up to. Each line is a step: from, what happens, to. Nothing else changes a state, but release, which
// forgets the id: it is COLD then.
//
//   COLD       --first run-->      WARMING
//   WARMING    --warm-->           READY      as the policy says
//   READY      --begin-->          CAPTURING
//   READY      --failure-->        COOLING    the driver would not begin a capture
//   CAPTURING  --commit-->         CAPTURED
//   CAPTURING  --failure-->        COOLING    some runs stay eager
//   CAPTURING  --give up-->        READY      the run was never ended
//   COOLING    --cooled-->         READY
//   CAPTURED   --recapture-->      STALE
//   CAPTURED   --evict-->          READY
//   STALE      --begin-->          CAPTURING
//   STALE      --failure-->        COOLING
//   STALE      --evict-->          READY
typedef enum gcap_graph_state {
  GCAP_GRAPH_COLD = 0,
  GCAP_GRAPH_WARMING,
  GCAP_GRAPH_READY,
  GCAP_GRAPH_CAPTURING,
  GCAP_GRAPH_CAPTURED,
  GCAP_GRAPH_COOLING,
  GCAP_GRAPH_STALE,  // captured, and to be captured again: it does not replay
} gcap_graph_state_t;

GCAP_API const char* gcap_graph_state_name(gcap_graph_state_t state);  // "CAPTURED"

// How a run is to be executed.
typedef enum gcap_graph_run_kind {
  GCAP_GRAPH_RUN_EAGER = 0,  // issue the work; it runs
  GCAP_GRAPH_RUN_CAPTURE,    // issue the work; it is recorded, and runs at gcap_graph_manager_end_run
} gcap_graph_run_kind_t;

// When an id is warm.
typedef enum gcap_graph_policy {
  GCAP_GRAPH_POLICY_MIN_RUNS = 0,  // after min_num_runs_before_capture eager runs, as in ONNX Runtime
  // As soon as two eager runs in a row allocated alike, through gcap or as noted with gcap_graph_note_allocation, and
  // initialized nothing; at the latest after max_runs_before_capture.
  GCAP_GRAPH_POLICY_STABLE,
} gcap_graph_policy_t;

// What is known of one id. The counters begin when the id is first run, and again when it is released; an eviction
// keeps them.
typedef struct gcap_graph_info {
  size_t struct_size;  // set by gcap_graph_manager_get_info
  gcap_graph_state_t state;
  // gcap_graph_manager_begin_run would capture a run of the id now: what a capture forbids has to be done before.
  bool captures_next;
  uint64_t eager_runs;
  uint64_t captures;          // that succeeded
  uint64_t failures;          // captures that did not
  uint64_t replays;           // launches, the first one after the capture included
  size_t nodes;               // of the graph, 0 when not captured
  uint64_t capture_ns;        // begin to end of the last capture, host time
  uint64_t instantiate_ns;    // of the last capture, host time: instantiation, or the update that did without
  size_t bytes;               // retained now (gcap_retained_bytes) and of its allocation nodes
  uint64_t updates;           // captures that changed the executable in place
  uint64_t reinstantiations;  // captures of an id that had an executable which would not be updated
  uint64_t evictions;         // see max_graphs
} gcap_graph_info_t;

typedef struct gcap_graph_manager_options {
  size_t struct_size;  // set by gcap_graph_manager_options_init
  // Eager runs of an id before its capture; ONNX Runtime's min_num_runs_before_cuda_graph_capture. Default 2. 0
  // captures the first run, which must then initialize no library and find its memory reserved.
  uint32_t min_num_runs_before_capture;
  // Runs that stay eager after a failed capture; doubles with each failure in a row, up to 1,024 times. Default 1.
  uint32_t backoff_runs;
  gcap_graph_policy_t policy;        // default MIN_RUNS
  uint32_t max_runs_before_capture;  // STABLE only. Default 6, so that gcap_session_warm_up ends in a graph
  // Uploads a new executable to the device before its first launch, which else does so itself. Default false.
  bool upload;
  bool keep_source;  // keeps the captured graph for gcap_graph_manager_dump. Default false
  // gcap_graph_manager_run alone: issues the work again, eagerly, after a failed capture. The device has run none of it
  // by then, but the host's side of it happens twice. Default true.
  bool rerun_failed_capture;
  // Budget: after a capture the least recently used graphs are evicted until no more than these are kept; 0, the
  // default: no limit. The graph just captured stays, alone if need be. An evicted graph is freed once its launches
  // have finished: every end of a run looks whether they have, and none waits. An evicted id is warm: its next run is
  // captured.
  size_t max_graphs;
  size_t max_bytes;  // sum of gcap_graph_info_t.bytes
  // Called once for each evicted graph, on the thread that ends the run, with the id's info before the eviction. The
  // callback may call the manager. NULL: none.
  void (*on_evict)(void* user, int id, const gcap_graph_info_t* info);
  void* user;
  gcap_capture_options_t capture;
} gcap_graph_manager_options_t;

// Fills in the defaults. Programs call the init function, which says how large their struct is.
GCAP_API void gcap_graph_manager_options_set_defaults(gcap_graph_manager_options_t* options);
static inline void gcap_graph_manager_options_init(gcap_graph_manager_options_t* options) {
  options->struct_size = sizeof(*options);
  options->capture.struct_size = sizeof(options->capture);
  gcap_graph_manager_options_set_defaults(options);
}

// Graph manager: the graphs of one stream user, by id. From gcap_graph_manager_create.
// Thread:   thread-safe. begin_run and end_run of one run are called by one thread, and one run at a time is open.
//           Replays of one manager are serialised. A run whose thread has exited is nobody's and does not block.
//           What a captured run registers with gcap_capture_on_close or _retain must not call this manager.
// Capture:  begin_run, end_run, sign, recapture and questions are legal while its own capture is open. What launches,
//           waits or destroys refuses with FAILED_PRECONDITION on a thread that is capturing.
// Lifetime: it takes a plain cudaStream_t: gcap_stream_t is not needed. A stream made or wrapped by gcap may end first:
//           its graphs are refused then. Any other must outlive its graphs: nobody tells gcap when it is destroyed, and
//           a GPU's driver crashes when a graph is launched on such a stream.
// Errors:   besides those listed, INVALID_ARGUMENT for NULL where something is expected. A device that is lost for good
//           makes every call answer CUDA_ERROR; destroy ends all the same.
typedef struct gcap_graph_manager gcap_graph_manager_t;

// `options` NULL: the defaults.
//   INVALID_ARGUMENT  a capture mode or policy that does not exist
GCAP_API gcap_status_t gcap_graph_manager_create(const gcap_graph_manager_options_t* options,
                                                 gcap_graph_manager_t** out_manager) GCAP_NODISCARD;

// Aborts an open run, releases all graphs (see gcap_graph_manager_release), ends the manager. NULL is fine. On failure
// what could not be released is leaked, never left half destroyed, and the status says why.
//   FAILED_PRECONDITION  the calling thread captures something else, or another thread has a run open; nothing was
//                        destroyed
//   CUDA_ERROR           as gcap_graph_manager_release
GCAP_API gcap_status_t gcap_graph_manager_destroy(gcap_graph_manager_t* manager) GCAP_NODISCARD;

// --- Runs -----------------------------------------------------------------------------------------------------------

// Opens a run of `id` on `stream` and says how to execute it. For RUN_CAPTURE the stream is capturing on return; the
// scope is gcap_capture_current(). A run whose end was never called is aborted first.
//   INVALID_ARGUMENT     id below -1, the default stream where a capture is due, or, with an id, cudaStreamPerThread:
//                        it is another stream on every thread that replays
//   ALREADY_EXISTS       the id is captured: replay it
//   FAILED_PRECONDITION  another thread has a run open, or the stream is captured by somebody else
//   RESOURCE_EXHAUSTED   no host memory for the id
GCAP_API gcap_status_t gcap_graph_manager_begin_run(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                                    gcap_graph_run_kind_t* out_kind) GCAP_NODISCARD;

// Ends the run. `run_status` is the outcome of the caller's work, NULL for success. The call takes `run_status`, and
// the status that it returns tells all that the caller has to know: `status = gcap_graph_manager_end_run(m, status,
// sync)`. A capture that succeeded is instantiated and launched once, so the run's results are there either way. With
// `synchronize` the stream is synchronized as well; a stream that gcap knows learns of the wait, as from
// gcap_stream_synchronize.
//   CAPTURE_INVALIDATED  the capture failed, or `run_status` did: nothing of the run was executed, the id cools down,
//                        and the same work may be issued again eagerly. The message names the first failure
//   that of `run_status` the run was eager and its work failed, or no run was begun
//   CUDA_ERROR           the run was issued, but waiting for it or cleaning up after it failed
//   FAILED_PRECONDITION  no run is open on this thread, and `run_status` is NULL
GCAP_API gcap_status_t gcap_graph_manager_end_run(gcap_graph_manager_t* manager, gcap_status_t run_status,
                                                  bool synchronize) GCAP_NODISCARD;

// Issues the work of a run to `stream`. NULL: it was issued.
typedef gcap_status_t (*gcap_graph_work_t)(void* user, cudaStream_t stream);

// A whole run in one call: replays `id` on `stream` when it is captured (gcap_graph_manager_replay); else begins a run,
// calls `work(user, stream)`, and ends it. When a capture failed, `work` is called once more, eagerly, unless
// rerun_failed_capture is false. So the device does the run's work exactly once.
//   CAPTURE_INVALIDATED  the capture failed, and the option forbids to run again
//   others               of begin_run, end_run and replay; and the status of `work` when it failed eagerly
GCAP_API gcap_status_t gcap_graph_manager_run(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                              gcap_graph_work_t work, void* user, bool synchronize) GCAP_NODISCARD;

// Marks the graph of `id` as out of date: it replays no more, and the next run is captured again and updates the
// executable in place, which costs a fraction of an instantiation. Where the driver refuses (another topology, another
// kind of node) a new executable is made. Launches in flight are not disturbed; what the old graph retained is let go
// when they are done. When the capture fails, the old executable is kept for the next update.
//   NOT_FOUND  no graph of that id
GCAP_API gcap_status_t gcap_graph_manager_recapture(gcap_graph_manager_t* manager, int id) GCAP_NODISCARD;

// True when gcap_graph_manager_replay would find a graph.
GCAP_API bool gcap_graph_manager_is_captured(gcap_graph_manager_t* manager, int id);

// What is known of `id`; an id never seen, or released, is COLD with zeros.
GCAP_API void gcap_graph_manager_read_info(gcap_graph_manager_t* manager, int id, gcap_graph_info_t* out_info);
static inline void gcap_graph_manager_get_info(gcap_graph_manager_t* manager, int id, gcap_graph_info_t* out_info) {
  if (out_info != NULL) out_info->struct_size = sizeof(*out_info);
  gcap_graph_manager_read_info(manager, id, out_info);
}

// What can be explained of an id.
typedef enum gcap_graph_question {
  GCAP_GRAPH_WHY_CAPTURE_FAILED = 0,  // why the last failed capture failed
  GCAP_GRAPH_WHY_NOT_UPDATED,         // which node changed and how, of the last capture that had to instantiate anew
                                      // although there was an executable to update
} gcap_graph_question_t;

// The status that answers the question: a copy for the caller, for messages. NULL when nothing of the kind happened.
//   INVALID_ARGUMENT  no such question
GCAP_API gcap_status_t gcap_graph_manager_explain(gcap_graph_manager_t* manager, int id,
                                                  gcap_graph_question_t question) GCAP_NODISCARD;

// For the STABLE policy: the run that this thread has open allocated memory, or initialized a library or the like, in a
// way that gcap's own modules do not see.
GCAP_API void gcap_graph_note_allocation(size_t bytes);
GCAP_API void gcap_graph_note_initialization(void);

// --- Replay ---------------------------------------------------------------------------------------------------------

// One tensor that a run is bound to. A graph has its address and shape built in.
typedef struct gcap_graph_binding {
  const char* name;  // for messages; not compared
  const void* address;
  int rank;
  const int64_t* shape;  // [rank]; NULL for rank 0
} gcap_graph_binding_t;

typedef struct gcap_graph_replay_options {
  size_t struct_size;  // set by gcap_graph_replay_options_init
  // Waits for the stream before the replay returns (ONNX Runtime's disable_synchronize_execution_providers, negated).
  // The thread's capture mode is relaxed for the wait, so that the wait breaks no capture of another thread. A stream
  // that gcap knows learns of the wait, as from gcap_stream_synchronize. Default false.
  bool synchronize;
  // Launches on `stream`, of the same device, instead of the stream that captured the graph: after all that the
  // capturing stream was given so far, and before all that it is given next. Two events order the streams. Default
  // false.
  bool on_stream;
  cudaStream_t stream;
  // Refuses the replay unless the graph was captured with these very bindings (gcap_graph_manager_sign). Default false:
  // the bindings are not compared.
  bool check_bindings;
  const gcap_graph_binding_t* bindings;
  size_t num_bindings;
} gcap_graph_replay_options_t;

// Fills in the defaults, which need no library.
static inline void gcap_graph_replay_options_init(gcap_graph_replay_options_t* options) {
  const gcap_graph_replay_options_t defaults = {sizeof(*options), false, false, NULL, false, NULL, 0};
  *options = defaults;
}

// Launches the graph of `id`: one look-up and one call of the runtime, no allocation. `options` NULL: the defaults.
// `out_replayed` tells whether there was a graph to launch; NULL: that there is none is a failure.
//   NOT_FOUND            no graph of that id, and `out_replayed` is NULL
//   FAILED_PRECONDITION  another thread is capturing a run of this manager on that stream, or the stream was destroyed;
//                        `on_stream`: one of the streams is capturing; `check_bindings`: the graph was captured with
//                        others, in a sentence that names the tensor and both addresses or shapes, or its run was not
//                        signed. Nothing was launched
//   INVALID_ARGUMENT     `on_stream`: a stream of another device; bindings with a negative rank, or without a shape
//   CUDA_ERROR           the wait failed, or nothing was launched, or the message says that it was
GCAP_API gcap_status_t gcap_graph_manager_replay(gcap_graph_manager_t* manager, int id,
                                                 const gcap_graph_replay_options_t* options,
                                                 bool* out_replayed) GCAP_NODISCARD;

// Uploads the executable of `id` to the device, ahead of a launch on the stream that captured it.
//   NOT_FOUND, FAILED_PRECONDITION, CUDA_ERROR  as gcap_graph_manager_replay
GCAP_API gcap_status_t gcap_graph_manager_upload(gcap_graph_manager_t* manager, int id) GCAP_NODISCARD;

// Writes the graph of `id` to `path` in the DOT language; `flags`: enum cudaGraphDebugDotFlags.
//   NOT_FOUND            no graph of that id
//   FAILED_PRECONDITION  it was captured without the option keep_source
//   CUDA_ERROR           it could not be written
GCAP_API gcap_status_t gcap_graph_manager_dump(gcap_graph_manager_t* manager, int id, const char* path,
                                               unsigned flags) GCAP_NODISCARD;

// --- Signature (opt-in) ---------------------------------------------------------------------------------------------

// Inside a run: the tensors that it is bound to, inputs and outputs, in an order that is always the same. They are
// copied and become the graph's signature; the last call of a run counts. An eager run ignores it.
//   INVALID_ARGUMENT     a negative rank, or no shape
//   FAILED_PRECONDITION  this thread has no run of the manager open
//   RESOURCE_EXHAUSTED   no host memory for the copy; the capture fails
GCAP_API gcap_status_t gcap_graph_manager_sign(gcap_graph_manager_t* manager, const gcap_graph_binding_t* bindings,
                                               size_t n) GCAP_NODISCARD;

// Whether the graph of `id` was captured with these very bindings.
//   NOT_FOUND            no graph of that id
//   FAILED_PRECONDITION  it was not, in a sentence that names the tensor and both addresses or shapes; or its run was
//                        not signed
GCAP_API gcap_status_t gcap_graph_manager_check_signature(gcap_graph_manager_t* manager, int id,
                                                          const gcap_graph_binding_t* bindings,
                                                          size_t n) GCAP_NODISCARD;

// --- Release --------------------------------------------------------------------------------------------------------

// Forgets the graph of `id`: waits for its launches by an event on its stream, destroys the executable, runs what was
// retained for it, and sets the id to COLD. Safe from any thread.
//   NOT_FOUND            no graph of that id
//   FAILED_PRECONDITION  the graph's stream is capturing, or the id is being captured again; it stays as it is
//   CUDA_ERROR           as the message says, the id stays as it is, or the graph and what it retains are kept for ever
//                        because its launches could not be waited for, or only a handle was lost
GCAP_API gcap_status_t gcap_graph_manager_release(gcap_graph_manager_t* manager, int id) GCAP_NODISCARD;

// The same for every graph, those that the budget or a re-capture replaced included.
GCAP_API gcap_status_t gcap_graph_manager_release_all(gcap_graph_manager_t* manager) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_H_
