// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph.h: the graph manager: captured graphs kept by annotation id. Warm up, capture, replay, release. Begin here.
#ifndef GCAP_GRAPH_H_
#define GCAP_GRAPH_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#include "gcap/graph_guards.h"
#include "gcap/graph_holes.h"
#include "gcap/graph_info.h"
#include "gcap/graph_options.h"
#include "gcap/graph_taps.h"
#include "gcap/run.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Graph manager: the graphs of one user of streams, by annotation id. From gcap_graph_manager_create.
// Thread:   thread-safe. One run at a time is open, and the thread that began the run ends it. A run whose thread has
//           exited blocks no other run. Replays of one manager are serialized. A run of another thread, of any id, is
//           refused while a run is open, also an eager one that warms up, and not waited for: the work of the open run
//           may itself wait for that thread. So threads that share a manager hold a lock of their own over each run; a
//           runtime has a manager for each thread, and takes turns where they share one.
// Callbacks: work, on_evict, close steps, releases, `bytes` of gcap_capture_retain, functions of guards and holes and
//           the log sink run without a lock of the manager, and may call it. FAILED_PRECONDITION: a run that is begun or
//           ended while this thread begins or ends one of the manager (in on_evict no run is open any more), a release
//           of the id that is being captured, and destroy in every callback. While the function of a hole runs
//           (graph_holes.h), also a run, a replay, and a bind and a release of its graph, on any thread.
// Capture:  begin_run, end_run, recapture and the functions that only read are legal while the manager's own
//           capture is open. Functions that launch, wait or destroy return FAILED_PRECONDITION on a capturing thread.
// Lifetime: the manager takes plain cudaStream_t handles and needs no gcap_stream_t. A stream that gcap created or
//           wrapped may end before its graphs, which are then refused. Any other stream must outlive its graphs: gcap
//           does not learn of its end, and a GPU's driver crashes when a graph is launched on a destroyed stream.
// Errors:   besides those listed, INVALID_ARGUMENT if a required argument is NULL. If the device is lost, each call
//           that needs the device returns DEVICE_LOST; destroy still ends the manager.
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

// A whole run in one call. If the id is captured, replays its graph on the run's stream. Else begins a run, calls
// `work(user, resources)` and ends the run; a run with buffers is rehearsed before its capture. If the capture failed,
// calls `work` once more, eagerly, unless rerun_failed_capture is false. If another thread captures the id meanwhile,
// replays that graph. If the driver refuses to move the graph, the run is eager or captured. So the device does the
// run's work exactly once, or once more to verify a replay (run->verify); with capture_only it does nothing of it.
//   REPLAY_DIFFERS       run->verify: a replay left other results than its work (graph_verify.h)
//   CAPTURE_INVALIDATED  the capture failed, and rerun_failed_capture is false, or the run is capture_only
//   CANCELLED            what `work` returned: the run stopped on purpose
//   FAILED_PRECONDITION  the calling thread is capturing; or as begin_run, end_run and replay
//   others               as begin_run, end_run and replay, but not ALREADY_EXISTS; or what `work` returned in an eager
//                        run
GCAP_API gcap_status_t gcap_graph_manager_run(gcap_graph_manager_t* manager, const gcap_run_t* run) GCAP_NODISCARD;

// The most runs that a warm-up makes of one id, as ONNX Runtime's kMaxGraphCaptureRunAttempts.
#define GCAP_WARM_UP_MAX_RUNS 8

// Called on the thread of a warm-up after each run that it made: the run's index among `total` runs, and what became of
// it. No run is open, and no lock is held.
typedef void (*gcap_warm_up_fn)(void* user, size_t index, size_t total, const gcap_run_result_t* result);

// Runs each of `runs`, an id each, until it has a graph, so that its next run is a replay. In rounds: in each of them
// every id that has no graph runs once, so that first all run eagerly, and find memory and libraries, and then all are
// captured. Behind these rounds each run with capture_only is captured. Rounds go by the order of the array: put the
// largest run first, whose memory the others then find. gcap does not sort: how large a run is is known only from its
// plan, which is one more capture of each. The work of a run without capture_only is executed several times. A run
// whose id has a graph is not run. `on_run`, not gcap_run_t.result, says what became of each run; NULL: nobody asks. A
// failure ends the warm-up, and what was captured stays.
//   INVALID_ARGUMENT     an id below 0, or no work: nothing was run; the message has the index
//   FAILED_PRECONDITION  the calling thread is capturing
//   UNAVAILABLE          an id has no graph after GCAP_WARM_UP_MAX_RUNS rounds, in each of which its run succeeded, or
//                        lost it to the budget meanwhile; the message has each such id with the reason
//   others               as gcap_graph_manager_run; the message has the id
GCAP_API gcap_status_t gcap_graph_manager_warm_up(gcap_graph_manager_t* manager, const gcap_run_t* runs,
                                                  size_t num_runs, gcap_warm_up_fn on_run, void* user) GCAP_NODISCARD;

// Opens a run. `*out_kind` says how to execute the run. For RUN_CAPTURE and RUN_REHEARSAL the stream is capturing on
// return, and gcap_capture_current returns the scope. If this thread never ended its last run, that run is aborted
// first. If the driver refuses to begin a capture, the run is eager and the id cools down. A run with bindings that is
// captured keeps a copy of them, for replays with bindings.
//
// With buffers or values, `out_addresses[count + num_values]` says where the work finds each buffer in this run, and
// behind the buffers each value; without, it may be NULL. If `*out_kind` is RUN_REHEARSAL, these are stand-ins: nothing
// of the run is executed, gcap_graph_manager_end_run returns NULL, and the run is to be begun again: a run has one or
// two rehearsals, three with values, and one more if the first fails. For any other kind these are the buffers' own
// addresses. The buffers of all runs of an id have the same count, sizes and
// alignments; other ones are rehearsed again, and so are buffers that lie otherwise to one another, are in another
// order, or are other multiples of powers of two. An id with buffers is never updated in place. The run of an id whose
// graph cannot be moved to these buffers is eager.
//   INVALID_ARGUMENT     an id below -1; no stream; an id together with a default stream: the legacy one (0 or
//                        cudaStreamLegacy) cannot be captured, cudaStreamPerThread is another stream on each thread; no
//                        bindings although there is a count; a binding with a negative rank, or without a shape; a
//                        buffer without address or bytes; an alignment that is no power of two up to 2 MiB; an
//                        address that is no multiple of it; a value without data or others, of a size that its type
//                        does not have, or not within its bounds; bounds that are equal or in the wrong order; or
//                        capture_only without an id
//   ALREADY_EXISTS       the id is captured: replay the id
//   FAILED_PRECONDITION  another thread has a run open, or is in a hole; this is a callback of a run's begin or end, or
//                        of destroy, the work of a gcap_graph_manager_run of this manager, or the function of a guard
//                        or a hole; the run is to be captured, or has values in memory, and the stream is capturing
//                        already; or the run has no buffers, and several graphs with buffers are right for it
//   RESOURCE_EXHAUSTED   no host memory for the id, the run or the capture
//   UNIMPLEMENTED        buffers, and the driver is older than CUDA 12.4
//   CUDA_ERROR           the query for the memory that a buffer is in failed; the driver refused memory for values in
//                        memory; or the driver refused to begin the capture of a run with capture_only
//   UNAVAILABLE          the run is capture_only, and the function of a guard of its graphs gave no answer
GCAP_API gcap_status_t gcap_graph_manager_begin_run(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                                    gcap_graph_run_kind_t* out_kind,
                                                    void** out_addresses) GCAP_NODISCARD;

// Ends the run that this thread has open. Of `run` only `synchronize` and `result` count; NULL: no wait, no result.
// `run_status` is the outcome of the caller's work, NULL for success. The call takes ownership of `run_status`, and the
// returned status includes that outcome: `status = gcap_graph_manager_end_run(manager, &run, status)`. A successful
// capture is instantiated and launched once, so the device does the run's work, captured or not. With `synchronize` the
// call waits for the stream; if the stream has one gcap_stream_t, the wait counts as one of gcap_stream_synchronize.
//   CAPTURE_INVALIDATED  the run was captured, and the capture or the work failed: nothing of the run was executed, the
//                        id cools down, and the same work may be issued again eagerly. The message names the first
//                        failure
//   CANCELLED            `run_status` itself. Of a captured run nothing was executed, and the id does not cool down
//   CUDA_ERROR           the work was issued, but the wait, or the end of graphs that this run replaced or evicted,
//                        failed. With holes: the driver refused a launch, or did not begin the segment behind a hole
//                        (graph_holes.h); gcap_run_result_t.was_issued says whether the device has work of the run
//   FAILED_PRECONDITION  no run is open on this thread, or this is a callback of the run's begin or end, and
//                        `run_status` is NULL; or the work was issued, and the wait was refused, because the stream is
//                        capturing, or because its gcap_stream_t was destroyed since the run began
//   LEAKED               the run was eager, has values in memory, and its stream is capturing: that memory is kept
//   others               `run_status` itself: the run was eager and its work failed, or no run is open because
//                        begin_run failed; or what the function of a hole returned: the graph stays
GCAP_API gcap_status_t gcap_graph_manager_end_run(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                                  gcap_status_t run_status) GCAP_NODISCARD;

// Launches the graph of the run's id: one look-up and one call of the runtime, no allocation. Of a graph with holes,
// the segments are launched, and the functions are called between them. `*out_replayed` says whether the graph was
// launched; false with a NULL status: the id is not captured, no graph of the id is for the decisions and the buffers
// of now, or the graph cannot be moved to the run's buffers. `out_replayed` may be NULL: these are then failures. On
// another stream than the one that captured the graph, the launch comes after all work that the latter was given so
// far, and before its next work: two events order the streams. A wait uses the relaxed capture mode, so it breaks no
// capture of another thread.
//   NOT_FOUND            the id is not captured, and `out_replayed` is NULL
//   FAILED_PRECONDITION  the calling thread is capturing; another thread is capturing a run of this manager on the
//                        graph's stream; or that stream was destroyed. On another stream: one of the two is capturing.
//                        A graph of the manager is in a hole, or the function of a guard calls this. `out_replayed` is
//                        NULL, and no graph is for the run: the message names the guard, or two buffers. The run has no
//                        buffers, and several graphs with buffers are right for it. A function left a capture open.
//                        With bindings: the captured run had none, or the graph was captured with others; the message
//                        names the tensor and both addresses or shapes. GCAP_GRAPH_AUDIT_EACH_REPLAY: the graph works
//                        on memory that is not its own any more; the message names the node, the argument, what the
//                        memory was and what it is. Capture the id again, or release it. Nothing was launched
//   INVALID_ARGUMENT     capture_only; a stream of another device; bindings as for begin_run; other numbers or sizes of
//                        buffers than were captured; or buffers as for gcap_graph_manager_bind, which has its other
//                        errors too
//   CUDA_ERROR           the launch, the wait, or the copy of values in memory failed. On another stream: if the graph
//                        was launched but the streams could not be ordered, the message says so
//   others               what the function of a hole returned: what was launched before runs, the rest does not
GCAP_API gcap_status_t gcap_graph_manager_replay(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                                 bool* out_replayed) GCAP_NODISCARD;

// Marks the graph of `id` as out of date. The graph no longer replays; the next run is captured again and updates the
// executable in place, which costs a fraction of an instantiation. If the driver refuses the update (another topology,
// another kind of node), a new executable is made. Launches in flight are not disturbed; what the old graph retained is
// released when they have finished. If the capture fails, the old executable is kept for the next update.
//   NOT_FOUND  no graph of that id
GCAP_API gcap_status_t gcap_graph_manager_recapture(gcap_graph_manager_t* manager, int id) GCAP_NODISCARD;

// True if the id has a graph that replays. Guards are not asked: gcap_graph_manager_replay looks whether they hold.
GCAP_API bool gcap_graph_manager_is_captured(gcap_graph_manager_t* manager, int id);

// --- Release --------------------------------------------------------------------------------------------------------

// While a run captures one more graph of an id, no graph of the id is released: both functions refuse. An id that is
// captured for the first time has no graph to lose, and does not hinder a release of all.

// Releases the graph of `id`: waits for the graph's launches by an event on its stream, destroys the executable,
// releases what the graph retained, and forgets the id, which is then COLD. An id without a graph is forgotten, too.
// Safe from any thread. While another thread asks for the graph's bytes, what the graph retained is released at the end
// of that call.
//   NOT_FOUND            the id is COLD
//   FAILED_PRECONDITION  the calling thread is capturing, the graph's stream is capturing, the id is being captured, or
//                        its graph is in a hole; the id is unchanged
//   CUDA_ERROR           the event could not be recorded; the id is unchanged
//   LEAKED               the id is COLD. The wait failed, and the graph and what it retains are kept until the process
//                        ends; or the graph is released, but a handle could not be destroyed. The message says which
GCAP_API gcap_status_t gcap_graph_manager_release(gcap_graph_manager_t* manager, int id) GCAP_NODISCARD;

// Releases every graph, including those that were evicted or replaced and are not freed yet, and forgets every id. An
// id that is captured for the first time now stays. While on_evict is called, the graphs that the run evicted are not
// included: that run's end frees them.
//   FAILED_PRECONDITION  the calling thread is capturing, a graph's stream is capturing, a graph is in a hole, or an id
//                        with a graph is being captured, again or as another variant; nothing was released
//   CUDA_ERROR           the events of some graphs could not be recorded: these are unchanged, all others are released
//   LEAKED               as gcap_graph_manager_release; all ids are COLD
GCAP_API gcap_status_t gcap_graph_manager_release_all(gcap_graph_manager_t* manager) GCAP_NODISCARD;

// For the STABLE policy: report that the run that this thread has open allocated memory, or initialized a library or
// the like, without gcap's modules.
GCAP_API void gcap_graph_note_allocation(size_t bytes);
GCAP_API void gcap_graph_note_initialization(void);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_H_
