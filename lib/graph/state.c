// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The states of an id, and the policies that make an id warm. The public header has the table of states; this file
// alone has it as a function.
//
// A run's trace is a hash over its allocations from a fixed start, so that two runs can be compared. For the time of
// the run the thread's hash is set to that start; afterwards the run's hash is mixed into the thread's, so that runs of
// two managers may be nested. Nothing is shared: a trace belongs to its thread, a history to its slot.

#include "lib/graph/state.h"

#include "lib/internal/run_trace.h"

const char* gcap_graph_state_name(gcap_graph_state_t state) {
  switch (state) {
    case GCAP_GRAPH_COLD: return "COLD";
    case GCAP_GRAPH_WARMING: return "WARMING";
    case GCAP_GRAPH_READY: return "READY";
    case GCAP_GRAPH_CAPTURING: return "CAPTURING";
    case GCAP_GRAPH_CAPTURED: return "CAPTURED";
    case GCAP_GRAPH_COOLING: return "COOLING";
    case GCAP_GRAPH_STALE: return "STALE";
  }
  return "unknown gcap_graph_state_t";
}

gcap_graph_state_t gcap_graph_state_after(gcap_graph_state_t state, gcap_graph_step_t step) {
  const bool may_begin = state == GCAP_GRAPH_READY || state == GCAP_GRAPH_STALE;
  switch (step) {
    case GCAP_GRAPH_STEP_FIRST_RUN: return state == GCAP_GRAPH_COLD ? GCAP_GRAPH_WARMING : state;
    case GCAP_GRAPH_STEP_WARM: return state == GCAP_GRAPH_WARMING ? GCAP_GRAPH_READY : state;
    case GCAP_GRAPH_STEP_BEGIN: return may_begin ? GCAP_GRAPH_CAPTURING : state;
    case GCAP_GRAPH_STEP_COMMIT: return state == GCAP_GRAPH_CAPTURING ? GCAP_GRAPH_CAPTURED : state;
    case GCAP_GRAPH_STEP_FAILURE: return may_begin || state == GCAP_GRAPH_CAPTURING ? GCAP_GRAPH_COOLING : state;
    case GCAP_GRAPH_STEP_GIVE_UP: return state == GCAP_GRAPH_CAPTURING ? GCAP_GRAPH_READY : state;
    case GCAP_GRAPH_STEP_COOLED: return state == GCAP_GRAPH_COOLING ? GCAP_GRAPH_READY : state;
    case GCAP_GRAPH_STEP_RECAPTURE: return state == GCAP_GRAPH_CAPTURED ? GCAP_GRAPH_STALE : state;
    case GCAP_GRAPH_STEP_EVICT:
      return state == GCAP_GRAPH_CAPTURED || state == GCAP_GRAPH_STALE ? GCAP_GRAPH_READY : state;
    case GCAP_GRAPH_STEP_DIFFERS: return state == GCAP_GRAPH_CAPTURED ? GCAP_GRAPH_COOLING : state;
    case GCAP_GRAPH_STEP_COUNT: break;
  }
  return state;
}

// --- Traces ---------------------------------------------------------------------------------------------------------

gcap_run_trace_t gcap_graph_trace_begin(void) {
  const gcap_run_trace_t begun = {.allocations = gcap_thread_run_trace.allocations,
                                  .initializations = gcap_thread_run_trace.initializations};
  gcap_thread_run_trace.allocations = 0;
  return begun;
}

gcap_run_trace_t gcap_graph_trace_end(gcap_run_trace_t begun) {
  const gcap_run_trace_t run = {
      .allocations = gcap_thread_run_trace.allocations,
      .initializations = gcap_thread_run_trace.initializations - begun.initializations,
  };
  gcap_thread_run_trace.allocations = begun.allocations;
  gcap_trace_allocation(run.allocations);
  return run;
}

void gcap_graph_history_add(gcap_graph_run_history_t* history, gcap_run_trace_t run) {
  const bool is_quiet = run.initializations == 0;
  if (is_quiet && history->was_quiet && history->allocations == run.allocations) history->is_stable = true;
  history->was_quiet = is_quiet;
  history->allocations = run.allocations;
}

bool gcap_graph_is_warm(const gcap_graph_manager_options_t* options, const gcap_graph_info_t* info,
                        const gcap_graph_run_history_t* history) {
  if (options->policy == GCAP_GRAPH_POLICY_MIN_RUNS) return info->eager_runs >= options->min_num_runs_before_capture;
  return history->is_stable || info->eager_runs >= options->max_runs_before_capture;
}

void gcap_graph_note_allocation(size_t bytes) { gcap_trace_allocation(bytes); }

void gcap_graph_note_initialization(void) { gcap_trace_initialization(GCAP_INITIALIZED_OTHER); }
