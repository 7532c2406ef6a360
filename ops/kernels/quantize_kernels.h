// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// quantize_kernels.h: numbers to integers of 8 bits and back, by a scale and a zero point: the function of one element,
// of which the GPU's kernels and their CPU twins are made.
#ifndef GCAP_OPS_KERNELS_QUANTIZE_KERNELS_H_
#define GCAP_OPS_KERNELS_QUANTIZE_KERNELS_H_

#include "ops/kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

// The type of a scale, and what a quotient is computed in. Parameters, and the same for all threads.
typedef enum gcap_scale {
  GCAP_SCALE_F32 = 0,
  GCAP_SCALE_F16,
  GCAP_SCALE_BF16,
} gcap_scale_t;

// x as [outer, axis, inner]. Which scale an element has is told by three steps: how far apart the scales of neighbours
// are on each of the three; on the axis, `block` elements share one.
typedef struct gcap_quantize_params {
  const void* x;
  const void* scale;
  const void* zero_point;  // of the integers' type; NULL: 0
  void* y;
  int64_t count;
  int64_t axis_size, inner, block;
  int64_t outer_step, axis_step, inner_step;
  int32_t scale_type;  // gcap_scale_t
  int32_t precision;   // gcap_scale_t
} gcap_quantize_params_t;

GCAP_INLINE int64_t gcap_scale_index(const gcap_quantize_params_t* p, int64_t i) {
  if (p->axis_step == 0) return 0;
  const int64_t row = i / p->inner, outer = row / p->axis_size, at = row - outer * p->axis_size;
  return outer * p->outer_step + at / p->block * p->axis_step + (i - row * p->inner) * p->inner_step;
}

GCAP_INLINE float gcap_load_scale(const gcap_quantize_params_t* p, int64_t i) {
  if (p->scale_type == GCAP_SCALE_F32) return gcap_load_f32(((const gcap_f32_t*)p->scale)[i]);
  if (p->scale_type == GCAP_SCALE_F16) return gcap_load_f16(((const gcap_f16_t*)p->scale)[i]);
  return gcap_load_bf16(((const gcap_bf16_t*)p->scale)[i]);
}

// A quotient of f16 or bf16 that is rounded to f32 first is none the worse for that: f32 has twice their bits, and two
// more (Figueroa, When is double rounding innocuous?, 1995).
GCAP_INLINE float gcap_in_precision(int32_t precision, float v) {
  if (precision == GCAP_SCALE_F32) return v;
  return precision == GCAP_SCALE_F16 ? gcap_load_f16(gcap_store_f16(v)) : gcap_load_bf16(gcap_store_bf16(v));
}
GCAP_INLINE float gcap_scaled(const gcap_quantize_params_t* p, float x, int64_t scale) {
  const float divisor = gcap_in_precision(p->precision, gcap_load_scale(p, scale));
  return gcap_in_precision(p->precision, gcap_in_precision(p->precision, x) / divisor);
}

// Rounds to the nearest, ties to even. A NaN is the zero point; what is too large is the nearest of low and high.
GCAP_INLINE int64_t gcap_quantized(float quotient, int64_t zero_point, int64_t low, int64_t high) {
  return gcap_clip_int(gcap_float_to_i32(rintf(quotient)) + zero_point, low, high);
}

// K(type of x, type of y, least, largest)
#define GCAP_QUANTIZE_KERNELS(K)  \
  K(f32, i8, INT8_MIN, INT8_MAX)  \
  K(f16, i8, INT8_MIN, INT8_MAX)  \
  K(bf16, i8, INT8_MIN, INT8_MAX) \
  K(f32, u8, 0, UINT8_MAX)        \
  K(f16, u8, 0, UINT8_MAX)        \
  K(bf16, u8, 0, UINT8_MAX)

#define GCAP_DEFINE_QUANTIZE(in, out, low, high)                                                                       \
  GCAP_INLINE gcap_##out##_t gcap_quantize_##in##_##out(const gcap_quantize_params_t* p, int64_t i) {                  \
    const int64_t s = gcap_scale_index(p, i);                                                                          \
    const int64_t zero_point = p->zero_point != NULL ? gcap_load_##out(((const gcap_##out##_t*)p->zero_point)[s]) : 0; \
    const float quotient = gcap_scaled(p, gcap_load_##in(((const gcap_##in##_t*)p->x)[i]), s);                         \
    return gcap_store_##out(gcap_quantized(quotient, zero_point, low, high));                                          \
  }
GCAP_QUANTIZE_KERNELS(GCAP_DEFINE_QUANTIZE)
#undef GCAP_DEFINE_QUANTIZE

// K(type of x, type of y)
#define GCAP_DEQUANTIZE_KERNELS(K) \
  K(i8, f32)                       \
  K(i8, f16)                       \
  K(i8, bf16)                      \
  K(u8, f32)                       \
  K(u8, f16)                       \
  K(u8, bf16)                      \
  K(i32, f32)                      \
  K(i32, f16)                      \
  K(i32, bf16)

#define GCAP_DEFINE_DEQUANTIZE(in, out)                                                                              \
  GCAP_INLINE gcap_##out##_t gcap_dequantize_##in##_##out(const gcap_quantize_params_t* p, int64_t i) {              \
    const int64_t s = gcap_scale_index(p, i);                                                                        \
    const int64_t zero_point = p->zero_point != NULL ? gcap_load_##in(((const gcap_##in##_t*)p->zero_point)[s]) : 0; \
    const int64_t steps = gcap_load_##in(((const gcap_##in##_t*)p->x)[i]) - zero_point;                              \
    return gcap_store_##out((float)steps * gcap_load_scale(p, s));                                                   \
  }
GCAP_DEQUANTIZE_KERNELS(GCAP_DEFINE_DEQUANTIZE)
#undef GCAP_DEFINE_DEQUANTIZE

typedef struct gcap_quantization_range_params {
  const float* extremes;  // the largest number, the smallest one
  float* scale;
  uint8_t* zero_point;
} gcap_quantization_range_params_t;

// The scale and the zero point with which u8 holds all from the smallest to the largest number, and 0.
GCAP_INLINE void gcap_quantization_range(const gcap_quantization_range_params_t* p) {
  const float high = gcap_max_float(p->extremes[0], 0.0f), low = gcap_min_float(p->extremes[1], 0.0f);
  const float scale = high == low ? 1.0f : (high - low) / 255.0f;
  *p->scale = scale;
  *p->zero_point = gcap_store_u8(gcap_quantized(-low / scale, 0, 0, UINT8_MAX));
}

// One thread is enough.
GCAP_KERNEL void gcap_kernel_quantization_range(gcap_quantization_range_params_t params);

// Any one-dimensional grid.
#define GCAP_DECLARE_QUANTIZE(in, out, low, high) \
  GCAP_KERNEL void gcap_kernel_quantize_##in##_##out(gcap_quantize_params_t params);
GCAP_QUANTIZE_KERNELS(GCAP_DECLARE_QUANTIZE)
#undef GCAP_DECLARE_QUANTIZE
#define GCAP_DECLARE_DEQUANTIZE(in, out) \
  GCAP_KERNEL void gcap_kernel_dequantize_##in##_##out(gcap_quantize_params_t params);
GCAP_DEQUANTIZE_KERNELS(GCAP_DECLARE_DEQUANTIZE)
#undef GCAP_DECLARE_DEQUANTIZE

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_QUANTIZE_KERNELS_H_
