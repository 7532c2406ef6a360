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
#include "gcap/graph_contents.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// An annotation id names one captured graph: one model, one set of shapes and addresses (ONNX Runtime's
// gpu_graph_id). Ids are >= 0. GCAP_GRAPH_ID_NONE means: never capture this run.
#define GCAP_GRAPH_ID_NONE (-1)

// The state of an id. Each line is a step: from, what happens, to. No other step changes a state, except a release
// and max_ids_without_graph, which forget the id: its state is then COLD.
//
//   COLD       --first run-->      WARMING
//   WARMING    --warm-->           READY      as the policy says
//   READY      --begin-->          CAPTURING
//   READY      --failure-->        COOLING    the driver would not begin a capture
//   CAPTURING  --commit-->         CAPTURED
//   CAPTURING  --failure-->        COOLING    some runs stay eager
//   CAPTURING  --give up-->        READY      never ended, or a rehearsal
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
  GCAP_GRAPH_STALE,  // has a graph, which does not replay: the next run is captured again
} gcap_graph_state_t;

GCAP_API const char* gcap_graph_state_name(gcap_graph_state_t state);  // "CAPTURED"

// How a run is to be executed.
typedef enum gcap_graph_run_kind {
  GCAP_GRAPH_RUN_EAGER = 0,  // issue the work; it runs
  GCAP_GRAPH_RUN_CAPTURE,    // issue the work; it is recorded, and runs at gcap_graph_manager_end_run
  // gcap_graph_manager_begin_run_on only: issue the work; it is recorded and never runs. Then begin the run again.
  GCAP_GRAPH_RUN_REHEARSAL,
} gcap_graph_run_kind_t;

// When an id is warm.
typedef enum gcap_graph_policy {
  GCAP_GRAPH_POLICY_MIN_RUNS = 0,  // after min_num_runs_before_capture eager runs, as in ONNX Runtime
  // After two eager runs in a row that made the same allocations and initialized nothing; at the latest after
  // max_runs_before_capture eager runs. gcap's own modules report their allocations and initializations; report others
  // with gcap_graph_note_allocation and gcap_graph_note_initialization.
  GCAP_GRAPH_POLICY_STABLE,
} gcap_graph_policy_t;

// When it is looked at whether the memory that graphs work on is still theirs: see gcap/graph_contents.h.
typedef enum gcap_graph_audit_level {
  GCAP_GRAPH_AUDIT_OFF = 0,
  // Each capture makes notes, at about 0.1 us for each pointer; gcap_graph_manager_audit looks. A capture with a
  // finding, such as a copy from pageable memory that the graph does not retain, is told to gcap_log.
  GCAP_GRAPH_AUDIT_ON_DEMAND,
  // For debugging: each replay looks first, and is refused with FAILED_PRECONDITION if there is a finding. A capture
  // with a finding fails, and its work is run eagerly.
  GCAP_GRAPH_AUDIT_EACH_REPLAY,
} gcap_graph_audit_level_t;

// The state and the counters of one id. A release sets the counters to 0; an eviction keeps them, until the id is
// forgotten (max_ids_without_graph).
typedef struct gcap_graph_info {
  size_t struct_size;  // set by gcap_graph_manager_get_info
  gcap_graph_state_t state;
  // gcap_graph_manager_begin_run would capture the next run. So do now what a capture forbids.
  bool captures_next;
  uint64_t replays;           // launches, including the first one after each capture
  uint64_t eager_runs;        // that succeeded
  uint64_t captures;          // that succeeded
  uint64_t failures;          // captures that failed
  size_t nodes;               // of the graph; 0 without a graph
  uint64_t capture_ns;        // host time of the last capture, from begin to end
  uint64_t instantiate_ns;    // host time of the last update or instantiation
  size_t bytes;               // retained now (gcap_retained_bytes), allocated by nodes of the graph, and exec_bytes
  uint64_t updates;           // captures that updated the executable in place
  uint64_t reinstantiations;  // captures that made a new executable because the driver refused the update
  uint64_t evictions;         // see max_graphs
  size_t kernel_nodes;        // of the graph and its child graphs; 0 without a graph
  // The device memory of the executable: an estimate, since the driver takes memory in steps of some MiB for all
  // executables together. So much for an executable and so much for each kernel node, as measured on an H200 by
  // bench/graph:cost_bench, scaled by what this process saw go on this device, once it has seen some 64 MiB go. Nodes
  // that copy from device to device take as much as kernel nodes, and are not counted. 0 without a graph.
  size_t exec_bytes;
} gcap_graph_info_t;

typedef struct gcap_graph_manager_options {
  size_t struct_size;  // set by gcap_graph_manager_options_init
  // Eager runs of an id before its capture; ONNX Runtime's min_num_runs_before_cuda_graph_capture. Default 2. 0: the
  // first run is captured, so libraries must be initialized and memory reserved before it.
  uint32_t min_num_runs_before_capture;
  // Runs that stay eager after a failed capture. Each further failure in a row doubles this number, up to 1,024 times
  // the option. Default 1.
  uint32_t backoff_runs;
  gcap_graph_policy_t policy;        // default MIN_RUNS
  uint32_t max_runs_before_capture;  // STABLE only. Default 6, so that gcap_session_warm_up ends in a graph
  // Uploads a new executable to the device before its first launch. Without this option the first launch uploads the
  // executable. Default false.
  bool upload;
  bool keep_source;  // keeps the captured graph for gcap_graph_manager_dump. Default false
  // For gcap_graph_manager_run and gcap_runtime_run: issues the work again, eagerly, after a failed capture. The device
  // has executed none of the work by then, but the host's part of the work happens twice. Default true.
  bool rerun_failed_capture;
  // Budget: each capture evicts the least recently used graphs until at most this many graphs and bytes are kept. 0,
  // the default: no limit. The graph just captured is never evicted. An evicted graph is freed once its launches have
  // finished; every end_run polls for that and does not wait. The memory of its executable is then there for the next
  // executables, and stays with the driver. An evicted id is warm: its next run is captured.
  size_t max_graphs;
  size_t max_bytes;  // sum of gcap_graph_info_t.bytes
  // How many ids without a graph are remembered: ids that warm up or cool down, and evicted ids. One more, and the id
  // that was run or evicted longest ago is forgotten: it is COLD again, with zeros. 0: no limit. Default 16,384.
  size_t max_ids_without_graph;
  // Optional. Called once for each evicted graph, on the thread that ends the run, with the id's info before the
  // eviction. The callback may call the manager.
  void (*on_evict)(void* user, int id, const gcap_graph_info_t* info);
  void* user;
  gcap_capture_options_t capture;
  gcap_graph_audit_level_t audit;  // default OFF
  // Optional, for audits: the blocks of an allocator of the application's that keeps memory for its next request.
  gcap_graph_find_block_fn find_block;
  void* find_block_user;
} gcap_graph_manager_options_t;

// Fills in the defaults. Programs call the init function, which says how large their struct is.
GCAP_API void gcap_graph_manager_options_set_defaults(gcap_graph_manager_options_t* options);
static inline void gcap_graph_manager_options_init(gcap_graph_manager_options_t* options) {
  options->struct_size = sizeof(*options);
  options->capture.struct_size = sizeof(options->capture);
  gcap_graph_manager_options_set_defaults(options);
}

// Graph manager: the graphs of one user of streams, by annotation id. From gcap_graph_manager_create.
// Thread:   thread-safe. One run at a time is open, and the thread that began the run ends it. A run whose thread has
//           exited blocks no other run. Replays of one manager are serialized.
// Callbacks: work, on_evict, close steps, releases, `bytes` of gcap_capture_retain_bytes and the log sink run without a
//           lock of the manager, and may call it. FAILED_PRECONDITION: a run that is begun or ended while this thread
//           begins or ends one of the manager (in on_evict no run is open any more), a release of the id that is being
//           captured, and destroy in every callback.
// Capture:  begin_run, end_run, sign, recapture and the functions that only read are legal while the manager's own
//           capture is open. Functions that launch, wait or destroy return FAILED_PRECONDITION on a capturing thread.
// Lifetime: the manager takes plain cudaStream_t handles and needs no gcap_stream_t. A stream that gcap created or
//           wrapped may end before its graphs, which are then refused. Any other stream must outlive its graphs: gcap
//           does not learn of its end, and a GPU's driver crashes when a graph is launched on a destroyed stream.
// Errors:   besides those listed, INVALID_ARGUMENT if a required argument is NULL. If the device is lost, each call
//           that needs the device returns CUDA_ERROR; destroy still ends the manager.
typedef struct gcap_graph_manager gcap_graph_manager_t;

// Creates a manager without graphs. `options` NULL: the defaults.
//   INVALID_ARGUMENT    a capture mode, policy or audit level that does not exist, or too large a ledger
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_graph_manager_create(const gcap_graph_manager_options_t* options,
                                                 gcap_graph_manager_t** out_manager) GCAP_NODISCARD;

// Aborts an open run of the calling thread, releases all graphs (see gcap_graph_manager_release) and ends the manager.
// NULL is fine.
//   FAILED_PRECONDITION  the calling thread is capturing, and not for this manager; another thread has a run open; a
//                        call of the manager has not returned yet, so this is a callback; or a graph's stream is
//                        capturing. Nothing was released, and the manager may be used or destroyed again
//   RESOURCE_EXHAUSTED   no host memory to abort a run of a thread that has exited; likewise
//   LEAKED               the manager is gone. A graph whose launches could not be waited for is kept until the process
//                        ends, with all that it retains; or a handle of a released graph could not be destroyed. The
//                        message says which
GCAP_API gcap_status_t gcap_graph_manager_destroy(gcap_graph_manager_t* manager) GCAP_NODISCARD;

// --- Runs -----------------------------------------------------------------------------------------------------------

// Opens a run of `id` on `stream`. `*out_kind` says how to execute the run. For RUN_CAPTURE the stream is capturing on
// return, and gcap_capture_current returns the scope. If this thread never ended its last run, that run is aborted
// first. If the driver refuses to begin a capture, the run is eager and the id cools down.
//   INVALID_ARGUMENT     an id below -1; or an id together with a default stream: the legacy one (0 or
//                        cudaStreamLegacy) cannot be captured, cudaStreamPerThread is another stream on each thread
//   ALREADY_EXISTS       the id is captured: replay the id
//   FAILED_PRECONDITION  another thread has a run open; this is a callback of a run's begin or end, or of destroy; or
//                        the run is to be captured, and the stream is capturing already
//   RESOURCE_EXHAUSTED   no host memory for the id, the run or the capture
GCAP_API gcap_status_t gcap_graph_manager_begin_run(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                                    gcap_graph_run_kind_t* out_kind) GCAP_NODISCARD;

// Ends the run. `run_status` is the outcome of the caller's work, NULL for success. The call takes ownership of
// `run_status`, and the returned status includes that outcome: `status = gcap_graph_manager_end_run(m, status, sync)`.
// A successful capture is instantiated and launched once, so the device does the run's work, captured or not. With
// `synchronize` the call waits for the stream; if the stream has one gcap_stream_t, the wait counts as one of
// gcap_stream_synchronize.
//   CAPTURE_INVALIDATED  the run was captured, and the capture or the work failed: nothing of the run was executed, the
//                        id cools down, and the same work may be issued again eagerly. The message names the first
//                        failure
//   CUDA_ERROR           the work was issued, but the wait, or the end of graphs that this run replaced or evicted,
//                        failed
//   FAILED_PRECONDITION  no run is open on this thread, or this is a callback of the run's begin or end, and
//                        `run_status` is NULL; or the work was issued, and the wait was refused, because the stream is
//                        capturing, or because its gcap_stream_t was destroyed since the run began
//   others               `run_status` itself: the run was eager and its work failed, or no run is open because
//                        begin_run failed
GCAP_API gcap_status_t gcap_graph_manager_end_run(gcap_graph_manager_t* manager, gcap_status_t run_status,
                                                  bool synchronize) GCAP_NODISCARD;

// Issues the work of a run to `stream`. Returns NULL if the work was issued.
typedef gcap_status_t (*gcap_graph_work_t)(void* user, cudaStream_t stream);

// A whole run in one call. If `id` is captured, replays the graph on `stream` (gcap_graph_manager_replay). Else begins
// a run, calls `work(user, stream)` and ends the run. If the capture failed, calls `work` once more, eagerly, unless
// rerun_failed_capture is false. So the device does the run's work exactly once.
//   CAPTURE_INVALIDATED  the capture failed, and rerun_failed_capture is false
//   FAILED_PRECONDITION  the calling thread is capturing; or as begin_run, end_run and replay
//   others               as begin_run, end_run and replay; or what `work` returned in an eager run
GCAP_API gcap_status_t gcap_graph_manager_run(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                              gcap_graph_work_t work, void* user, bool synchronize) GCAP_NODISCARD;

// Marks the graph of `id` as out of date. The graph no longer replays; the next run is captured again and updates the
// executable in place, which costs a fraction of an instantiation. If the driver refuses the update (another topology,
// another kind of node), a new executable is made. Launches in flight are not disturbed; what the old graph retained is
// released when they have finished. If the capture fails, the old executable is kept for the next update.
//   NOT_FOUND  no graph of that id
GCAP_API gcap_status_t gcap_graph_manager_recapture(gcap_graph_manager_t* manager, int id) GCAP_NODISCARD;

// True if gcap_graph_manager_replay would find a graph.
GCAP_API bool gcap_graph_manager_is_captured(gcap_graph_manager_t* manager, int id);

// Reads the state and the counters of `id`. An id that was never run, was released, or was forgotten
// (max_ids_without_graph) is COLD with zeros. Programs call gcap_graph_manager_get_info, which sets the size.
GCAP_API void gcap_graph_manager_read_info(gcap_graph_manager_t* manager, int id, gcap_graph_info_t* out_info);
static inline void gcap_graph_manager_get_info(gcap_graph_manager_t* manager, int id, gcap_graph_info_t* out_info) {
  if (out_info != NULL) out_info->struct_size = sizeof(*out_info);
  gcap_graph_manager_read_info(manager, id, out_info);
}

// What gcap_graph_manager_explain can explain.
typedef enum gcap_graph_question {
  GCAP_GRAPH_WHY_CAPTURE_FAILED = 0,  // why the last failed capture failed
  GCAP_GRAPH_WHY_NOT_UPDATED,         // why an update in place was last refused: which node changed, and how
  GCAP_GRAPH_WHY_NOT_MOVABLE,         // why the id's graph cannot be bound to other buffers
  // What the last capture over a capture changed: how many differences, and the first one (gcap_graph_diff). Only of an
  // id whose graph before was kept (keep_source, or buffers that move).
  GCAP_GRAPH_WHAT_CHANGED,
} gcap_graph_question_t;

// Returns a copy of the failure that answers the question, for messages; the caller owns the copy. NULL if no such
// failure happened.
//   INVALID_ARGUMENT  no such question
GCAP_API gcap_status_t gcap_graph_manager_explain(gcap_graph_manager_t* manager, int id,
                                                  gcap_graph_question_t question) GCAP_NODISCARD;

// For the STABLE policy: report that the run that this thread has open allocated memory, or initialized a library or
// the like, without gcap's modules.
GCAP_API void gcap_graph_note_allocation(size_t bytes);
GCAP_API void gcap_graph_note_initialization(void);

// --- Plans ----------------------------------------------------------------------------------------------------------

// What the graphs of some ids hold together; of ids that have no graph, what they will hold once they are captured.
typedef struct gcap_graph_plan {
  size_t struct_size;     // set by gcap_graph_plan_init
  size_t graphs;          // of how many ids
  size_t nodes;           // the sum of gcap_graph_info_t.nodes
  size_t kernel_nodes;    // and so on
  size_t retained_bytes;  // what the graphs retain, such as scratch reservations, and their allocation nodes
  size_t exec_bytes;
  size_t bytes;  // retained_bytes + exec_bytes
} gcap_graph_plan_t;

// A plan of nothing. Programs call it before they have a plan made.
static inline void gcap_graph_plan_init(gcap_graph_plan_t* plan) {
  const gcap_graph_plan_t nothing = {sizeof(*plan), 0, 0, 0, 0, 0, 0};
  *plan = nothing;
}

// A run that a plan counts, as for gcap_graph_manager_run.
typedef struct gcap_graph_planned_run {
  int id;
  gcap_graph_work_t work;
  void* user;
} gcap_graph_planned_run_t;

// Plans the graphs of `runs`, an id each. An id that is captured counts with what it holds. Any other run is rehearsed:
// its work is captured on `stream`, the nodes of the graph and what it retains are counted, and the graph is destroyed.
// So the plan is right where the capture to come issues the same work and makes the same allocations, which it does
// after an eager run of the id: make one first, since a rehearsal is refused what a capture is refused. Its part for
// executables is an estimate (gcap_graph_info_t.exec_bytes). Nothing is executed, and the state of the id stays. What a
// rehearsal retains is released before the next one: what several graphs of `runs` will share counts for each of them
// (gcap_runtime_plan counts it once). On failure `*out_plan` is a plan of nothing.
//   INVALID_ARGUMENT     an id below 0, no work, or a plan that was not initialized; or as gcap_capture_begin
//   FAILED_PRECONDITION  the calling thread is capturing, or `stream` is
//   CAPTURE_INVALIDATED  a rehearsal failed; the message has the id and the first failure
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the runtime refused
GCAP_API gcap_status_t gcap_graph_manager_plan(gcap_graph_manager_t* manager, cudaStream_t stream,
                                               const gcap_graph_planned_run_t* runs, size_t num_runs,
                                               gcap_graph_plan_t* out_plan) GCAP_NODISCARD;

// --- Replay ---------------------------------------------------------------------------------------------------------

// One tensor that a run is bound to. The address and the shape are built into the graph.
typedef struct gcap_graph_binding {
  const char* name;  // for messages, not compared; may be NULL
  const void* address;
  int rank;
  const int64_t* shape;  // [rank]; NULL for rank 0
} gcap_graph_binding_t;

typedef struct gcap_graph_replay_options {
  size_t struct_size;  // set by gcap_graph_replay_options_init
  // Waits for the stream before the replay returns (ONNX Runtime's disable_synchronize_execution_providers, negated).
  // The wait uses the relaxed capture mode, so it breaks no capture of another thread. If the stream has one
  // gcap_stream_t, the wait counts as one of gcap_stream_synchronize. Default false.
  bool synchronize;
  // Launches on `stream`, of the same device, instead of the stream that captured the graph. The launch comes after all
  // work issued to the capturing stream so far, and before its next work: two events order the streams. Default false.
  bool on_stream;
  cudaStream_t stream;
  // Refuses the replay unless the graph was captured with equal bindings (gcap_graph_manager_sign). Default false: the
  // bindings are not compared, but for a signed graph under GCAP_GRAPH_AUDIT_EACH_REPLAY.
  bool check_bindings;
  const gcap_graph_binding_t* bindings;
  size_t num_bindings;
  // Binds the graph's buffers before the launch, as gcap_graph_manager_bind does: one address for each buffer of
  // gcap_graph_manager_begin_run_on; NULL: that buffer stays. Default NULL: all stay.
  void* const* addresses;
  size_t num_addresses;
} gcap_graph_replay_options_t;

// Fills in the defaults.
static inline void gcap_graph_replay_options_init(gcap_graph_replay_options_t* options) {
  const gcap_graph_replay_options_t defaults = {sizeof(*options), false, false, NULL, false, NULL, 0, NULL, 0};
  *options = defaults;
}

// Launches the graph of `id`: one look-up and one call of the runtime, no allocation. `options` NULL: the defaults.
// `*out_replayed` says whether the graph was launched; false with a NULL status: the id is not captured, or its graph
// cannot be moved to `addresses`. `out_replayed` may be NULL: both are then failures.
//   NOT_FOUND            the id is not captured, and `out_replayed` is NULL
//   FAILED_PRECONDITION  the calling thread is capturing; another thread is capturing a run of this manager on the
//                        graph's stream; or that stream was destroyed. `on_stream`: one of the streams is capturing.
//                        `check_bindings`: the run was not signed, or the graph was captured with other bindings; the
//                        message names the tensor and both addresses or shapes. GCAP_GRAPH_AUDIT_EACH_REPLAY: the graph
//                        works on memory that is not its own any more; the message names the node, the argument, what
//                        the memory was and what it is. Capture the id again, or release it. Nothing was launched
//   INVALID_ARGUMENT     `on_stream`: a stream of another device. `check_bindings`: as gcap_graph_manager_sign.
//                        `addresses`: as gcap_graph_manager_bind, which has its other errors too
//   CUDA_ERROR           the launch or the wait failed. `on_stream`: if the graph was launched but the streams could
//                        not be ordered, the message says so
GCAP_API gcap_status_t gcap_graph_manager_replay(gcap_graph_manager_t* manager, int id,
                                                 const gcap_graph_replay_options_t* options,
                                                 bool* out_replayed) GCAP_NODISCARD;

// Uploads the executable of `id` to the device, ahead of a launch on the stream that captured the graph.
//   NOT_FOUND            the id is not captured
//   FAILED_PRECONDITION  the calling thread is capturing; another thread is capturing a run of this manager on the
//                        graph's stream; or that stream was destroyed
//   CUDA_ERROR           the runtime refused
GCAP_API gcap_status_t gcap_graph_manager_upload(gcap_graph_manager_t* manager, int id) GCAP_NODISCARD;

// Writes the graph of `id` to `path` in the DOT language; `flags`: enum cudaGraphDebugDotFlags.
//   NOT_FOUND            no graph of that id
//   FAILED_PRECONDITION  the graph was captured without the option keep_source
//   CUDA_ERROR           the file could not be written
GCAP_API gcap_status_t gcap_graph_manager_dump(gcap_graph_manager_t* manager, int id, const char* path,
                                               unsigned flags) GCAP_NODISCARD;

// Looks whether the memory that the graph of `id` works on is still the graph's: see gcap_graph_audit. Calls
// `on_pointer` for each pointer, without a lock of the manager; NULL: only counts. `*out_findings`: how many are
// findings; NULL is fine. Beside what gcap_graph_audit knows: buffers of gcap_graph_manager_begin_run_on, bindings of
// gcap_graph_manager_sign by their address, and what the graph retains.
//   NOT_FOUND            the id is not captured
//   FAILED_PRECONDITION  the graph was captured without notes: set the manager's option `audit`
//   others               as gcap_graph_audit
GCAP_API gcap_status_t gcap_graph_manager_audit(gcap_graph_manager_t* manager, int id, gcap_graph_pointer_fn on_pointer,
                                                void* user, size_t* out_findings) GCAP_NODISCARD;

// --- Buffers that move (opt-in) -------------------------------------------------------------------------------------

// A captured graph works on the addresses of its capture. With these functions an id is captured together with the
// buffers that it reads and writes, and each replay may be given other ones: without a new capture, and without a copy.
//
// The work is captured twice. In the rehearsal the buffers are at stand-ins, which are addresses of the same alignment;
// nothing is executed. Then the work is captured at the buffers' own addresses. A word of a node's arguments that
// differs by exactly the distance of one buffer is a pointer into that buffer. Anything else that differs makes the
// graph not movable: the graph replays, but on the buffers of its capture alone, and GCAP_GRAPH_WHY_NOT_MOVABLE names
// the node, the argument and both values. Arguments of kernels, copies and fills are read, in forks and in child graphs
// too, and those of cuBLAS and cuDNN kernels.
//
// A pointer that lies in device memory, such as an array of pointers, cannot be seen: a graph that reads such a pointer
// uses the old buffer after a bind. A capture logs a warning for each buffer that no argument points into.
// docs/graphs.md says what else does not move, and what to do.

// A buffer that the work reads or writes.
typedef struct gcap_graph_buffer {
  const char* name;  // for messages; may be NULL
  void* address;     // of this run
  size_t bytes;
  // Every address that is bound is a multiple of this power of two, at most 2 MiB. 0: that of `address`, at most 256.
  size_t alignment;
} gcap_graph_buffer_t;

// What the stand-ins are.
typedef enum gcap_graph_stand_ins {
  // Address space with no memory behind. If the rehearsal fails, as a cudaMemcpyAsync to such an address does, the next
  // rehearsal uses memory.
  GCAP_GRAPH_STAND_INS_ADDRESSES = 0,
  // Device memory of the buffers' sizes, for the time of the rehearsal: for work that reads the attributes of pointers.
  GCAP_GRAPH_STAND_INS_MEMORY,
} gcap_graph_stand_ins_t;

typedef struct gcap_graph_buffers {
  size_t struct_size;  // set by gcap_graph_buffers_init
  const gcap_graph_buffer_t* items;
  size_t count;
  gcap_graph_stand_ins_t stand_ins;  // default ADDRESSES
} gcap_graph_buffers_t;

// Fills in the defaults: no buffers.
static inline void gcap_graph_buffers_init(gcap_graph_buffers_t* buffers) {
  const gcap_graph_buffers_t defaults = {sizeof(*buffers), NULL, 0, GCAP_GRAPH_STAND_INS_ADDRESSES};
  *buffers = defaults;
}

// Opens a run of `id` as gcap_graph_manager_begin_run does, whose graph may be moved. `out_addresses[count]`: where the
// work finds each buffer in this run. If `*out_kind` is RUN_REHEARSAL, these are stand-ins: nothing of the run is
// executed, gcap_graph_manager_end_run returns NULL, and the run is to be begun again. A second rehearsal follows a
// first one that failed. For any other kind these are the buffers' own addresses. The buffers of all runs of an id have
// the same count, sizes and alignments; other ones are rehearsed again. An id with buffers is never updated in place.
// The run of an id whose graph cannot be moved to these buffers is eager.
// Errors: those of gcap_graph_manager_begin_run, and
//   INVALID_ARGUMENT  a buffer without address or bytes; an alignment that is no power of two up to 2 MiB; or an
//                     address that is no multiple of it
//   UNIMPLEMENTED     the driver is older than CUDA 12.4
//   CUDA_ERROR        the query for the memory that a buffer is in failed
GCAP_API gcap_status_t gcap_graph_manager_begin_run_on(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                                       const gcap_graph_buffers_t* buffers,
                                                       gcap_graph_run_kind_t* out_kind,
                                                       void** out_addresses) GCAP_NODISCARD;

// Issues the work of a run to `stream`, on buffers at `addresses`. Returns NULL if the work was issued.
typedef gcap_status_t (*gcap_graph_work_on_t)(void* user, cudaStream_t stream, void* const* addresses);

// A whole run on these buffers, in one call. If `id` is captured, binds the buffers and replays the graph on `stream`;
// a graph that cannot be moved to them is not replayed, and the run is eager. Else begins a run, calls `work` and ends
// the run, the rehearsal before the capture included. The rest is as gcap_graph_manager_run.
//   INVALID_ARGUMENT  as gcap_graph_manager_begin_run_on and gcap_graph_manager_bind; or `id` is captured with other
//                     numbers or sizes of buffers
//   others            as gcap_graph_manager_run; or what `work` returned in an eager run
GCAP_API gcap_status_t gcap_graph_manager_run_on(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                                 const gcap_graph_buffers_t* buffers, gcap_graph_work_on_t work,
                                                 void* user, bool synchronize) GCAP_NODISCARD;

// Binds one buffer of the graph of `id` to another address: later replays use that address. `buffer`: its index in
// gcap_graph_buffers_t.items. Launches in flight keep the address that they had. Only nodes with a pointer into the
// buffer are touched, at about half a microsecond each. The caller keeps the memory alive until the launches are done.
//   NOT_FOUND            the id is not captured
//   INVALID_ARGUMENT     no such buffer; an address that is NULL, is misaligned, is of another device or kind of memory
//                        than the captured one, or has less memory behind it than the buffer has bytes
//   FAILED_PRECONDITION  the calling thread is capturing; the graph was captured without buffers; or the graph cannot
//                        be moved, and the address is not the present one: the message says why
//   CUDA_ERROR           the driver refused a node, and all are as before. If they could not be set back, the id is
//                        STALE: it is captured again by its next run
GCAP_API gcap_status_t gcap_graph_manager_bind(gcap_graph_manager_t* manager, int id, size_t buffer,
                                               void* address) GCAP_NODISCARD;

// Finds pointers that a bind does not reach, such as those in device memory: for debugging. Launches the graph of `id`
// on its buffers, then on copies of them, while the buffers hold other bytes, and compares. So what the graph does
// besides writing its buffers happens twice. Afterwards the buffers have the contents and the addresses that they had.
// Buffers that are not in device memory stay in place. Takes three times the buffers' memory meanwhile. Nobody else
// uses the id or its buffers until the function returns.
//   NOT_FOUND            the id is not captured
//   FAILED_PRECONDITION  the graph reads or writes a buffer that it was moved from, or does not do the same twice; the
//                        message names the buffer. Or the calling thread is capturing; the graph was captured without
//                        buffers; or it cannot be moved
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           no device memory, or a copy or a launch failed. The message says if the buffers could not be
//                        restored
GCAP_API gcap_status_t gcap_graph_manager_check_moves(gcap_graph_manager_t* manager, int id) GCAP_NODISCARD;

// --- Signature (opt-in) ---------------------------------------------------------------------------------------------

// Signs the open run with the tensors that it is bound to: inputs and outputs, always in the same order. The bindings
// are copied and become the graph's signature. A second call replaces the first. An eager run is not signed.
//   INVALID_ARGUMENT     no bindings although `n` > 0; or a binding with a negative rank, or without a shape
//   FAILED_PRECONDITION  this thread has no run of the manager open
//   RESOURCE_EXHAUSTED   no host memory for the copy; the capture fails
GCAP_API gcap_status_t gcap_graph_manager_sign(gcap_graph_manager_t* manager, const gcap_graph_binding_t* bindings,
                                               size_t n) GCAP_NODISCARD;

// Checks that the graph of `id` was captured with equal bindings.
//   NOT_FOUND            no graph of that id
//   FAILED_PRECONDITION  the run was not signed, or the graph was captured with other bindings; the message names the
//                        tensor and both addresses or shapes
//   INVALID_ARGUMENT     as gcap_graph_manager_sign
GCAP_API gcap_status_t gcap_graph_manager_check_signature(gcap_graph_manager_t* manager, int id,
                                                          const gcap_graph_binding_t* bindings,
                                                          size_t n) GCAP_NODISCARD;

// --- Release --------------------------------------------------------------------------------------------------------

// Releases the graph of `id`: waits for the graph's launches by an event on its stream, destroys the executable,
// releases what the graph retained, and forgets the id, which is then COLD. An id without a graph is forgotten, too.
// Safe from any thread. While another thread asks for the graph's bytes, what the graph retained is released at the end
// of that call.
//   NOT_FOUND            the id is COLD
//   FAILED_PRECONDITION  the calling thread is capturing, the graph's stream is capturing, or the id is being captured;
//                        the id is unchanged
//   CUDA_ERROR           the event could not be recorded; the id is unchanged
//   LEAKED               the id is COLD. The wait failed, and the graph and what it retains are kept until the process
//                        ends; or the graph is released, but a handle could not be destroyed. The message says which
GCAP_API gcap_status_t gcap_graph_manager_release(gcap_graph_manager_t* manager, int id) GCAP_NODISCARD;

// Releases every graph, including those that were evicted or replaced and are not freed yet, and forgets every id. An
// id that is captured for the first time now stays. While on_evict is called, the graphs that the run evicted are not
// included: that run's end frees them.
//   FAILED_PRECONDITION  the calling thread is capturing, a graph's stream is capturing, or an id with a graph is being
//                        captured again; nothing was released
//   CUDA_ERROR           the events of some graphs could not be recorded: these are unchanged, all others are released
//   LEAKED               as gcap_graph_manager_release; all ids are COLD
GCAP_API gcap_status_t gcap_graph_manager_release_all(gcap_graph_manager_t* manager) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_H_
