// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// conv_transpose_kernels.h: transposed convolutions of up to three axes, one output at a time: the function of one
// output, of which the GPU's kernels and their CPU twins are made. An output collects what a convolution would spread:
// no two threads write one element, so that sums have one order.
#ifndef GCAP_OPS_KERNELS_CONV_TRANSPOSE_KERNELS_H_
#define GCAP_OPS_KERNELS_CONV_TRANSPOSE_KERNELS_H_

#include "ops/kernels/volume.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_conv_transpose_params {
  const void* x;       // [images, groups * group_channels, inputs]
  const void* weight;  // [groups * group_channels, group_maps, taps]
  const void* bias;    // of each channel of y; NULL: none
  void* y;
  gcap_volume_t volume;    // its window goes over y, and has a pad before the first element of y
  int32_t group_maps;      // channels of y in a group
  int32_t group_channels;  // channels of x in a group
} gcap_conv_transpose_params_t;

// The element of x that place `tap` of the window spreads to element `at` of y; -1: none.
GCAP_INLINE int64_t gcap_conv_transpose_from(const gcap_window_side_t* side, int32_t at, int32_t tap) {
  const int64_t way = (int64_t)at + side->pad - (int64_t)tap * side->dilation;
  if (way < 0 || way % side->stride != 0) return -1;
  return way / side->stride < side->input ? way / side->stride : -1;
}

// Output `i`: the channels are innermost, since each of them is at a fixed distance: loads of several are on their way
// at a time.
#define GCAP_DEFINE_CONV_TRANSPOSE(T)                                                                                \
  GCAP_INLINE gcap_##T##_t gcap_conv_transpose_##T(const gcap_conv_transpose_params_t* p, int64_t i) {               \
    const gcap_window_side_t* side = p->volume.side;                                                                 \
    const gcap_volume_place_t place = gcap_volume_place(&p->volume, i);                                              \
    const int64_t inputs = gcap_volume_inputs(&p->volume), taps = gcap_volume_taps(&p->volume);                      \
    const int64_t group = place.channel / p->group_maps, groups = p->volume.channels / p->group_maps;                \
    const gcap_##T##_t* x = (const gcap_##T##_t*)p->x + (place.image * groups + group) * p->group_channels * inputs; \
    const gcap_##T##_t* weight =                                                                                     \
        (const gcap_##T##_t*)p->weight +                                                                             \
        (group * p->group_channels * p->group_maps + (place.channel - group * p->group_maps)) * taps;                \
    const gcap_##T##_t* bias = (const gcap_##T##_t*)p->bias;                                                         \
    float sum = bias == NULL ? 0.0f : gcap_load_##T(GCAP_READ_ONLY(bias + place.channel));                           \
    for (int32_t d = 0; d < side[0].kernel; ++d) {                                                                   \
      const int64_t from_d = gcap_conv_transpose_from(&side[0], place.at[0], d);                                     \
      if (from_d < 0) continue;                                                                                      \
      for (int32_t h = 0; h < side[1].kernel; ++h) {                                                                 \
        const int64_t from_h = gcap_conv_transpose_from(&side[1], place.at[1], h);                                   \
        if (from_h < 0) continue;                                                                                    \
        for (int32_t w = 0; w < side[2].kernel; ++w) {                                                               \
          const int64_t from_w = gcap_conv_transpose_from(&side[2], place.at[2], w);                                 \
          if (from_w < 0) continue;                                                                                  \
          const gcap_##T##_t* a = x + (from_d * side[1].input + from_h) * side[2].input + from_w;                    \
          const gcap_##T##_t* b = weight + ((int64_t)d * side[1].kernel + h) * side[2].kernel + w;                   \
          float part = 0.0f;                                                                                         \
          for (int32_t channel = 0; channel < p->group_channels; ++channel) {                                        \
            part += gcap_load_##T(GCAP_READ_ONLY(a)) * gcap_load_##T(GCAP_READ_ONLY(b));                             \
            a += inputs;                                                                                             \
            b += p->group_maps * taps;                                                                               \
          }                                                                                                          \
          sum += part;                                                                                               \
        }                                                                                                            \
      }                                                                                                              \
    }                                                                                                                \
    return gcap_store_##T(sum);                                                                                      \
  }

// K(type)
#define GCAP_CONV_TRANSPOSE_KERNELS(K) K(f32) K(f16) K(bf16)

GCAP_CONV_TRANSPOSE_KERNELS(GCAP_DEFINE_CONV_TRANSPOSE)
#undef GCAP_DEFINE_CONV_TRANSPOSE

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(T) GCAP_KERNEL void gcap_kernel_conv_transpose_##T(gcap_conv_transpose_params_t params);
GCAP_CONV_TRANSPOSE_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_CONV_TRANSPOSE_KERNELS_H_
