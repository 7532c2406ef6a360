// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runtimes as their callers see them: what all tables need checked, then one call of the table, or the default of an
// absent member. own.c has gcap's own table.
//
// Locking: none. Whether a runtime was warned of is an atomic.

#include "gcap/runtime.h"

#include <stdlib.h>

#include "gcap/log.h"
#include "lib/graph/inner.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/runtime/copy_check.h"
#include "lib/runtime/inner.h"
#include "lib/runtime/runtime_internal.h"
#include "lib/runtime/table.h"

// --- Life -----------------------------------------------------------------------------------------------------------

void gcap_runtime_init(gcap_runtime_t* runtime, const gcap_runtime_ops_t* ops) {
  runtime->ops = *ops;
  runtime->supports_concurrent_runs =
      ops->is_concurrent_run_supported != NULL && ops->is_concurrent_run_supported(ops->self);
  runtime->missing_to_capture = gcap_runtime_ops_missing_to_capture(ops);
  atomic_init(&runtime->warned, false);
}

void gcap_runtime_init_turns(gcap_runtime_t* runtime) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&runtime->turns, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

gcap_status_t gcap_runtime_create_from(const gcap_runtime_ops_t* ops, gcap_runtime_t** out_runtime) {
  GCAP_RETURN_IF_NULL(out_runtime);
  *out_runtime = NULL;
  GCAP_RETURN_IF_NULL(ops);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_runtime_ops_t known;
  GCAP_RETURN_IF_ERROR(gcap_runtime_ops_read(ops, &known));
  gcap_runtime_t* runtime = calloc(1, sizeof(*runtime));
  if (runtime == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a runtime");
  gcap_runtime_init(runtime, &known);
  gcap_runtime_init_turns(runtime);
  *out_runtime = runtime;
  return NULL;
}

gcap_status_t gcap_runtime_destroy(gcap_runtime_t* runtime) {
  if (runtime == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_runtime_destroy"));
  const gcap_runtime_ops_t* ops = &runtime->ops;
  if (runtime->own == NULL && atomic_load(&runtime->num_inside) > 0) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "gcap_runtime_destroy: a gcap_runtime_run has not returned yet");
  }
  if (runtime->own != NULL) return ops->destroy(ops->self);  // `self` has the runtime in it
  gcap_status_t status = ops->destroy != NULL ? ops->destroy(ops->self) : NULL;
  if (status != NULL && gcap_status_code(status) != GCAP_LEAKED) return status;
  pthread_mutex_destroy(&runtime->turns);
  free(runtime);
  return status;
}

// --- What a runtime is ----------------------------------------------------------------------------------------------

// Tells once that a runtime wants to capture and cannot. The warning is about the table, so the second one has no news.
static void warn_that_it_cannot_capture(const gcap_runtime_t* runtime) {
  atomic_bool* warned = (atomic_bool*)&runtime->warned;
  if (atomic_exchange_explicit(warned, true, memory_order_relaxed)) return;
  gcap_log(GCAP_LOG_WARNING, "a runtime says that it captures graphs, but its table has no %s; it runs without capture",
           runtime->missing_to_capture);
}

// Whether the runtime wants to capture and cannot: no host replays its graphs. One that does not say that it captures
// may keep graphs of its own by id.
static bool must_not_capture(const gcap_runtime_t* runtime) {
  const gcap_runtime_ops_t* ops = &runtime->ops;
  if (runtime->missing_to_capture == NULL || ops->is_graph_capture_enabled == NULL) return false;
  if (!ops->is_graph_capture_enabled(ops->self)) return false;
  warn_that_it_cannot_capture(runtime);
  return true;
}

static bool is_graph_capture_enabled(const gcap_runtime_t* runtime) {
  const gcap_runtime_ops_t* ops = &runtime->ops;
  if (ops->is_graph_capture_enabled == NULL || !ops->is_graph_capture_enabled(ops->self)) return false;
  return !must_not_capture(runtime);
}

static bool copies_in_default_stream(const gcap_runtime_t* runtime) {
  return runtime->ops.copies_in_default_stream == NULL || runtime->ops.copies_in_default_stream(runtime->ops.self);
}

void gcap_runtime_read_info(const gcap_runtime_t* runtime, gcap_runtime_info_t* out_info) {
  static const gcap_sized_type_t type = GCAP_SIZED_TYPE(gcap_runtime_info);
  const gcap_runtime_info_t info = {.struct_size = sizeof(info),
                                    .supports_concurrent_runs = runtime->supports_concurrent_runs,
                                    .is_graph_capture_enabled = is_graph_capture_enabled(runtime),
                                    .copies_in_default_stream = copies_in_default_stream(runtime)};
  gcap_sized_write(&type, &info, out_info);
}

static const gcap_sized_type_t resources_type = GCAP_SIZED_TYPE(gcap_run_resources);

// The table's answer, completed.
static gcap_status_t get_resources(gcap_runtime_t* runtime, gcap_run_resources_t* out_resources) {
  gcap_run_resources_init(out_resources);
  gcap_status_t status = runtime->ops.get_resources(runtime->ops.self, out_resources);
  if (status != NULL) gcap_run_resources_init(out_resources);
  if (out_resources->cuda_stream == NULL && out_resources->stream != NULL) {
    out_resources->cuda_stream = gcap_stream_handle(out_resources->stream);
  }
  return status;
}

gcap_status_t gcap_runtime_read_resources(gcap_runtime_t* runtime, gcap_run_resources_t* out_resources) {
  GCAP_RETURN_IF_NULL(out_resources);
  GCAP_RETURN_IF_ERROR(gcap_sized_check(&resources_type, out_resources));
  gcap_run_resources_t known;
  gcap_run_resources_init(&known);
  gcap_sized_write(&resources_type, &known, out_resources);
  GCAP_RETURN_IF_NULL(runtime);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_status_t status = get_resources(runtime, &known);
  gcap_sized_write(&resources_type, &known, out_resources);
  return status;
}

gcap_scratch_t* gcap_runtime_scratch(gcap_runtime_t* runtime) {
  if (runtime->own != NULL) return runtime->own->scratch;
  gcap_run_resources_t resources;
  gcap_status_ignore(get_resources(runtime, &resources));  // a thread without resources has no scratch
  return resources.scratch;
}

gcap_status_t gcap_runtime_graphs(gcap_runtime_t* runtime, gcap_graph_manager_t** out_graphs) {
  GCAP_RETURN_IF_NULL(out_graphs);
  *out_graphs = NULL;
  GCAP_RETURN_IF_NULL(runtime);
  if (runtime->own == NULL) {
    return GCAP_STATUS(GCAP_UNIMPLEMENTED, "%s: the runtime has graphs of its own, and no graph manager", __func__);
  }
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->own->contexts, &context));
  *out_graphs = gcap_thread_context_graphs(context);
  return NULL;
}

gcap_status_t gcap_runtime_synchronize(gcap_runtime_t* runtime) {
  GCAP_RETURN_IF_NULL(runtime);
  return runtime->ops.synchronize(runtime->ops.self);
}

// --- Runs -----------------------------------------------------------------------------------------------------------

static gcap_status_t cannot_move(void) {
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "the run has buffers that move, and the table of the runtime does not say moves_buffers");
}

static gcap_status_t cannot_check_bindings(void) {
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "the run has bindings to check, and the table of the runtime does not say checks_bindings");
}

static gcap_status_t cannot_take_keys(void) {
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "the run has a key, and the table of the runtime does not say takes_keys: give the run an id");
}

static gcap_status_t cannot_read_taps(void) {
  return GCAP_STATUS(GCAP_UNIMPLEMENTED, "the run has taps to be read, and the runtime is not gcap's own");
}

static gcap_status_t cannot_set_values(void) {
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "the run has values that change, which only a runtime of gcap's own sets");
}

// What the table would not follow. A run that needs no begin is eager, on the buffers and the values as they are.
static inline gcap_status_t check_follows(const gcap_runtime_t* runtime, const gcap_run_t* run) {
  const gcap_runtime_ops_t* ops = &runtime->ops;
  const size_t num_values = run->buffers != NULL && runtime->own == NULL ? run->buffers->num_values : 0;
  for (size_t i = 0; i < num_values; ++i) {
    if (run->buffers->values[i].in_memory || ops->begin_run != NULL) return cannot_set_values();
  }
  if (run->num_taps != 0 && runtime->own == NULL) return cannot_read_taps();
  if (run->buffers != NULL && !ops->moves_buffers && ops->begin_run != NULL) return cannot_move();
  if (run->key != NULL && !ops->takes_keys && ops->begin_run != NULL) return cannot_take_keys();
  return run->bindings != NULL && !ops->checks_bindings ? cannot_check_bindings() : NULL;
}

// What a run asks of its graph, and only gcap's own graph manager does.
static gcap_status_t check_graph_of(const gcap_runtime_t* runtime, const gcap_run_t* run) {
  if (!run->capture_only && !run->pinned) return NULL;
  const char* field = run->capture_only ? "capture_only" : "pinned";
  if (runtime->own == NULL) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d: the run is %s, and the runtime has graphs of its own",
                       run->id, field);
  }
  if (!run->capture_only || runtime->own->options.enable_cuda_graph) return gcap_run_check_capture_only(run);
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "graph id %d: the run is capture_only, and the runtime does not capture (enable_cuda_graph)",
                     run->id);
}

static gcap_status_t begin(gcap_runtime_t* runtime, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind,
                           void** out_addresses) {
  const gcap_runtime_ops_t* ops = &runtime->ops;
  if (ops->begin_run == NULL) {
    if (run->buffers != NULL) gcap_graph_buffers_list_addresses(run->buffers, out_addresses);
    return NULL;
  }
  gcap_run_t eager = *run;
  if (must_not_capture(runtime)) {
    gcap_run_as_step(&eager, GCAP_GRAPH_ID_NONE);
    run = &eager;
  }
  return ops->begin_run(ops->self, run, out_kind, out_addresses);
}

gcap_status_t gcap_runtime_begin_run(gcap_runtime_t* runtime, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind,
                                     void** out_addresses) {
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  if (out_kind != NULL) *out_kind = kind;
  GCAP_RETURN_IF_NULL(runtime);
  GCAP_RETURN_IF_NULL(run);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_run_copy_t copy;
  GCAP_RETURN_IF_ERROR(gcap_run_read(run, &copy, &run));
  if (run->buffers != NULL) GCAP_RETURN_IF_NULL(out_kind);
  if (run->buffers != NULL && run->buffers->count + run->buffers->num_values > 0) GCAP_RETURN_IF_NULL(out_addresses);
  if (run->stream != GCAP_RUN_OWN_STREAM) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "%s: run->stream is %p; a runtime has a stream for each thread, and only a replay may be "
                       "launched on another one",
                       __func__, (void*)run->stream);
  }
  GCAP_RETURN_IF_ERROR(check_follows(runtime, run));
  GCAP_RETURN_IF_ERROR(check_graph_of(runtime, run));
  return begin(runtime, run, out_kind != NULL ? out_kind : &kind, out_addresses);
}

gcap_status_t gcap_runtime_end_run(gcap_runtime_t* runtime, const gcap_run_t* run, gcap_status_t run_status) {
  GCAP_RETURN_JOINED_IF_NULL(run_status, runtime);
  if (gcap_is_forked()) return gcap_status_join(run_status, gcap_refuse_forked(__func__));
  gcap_run_t known;
  gcap_status_t bad = gcap_run_read_end(run, &known);
  const gcap_runtime_ops_t* ops = &runtime->ops;
  gcap_status_t status = run_status;
  if (ops->end_run != NULL) {
    status = ops->end_run(ops->self, &known, run_status);
  } else if (known.synchronize) {
    status = gcap_status_join(run_status, ops->synchronize(ops->self));
  }
  return gcap_status_join(status, bad);
}

// Why a table did not replay a graph, for a caller who counts on it.
static gcap_status_t not_replayed(gcap_runtime_t* runtime, const gcap_run_t* run) {
  gcap_status_t why = NULL;
  if (run->key != NULL) {
    return GCAP_STATUS(GCAP_NOT_FOUND, "graph key '%s' is not captured, or cannot be moved to the buffers of the run",
                       run->key->name != NULL ? run->key->name : "");
  }
  if (run->buffers != NULL) why = gcap_runtime_explain(runtime, run->id, GCAP_GRAPH_WHY_NOT_MOVABLE);
  if (why != NULL) return why;
  if (gcap_runtime_is_captured(runtime, run->id)) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "graph id %d %s", run->id,
                       run->buffers != NULL ? "cannot be moved to the buffers of the run" : "is not for this run");
  }
  return GCAP_STATUS(GCAP_NOT_FOUND, "graph id %d is not captured", run->id);
}

// A replay that may have more to it than one call of the table.
static __attribute__((noinline)) gcap_status_t read_and_replay(gcap_runtime_t* runtime, const gcap_run_t* run,
                                                               bool* out_replayed) {
  const gcap_runtime_ops_t* ops = &runtime->ops;
  gcap_run_copy_t copy;
  GCAP_RETURN_IF_ERROR(gcap_run_read(run, &copy, &run));
  GCAP_RETURN_IF_ERROR(gcap_run_refuse_replay(run));
  GCAP_RETURN_IF_ERROR(check_follows(runtime, run));
  if (runtime->own != NULL && out_replayed == NULL) return ops->replay(ops->self, run, NULL);
  bool replayed = false;
  if (ops->replay != NULL && (run->buffers == NULL || ops->moves_buffers)) {
    gcap_status_t status = ops->replay(ops->self, run, &replayed);
    if (out_replayed != NULL) *out_replayed = replayed;
    if (status != NULL) return status;
  }
  return replayed || out_replayed != NULL ? NULL : not_replayed(runtime, run);
}

gcap_status_t gcap_runtime_replay(gcap_runtime_t* runtime, const gcap_run_t* run, bool* out_replayed) {
  if (out_replayed != NULL) *out_replayed = false;
  GCAP_RETURN_IF_NULL(runtime);
  GCAP_RETURN_IF_NULL(run);
  // What hosts ask: there is nothing to read, the table follows all of it, and nobody wants to know why not.
  const gcap_runtime_ops_t* ops = &runtime->ops;
  const bool is_bare = gcap_run_is_bare(run) && ops->replay != NULL && out_replayed != NULL;
  return is_bare ? ops->replay(ops->self, run, out_replayed) : read_and_replay(runtime, run, out_replayed);
}

// --- Graphs of the calling thread -----------------------------------------------------------------------------------

gcap_graph_manager_t* gcap_runtime_own_graphs(gcap_runtime_t* runtime) {
  gcap_graph_manager_t* graphs = NULL;
  if (runtime->own == NULL) return NULL;
  gcap_status_t status = gcap_runtime_graphs(runtime, &graphs);
  gcap_status_ignore(status);
  return graphs;
}

int gcap_runtime_id_of(gcap_runtime_t* runtime, const gcap_run_t* run) {
  gcap_graph_manager_t* graphs = gcap_runtime_own_graphs(runtime);
  return graphs != NULL ? gcap_graph_manager_id_of(graphs, run) : run->id;
}

bool gcap_runtime_has_graph(gcap_runtime_t* runtime, const gcap_run_t* run) {
  gcap_graph_manager_t* graphs = gcap_runtime_own_graphs(runtime);
  return graphs != NULL ? gcap_graph_manager_has_graph(graphs, run) : gcap_runtime_is_captured(runtime, run->id);
}

bool gcap_runtime_is_captured(gcap_runtime_t* runtime, int graph_id) {
  return runtime->ops.is_captured != NULL && runtime->ops.is_captured(runtime->ops.self, graph_id);
}

gcap_status_t gcap_runtime_explain(gcap_runtime_t* runtime, int graph_id, gcap_graph_question_t question) {
  GCAP_RETURN_IF_NULL(runtime);
  return runtime->ops.explain != NULL ? runtime->ops.explain(runtime->ops.self, graph_id, question) : NULL;
}

gcap_status_t gcap_runtime_release(gcap_runtime_t* runtime, int graph_id) {
  GCAP_RETURN_IF_NULL(runtime);
  if (runtime->ops.release != NULL) return runtime->ops.release(runtime->ops.self, graph_id);
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: the runtime cannot release graph id %d: its table has no release",
                     __func__, graph_id);
}

// --- Copies, streams, memory ----------------------------------------------------------------------------------------

bool gcap_runtime_can_copy(const gcap_runtime_t* runtime, gcap_memory_t src, gcap_memory_t dst) {
  return runtime->ops.can_copy != NULL && runtime->ops.can_copy(runtime->ops.self, src, dst);
}

gcap_status_t gcap_runtime_copy_tensors(gcap_runtime_t* runtime, const gcap_copy_t* copies, size_t count) {
  GCAP_RETURN_IF_NULL(runtime);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  if (count == 0) return NULL;
  GCAP_RETURN_IF_NULL(copies);
  if (runtime->ops.copy_tensors != NULL) return runtime->ops.copy_tensors(runtime->ops.self, copies, count);
  return gcap_copy_refuse_memory(copies, 0, "a runtime whose table has no copy_tensors");
}

static gcap_status_t lacks(const char* operation, const char* member) {
  return GCAP_STATUS(GCAP_UNIMPLEMENTED, "%s: the table of the runtime has no %s", operation, member);
}

gcap_status_t gcap_runtime_create_stream(gcap_runtime_t* runtime, gcap_stream_t** out_stream) {
  GCAP_RETURN_IF_NULL(out_stream);
  *out_stream = NULL;
  GCAP_RETURN_IF_NULL(runtime);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  if (runtime->ops.create_stream == NULL) return lacks(__func__, "create_stream");
  return runtime->ops.create_stream(runtime->ops.self, out_stream);
}

gcap_status_t gcap_runtime_get_allocator(gcap_runtime_t* runtime, gcap_memory_kind_t kind,
                                         gcap_allocator_t** out_allocator) {
  GCAP_RETURN_IF_NULL(out_allocator);
  *out_allocator = NULL;
  GCAP_RETURN_IF_NULL(runtime);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  if (runtime->ops.get_allocator != NULL) return runtime->ops.get_allocator(runtime->ops.self, kind, out_allocator);
  if (kind != GCAP_MEMORY_DEVICE) return lacks(__func__, "get_allocator");
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(get_resources(runtime, &resources));
  *out_allocator = resources.allocator;
  return resources.allocator != NULL ? NULL : lacks(__func__, "get_allocator");
}

// --- More streams in a run ------------------------------------------------------------------------------------------

gcap_status_t gcap_runtime_fork(gcap_runtime_t* runtime, size_t count, gcap_stream_t** out_streams) {
  if (count > 0) GCAP_RETURN_IF_NULL(out_streams);
  for (size_t i = 0; i < count; ++i) out_streams[i] = NULL;
  GCAP_RETURN_IF_NULL(runtime);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  if (runtime->ops.fork == NULL) return lacks(__func__, "fork");
  return runtime->ops.fork(runtime->ops.self, count, out_streams);
}

gcap_status_t gcap_runtime_join(gcap_runtime_t* runtime) {
  GCAP_RETURN_IF_NULL(runtime);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  if (runtime->ops.join == NULL) return lacks(__func__, "join");
  return runtime->ops.join(runtime->ops.self);
}
