// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// quantize.h: integers of 8 bits for numbers, and numbers for them, by scales and zero points.
#ifndef GCAP_OPS_KERNELS_QUANTIZE_H_
#define GCAP_OPS_KERNELS_QUANTIZE_H_

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// What scales are of: all of x (one element), each index on `axis` (one axis), or `block_size` neighbours on `axis`
// (block_size > 0, the rank of x). `zero_point` is NULL, or of the scale's shape and of the integers' type.
typedef struct gcap_quantization {
  const gcap_tensor_t* scale;  // f32, f16 or bf16
  const gcap_tensor_t* zero_point;
  int axis;  // 0..rank - 1, where there is more than one scale
  int64_t block_size;
  gcap_dtype_t precision;  // f32, f16 or bf16: what x and the scale are rounded to, and then their quotient
} gcap_quantization_t;

// y = x / scale, rounded to nearest even, + zero_point, at least and at most what y can hold. x is f32, f16 or bf16, y
// is i8 or u8. A NaN gives the zero point.
//   INVALID_ARGUMENT  types or shapes that are not as said above; the message names them
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
gcap_status_t gcap_quantize(gcap_stream_t* stream, const gcap_quantization_t* how, const gcap_tensor_t* x,
                            const gcap_tensor_t* y) GCAP_NODISCARD;

// y = (x - zero_point) * scale, rounded once. x is i8, u8 or i32, y is f32, f16 or bf16. `precision` is not read.
// Errors as above.
gcap_status_t gcap_dequantize(gcap_stream_t* stream, const gcap_quantization_t* how, const gcap_tensor_t* x,
                              const gcap_tensor_t* y) GCAP_NODISCARD;

// A scale (f32) and a zero point (u8), one element each, with which u8 holds what lies between two numbers, and 0:
// `extremes`, f32, of two elements, has the larger one first. Equal ones give a scale of 1. Errors as above.
gcap_status_t gcap_quantization_of(gcap_stream_t* stream, const gcap_tensor_t* extremes, const gcap_tensor_t* scale,
                                   const gcap_tensor_t* zero_point) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_QUANTIZE_H_
