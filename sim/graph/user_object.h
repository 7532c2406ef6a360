// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// user_object.h: objects of the program that graphs keep.
#ifndef GCAP_SIM_GRAPH_USER_OBJECT_H_
#define GCAP_SIM_GRAPH_USER_OBJECT_H_

#include <stddef.h>

#include "sim/api/types.h"

typedef struct gcap_sim_object_ref {
  gcap_sim_user_object_t* object;
  unsigned int count;
} gcap_sim_object_ref_t;

typedef struct gcap_sim_object_refs {
  gcap_sim_object_ref_t* items;
  size_t count;
  size_t capacity;
} gcap_sim_object_refs_t;

void gcap_sim_object_refs_copy(gcap_sim_object_refs_t* to, const gcap_sim_object_refs_t* from);
void gcap_sim_object_refs_clear(gcap_sim_object_refs_t* refs);

#endif  // GCAP_SIM_GRAPH_USER_OBJECT_H_
