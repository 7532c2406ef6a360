// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A warm-up of a runtime's graphs. The graph module has the order of the runs. A run is one of the runtime, whoever
// implements that, or a whole run of a session.
//
// Locking: each run takes its turn by itself; whole runs are in the caller's.

#include <stdatomic.h>

#include "lib/graph/inner.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/unwind.h"
#include "lib/runtime/inner.h"
#include "lib/runtime/runtime_internal.h"

static int id_of(void* self, const gcap_run_t* run) { return gcap_runtime_id_of(self, run); }

static bool has_graph(void* self, const gcap_run_t* run) { return gcap_runtime_has_graph(self, run); }

static gcap_status_t run_step(void* self, const gcap_run_t* run) { return gcap_runtime_run(self, run); }

static gcap_status_t whole_run_step(void* self, const gcap_run_t* run) {
  (void)self;
  return run->work(run->user, /*resources=*/NULL);
}

// gcap does not know why a table reports no graph, and names the possible reasons.
static gcap_status_t explain(void* self, int id, gcap_graph_question_t question) {
  gcap_runtime_t* runtime = self;
  gcap_status_t why = gcap_runtime_explain(runtime, id, question);
  if (why != NULL || runtime->own != NULL) return why;
  return GCAP_STATUS(GCAP_UNAVAILABLE,
                     "the runtime's table reports no failed capture: either it wants more runs before its first "
                     "capture (min_num_runs_before_cuda_graph_capture), or it never captures, or does not report its "
                     "graphs");
}

typedef gcap_status_t (*run_fn)(void* self, const gcap_run_t* run);

static gcap_status_t warm_up_by(gcap_runtime_t* runtime, run_fn run, const gcap_run_t* runs, size_t num_runs,
                                gcap_warm_up_fn on_run, void* user) {
  const gcap_warm_up_steps_t steps = {
      .self = runtime, .id_of = id_of, .has_graph = has_graph, .run = run, .explain = explain};
  return gcap_warm_up_by_steps(&steps, runs, num_runs, on_run, user);
}

gcap_status_t gcap_runtime_warm_up_whole(gcap_runtime_t* runtime, const gcap_run_t* runs, size_t num_runs,
                                         gcap_warm_up_fn on_run, void* user) {
  return warm_up_by(runtime, whole_run_step, runs, num_runs, on_run, user);
}

static gcap_status_t check_captures(gcap_runtime_t* runtime) {
  gcap_runtime_info_t info;
  gcap_runtime_get_info(runtime, &info);
  if (info.is_graph_capture_enabled) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "there will be no graph: the runtime does not capture (enable_cuda_graph)");
}

static gcap_status_t check_keys(const gcap_runtime_t* runtime, const gcap_run_t* runs, size_t num_runs) {
  for (size_t i = 0; runtime->own == NULL && i < num_runs; ++i) {
    gcap_run_copy_t copy;
    const gcap_run_t* run = NULL;
    GCAP_RETURN_IF_ERROR(gcap_planned_run_read(runs, i, &copy, &run));
    if (run->key == NULL) continue;
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "runs[%zu] has a key, and the runtime has graphs of its own, whose keys nobody else knows: give "
                       "the run an id",
                       i);
  }
  return NULL;
}

// Neither the work, which may not return, nor `on_run` ends the runtime.
typedef struct hold {
  gcap_runtime_t* runtime;
  gcap_graph_manager_t* graphs;  // of gcap's own
} hold_t;

static gcap_status_t begin_hold(hold_t* hold) {
  if (hold->runtime->own != NULL) GCAP_RETURN_IF_ERROR(gcap_runtime_graphs(hold->runtime, &hold->graphs));
  if (hold->graphs != NULL) gcap_graph_manager_hold(hold->graphs);
  atomic_fetch_add(&hold->runtime->num_inside, 1);
  return NULL;
}

static void end_hold(hold_t* hold) {
  atomic_fetch_sub(&hold->runtime->num_inside, 1);
  if (hold->graphs != NULL) gcap_graph_manager_let_go(hold->graphs);
}

static gcap_status_t warm_up(gcap_runtime_t* runtime, const gcap_run_t* runs, size_t num_runs, gcap_warm_up_fn on_run,
                             void* user) {
  hold_t hold = {.runtime = runtime};
  GCAP_RETURN_IF_ERROR(begin_hold(&hold));
  GCAP_AT_SCOPE_END(end_hold) hold_t held = hold;
  return warm_up_by(held.runtime, run_step, runs, num_runs, on_run, user);
}

gcap_status_t gcap_runtime_warm_up(gcap_runtime_t* runtime, const gcap_run_t* runs, size_t num_runs,
                                   gcap_warm_up_fn on_run, void* user) {
  GCAP_RETURN_IF_NULL(runtime);
  if (num_runs > 0) GCAP_RETURN_IF_NULL(runs);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  GCAP_RETURN_IF_ERROR(check_keys(runtime, runs, num_runs));
  GCAP_RETURN_IF_ERROR(check_captures(runtime));
  return warm_up(runtime, runs, num_runs, on_run, user);
}
