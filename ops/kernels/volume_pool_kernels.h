// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// volume_pool_kernels.h: poolings of up to three axes, one output at a time: the function of one output, of which the
// GPU's kernels and their CPU twins are made. What is of two axes is done by direct_pool_kernels.h, faster.
#ifndef GCAP_OPS_KERNELS_VOLUME_POOL_KERNELS_H_
#define GCAP_OPS_KERNELS_VOLUME_POOL_KERNELS_H_

#include "ops/kernels/volume.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gcap_volume_pool_mode {
  GCAP_VOLUME_POOL_AVERAGE = 0,
  GCAP_VOLUME_POOL_MAX,
  GCAP_VOLUME_POOL_NORM,  // the p-th root of the sum of the p-th powers of magnitudes
} gcap_volume_pool_mode_t;

typedef struct gcap_volume_pool_params {
  const void* x;
  void* y;
  gcap_volume_t volume;
  int32_t mode;        // gcap_volume_pool_mode_t
  int32_t counts_pad;  // 1: an average counts pads as zeros
  float p;             // of a norm
  // Of pads behind the last element, which count. What a window reaches beyond them does not.
  int32_t pad_end[GCAP_VOLUME_AXES];
} gcap_volume_pool_params_t;

// The powers and roots of 1 and 2, which are nearly all that there are, are exact, or rounded once.
GCAP_INLINE float gcap_pool_power(float value, float p) {
  return p == 1.0f ? fabsf(value) : p == 2.0f ? value * value : powf(fabsf(value), p);
}
GCAP_INLINE float gcap_pool_root(float sum, float p) {
  return p == 1.0f ? sum : p == 2.0f ? sqrtf(sum) : powf(sum, 1.0f / p);
}

// Output `i`. A maximum of no element is -infinity.
#define GCAP_DEFINE_VOLUME_POOL(T)                                                                               \
  GCAP_INLINE gcap_##T##_t gcap_volume_pool_##T(const gcap_volume_pool_params_t* p, int64_t i) {                 \
    const gcap_window_side_t* side = p->volume.side;                                                             \
    const gcap_volume_place_t place = gcap_volume_place(&p->volume, i);                                          \
    const gcap_##T##_t* x = (const gcap_##T##_t*)p->x +                                                          \
                            (place.image * p->volume.channels + place.channel) * gcap_volume_inputs(&p->volume); \
    const int64_t taps = gcap_volume_taps(&p->volume);                                                           \
    float most = -INFINITY, sum = 0.0f, count = 0.0f;                                                            \
    for (int64_t tap = 0; tap < taps; ++tap) {                                                                   \
      int64_t rest = tap, offset = 0, step = 1;                                                                  \
      int is_inside = 1, is_counted = 1;                                                                         \
      for (int k = GCAP_VOLUME_AXES - 1; k >= 0; --k) {                                                          \
        const int64_t at =                                                                                       \
            (int64_t)place.at[k] * side[k].stride - side[k].pad + rest % side[k].kernel * side[k].dilation;      \
        is_inside = is_inside && at >= 0 && at < side[k].input;                                                  \
        is_counted = is_counted && at < (int64_t)side[k].input + p->pad_end[k];                                  \
        offset += at * step;                                                                                     \
        step *= side[k].input;                                                                                   \
        rest /= side[k].kernel;                                                                                  \
      }                                                                                                          \
      if (is_inside || (p->counts_pad && is_counted)) count += 1.0f;                                             \
      if (!is_inside) continue;                                                                                  \
      const float value = gcap_load_##T(GCAP_READ_ONLY(x + offset));                                             \
      most = gcap_max_float(most, value);                                                                        \
      sum += p->mode == GCAP_VOLUME_POOL_NORM ? gcap_pool_power(value, p->p) : value;                            \
    }                                                                                                            \
    if (p->mode == GCAP_VOLUME_POOL_NORM) return gcap_store_##T(gcap_pool_root(sum, p->p));                      \
    return gcap_store_##T(p->mode == GCAP_VOLUME_POOL_MAX ? most : sum / count);                                 \
  }

// K(type)
#define GCAP_VOLUME_POOL_KERNELS(K) K(f32) K(f16) K(bf16)

GCAP_VOLUME_POOL_KERNELS(GCAP_DEFINE_VOLUME_POOL)
#undef GCAP_DEFINE_VOLUME_POOL

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(T) GCAP_KERNEL void gcap_kernel_volume_pool_##T(gcap_volume_pool_params_t params);
GCAP_VOLUME_POOL_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_VOLUME_POOL_KERNELS_H_
