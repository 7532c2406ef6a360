// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// einsum.h: what the equation of an Einsum says of its inputs, for shapes and for kernels.
#ifndef GCAP_KIT_SHAPE_EINSUM_H_
#define GCAP_KIT_SHAPE_EINSUM_H_

#include <stdint.h>

#include "gcap/kit/model.h"
#include "gcap/status.h"
#include "gcap/tensor.h"

enum {
  GCAP_EINSUM_MAX_OPERANDS = 8,
  GCAP_EINSUM_MAX_LABELS = 52 + GCAP_MAX_RANK,  // letters, then the axes of an ellipsis
};

// The labels of an axis list.
typedef struct gcap_einsum_term {
  int rank;
  uint8_t labels[GCAP_MAX_RANK];
} gcap_einsum_term_t;

typedef struct gcap_einsum {
  int num_operands;
  gcap_einsum_term_t operands[GCAP_EINSUM_MAX_OPERANDS];  // a label may be there twice
  gcap_einsum_term_t out;                                 // each label once
} gcap_einsum_t;

// Reads the equation of a node with operands of these ranks. Returns what is wrong with the equation, a constant; NULL
// if nothing is.
const char* gcap_einsum_parse(const char* equation, const int* ranks, int num_operands, gcap_einsum_t* out_einsum);

// Reads the equation of a node, and the size of each label that is there. An axis of size 1 is broadcast to the axes of
// the same label in other operands.
//   INVALID_ARGUMENT  the equation is none, or does not fit the inputs; the message names the node and the equation
gcap_status_t gcap_einsum_read(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_einsum_t* out_einsum,
                               int64_t out_sizes[GCAP_EINSUM_MAX_LABELS]) GCAP_NODISCARD;

#endif  // GCAP_KIT_SHAPE_EINSUM_H_
