// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Plans by shapes, and ids by plan. An id means one set of shapes, for all threads, as long as a graph of the id exists
// on any thread: each graph holds a part of the id, which its owner lets go with it. A plan is kept while an id is
// bound to it; of the others, those that were used last.
//
// Plans are few, since each has kernels of its own, so a list is searched. An id is found by a hash table: a replay
// finds its plan so.
//
// Locking: `mutex` is a leaf. A plan is made and ended without it; two threads that make the same plan at once keep the
// first one.

#include "kit/session/shapes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "kit/session/tensors.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/hash_table.h"

// An id that was run. A cell of the hash table.
typedef struct bound_id {
  uint64_t key;  // the id + 1
  gcap_shape_plan_t* plan;
  gcap_hold_t* hold;  // a part for each run and each graph of the id
  bool is_released;   // it is unbound as soon as nobody has a part
  bool is_pinned;
} bound_id_t;

struct gcap_shapes {
  pthread_mutex_t mutex;
  gcap_shape_plan_t* plans;
  gcap_hash_table_t ids;
  uint64_t num_uses;
  size_t max_without_id;
};

gcap_status_t gcap_shapes_create(size_t max_without_id, gcap_shapes_t** out_shapes) {
  gcap_shapes_t* shapes = calloc(1, sizeof(*shapes));
  *out_shapes = shapes;
  if (shapes == NULL) return gcap_session_no_memory();
  pthread_mutex_init(&shapes->mutex, NULL);
  shapes->ids.cell_bytes = sizeof(bound_id_t);
  shapes->max_without_id = max_without_id;
  return NULL;
}

static void destroy_plans(gcap_shape_plan_t* plans, const gcap_session_parts_t* parts) {
  while (plans != NULL) {
    gcap_shape_plan_t* next = plans->next;
    gcap_shape_plan_destroy(plans, parts);
    plans = next;
  }
}

void gcap_shapes_destroy(gcap_shapes_t* shapes, const gcap_session_parts_t* parts) {
  if (shapes == NULL) return;
  for (size_t i = 0; i < shapes->ids.capacity; ++i) {
    bound_id_t* bound = gcap_hash_table_used_at(&shapes->ids, i);
    if (bound != NULL) gcap_hold_let_go(bound->hold);
  }
  gcap_hash_table_deinit(&shapes->ids);
  destroy_plans(shapes->plans, parts);
  pthread_mutex_destroy(&shapes->mutex);
  free(shapes);
}

// --- With the mutex held --------------------------------------------------------------------------------------------

static bound_id_t* find_id(const gcap_shapes_t* shapes, int id) {
  return id < 0 ? NULL : gcap_hash_table_find(&shapes->ids, (uint64_t)id + 1);
}

static void unbind(gcap_shapes_t* shapes, bound_id_t* bound) {
  --bound->plan->num_ids;
  gcap_hold_let_go(bound->hold);
  gcap_hash_table_remove(&shapes->ids, bound);
}

static gcap_status_t bind(gcap_shapes_t* shapes, gcap_shape_plan_t* plan, int id, gcap_hold_t** out_hold) {
  *out_hold = NULL;
  if (id < 0) return NULL;  // it means no graph, or nothing: the EP says so
  gcap_hold_t* hold = gcap_hold_create();
  bound_id_t* bound = hold != NULL ? gcap_hash_table_insert(&shapes->ids, (uint64_t)id + 1) : NULL;
  if (bound == NULL) {
    free(hold);
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for graph id %d", id);
  }
  bound->plan = plan;
  bound->hold = hold;
  ++plan->num_ids;
  *out_hold = hold;
  return NULL;
}

static gcap_shapes_use_t use(gcap_shapes_t* shapes, gcap_shape_plan_t* plan, gcap_hold_t* id_hold) {
  plan->last_use = ++shapes->num_uses;
  gcap_hold_take(plan->hold);
  if (id_hold != NULL) gcap_hold_take(id_hold);
  return (gcap_shapes_use_t){.plan = plan, .id_hold = id_hold};
}

static gcap_shape_plan_t* find_plan(const gcap_shapes_t* shapes, const gcap_tensor_t* inputs) {
  gcap_shape_plan_t* plan = shapes->plans;
  while (plan != NULL && !gcap_tensors_have_shapes(&plan->model, inputs)) plan = plan->next;
  return plan;
}

static gcap_status_t other_shapes(const bound_id_t* bound, const gcap_tensor_t* inputs) {
  char had[GCAP_SHAPES_TEXT_BYTES], has[GCAP_SHAPES_TEXT_BYTES];
  gcap_tensors_describe(&bound->plan->model, NULL, had);
  gcap_tensors_describe(&bound->plan->model, inputs, has);
  return GCAP_STATUS(
      GCAP_FAILED_PRECONDITION,
      "graph id %d means the shapes %s, with which it was first run, and this run has %s: use another id, "
      "or release the id%s",
      (int)(bound->key - 1), had, has, bound->is_released ? " on every thread that has its graph" : "");
}

// Finds the plan by its id, and then by the shapes. `out_use->plan` is NULL if the shapes are new.
static gcap_status_t find_use(gcap_shapes_t* shapes, int id, const gcap_tensor_t* inputs, gcap_shapes_use_t* out_use) {
  bound_id_t* bound = find_id(shapes, id);
  if (bound != NULL && gcap_tensors_have_shapes(&bound->plan->model, inputs)) {
    bound->is_released = false;
    *out_use = use(shapes, bound->plan, bound->hold);
    return NULL;
  }
  if (bound != NULL) {
    if (bound->is_pinned || !bound->is_released || !gcap_hold_is_alone(bound->hold)) return other_shapes(bound, inputs);
    unbind(shapes, bound);
  }
  gcap_shape_plan_t* plan = find_plan(shapes, inputs);
  if (plan == NULL) return NULL;
  gcap_hold_t* id_hold = NULL;
  GCAP_RETURN_IF_ERROR(bind(shapes, plan, id, &id_hold));
  *out_use = use(shapes, plan, id_hold);
  return NULL;
}

static bool is_surplus(const gcap_shape_plan_t* plan) { return plan->num_ids == 0 && gcap_hold_is_alone(plan->hold); }

// Takes the plans off the list that are too many, those used longest ago first. They are the caller's to end.
static gcap_shape_plan_t* take_surplus(gcap_shapes_t* shapes) {
  gcap_shape_plan_t* taken = NULL;
  for (;;) {
    size_t num_surplus = 0;
    gcap_shape_plan_t** oldest = NULL;
    for (gcap_shape_plan_t** link = &shapes->plans; *link != NULL; link = &(*link)->next) {
      if (!is_surplus(*link)) continue;
      ++num_surplus;
      if (oldest == NULL || (*link)->last_use < (*oldest)->last_use) oldest = link;
    }
    if (num_surplus <= shapes->max_without_id) return taken;
    gcap_shape_plan_t* plan = *oldest;
    *oldest = plan->next;
    plan->next = taken;
    taken = plan;
  }
}

// --- A run's use ----------------------------------------------------------------------------------------------------

static gcap_status_t refuse_in_capture(const gcap_session_parts_t* parts, const gcap_tensor_t* inputs) {
  char shapes[GCAP_SHAPES_TEXT_BYTES];
  char what[GCAP_SHAPES_TEXT_BYTES + 64];
  gcap_tensors_describe(&parts->model.model, inputs, shapes);
  snprintf(what, sizeof(what), "the first run of a session with the shapes %s", shapes);
  return gcap_refuse_in_capture(what);
}

// Makes the plan, and uses it, or the one that another thread has made meanwhile.
static gcap_status_t use_new(gcap_shapes_t* shapes, const gcap_session_parts_t* parts, int id,
                             const gcap_tensor_t* inputs, gcap_shapes_use_t* out_use) {
  GCAP_RETURN_IF_ERROR(refuse_in_capture(parts, inputs));
  gcap_shape_plan_t* plan = NULL;
  GCAP_RETURN_IF_ERROR(gcap_shape_plan_create(parts, inputs, &plan));
  pthread_mutex_lock(&shapes->mutex);
  if (find_plan(shapes, inputs) == NULL) {
    plan->next = shapes->plans;
    shapes->plans = plan;
    plan = NULL;
  }
  gcap_status_t status = find_use(shapes, id, inputs, out_use);
  gcap_shape_plan_t* surplus = take_surplus(shapes);
  pthread_mutex_unlock(&shapes->mutex);
  destroy_plans(surplus, parts);
  gcap_shape_plan_destroy(plan, parts);
  return status;
}

gcap_status_t gcap_shapes_begin_use(gcap_shapes_t* shapes, const gcap_session_parts_t* parts, int id,
                                    const gcap_tensor_t* inputs, gcap_shapes_use_t* out_use) {
  *out_use = (gcap_shapes_use_t){0};
  pthread_mutex_lock(&shapes->mutex);
  gcap_status_t status = find_use(shapes, id, inputs, out_use);
  pthread_mutex_unlock(&shapes->mutex);
  if (status != NULL || out_use->plan != NULL) return status;
  return use_new(shapes, parts, id, inputs, out_use);
}

void gcap_shapes_end_use(gcap_shapes_use_t* use) {
  if (use->id_hold != NULL) gcap_hold_let_go(use->id_hold);
  if (use->plan != NULL) gcap_hold_let_go(use->plan->hold);
  *use = (gcap_shapes_use_t){0};
}

void gcap_shapes_pin(gcap_shapes_t* shapes, int id) {
  pthread_mutex_lock(&shapes->mutex);
  bound_id_t* bound = find_id(shapes, id);
  if (bound != NULL) bound->is_pinned = true;
  pthread_mutex_unlock(&shapes->mutex);
}

void gcap_shapes_release(gcap_shapes_t* shapes, const gcap_session_parts_t* parts, int id) {
  pthread_mutex_lock(&shapes->mutex);
  bound_id_t* bound = find_id(shapes, id);
  if (bound != NULL) bound->is_released = true;
  if (bound != NULL && !bound->is_pinned && gcap_hold_is_alone(bound->hold)) unbind(shapes, bound);
  gcap_shape_plan_t* surplus = take_surplus(shapes);
  pthread_mutex_unlock(&shapes->mutex);
  destroy_plans(surplus, parts);
}
