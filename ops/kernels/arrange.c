// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Tensors whose elements are chosen by where they are: checks and launches. No state.
#include "ops/kernels/arrange.h"

#include <string.h>

#include "lib/internal/check_argument.h"
#include "ops/kernels/layout_copy.h"
#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"

#define TRIANGLE(bytes, type) [bytes] = (const void*)gcap_kernel_triangle_##bytes,
#define ONE_HOT(bytes, type) [bytes] = (const void*)gcap_kernel_one_hot_##bytes,
#define REVERSE(bytes, type) [bytes] = (const void*)gcap_kernel_reverse_##bytes,
static const void* const triangles[] = {GCAP_UNIT_KERNELS(TRIANGLE)};
static const void* const one_hots[] = {GCAP_UNIT_KERNELS(ONE_HOT)};
static const void* const reversals[] = {GCAP_UNIT_KERNELS(REVERSE)};

static gcap_status_t launch(gcap_stream_t* stream, const void* kernel, int64_t count, void* params) {
  return gcap_op_launch(stream, kernel, count, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, params);
}

// y is of the type and the shape of x, and apart from it.
static gcap_status_t check_like(const gcap_tensor_t* x, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("y", y, x->dtype, "the type of x"));
  GCAP_RETURN_IF_ERROR(gcap_check_shape("y", y, x->rank, x->shape, "the shape of x"));
  return gcap_check_apart("y", y, "x", x, /*or_same=*/false);
}

static gcap_status_t check_rank(const gcap_tensor_t* y) {
  if (y->rank >= 2) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "y.rank is %d, allowed are 2..%d", y->rank, GCAP_MAX_RANK);
}

gcap_status_t gcap_triangle(gcap_stream_t* stream, gcap_triangle_t triangle, int64_t k, const gcap_tensor_t* x,
                            const void* value, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(y);
  if (x == NULL) GCAP_RETURN_IF_NULL(value);
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(check_rank(y));
  if (x != NULL) GCAP_RETURN_IF_ERROR(check_like(x, y));
  gcap_triangle_params_t params = {.y = y->data,
                                   .count = gcap_tensor_elements(y),
                                   .rows = y->shape[y->rank - 2],
                                   .columns = y->shape[y->rank - 1],
                                   .k = k,
                                   .triangle = (int32_t)triangle};
  if (params.count == 0) return NULL;
  const size_t bytes = gcap_dtype_bytes(y->dtype);
  if (x != NULL) params.x = x->data;
  if (x == NULL) memcpy(&params.value, value, bytes);
  return launch(stream, triangles[bytes], params.count, &params);
}

gcap_status_t gcap_one_hot(gcap_stream_t* stream, const gcap_tensor_t* indices, const gcap_tensor_t* values, int axis,
                           const gcap_tensor_t* y) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(indices);
  GCAP_RETURN_IF_NULL(values);
  GCAP_RETURN_IF_NULL(y);
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("indices", indices));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("values", values));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype_among("one-hot of indices", indices->dtype,
                                              1u << GCAP_DTYPE_I64 | 1u << GCAP_DTYPE_I32 | 1u << GCAP_DTYPE_F32));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("values", values, y->dtype, "the type of y"));
  GCAP_RETURN_IF_ERROR(gcap_check_shape("values", values, 1, (const int64_t[]){2}, "off and on"));
  GCAP_RETURN_IF_ERROR(gcap_check_axis("axis", axis, y->rank, &axis));
  int64_t shape[GCAP_MAX_RANK] = {0}, inner = 1;
  for (int i = 0, at = 0; i < y->rank; ++i) {
    if (i != axis) shape[at++] = y->shape[i];
    if (i > axis) inner *= y->shape[i];
  }
  GCAP_RETURN_IF_ERROR(gcap_check_shape("indices", indices, y->rank - 1, shape, "the shape of y without the axis"));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, "indices", indices, /*or_same=*/false));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, "values", values, /*or_same=*/false));
  gcap_one_hot_params_t params = {.indices = indices->data,
                                  .values = values->data,
                                  .y = y->data,
                                  .count = gcap_tensor_elements(y),
                                  .depth = y->shape[axis],
                                  .inner = inner,
                                  .index_bytes = (int32_t)gcap_dtype_bytes(indices->dtype),
                                  .is_float = indices->dtype == GCAP_DTYPE_F32};
  if (params.count == 0) return NULL;
  return launch(stream, one_hots[gcap_dtype_bytes(y->dtype)], params.count, &params);
}

gcap_status_t gcap_reverse_sequence(gcap_stream_t* stream, const gcap_tensor_t* x, const gcap_tensor_t* lengths,
                                    int time_axis, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(x);
  GCAP_RETURN_IF_NULL(lengths);
  GCAP_RETURN_IF_NULL(y);
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(check_rank(y));
  GCAP_RETURN_IF_ERROR(check_like(x, y));
  GCAP_RETURN_IF_ERROR(gcap_check_axis("time_axis", time_axis, 2, &time_axis));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("lengths", lengths));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("lengths", lengths, GCAP_DTYPE_I64, "they are lengths"));
  GCAP_RETURN_IF_ERROR(gcap_check_shape("lengths", lengths, 1, &x->shape[1 - time_axis], "the batch of x"));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, "lengths", lengths, /*or_same=*/false));
  if (gcap_tensor_elements(y) == 0) return NULL;
  int64_t strides[GCAP_MAX_RANK];
  gcap_dense_strides(x, strides);
  const size_t bytes = gcap_dtype_bytes(x->dtype);
  const size_t unit = gcap_unit_bytes(bytes, (uintptr_t)x->data | (uintptr_t)y->data | (uint64_t)strides[1] * bytes);
  gcap_reverse_params_t params = {.x = x->data,
                                  .lengths = lengths->data,
                                  .y = y->data,
                                  .outer = x->shape[0],
                                  .middle = x->shape[1],
                                  .inner = strides[1] * (int64_t)bytes / (int64_t)unit,
                                  .time_is_outer = time_axis == 0};
  params.count = params.outer * params.middle * params.inner;
  return launch(stream, reversals[unit], params.count, &params);
}
