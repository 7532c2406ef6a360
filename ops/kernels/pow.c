// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The launch of powers of two types. No state.
#include "ops/kernels/pow.h"

#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"
#include "ops/kernels/pow_kernels.h"

#define ENTRY(T, real, whole) [GCAP_DTYPE_OF_##T] = (const void*)gcap_kernel_pow_##T,
static const void* const kernels[GCAP_NUM_DTYPES] = {GCAP_POW_KERNELS(ENTRY)};

static const gcap_exponent_t exponents[GCAP_NUM_DTYPES] = {[GCAP_DTYPE_F32] = GCAP_EXPONENT_F32,
                                                           [GCAP_DTYPE_F16] = GCAP_EXPONENT_F16,
                                                           [GCAP_DTYPE_BF16] = GCAP_EXPONENT_BF16,
                                                           [GCAP_DTYPE_I64] = GCAP_EXPONENT_I64,
                                                           [GCAP_DTYPE_I32] = GCAP_EXPONENT_I32};

#define BIT(T, real, whole) | 1u << GCAP_DTYPE_OF_##T
unsigned gcap_pow_types(void) { return 0 GCAP_POW_KERNELS(BIT); }

gcap_status_t gcap_pow(gcap_stream_t* stream, const gcap_tensor_t* a, const gcap_tensor_t* b, const gcap_tensor_t* y,
                       const gcap_index_map_t* map) {
  gcap_pow_params_t params = {
      .a = a->data, .b = b->data, .y = y->data, .map = *map, .exponent = (int32_t)exponents[b->dtype]};
  return gcap_op_launch(stream, kernels[a->dtype], map->count, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &params);
}
