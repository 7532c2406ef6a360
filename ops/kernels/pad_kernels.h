// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pad_kernels.h: the kernels that pad and crop the axes of a tensor, for units of each size (layout_kernels.h). A
// tensor of one value is padding alone.
#ifndef GCAP_OPS_KERNELS_PAD_KERNELS_H_
#define GCAP_OPS_KERNELS_PAD_KERNELS_H_

#include <stdint.h>

#include "ops/kernels/layout_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

// What stands in the padding.
typedef enum gcap_pad_mode {
  GCAP_PAD_CONSTANT = 0,
  GCAP_PAD_REFLECT,  // x mirrored at its first and at its last element, neither of which is repeated
  GCAP_PAD_EDGE,     // the nearest element of x
  GCAP_PAD_WRAP,     // x once more
} gcap_pad_mode_t;

typedef struct gcap_pad_axis {
  int64_t size;    // of y
  int64_t begin;   // the index of y where x begins; negative: x begins before y
  int64_t extent;  // the elements of x
  int64_t stride;  // of x
} gcap_pad_axis_t;

// Sizes are in units, and y is dense.
typedef struct gcap_pad_params {
  gcap_unit16_t value;  // a unit of it is what stands in constant padding
  const void* x;
  void* y;
  int64_t count;  // of y
  gcap_pad_axis_t axes[GCAP_MAP_MAX_RANK];
  int32_t rank;    // at least 1
  int32_t narrow;  // 1: count fits into 31 bits
  int32_t mode;
} gcap_pad_params_t;

// The index on an axis of x that index `i` of y shows; -1 for the constant.
GCAP_INLINE int64_t gcap_pad_index(const gcap_pad_axis_t* axis, int32_t mode, int64_t i) {
  const int64_t at = i - axis->begin, last = axis->extent - 1;
  if (at >= 0 && at <= last) return at;
  switch (mode) {
    case GCAP_PAD_REFLECT: return at < 0 ? -at : 2 * last - at;
    case GCAP_PAD_EDGE: return at < 0 ? 0 : last;
    case GCAP_PAD_WRAP: return at < 0 ? last - (-at - 1) % axis->extent : at % axis->extent;
    default: return -1;
  }
}

// The unit of x that unit `i` of y shows; -1 for the constant.
GCAP_INLINE int64_t gcap_pad_source(const gcap_pad_params_t* p, int64_t i) {
  int64_t source = 0;
  for (int32_t k = p->rank - 1; k >= 0; --k) {
    const gcap_pad_axis_t* axis = &p->axes[k];
    // Divisions of 32 bits take a fraction of the time of those of 64.
    const int64_t outer = k == 0 ? 0 : p->narrow ? (int32_t)i / (int32_t)axis->size : i / axis->size;
    const int64_t at = gcap_pad_index(axis, p->mode, i - outer * axis->size);
    if (at < 0) return -1;
    source += at * axis->stride;
    i = outer;
  }
  return source;
}

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(bytes, type) GCAP_KERNEL void gcap_kernel_pad_##bytes(gcap_pad_params_t params);
GCAP_UNIT_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_PAD_KERNELS_H_
