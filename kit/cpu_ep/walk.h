// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// walk.h: visits the elements of one shape in order, and says where the operands' elements are meanwhile.
#ifndef GCAP_KIT_CPU_EP_WALK_H_
#define GCAP_KIT_CPU_EP_WALK_H_

#include "gcap/tensor.h"

#define GCAP_CPU_MAX_OPERANDS 3

// An operand's stride is 0 along an axis where it is broadcast, or onto which it is reduced.
typedef struct gcap_cpu_walk {
  const gcap_tensor_t* over;
  int64_t index[GCAP_MAX_RANK];
  int num_operands;
  int64_t at[GCAP_CPU_MAX_OPERANDS];  // elements from the start of each operand
  int64_t strides[GCAP_CPU_MAX_OPERANDS][GCAP_MAX_RANK];
} gcap_cpu_walk_t;

// Begins a walk over the shape of `over`, without operands.
void gcap_cpu_walk_init(gcap_cpu_walk_t* walk, const gcap_tensor_t* over);
// Adds an operand of its own strides, by axis of `over`, that begins at element `at`.
void gcap_cpu_walk_add(gcap_cpu_walk_t* walk, const int64_t strides[GCAP_MAX_RANK], int64_t at);
// Adds a tensor that is broadcast to `over`.
void gcap_cpu_walk_add_broadcast(gcap_cpu_walk_t* walk, const gcap_tensor_t* tensor);
// Goes to the next element, from the last one to the first.
void gcap_cpu_walk_next(gcap_cpu_walk_t* walk);

// The strides of a tensor, in elements.
void gcap_cpu_strides(const gcap_tensor_t* tensor, int64_t out_strides[GCAP_MAX_RANK]);

#endif  // GCAP_KIT_CPU_EP_WALK_H_
