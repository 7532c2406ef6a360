// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// plan_holes.h: which steps of a plan a captured run leaves to holes.
#ifndef GCAP_KIT_SESSION_PLAN_HOLES_H_
#define GCAP_KIT_SESSION_PLAN_HOLES_H_

#include "kit/session/parts.h"

// Steps that follow one another: from `begin` on, before `end`.
typedef struct gcap_plan_hole {
  int begin, end;
  const char* name;  // of its first node
} gcap_plan_hole_t;

// Thread: nothing changes after the init. Zero means: no holes.
typedef struct gcap_plan_holes {
  gcap_plan_hole_t* items;
  int count;
  int* of_node;       // of each node: its hole; -1: none
  bool* is_in_graph;  // of each value, where it is made or bound: a step that is in no hole reads or makes it
} gcap_plan_holes_t;

// Finds the holes of a program that the policy allows, and tells them in the log. On failure `*out_holes` is empty.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_plan_holes_init(const gcap_session_parts_t* parts, const gcap_kernel_t* kernels,
                                   gcap_plan_holes_t* out_holes) GCAP_NODISCARD;
void gcap_plan_holes_deinit(gcap_plan_holes_t* holes);

#endif  // GCAP_KIT_SESSION_PLAN_HOLES_H_
