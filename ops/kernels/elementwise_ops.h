// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// elementwise_ops.h: the operators of one and of two inputs that gcap/kit/ops/elementwise.h does not name as a
// gcap_unary_op_t or a gcap_binary_op_t. Their numbers stand behind those.
#ifndef GCAP_OPS_KERNELS_ELEMENTWISE_OPS_H_
#define GCAP_OPS_KERNELS_ELEMENTWISE_OPS_H_

// y of the type of x, or bool where it is said. alpha and beta are parameters.
enum {
  GCAP_UNARY_LEAKY_RELU = 100,
  GCAP_UNARY_CLIP,
  GCAP_UNARY_COS,
  GCAP_UNARY_FLOOR,
  GCAP_UNARY_HARD_SIGMOID,  // max(0, min(1, alpha * x + beta)); a NaN stays a NaN
  GCAP_UNARY_IS_NAN,        // gives bool
  GCAP_UNARY_END,
};

// y of the type of a and b, or bool where it is said.
enum {
  GCAP_BINARY_LESS_OR_EQUAL = 100,  // gives bool
  GCAP_BINARY_GREATER_OR_EQUAL,     // gives bool
  GCAP_BINARY_PRELU,                // a where a >= 0, else a * b
  GCAP_BINARY_END,
};

#endif  // GCAP_OPS_KERNELS_ELEMENTWISE_OPS_H_
