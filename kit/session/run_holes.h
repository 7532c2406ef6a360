// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run_holes.h: the holes of a run, and of the graph that the run becomes.
#ifndef GCAP_KIT_SESSION_RUN_HOLES_H_
#define GCAP_KIT_SESSION_RUN_HOLES_H_

#include "kit/session/moving.h"

// What the functions of the holes find: where each value is, and memory on the host. From gcap_run_holes_create; made
// for one call of a run, so that its rehearsals and its capture make the same holes.
// Thread:   one at a time: the run's, and then whichever replays the graph.
// Lifetime: until the run has let go of `hold`, and so have the graph and the streams that were given a part.
typedef struct gcap_run_holes {
  gcap_hold_t* hold;       // begins the memory of all of this, and is that of the run on the host (steps.h)
  gcap_run_state_t state;  // of the functions
  struct gcap_run_hole* items;
  int* moved_slots;  // of each buffer of the run, whose address each replay says
  size_t num_moved;
  uint64_t num_runs;  // that have called the first function: the memory on the host was used by all of them
} gcap_run_holes_t;

// NULL in `*out_holes`: the plan has none.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_run_holes_create(const gcap_session_parts_t* parts, const gcap_shape_plan_t* plan,
                                    gcap_run_holes_t** out_holes) GCAP_NODISCARD;
// Lets go of the run's part. For GCAP_AT_SCOPE_END; NULL is fine.
void gcap_run_holes_let_go(gcap_run_holes_t** holes);

// The run was begun: on these buffers, NULL if it has none, and in this capture, NULL if it is eager. The graph of the
// capture gets a part.
//   errors of gcap_capture_retain
gcap_status_t gcap_run_holes_enter(gcap_run_holes_t* holes, const gcap_run_moving_t* moving,
                                   gcap_capture_t* capture) GCAP_NODISCARD;

// Issues the run's hole number `index`: the work takes the device memory of the hole's values, the function fills it.
//   errors of gcap_graph_hole_issue and of the EPs' kernels, copies and scratch
gcap_status_t gcap_run_holes_issue(gcap_run_holes_t* holes, gcap_run_state_t* run, int index) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_RUN_HOLES_H_
