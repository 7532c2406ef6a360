// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// shapes.h: the plans of a model whose inputs have symbols, by shapes, and which graph id means which shapes.
#ifndef GCAP_KIT_SESSION_SHAPES_H_
#define GCAP_KIT_SESSION_SHAPES_H_

#include "kit/session/shape_plan.h"

// Shapes: from gcap_shapes_create.
// Thread:   thread-safe.
// Capture:  as each function says.
// Lifetime: ends before the session's EPs; graphs may outlive it.
typedef struct gcap_shapes gcap_shapes_t;

// What a graph of a run takes a part of, besides its id.
typedef struct gcap_run_holds {
  gcap_hold_t* const* items;
  size_t count;
} gcap_run_holds_t;

// A plan in use: it does not end meanwhile, and the id stays bound.
typedef struct gcap_shapes_use {
  gcap_shape_plan_t* plan;
  gcap_hold_t* id_hold;          // NULL: no id is bound. A graph of the id takes a part
  gcap_run_holds_t held;         // the run's
  struct gcap_run_holes* holes;  // the run's; NULL: its plan has none
} gcap_shapes_use_t;

// `max_without_id`: how many plans are kept that no id is bound to.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_shapes_create(size_t max_without_id, gcap_shapes_t** out_shapes) GCAP_NODISCARD;
// In a turn of the EPs, when no use is open. NULL is fine.
void gcap_shapes_destroy(gcap_shapes_t* shapes, const gcap_session_parts_t* parts);

// The plan for inputs of these shapes, which were checked; made if it is new. An id >= 0 is bound to the shapes. In a
// turn of the EPs.
//   FAILED_PRECONDITION  the id is bound to other shapes; or the plan is new, and the thread is capturing, whose scope
//                        fails
//   others               as gcap_shape_plan_create
gcap_status_t gcap_shapes_begin_use(gcap_shapes_t* shapes, const gcap_session_parts_t* parts, int id,
                                    const gcap_tensor_t* inputs, gcap_shapes_use_t* out_use) GCAP_NODISCARD;
void gcap_shapes_end_use(gcap_shapes_use_t* use);

// A graph of the id exists whose end nobody will tell: the id stays bound.
void gcap_shapes_pin(gcap_shapes_t* shapes, int id);

// Unbinds the id, as soon as no graph of any thread needs it. In a turn of the EPs.
void gcap_shapes_release(gcap_shapes_t* shapes, const gcap_session_parts_t* parts, int id);

#endif  // GCAP_KIT_SESSION_SHAPES_H_
