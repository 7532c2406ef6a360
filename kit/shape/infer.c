// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the families of operators share. Every number that a model brings goes through a check here before it is
// computed with, so that nothing overflows.

#include "kit/shape/infer.h"

#include <stdarg.h>
#include <stdio.h>

// A refusal is a sentence with a few numbers; a longer one is cut.
#define MAX_REFUSAL_CHARS 400

gcap_status_t gcap_shape_refuse(const gcap_node_t* node, const char* file, int line, const char* format, ...) {
  char text[MAX_REFUSAL_CHARS];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return gcap_status_make(GCAP_INVALID_ARGUMENT, file, line, "node '%s' (%s): %s", node->name != NULL ? node->name : "",
                          node->op_type != NULL ? node->op_type : "", text);
}

// --- Shapes ---------------------------------------------------------------------------------------------------------

gcap_status_t gcap_shape_add(const gcap_node_t* node, gcap_shape_t* shape, int64_t size) {
  if (shape->rank == GCAP_MAX_RANK) {
    return GCAP_SHAPE_REFUSE(node, "its output would have more than %d dimensions", GCAP_MAX_RANK);
  }
  shape->at[shape->rank++] = size;
  return NULL;
}

gcap_shape_t gcap_shape_unknown(int rank) {
  gcap_shape_t shape = {.rank = rank};
  for (int i = 0; i < rank; ++i) shape.at[i] = GCAP_DIM_INFERRED;
  return shape;
}

gcap_shape_t gcap_shape_of_sizes(int rank, bool known, const int64_t* sizes) {
  gcap_shape_t shape = gcap_shape_unknown(rank);
  for (int i = 0; known && i < rank; ++i) shape.at[i] = sizes[i];
  return shape;
}

gcap_shape_t gcap_shape_of(const gcap_tensor_t* tensor) {
  return gcap_shape_of_sizes(tensor->rank, /*known=*/true, tensor->shape);
}

int64_t gcap_shape_count(const gcap_tensor_t* tensor, int begin, int end) {
  int64_t count = 1;
  for (int i = begin; i < end; ++i) count *= tensor->shape[i];
  return count;
}

// True if the sizes that are known, but zeros, give at most PTRDIFF_MAX bytes. Zeros do not count, so that the product
// of any part of a shape can be computed.
static bool fits_memory(const int64_t* shape, int rank, gcap_dtype_t dtype) {
  const size_t bytes = gcap_dtype_bytes(dtype);
  int64_t room = PTRDIFF_MAX / (int64_t)(bytes != 0 ? bytes : 1);
  for (int i = 0; i < rank; ++i) {
    if (shape[i] <= 0) continue;
    room /= shape[i];
  }
  return room > 0;
}

static gcap_status_t check_size(const gcap_node_t* node, int output, int axis, int64_t size, int64_t fixed) {
  if (size == GCAP_DIM_INFERRED || fixed == GCAP_DIM_INFERRED || size == fixed) return NULL;
  return GCAP_SHAPE_REFUSE(node, "dimension %d of output %d is %lld, its inputs give %lld", axis, output,
                           (long long)fixed, (long long)size);
}

gcap_status_t gcap_shape_give(const gcap_node_t* node, int output, const gcap_shape_t* shape, gcap_tensor_t* tensor) {
  if (tensor->rank != shape->rank) {
    return GCAP_SHAPE_REFUSE(node, "output %d has rank %d, its inputs give %d", output, tensor->rank, shape->rank);
  }
  for (int i = 0; i < shape->rank; ++i) {
    GCAP_RETURN_IF_ERROR(check_size(node, output, i, shape->at[i], tensor->shape[i]));
  }
  if (!fits_memory(shape->at, shape->rank, tensor->dtype)) {
    return GCAP_SHAPE_REFUSE(node, "output %d would have more than PTRDIFF_MAX (%lld) bytes", output,
                             (long long)PTRDIFF_MAX);
  }
  for (int i = 0; i < shape->rank; ++i) {
    if (shape->at[i] != GCAP_DIM_INFERRED) tensor->shape[i] = shape->at[i];
  }
  return NULL;
}

gcap_status_t gcap_shape_check_input(const gcap_node_t* node, int input, const gcap_tensor_t* tensor) {
  if (tensor->rank < 0 || tensor->rank > GCAP_MAX_RANK) {
    return GCAP_SHAPE_REFUSE(node, "input %d has rank %d, allowed is 0..%d", input, tensor->rank, GCAP_MAX_RANK);
  }
  for (int i = 0; i < tensor->rank; ++i) {
    if (tensor->shape[i] >= 0) continue;
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input %d is %lld, allowed is 0 or more", i, input,
                             (long long)tensor->shape[i]);
  }
  if (fits_memory(tensor->shape, tensor->rank, tensor->dtype)) return NULL;
  return GCAP_SHAPE_REFUSE(node, "input %d has more than PTRDIFF_MAX (%lld) bytes", input, (long long)PTRDIFF_MAX);
}

// --- Contents -------------------------------------------------------------------------------------------------------

bool gcap_shape_is_known(const gcap_tensor_t* tensor) {
  return tensor->data != NULL || gcap_shape_count(tensor, 0, tensor->rank) == 0;
}

int64_t gcap_shape_integer_at(const gcap_tensor_t* tensor, int64_t index) {
  if (tensor->dtype == GCAP_DTYPE_I32) return ((const int32_t*)tensor->data)[index];
  return ((const int64_t*)tensor->data)[index];
}

gcap_status_t gcap_shape_read_input(const gcap_node_t* node, int input, const gcap_tensor_t* tensor,
                                    gcap_numbers_t* out_numbers) {
  *out_numbers = (gcap_numbers_t){0};
  if (tensor->dtype != GCAP_DTYPE_I64 && tensor->dtype != GCAP_DTYPE_I32) {
    return GCAP_SHAPE_REFUSE(node, "input %d is of type %s, allowed is i64 or i32", input,
                             gcap_dtype_name(tensor->dtype));
  }
  if (tensor->rank != 1) return GCAP_SHAPE_REFUSE(node, "input %d has rank %d, allowed is 1", input, tensor->rank);
  if (tensor->shape[0] > GCAP_MAX_RANK) {
    return GCAP_SHAPE_REFUSE(node, "input %d has %lld numbers, allowed is 0..%d", input, (long long)tensor->shape[0],
                             GCAP_MAX_RANK);
  }
  out_numbers->count = (int)tensor->shape[0];
  out_numbers->known = gcap_shape_is_known(tensor);
  for (int i = 0; out_numbers->known && i < out_numbers->count; ++i) {
    out_numbers->at[i] = gcap_shape_integer_at(tensor, i);
  }
  return NULL;
}

static gcap_status_t read_attribute(const gcap_node_t* node, const char* name, gcap_numbers_t* out_numbers) {
  size_t count = 0;
  const int64_t* numbers = gcap_node_ints(node, name, &count);
  if (numbers == NULL && count > 0) return GCAP_SHAPE_REFUSE(node, "attribute %s has %zu numbers at NULL", name, count);
  if (count > GCAP_MAX_RANK) {
    return GCAP_SHAPE_REFUSE(node, "attribute %s has %zu numbers, allowed is 0..%d", name, count, GCAP_MAX_RANK);
  }
  *out_numbers = (gcap_numbers_t){.known = true, .count = (int)count};
  for (size_t i = 0; i < count; ++i) out_numbers->at[i] = numbers[i];
  return NULL;
}

gcap_status_t gcap_shape_read_numbers(const gcap_node_t* node, const char* name, const gcap_tensor_t* inputs,
                                      gcap_numbers_t* out_numbers, bool* out_given) {
  const bool has_input = node->num_inputs > 1, has_attribute = gcap_node_has(node, name);
  *out_numbers = (gcap_numbers_t){.known = true};
  *out_given = has_input || has_attribute;
  if (has_input && has_attribute) return GCAP_SHAPE_REFUSE(node, "it has both an input 1 and an attribute %s", name);
  if (has_input) {
    // ONNX says a list; ONNX's own functions say one axis as a number alone, and ONNX Runtime takes the number.
    gcap_tensor_t list = inputs[1];
    if (list.rank == 0) list.shape[list.rank++] = 1;
    return gcap_shape_read_input(node, 1, &list, out_numbers);
  }
  return has_attribute ? read_attribute(node, name, out_numbers) : NULL;
}

// --- Axes -----------------------------------------------------------------------------------------------------------

gcap_status_t gcap_shape_axis(const gcap_node_t* node, const char* what, int64_t axis, int rank, int* out_axis) {
  *out_axis = 0;
  if (rank == 0) return GCAP_SHAPE_REFUSE(node, "%s is %lld, but there is no dimension", what, (long long)axis);
  if (axis < -rank || axis >= rank) {
    return GCAP_SHAPE_REFUSE(node, "%s is %lld, allowed is %d..%d", what, (long long)axis, -rank, rank - 1);
  }
  *out_axis = (int)(axis < 0 ? axis + rank : axis);
  return NULL;
}

gcap_status_t gcap_shape_axes(const gcap_node_t* node, const gcap_numbers_t* axes, int rank,
                              bool out_at[GCAP_MAX_RANK]) {
  for (int i = 0; i < GCAP_MAX_RANK; ++i) out_at[i] = false;
  for (int i = 0; i < axes->count; ++i) {
    char what[24];
    snprintf(what, sizeof(what), "axes[%d]", i);
    int axis = 0;
    GCAP_RETURN_IF_ERROR(gcap_shape_axis(node, what, axes->at[i], rank, &axis));
    if (out_at[axis])
      return GCAP_SHAPE_REFUSE(node, "%s is %lld, an axis that is there already", what, (long long)axes->at[i]);
    out_at[axis] = true;
  }
  return NULL;
}
