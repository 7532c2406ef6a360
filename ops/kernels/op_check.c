// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Checks of tensors. No state.
#include "ops/kernels/op_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Far beyond any memory, and small enough that sizes and strides in bytes cannot overflow.
static const int64_t max_elements = INT64_C(1) << 40;

typedef struct text {
  char chars[256];
  size_t length;
} text_t;

static void append(text_t* text, const char* word) {
  const int room = (int)(sizeof(text->chars) - text->length);
  const int wanted = snprintf(text->chars + text->length, (size_t)room, "%s", word);
  text->length += (size_t)(wanted < room ? wanted : room - 1);
}

// "[2,3]"
static text_t shape_text(int rank, const int64_t* shape) {
  text_t text = {"[", 1};
  for (int i = 0; i < rank; ++i) {
    char number[32];
    snprintf(number, sizeof(number), i == 0 ? "%" PRId64 : ",%" PRId64, shape[i]);
    append(&text, number);
  }
  append(&text, "]");
  return text;
}

static text_t dtypes_text(unsigned set) {
  text_t text = {"", 0};
  for (int t = 0; t < GCAP_NUM_DTYPES; ++t) {
    if (!(set >> t & 1)) continue;
    if (text.length != 0) append(&text, ", ");
    append(&text, gcap_dtype_name((gcap_dtype_t)t));
  }
  return text;
}

// Dimensions of 0 count as 1 here, so that no product of some of the dimensions overflows.
gcap_status_t gcap_check_dimensions(const char* name, const gcap_tensor_t* tensor) {
  int64_t elements = 1;
  for (int i = 0; i < tensor->rank; ++i) {
    const int64_t size = tensor->shape[i];
    if (size < 0 || size > max_elements) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s.shape[%d] is %" PRId64 ", allowed are 0..%" PRId64, name, i, size,
                         max_elements);
    }
    if (size == 0) continue;
    if (elements > max_elements / size) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is %s, allowed are up to %" PRId64 " elements", name,
                         shape_text(tensor->rank, tensor->shape).chars, max_elements);
    }
    elements *= size;
  }
  return NULL;
}

gcap_status_t gcap_check_tensor(const char* name, const gcap_tensor_t* tensor) {
  if (tensor->rank < 0 || tensor->rank > GCAP_MAX_RANK) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s.rank is %d, allowed are 0..%d", name, tensor->rank, GCAP_MAX_RANK);
  }
  const size_t element_bytes = gcap_dtype_bytes(tensor->dtype);
  if (element_bytes == 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s.dtype is %d, allowed are 0..%d", name, (int)tensor->dtype,
                       GCAP_NUM_DTYPES - 1);
  }
  GCAP_RETURN_IF_ERROR(gcap_check_dimensions(name, tensor));
  if (gcap_tensor_elements(tensor) == 0) return NULL;
  if (tensor->data == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s.data is NULL, allowed only without elements; %s is %s", name, name,
                       shape_text(tensor->rank, tensor->shape).chars);
  }
  if ((uintptr_t)tensor->data % element_bytes != 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s.data is %p, must be a multiple of %zu, the size of an element", name,
                       tensor->data, element_bytes);
  }
  return NULL;
}

gcap_status_t gcap_check_dtype(const char* name, const gcap_tensor_t* tensor, gcap_dtype_t dtype, const char* because) {
  if (tensor->dtype == dtype) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is %s, must be %s: %s", name, gcap_dtype_name(tensor->dtype),
                     gcap_dtype_name(dtype), because);
}

gcap_status_t gcap_check_dtype_among(const char* what, gcap_dtype_t dtype, unsigned set) {
  if (set >> dtype & 1) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is not defined for %s, allowed are %s", what, gcap_dtype_name(dtype),
                     dtypes_text(set).chars);
}

gcap_status_t gcap_check_shape(const char* name, const gcap_tensor_t* tensor, int rank, const int64_t* shape,
                               const char* because) {
  if (tensor->rank == rank && memcmp(tensor->shape, shape, (size_t)rank * sizeof(*shape)) == 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is %s, must be %s: %s", name,
                     shape_text(tensor->rank, tensor->shape).chars, shape_text(rank, shape).chars, because);
}

gcap_status_t gcap_check_axis(const char* name, int64_t axis, int rank, int* out_axis) {
  *out_axis = 0;
  if (rank == 0) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is %" PRId64 ", but rank 0 has no axis", name, axis);
  if (axis < -rank || axis >= rank) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is %" PRId64 ", allowed are %d..%d", name, axis, -rank, rank - 1);
  }
  *out_axis = (int)(axis < 0 ? axis + rank : axis);
  return NULL;
}

gcap_status_t gcap_check_apart(const char* written_name, const gcap_tensor_t* written, const char* read_name,
                               const gcap_tensor_t* read, bool or_same) {
  const uintptr_t w = (uintptr_t)written->data, r = (uintptr_t)read->data;
  const size_t w_bytes = gcap_tensor_bytes(written), r_bytes = gcap_tensor_bytes(read);
  if (w_bytes == 0 || r_bytes == 0 || w + w_bytes <= r || r + r_bytes <= w) return NULL;
  if (or_same && w == r && w_bytes == r_bytes && gcap_tensor_elements(written) == gcap_tensor_elements(read)) {
    return NULL;
  }
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s overlaps %s: %s is %zu bytes at %p, %s is %zu bytes at %p%s",
                     written_name, read_name, written_name, w_bytes, written->data, read_name, r_bytes, read->data,
                     or_same ? "; allowed is the same tensor or none of its bytes" : "; allowed is none of its bytes");
}
