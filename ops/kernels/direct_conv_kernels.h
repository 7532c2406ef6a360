// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// direct_conv_kernels.h: convolutions of images, one output at a time: the function of one output, of which the GPU's
// kernels and their CPU twins are made.
#ifndef GCAP_OPS_KERNELS_DIRECT_CONV_KERNELS_H_
#define GCAP_OPS_KERNELS_DIRECT_CONV_KERNELS_H_

#include "ops/kernels/image_window.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_direct_conv_params {
  const void* x;
  const void* weight;
  const void* bias;  // NULL: none
  void* y;           // dense, in the layout of x
  gcap_image_window_t window;
  gcap_image_strides_t x_strides, weight_strides;
  int32_t group_maps;      // channels of y in a group
  int32_t group_channels;  // channels of x in a group
  int32_t relu;
} gcap_direct_conv_params_t;

#ifdef __CUDACC__
#define GCAP_UNROLL_8 _Pragma("unroll 8")
#else
#define GCAP_UNROLL_8
#endif

// Output `i`: its terms are added in the order of the window's rows, of their columns, and of the channels. The
// channels are innermost since each of them is at a fixed distance, inside of the input or not with all others: loads
// of several are on their way at a time.
#define GCAP_DEFINE_DIRECT_CONV(T)                                                                                    \
  GCAP_INLINE gcap_##T##_t gcap_direct_conv_##T(const gcap_direct_conv_params_t* p, int64_t i) {                      \
    const gcap_window_side_t *rows = &p->window.h, *columns = &p->window.w;                                           \
    const gcap_image_place_t at = gcap_image_place(&p->window, i);                                                    \
    const int64_t first = (int64_t)(at.channel / p->group_maps) * p->group_channels;                                  \
    const gcap_##T##_t* x = (const gcap_##T##_t*)p->x + at.image * p->x_strides.image + first * p->x_strides.channel; \
    const gcap_##T##_t* weight = (const gcap_##T##_t*)p->weight + at.channel * p->weight_strides.image;               \
    const gcap_##T##_t* bias = (const gcap_##T##_t*)p->bias;                                                          \
    float sum = bias == NULL ? 0.0f : gcap_load_##T(GCAP_READ_ONLY(bias + at.channel));                               \
    for (int32_t row = 0; row < rows->kernel; ++row) {                                                                \
      const int32_t h = at.h + row * rows->dilation;                                                                  \
      if (h < 0 || h >= rows->input) continue;                                                                        \
      for (int32_t column = 0; column < columns->kernel; ++column) {                                                  \
        const int32_t w = at.w + column * columns->dilation;                                                          \
        if (w < 0 || w >= columns->input) continue;                                                                   \
        const gcap_##T##_t* a = x + h * p->x_strides.row + w * p->x_strides.column;                                   \
        const gcap_##T##_t* b = weight + row * p->weight_strides.row + column * p->weight_strides.column;             \
        GCAP_UNROLL_8                                                                                                 \
        for (int32_t channel = 0; channel < p->group_channels; ++channel) {                                           \
          sum += gcap_load_##T(GCAP_READ_ONLY(a)) * gcap_load_##T(GCAP_READ_ONLY(b));                                 \
          a += p->x_strides.channel;                                                                                  \
          b += p->weight_strides.channel;                                                                             \
        }                                                                                                             \
      }                                                                                                               \
    }                                                                                                                 \
    return gcap_store_##T(p->relu ? gcap_max_float(sum, 0.0f) : sum);                                                 \
  }

// K(type)
#define GCAP_DIRECT_CONV_KERNELS(K) K(f32) K(f16) K(bf16)

GCAP_DIRECT_CONV_KERNELS(GCAP_DEFINE_DIRECT_CONV)
#undef GCAP_DEFINE_DIRECT_CONV

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(T) GCAP_KERNEL void gcap_kernel_direct_conv_##T(gcap_direct_conv_params_t params);
GCAP_DIRECT_CONV_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_DIRECT_CONV_KERNELS_H_
