// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// state.h: the states of an annotation id as a function, and when it is warm.
#ifndef GCAP_LIB_GRAPH_STATE_H_
#define GCAP_LIB_GRAPH_STATE_H_

#include "gcap/graph.h"
#include "lib/internal/run_trace.h"

// What can happen to an id; see the table at gcap_graph_state_t.
typedef enum graph_step {
  GCAP_GRAPH_STEP_FIRST_RUN,
  GCAP_GRAPH_STEP_WARM,
  GCAP_GRAPH_STEP_BEGIN,
  GCAP_GRAPH_STEP_COMMIT,
  GCAP_GRAPH_STEP_FAILURE,
  GCAP_GRAPH_STEP_GIVE_UP,
  GCAP_GRAPH_STEP_COOLED,
  GCAP_GRAPH_STEP_RECAPTURE,
  GCAP_GRAPH_STEP_EVICT,
  GCAP_GRAPH_STEP_DIFFERS,
  GCAP_GRAPH_STEP_COUNT,
} gcap_graph_step_t;

// The state after the step; the same where the step changes nothing.
gcap_graph_state_t gcap_graph_state_after(gcap_graph_state_t state, gcap_graph_step_t step);

// What the STABLE policy remembers of an id's eager runs.
typedef struct gcap_graph_run_history {
  uint64_t allocations;  // of the last one
  bool was_quiet;        // it initialized nothing
  bool is_stable;        // two in a row were alike
} gcap_graph_run_history_t;

// Begins to trace a run of this thread, and gives what trace_end needs.
gcap_run_trace_t gcap_graph_trace_begin(void);
// Ends the trace: the thread's own goes on as if nobody had looked.
gcap_run_trace_t gcap_graph_trace_end(gcap_run_trace_t begun);
// Adds an eager run that went well.
void gcap_graph_history_add(gcap_graph_run_history_t* history, gcap_run_trace_t run);

// Whether an id is warm after `info->eager_runs` runs.
bool gcap_graph_is_warm(const gcap_graph_manager_options_t* options, const gcap_graph_info_t* info,
                        const gcap_graph_run_history_t* history);

#endif  // GCAP_LIB_GRAPH_STATE_H_
