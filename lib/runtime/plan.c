// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Plans of a runtime's graphs. A rehearsal has a reservation of its own, as a captured run has, which returns to the
// scratch before the next one: so a plan needs the memory of the largest graph, not of all. Where graphs share a
// reservation, the rehearsals share it too, and hold it together until all are counted.
//
// Locking: as gcap_runtime_run.

#include "lib/runtime/inner.h"

#include <stdlib.h>

#include "gcap/capture.h"
#include "gcap/graph_plan.h"
#include "lib/graph/inner.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/unwind.h"
#include "lib/runtime/forks.h"
#include "lib/runtime/runtime_internal.h"
#include "lib/runtime/thread_context.h"

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
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(r->runtime->own->contexts, &context));
  r->stream = gcap_thread_context_stream(context);
  r->graphs = gcap_thread_context_graphs(context);
  gcap_graph_manager_hold(r->graphs);
  r->retained = calloc(num_ids, sizeof(*r->retained));
  return r->retained != NULL ? NULL : GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a plan");
}

// Gets the memory of a graph, or of its rehearsal, ready. Before its capture.
static void prepare(gcap_own_runtime_t* runtime, gcap_stream_t* stream, int graph_id) {
  gcap_graph_memory_prepare(&runtime->graph_memory, stream, graph_id);
  gcap_forks_prepare(runtime, gcap_graph_memory_work(graph_id));
}

static gcap_status_t work_in_reservation(void* user, const gcap_run_resources_t* resources) {
  (void)resources;  // those of the run that is begun in the scope
  rehearsals_t* r = user;
  GCAP_RETURN_IF_ERROR(gcap_graph_memory_reserve(&r->runtime->own->graph_memory, r->stream, r->graph_ids[r->index],
                                                 gcap_capture_current()));
  return r->work(r->user, r->index);
}

static gcap_status_t rehearse(rehearsals_t* r, gcap_graph_plan_t* plan) {
  gcap_own_runtime_t* runtime = r->runtime->own;
  const int graph_id = r->graph_ids[r->index];
  prepare(runtime, r->stream, graph_id);
  gcap_retained_t* retained = NULL;
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = graph_id;
  run.work = work_in_reservation;
  run.user = r;
  const gcap_run_resources_t resources = {.struct_size = sizeof(resources),
                                          .cuda_stream = gcap_stream_handle(r->stream)};
  GCAP_RETURN_IF_ERROR(gcap_graph_rehearse(&run, &resources, &runtime->options.graph.capture, &retained, plan));
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
  if (runtime->own == NULL) {
    return GCAP_STATUS(GCAP_UNIMPLEMENTED, "a plan: the runtime has graphs of its own, of which gcap knows nothing");
  }
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
  const gcap_run_t* runs;
  gcap_run_resources_t resources;
  gcap_graph_value_block_t* block;  // for the values of whichever run is rehearsed; NULL: none is in memory
  gcap_graph_plan_t* plan;
} planned_runs_t;

static void free_addresses(void*** addresses) { free(*addresses); }

static gcap_status_t run_in_scope(void* user, size_t index) {
  const planned_runs_t* planned = user;
  gcap_run_copy_t copy;
  const gcap_run_t* given = NULL;
  GCAP_RETURN_IF_ERROR(gcap_planned_run_read(planned->runs, index, &copy, &given));
  gcap_run_t run = *given;
  gcap_run_as_step(&run, GCAP_GRAPH_ID_NONE);
  run.synchronize = run.capture_only = false;
  run.result = NULL;
  gcap_run_resources_t resources = planned->resources;
  // The work may not return.
  GCAP_AT_SCOPE_END(free_addresses) void** addresses = NULL;
  if (run.buffers != NULL) GCAP_RETURN_IF_ERROR(gcap_graph_buffers_copy_addresses(run.buffers, &addresses));
  gcap_planned_values_place(&run, planned->block, addresses, planned->plan);
  gcap_run_give_addresses(run.buffers, addresses, &resources);
  run.buffers = NULL;  // they are where the work is told, and do not move
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  return gcap_runtime_run_once(planned->runtime, &run, &resources, &kind);
}

static void free_ids(int** ids) { free(*ids); }

// Device memory for the values of any of the runs: a rehearsal gets none.
static gcap_status_t take_block(const planned_runs_t* planned, size_t num_runs, gcap_graph_value_block_t** out_block) {
  size_t most = 0;
  for (size_t i = 0; i < num_runs; ++i) {
    gcap_run_copy_t copy;
    const gcap_run_t* run = NULL;
    size_t bytes = 0;
    GCAP_RETURN_IF_ERROR(gcap_planned_run_read(planned->runs, i, &copy, &run));
    GCAP_RETURN_IF_ERROR(gcap_planned_values_measure(run, &bytes));
    if (bytes > most) most = bytes;
  }
  return most != 0 ? gcap_graph_value_block_create(most, planned->resources.cuda_stream, out_block) : NULL;
}

static gcap_status_t plan_runs(gcap_runtime_t* runtime, const gcap_run_t* runs, size_t num_runs,
                               gcap_graph_plan_t* plan) {
  GCAP_AT_SCOPE_END(free_ids) int* ids = calloc(num_runs > 0 ? num_runs : 1, sizeof(*ids));
  if (ids == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a plan");
  gcap_graph_manager_t* graphs = NULL;
  if (num_runs > 0 && runtime->own != NULL) GCAP_RETURN_IF_ERROR(gcap_runtime_graphs(runtime, &graphs));
  for (size_t i = 0; i < num_runs; ++i) {
    gcap_run_copy_t copy;
    const gcap_run_t* run = NULL;
    GCAP_RETURN_IF_ERROR(gcap_planned_run_read(runs, i, &copy, &run));
    ids[i] = run->key != NULL && graphs != NULL ? gcap_graph_manager_id_of(graphs, run) : run->id;
  }
  planned_runs_t planned = {.runtime = runtime, .runs = runs, .plan = plan};
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(runtime, &planned.resources));
  // Before the stream's device is asked for: another thread may be capturing the stream that all share.
  GCAP_AT_SCOPE_END(gcap_runtime_end_turn) gcap_runtime_t* turn = gcap_runtime_begin_turn(runtime);
  (void)turn;
  GCAP_AT_SCOPE_END(gcap_planned_values_drop) gcap_graph_value_block_t* block = NULL;
  if (runtime->own != NULL) GCAP_RETURN_IF_ERROR(take_block(&planned, num_runs, &block));
  planned.block = block;
  GCAP_RETURN_IF_ERROR(gcap_runtime_rehearse(runtime, ids, num_runs, run_in_scope, &planned, plan));
  block = NULL;
  return gcap_graph_value_block_destroy(planned.block);
}

gcap_status_t gcap_runtime_plan(gcap_runtime_t* runtime, const gcap_run_t* runs, size_t num_runs,
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
