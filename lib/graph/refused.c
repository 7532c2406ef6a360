// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sets of refused steps. A step more makes another set, so a run reads the set that it began with while its id may get
// the next one. Locking: none; a set does not change, and its owners are counted.

#include "lib/graph/refused.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gcap_graph_step_name_write(const gcap_graph_hole_t* hole, gcap_graph_step_name_t* out_step) {
  out_step->work = hole->work;
  snprintf(out_step->name, sizeof(out_step->name), "%s", hole->name);
}

bool gcap_graph_refused_has(const gcap_graph_refused_t* refused, const gcap_graph_step_name_t* step) {
  if (refused == NULL) return false;
  if (refused->count >= GCAP_GRAPH_MAX_REFUSED_STEPS) return true;
  for (size_t i = 0; i < refused->count; ++i) {
    const gcap_graph_step_name_t* known = &refused->steps[i];
    if (known->work == step->work && strcmp(known->name, step->name) == 0) return true;
  }
  return false;
}

gcap_graph_refused_t* gcap_graph_refused_with(const gcap_graph_refused_t* refused, const gcap_graph_step_name_t* step) {
  const size_t count = refused != NULL ? refused->count : 0;
  gcap_graph_refused_t* more = malloc(sizeof(*more) + (count + 1) * sizeof(more->steps[0]));
  if (more == NULL) return NULL;
  atomic_init(&more->refs, 1);
  more->count = count + 1;
  if (count != 0) memcpy(more->steps, refused->steps, count * sizeof(more->steps[0]));
  more->steps[count] = *step;
  return more;
}

gcap_graph_refused_t* gcap_graph_refused_retain(gcap_graph_refused_t* refused) {
  if (refused != NULL) atomic_fetch_add_explicit(&refused->refs, 1, memory_order_relaxed);
  return refused;
}

void gcap_graph_refused_release(gcap_graph_refused_t* refused) {
  if (refused != NULL && atomic_fetch_sub_explicit(&refused->refs, 1, memory_order_acq_rel) == 1) free(refused);
}
