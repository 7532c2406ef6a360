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
  gcap_hold_t* host;             // begins the run's memory on the host; NULL: it needs none
  struct gcap_run_holes* holes;  // NULL: the plan has none
  gcap_device_visit_t devices;
  int num_begun;       // of parts->used: those whose run is open
  bool is_main_ended;  // the main EP's is none of them any more
} gcap_run_state_t;

// Where parts of the run's memory on the host begin, behind the hold.
#define GCAP_HOST_MEMORY_OFFSET 64

// Makes the step's device current, and its node that of the scratch that is taken next.
//   errors of cudaSetDevice
gcap_status_t gcap_run_enter_step(gcap_run_state_t* run, int index) GCAP_NODISCARD;
// Gives memory to what the step makes.
//   errors of the EP's scratch
gcap_status_t gcap_run_allocate_step(gcap_run_state_t* run, int index) GCAP_NODISCARD;
// Issues the step, all of whose values have memory. The message names the node.
//   errors of the EPs' kernels and copies
gcap_status_t gcap_run_compute_step(gcap_run_state_t* run, int index) GCAP_NODISCARD;
// Frees what the step was the last to read, and what it made for nobody.
//   errors of the EP's scratch
gcap_status_t gcap_run_free_step(gcap_run_state_t* run, int index) GCAP_NODISCARD;

// Frees all values that are left, when a step failed.
//   errors of the EPs' scratch
gcap_status_t gcap_run_free_values(gcap_run_state_t* run) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_STEPS_H_
