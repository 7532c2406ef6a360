// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// elementwise.h: operators that compute each element of the output from the elements at its place in the inputs.
#ifndef GCAP_KIT_OPS_ELEMENTWISE_H_
#define GCAP_KIT_OPS_ELEMENTWISE_H_

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// Each call launches one kernel on `stream`, and none if the output has no elements.
// Thread:   one thread at a time for each stream.
// Capture:  legal: one kernel node, no allocation.
// Lifetime: tensors are read during the call. Their memory is device memory, of the stream's device or reachable from
//           it, and stays valid until the work is done, or as long as the work's graph.
//
// Tensors.  Up to 2^40 elements. An address is a multiple of the size of an element; no more is needed. `data` may be
//           NULL if there are no elements. The output may be an input of the same shape and the same size of an
//           element; else it shares no byte with an input.
// Numbers.  f32, f16 and bf16 are computed in f32 and rounded once, to nearest even; overflow gives infinity.
//           Integers (i64, i32, i8 and u8) wrap around. Elements of bool are read as "not 0" and written as 0 or 1.
// Broadcasting, where there are several inputs: as NumPy and ONNX do. Shapes are aligned at the last axis; a dimension
//           that is 1, or absent, is repeated. The output has the broadcast shape.

typedef enum gcap_binary_op {
  GCAP_BINARY_ADD = 0,  // a + b
  GCAP_BINARY_SUB,      // a - b
  GCAP_BINARY_MUL,      // a * b
  GCAP_BINARY_DIV,      // a / b; integers truncate, and a / 0 is 0
  GCAP_BINARY_POW,      // a to the power of b; integers: a negative power is 0, but for a = 1 and a = -1; an integer to
                        // a power that is not whole truncates, NaN gives 0
  GCAP_BINARY_MIN,      // a NaN if one of the two is a NaN
  GCAP_BINARY_MAX,
  GCAP_BINARY_EQUAL,  // these compare, and give bool
  GCAP_BINARY_LESS,
  GCAP_BINARY_GREATER,
  GCAP_BINARY_AND,  // these are for bool alone
  GCAP_BINARY_OR,
} gcap_binary_op_t;

// y = op(a, b), with broadcasting. `a` and `b` are of one type: f32, f16, bf16 or integers; for EQUAL also bool; for
// AND and OR only bool; for POW each of the two is f32, f16, bf16, i64 or i32. `y` is of the type of `a`, or bool if
// the operator compares.
//   INVALID_ARGUMENT  a NULL argument, an unknown operator, or a tensor that is not as said above; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
GCAP_API gcap_status_t gcap_binary(gcap_stream_t* stream, gcap_binary_op_t op, const gcap_tensor_t* a,
                                   const gcap_tensor_t* b, const gcap_tensor_t* y) GCAP_NODISCARD;

typedef enum gcap_unary_op {
  GCAP_UNARY_RELU = 0,   // max(x, 0); a NaN stays a NaN
  GCAP_UNARY_GELU,       // x / 2 * (1 + erf(x / sqrt(2)))
  GCAP_UNARY_GELU_TANH,  // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
  GCAP_UNARY_SIGMOID,    // 1 / (1 + exp(-x))
  GCAP_UNARY_TANH,
  GCAP_UNARY_ERF,
  GCAP_UNARY_EXP,
  GCAP_UNARY_LOG,
  GCAP_UNARY_SQRT,
  GCAP_UNARY_NEG,
  GCAP_UNARY_ABS,
  GCAP_UNARY_NOT,         // for bool alone
  GCAP_UNARY_RECIPROCAL,  // 1 / x
} gcap_unary_op_t;

// y = op(x), of the shape and type of `x`: f32, f16 or bf16; for RELU, NEG and ABS also integers; for NOT only bool.
//   INVALID_ARGUMENT  a NULL argument, an unknown operator, or a tensor that is not as said above; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
GCAP_API gcap_status_t gcap_unary(gcap_stream_t* stream, gcap_unary_op_t op, const gcap_tensor_t* x,
                                  const gcap_tensor_t* y) GCAP_NODISCARD;

// y = x where x >= 0, else alpha * x; f32, f16 or bf16.
//   INVALID_ARGUMENT  a NULL argument, or a tensor that is not as said above; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
GCAP_API gcap_status_t gcap_leaky_relu(gcap_stream_t* stream, float alpha, const gcap_tensor_t* x,
                                       const gcap_tensor_t* y) GCAP_NODISCARD;

// y = min(max(x, low), high); f32, f16, bf16 or integers. A NaN stays a NaN. -INFINITY and INFINITY are no bounds. For
// integers, `low` is rounded up and `high` down to an integer of the type.
//   INVALID_ARGUMENT  a NULL argument, a bound that is a NaN, or a tensor that is not as said above; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
GCAP_API gcap_status_t gcap_clip(gcap_stream_t* stream, double low, double high, const gcap_tensor_t* x,
                                 const gcap_tensor_t* y) GCAP_NODISCARD;

// y = condition ? a : b, with broadcasting. `condition` is bool; `a`, `b` and `y` are of one type, any.
//   INVALID_ARGUMENT  a NULL argument, or a tensor that is not as said above; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
GCAP_API gcap_status_t gcap_where(gcap_stream_t* stream, const gcap_tensor_t* condition, const gcap_tensor_t* a,
                                  const gcap_tensor_t* b, const gcap_tensor_t* y) GCAP_NODISCARD;

// y = x in the type of `y`, both any; a copy if they are of one type. To a floating-point type: rounded once, to
// nearest even. From a floating-point to an integer type: truncated; a NaN gives 0, and what is out of range the
// nearest value of the type. From an integer to a smaller one: the low bits. To bool: whether x is not 0, so a NaN
// gives true.
//   INVALID_ARGUMENT  a NULL argument, or a tensor that is not as said above; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
GCAP_API gcap_status_t gcap_cast(gcap_stream_t* stream, const gcap_tensor_t* x, const gcap_tensor_t* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_OPS_ELEMENTWISE_H_
