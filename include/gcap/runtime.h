// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// runtime.h: streams, graphs and scratch memory together. For an engine that calls its own kernels: gcap_runtime_run.
// For implementers of EPs: see ep_ops.h.
#ifndef GCAP_RUNTIME_H_
#define GCAP_RUNTIME_H_

#include <stdbool.h>
#include <stddef.h>

#include "gcap/allocator.h"
#include "gcap/graph.h"
#include "gcap/options.h"
#include "gcap/scratch.h"
#include "gcap/status.h"
#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

// What one run may use: the calling thread's stream, scratch for short-lived memory, and an allocator for memory that
// outlives the run.
typedef struct gcap_run_resources {
  gcap_stream_t* stream;
  gcap_scratch_t* scratch;
  gcap_allocator_t* allocator;
} gcap_run_resources_t;

// Runtime: memory, and a stream and a graph manager for each thread. A captured run allocates from a reservation of the
// scratch, which the graph keeps. From gcap_runtime_create.
// Thread:   thread-safe. With a user stream all threads share one stream and one graph manager: gcap_runtime_run then
//           takes turns by itself, and callers of begin_run and end_run must let one thread at a time run.
// Capture:  end_run, sign and the functions that only read are legal while the thread's run is being captured.
// Lifetime: outlives the kernels that use its resources.
// Errors:   besides those listed, INVALID_ARGUMENT if a required argument is NULL. A call that needs the calling
//           thread's stream or graphs makes them on first use, and then also fails as gcap_thread_contexts_get.
typedef struct gcap_runtime gcap_runtime_t;

// Creates a runtime. `options` NULL: the defaults. To capture graphs, set `enable_cuda_graph`.
//   INVALID_ARGUMENT     as gcap_options_check; no such device; a trace file that cannot be written; or sizes that
//                        gcap_scratch_create refuses
//   FAILED_PRECONDITION  with `use_mempool`: the calling thread is capturing
//   UNIMPLEMENTED        with `use_mempool`: the device has no memory pools
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           CUDA refused
GCAP_API gcap_status_t gcap_runtime_create(const gcap_options_t* options, gcap_runtime_t** out_runtime) GCAP_NODISCARD;

// Ends the runtime: graphs, streams, then memory. NULL is fine.
//   FAILED_PRECONDITION  the calling thread is capturing; a thread's stream, or that of one of its graphs, is capturing;
//                        another thread has a run open; a gcap_runtime_run calls its work, so this may be the work; a
//                        block of scratch is live that no graph keeps, a reservation is open, or a call waits for
//                        memory. The message names the nodes of live blocks. Nothing was ended: graphs still replay
//   LEAKED               the runtime is gone; a stream, a graph or the memory may still be in use, and all the memory is
//                        kept until the process ends. So is a block that was allocated in a capture, and that nobody
//                        freed before the graph ended
GCAP_API gcap_status_t gcap_runtime_destroy(gcap_runtime_t* runtime) GCAP_NODISCARD;

// False with a user stream.
GCAP_API bool gcap_runtime_supports_concurrent_runs(const gcap_runtime_t* runtime);
GCAP_API bool gcap_runtime_is_graph_capture_enabled(const gcap_runtime_t* runtime);
GCAP_API gcap_scratch_t* gcap_runtime_scratch(gcap_runtime_t* runtime);

// Returns the calling thread's resources, which are made on first use.
//   errors of gcap_thread_contexts_get
GCAP_API gcap_status_t gcap_runtime_get_resources(gcap_runtime_t* runtime,
                                                  gcap_run_resources_t* out_resources) GCAP_NODISCARD;

// --- Runs -----------------------------------------------------------------------------------------------------------

// Issues the work of a run to the stream of `resources`. Returns NULL if the work was issued.
typedef gcap_status_t (*gcap_runtime_work_t)(void* user, const gcap_run_resources_t* resources);

// A whole run in one call, on the calling thread's stream. If `graph_id` is captured, replays the graph. Else begins a
// run, calls `work(user, resources)` with the stream's device current, and ends the run. If the capture failed, calls
// `work` once more, eagerly, unless the option graph.rerun_failed_capture is false. So the device does the run's work
// exactly once. With `synchronize` the results are complete on return.
//   CAPTURE_INVALIDATED  the capture failed, and graph.rerun_failed_capture is false
//   FAILED_PRECONDITION  the calling thread is capturing; or as begin_run, end_run and replay
//   others               as begin_run, end_run and replay; or what `work` returned in an eager run
GCAP_API gcap_status_t gcap_runtime_run(gcap_runtime_t* runtime, int graph_id, gcap_runtime_work_t work, void* user,
                                        bool synchronize) GCAP_NODISCARD;

// Opens a run of the calling thread. The thread's stream may be capturing on return. The stream's device must be
// current from this call until the run's end. Without `enable_cuda_graph` every run is eager. Scratch that is allocated
// for the thread's stream belongs to the run (gcap_scratch_begin_run): what the work neither frees nor keeps is freed
// at the run's end, and a warning names it.
//   errors of gcap_graph_manager_begin_run and gcap_scratch_begin_run
GCAP_API gcap_status_t gcap_runtime_begin_run(gcap_runtime_t* runtime, int graph_id) GCAP_NODISCARD;

// Ends a run that gcap_runtime_begin_run opened; call it also after the work failed. `run_status` is the outcome of the
// work, NULL for success. The call takes ownership of `run_status`, and the returned status includes that outcome. With
// `synchronize` the results are complete on return.
//   CAPTURE_INVALIDATED  the run was captured and the capture failed: nothing was executed; run again
//   others               `run_status` itself, if the run was eager and its work failed; or as
//                        gcap_graph_manager_end_run, gcap_scratch_end_run and gcap_stream_end_run
GCAP_API gcap_status_t gcap_runtime_end_run(gcap_runtime_t* runtime, gcap_status_t run_status,
                                            bool synchronize) GCAP_NODISCARD;

// Signs the run that the calling thread has open.
//   errors of gcap_graph_manager_sign
GCAP_API gcap_status_t gcap_runtime_sign(gcap_runtime_t* runtime, const gcap_graph_binding_t* bindings,
                                         size_t num_bindings) GCAP_NODISCARD;

// --- Graphs of the calling thread -----------------------------------------------------------------------------------

// True if gcap_runtime_replay would find a graph.
GCAP_API bool gcap_runtime_is_captured(gcap_runtime_t* runtime, int graph_id);

// As gcap_graph_manager_replay. After a launch the thread's stream also does its housekeeping (gcap_stream_end_run).
//   errors of gcap_graph_manager_replay and gcap_stream_end_run
GCAP_API gcap_status_t gcap_runtime_replay(gcap_runtime_t* runtime, int graph_id,
                                           const gcap_graph_replay_options_t* options,
                                           bool* out_replayed) GCAP_NODISCARD;

// As gcap_graph_manager_explain.
//   errors of gcap_graph_manager_explain
GCAP_API gcap_status_t gcap_runtime_explain(gcap_runtime_t* runtime, int graph_id,
                                            gcap_graph_question_t question) GCAP_NODISCARD;

// As gcap_graph_manager_release.
//   errors of gcap_graph_manager_release
GCAP_API gcap_status_t gcap_runtime_release(gcap_runtime_t* runtime, int graph_id) GCAP_NODISCARD;

// As gcap_graph_manager_read_info; zeros if the thread's stream and graphs cannot be made. Programs call
// gcap_runtime_get_graph_info, which sets the size.
GCAP_API void gcap_runtime_read_graph_info(gcap_runtime_t* runtime, int graph_id, gcap_graph_info_t* out_info);
static inline void gcap_runtime_get_graph_info(gcap_runtime_t* runtime, int graph_id, gcap_graph_info_t* out_info) {
  if (out_info != NULL) out_info->struct_size = sizeof(*out_info);
  gcap_runtime_read_graph_info(runtime, graph_id, out_info);
}

// Blocks until all work of the calling thread's stream is done; never waits for the device.
//   errors of gcap_stream_synchronize
GCAP_API gcap_status_t gcap_runtime_synchronize(gcap_runtime_t* runtime) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_RUNTIME_H_
