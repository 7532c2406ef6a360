// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap's own runtime: allocator, scratch and thread contexts together, behind the table that any runtime has.
// graph_memory.c has what a captured run keeps of the scratch.
//
// Order of ending: contexts (graphs, then streams), forked streams' work, forked streams, scratch, allocators. Before
// anything ends, all are asked whether they can; what cannot end all the same is kept, and so is all that it uses.
//
// Locking: if threads share one context, `turns` is held over a whole gcap_runtime_run, also while the caller's work
// runs, and over a wait for the stream, which would refuse while another thread captures it. All other mutable state
// belongs to the calling thread's context or to a module that locks.

#include <pthread.h>
#include <stdlib.h>

#include "gcap/capture.h"
#include "gcap/external_allocator.h"
#include "gcap/log.h"
#include "lib/allocator/trace_file.h"
#include "lib/capture/inner.h"
#include "lib/graph/inner.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/kept.h"
#include "lib/internal/unwind.h"
#include "lib/options/inner.h"
#include "lib/runtime/forks.h"
#include "lib/runtime/runtime_internal.h"
#include "lib/runtime/thread_context.h"
#include "lib/scratch/inner.h"
#include "lib/stream/inner.h"

// Blocks may outlive the thread that got them, such as a tensor that it handed to another thread, which may free it at
// this moment. Of the stream, which has no work left, the scratch then hears as it is destroyed: the blocks become such
// as have no stream. So does what a reservation keeps, but the runtime's own graphs have ended: the reservation is the
// application's, which may believe that it still knows who uses that memory. A stream that a call gets memory for is in
// use, and is kept.
static gcap_status_t forget_stream(void* user, gcap_stream_t* stream) {
  gcap_own_runtime_t* runtime = user;
  gcap_scratch_hold_t hold;
  gcap_status_t status = gcap_scratch_forget_unless_held(runtime->scratch, stream, &hold);
  if (hold == GCAP_SCRATCH_HOLD_NONE || hold == GCAP_SCRATCH_HOLD_CALL) return status;
  if (hold == GCAP_SCRATCH_HOLD_RESERVATION) {
    gcap_log(GCAP_LOG_WARNING, "a stream ends before its reservations, which stay: %s", gcap_status_message(status));
  }
  gcap_status_ignore(status);
  return NULL;
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

static gcap_status_t create_scratch(gcap_own_runtime_t* runtime) {
  gcap_scratch_options_t arena = runtime->options.arena;
  if (runtime->options.trace_file[0] != '\0') {
    GCAP_RETURN_IF_ERROR(gcap_trace_file_create(runtime->options.trace_file, &runtime->trace_file));
    arena.on_event = gcap_trace_file_on_event;
    arena.user = runtime->trace_file;
  }
  return gcap_scratch_create(runtime->allocator, &arena, &runtime->scratch);
}

static gcap_status_t create_contexts(gcap_own_runtime_t* runtime) {
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
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_create(&contexts, &runtime->contexts));
  runtime->contexts_serial = gcap_thread_contexts_serial(runtime->contexts);
  return NULL;
}

static gcap_status_t create_parts(gcap_own_runtime_t* runtime) {
  GCAP_RETURN_IF_ERROR(create_allocator(&runtime->options, &runtime->allocator));
  GCAP_RETURN_IF_ERROR(create_scratch(runtime));
  gcap_graph_memory_init(&runtime->graph_memory, runtime->scratch, runtime->options.share_graph_memory);
  GCAP_RETURN_IF_ERROR(gcap_stream_pool_create(runtime->options.device_id, &runtime->streams));
  GCAP_RETURN_IF_ERROR(gcap_forks_create(runtime));
  return create_contexts(runtime);
}

// Ends what there is of a runtime that can end.
static gcap_status_t end(gcap_own_runtime_t* runtime) {
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
  pthread_mutex_destroy(&runtime->base.turns);
  gcap_allocator_destroy(runtime->allocator);
  gcap_allocator_destroy(atomic_load_explicit(&runtime->pinned, memory_order_relaxed));
  free(runtime);
  return NULL;
}

static gcap_status_t destroy(void* self) {
  gcap_own_runtime_t* runtime = self;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_check_end(runtime->contexts));
  GCAP_RETURN_IF_ERROR(gcap_scratch_check_end(runtime->scratch));
  return end(runtime);
}

// --- What it is -----------------------------------------------------------------------------------------------------

static bool is_concurrent_run_supported(const void* self) {
  const gcap_own_runtime_t* runtime = self;
  return runtime->options.graph_scope == GCAP_GRAPH_SCOPE_THREAD;  // as derived
}

static bool is_graph_capture_enabled(const void* self) {
  return ((const gcap_own_runtime_t*)self)->options.enable_cuda_graph;
}

static bool copies_in_default_stream(const void* self) {
  return ((const gcap_own_runtime_t*)self)->options.do_copy_in_default_stream;
}

static gcap_status_t get_resources(void* self, gcap_run_resources_t* out_resources) {
  gcap_own_runtime_t* runtime = self;
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  out_resources->stream = gcap_thread_context_stream(context);
  out_resources->scratch = runtime->scratch;
  out_resources->allocator = runtime->allocator;
  return NULL;
}

// In its turn: another thread may be capturing the stream that all share.
static gcap_status_t synchronize(void* self) {
  gcap_own_runtime_t* runtime = self;
  GCAP_AT_SCOPE_END(gcap_runtime_end_turn) gcap_runtime_t* turn = gcap_runtime_begin_turn(&runtime->base);
  (void)turn;
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  return gcap_stream_synchronize(gcap_thread_context_stream(context));
}

// --- Runs -----------------------------------------------------------------------------------------------------------

// Opens the run of scratch that ends with the run. One that was left open, as the manager's was, ends first.
static gcap_status_t begin_scratch_run(gcap_own_runtime_t* runtime, gcap_stream_t* stream) {
  gcap_status_t status = gcap_scratch_begin_run(runtime->scratch, stream);
  if (gcap_status_code(status) != GCAP_ALREADY_EXISTS) return status;
  gcap_status_ignore(status);  // the manager says that a run was left open
  GCAP_RETURN_IF_ERROR(gcap_scratch_end_run(runtime->scratch, stream));
  return gcap_scratch_begin_run(runtime->scratch, stream);
}

// Opens the manager's run, and where it is a capture or a rehearsal the reservation of its graph.
static gcap_status_t begin_graph_run(gcap_own_runtime_t* runtime, gcap_thread_context_t* context, const gcap_run_t* run,
                                     gcap_graph_run_kind_t* out_kind, void** out_addresses) {
  gcap_stream_t* stream = gcap_thread_context_stream(context);
  gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_begin_run(graphs, run, out_kind, out_addresses));
  if (*out_kind == GCAP_GRAPH_RUN_EAGER) return NULL;
  // A failure here lost nothing yet: it latches, the run's end reports it, and the run is done again eagerly.
  gcap_capture_t* capture = gcap_capture_current();
  int id = GCAP_GRAPH_ID_NONE;
  gcap_graph_manager_has_own_run(graphs, &id);
  gcap_status_t status = gcap_graph_memory_reserve(&runtime->graph_memory, stream, id, capture);
  gcap_capture_fail_once(capture, status);
  gcap_status_free(status);
  return NULL;
}

// A run of scratch whose run is being begun; no scratch: that is done.
typedef struct unbegun {
  gcap_scratch_t* scratch;
  gcap_stream_t* stream;
} unbegun_t;

static void end_scratch_on_unwind(unbegun_t* unbegun) {
  if (unbegun->scratch == NULL) return;
  gcap_status_ignore(gcap_scratch_end_run(unbegun->scratch, unbegun->stream));  // the exception tells
}

static gcap_status_t begin_run(void* self, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind,
                               void** out_addresses) {
  gcap_own_runtime_t* runtime = self;
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  gcap_stream_t* stream = gcap_thread_context_stream(context);
  gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_work(graphs));  // before the scratch of the run that is open ends
  gcap_run_t own = *run;
  own.stream = gcap_stream_handle(stream);
  if (!runtime->options.enable_cuda_graph) gcap_run_as_step(&own, GCAP_GRAPH_ID_NONE);
  const int id = gcap_graph_manager_id_of(graphs, &own);
  if (own.capture_only || gcap_graph_manager_captures_next(graphs, &own)) {
    gcap_graph_memory_prepare(&runtime->graph_memory, stream, id);
    gcap_forks_prepare(runtime, gcap_graph_memory_work(id));
  }
  GCAP_RETURN_IF_ERROR(gcap_forks_end_left_run(runtime, stream));
  GCAP_RETURN_IF_ERROR(begin_scratch_run(runtime, stream));
  // The function of a guard may not return.
  GCAP_AT_SCOPE_END(end_scratch_on_unwind) unbegun_t unbegun = {runtime->scratch, stream};
  gcap_status_t status = begin_graph_run(runtime, context, &own, out_kind, out_addresses);
  unbegun.scratch = NULL;
  return status == NULL ? NULL : gcap_status_join(status, gcap_scratch_end_run(runtime->scratch, stream));
}

// Frees what the run left, of its own stream and of those that it forked.
static gcap_status_t end_scratch_runs(gcap_own_runtime_t* runtime, gcap_stream_t* stream, int id, bool has_failed) {
  const uint64_t work = runtime->options.enable_cuda_graph ? gcap_graph_memory_work(id) : 0;
  return gcap_status_join(gcap_scratch_end_run_of(runtime->scratch, stream, work, has_failed),
                          gcap_forks_end_scratch_runs(runtime, work, has_failed));
}

// The manager is not told the ids of a runtime that does not capture.
static void say_why_off(const gcap_own_runtime_t* runtime, gcap_run_result_t* result) {
  if (runtime->options.enable_cuda_graph || result == NULL) return;
  if (result->why_eager == GCAP_EAGER_NO_ID) result->why_eager = GCAP_EAGER_OFF;
}

static gcap_status_t end_run(void* self, const gcap_run_t* run, gcap_status_t run_status) {
  gcap_own_runtime_t* runtime = self;
  gcap_thread_context_t* context = NULL;
  gcap_status_t status = gcap_thread_contexts_get(runtime->contexts, &context);
  if (status != NULL) return gcap_status_join(run_status, status);
  gcap_stream_t* stream = gcap_thread_context_stream(context);
  gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
  int id = GCAP_GRAPH_ID_NONE;
  const bool has_run = gcap_graph_manager_has_own_run(graphs, &id);
  if (id >= GCAP_GRAPH_ID_NONE) id = run->id;  // as the caller says; the id of a key the manager alone knows
  // What the run left is freed into its graph's reservation. A run that failed makes no graph, and its capture may be
  // broken, in which memory cannot be looked at: there the capture ends first.
  if (has_run) run_status = gcap_forks_close(runtime, stream, run_status);
  const bool frees_first = has_run && run_status == NULL;
  if (frees_first) run_status = end_scratch_runs(runtime, stream, id, /*has_failed=*/false);
  gcap_run_t own = *run;
  own.synchronize = false;
  status = gcap_graph_manager_end_run(graphs, &own, run_status);
  say_why_off(runtime, run->result);
  if (has_run && !frees_first)
    status = gcap_status_join(status, end_scratch_runs(runtime, stream, id, /*has_failed=*/true));
  if (gcap_status_code(status) == GCAP_CAPTURE_INVALIDATED) return status;  // nothing was issued
  return gcap_status_join(status, gcap_stream_end_run(stream, run->synchronize));
}

// --- Graphs ---------------------------------------------------------------------------------------------------------

static bool is_captured(void* self, int id) {
  gcap_own_runtime_t* runtime = self;
  gcap_thread_context_t* context = NULL;
  gcap_status_t status = gcap_thread_contexts_get(runtime->contexts, &context);
  gcap_status_ignore(status);  // a thread without a context has no graph
  return context != NULL && gcap_graph_manager_is_captured(gcap_thread_context_graphs(context), id);
}

// The thread's own wrapper waits, which also runs what was deferred on it. A user stream may have other wrappers.
static __attribute__((noinline)) gcap_status_t replay_and_wait(gcap_thread_context_t* context, const gcap_run_t* run,
                                                               bool* out_replayed) {
  gcap_run_t launch = *run;
  launch.synchronize = false;
  gcap_status_t status = gcap_graph_manager_replay(gcap_thread_context_graphs(context), &launch, out_replayed);
  if (status != NULL || (out_replayed != NULL && !*out_replayed)) return status;
  return gcap_stream_end_run(gcap_thread_context_stream(context), /*synchronize=*/true);
}

// `out_replayed` NULL: the manager says why there is nothing to replay.
static gcap_status_t replay(void* self, const gcap_run_t* run, bool* out_replayed) {
  gcap_own_runtime_t* runtime = self;
  gcap_thread_context_t* context = gcap_affine_recall(runtime->contexts_serial);
  if (context == NULL) GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  if (run->synchronize && run->stream == GCAP_RUN_OWN_STREAM) return replay_and_wait(context, run, out_replayed);
  gcap_status_t status = gcap_graph_manager_replay(gcap_thread_context_graphs(context), run, out_replayed);
  if (status != NULL || (out_replayed != NULL && !*out_replayed)) return status;
  return gcap_stream_end_run(gcap_thread_context_stream(context), /*synchronize=*/false);
}

static gcap_status_t release(void* self, int id) {
  gcap_own_runtime_t* runtime = self;
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  return gcap_graph_manager_release(gcap_thread_context_graphs(context), id);
}

static gcap_status_t explain(void* self, int id, gcap_graph_question_t question) {
  gcap_own_runtime_t* runtime = self;
  gcap_thread_context_t* context = NULL;
  if (question == GCAP_GRAPH_WHY_EAGER && !runtime->options.enable_cuda_graph) {
    return GCAP_STATUS(GCAP_UNAVAILABLE, "graph id %d: the runtime does not capture: set enable_cuda_graph", id);
  }
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  return gcap_graph_manager_explain(gcap_thread_context_graphs(context), id, question);
}

// --- The table ------------------------------------------------------------------------------------------------------

static const gcap_runtime_ops_t own_ops = {
    .struct_size = sizeof(gcap_runtime_ops_t),
    .get_resources = get_resources,
    .synchronize = synchronize,
    .begin_run = begin_run,
    .end_run = end_run,
    .is_captured = is_captured,
    .replay = replay,
    .is_graph_capture_enabled = is_graph_capture_enabled,
    .release = release,
    .explain = explain,
    .moves_buffers = true,
    .checks_bindings = true,
    .is_concurrent_run_supported = is_concurrent_run_supported,
    .can_copy = gcap_own_runtime_can_copy,
    .copy_tensors = gcap_own_runtime_copy_tensors,
    .copies_in_default_stream = copies_in_default_stream,
    .create_stream = gcap_own_runtime_create_stream,
    .get_allocator = gcap_own_runtime_get_allocator,
    .fork = gcap_own_runtime_fork,
    .join = gcap_own_runtime_join,
    .destroy = destroy,
    .takes_keys = true,
};

gcap_status_t gcap_runtime_create(const gcap_options_t* options, gcap_runtime_t** out_runtime) {
  GCAP_RETURN_IF_NULL(out_runtime);
  *out_runtime = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_options_read(options, &known));
  GCAP_RETURN_IF_ERROR(gcap_options_check(&known));
  gcap_options_derive(&known);
  gcap_own_runtime_t* runtime = calloc(1, sizeof(*runtime));
  if (runtime == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a runtime");
  runtime->options = known;
  gcap_runtime_init_turns(&runtime->base);
  gcap_status_t status = create_parts(runtime);
  if (status != NULL) return gcap_status_join(status, end(runtime));
  gcap_runtime_ops_t ops = own_ops;
  ops.self = runtime;
  runtime->base.own = runtime;
  gcap_runtime_init(&runtime->base, &ops);
  *out_runtime = &runtime->base;
  return NULL;
}
