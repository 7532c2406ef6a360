// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A run in one call: a replay, or the work, and once more the work after a failed capture. All by the public functions.
//
// Locking: none. The manager is held while it calls the work, which may even have ended its run, against the rules.

#include <stdlib.h>

#include "gcap/log.h"
#include "lib/graph/manager.h"
#include "lib/graph/open_run.h"
#include "lib/graph/options.h"
#include "lib/internal/unwind.h"

// The work of a run, on buffers or not.
typedef struct job {
  gcap_graph_work_t work;               // NULL: `work_on`
  gcap_graph_work_on_t work_on;         // with `buffers`
  const gcap_graph_buffers_t* buffers;  // in the library's layout
  void** addresses;                     // [buffers->count]
  void* user;
  cudaStream_t stream;
  bool synchronize;
} job_t;

// Ends the run of a work that did not return.
static void end_run_on_unwind(gcap_graph_manager_t** unfinished) {
  if (*unfinished == NULL) return;
  gcap_graph_manager_let_go(*unfinished);
  gcap_status_t left = GCAP_STATUS_OF_UNWINDING();
  gcap_status_ignore(gcap_graph_manager_end_run(*unfinished, left, /*synchronize=*/false));  // the exception tells
}

static gcap_status_t begin(gcap_graph_manager_t* manager, int id, const job_t* job, gcap_graph_run_kind_t* out_kind) {
  if (job->work != NULL) return gcap_graph_manager_begin_run(manager, id, job->stream, out_kind);
  return gcap_graph_manager_begin_run_on(manager, id, job->stream, job->buffers, out_kind, job->addresses);
}

static gcap_status_t run_once(gcap_graph_manager_t* manager, int id, const job_t* job,
                              gcap_graph_run_kind_t* out_kind) {
  GCAP_RETURN_IF_ERROR(begin(manager, id, job, out_kind));
  gcap_graph_manager_hold(manager);
  GCAP_AT_SCOPE_END(end_run_on_unwind) gcap_graph_manager_t* unfinished = manager;
  gcap_status_t status =
      job->work != NULL ? job->work(job->user, job->stream) : job->work_on(job->user, job->stream, job->addresses);
  unfinished = NULL;
  gcap_graph_manager_let_go(manager);
  return gcap_graph_manager_end_run(manager, status, job->synchronize);
}

// Says that the work is issued again, since its capture failed. Consumes the failure.
static void tell_of_rerun(gcap_graph_manager_t* manager, int id, gcap_status_t failure) {
  gcap_graph_manager_hold(manager);
  gcap_log(GCAP_LOG_WARNING, "graph id %d is run again, eagerly: %s", id, gcap_status_message(failure));
  gcap_graph_manager_let_go(manager);
  gcap_status_free(failure);  // gcap_graph_manager_explain has a copy
}

// Runs, after the rehearsals if there are any, and once more, eagerly, after a failed capture.
static gcap_status_t run_job(gcap_graph_manager_t* manager, int id, const job_t* job) {
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  gcap_status_t status = NULL;
  do {
    status = run_once(manager, id, job, &kind);
  } while (status == NULL && kind == GCAP_GRAPH_RUN_REHEARSAL);
  const bool failed = kind != GCAP_GRAPH_RUN_EAGER && gcap_status_code(status) == GCAP_CAPTURE_INVALIDATED;
  if (!failed || !manager->options.rerun_failed_capture) return status;
  tell_of_rerun(manager, id, status);
  return run_once(manager, GCAP_GRAPH_ID_NONE, job, &kind);
}

static gcap_status_t replay_or_run(gcap_graph_manager_t* manager, int id, const job_t* job) {
  bool replayed = false;
  gcap_graph_replay_options_t replay;
  gcap_graph_replay_options_init(&replay);
  replay.on_stream = true;
  replay.stream = job->stream;
  replay.synchronize = job->synchronize;
  if (job->work == NULL) {
    replay.addresses = job->addresses;
    replay.num_addresses = job->buffers->count;
    GCAP_RETURN_IF_ERROR(gcap_graph_manager_check_buffers(manager, id, job->buffers));
  }
  gcap_status_t status = gcap_graph_manager_replay(manager, id, &replay, &replayed);
  return replayed || status != NULL ? status : run_job(manager, id, job);
}

gcap_status_t gcap_graph_manager_run(gcap_graph_manager_t* manager, int id, cudaStream_t stream, gcap_graph_work_t work,
                                     void* user, bool synchronize) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_NULL(work);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  const job_t job = {.work = work, .user = user, .stream = stream, .synchronize = synchronize};
  return replay_or_run(manager, id, &job);
}

static void free_addresses(void*** addresses) { free(*addresses); }

gcap_status_t gcap_graph_manager_run_on(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                        const gcap_graph_buffers_t* buffers, gcap_graph_work_on_t work, void* user,
                                        bool synchronize) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_NULL(buffers);
  GCAP_RETURN_IF_NULL(work);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  gcap_graph_buffers_t known;
  GCAP_RETURN_IF_ERROR(gcap_graph_buffers_read(buffers, &known));
  // The work may not return.
  GCAP_AT_SCOPE_END(free_addresses) void** addresses = NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_buffers_copy_addresses(&known, &addresses));
  const job_t job = {.work_on = work,
                     .buffers = &known,
                     .addresses = addresses,
                     .user = user,
                     .stream = stream,
                     .synchronize = synchronize};
  return replay_or_run(manager, id, &job);
}
