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
  GCAP_UNARY_SIN,
  GCAP_UNARY_TAN,
  GCAP_UNARY_ACOS,
  GCAP_UNARY_ASIN,
  GCAP_UNARY_ATAN,
  GCAP_UNARY_COSH,
  GCAP_UNARY_SINH,
  GCAP_UNARY_ACOSH,
  GCAP_UNARY_ASINH,
  GCAP_UNARY_ATANH,
  GCAP_UNARY_CEIL,
  GCAP_UNARY_FLOOR,
  GCAP_UNARY_ROUND,             // half to even
  GCAP_UNARY_SIGN,              // also of integers; a NaN stays a NaN
  GCAP_UNARY_ELU,               // x, or alpha * (exp(x) - 1) where x < 0
  GCAP_UNARY_SELU,              // beta * ELU(x)
  GCAP_UNARY_CELU,              // x, or alpha * (exp(x / alpha) - 1) where x < 0
  GCAP_UNARY_HARD_SIGMOID,      // max(0, min(1, alpha * x + beta)); a NaN stays a NaN
  GCAP_UNARY_HARD_SWISH,        // x * HARD_SIGMOID(x)
  GCAP_UNARY_SWISH,             // x / (1 + exp(-alpha * x))
  GCAP_UNARY_SOFTPLUS,          // log(1 + exp(x))
  GCAP_UNARY_SOFTSIGN,          // x / (1 + |x|)
  GCAP_UNARY_MISH,              // x * tanh(SOFTPLUS(x))
  GCAP_UNARY_THRESHOLDED_RELU,  // x where x > alpha, else 0
  GCAP_UNARY_SHRINK,   // x + alpha where x < -beta, x - alpha where x > beta, else 0; also of integers, truncated
  GCAP_UNARY_BIT_NOT,  // of integers
  GCAP_UNARY_IS_NAN,   // gives bool
  GCAP_UNARY_IS_INF,   // gives bool: of -inf whether alpha is not 0, of +inf whether beta is not 0
  GCAP_UNARY_END,
};

// y of the type of a and b, or bool where it is said. alpha is a parameter.
enum {
  GCAP_BINARY_LESS_OR_EQUAL = 100,  // gives bool
  GCAP_BINARY_GREATER_OR_EQUAL,     // gives bool
  GCAP_BINARY_PRELU,                // a * b where a < 0, else a
  GCAP_BINARY_XOR,                  // of bool alone
  GCAP_BINARY_MOD,                  // of integers: a modulo b, of the sign of b; a modulo 0 is 0
  GCAP_BINARY_FMOD,                 // the same of the sign of a, also of floats; there, a modulo 0 is a NaN
  GCAP_BINARY_BIT_AND,              // of integers
  GCAP_BINARY_BIT_OR,               // of integers
  GCAP_BINARY_BIT_XOR,              // of integers
  GCAP_BINARY_SHIFT_LEFT,           // of u8; by 8 and more: 0
  GCAP_BINARY_SHIFT_RIGHT,          // likewise
  GCAP_BINARY_GELU,                 // GELU(a + b)
  GCAP_BINARY_GELU_TANH,            // GELU_TANH(a + b)
  GCAP_BINARY_RUNNING_MEAN,         // (a * alpha + b) / (alpha + 1)
  GCAP_BINARY_END,
};

#endif  // GCAP_OPS_KERNELS_ELEMENTWISE_OPS_H_
