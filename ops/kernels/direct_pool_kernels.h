// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// direct_pool_kernels.h: poolings of images, one output at a time: the function of one output, of which the GPU's
// kernels and their CPU twins are made.
#ifndef GCAP_OPS_KERNELS_DIRECT_POOL_KERNELS_H_
#define GCAP_OPS_KERNELS_DIRECT_POOL_KERNELS_H_

#include "ops/kernels/image_window.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_direct_pool_params {
  const void* x;
  void* y;  // dense, in the layout of x
  gcap_image_window_t window;
  gcap_image_strides_t x_strides;
  int32_t is_max;            // else an average
  int32_t end_h, end_w;      // what is behind the input, up to here, counts as an element of an average
  int32_t begin_h, begin_w;  // and so does what is before it, from here
} gcap_direct_pool_params_t;

// Output `i`: in the order of the window's rows and of their columns. Without an element of the input, a maximum is
// -infinity.
#define GCAP_DEFINE_DIRECT_POOL(T)                                                                             \
  GCAP_INLINE gcap_##T##_t gcap_direct_pool_##T(const gcap_direct_pool_params_t* p, int64_t i) {               \
    const gcap_window_side_t *rows = &p->window.h, *columns = &p->window.w;                                    \
    const gcap_image_place_t at = gcap_image_place(&p->window, i);                                             \
    const gcap_##T##_t* x =                                                                                    \
        (const gcap_##T##_t*)p->x + at.image * p->x_strides.image + at.channel * p->x_strides.channel;         \
    float most = -INFINITY, sum = 0.0f, count = 0.0f;                                                          \
    for (int32_t row = 0; row < rows->kernel; ++row) {                                                         \
      const int32_t h = at.h + row * rows->dilation;                                                           \
      if (h < p->begin_h || h >= p->end_h) continue;                                                           \
      for (int32_t column = 0; column < columns->kernel; ++column) {                                           \
        const int32_t w = at.w + column * columns->dilation;                                                   \
        if (w < p->begin_w || w >= p->end_w) continue;                                                         \
        count += 1.0f;                                                                                         \
        if (h < 0 || h >= rows->input || w < 0 || w >= columns->input) continue;                               \
        const float value = gcap_load_##T(GCAP_READ_ONLY(x + h * p->x_strides.row + w * p->x_strides.column)); \
        most = gcap_max_float(most, value);                                                                    \
        sum += value;                                                                                          \
      }                                                                                                        \
    }                                                                                                          \
    return gcap_store_##T(p->is_max ? most : sum / count);                                                     \
  }

// K(type)
#define GCAP_DIRECT_POOL_KERNELS(K) K(f32) K(f16) K(bf16)

GCAP_DIRECT_POOL_KERNELS(GCAP_DEFINE_DIRECT_POOL)
#undef GCAP_DEFINE_DIRECT_POOL

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(T) GCAP_KERNEL void gcap_kernel_direct_pool_##T(gcap_direct_pool_params_t params);
GCAP_DIRECT_POOL_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_DIRECT_POOL_KERNELS_H_
