// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Warm-up: the rounds are the graph module's (lib/graph/warm_up.c), the runs are those of the session. The largest go
// first: what the others need is then there already, and of graphs that share their memory the first one takes it all.
//
// A plan rehearses the same runs in the same order, each in a capture of which no graph is made.
//
// Locking: the turns of the EPs, over all runs.

#include <stdlib.h>
#include <string.h>

#include "gcap/graph_plan.h"
#include "gcap/log.h"
#include "kit/session/run.h"
#include "kit/session/run_options.h"
#include "lib/graph/inner.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/run_trace.h"
#include "lib/internal/text.h"
#include "lib/internal/unwind.h"
#include "lib/runtime/inner.h"

// One run of the list, with its options in this version.
typedef struct item {
  struct warm_up* of;
  gcap_run_options_t options;
  const gcap_tensor_t *inputs, *outputs;
  size_t bytes;  // of the memory between its nodes
  size_t index;
  gcap_run_result_t result;  // of its latest run
} item_t;

// What runs did for the first time.
typedef struct first_uses {
  uint64_t counts[GCAP_NUM_INITIALIZATIONS];
} first_uses_t;

typedef struct warm_up {
  gcap_session_t* session;
  item_t* items;
  gcap_run_t* runs;  // of the items, once these are in order
  size_t num_items;
  uint64_t num_runs;
  gcap_warm_up_fn on_run;
  void* user;
  first_uses_t in_eager_runs, in_captures;
} warm_up_t;

// --- Before the runs ------------------------------------------------------------------------------------------------

static gcap_status_t read_item(warm_up_t* w, const gcap_warm_up_run_t* run, size_t index, item_t* item) {
  GCAP_RETURN_IF_ERROR(gcap_run_options_read(run->options, &item->options));
  GCAP_RETURN_IF_ERROR(gcap_session_check_graph(w->session, item->options.graph_id));
  item->options.capture_in_run = false;  // the rounds do it
  item->of = w;
  item->inputs = run->inputs;
  item->outputs = run->outputs;
  item->index = index;
  return gcap_session_check_tensors(w->session, run->inputs, run->outputs);
}

// How large the runs are is known with their plans.
static gcap_status_t find_sizes(warm_up_t* w) {
  gcap_session_t* session = w->session;
  for (size_t i = 0; i < w->num_items && session->shapes != NULL; ++i) {
    item_t* item = &w->items[i];
    gcap_shapes_use_t use;
    GCAP_RETURN_IF_ERROR(
        gcap_shapes_begin_use(session->shapes, &session->parts, item->options.graph_id, item->inputs, &use));
    item->bytes = use.plan->total_bytes;
    gcap_status_t status = gcap_session_check_plan(use.plan);
    gcap_shapes_end_use(&use);
    if (status != NULL) return status;
  }
  return NULL;
}

static int compare_items(const void* a, const void* b) {
  const item_t *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

// --- The runs -------------------------------------------------------------------------------------------------------

// What a runtime of a table does not say.
static void complete(gcap_run_result_t* result, bool is_captured, gcap_status_t status) {
  if (status != NULL || result->outcome != GCAP_RUN_NOT_DONE) return;
  result->outcome = is_captured ? GCAP_RUN_CAPTURED : GCAP_RUN_EAGER;
  result->was_issued = true;
}

// The runs are in another order than the caller's.
static void tell_caller(void* self, size_t index, size_t total, const gcap_run_result_t* result) {
  (void)result;
  const warm_up_t* w = self;
  w->on_run(w->user, w->items[index].index, total, &w->items[index].result);
}

static gcap_status_t run_item(void* user, const gcap_run_resources_t* resources) {
  (void)resources;
  item_t* item = user;
  warm_up_t* w = item->of;
  first_uses_t before;
  memcpy(before.counts, gcap_thread_initializations, sizeof(before.counts));
  gcap_run_result_init(&item->result);
  gcap_status_t status =
      gcap_session_run_in_turn(w->session, &item->options, item->inputs, item->outputs, &item->result);
  ++w->num_runs;
  const bool is_captured = gcap_runtime_is_captured(w->session->parts.main_runtime, item->options.graph_id);
  complete(&item->result, is_captured, status);
  first_uses_t* uses = is_captured ? &w->in_captures : &w->in_eager_runs;
  for (int i = 0; i < GCAP_NUM_INITIALIZATIONS; ++i) {
    uses->counts[i] += gcap_thread_initializations[i] - before.counts[i];
  }
  return status;
}

static gcap_status_t put_in_order(warm_up_t* w) {
  GCAP_RETURN_IF_ERROR(find_sizes(w));
  qsort(w->items, w->num_items, sizeof(*w->items), compare_items);
  for (size_t i = 0; i < w->num_items; ++i) {
    gcap_run_init(&w->runs[i]);
    w->runs[i].id = w->items[i].options.graph_id;
    w->runs[i].capture_only = w->items[i].options.capture_only;
    w->runs[i].work = run_item;
    w->runs[i].user = &w->items[i];
  }
  return NULL;
}

// "none", or "2 stream attachments, 1 plan". Returns whether there was one.
static bool describe(const first_uses_t* uses, char* chars, size_t size) {
  static const char* const kNames[GCAP_NUM_INITIALIZATIONS] = {"stream attachment", "plan",
                                                               "allocation from the driver", "other initialization"};
  gcap_text_t text;
  gcap_text_init(&text, chars, size);
  bool any = false;
  for (int i = 0; i < GCAP_NUM_INITIALIZATIONS; ++i) {
    const unsigned long long count = uses->counts[i];
    if (count == 0) continue;
    gcap_text_add(&text, "%s%llu %s%s", any ? ", " : "", count, kNames[i], count == 1 ? "" : "s");
    any = true;
  }
  if (!any) gcap_text_add(&text, "none");
  return any;
}

static void report(const warm_up_t* w) {
  char eager[160], captured[160];
  describe(&w->in_eager_runs, eager, sizeof(eager));
  const bool late = describe(&w->in_captures, captured, sizeof(captured));
  gcap_log(late ? GCAP_LOG_WARNING : GCAP_LOG_INFO,
           "%zu graph ids are warm after %llu runs; first uses in eager runs: %s; in captures: %s%s", w->num_items,
           (unsigned long long)w->num_runs, eager, captured,
           late ? ", which more eager runs before the first capture would have found" : "");
}

static gcap_status_t run_all(warm_up_t* w) {
  GCAP_AT_SCOPE_END(gcap_session_leave_turns)
  const gcap_session_parts_t* turns = gcap_session_enter_turns(&w->session->parts);
  GCAP_RETURN_IF_ERROR(put_in_order(w));
  gcap_status_t status =
      gcap_runtime_warm_up_whole(turns->main_runtime, w->runs, w->num_items, w->on_run != NULL ? tell_caller : NULL, w);
  if (status == NULL) report(w);
  return status;
}

static void free_items(warm_up_t* w) {
  free(w->items);
  free(w->runs);
}

static gcap_status_t read_items(warm_up_t* w, const gcap_warm_up_run_t* runs) {
  w->items = calloc(w->num_items + 1, sizeof(*w->items));
  w->runs = calloc(w->num_items + 1, sizeof(*w->runs));
  if (w->items == NULL || w->runs == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu runs", w->num_items);
  }
  for (size_t i = 0; i < w->num_items; ++i) GCAP_RETURN_IF_ERROR(read_item(w, &runs[i], i, &w->items[i]));
  return NULL;
}

gcap_status_t gcap_session_warm_up(gcap_session_t* session, const gcap_warm_up_run_t* runs, size_t num_runs,
                                   gcap_warm_up_fn on_run, void* user) {
  GCAP_RETURN_IF_NULL(session);
  if (num_runs > 0) GCAP_RETURN_IF_NULL(runs);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_AT_SCOPE_END(free_items)
  warm_up_t w = {.session = session, .num_items = num_runs, .on_run = on_run, .user = user};
  GCAP_RETURN_IF_ERROR(read_items(&w, runs));
  return num_runs > 0 ? run_all(&w) : NULL;
}

// --- Plans ----------------------------------------------------------------------------------------------------------

static gcap_status_t run_in_scope(void* user, size_t index) {
  const warm_up_t* w = user;
  const item_t* item = &w->items[index];
  return gcap_session_rehearse_in_turn(w->session, &item->options, item->inputs, item->outputs);
}

static void free_ids(int** ids) { free(*ids); }

static gcap_status_t plan_all(warm_up_t* w, gcap_graph_plan_t* plan) {
  GCAP_AT_SCOPE_END(gcap_session_leave_turns)
  const gcap_session_parts_t* turns = gcap_session_enter_turns(&w->session->parts);
  GCAP_RETURN_IF_ERROR(put_in_order(w));
  GCAP_AT_SCOPE_END(free_ids) int* ids = calloc(w->num_items, sizeof(*ids));
  if (ids == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a plan");
  for (size_t i = 0; i < w->num_items; ++i) ids[i] = w->runs[i].id;
  return gcap_runtime_rehearse(turns->main_runtime, ids, w->num_items, run_in_scope, w, plan);
}

gcap_status_t gcap_session_plan(gcap_session_t* session, const gcap_warm_up_run_t* runs, size_t num_runs,
                                gcap_graph_plan_t* out_plan) {
  gcap_graph_plan_t plan;
  GCAP_RETURN_IF_ERROR(gcap_graph_plan_begin(out_plan, &plan));
  GCAP_RETURN_IF_NULL(session);
  if (num_runs > 0) GCAP_RETURN_IF_NULL(runs);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  GCAP_AT_SCOPE_END(free_items) warm_up_t w = {.session = session, .num_items = num_runs};
  GCAP_RETURN_IF_ERROR(read_items(&w, runs));
  if (num_runs > 0) GCAP_RETURN_IF_ERROR(plan_all(&w, &plan));
  gcap_graph_plan_give(&plan, out_plan);
  return NULL;
}
