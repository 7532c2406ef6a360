// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// runtime.h: streams, graphs and scratch memory together, for an engine that calls its own kernels, and for
// implementers of EPs (ep_ops.h).
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

// What one run may use: the calling thread's stream, the scratch, and the allocator for memory that lives longer.
typedef struct gcap_run_resources {
  gcap_stream_t* stream;
  gcap_scratch_t* scratch;
  gcap_allocator_t* allocator;
} gcap_run_resources_t;

// Runtime: memory, and a stream and a graph manager for each thread; captures reserve their scratch, and each graph
// keeps its own. From gcap_runtime_create.
// Thread:   thread-safe. With a user stream all threads share one context: gcap_runtime_run takes turns by itself, and
//           whoever calls begin_run and end_run lets one thread at a time do so.
// Capture:  end_run, sign, get_resources and is_captured are legal while the thread's run is being captured.
// Lifetime: ends after the kernels that use its resources.
// Errors:   besides those listed: INVALID_ARGUMENT for NULL where something is expected; and each call that needs the
//           calling thread's context makes it when there is none, with the errors of gcap_thread_contexts_get.
typedef struct gcap_runtime gcap_runtime_t;

// `options` NULL: the defaults, which capture no graph: set `enable_cuda_graph`.
// Errors: those of gcap_options_check, and of the modules that the runtime is made of.
GCAP_API gcap_status_t gcap_runtime_create(const gcap_options_t* options, gcap_runtime_t** out_runtime) GCAP_NODISCARD;

// NULL is fine. What may still be in use is kept for the life of the process, and the status says so.
//   FAILED_PRECONDITION  the calling thread is capturing; nothing was destroyed
//   others               of gcap_thread_contexts_destroy and gcap_scratch_destroy; the runtime is gone
GCAP_API gcap_status_t gcap_runtime_destroy(gcap_runtime_t* runtime) GCAP_NODISCARD;

GCAP_API bool gcap_runtime_supports_concurrent_runs(const gcap_runtime_t* runtime);
GCAP_API bool gcap_runtime_is_graph_capture_enabled(const gcap_runtime_t* runtime);
GCAP_API gcap_scratch_t* gcap_runtime_scratch(gcap_runtime_t* runtime);

// The calling thread's resources, made on its first call.
GCAP_API gcap_status_t gcap_runtime_get_resources(gcap_runtime_t* runtime,
                                                  gcap_run_resources_t* out_resources) GCAP_NODISCARD;

// --- Runs -----------------------------------------------------------------------------------------------------------

// Issues the work of a run to the stream of `resources`. NULL: the work was issued.
typedef gcap_status_t (*gcap_runtime_work_t)(void* user, const gcap_run_resources_t* resources);

// A whole run in one call, on the calling thread's stream: replays `graph_id` when it is captured; else begins a run,
// calls `work`, and ends the run. When a capture failed, `work` is called once more, eagerly, unless the option
// graph.rerun_failed_capture is false. So the device does the run's work exactly once. With `synchronize` the results
// are there on return.
//   CAPTURE_INVALIDATED  the capture failed, and the option forbids to run again
//   others               of begin_run, end_run and replay; and the status of `work` when it failed eagerly
GCAP_API gcap_status_t gcap_runtime_run(gcap_runtime_t* runtime, int graph_id, gcap_runtime_work_t work, void* user,
                                        bool synchronize) GCAP_NODISCARD;

// Opens a run of the calling thread. The thread's stream may be capturing on return. The caller has made the stream's
// device current, until the run's end.
//   errors of gcap_graph_manager_begin_run
GCAP_API gcap_status_t gcap_runtime_begin_run(gcap_runtime_t* runtime, int graph_id) GCAP_NODISCARD;

// Ends the run, always, also after a failure: `run_status` is what became of the work, NULL for success. As
// gcap_graph_manager_end_run, the call takes `run_status`, and returns a status that says no less.
//   CAPTURE_INVALIDATED  the run was captured and the capture failed: nothing was executed, run it again
//   others               of `run_status`, gcap_graph_manager_end_run and gcap_stream_end_run
GCAP_API gcap_status_t gcap_runtime_end_run(gcap_runtime_t* runtime, gcap_status_t run_status,
                                            bool synchronize) GCAP_NODISCARD;

// Signs the run that the thread has open (gcap_graph_manager_sign).
GCAP_API gcap_status_t gcap_runtime_sign(gcap_runtime_t* runtime, const gcap_graph_binding_t* bindings,
                                         size_t num_bindings) GCAP_NODISCARD;

// --- Graphs of the calling thread -----------------------------------------------------------------------------------

GCAP_API bool gcap_runtime_is_captured(gcap_runtime_t* runtime, int graph_id);

// As gcap_graph_manager_replay; the thread's stream learns of the run's end (gcap_stream_end_run).
GCAP_API gcap_status_t gcap_runtime_replay(gcap_runtime_t* runtime, int graph_id,
                                           const gcap_graph_replay_options_t* options,
                                           bool* out_replayed) GCAP_NODISCARD;

// As gcap_graph_manager_explain.
GCAP_API gcap_status_t gcap_runtime_explain(gcap_runtime_t* runtime, int graph_id,
                                            gcap_graph_question_t question) GCAP_NODISCARD;

// As gcap_graph_manager_release.
GCAP_API gcap_status_t gcap_runtime_release(gcap_runtime_t* runtime, int graph_id) GCAP_NODISCARD;

// As gcap_graph_manager_get_info; zeros when the thread has run nothing.
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
