// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// left.h: the nodes of a graph that an EP leaves to other EPs, by operator and reason, for one warning.
#ifndef GCAP_ORT_LEFT_H_
#define GCAP_ORT_LEFT_H_

#include <stddef.h>

struct gcap_ort_left_op;

// A list that grows.
typedef struct gcap_ort_left {
  struct gcap_ort_left_op* ops;
  size_t count;
  size_t room;
  size_t num_nodes;  // in all
} gcap_ort_left_t;

// Adds a node. `op_type` is not copied, `reason` is: "no kernel". Without memory the warning lacks the node.
void gcap_ort_left_add(gcap_ort_left_t* left, const char* op_type, const char* reason);
void gcap_ort_left_deinit(gcap_ort_left_t* left);
// The warning that the EP `name` leaves these of `num_nodes` nodes, for free(). NULL: nothing is left, or no memory.
char* gcap_ort_left_describe(const gcap_ort_left_t* left, const char* name, size_t num_nodes);

#endif  // GCAP_ORT_LEFT_H_
