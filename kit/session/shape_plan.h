// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// shape_plan.h: a program made ready for one set of input shapes: all shapes, kernels, and what shape nodes computed.
#ifndef GCAP_KIT_SESSION_SHAPE_PLAN_H_
#define GCAP_KIT_SESSION_SHAPE_PLAN_H_

#include "kit/ep/hold.h"
#include "kit/session/parts.h"
#include "kit/session/plan_holes.h"

// Thread: nothing changes after the creation, but what the owner of several plans writes under its lock.
typedef struct gcap_shape_plan {
  gcap_model_t model;      // the session's, with shapes of its own, all fixed
  gcap_value_t* values;    // of `model`
  gcap_kernel_t* kernels;  // one a node; compute is NULL until made
  gcap_tensor_t* tensors;  // of each slot; `data` of what lies outside a run's memory, else NULL
  void** known;            // of each value: what a shape node made of it, else NULL
  size_t* host_offsets;    // of each slot in the run's memory on the host
  size_t host_bytes;       // of that memory
  size_t total_bytes;      // of all slots in a run's memory: what makes one plan larger than another
  gcap_hold_t* hold;       // a part for each run, graph or stream that needs the plan
  gcap_plan_holes_t holes;
  bool is_eager;  // the kernels cannot be captured, and such a model runs eagerly

  // gcap_shapes_t: under its lock.
  struct gcap_shape_plan* next;
  size_t num_ids;     // bound to the plan
  uint64_t last_use;  // the larger, the later
} gcap_shape_plan_t;

// Makes the plan for inputs of these shapes, which were checked; NULL: the model has them fixed. Called in a turn of
// the EPs, on a thread that does not capture.
//   INVALID_ARGUMENT  two sizes of one symbol; a size that follows from nothing, or that contradicts the model; a value
//                     that is too large
//   FAILED_PRECONDITION  a kernel cannot be captured, and the policy allows no hole for it
//   errors of the EP (gcap_ep_infer_shapes, gcap_ep_create_kernel, a kernel's compute)
gcap_status_t gcap_shape_plan_create(const gcap_session_parts_t* parts, const gcap_tensor_t* inputs,
                                     gcap_shape_plan_t** out_plan) GCAP_NODISCARD;
// In a turn of the EPs. NULL is fine.
void gcap_shape_plan_destroy(gcap_shape_plan_t* plan, const gcap_session_parts_t* parts);

#endif  // GCAP_KIT_SESSION_SHAPE_PLAN_H_
