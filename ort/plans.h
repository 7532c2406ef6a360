// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// plans.h: the gcap kernels of a node, one for each set of shapes.
#ifndef GCAP_ORT_PLANS_H_
#define GCAP_ORT_PLANS_H_

#include <pthread.h>
#include <stdint.h>

#include "gcap/kit/ep.h"
#include "kit/ep/hold.h"

// A gcap kernel, with the shapes that it was made for: inputs, then outputs. Each use has a part of `hold`, and so has
// each graph and each stream that has the kernel's work. It ends when none of them is left, or with the node: before a
// session ends its nodes, ONNX Runtime releases the streams of all threads, and that waits for them.
typedef struct gcap_ort_plan {
  gcap_kernel_t kernel;
  gcap_hold_t* hold;
  uint64_t last_use;
  struct gcap_ort_plan* next;
  gcap_tensor_t tensors[];
} gcap_ort_plan_t;

// Plans: of those that nobody has a part of, the 16 are kept that were used last.
// Thread: thread-safe, but for init and deinit. Capture: gcap_ort_plans_add outside of captures, since it ends kernels.
typedef struct gcap_ort_plans {
  pthread_mutex_t mutex;  // a leaf
  gcap_ort_plan_t* first;
  uint64_t num_uses;
} gcap_ort_plans_t;

void gcap_ort_plans_init(gcap_ort_plans_t* plans);
void gcap_ort_plans_deinit(gcap_ort_plans_t* plans);  // when no use is left, and no graph is launched any more

// The plan whose first `count` tensors have these shapes, with a part for the caller; NULL if there is none.
gcap_ort_plan_t* gcap_ort_plans_find(gcap_ort_plans_t* plans, const gcap_tensor_t* tensors, int count);

// Makes a plan without a kernel, with a part for the caller, which fills in the kernel and adds the plan.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_ort_plan_create(const char* node, const gcap_tensor_t* tensors, int count,
                                   gcap_ort_plan_t** out_plan) GCAP_NODISCARD;
void gcap_ort_plan_destroy(gcap_ort_plan_t* plan);  // with its kernel, if it has one
// Adds the plan, and ends those that are too many.
void gcap_ort_plans_add(gcap_ort_plans_t* plans, gcap_ort_plan_t* plan);

#endif  // GCAP_ORT_PLANS_H_
