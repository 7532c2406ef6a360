// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Warm-up: rounds of runs, until each id has a graph. In a round each id that has none runs once, so the first rounds
// are eager for all, and find all memory and all libraries; then all are captured. A run that may not be executed is
// captured once, behind all others, which have found by then what its capture needs.
//
// A round in which a capture refused a step does not count: the step is a hole in the next one (graph_holes.h), and an
// id has a bounded number of such steps.
//
// What became of a run is asked of the manager, not remembered: a budget may take a graph away meanwhile.
//
// Locking: none; the steps lock.

#include "lib/base/rename.h"
#include "lib/graph/inner.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/unwind.h"

// --- Rounds ---------------------------------------------------------------------------------------------------------

typedef struct warm_up {
  const gcap_warm_up_steps_t* steps;
  const gcap_run_t* runs;
  size_t num_runs;
  gcap_warm_up_fn on_run;
  void* user;
  bool* was_step_refused;  // in this round
} warm_up_t;

static gcap_status_t run_one(const warm_up_t* w, size_t index, const gcap_run_t* given) {
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run = *given;
  run.result = &result;
  gcap_status_t status = w->steps->run(w->steps->self, &run);
  if (result.why_eager == GCAP_EAGER_STEP_REFUSED) *w->was_step_refused = true;
  if (w->on_run != NULL) w->on_run(w->user, index, w->num_runs, &result);
  if (gcap_graph_is_named(gcap_status_message(status))) {
    return gcap_status_rename(status, "graph ", "the warm-up of graph ");
  }
  return gcap_status_annotate(status, gcap_status_code(status), "the warm-up of graph id %d",
                              w->steps->id_of(w->steps->self, given));
}

static bool has_graph(const warm_up_t* w, const gcap_run_t* run) { return w->steps->has_graph(w->steps->self, run); }

// Runs once each id that has no graph, of the runs that are capture_only or of the others. `*out_left`: how many of
// them have none.
static gcap_status_t run_round(const warm_up_t* w, bool capture_only, size_t* out_left) {
  *out_left = 0;
  for (size_t i = 0; i < w->num_runs; ++i) {
    gcap_run_copy_t copy;
    const gcap_run_t* run = NULL;
    GCAP_RETURN_IF_ERROR(gcap_planned_run_read(w->runs, i, &copy, &run));
    if (run->capture_only != capture_only || has_graph(w, run)) continue;
    GCAP_RETURN_IF_ERROR(run_one(w, i, run));
    *out_left += !has_graph(w, run);
  }
  return NULL;
}

static gcap_status_t name_one(const warm_up_t* w, int id) {
  gcap_status_t why = w->steps->explain(w->steps->self, id, GCAP_GRAPH_WHY_EAGER);
  gcap_status_t status = GCAP_STATUS(GCAP_UNAVAILABLE, "graph id %d has no graph after its warm-up: %s", id,
                                     why != NULL ? gcap_status_message(why) : "the budget evicted it");
  gcap_status_free(why);
  return status;
}

static gcap_status_t name_those_left(const warm_up_t* w) {
  gcap_status_t status = NULL;
  for (size_t i = 0; i < w->num_runs; ++i) {
    gcap_run_copy_t copy;
    const gcap_run_t* run = NULL;
    gcap_status_t read = gcap_planned_run_read(w->runs, i, &copy, &run);
    if (read != NULL) return gcap_status_join(status, read);
    if (has_graph(w, run)) continue;
    status = gcap_status_join(status, name_one(w, w->steps->id_of(w->steps->self, run)));
  }
  return status;
}

gcap_status_t gcap_warm_up_by_steps(const gcap_warm_up_steps_t* steps, const gcap_run_t* runs, size_t num_runs,
                                    gcap_warm_up_fn on_run, void* user) {
  GCAP_RETURN_IF_ERROR(gcap_planned_runs_check(runs, num_runs));
  bool was_step_refused = false;
  const warm_up_t w = {.steps = steps,
                       .runs = runs,
                       .num_runs = num_runs,
                       .on_run = on_run,
                       .user = user,
                       .was_step_refused = &was_step_refused};
  size_t left = 1;
  for (int round = 0; round < GCAP_WARM_UP_MAX_RUNS && left > 0; round += !was_step_refused) {
    was_step_refused = false;
    GCAP_RETURN_IF_ERROR(run_round(&w, /*capture_only=*/false, &left));
  }
  GCAP_RETURN_IF_ERROR(run_round(&w, /*capture_only=*/true, &left));
  return name_those_left(&w);
}

// --- Of a manager ---------------------------------------------------------------------------------------------------

static int id_of(void* self, const gcap_run_t* run) { return gcap_graph_manager_id_of(self, run); }

static bool manager_has_graph(void* self, const gcap_run_t* run) { return gcap_graph_manager_has_graph(self, run); }

static gcap_status_t run_step(void* self, const gcap_run_t* run) { return gcap_graph_manager_run(self, run); }

static gcap_status_t explain(void* self, int id, gcap_graph_question_t question) {
  return gcap_graph_manager_explain(self, id, question);
}

static void let_go(gcap_graph_manager_t** held) { gcap_graph_manager_let_go(*held); }

gcap_status_t gcap_graph_manager_warm_up(gcap_graph_manager_t* manager, const gcap_run_t* runs, size_t num_runs,
                                         gcap_warm_up_fn on_run, void* user) {
  GCAP_RETURN_IF_NULL(manager);
  if (num_runs > 0) GCAP_RETURN_IF_NULL(runs);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  // Neither the work, which may not return, nor `on_run` ends the manager.
  GCAP_AT_SCOPE_END(let_go) gcap_graph_manager_t* held = manager;
  gcap_graph_manager_hold(held);
  const gcap_warm_up_steps_t steps = {
      .self = manager, .id_of = id_of, .has_graph = manager_has_graph, .run = run_step, .explain = explain};
  return gcap_warm_up_by_steps(&steps, runs, num_runs, on_run, user);
}
