// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A run in one call: a replay, or the work, and once more the work after a failed capture. All by the public functions.
//
// Locking: the turns of a runtime whose threads share one stream, over the whole run.

#include <stdlib.h>

#include "gcap/log.h"
#include "lib/graph/open_run.h"
#include "lib/graph/options.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/unwind.h"
#include "lib/runtime/runtime_internal.h"

// A run whose work is being called.
typedef struct unfinished_run {
  gcap_runtime_t* runtime;  // NULL: the work returned
  int previous_device;
} unfinished_run_t;

static void end_run_on_unwind(unfinished_run_t* run) {
  if (run->runtime == NULL) return;
  gcap_status_t status = gcap_runtime_end_run(run->runtime, GCAP_STATUS_OF_UNWINDING(), /*synchronize=*/false);
  status = gcap_status_join(status, gcap_device_pop(run->runtime->options.device_id, run->previous_device));
  gcap_status_ignore(status);  // the exception tells
}

// The work of a run, on buffers or not.
typedef struct job {
  gcap_runtime_work_t work;             // NULL: `work_on`
  gcap_runtime_work_on_t work_on;       // with `buffers`
  const gcap_graph_buffers_t* buffers;  // in the library's layout; NULL: none
  void** addresses;                     // [buffers->count]
  void* user;
  bool synchronize;
} job_t;

static gcap_status_t issue(const job_t* job, const gcap_run_resources_t* resources) {
  if (job->work != NULL) return job->work(job->user, resources);
  return job->work_on(job->user, resources, job->addresses);
}

static gcap_status_t begin(gcap_runtime_t* runtime, int graph_id, const job_t* job, gcap_graph_run_kind_t* out_kind) {
  if (job->work != NULL) return gcap_runtime_begin_run(runtime, graph_id);
  return gcap_runtime_begin_run_on(runtime, graph_id, job->buffers, out_kind, job->addresses);
}

static gcap_status_t run_job_once(gcap_runtime_t* runtime, const gcap_run_resources_t* resources, int graph_id,
                                  const job_t* job, gcap_graph_run_kind_t* out_kind) {
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(runtime->options.device_id, &previous));
  gcap_status_t status = begin(runtime, graph_id, job, out_kind);
  if (status == NULL) {
    GCAP_AT_SCOPE_END(end_run_on_unwind) unfinished_run_t unfinished = {runtime, previous};
    gcap_status_t issued = issue(job, resources);
    unfinished.runtime = NULL;
    status = gcap_runtime_end_run(runtime, issued, job->synchronize);
  }
  return gcap_status_join(status, gcap_device_pop(runtime->options.device_id, previous));
}

gcap_status_t gcap_runtime_run_once(gcap_runtime_t* runtime, const gcap_run_resources_t* resources, int graph_id,
                                    gcap_runtime_work_t work, void* user, bool synchronize) {
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  const job_t job = {.work = work, .user = user, .synchronize = synchronize};
  return run_job_once(runtime, resources, graph_id, &job, &kind);
}

static void let_go(gcap_graph_manager_t** held) { gcap_graph_manager_let_go(*held); }

// Runs, after the rehearsals if there are any, and once more, eagerly, after a failed capture.
static gcap_status_t run_job(gcap_runtime_t* runtime, const gcap_run_resources_t* resources, int graph_id,
                             const job_t* job) {
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  gcap_status_t status = NULL;
  do {
    status = run_job_once(runtime, resources, graph_id, job, &kind);
  } while (status == NULL && kind == GCAP_GRAPH_RUN_REHEARSAL);
  const bool failed = gcap_status_code(status) == GCAP_CAPTURE_INVALIDATED;
  if (!failed || !runtime->options.graph.rerun_failed_capture) return status;
  gcap_log(GCAP_LOG_WARNING, "graph id %d is run again, eagerly: %s", graph_id, gcap_status_message(status));
  gcap_status_free(status);  // gcap_runtime_explain has a copy
  return run_job_once(runtime, resources, GCAP_GRAPH_ID_NONE, job, &kind);
}

// The runtime is used after the work and the log sink: with the graphs held, neither can destroy it.
static gcap_status_t replay_or_run(gcap_runtime_t* runtime, int graph_id, const job_t* job) {
  bool replayed = false;
  gcap_graph_replay_options_t replay;
  gcap_graph_replay_options_init(&replay);
  replay.synchronize = job->synchronize;
  replay.addresses = job->addresses;
  replay.num_addresses = job->buffers != NULL ? job->buffers->count : 0;
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  if (job->buffers != NULL) {
    gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
    GCAP_RETURN_IF_ERROR(gcap_graph_manager_check_buffers(graphs, graph_id, job->buffers));
  }
  GCAP_RETURN_IF_ERROR(gcap_runtime_replay(runtime, graph_id, &replay, &replayed));
  if (replayed) return NULL;
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(runtime, &resources));
  GCAP_AT_SCOPE_END(let_go) gcap_graph_manager_t* held = gcap_thread_context_graphs(context);
  gcap_graph_manager_hold(held);
  return run_job(runtime, &resources, graph_id, job);
}

gcap_runtime_t* gcap_runtime_begin_turn(gcap_runtime_t* runtime) {
  if (gcap_runtime_supports_concurrent_runs(runtime)) return NULL;
  pthread_mutex_lock(&runtime->turns);
  return runtime;
}

void gcap_runtime_end_turn(gcap_runtime_t** turn) {
  if (*turn != NULL) pthread_mutex_unlock(&(*turn)->turns);
}

static gcap_status_t run_in_turn(gcap_runtime_t* runtime, int graph_id, const job_t* job) {
  GCAP_AT_SCOPE_END(gcap_runtime_end_turn) gcap_runtime_t* turn = gcap_runtime_begin_turn(runtime);
  (void)turn;
  return replay_or_run(runtime, graph_id, job);
}

gcap_status_t gcap_runtime_run(gcap_runtime_t* runtime, int graph_id, gcap_runtime_work_t work, void* user,
                               bool synchronize) {
  GCAP_RETURN_IF_NULL(runtime);
  GCAP_RETURN_IF_NULL(work);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  const job_t job = {.work = work, .user = user, .synchronize = synchronize};
  return run_in_turn(runtime, graph_id, &job);
}

static void free_addresses(void*** addresses) { free(*addresses); }

gcap_status_t gcap_runtime_run_on(gcap_runtime_t* runtime, int graph_id, const gcap_graph_buffers_t* buffers,
                                  gcap_runtime_work_on_t work, void* user, bool synchronize) {
  GCAP_RETURN_IF_NULL(runtime);
  GCAP_RETURN_IF_NULL(buffers);
  GCAP_RETURN_IF_NULL(work);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  gcap_graph_buffers_t known;
  GCAP_RETURN_IF_ERROR(gcap_graph_buffers_read(buffers, &known));
  // The work may not return.
  GCAP_AT_SCOPE_END(free_addresses) void** addresses = NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_buffers_copy_addresses(&known, &addresses));
  const job_t job = {
      .work_on = work, .buffers = &known, .addresses = addresses, .user = user, .synchronize = synchronize};
  return run_in_turn(runtime, graph_id, &job);
}
