// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// state.h: the states of an annotation id as a function, and when it is warm.
#ifndef GCAP_LIB_GRAPH_STATE_H_
#define GCAP_LIB_GRAPH_STATE_H_

#include "gcap/graph.h"

// What can happen to an id; see the table at gcap_graph_state_t.
typedef enum graph_step {
  STEP_FIRST_RUN,
  STEP_WARM,
  STEP_BEGIN,
  STEP_COMMIT,
  STEP_FAILURE,
  STEP_GIVE_UP,
  STEP_COOLED,
  STEP_RECAPTURE,
  STEP_EVICT,
  STEP_COUNT,
} graph_step_t;

// The state after the step; the same where the step changes nothing.
gcap_graph_state_t graph_state_after(gcap_graph_state_t state, graph_step_t step);

// What a run did besides issuing work, or a thread at some time (gcap_run_trace_t, which only C can include).
typedef struct run_trace {
  uint64_t allocations;  // a hash over sizes and order
  uint64_t initialisations;
} run_trace_t;

// What the STABLE policy remembers of an id's eager runs.
typedef struct run_history {
  uint64_t allocations;  // of the last one
  bool was_quiet;        // it initialised nothing
  bool is_stable;        // two in a row were alike
} run_history_t;

// Begins to trace a run of this thread, and gives what trace_end needs.
run_trace_t trace_begin(void);
// Ends the trace: the thread's own goes on as if nobody had looked.
run_trace_t trace_end(run_trace_t begun);
// Adds an eager run that went well.
void history_add(run_history_t* history, run_trace_t run);

// Whether an id is warm after `info->eager_runs` runs.
bool graph_is_warm(const gcap_graph_manager_options_t* options, const gcap_graph_info_t* info,
                   const run_history_t* history);

#endif  // GCAP_LIB_GRAPH_STATE_H_
