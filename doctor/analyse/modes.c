// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What was left as it should not be: a thread in relaxed mode, a capture without its end, a graph without a node.
// Locking: none.
#include "doctor/analyse/analysis.h"

// A thread that stays in thread-local mode keeps out of others' captures, as R14 asks; only relaxed mode harms its own.
// What a mode was before calls that are left out is not known, so neither is whether it was put back.
static void find_kept(gcap_doctor_analysis_t* analysis) {
  if (!analysis->recording->ended || analysis->recording->reached_limit) return;
  for (size_t i = 0; i < analysis->recording->num_threads; ++i) {
    const gcap_doctor_thread_state_t* thread = &analysis->threads[i];
    if (thread->mode != GCAP_DOCTOR_MODE_RELAXED) continue;
    gcap_doctor_finding_t* finding = gcap_doctor_finding_add(
        analysis, GCAP_DOCTOR_FINDING_MODE_KEPT, GCAP_DOCTOR_SEVERITY_WARNING, GCAP_DOCTOR_NONE, thread->exchange);
    finding->rule = gcap_rule_by_id("R60");
  }
}

static void find_open(gcap_doctor_analysis_t* analysis, uint32_t index) {
  const gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[index];
  if (capture->culprit != GCAP_DOCTOR_NONE) return;  // the program stopped at that call
  gcap_doctor_finding_t* finding = gcap_doctor_finding_add(
      analysis, GCAP_DOCTOR_FINDING_LEFT_OPEN,
      analysis->recording->ended ? GCAP_DOCTOR_SEVERITY_ERROR : GCAP_DOCTOR_SEVERITY_WARNING, index, capture->begin);
  finding->rule = gcap_rule_by_id("R7");
}

// Where a framework refused the first operation, that finding says more. An empty graph that nobody launches may be
// meant: PyTorch's trees of graphs capture nothing once, to keep a pool of memory.
static void find_empty(gcap_doctor_analysis_t* analysis, uint32_t index) {
  const gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[index];
  if (capture->graph == GCAP_DOCTOR_NONE) return;  // a ledger, which does not tell of graphs and nodes
  const gcap_doctor_capture_state_t* state = &analysis->states[index];
  if (capture->num_nodes != 0 || state->works != 0 || state->refused) return;
  gcap_doctor_finding_t* finding = gcap_doctor_finding_add(
      analysis, GCAP_DOCTOR_FINDING_EMPTY_GRAPH,
      capture->replays != 0 ? GCAP_DOCTOR_SEVERITY_WARNING : GCAP_DOCTOR_SEVERITY_NOTE, index, capture->begin);
  finding->rule = gcap_rule_by_id("R8");
}

void gcap_doctor_modes_find(gcap_doctor_analysis_t* analysis) {
  for (uint32_t i = 0; i < analysis->diagnosis->num_captures; ++i) {
    const gcap_doctor_capture_outcome_t outcome = analysis->diagnosis->captures[i].outcome;
    const bool may_have_ended = gcap_doctor_is_before_gap(analysis, analysis->diagnosis->captures[i].begin);
    if (outcome == GCAP_DOCTOR_OUTCOME_OPEN && !may_have_ended) find_open(analysis, i);
    if (outcome == GCAP_DOCTOR_OUTCOME_GRAPH) find_empty(analysis, i);
  }
  find_kept(analysis);
}
