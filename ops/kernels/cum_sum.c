// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Running sums: checks and the launch. No state.
#include "ops/kernels/cum_sum.h"

#include "lib/internal/check_argument.h"
#include "ops/kernels/cum_sum_kernels.h"
#include "ops/kernels/layout_copy.h"
#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"

#define ENTRY(T) [GCAP_DTYPE_OF_##T] = (const void*)gcap_kernel_cum_sum_##T,
static const void* const kernels[GCAP_NUM_DTYPES] = {GCAP_CUM_SUM_KERNELS(ENTRY)};

#define BIT(T) | 1u << GCAP_DTYPE_OF_##T
static const unsigned types = 0 GCAP_CUM_SUM_KERNELS(BIT);

gcap_status_t gcap_cum_sum(gcap_stream_t* stream, const gcap_tensor_t* x, int64_t given_axis, bool exclusive,
                           bool reverse, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(x);
  GCAP_RETURN_IF_NULL(y);
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype_among("a running sum", x->dtype, types));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("y", y, x->dtype, "the type of x"));
  GCAP_RETURN_IF_ERROR(gcap_check_shape("y", y, x->rank, x->shape, "the shape of x"));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, "x", x, /*or_same=*/false));
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_check_axis("axis", given_axis, x->rank, &axis));
  const int64_t count = gcap_tensor_elements(x);
  if (count == 0) return NULL;
  int64_t strides[GCAP_MAX_RANK];
  gcap_dense_strides(x, strides);
  gcap_cum_sum_params_t params = {.x = x->data,
                                  .y = y->data,
                                  .lines = count / x->shape[axis],
                                  .size = x->shape[axis],
                                  .inner = strides[axis],
                                  .exclusive = exclusive,
                                  .reverse = reverse};
  return gcap_op_launch(stream, kernels[x->dtype], params.lines, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &params);
}
