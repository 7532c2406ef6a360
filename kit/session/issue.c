// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The way of a run over its steps: one after the other, but those that are a hole together.
//
// Locking: none; the state is the run's own.

#include "kit/session/issue.h"

#include "kit/session/run_holes.h"

static gcap_status_t issue_step(gcap_run_state_t* run, int index) {
  GCAP_RETURN_IF_ERROR(gcap_run_enter_step(run, index));
  GCAP_RETURN_IF_ERROR(gcap_run_allocate_step(run, index));
  GCAP_RETURN_IF_ERROR(gcap_run_compute_step(run, index));
  return gcap_run_free_step(run, index);
}

// Issues the steps from `index` on that are one hole, or the one step that is in none. `*out_next`: the step behind.
static gcap_status_t issue_from(gcap_run_state_t* run, int index, int* hole, int* out_next) {
  const gcap_plan_holes_t* holes = &run->plan->holes;
  *out_next = index + 1;
  if (run->holes == NULL || *hole == holes->count || holes->items[*hole].begin != index) return issue_step(run, index);
  *out_next = holes->items[*hole].end;
  return gcap_run_holes_issue(run->holes, run, (*hole)++);
}

gcap_status_t gcap_run_issue_steps(gcap_run_state_t* run) {
  const gcap_program_t* program = &run->parts->program;
  gcap_status_t status = NULL;
  int hole = 0;
  for (int i = 0; i < program->num_steps && status == NULL;) status = issue_from(run, i, &hole, &i);
  return status == NULL ? NULL : gcap_status_join(status, gcap_run_free_values(run));
}
