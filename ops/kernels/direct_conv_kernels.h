// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// direct_conv_kernels.h: convolutions of images, one output at a time: the function of one output, of which the GPU's
// kernels and their CPU twins are made.
#ifndef GCAP_OPS_KERNELS_DIRECT_CONV_KERNELS_H_
#define GCAP_OPS_KERNELS_DIRECT_CONV_KERNELS_H_

#include <stddef.h>

#include "ops/kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

// One axis of the window.
typedef struct gcap_direct_conv_side {
  int32_t input, output, kernel, stride, pad, dilation;  // pad: before the first element
} gcap_direct_conv_side_t;

// Distances between neighbours are in elements.
typedef struct gcap_direct_conv_params {
  const void* x;
  const void* weight;
  const void* bias;  // NULL: none
  void* y;           // dense, in the layout of x
  int64_t outputs;   // elements of y
  int32_t narrow;    // 1: `outputs` fits into 31 bits
  int32_t is_nhwc;
  int32_t relu;
  int32_t maps;            // channels of y
  int32_t group_maps;      // of them in a group
  int32_t group_channels;  // channels of x in a group
  gcap_direct_conv_side_t h, w;
  int64_t x_image, x_channel, x_row, x_column;
  int64_t weight_map, weight_channel, weight_row, weight_column;
} gcap_direct_conv_params_t;

#ifdef __CUDACC__
#define GCAP_READ_ONLY(pointer) __ldg(pointer)
#define GCAP_UNROLL(count) _Pragma(#count)
#else
#define GCAP_READ_ONLY(pointer) (*(pointer))
#define GCAP_UNROLL(count)
#endif

// `*i` without its last digit to the base `size`, which is returned. Divisions of 32 bits take a fraction of the time
// of those of 64.
GCAP_INLINE int32_t gcap_direct_conv_digit(int32_t narrow, int32_t size, int64_t* i) {
  const int64_t rest = narrow ? (int64_t)((uint32_t)*i / (uint32_t)size) : *i / size;
  const int32_t digit = (int32_t)(*i - rest * size);
  *i = rest;
  return digit;
}

// Where output `i` is, and where its window begins, which may be before the input.
typedef struct gcap_direct_conv_place {
  int32_t map, h, w;
  int64_t x;  // the offset of its image's and its group's first element
} gcap_direct_conv_place_t;

GCAP_INLINE gcap_direct_conv_place_t gcap_direct_conv_place(const gcap_direct_conv_params_t* p, int64_t i) {
  gcap_direct_conv_place_t at;
  at.map = p->is_nhwc ? gcap_direct_conv_digit(p->narrow, p->maps, &i) : 0;
  at.w = gcap_direct_conv_digit(p->narrow, p->w.output, &i) * p->w.stride - p->w.pad;
  at.h = gcap_direct_conv_digit(p->narrow, p->h.output, &i) * p->h.stride - p->h.pad;
  if (!p->is_nhwc) at.map = gcap_direct_conv_digit(p->narrow, p->maps, &i);
  at.x = i * p->x_image + (int64_t)(at.map / p->group_maps) * p->group_channels * p->x_channel;
  return at;
}

// Output `i`: its terms are added in the order of the window's rows, of their columns, and of the channels. The
// channels are innermost since each of them is at a fixed distance, inside of the input or not with all others: loads
// of several are on their way at a time.
#define GCAP_DEFINE_DIRECT_CONV(T)                                                               \
  GCAP_INLINE gcap_##T##_t gcap_direct_conv_##T(const gcap_direct_conv_params_t* p, int64_t i) { \
    const gcap_direct_conv_place_t at = gcap_direct_conv_place(p, i);                            \
    const gcap_##T##_t* x = (const gcap_##T##_t*)p->x + at.x;                                    \
    const gcap_##T##_t* weight = (const gcap_##T##_t*)p->weight + at.map * p->weight_map;        \
    const gcap_##T##_t* bias = (const gcap_##T##_t*)p->bias;                                     \
    float sum = bias == NULL ? 0.0f : gcap_load_##T(GCAP_READ_ONLY(bias + at.map));              \
    for (int32_t row = 0; row < p->h.kernel; ++row) {                                            \
      const int32_t h = at.h + row * p->h.dilation;                                              \
      if (h < 0 || h >= p->h.input) continue;                                                    \
      for (int32_t column = 0; column < p->w.kernel; ++column) {                                 \
        const int32_t w = at.w + column * p->w.dilation;                                         \
        if (w < 0 || w >= p->w.input) continue;                                                  \
        const gcap_##T##_t* a = x + h * p->x_row + w * p->x_column;                              \
        const gcap_##T##_t* b = weight + row * p->weight_row + column * p->weight_column;        \
        GCAP_UNROLL(unroll 8)                                                                    \
        for (int32_t channel = 0; channel < p->group_channels; ++channel) {                      \
          sum += gcap_load_##T(GCAP_READ_ONLY(a)) * gcap_load_##T(GCAP_READ_ONLY(b));            \
          a += p->x_channel;                                                                     \
          b += p->weight_channel;                                                                \
        }                                                                                        \
      }                                                                                          \
    }                                                                                            \
    return gcap_store_##T(p->relu ? gcap_max_float(sum, 0.0f) : sum);                            \
  }

// K(type)
#define GCAP_DIRECT_CONV_KERNELS(K) K(f32) K(f16) K(bf16)

GCAP_DIRECT_CONV_KERNELS(GCAP_DEFINE_DIRECT_CONV)

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(T) GCAP_KERNEL void gcap_kernel_direct_conv_##T(gcap_direct_conv_params_t params);
GCAP_DIRECT_CONV_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_DIRECT_CONV_KERNELS_H_
