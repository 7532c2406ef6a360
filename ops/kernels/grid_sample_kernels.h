// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// grid_sample_kernels.h: elements between those of an image, at places that a grid on the device names: the function of
// one output, of which the GPU's kernels and their CPU twins are made.
//
// A place on an axis is turned into a coordinate, padded, and spread over the 1, 2 or 4 elements beside it, which may
// be outside again. The order and the arithmetic are those of ONNX's reference, in f32.
#ifndef GCAP_OPS_KERNELS_GRID_SAMPLE_KERNELS_H_
#define GCAP_OPS_KERNELS_GRID_SAMPLE_KERNELS_H_

#include "ops/kernels/volume.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gcap_grid_mode {
  GCAP_GRID_LINEAR = 0,
  GCAP_GRID_NEAREST,
  GCAP_GRID_CUBIC,
} gcap_grid_mode_t;

// What is outside of the image.
typedef enum gcap_grid_padding {
  GCAP_GRID_ZEROS = 0,
  GCAP_GRID_BORDER,      // the nearest element
  GCAP_GRID_REFLECTION,  // the image in a mirror
} gcap_grid_padding_t;

// Of each side of the volume: the size of the input, and of the output. `grid` as [images, places, axes], the last axis
// of x first.
typedef struct gcap_grid_sample_params {
  const void* x;
  const void* grid;
  void* y;
  gcap_volume_t volume;
  int32_t axes;           // those of the volume that are there, the last ones
  int32_t mode, padding;  // gcap_grid_mode_t, gcap_grid_padding_t
  int32_t align_corners;
} gcap_grid_sample_params_t;

enum { GCAP_GRID_MAX_TAPS = 4 };

// The elements of one axis that an output is made of.
typedef struct gcap_grid_taps {
  int32_t count;
  int32_t at[GCAP_GRID_MAX_TAPS];  // -1: outside, and so 0
  float weight[GCAP_GRID_MAX_TAPS];
} gcap_grid_taps_t;

// Mirrors `x` at the borders until it is between them. Borders that are one leave it there.
GCAP_INLINE float gcap_grid_reflect(float x, float low, float high) {
  const float range = high - low, away = x < low ? low - x : x - high;
  if (!(range > 0.0f)) return low;
  if (!(away > 0.0f)) return x;
  const float times = floorf(away / range), rest = away - times * range;
  return (x < low) == (fmodf(times, 2.0f) == 0.0f) ? low + rest : high - rest;
}

// Where element `i` of an axis is; -1 for one that is outside and 0.
GCAP_INLINE int32_t gcap_grid_index(const gcap_grid_sample_params_t* p, int32_t size, int64_t i) {
  if (i >= 0 && i < size) return (int32_t)i;
  if (p->padding == GCAP_GRID_ZEROS) return -1;
  if (p->padding == GCAP_GRID_REFLECTION) {
    const float edge = p->align_corners ? 0.0f : 0.5f;
    i = (int64_t)gcap_grid_reflect((float)i, -edge, (float)size - 1.0f + edge);
  }
  return (int32_t)gcap_clip_int(i, 0, size - 1);
}

// The coordinate of a place in -1..1. What is no place in any image, a NaN too, is far before its begin.
GCAP_INLINE float gcap_grid_coordinate(const gcap_grid_sample_params_t* p, int32_t size, float place) {
  const float edge = p->align_corners ? 0.0f : 0.5f, low = -edge, high = (float)size - 1.0f + edge;
  float x = p->align_corners ? (place + 1.0f) / 2.0f * (float)(size - 1) : ((place + 1.0f) * (float)size - 1.0f) / 2.0f;
  if (p->mode == GCAP_GRID_NEAREST) x = rintf(x);
  if (x < low || x > high) {
    if (p->padding == GCAP_GRID_BORDER) x = gcap_clip_float(x, 0.0f, (float)(size - 1));
    if (p->padding == GCAP_GRID_REFLECTION) x = gcap_grid_reflect(x, low, high);
  }
  return fabsf(x) < 0x1p30f ? x : -0x1p30f;
}

// Keys' cubic convolution with a = -0.75, as ONNX has it: the weight of an element at a distance, which is up to 2.
GCAP_INLINE float gcap_grid_cubic(float distance) {
  const float a = -0.75f, d = fabsf(distance);
  if (d <= 1.0f) return ((a + 2.0f) * d - (a + 3.0f)) * d * d + 1.0f;
  return ((a * d - 5.0f * a) * d + 8.0f * a) * d - 4.0f * a;
}

GCAP_INLINE void gcap_grid_tap(const gcap_grid_sample_params_t* p, int32_t size, float place, gcap_grid_taps_t* taps) {
  const float x = gcap_grid_coordinate(p, size, place), whole = floorf(x);
  taps->count = p->mode == GCAP_GRID_NEAREST ? 1 : p->mode == GCAP_GRID_LINEAR ? 2 : 4;
  const int32_t before = p->mode == GCAP_GRID_CUBIC ? 1 : 0;
  for (int32_t i = 0; i < taps->count; ++i) {
    const float distance = x - whole - (float)(i - before);
    taps->at[i] = gcap_grid_index(p, size, (int64_t)whole + i - before);
    taps->weight[i] = p->mode == GCAP_GRID_NEAREST  ? 1.0f
                      : p->mode == GCAP_GRID_LINEAR ? 1.0f - fabsf(distance)
                                                    : gcap_grid_cubic(distance);
  }
}

// Output `i`.
#define GCAP_DEFINE_GRID_SAMPLE(T)                                                                               \
  GCAP_INLINE gcap_##T##_t gcap_grid_sample_##T(const gcap_grid_sample_params_t* p, int64_t i) {                 \
    const gcap_window_side_t* side = p->volume.side;                                                             \
    const gcap_volume_place_t place = gcap_volume_place(&p->volume, i);                                          \
    const gcap_##T##_t* x = (const gcap_##T##_t*)p->x +                                                          \
                            (place.image * p->volume.channels + place.channel) * gcap_volume_inputs(&p->volume); \
    int64_t at = place.image;                                                                                    \
    for (int k = 0; k < GCAP_VOLUME_AXES; ++k) at = at * side[k].output + place.at[k];                           \
    const gcap_##T##_t* grid = (const gcap_##T##_t*)p->grid + at * p->axes;                                      \
    gcap_grid_taps_t taps[GCAP_VOLUME_AXES];                                                                     \
    for (int k = 0; k < GCAP_VOLUME_AXES; ++k) {                                                                 \
      taps[k].count = 1;                                                                                         \
      taps[k].at[0] = 0;                                                                                         \
      taps[k].weight[0] = 1.0f;                                                                                  \
      const int from_end = GCAP_VOLUME_AXES - 1 - k;                                                             \
      if (from_end < p->axes) gcap_grid_tap(p, side[k].input, gcap_load_##T(grid[from_end]), &taps[k]);          \
    }                                                                                                            \
    float sum = 0.0f;                                                                                            \
    for (int32_t a = 0; a < taps[0].count; ++a) {                                                                \
      for (int32_t b = 0; b < taps[1].count; ++b) {                                                              \
        for (int32_t c = 0; c < taps[2].count; ++c) {                                                            \
          if (taps[0].at[a] < 0 || taps[1].at[b] < 0 || taps[2].at[c] < 0) continue;                             \
          const int64_t row = (int64_t)taps[0].at[a] * side[1].input + taps[1].at[b];                            \
          const float value = gcap_load_##T(GCAP_READ_ONLY(x + row * side[2].input + taps[2].at[c]));            \
          sum += value * taps[0].weight[a] * taps[1].weight[b] * taps[2].weight[c];                              \
        }                                                                                                        \
      }                                                                                                          \
    }                                                                                                            \
    return gcap_store_##T(sum);                                                                                  \
  }

// K(type)
#define GCAP_GRID_SAMPLE_KERNELS(K) K(f32) K(f16) K(bf16)

GCAP_GRID_SAMPLE_KERNELS(GCAP_DEFINE_GRID_SAMPLE)
#undef GCAP_DEFINE_GRID_SAMPLE

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(T) GCAP_KERNEL void gcap_kernel_grid_sample_##T(gcap_grid_sample_params_t params);
GCAP_GRID_SAMPLE_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_GRID_SAMPLE_KERNELS_H_
