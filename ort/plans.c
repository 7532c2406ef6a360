// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The gcap kernels of a node. Plans are few, since each has a kernel of its own, so a list is searched. Two threads
// that bring new shapes at once make a plan each; the one that is not found is forgotten in time.
//
// Locking: `mutex` is a leaf. Kernels are made and ended without it.

#include "ort/plans.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_UNUSED = 16 };

// --- A plan ---------------------------------------------------------------------------------------------------------

gcap_status_t gcap_ort_plan_create(const char* node, const gcap_tensor_t* tensors, int count,
                                   gcap_ort_plan_t** out_plan) {
  *out_plan = NULL;
  gcap_ort_plan_t* plan = calloc(1, sizeof(*plan) + (size_t)count * sizeof(plan->tensors[0]));
  if (plan != NULL) plan->hold = gcap_hold_create();
  if (plan == NULL || plan->hold == NULL) {
    free(plan);
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for '%s'", node);
  }
  gcap_hold_take(plan->hold);
  memcpy(plan->tensors, tensors, (size_t)count * sizeof(plan->tensors[0]));
  *out_plan = plan;
  return NULL;
}

void gcap_ort_plan_destroy(gcap_ort_plan_t* plan) {
  if (plan->kernel.destroy != NULL) plan->kernel.destroy(plan->kernel.self);
  gcap_hold_let_go(plan->hold);
  free(plan);
}

static bool has_shapes(const gcap_ort_plan_t* plan, const gcap_tensor_t* tensors, int count) {
  for (int i = 0; i < count; ++i) {
    const gcap_tensor_t *a = &plan->tensors[i], *b = &tensors[i];
    if (a->dtype != b->dtype || a->rank != b->rank) return false;
    if (memcmp(a->shape, b->shape, (size_t)a->rank * sizeof(a->shape[0])) != 0) return false;
  }
  return true;
}

// --- All of a node --------------------------------------------------------------------------------------------------

void gcap_ort_plans_init(gcap_ort_plans_t* plans) {
  *plans = (gcap_ort_plans_t){0};
  pthread_mutex_init(&plans->mutex, NULL);
}

static void destroy_all(gcap_ort_plan_t* plan) {
  while (plan != NULL) {
    gcap_ort_plan_t* next = plan->next;
    gcap_ort_plan_destroy(plan);
    plan = next;
  }
}

void gcap_ort_plans_deinit(gcap_ort_plans_t* plans) {
  destroy_all(plans->first);
  pthread_mutex_destroy(&plans->mutex);
}

gcap_ort_plan_t* gcap_ort_plans_find(gcap_ort_plans_t* plans, const gcap_tensor_t* tensors, int count) {
  pthread_mutex_lock(&plans->mutex);
  gcap_ort_plan_t* plan = plans->first;
  while (plan != NULL && !has_shapes(plan, tensors, count)) plan = plan->next;
  if (plan != NULL) {
    plan->last_use = ++plans->num_uses;
    gcap_hold_take(plan->hold);
  }
  pthread_mutex_unlock(&plans->mutex);
  return plan;
}

// Takes the plans off the list that are too many, those used longest ago first. They are the caller's to end.
static gcap_ort_plan_t* take_surplus(gcap_ort_plans_t* plans) {
  gcap_ort_plan_t* taken = NULL;
  for (;;) {
    int num_unused = 0;
    gcap_ort_plan_t** oldest = NULL;
    for (gcap_ort_plan_t** link = &plans->first; *link != NULL; link = &(*link)->next) {
      if (!gcap_hold_is_alone((*link)->hold)) continue;
      ++num_unused;
      if (oldest == NULL || (*link)->last_use < (*oldest)->last_use) oldest = link;
    }
    if (num_unused <= MOST_UNUSED) return taken;
    gcap_ort_plan_t* plan = *oldest;
    *oldest = plan->next;
    plan->next = taken;
    taken = plan;
  }
}

void gcap_ort_plans_add(gcap_ort_plans_t* plans, gcap_ort_plan_t* plan) {
  pthread_mutex_lock(&plans->mutex);
  plan->last_use = ++plans->num_uses;
  plan->next = plans->first;
  plans->first = plan;
  gcap_ort_plan_t* surplus = take_surplus(plans);
  pthread_mutex_unlock(&plans->mutex);
  destroy_all(surplus);
}
