// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// resize_kernels.h: resized tensors, one output at a time: the functions of one output, of which the GPU's kernels and
// their CPU twins are made.
//
// Coordinates are f32, in the order of operations that ONNX Runtime has: which of two neighbours is the nearest one
// hangs on the last bit. No multiplication is followed by an addition there, so that no compiler fuses the two.
#ifndef GCAP_OPS_KERNELS_RESIZE_KERNELS_H_
#define GCAP_OPS_KERNELS_RESIZE_KERNELS_H_

#include "ops/kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  GCAP_RESIZE_MAX_AXES = 8,
  GCAP_RESIZE_MAX_TAPS = 4,  // of one axis
};

// How a coordinate that lies between two elements is rounded.
enum {
  GCAP_RESIZE_FLOOR,
  GCAP_RESIZE_CEIL,
  GCAP_RESIZE_ROUND_PREFER_FLOOR,
  GCAP_RESIZE_ROUND_PREFER_CEIL,
};

// Element i of the output is at begin + (i + shift) * factor / divisor - back of the input.
typedef struct gcap_resize_axis {
  int64_t input, output;  // sizes
  int64_t stride;         // in x
  float begin, shift, factor, divisor, back;
  int32_t rounding;
  int32_t is_same;  // 1: element i of the output is that of the input
} gcap_resize_axis_t;

typedef struct gcap_resize_params {
  const void* x;
  void* y;  // dense
  int64_t outputs;
  int32_t rank;             // of axes
  int32_t narrow;           // 1: `outputs` fits into 31 bits
  int32_t taps;             // of an interpolated axis: 2, or of a cubic one 4
  int32_t exclude_outside;  // 1: taps outside of x have no weight
  float cubic_coeff;
  gcap_resize_axis_t axes[GCAP_RESIZE_MAX_AXES];
} gcap_resize_params_t;

// `*i` without its last digit to the base `size`, which is returned. Divisions of 32 bits take a fraction of the time
// of those of 64.
GCAP_INLINE int64_t gcap_resize_digit(int32_t narrow, int64_t size, int64_t* i) {
  const int64_t rest = narrow ? (int64_t)((uint32_t)*i / (uint32_t)size) : *i / size;
  const int64_t digit = *i - rest * size;
  *i = rest;
  return digit;
}

GCAP_INLINE float gcap_resize_coordinate(const gcap_resize_axis_t* axis, int64_t i) {
  return axis->begin + ((float)i + axis->shift) * axis->factor / axis->divisor - axis->back;
}

GCAP_INLINE int64_t gcap_resize_inside(const gcap_resize_axis_t* axis, int64_t i) {
  return gcap_clip_int(i, 0, axis->input - 1);
}

// The nearest element of the input.
GCAP_INLINE int64_t gcap_resize_nearest(const gcap_resize_axis_t* axis, int64_t i) {
  if (axis->is_same) return i;
  const float x = gcap_resize_coordinate(axis, i);
  float rounded = roundf(x);
  if (axis->rounding == GCAP_RESIZE_FLOOR ||
      (axis->rounding == GCAP_RESIZE_ROUND_PREFER_FLOOR && x == floorf(x) + 0.5f)) {
    rounded = floorf(x);
  } else if (axis->rounding == GCAP_RESIZE_CEIL) {
    rounded = ceilf(x);
  }
  return gcap_resize_inside(axis, gcap_float_to_i64(rounded));
}

// Where in x output `i` of a resize to the nearest element is.
GCAP_INLINE int64_t gcap_resize_offset(const gcap_resize_params_t* p, int64_t i) {
  int64_t offset = 0;
  for (int32_t k = p->rank - 1; k >= 0; --k) {
    const gcap_resize_axis_t* axis = &p->axes[k];
    offset += gcap_resize_nearest(axis, gcap_resize_digit(p->narrow, axis->output, &i)) * axis->stride;
  }
  return offset;
}

// The elements between which an output lies, on each axis that is interpolated.
typedef struct gcap_resize_taps {
  int64_t base;   // what the other axes add to an offset
  int32_t count;  // of axes
  int64_t offsets[GCAP_RESIZE_MAX_AXES][GCAP_RESIZE_MAX_TAPS];
  float weights[GCAP_RESIZE_MAX_AXES][GCAP_RESIZE_MAX_TAPS];
} gcap_resize_taps_t;

// R. Keys, "Cubic convolution interpolation for digital image processing", 1981, with ONNX's cubic_coeff_a. `t`: the
// distance from the second of the four elements.
GCAP_INLINE void gcap_resize_cubic(float a, float t, float* weights) {
  weights[0] = ((a * (t + 1.0f) - 5.0f * a) * (t + 1.0f) + 8.0f * a) * (t + 1.0f) - 4.0f * a;
  weights[1] = ((a + 2.0f) * t - (a + 3.0f)) * t * t + 1.0f;
  weights[2] = ((a + 2.0f) * (1.0f - t) - (a + 3.0f)) * (1.0f - t) * (1.0f - t) + 1.0f;
  weights[3] = ((a * (2.0f - t) - 5.0f * a) * (2.0f - t) + 8.0f * a) * (2.0f - t) - 4.0f * a;
}

GCAP_INLINE void gcap_resize_axis_taps(const gcap_resize_params_t* p, const gcap_resize_axis_t* axis, int64_t i,
                                       int64_t* offsets, float* weights) {
  const float x = gcap_resize_coordinate(axis, i), left = floorf(x), t = x - left;
  const int64_t first = gcap_float_to_i64(left) - (p->taps == 4 ? 1 : 0);
  if (p->taps == 4) {
    gcap_resize_cubic(p->cubic_coeff, t, weights);
  } else {
    weights[0] = 1.0f - t;
    weights[1] = t;
  }
  float sum = 0.0f;
  for (int32_t k = 0; k < p->taps; ++k) {
    const int64_t inside = gcap_resize_inside(axis, first + k);
    if (p->exclude_outside && inside != first + k) weights[k] = 0.0f;
    offsets[k] = inside * axis->stride;
    sum += weights[k];
  }
  for (int32_t k = 0; p->exclude_outside && k < p->taps; ++k) weights[k] /= sum;
}

GCAP_INLINE void gcap_resize_find_taps(const gcap_resize_params_t* p, int64_t i, gcap_resize_taps_t* taps) {
  taps->base = 0;
  taps->count = 0;
  for (int32_t k = p->rank - 1; k >= 0; --k) {
    const gcap_resize_axis_t* axis = &p->axes[k];
    const int64_t digit = gcap_resize_digit(p->narrow, axis->output, &i);
    if (axis->is_same) {
      taps->base += digit * axis->stride;
    } else {
      gcap_resize_axis_taps(p, axis, digit, taps->offsets[taps->count], taps->weights[taps->count]);
      ++taps->count;
    }
  }
}

// Output `i`, in the order of memory: the sum over all taps of all axes.
#define GCAP_DEFINE_RESIZE(T)                                                          \
  GCAP_INLINE gcap_##T##_t gcap_resize_##T(const gcap_resize_params_t* p, int64_t i) { \
    gcap_resize_taps_t taps;                                                           \
    gcap_resize_find_taps(p, i, &taps);                                                \
    const int32_t bits = p->taps / 2; /* of the number of a tap */                     \
    float sum = 0.0f;                                                                  \
    for (int32_t all = 0; all < 1 << (bits * taps.count); ++all) {                     \
      int64_t offset = taps.base;                                                      \
      float weight = 1.0f;                                                             \
      for (int32_t k = 0; k < taps.count; ++k) {                                       \
        const int32_t tap = all >> (bits * k) & (p->taps - 1);                         \
        offset += taps.offsets[k][tap];                                                \
        weight *= taps.weights[k][tap];                                                \
      }                                                                                \
      sum += weight * gcap_load_##T(((const gcap_##T##_t*)p->x)[offset]);              \
    }                                                                                  \
    return gcap_store_##T(sum);                                                        \
  }

// K(type)
#define GCAP_RESIZE_KERNELS(K) K(f32) K(f16) K(bf16)
// To the nearest element: K(bytes of an element, a type of this size)
#define GCAP_RESIZE_NEAREST_KERNELS(K) K(1, uint8_t) K(2, uint16_t) K(4, uint32_t) K(8, uint64_t)

GCAP_RESIZE_KERNELS(GCAP_DEFINE_RESIZE)
#undef GCAP_DEFINE_RESIZE

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(T) GCAP_KERNEL void gcap_kernel_resize_##T(gcap_resize_params_t params);
#define GCAP_DECLARE_NEAREST(bytes, type) \
  GCAP_KERNEL void gcap_kernel_resize_nearest_##bytes(gcap_resize_params_t params);
GCAP_RESIZE_KERNELS(GCAP_DECLARE_KERNEL)
GCAP_RESIZE_NEAREST_KERNELS(GCAP_DECLARE_NEAREST)
#undef GCAP_DECLARE_KERNEL
#undef GCAP_DECLARE_NEAREST

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_RESIZE_KERNELS_H_
