// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The runtime: allocator, scratch and thread contexts together. graph_memory.c has what a captured run keeps of the
// scratch.
//
// Order of ending: contexts (graphs, then streams), forked streams' work, scratch, allocators, forked streams. Before
// anything ends, all are asked whether they can; what cannot end all the same is kept, and so is all that it uses.
//
// Locking: if threads share one context, `turns` is held over a whole gcap_runtime_run, also while the caller's work
// runs. All other mutable state belongs to the calling thread's context or to a module that locks.

#include "gcap/runtime.h"

#include <pthread.h>
#include <stdlib.h>

#include "gcap/capture.h"
#include "gcap/external_allocator.h"
#include "gcap/log.h"
#include "gcap/thread_context.h"
#include "lib/allocator/trace_file.h"
#include "lib/capture/fail_once.h"
#include "lib/context/check_end.h"
#include "lib/graph/open_run.h"
#include "lib/graph/options.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/forked.h"
#include "lib/internal/kept.h"
#include "lib/internal/unwind.h"
#include "lib/options/options.h"
#include "lib/runtime/forks.h"
#include "lib/runtime/runtime_internal.h"
#include "lib/scratch/check_end.h"

static gcap_status_t forget_stream(void* user, gcap_stream_t* stream) {
  gcap_runtime_t* runtime = user;
  return gcap_scratch_forget_stream(runtime->scratch, stream);
}

static gcap_status_t create_allocator(const gcap_options_t* options, gcap_allocator_t** out_allocator) {
  if (options->use_mempool) {
    gcap_pool_allocator_options_t pool = options->mempool;
    pool.device_id = options->device_id;
    return gcap_pool_allocator_create(&pool, out_allocator);
  }
  if (options->external_alloc == NULL) return gcap_device_allocator_create(options->device_id, out_allocator);
  gcap_external_allocator_options_t external;
  gcap_external_allocator_options_init(&external);
  external.device_id = options->device_id;
  external.alloc = options->external_alloc;
  external.free = options->external_free;
  external.empty_cache = options->external_empty_cache;
  return gcap_external_allocator_create(&external, out_allocator);
}

static gcap_status_t create_scratch(gcap_runtime_t* runtime) {
  gcap_scratch_options_t arena = runtime->options.arena;
  if (runtime->options.trace_file[0] != '\0') {
    GCAP_RETURN_IF_ERROR(gcap_trace_file_create(runtime->options.trace_file, &runtime->trace_file));
    arena.on_event = gcap_trace_file_on_event;
    arena.user = runtime->trace_file;
  }
  return gcap_scratch_create(runtime->allocator, &arena, &runtime->scratch);
}

static gcap_status_t create_contexts(gcap_runtime_t* runtime) {
  const gcap_options_t* options = &runtime->options;
  gcap_thread_contexts_options_t contexts;
  gcap_thread_contexts_options_init(&contexts);
  contexts.device_id = options->device_id;
  contexts.shared = options->graph_scope == GCAP_GRAPH_SCOPE_SESSION;
  contexts.has_user_stream = options->has_user_stream;
  contexts.user_stream = (cudaStream_t)options->user_stream;
  contexts.graph = options->graph;
  contexts.on_end = forget_stream;
  contexts.user = runtime;
  return gcap_thread_contexts_create(&contexts, &runtime->contexts);
}

static gcap_status_t create_parts(gcap_runtime_t* runtime) {
  GCAP_RETURN_IF_ERROR(create_allocator(&runtime->options, &runtime->allocator));
  GCAP_RETURN_IF_ERROR(create_scratch(runtime));
  gcap_graph_memory_init(&runtime->graph_memory, runtime->scratch, runtime->options.share_graph_memory);
  GCAP_RETURN_IF_ERROR(gcap_stream_pool_create(runtime->options.device_id, &runtime->streams));
  GCAP_RETURN_IF_ERROR(gcap_forks_create(runtime));
  return create_contexts(runtime);
}

// Ends what there is of a runtime that can end.
static gcap_status_t end(gcap_runtime_t* runtime) {
  gcap_status_t status = gcap_thread_contexts_destroy(runtime->contexts);
  status = gcap_status_join(status, gcap_affine_destroy(runtime->forks));
  if (status == NULL) status = gcap_stream_pool_destroy(runtime->streams);
  if (status == NULL) status = gcap_scratch_destroy(runtime->scratch);
  if (status != NULL) {
    if (runtime->trace_file != NULL) gcap_trace_file_flush(runtime->trace_file);
    gcap_keep_for_ever(&runtime->kept);
    return gcap_status_annotate(status, GCAP_LEAKED, "the memory of the runtime may still be in use and is kept");
  }
  status = gcap_trace_file_destroy(runtime->trace_file);
  if (status != NULL) gcap_log(GCAP_LOG_ERROR, "%s", gcap_status_message(status));
  gcap_status_ignore(status);  // the runtime ended well
  gcap_graph_memory_deinit(&runtime->graph_memory);
  pthread_mutex_destroy(&runtime->turns);
  gcap_allocator_destroy(runtime->allocator);
  gcap_allocator_destroy(atomic_load_explicit(&runtime->pinned, memory_order_relaxed));
  free(runtime);
  return NULL;
}

gcap_status_t gcap_runtime_create(const gcap_options_t* options, gcap_runtime_t** out_runtime) {
  GCAP_RETURN_IF_NULL(out_runtime);
  *out_runtime = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_options_read(options, &known));
  GCAP_RETURN_IF_ERROR(gcap_options_check(&known));
  gcap_options_derive(&known);
  gcap_runtime_t* runtime = calloc(1, sizeof(*runtime));
  if (runtime == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a runtime");
  runtime->options = known;
  pthread_mutex_init(&runtime->turns, NULL);
  gcap_status_t status = create_parts(runtime);
  if (status != NULL) return gcap_status_join(status, end(runtime));
  *out_runtime = runtime;
  return NULL;
}

gcap_status_t gcap_runtime_destroy(gcap_runtime_t* runtime) {
  if (runtime == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_runtime_destroy"));
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_check_end(runtime->contexts));
  GCAP_RETURN_IF_ERROR(gcap_scratch_check_end(runtime->scratch));
  return end(runtime);
}

bool gcap_runtime_supports_concurrent_runs(const gcap_runtime_t* runtime) {
  return runtime->options.graph_scope == GCAP_GRAPH_SCOPE_THREAD;  // as derived
}

bool gcap_runtime_is_graph_capture_enabled(const gcap_runtime_t* runtime) { return runtime->options.enable_cuda_graph; }

gcap_scratch_t* gcap_runtime_scratch(gcap_runtime_t* runtime) { return runtime->scratch; }

gcap_status_t gcap_runtime_get_resources(gcap_runtime_t* runtime, gcap_run_resources_t* out_resources) {
  GCAP_RETURN_IF_NULL(out_resources);
  *out_resources = (gcap_run_resources_t){0};
  GCAP_RETURN_IF_NULL(runtime);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  out_resources->stream = gcap_thread_context_stream(context);
  out_resources->scratch = runtime->scratch;
  out_resources->allocator = runtime->allocator;
  return NULL;
}

// --- Runs -----------------------------------------------------------------------------------------------------------

// Opens the run of scratch that ends with the run. One that was left open, as the manager's was, ends first.
static gcap_status_t begin_scratch_run(gcap_runtime_t* runtime, gcap_stream_t* stream) {
  gcap_status_t status = gcap_scratch_begin_run(runtime->scratch, stream);
  if (gcap_status_code(status) != GCAP_ALREADY_EXISTS) return status;
  gcap_status_ignore(status);  // the manager says that a run was left open
  GCAP_RETURN_IF_ERROR(gcap_scratch_end_run(runtime->scratch, stream));
  return gcap_scratch_begin_run(runtime->scratch, stream);
}

// How a run is begun.
typedef struct beginning {
  int graph_id;
  const gcap_graph_buffers_t* buffers;  // NULL: none
  gcap_graph_run_kind_t* out_kind;
  void** out_addresses;  // with buffers
} beginning_t;

// Opens the manager's run, and where it is a capture or a rehearsal the reservation of its graph.
static gcap_status_t begin_graph_run(gcap_runtime_t* runtime, gcap_graph_manager_t* graphs, int id,
                                     gcap_stream_t* stream, const beginning_t* how) {
  const cudaStream_t handle = gcap_stream_handle(stream);
  if (how->buffers != NULL) {
    GCAP_RETURN_IF_ERROR(
        gcap_graph_manager_begin_run_on(graphs, id, handle, how->buffers, how->out_kind, how->out_addresses));
  } else {
    GCAP_RETURN_IF_ERROR(gcap_graph_manager_begin_run(graphs, id, handle, how->out_kind));
  }
  if (*how->out_kind == GCAP_GRAPH_RUN_EAGER) return NULL;
  // A failure here lost nothing yet: it latches, the run's end reports it, and the run is done again eagerly.
  gcap_capture_t* capture = gcap_capture_current();
  gcap_status_t status = gcap_graph_memory_reserve(&runtime->graph_memory, stream, id, capture);
  gcap_capture_fail_once(capture, status);
  gcap_status_free(status);
  return NULL;
}

static gcap_status_t begin_run(gcap_runtime_t* runtime, const beginning_t* how) {
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  gcap_stream_t* stream = gcap_thread_context_stream(context);
  gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
  int id = runtime->options.enable_cuda_graph ? how->graph_id : GCAP_GRAPH_ID_NONE;
  gcap_graph_info_t info;
  gcap_graph_manager_get_info(graphs, id, &info);
  if (info.captures_next) {
    gcap_graph_memory_prepare(&runtime->graph_memory, stream);
    gcap_forks_prepare(runtime);
  }
  GCAP_RETURN_IF_ERROR(gcap_forks_end_left_run(runtime, stream));
  GCAP_RETURN_IF_ERROR(begin_scratch_run(runtime, stream));
  gcap_status_t status = begin_graph_run(runtime, graphs, id, stream, how);
  return status == NULL ? NULL : gcap_status_join(status, gcap_scratch_end_run(runtime->scratch, stream));
}

gcap_status_t gcap_runtime_begin_run(gcap_runtime_t* runtime, int graph_id) {
  GCAP_RETURN_IF_NULL(runtime);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  const beginning_t how = {.graph_id = graph_id, .out_kind = &kind};
  return begin_run(runtime, &how);
}

gcap_status_t gcap_runtime_begin_run_on(gcap_runtime_t* runtime, int graph_id, const gcap_graph_buffers_t* buffers,
                                        gcap_graph_run_kind_t* out_kind, void** out_addresses) {
  GCAP_RETURN_IF_NULL(out_kind);
  *out_kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_RETURN_IF_NULL(runtime);
  GCAP_RETURN_IF_NULL(buffers);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  const beginning_t how = {graph_id, buffers, out_kind, out_addresses};
  return begin_run(runtime, &how);
}

// Frees what the run left, of its own stream and of those that it forked.
static gcap_status_t end_scratch_runs(gcap_runtime_t* runtime, gcap_stream_t* stream) {
  return gcap_status_join(gcap_scratch_end_run(runtime->scratch, stream), gcap_forks_end_scratch_runs(runtime));
}

gcap_status_t gcap_runtime_end_run(gcap_runtime_t* runtime, gcap_status_t run_status, bool synchronize) {
  GCAP_RETURN_JOINED_IF_NULL(run_status, runtime);
  if (gcap_is_forked()) return gcap_status_join(run_status, gcap_refuse_forked(__func__));
  gcap_thread_context_t* context = NULL;
  gcap_status_t status = gcap_thread_contexts_get(runtime->contexts, &context);
  if (status != NULL) return gcap_status_join(run_status, status);
  gcap_stream_t* stream = gcap_thread_context_stream(context);
  gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
  const bool has_run = gcap_graph_manager_has_own_run(graphs);
  // What the run left is freed into its graph's reservation. A run that failed makes no graph, and its capture may be
  // broken, in which memory cannot be looked at: there the capture ends first.
  if (has_run) run_status = gcap_forks_close(runtime, stream, run_status);
  const bool frees_first = has_run && run_status == NULL;
  if (frees_first) run_status = end_scratch_runs(runtime, stream);
  status = gcap_graph_manager_end_run(graphs, run_status, /*synchronize=*/false);
  if (has_run && !frees_first) status = gcap_status_join(status, end_scratch_runs(runtime, stream));
  if (gcap_status_code(status) == GCAP_CAPTURE_INVALIDATED) return status;  // nothing was issued
  return gcap_status_join(status, gcap_stream_end_run(stream, synchronize));
}

bool gcap_runtime_is_captured(gcap_runtime_t* runtime, int graph_id) {
  gcap_thread_context_t* context = NULL;
  gcap_status_t status = gcap_thread_contexts_get(runtime->contexts, &context);
  gcap_status_ignore(status);  // a thread without a context has no graph
  return context != NULL && gcap_graph_manager_is_captured(gcap_thread_context_graphs(context), graph_id);
}

gcap_status_t gcap_runtime_replay(gcap_runtime_t* runtime, int graph_id, const gcap_graph_replay_options_t* options,
                                  bool* out_replayed) {
  if (out_replayed != NULL) *out_replayed = false;
  GCAP_RETURN_IF_NULL(runtime);
  gcap_graph_replay_options_t launch;
  bool synchronize = false;
  if (options != NULL && (options->synchronize || options->struct_size != sizeof(*options))) {
    GCAP_RETURN_IF_ERROR(gcap_graph_replay_options_read(options, &launch));
    options = &launch;
    // The thread's own wrapper waits, which also runs what was deferred on it. A user stream may have other wrappers.
    synchronize = launch.synchronize && !launch.on_stream;
    if (synchronize) launch.synchronize = false;
  }
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  bool replayed = false;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_replay(gcap_thread_context_graphs(context), graph_id, options,
                                                 out_replayed != NULL ? &replayed : NULL));
  if (out_replayed != NULL) *out_replayed = replayed;
  if (out_replayed != NULL && !replayed) return NULL;
  return gcap_stream_end_run(gcap_thread_context_stream(context), synchronize);
}

gcap_status_t gcap_runtime_sign(gcap_runtime_t* runtime, const gcap_graph_binding_t* bindings, size_t num_bindings) {
  GCAP_RETURN_IF_NULL(runtime);
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  return gcap_graph_manager_sign(gcap_thread_context_graphs(context), bindings, num_bindings);
}

gcap_status_t gcap_runtime_explain(gcap_runtime_t* runtime, int graph_id, gcap_graph_question_t question) {
  GCAP_RETURN_IF_NULL(runtime);
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  return gcap_graph_manager_explain(gcap_thread_context_graphs(context), graph_id, question);
}

gcap_status_t gcap_runtime_release(gcap_runtime_t* runtime, int graph_id) {
  GCAP_RETURN_IF_NULL(runtime);
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  return gcap_graph_manager_release(gcap_thread_context_graphs(context), graph_id);
}

gcap_status_t gcap_runtime_synchronize(gcap_runtime_t* runtime) {
  GCAP_RETURN_IF_NULL(runtime);
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  return gcap_stream_synchronize(gcap_thread_context_stream(context));
}

void gcap_runtime_read_graph_info(gcap_runtime_t* runtime, int graph_id, gcap_graph_info_t* out_info) {
  gcap_thread_context_t* context = NULL;
  gcap_status_t status = gcap_thread_contexts_get(runtime->contexts, &context);
  gcap_status_ignore(status);  // a thread without a context has no graph: zeros
  gcap_graph_manager_t* graphs = context != NULL ? gcap_thread_context_graphs(context) : NULL;
  gcap_graph_manager_read_info(graphs, graph_id, out_info);
}
