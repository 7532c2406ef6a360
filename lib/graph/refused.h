// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// refused.h: the steps of an id that captures have refused, and that are holes therefore (break_where_refused).
#ifndef GCAP_LIB_GRAPH_REFUSED_H_
#define GCAP_LIB_GRAPH_REFUSED_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "gcap/graph_holes.h"

// An id remembers so many. With as many, all its steps with break_where_refused are holes: each has failed a capture,
// and names that are new in each run would fail one for ever.
#define GCAP_GRAPH_MAX_REFUSED_STEPS ((size_t)64)

// A step: a function under a name. Without its data: those may be others in each run, and a loop over layers hands the
// same function over with those of each layer, of which each would fail a capture.
typedef struct gcap_graph_step_name {
  gcap_work_t work;
  char name[GCAP_GRAPH_NAME_BYTES];
} gcap_graph_step_name_t;

// A set of steps, which does not change. Shared by the slots of an id, and by lists of holes. NULL: of none.
typedef struct gcap_graph_refused {
  atomic_uint refs;
  size_t count;
  gcap_graph_step_name_t steps[];
} gcap_graph_refused_t;

void gcap_graph_step_name_write(const gcap_graph_hole_t* hole, gcap_graph_step_name_t* out_step);

// Whether the step is a hole.
bool gcap_graph_refused_has(const gcap_graph_refused_t* refused, const gcap_graph_step_name_t* step);
// A new set, which has the step besides. NULL: no host memory.
gcap_graph_refused_t* gcap_graph_refused_with(const gcap_graph_refused_t* refused, const gcap_graph_step_name_t* step);
gcap_graph_refused_t* gcap_graph_refused_retain(gcap_graph_refused_t* refused);
void gcap_graph_refused_release(gcap_graph_refused_t* refused);

#endif  // GCAP_LIB_GRAPH_REFUSED_H_
