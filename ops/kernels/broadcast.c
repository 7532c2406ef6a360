// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Broadcasting: shapes are aligned at the last axis, and a dimension of 1, or none, has stride 0.
#include "ops/kernels/broadcast.h"

#include <inttypes.h>

#include "ops/kernels/op_check.h"

// The size of `tensor` on the axis that is `from_end` before the last one of all.
static int64_t size_from_end(const gcap_tensor_t* tensor, int from_end) {
  return from_end < tensor->rank ? tensor->shape[tensor->rank - 1 - from_end] : 1;
}

static gcap_status_t common_shape(const gcap_named_tensor_t* inputs, int count, int* out_rank, int64_t* out_shape) {
  int rank = 0;
  for (int k = 0; k < count; ++k) {
    if (inputs[k].tensor->rank > rank) rank = inputs[k].tensor->rank;
  }
  for (int from_end = 0; from_end < rank; ++from_end) {
    const gcap_named_tensor_t* first = NULL;  // the first one that is not 1 here
    for (int k = 0; k < count; ++k) {
      const int64_t size = size_from_end(inputs[k].tensor, from_end);
      if (size == 1) continue;
      if (first == NULL) first = &inputs[k];
      if (size == size_from_end(first->tensor, from_end)) continue;
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                         "%s.shape[%d] is %" PRId64 ", allowed are 1 and %" PRId64 ", the size of %s on that axis",
                         inputs[k].name, inputs[k].tensor->rank - 1 - from_end, size,
                         size_from_end(first->tensor, from_end), first->name);
    }
    out_shape[rank - 1 - from_end] = first == NULL ? 1 : size_from_end(first->tensor, from_end);
  }
  *out_rank = rank;
  return NULL;
}

static void make_map(const gcap_named_tensor_t* inputs, int count, const gcap_tensor_t* y, gcap_index_map_t* map) {
  int64_t strides[GCAP_MAX_RANK][GCAP_MAP_MAX_OPERANDS] = {{0}};
  for (int k = 0; k < count; ++k) {
    int64_t stride = 1;
    for (int from_end = 0; from_end < y->rank; ++from_end) {
      const int64_t size = size_from_end(inputs[k].tensor, from_end);
      strides[y->rank - 1 - from_end][k] = size == 1 ? 0 : stride;
      stride *= size;
    }
  }
  gcap_index_map_begin(map);
  for (int axis = 0; axis < y->rank; ++axis) gcap_index_map_add_axis(map, y->shape[axis], strides[axis]);
  gcap_index_map_end(map);
}

gcap_status_t gcap_broadcast(const gcap_named_tensor_t* inputs, int count, const gcap_tensor_t* y,
                             gcap_index_map_t* out_map) {
  int rank = 0;
  int64_t shape[GCAP_MAX_RANK] = {0};
  GCAP_RETURN_IF_ERROR(common_shape(inputs, count, &rank, shape));
  GCAP_RETURN_IF_ERROR(gcap_check_shape("y", y, rank, shape, "the broadcast shape of the inputs"));
  for (int k = 0; k < count; ++k) {
    GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, inputs[k].name, inputs[k].tensor, /*or_same=*/true));
  }
  make_map(inputs, count, y, out_map);
  return NULL;
}
