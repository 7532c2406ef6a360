// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The EP runtime: allocator, scratch and thread contexts under one roof. What a captured run keeps of the scratch is in
// graph_memory.c.
//
// Order of ending: contexts (graphs, then streams), scratch, allocator.
//
// Locking: none of its own, but for the list of what is kept for ever. Everything mutable belongs to the calling
// thread's context or to a module that locks.

#include <pthread.h>
#include <stdlib.h>

#include "gcap/capture.h"
#include "gcap/ep_ops.h"
#include "gcap/external_allocator.h"
#include "gcap/log.h"
#include "gcap/thread_context.h"
#include "lib/ep/graph_memory.h"
#include "lib/ep/trace_file.h"
#include "lib/internal/capture_check.h"

struct gcap_ep_runtime {
  gcap_options_t options;
  gcap_allocator_t* allocator;
  gcap_trace_file_t* trace_file;  // NULL: none
  gcap_scratch_t* scratch;
  gcap_graph_memory_t graph_memory;
  gcap_thread_contexts_t* contexts;
  gcap_ep_runtime_t* next_kept;
};

static gcap_status_t forget_stream(void* user, gcap_stream_t* stream) {
  gcap_ep_runtime_t* runtime = user;
  return gcap_scratch_forget_stream(runtime->scratch, stream);
}

static gcap_status_t create_pool(const gcap_options_t* options, gcap_allocator_t** out_allocator) {
  gcap_pool_allocator_options_t pool;
  gcap_pool_allocator_options_init(&pool);
  pool.device_id = options->device_id;
  pool.release_threshold_bytes = options->arena_mempool_release_threshold_bytes;
  pool.bytes_kept_on_trim = options->arena_mempool_bytes_kept_on_trim;
  return gcap_pool_allocator_create(&pool, out_allocator);
}

static gcap_status_t create_allocator(const gcap_options_t* options, gcap_allocator_t** out_allocator) {
  if (options->arena_use_cuda_mempool) return create_pool(options, out_allocator);
  if (options->external_alloc == NULL) return gcap_device_allocator_create(options->device_id, out_allocator);
  const gcap_external_allocator_options_t external = {
      .device_id = options->device_id,
      .alloc = options->external_alloc,
      .free = options->external_free,
      .empty_cache = options->external_empty_cache,
  };
  return gcap_external_allocator_create(&external, out_allocator);
}

static void set_graph_options(const gcap_options_t* options, gcap_graph_manager_options_t* graph) {
  graph->min_num_runs_before_capture = options->min_num_runs_before_capture;
  graph->policy = options->graph_when_stable ? GCAP_GRAPH_POLICY_STABLE : GCAP_GRAPH_POLICY_MIN_RUNS;
  graph->max_runs_before_capture = options->graph_max_runs_before_capture;
  graph->max_graphs = options->graph_max_graphs;
  graph->max_bytes = options->graph_max_bytes;
  graph->capture.ledger_calls = options->graph_ledger_calls;
}

static gcap_status_t create_parts(gcap_ep_runtime_t* runtime) {
  const gcap_options_t* options = &runtime->options;
  GCAP_RETURN_IF_ERROR(create_allocator(options, &runtime->allocator));
  gcap_scratch_options_t scratch;
  gcap_scratch_options_init(&scratch);
  scratch.initial_chunk_bytes = options->arena_initial_chunk_bytes;
  scratch.initial_growth_chunk_bytes = options->arena_initial_growth_chunk_bytes;
  scratch.max_extend_bytes = options->arena_max_extend_bytes;
  scratch.max_dead_bytes_per_chunk = options->arena_max_dead_bytes_per_chunk;
  scratch.memory_limit_bytes = options->arena_memory_limit_bytes;
  scratch.extend_as_requested = options->arena_extend_as_requested;
  scratch.red_zones = options->arena_red_zones;
  scratch.poison_on_free = options->arena_poison_on_free;
  scratch.recorded_operations = options->arena_recorded_operations;
  if (options->arena_trace_file[0] != '\0') {
    GCAP_RETURN_IF_ERROR(gcap_trace_file_create(options->arena_trace_file, &runtime->trace_file));
    scratch.on_event = gcap_trace_file_on_event;
    scratch.user = runtime->trace_file;
  }
  GCAP_RETURN_IF_ERROR(gcap_scratch_create(runtime->allocator, &scratch, &runtime->scratch));
  gcap_graph_memory_init(&runtime->graph_memory, runtime->scratch, options->arena_share_graph_memory);
  gcap_thread_contexts_options_t contexts;
  gcap_thread_contexts_options_init(&contexts);
  contexts.device_id = options->device_id;
  contexts.shared = options->has_user_stream;
  contexts.has_user_stream = options->has_user_stream;
  contexts.user_stream = (cudaStream_t)options->user_stream;
  set_graph_options(options, &contexts.graph);
  contexts.on_end = forget_stream;
  contexts.user = runtime;
  return gcap_thread_contexts_create(&contexts, &runtime->contexts);
}

gcap_status_t gcap_ep_runtime_create(const gcap_options_t* options, gcap_ep_runtime_t** out_runtime) {
  *out_runtime = NULL;
  GCAP_RETURN_IF_ERROR(gcap_options_check(options));
  gcap_ep_runtime_t* runtime = calloc(1, sizeof(*runtime));
  if (runtime == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for an EP runtime");
  runtime->options = *options;
  gcap_status_t status = create_parts(runtime);
  if (status != NULL) return gcap_status_join(status, gcap_ep_runtime_destroy(runtime));
  *out_runtime = runtime;
  return NULL;
}

// Keeps for ever the memory that somebody may still use. It stays reachable, so that a leak checker can tell it from an
// accident.
static void quarantine(gcap_ep_runtime_t* runtime) {
  if (runtime->trace_file != NULL) gcap_trace_file_flush(runtime->trace_file);
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static gcap_ep_runtime_t* kept;
  pthread_mutex_lock(&mutex);
  runtime->next_kept = kept;
  kept = runtime;
  pthread_mutex_unlock(&mutex);
}

gcap_status_t gcap_ep_runtime_destroy(gcap_ep_runtime_t* runtime) {
  if (runtime == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_ep_runtime_destroy"));
  gcap_status_t status = gcap_thread_contexts_destroy(runtime->contexts);
  if (status == NULL) status = gcap_scratch_destroy(runtime->scratch);
  if (status != NULL) {
    quarantine(runtime);
    return gcap_status_annotate(status, gcap_status_code(status), "the EP's memory may still be in use and is kept");
  }
  status = gcap_trace_file_destroy(runtime->trace_file);
  if (status != NULL) gcap_log(GCAP_LOG_ERROR, "%s", gcap_status_message(status));
  gcap_status_ignore(status);  // the EP ended well all the same
  gcap_graph_memory_deinit(&runtime->graph_memory);
  gcap_allocator_destroy(runtime->allocator);
  free(runtime);
  return NULL;
}

bool gcap_ep_runtime_supports_concurrent_runs(const gcap_ep_runtime_t* runtime) {
  return !runtime->options.has_user_stream;
}

bool gcap_ep_runtime_is_graph_capture_enabled(const gcap_ep_runtime_t* runtime) {
  return runtime->options.enable_cuda_graph;
}

gcap_scratch_t* gcap_ep_runtime_scratch(gcap_ep_runtime_t* runtime) { return runtime->scratch; }

gcap_status_t gcap_ep_runtime_get_run_resources(gcap_ep_runtime_t* runtime, gcap_run_resources_t* out_resources) {
  *out_resources = (gcap_run_resources_t){0};
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  out_resources->stream = gcap_thread_context_stream(context);
  out_resources->scratch = runtime->scratch;
  out_resources->allocator = runtime->allocator;
  return NULL;
}

// --- Runs -----------------------------------------------------------------------------------------------------------

gcap_status_t gcap_ep_runtime_run_start(gcap_ep_runtime_t* runtime, int graph_id) {
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  gcap_stream_t* stream = gcap_thread_context_stream(context);
  gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
  int id = runtime->options.enable_cuda_graph ? graph_id : GCAP_GRAPH_ID_NONE;
  if (gcap_graph_manager_captures_next(graphs, id)) gcap_graph_memory_prepare(&runtime->graph_memory, stream);
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_begin_run(graphs, id, gcap_stream_handle(stream), &kind));
  if (kind == GCAP_GRAPH_RUN_EAGER) return NULL;
  // A failure here lost nothing yet: it latches, the run's end reports it, and the run is done again eagerly.
  gcap_capture_t* capture = gcap_capture_current();
  gcap_status_t status = gcap_graph_memory_reserve(&runtime->graph_memory, stream, id, capture);
  gcap_capture_fail(capture, status);
  gcap_status_free(status);
  return NULL;
}

gcap_status_t gcap_ep_runtime_run_end(gcap_ep_runtime_t* runtime, gcap_status_t run_status, bool synchronize) {
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  gcap_stream_t* stream = gcap_thread_context_stream(context);
  gcap_status_t status =
      gcap_graph_manager_end_run(gcap_thread_context_graphs(context), run_status, /*synchronize=*/false);
  if (status != NULL) return status;
  return gcap_stream_end_run(stream, synchronize);
}

bool gcap_ep_runtime_is_graph_captured(gcap_ep_runtime_t* runtime, int graph_id) {
  gcap_thread_context_t* context = NULL;
  gcap_status_t status = gcap_thread_contexts_get(runtime->contexts, &context);
  gcap_status_ignore(status);  // a thread without a context has no graph
  return context != NULL && gcap_graph_manager_is_captured(gcap_thread_context_graphs(context), graph_id);
}

gcap_status_t gcap_ep_runtime_replay_graph(gcap_ep_runtime_t* runtime, int graph_id, bool synchronize,
                                           bool* out_replayed) {
  *out_replayed = false;
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_try_replay(gcap_thread_context_graphs(context), graph_id,
                                                     /*synchronize=*/false, out_replayed));
  // The stream waits for itself, so that its timeline and its deferred releases learn of it.
  return *out_replayed ? gcap_stream_end_run(gcap_thread_context_stream(context), synchronize) : NULL;
}

gcap_status_t gcap_ep_runtime_sign_graph(gcap_ep_runtime_t* runtime, const gcap_graph_binding_t* bindings,
                                         size_t num_bindings) {
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  return gcap_graph_manager_sign(gcap_thread_context_graphs(context), bindings, num_bindings);
}

gcap_status_t gcap_ep_runtime_replay_graph_signed(gcap_ep_runtime_t* runtime, int graph_id,
                                                  const gcap_graph_binding_t* bindings, size_t num_bindings,
                                                  bool synchronize, bool* out_replayed) {
  *out_replayed = false;
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
  // The thread alone changes its graphs, so the answer holds; and a status for "there is none" is not made in vain.
  if (!gcap_graph_manager_is_captured(graphs, graph_id)) return NULL;
  GCAP_RETURN_IF_ERROR(
      gcap_graph_manager_replay_signed(graphs, graph_id, bindings, num_bindings, /*synchronize=*/false));
  *out_replayed = true;
  return gcap_stream_end_run(gcap_thread_context_stream(context), synchronize);
}

gcap_status_t gcap_ep_runtime_last_capture_failure(gcap_ep_runtime_t* runtime, int graph_id) {
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  return gcap_graph_manager_last_failure(gcap_thread_context_graphs(context), graph_id);
}

gcap_status_t gcap_ep_runtime_release_captured_graph(gcap_ep_runtime_t* runtime, int graph_id) {
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  return gcap_graph_manager_release(gcap_thread_context_graphs(context), graph_id);
}

gcap_status_t gcap_ep_runtime_synchronize(gcap_ep_runtime_t* runtime) {
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  return gcap_stream_synchronize(gcap_thread_context_stream(context));
}

void gcap_ep_runtime_get_graph_info(gcap_ep_runtime_t* runtime, int graph_id, gcap_graph_info_t* out_info) {
  *out_info = (gcap_graph_info_t){0};
  gcap_thread_context_t* context = NULL;
  gcap_status_t status = gcap_thread_contexts_get(runtime->contexts, &context);
  if (status == NULL) gcap_graph_manager_get_info(gcap_thread_context_graphs(context), graph_id, out_info);
  gcap_status_ignore(status);  // a thread without a context has no graph: zeros
}
