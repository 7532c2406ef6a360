// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that move elements: checks, and where each element goes. No state.
#include "gcap/kit/ops/layout.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/internal/check_argument.h"
#include "ops/kernels/layout_copy.h"
#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"

static gcap_status_t check_arguments(const gcap_stream_t* stream, const gcap_tensor_t* x, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(x);
  GCAP_RETURN_IF_NULL(y);
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype("y", y, x->dtype, "the type of x"));
  return gcap_check_apart("y", y, "x", x, /*or_same=*/false);
}

// --- Transpose ------------------------------------------------------------------------------------------------------

gcap_status_t gcap_transpose(gcap_stream_t* stream, const gcap_tensor_t* x, const int64_t* perm,
                             const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check_arguments(stream, x, y));
  if (x->rank > 0) GCAP_RETURN_IF_NULL(perm);
  int64_t x_strides[GCAP_MAX_RANK], strides[GCAP_MAX_RANK], y_strides[GCAP_MAX_RANK], shape[GCAP_MAX_RANK];
  bool named[GCAP_MAX_RANK] = {false};
  gcap_dense_strides(x, x_strides);
  for (int i = 0; i < x->rank; ++i) {
    if (perm[i] < 0 || perm[i] >= x->rank || named[perm[i]]) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "perm[%d] is %" PRId64 ", must be another one of 0..%d", i, perm[i],
                         x->rank - 1);
    }
    named[perm[i]] = true;
    shape[i] = x->shape[perm[i]];
    strides[i] = x_strides[perm[i]];
  }
  GCAP_RETURN_IF_ERROR(gcap_check_shape("y", y, x->rank, shape, "the shape of x in the order of perm"));
  gcap_dense_strides(y, y_strides);
  return gcap_copy_strided(stream, gcap_dtype_bytes(x->dtype), x->rank, shape, x->data, strides, y->data, y_strides);
}

// --- Concat and split -----------------------------------------------------------------------------------------------

// The parts of `whole` behind one another on `axis`: "inputs[2] is ...".
typedef struct parts {
  const char* name;
  const gcap_tensor_t* tensors;
  int count;
  const char* whole_name;
  const gcap_tensor_t* whole;
  int axis;
} parts_t;

static gcap_status_t check_part(const parts_t* parts, int i) {
  char name[32];
  snprintf(name, sizeof(name), "%s[%d]", parts->name, i);
  const gcap_tensor_t *part = &parts->tensors[i], *whole = parts->whole;
  GCAP_RETURN_IF_ERROR(gcap_check_tensor(name, part));
  GCAP_RETURN_IF_ERROR(gcap_check_dtype(name, part, whole->dtype, "the type of the whole"));
  int64_t shape[GCAP_MAX_RANK];
  memcpy(shape, whole->shape, sizeof(shape));
  if (part->rank == whole->rank) shape[parts->axis] = part->shape[parts->axis];
  GCAP_RETURN_IF_ERROR(gcap_check_shape(name, part, whole->rank, shape, "the shape of the whole but for the axis"));
  return gcap_check_apart(parts->whole_name, whole, name, part, /*or_same=*/false);
}

static gcap_status_t check_parts(const parts_t* parts) {
  int64_t size = 0;
  for (int i = 0; i < parts->count; ++i) {
    GCAP_RETURN_IF_ERROR(check_part(parts, i));
    size += parts->tensors[i].shape[parts->axis];
  }
  if (size == parts->whole->shape[parts->axis]) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s.shape[%d] is %" PRId64 ", must be %" PRId64 ": the sum over %s",
                     parts->whole_name, parts->axis, parts->whole->shape[parts->axis], size, parts->name);
}

// Copies each part into the whole, or out of it.
static gcap_status_t copy_parts(gcap_stream_t* stream, const parts_t* parts, bool into_whole) {
  const size_t bytes = gcap_dtype_bytes(parts->whole->dtype);
  int64_t whole_strides[GCAP_MAX_RANK], strides[GCAP_MAX_RANK];
  gcap_dense_strides(parts->whole, whole_strides);
  char* place = parts->whole->data;
  for (int i = 0; i < parts->count; ++i) {
    const gcap_tensor_t* part = &parts->tensors[i];
    if (gcap_tensor_elements(part) == 0) continue;
    gcap_dense_strides(part, strides);
    GCAP_RETURN_IF_ERROR(
        into_whole
            ? gcap_copy_strided(stream, bytes, part->rank, part->shape, part->data, strides, place, whole_strides)
            : gcap_copy_strided(stream, bytes, part->rank, part->shape, place, whole_strides, part->data, strides));
    place += part->shape[parts->axis] * whole_strides[parts->axis] * (int64_t)bytes;
  }
  return NULL;
}

gcap_status_t gcap_concat(gcap_stream_t* stream, const gcap_tensor_t* inputs, int num_inputs, int axis,
                          const gcap_tensor_t* y) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(inputs);
  GCAP_RETURN_IF_NULL(y);
  if (num_inputs < 1) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "num_inputs is %d, allowed are 1 and more", num_inputs);
  }
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  parts_t parts = {"inputs", inputs, num_inputs, "y", y, 0};
  GCAP_RETURN_IF_ERROR(gcap_check_axis("axis", axis, y->rank, &parts.axis));
  GCAP_RETURN_IF_ERROR(check_parts(&parts));
  return copy_parts(stream, &parts, /*into_whole=*/true);
}

static gcap_status_t check_outputs_apart(const gcap_tensor_t* outputs, int count) {
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < i; ++k) {
      char name[32], other[32];
      snprintf(name, sizeof(name), "outputs[%d]", i);
      snprintf(other, sizeof(other), "outputs[%d]", k);
      GCAP_RETURN_IF_ERROR(gcap_check_apart(name, &outputs[i], other, &outputs[k], /*or_same=*/false));
    }
  }
  return NULL;
}

gcap_status_t gcap_split(gcap_stream_t* stream, const gcap_tensor_t* x, int axis, const gcap_tensor_t* outputs,
                         int num_outputs) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(x);
  GCAP_RETURN_IF_NULL(outputs);
  if (num_outputs < 1) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "num_outputs is %d, allowed are 1 and more", num_outputs);
  }
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  parts_t parts = {"outputs", outputs, num_outputs, "x", x, 0};
  GCAP_RETURN_IF_ERROR(gcap_check_axis("axis", axis, x->rank, &parts.axis));
  GCAP_RETURN_IF_ERROR(check_parts(&parts));
  GCAP_RETURN_IF_ERROR(check_outputs_apart(outputs, num_outputs));
  return copy_parts(stream, &parts, /*into_whole=*/false);
}

// --- Slice ----------------------------------------------------------------------------------------------------------

// The start of an axis from which `count` steps stay inside of it; `*out_start` is not negative.
static gcap_status_t check_range(int axis, int64_t size, int64_t start, int64_t step, int64_t count,
                                 int64_t* out_start) {
  if (step == 0) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "steps[%d] is 0, allowed are all others", axis);
  *out_start = 0;
  if (count == 0) return NULL;
  if (start < -size || start >= size) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "starts[%d] is %" PRId64 ", allowed are %" PRId64 "..%" PRId64, axis,
                       start, -size, size - 1);
  }
  *out_start = start < 0 ? start + size : start;
  // How many steps there are to the end of the axis, without overflow.
  const int64_t room = step > 0 ? (size - 1 - *out_start) / step : *out_start / (step < -size ? size + 1 : -step);
  if (count - 1 <= room) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "y.shape[%d] is %" PRId64 ", allowed are 0..%" PRId64 " from %" PRId64 " in steps of %" PRId64
                     " on an axis of %" PRId64,
                     axis, count, room + 1, *out_start, step, size);
}

gcap_status_t gcap_slice(gcap_stream_t* stream, const gcap_tensor_t* x, const int64_t* starts, const int64_t* steps,
                         const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check_arguments(stream, x, y));
  if (x->rank > 0) GCAP_RETURN_IF_NULL(starts);
  if (y->rank != x->rank) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "y.rank is %d, must be %d: the rank of x", y->rank, x->rank);
  }
  int64_t x_strides[GCAP_MAX_RANK], y_strides[GCAP_MAX_RANK];
  gcap_dense_strides(x, x_strides);
  gcap_dense_strides(y, y_strides);
  int64_t first = 0;
  for (int axis = 0; axis < x->rank; ++axis) {
    const int64_t step = steps == NULL ? 1 : steps[axis];
    int64_t start = 0;
    GCAP_RETURN_IF_ERROR(check_range(axis, x->shape[axis], starts[axis], step, y->shape[axis], &start));
    first += start * x_strides[axis];
    x_strides[axis] *= y->shape[axis] < 2 ? 1 : step;  // of one element no step is taken
  }
  if (gcap_tensor_elements(y) == 0) return NULL;
  const size_t bytes = gcap_dtype_bytes(x->dtype);
  return gcap_copy_strided(stream, bytes, y->rank, y->shape, (const char*)x->data + first * (int64_t)bytes, x_strides,
                           y->data, y_strides);
}

// --- Gather ---------------------------------------------------------------------------------------------------------

static gcap_status_t check_gathered_shape(const gcap_tensor_t* x, const gcap_tensor_t* indices, int axis,
                                          const gcap_tensor_t* y) {
  const int rank = x->rank - 1 + indices->rank;
  if (rank > GCAP_MAX_RANK) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "indices.rank is %d, allowed are 0..%d where x.rank is %d", indices->rank,
                       GCAP_MAX_RANK + 1 - x->rank, x->rank);
  }
  int64_t shape[GCAP_MAX_RANK];
  int at = 0;
  for (int i = 0; i < axis; ++i) shape[at++] = x->shape[i];
  for (int i = 0; i < indices->rank; ++i) shape[at++] = indices->shape[i];
  for (int i = axis + 1; i < x->rank; ++i) shape[at++] = x->shape[i];
  return gcap_check_shape("y", y, rank, shape, "the shape of x with that of indices in place of the axis");
}

gcap_status_t gcap_gather(gcap_stream_t* stream, const gcap_tensor_t* x, const gcap_tensor_t* indices, int given_axis,
                          const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check_arguments(stream, x, y));
  GCAP_RETURN_IF_NULL(indices);
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("indices", indices));
  GCAP_RETURN_IF_ERROR(
      gcap_check_dtype_among("gather by indices", indices->dtype, 1u << GCAP_DTYPE_I64 | 1u << GCAP_DTYPE_I32));
  int axis;
  GCAP_RETURN_IF_ERROR(gcap_check_axis("axis", given_axis, x->rank, &axis));
  GCAP_RETURN_IF_ERROR(check_gathered_shape(x, indices, axis, y));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, "indices", indices, /*or_same=*/false));
  const int64_t count = gcap_tensor_elements(y);
  if (count == 0) return NULL;
  int64_t strides[GCAP_MAX_RANK];
  gcap_dense_strides(x, strides);
  const size_t bytes = gcap_dtype_bytes(x->dtype);
  const size_t unit = gcap_unit_bytes(bytes, (uintptr_t)x->data | (uintptr_t)y->data | (uint64_t)strides[axis] * bytes);
  gcap_gather_params_t params = {.x = x->data,
                                 .indices = indices->data,
                                 .y = y->data,
                                 .axis_size = x->shape[axis],
                                 .num_indices = gcap_tensor_elements(indices),
                                 .inner = strides[axis] * (int64_t)bytes / (int64_t)unit,
                                 .index_bytes = (int32_t)gcap_dtype_bytes(indices->dtype)};
  params.outer = count / (params.num_indices * strides[axis]);
  return gcap_op_launch(stream, gcap_layout_kernels_of(unit)->gather, count * (int64_t)(bytes) / (int64_t)unit,
                        GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &params);
}
