// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// moving.h: the inputs and outputs of a run whose graph works on other ones at each replay.
#ifndef GCAP_KIT_SESSION_MOVING_H_
#define GCAP_KIT_SESSION_MOVING_H_

#include "kit/session/steps.h"

// Few enough tensors need no heap: a replay allocates nothing then.
#define GCAP_MOVING_WITHOUT_HEAP 16

// One input or output with elements.
typedef struct gcap_moving_tensor {
  int slot;
  bool is_input;
  void* staged;  // bindings=copy: scratch of the run in its place, else NULL
} gcap_moving_tensor_t;

// Of one run. Thread: one.
typedef struct gcap_run_moving {
  gcap_graph_buffers_t buffers;  // what the EP is told of the tensors
  gcap_moving_tensor_t* tensors;
  gcap_graph_buffer_t* items;
  void** addresses;            // where the kernels, or the copies, find them
  bool* may_be_unused;         // of which no captured step has a pointer
  gcap_graph_run_kind_t kind;  // of the run that was begun last
  bool copies;                 // bindings=copy
  void* heap;                  // NULL: the few are enough
  gcap_moving_tensor_t few_tensors[GCAP_MOVING_WITHOUT_HEAP];
  gcap_graph_buffer_t few_items[GCAP_MOVING_WITHOUT_HEAP];
  void* few_addresses[GCAP_MOVING_WITHOUT_HEAP];
  bool few_may_be_unused[GCAP_MOVING_WITHOUT_HEAP];
} gcap_run_moving_t;

// `bindings`: COPY or RELOCATE. `moving` stays where it is.
//   FAILED_PRECONDITION  a tensor is not in the memory of the main EP; the message names it
//   RESOURCE_EXHAUSTED   no host memory
gcap_status_t gcap_run_moving_init(const gcap_session_parts_t* parts, const gcap_shape_plan_t* plan,
                                   const gcap_tensor_t* inputs, const gcap_tensor_t* outputs, gcap_bindings_t bindings,
                                   gcap_run_moving_t* moving) GCAP_NODISCARD;
void gcap_run_moving_deinit(gcap_run_moving_t* moving);

// In a run that was begun: gives the run's slots the addresses, or staged scratch with the inputs copied into it.
//   errors of the EP's copies and scratch
gcap_status_t gcap_run_moving_enter(gcap_run_moving_t* moving, gcap_run_state_t* run) GCAP_NODISCARD;
// After the run's steps, whose outcome is `status`: copies staged outputs back, and frees the scratch.
gcap_status_t gcap_run_moving_leave(gcap_run_moving_t* moving, gcap_run_state_t* run,
                                    gcap_status_t status) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_MOVING_H_
