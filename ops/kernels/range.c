// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Ranges: checks and the launch. No state.
#include "ops/kernels/range.h"

#include "lib/internal/check_argument.h"
#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"
#include "ops/kernels/range_kernels.h"

#define ENTRY(T) [GCAP_DTYPE_OF_##T] = (const void*)gcap_kernel_range_##T,
static const void* const kernels[GCAP_NUM_DTYPES] = {GCAP_RANGE_KERNELS(ENTRY)};

#define BIT(T) | 1u << GCAP_DTYPE_OF_##T
static const unsigned types = 0 GCAP_RANGE_KERNELS(BIT);

static int64_t integer_of(gcap_dtype_t dtype, const void* number) {
  return dtype == GCAP_DTYPE_I32 ? *(const int32_t*)number : *(const int64_t*)number;
}

gcap_status_t gcap_range(gcap_stream_t* stream, const void* start, const void* delta, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(start);
  GCAP_RETURN_IF_NULL(delta);
  GCAP_RETURN_IF_NULL(y);
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype_among("a range", y->dtype, types));
  gcap_range_params_t params = {.y = y->data, .count = gcap_tensor_elements(y)};
  if (params.count == 0) return NULL;
  if (y->dtype == GCAP_DTYPE_F32) {
    params.start = *(const float*)start;
    params.delta = *(const float*)delta;
  } else {
    params.integer_start = integer_of(y->dtype, start);
    params.integer_delta = integer_of(y->dtype, delta);
  }
  return gcap_op_launch(stream, kernels[y->dtype], params.count, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &params);
}
