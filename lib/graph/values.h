// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// values.h: the values of one id, which may be others at each replay: what the runs are given, and what graphs take.
#ifndef GCAP_LIB_GRAPH_VALUES_H_
#define GCAP_LIB_GRAPH_VALUES_H_

#include "gcap/run.h"
#include "lib/contents/inner.h"

// Of a gcap_graph_moving_t, with whose buffers they are rehearsed, proved and set.
typedef struct gcap_graph_values {
  size_t count;
  gcap_changing_value_t* items;  // [count]; of a captured graph: as in its capture
  gcap_value_bytes_t* wanted;    // [count]; what a replay wants
} gcap_graph_values_t;

// Copies the values, whose names are copied too, checks them, and chooses what they are in rehearsals.
//   INVALID_ARGUMENT    as gcap_graph_manager_begin_run
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_graph_values_create(const gcap_graph_buffers_t* given, gcap_graph_values_t* out_values);
void gcap_graph_values_free(gcap_graph_values_t* values);

// Whether what `earlier` were in rehearsals shows what `values` would: all are the same.
bool gcap_graph_values_are_alike(const gcap_graph_values_t* values, const gcap_graph_values_t* earlier);

// Whether a run has as many values of the same sizes and types as its graph `id`, and all of them.
//   INVALID_ARGUMENT  it has not
gcap_status_t gcap_graph_values_check_same(const gcap_graph_values_t* values, int id,
                                           const gcap_graph_buffers_t* given);

// The next ones are of a captured graph. `relocation`: NULL if it was never to be moved.

// Notes what a replay wants. NULL: the present values.
void gcap_graph_values_aim(gcap_graph_values_t* values, const gcap_relocation_t* relocation,
                           const gcap_graph_value_t* given);
// The same for a run that has these.
void gcap_graph_values_aim_at(gcap_graph_values_t* values, const gcap_graph_values_t* run);
// Whether one is another one than the present one.
bool gcap_graph_values_move(const gcap_graph_values_t* values, const gcap_relocation_t* relocation);
// Why a graph that can be moved cannot have them; NULL: it can.
gcap_status_t gcap_graph_values_explain(const gcap_graph_values_t* values, const gcap_relocation_t* relocation);
bool gcap_graph_values_reach(const gcap_graph_values_t* values, const gcap_relocation_t* relocation);

#endif  // GCAP_LIB_GRAPH_VALUES_H_
