// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// where_kernels.h: the kernels that choose between two inputs, one for each size of an element.
#ifndef GCAP_OPS_KERNELS_WHERE_KERNELS_H_
#define GCAP_OPS_KERNELS_WHERE_KERNELS_H_

#include "ops/kernels/element.h"
#include "ops/kernels/index_map.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_where_params {
  const uint8_t* condition;
  const void* a;
  const void* b;
  void* y;               // dense
  gcap_index_map_t map;  // of condition, a and b
} gcap_where_params_t;

// K(size of an element, a type of this size)
#define GCAP_WHERE_KERNELS(K) K(1, uint8_t) K(2, uint16_t) K(4, uint32_t) K(8, uint64_t)

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(bytes, type) GCAP_KERNEL void gcap_kernel_where_##bytes(gcap_where_params_t params);
GCAP_WHERE_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_WHERE_KERNELS_H_
