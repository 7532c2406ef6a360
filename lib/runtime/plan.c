// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Plans of a runtime's graphs. A rehearsal has a reservation of its own, as a captured run has, which returns to the
// scratch before the next one: so a plan needs the memory of the largest graph, not of all. Where graphs share a
// reservation, the rehearsals share it too, and hold it together until all are counted.
//
// Locking: as gcap_runtime_run.

#include "lib/runtime/plan.h"

#include <stdlib.h>

#include "gcap/capture.h"
#include "gcap/thread_context.h"
#include "lib/graph/open_run.h"
#include "lib/graph/rehearse.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/unwind.h"
#include "lib/runtime/forks.h"
#include "lib/runtime/runtime_internal.h"

typedef struct rehearsals {
  gcap_runtime_t* runtime;
  gcap_graph_manager_t* graphs;  // of the thread; held
  gcap_stream_t* stream;
  gcap_status_t (*work)(void* user, size_t index);
  void* user;
  const int* graph_ids;
  size_t index;                // of the run that is rehearsed
  gcap_retained_t** retained;  // [num_retained]: of graphs that share their memory
  size_t num_retained;
} rehearsals_t;

static void end(rehearsals_t* r) {
  for (size_t i = 0; i < r->num_retained; ++i) gcap_retained_release(r->retained[i]);
  free(r->retained);
  if (r->graphs != NULL) gcap_graph_manager_let_go(r->graphs);
}

static gcap_status_t begin(rehearsals_t* r, size_t num_ids) {
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(r->runtime->contexts, &context));
  r->stream = gcap_thread_context_stream(context);
  r->graphs = gcap_thread_context_graphs(context);
  gcap_graph_manager_hold(r->graphs);
  r->retained = calloc(num_ids, sizeof(*r->retained));
  return r->retained != NULL ? NULL : GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a plan");
}

static gcap_status_t work_in_reservation(void* user, cudaStream_t stream) {
  (void)stream;
  rehearsals_t* r = user;
  GCAP_RETURN_IF_ERROR(
      gcap_graph_memory_reserve(&r->runtime->graph_memory, r->stream, r->graph_ids[r->index], gcap_capture_current()));
  return r->work(r->user, r->index);
}

static gcap_status_t rehearse(rehearsals_t* r, gcap_graph_plan_t* plan) {
  gcap_runtime_t* runtime = r->runtime;
  gcap_graph_memory_prepare(&runtime->graph_memory, r->stream);
  gcap_forks_prepare(runtime);
  gcap_retained_t* retained = NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_rehearse(r->graph_ids[r->index], gcap_stream_handle(r->stream),
                                           &runtime->options.graph.capture, work_in_reservation, r, &retained, plan));
  if (runtime->options.share_graph_memory) {
    r->retained[r->num_retained++] = retained;
  } else {
    gcap_graph_plan_add_retained(plan, retained);
    gcap_retained_release(retained);
  }
  return NULL;
}

// What graphs share counts in parts, of the captured ones and of the rehearsed ones, while all are there.
static void add_shared(const rehearsals_t* r, size_t num_ids, gcap_graph_plan_t* plan) {
  for (size_t i = 0; i < r->num_retained; ++i) gcap_graph_plan_add_retained(plan, r->retained[i]);
  for (size_t i = 0; i < num_ids; ++i) gcap_graph_plan_add_captured(plan, r->graphs, r->graph_ids[i]);
}

gcap_status_t gcap_runtime_rehearse(gcap_runtime_t* runtime, const int* graph_ids, size_t num_ids,
                                    gcap_status_t (*work)(void* user, size_t index), void* user,
                                    gcap_graph_plan_t* plan) {
  if (num_ids == 0) return NULL;
  GCAP_AT_SCOPE_END(end)
  rehearsals_t r = {.runtime = runtime, .work = work, .user = user, .graph_ids = graph_ids};
  GCAP_RETURN_IF_ERROR(begin(&r, num_ids));
  for (; r.index < num_ids; ++r.index) {
    if (!gcap_graph_manager_is_captured(r.graphs, graph_ids[r.index])) GCAP_RETURN_IF_ERROR(rehearse(&r, plan));
  }
  add_shared(&r, num_ids, plan);
  return NULL;
}

// --- For an engine --------------------------------------------------------------------------------------------------

typedef struct planned_runs {
  gcap_runtime_t* runtime;
  const gcap_runtime_planned_run_t* runs;
  gcap_run_resources_t resources;
} planned_runs_t;

static gcap_status_t run_in_scope(void* user, size_t index) {
  const planned_runs_t* planned = user;
  const gcap_runtime_planned_run_t* run = &planned->runs[index];
  return gcap_runtime_run_once(planned->runtime, &planned->resources, GCAP_GRAPH_ID_NONE, run->work, run->user,
                               /*synchronize=*/false);
}

static gcap_status_t check_run(const gcap_runtime_planned_run_t* runs, size_t index) {
  if (runs[index].graph_id < 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "runs[%zu].graph_id is %d, allowed are ids >= 0", index,
                       runs[index].graph_id);
  }
  if (runs[index].work == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "runs[%zu].work is NULL", index);
  return NULL;
}

static void free_ids(int** ids) { free(*ids); }

static gcap_status_t plan_runs(gcap_runtime_t* runtime, const gcap_runtime_planned_run_t* runs, size_t num_runs,
                               gcap_graph_plan_t* plan) {
  GCAP_AT_SCOPE_END(free_ids) int* ids = calloc(num_runs > 0 ? num_runs : 1, sizeof(*ids));
  if (ids == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a plan");
  for (size_t i = 0; i < num_runs; ++i) {
    GCAP_RETURN_IF_ERROR(check_run(runs, i));
    ids[i] = runs[i].graph_id;
  }
  planned_runs_t planned = {.runtime = runtime, .runs = runs};
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(runtime, &planned.resources));
  GCAP_AT_SCOPE_END(gcap_runtime_end_turn) gcap_runtime_t* turn = gcap_runtime_begin_turn(runtime);
  (void)turn;
  return gcap_runtime_rehearse(runtime, ids, num_runs, run_in_scope, &planned, plan);
}

gcap_status_t gcap_runtime_plan(gcap_runtime_t* runtime, const gcap_runtime_planned_run_t* runs, size_t num_runs,
                                gcap_graph_plan_t* out_plan) {
  gcap_graph_plan_t plan;
  GCAP_RETURN_IF_ERROR(gcap_graph_plan_begin(out_plan, &plan));
  GCAP_RETURN_IF_NULL(runtime);
  if (num_runs > 0) GCAP_RETURN_IF_NULL(runs);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  GCAP_RETURN_IF_ERROR(plan_runs(runtime, runs, num_runs, &plan));
  gcap_graph_plan_give(&plan, out_plan);
  return NULL;
}
