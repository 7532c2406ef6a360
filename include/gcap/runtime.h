// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// runtime.h: streams, graphs and scratch memory together. For an engine that calls its own kernels: gcap_runtime_run.
// For a host: begin, replay and end a run, copies, streams and memory. For who has streams or graphs of its own: see
// runtime_ops.h.
#ifndef GCAP_RUNTIME_H_
#define GCAP_RUNTIME_H_

#include <stdbool.h>
#include <stddef.h>

#include "gcap/allocator.h"
#include "gcap/graph.h"
#include "gcap/graph_plan.h"
#include "gcap/options.h"
#include "gcap/run.h"
#include "gcap/scratch.h"
#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// Runtime: memory, and a stream and a graph manager for each thread. A captured run allocates from a reservation of the
// scratch, which the graph keeps. From gcap_runtime_create, or from gcap_runtime_create_from (runtime_ops.h): what
// these comments say of options and graph managers is true of gcap's own runtime, and "of the table" means what the
// implementer's function returns.
// Thread:   thread-safe. With a unified stream (as with a user stream, or external memory) or graph.scope session, all
//           threads share one stream and one graph manager: gcap_runtime_run, gcap_runtime_synchronize and copies that
//           wait then take turns by themselves, also where the work of a run calls them; callers of begin_run and
//           end_run must let one thread at a time do any of these. Other work that a program gives the shared stream
//           needs a lock of the program's own over the work and over its runs.
// Capture:  end_run and the functions that only read are legal while the thread's run is being captured.
// Lifetime: outlives the kernels that use its resources. A thread's stream and graphs end with the thread; a block that
//           the thread kept (gcap_scratch_keep) lives on, and once freed is reused after a wait for the device.
//           gcap_log hears of a stream that ends before a reservation of the stream, and of a stream that is kept until
//           the process ends since another thread was getting memory for the stream.
// Errors:   besides those listed, INVALID_ARGUMENT if a required argument is NULL, or a run of no known size. A call
//           that needs the calling thread's stream or graphs makes them on first use, and then also fails as
//           gcap_runtime_read_resources.
typedef struct gcap_runtime gcap_runtime_t;

// Creates a runtime. `options` NULL: the defaults. To capture graphs, set `enable_cuda_graph`.
//   INVALID_ARGUMENT     options that do not fit together: one external callback without its partner; external
//                        callbacks together with arena.use_cuda_mempool; has_user_stream without a user_stream, unless
//                        allow_default_stream is set; a default stream (0, 1 or 2) as user stream together with
//                        enable_cuda_graph; an enumeration that has no such value; `graph` as in
//                        gcap_graph_manager_create; or `options` was not initialized. Or no such device; a trace file
//                        that cannot be written; or sizes that gcap_scratch_create refuses
//   FAILED_PRECONDITION  with `use_mempool`: the calling thread is capturing
//   UNIMPLEMENTED        with `use_mempool`: the device has no memory pools
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           CUDA refused
GCAP_API gcap_status_t gcap_runtime_create(const gcap_options_t* options, gcap_runtime_t** out_runtime) GCAP_NODISCARD;

// Ends the runtime: graphs, streams, then memory. NULL is fine.
//   FAILED_PRECONDITION  the calling thread is capturing; a thread's stream, or that of one of its graphs, is
//                        capturing; another thread has a run open; a gcap_runtime_run calls its work, so this may be
//                        the work; a block of scratch is live that no graph keeps, a reservation is open, or a call
//                        waits for memory. The message names the nodes of live blocks. Nothing was ended: graphs still
//                        replay
//   others               of the table: a refusal, the runtime is whole
//   LEAKED               the runtime is gone; a stream, a graph or the memory may still be in use, and all the memory
//                        is kept until the process ends. So is a block that was allocated in a capture, and that
//                        nobody freed before the graph ended
GCAP_API gcap_status_t gcap_runtime_destroy(gcap_runtime_t* runtime) GCAP_NODISCARD;

// What a runtime is.
typedef struct gcap_runtime_info {
  size_t struct_size;  // set by gcap_runtime_get_info
  // False if all threads share one stream: see use_unified_stream and graph_scope in gcap_options_t.
  bool supports_concurrent_runs;
  bool is_graph_capture_enabled;
  bool copies_in_default_stream;  // the option do_copy_in_default_stream
} gcap_runtime_info_t;

// Reads what the runtime is. Programs call gcap_runtime_get_info, which sets the size.
GCAP_API void gcap_runtime_read_info(const gcap_runtime_t* runtime, gcap_runtime_info_t* out_info);
static inline void gcap_runtime_get_info(const gcap_runtime_t* runtime, gcap_runtime_info_t* out_info) {
  out_info->struct_size = sizeof(*out_info);
  gcap_runtime_read_info(runtime, out_info);
}

// The scratch of gcap_run_resources_t; NULL if there is none.
GCAP_API gcap_scratch_t* gcap_runtime_scratch(gcap_runtime_t* runtime);

// Returns the calling thread's resources, which are made on first use. Programs call gcap_runtime_get_resources, which
// sets the size.
//   FAILED_PRECONDITION  the thread has none yet, and is capturing, or is exiting and has run its last round of
//                        thread-local destructors
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the driver refused the stream; the next call tries again
//   others               of the table
GCAP_API gcap_status_t gcap_runtime_read_resources(gcap_runtime_t* runtime,
                                                   gcap_run_resources_t* out_resources) GCAP_NODISCARD;
static inline gcap_status_t gcap_runtime_get_resources(gcap_runtime_t* runtime, gcap_run_resources_t* out_resources) {
  if (out_resources != NULL) out_resources->struct_size = sizeof(*out_resources);
  return gcap_runtime_read_resources(runtime, out_resources);
}

// Returns the calling thread's graph manager, which is made on first use: to bind, audit, dump or release graphs. Runs
// are the runtime's. Borrowed until the thread, or the runtime, ends.
//   UNIMPLEMENTED  the runtime has graphs of its own (gcap_runtime_create_from)
//   others         as gcap_runtime_read_resources
GCAP_API gcap_status_t gcap_runtime_graphs(gcap_runtime_t* runtime, gcap_graph_manager_t** out_graphs) GCAP_NODISCARD;

// --- Runs -----------------------------------------------------------------------------------------------------------

// A whole run in one call, on the calling thread's stream. If the id is captured, replays its graph. Else begins a run,
// calls `work(user, resources)` with the stream's device current, and ends the run; a run with buffers is rehearsed
// before its capture. If the capture failed, calls `work` once more, eagerly, unless the option
// graph.rerun_failed_capture is false. So the device does the run's work exactly once; with capture_only it does
// nothing of it.
//   CAPTURE_INVALIDATED  the capture failed, and graph.rerun_failed_capture is false, or the run is capture_only
//   CANCELLED            what `work` returned: the run stopped on purpose
//   FAILED_PRECONDITION  the calling thread is capturing; or as begin_run, end_run and replay
//   others               as begin_run, end_run and replay; or what `work` returned in an eager run
GCAP_API gcap_status_t gcap_runtime_run(gcap_runtime_t* runtime, const gcap_run_t* run) GCAP_NODISCARD;

// Warms up the calling thread's graphs of `runs`, as gcap_graph_manager_warm_up does. A runtime whose table has graphs
// of its own takes no run with capture_only, and none with pinned.
//   FAILED_PRECONDITION  the runtime does not capture (enable_cuda_graph); the calling thread is capturing
//   others               as gcap_graph_manager_warm_up and gcap_runtime_run; or of the table
GCAP_API gcap_status_t gcap_runtime_warm_up(gcap_runtime_t* runtime, const gcap_run_t* runs, size_t num_runs,
                                            gcap_warm_up_fn on_run, void* user) GCAP_NODISCARD;

// Plans the calling thread's graphs of `runs`, an id each, as gcap_graph_manager_plan does. A rehearsal has a scratch
// reservation, as a captured run has; the arena grows by what the largest of them lacks, not by their sum. Graphs that
// share a reservation (share_graph_memory) count it once.
//   errors of gcap_graph_manager_plan
GCAP_API gcap_status_t gcap_runtime_plan(gcap_runtime_t* runtime, const gcap_run_t* runs, size_t num_runs,
                                         gcap_graph_plan_t* out_plan) GCAP_NODISCARD;

// Opens a run of the calling thread. The thread's stream may be capturing on return. The stream's device must be
// current from this call until the run's end. Without `enable_cuda_graph` every run is eager. Scratch that is allocated
// for the thread's stream belongs to the run: what the work neither frees nor keeps (gcap_scratch_keep) is freed at the
// run's end, and a warning names it. `*out_kind` says how the run is to be executed. A run with run->buffers:
// `out_addresses[count + num_values]` is where the work finds each of them, and a rehearsal is ended and begun again;
// neither is NULL. Else both may be NULL.
//   INVALID_ARGUMENT     run->stream is set: a runtime has a stream for each thread
//   FAILED_PRECONDITION  the table of the runtime does not move buffers, or does not check bindings, which the run has;
//                        the run has values, and the runtime is not gcap's own; capture_only or pinned, and the runtime
//                        has graphs of its own (gcap_runtime_create_from); or capture_only, and the runtime does not
//                        capture
//   RESOURCE_EXHAUSTED   no host memory
//   others               as gcap_graph_manager_begin_run; or of the table
GCAP_API gcap_status_t gcap_runtime_begin_run(gcap_runtime_t* runtime, const gcap_run_t* run,
                                              gcap_graph_run_kind_t* out_kind, void** out_addresses) GCAP_NODISCARD;

// Ends a run that gcap_runtime_begin_run opened; call it also after the work failed. `run`: that of the begin; NULL: of
// the defaults. `run_status` is the outcome of the work, NULL for success. The call takes ownership of `run_status`,
// and the returned status includes that outcome. With run->synchronize the results are complete on return. The end
// frees the scratch that the work left, also what a debug option cannot look at or fill, as in a capture that was
// broken. A block that could not be freed stays live: the end of a later run frees it, or gcap_scratch_free.
//   CAPTURE_INVALIDATED  the run was captured and the capture failed: nothing was executed; run again
//   INTERNAL             with arena.red_zones: something wrote outside of a block of scratch that the work left
//   others               `run_status` itself, if the run was eager and its work failed; or as
//                        gcap_graph_manager_end_run, gcap_stream_end_run and gcap_scratch_free; or of the table
GCAP_API gcap_status_t gcap_runtime_end_run(gcap_runtime_t* runtime, const gcap_run_t* run,
                                            gcap_status_t run_status) GCAP_NODISCARD;

// Replays the calling thread's graph of run->id, as gcap_graph_manager_replay. After a launch the thread's stream also
// does its housekeeping (gcap_stream_end_run).
//   FAILED_PRECONDITION  as gcap_runtime_begin_run
//   others               as gcap_graph_manager_replay and gcap_stream_end_run; or of the table
GCAP_API gcap_status_t gcap_runtime_replay(gcap_runtime_t* runtime, const gcap_run_t* run,
                                           bool* out_replayed) GCAP_NODISCARD;

// --- Graphs of the calling thread -----------------------------------------------------------------------------------

// As gcap_graph_manager_is_captured.
GCAP_API bool gcap_runtime_is_captured(gcap_runtime_t* runtime, int graph_id);

// As gcap_graph_manager_explain.
//   errors of gcap_graph_manager_explain; or of the table
GCAP_API gcap_status_t gcap_runtime_explain(gcap_runtime_t* runtime, int graph_id,
                                            gcap_graph_question_t question) GCAP_NODISCARD;

// As gcap_graph_manager_release.
//   FAILED_PRECONDITION  the table has no release
//   others               of gcap_graph_manager_release; or of the table
GCAP_API gcap_status_t gcap_runtime_release(gcap_runtime_t* runtime, int graph_id) GCAP_NODISCARD;

// Blocks until all work of the calling thread's stream is done; never waits for the device.
//   errors of gcap_stream_synchronize; or of the table
GCAP_API gcap_status_t gcap_runtime_synchronize(gcap_runtime_t* runtime) GCAP_NODISCARD;

// --- More streams in a run ------------------------------------------------------------------------------------------

// Gives `count` further streams to the run that the calling thread has open: their next work comes after all that the
// run's stream was given so far. In a captured run they take part in the capture, and the graph has a branch for each.
// Each may be used as the run's stream: scratch that is allocated for it belongs to the run, and what is attached to it
// stays. They are non-blocking streams of the runtime's device, borrowed until the run ends; a thread gets its own back
// in its next run. A thread's first fork of so many streams makes them, which a capture forbids: a warm-up run does so.
// Memory of one stream that was used on another is freed after the join.
// A failure fails the capture, if there is one.
//   UNIMPLEMENTED        the table has no fork
//   FAILED_PRECONDITION  the thread has no run open, or is in the function of a hole; or in a capture: the thread has
//                        too few streams yet, or the run's stream is not the origin of the capture
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the runtime refused
GCAP_API gcap_status_t gcap_runtime_fork(gcap_runtime_t* runtime, size_t count,
                                         gcap_stream_t** out_streams) GCAP_NODISCARD;

// Orders the next work of the run's stream after all work of the streams that were forked since the last join. They get
// no more work until they are forked again. A run that ends without the join is joined, and fails with
// FAILED_PRECONDITION, since what came after may have read too early; if its work failed, it is only joined.
//   UNIMPLEMENTED        the table has no join
//   FAILED_PRECONDITION  the thread has no run open, or is in the function of a hole; or in a capture: the run's stream
//                        is not the origin
//   CUDA_ERROR           the runtime refused; the run's end joins again
GCAP_API gcap_status_t gcap_runtime_join(gcap_runtime_t* runtime) GCAP_NODISCARD;

// --- For a host: copies, streams, memory ----------------------------------------------------------------------------

// One copy of a tensor, of the same type and number of elements.
// Thread:   a plain value.
// Capture:  as gcap_runtime_copy_tensors.
// Lifetime: the structs are read before the call returns. The data of both tensors stays until the copy is done; of a
//           captured copy, as long as the graph.
typedef struct gcap_copy {
  const gcap_tensor_t* src;
  gcap_memory_t src_memory;  // where the data of `src` is
  const gcap_tensor_t* dst;  // its data is written
  gcap_memory_t dst_memory;
  gcap_stream_t* stream;  // NULL: the copy is done on return. Else it is issued here, and may be under way on return
} gcap_copy_t;

// True if gcap_runtime_copy_tensors copies between such memory: one side is memory of the runtime's device, the other
// is host memory, pinned or not, or memory of any device of this machine.
GCAP_API bool gcap_runtime_can_copy(const gcap_runtime_t* runtime, gcap_memory_t src, gcap_memory_t dst);

// Copies tensors in the order of `copies`, each on its stream or, without one, so that it is done on return. Never
// waits for a device, and never uses the legacy stream. All copies are checked before the first is issued. Copies
// without a stream are issued on the calling thread's stream, so after the runs that the thread has issued, and waited
// for by that stream: the caller then has the turn, if threads share the stream. Without the option
// do_copy_in_default_stream they are issued on another stream, and nothing orders them with the runs: the host does.
// Memory of two devices is copied directly where one reaches the other, else CUDA stages it.
// Capture:  a copy to a stream of the capture becomes a node, which copies in each replay. Its host memory must be
//           page-locked, whatever the copy says of it.
//   INVALID_ARGUMENT     a tensor is NULL, has no data, a type, rank or shape that does not exist, or another type or
//                        number of elements than its partner; or gcap_runtime_can_copy is false
//   FAILED_PRECONDITION  in a capture: a copy without a stream, or to a stream outside of the capture, which fails the
//                        scope; or pageable host memory, at whose address each replay would copy again, which fails it
//                        too: use pinned memory, or copy before the run
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the runtime refused, or work failed. Copies may have been issued, and are under way if the
//                        wait failed
GCAP_API gcap_status_t gcap_runtime_copy_tensors(gcap_runtime_t* runtime, const gcap_copy_t* copies,
                                                 size_t count) GCAP_NODISCARD;

// Makes a stream for the host on the runtime's device, such as one for copies. If all threads share one stream
// (gcap_runtime_info_t.supports_concurrent_runs is false), gives another wrapper of that stream, of ownership USER:
// there is one stream for all. The host ends it with gcap_stream_destroy, before the runtime.
//   UNIMPLEMENTED  the table has no create_stream
//   others         as gcap_stream_create, gcap_stream_wrap and gcap_runtime_read_resources; or of the table
GCAP_API gcap_status_t gcap_runtime_create_stream(gcap_runtime_t* runtime, gcap_stream_t** out_stream) GCAP_NODISCARD;

// Returns the runtime's allocator of such memory, for what is allocated seldom, such as weights: each call may ask the
// driver. Memory of a sequence that joins and leaves is scratch (scratch.h). DEVICE: that of gcap_run_resources_t.
// PINNED: made on first use. Both end with the runtime; their memory is freed before.
//   INVALID_ARGUMENT    HOST, which malloc gives; or no such kind
//   UNIMPLEMENTED       the table has no get_allocator, and its get_resources no such memory
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_runtime_get_allocator(gcap_runtime_t* runtime, gcap_memory_kind_t kind,
                                                  gcap_allocator_t** out_allocator) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_RUNTIME_H_
