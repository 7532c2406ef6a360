// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// steps.h: the steps of a run, issued one after the other.
#ifndef GCAP_KIT_SESSION_STEPS_H_
#define GCAP_KIT_SESSION_STEPS_H_

#include "kit/session/resources.h"
#include "kit/session/shape_plan.h"

// The state of one run. Thread: one.
typedef struct gcap_run_state {
  const gcap_session_parts_t* parts;
  const gcap_shape_plan_t* plan;
  const gcap_run_t* asked;          // of the main EP
  bool synchronize;                 // of all
  gcap_run_resources_t* resources;  // of each EP
  gcap_tensor_t* tensors;           // of each slot
  gcap_tensor_t* node_inputs;       // room for those of one node
  gcap_tensor_t* node_outputs;
  gcap_hold_t* host;  // begins the run's memory on the host; NULL: it needs none
  gcap_device_visit_t devices;
  int num_begun;  // of parts->used: those whose run is open
} gcap_run_state_t;

// Where parts of the run's memory on the host begin, behind the hold.
#define GCAP_HOST_MEMORY_OFFSET 64

// Issues all steps, and frees the memory between them.
//   errors of the EPs' kernels, copies and scratch
gcap_status_t gcap_run_issue_steps(gcap_run_state_t* run) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_STEPS_H_
