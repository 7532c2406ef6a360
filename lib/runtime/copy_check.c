// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Whether two tensors can be copied one to the other. What a host passes comes from its users, so nothing is assumed of
// a tensor.

#include "lib/runtime/copy_check.h"

#include <stdint.h>
#include <stdio.h>

// Checks one tensor, and counts its elements.
static gcap_status_t check_tensor(const gcap_tensor_t* tensor, size_t index, const char* name, size_t* out_elements) {
  *out_elements = 1;
  if (tensor == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "copies[%zu]: %s is NULL", index, name);
  const size_t element_bytes = gcap_dtype_bytes(tensor->dtype);
  if (element_bytes == 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "copies[%zu]: %s has type %d, which does not exist", index, name,
                       (int)tensor->dtype);
  }
  if (tensor->rank < 0 || tensor->rank > GCAP_MAX_RANK) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "copies[%zu]: %s has rank %d, allowed is 0 to %d", index, name,
                       tensor->rank, GCAP_MAX_RANK);
  }
  bool is_empty = false;
  for (int i = 0; i < tensor->rank; ++i) {
    const int64_t size = tensor->shape[i];
    is_empty |= size == 0;
    if (size < 0 || __builtin_mul_overflow(*out_elements, size > 0 ? (size_t)size : 1, out_elements)) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "copies[%zu]: dimension %d of %s is %lld, which no tensor has", index,
                         i, name, (long long)size);
    }
  }
  if (is_empty) *out_elements = 0;
  if (*out_elements > SIZE_MAX / element_bytes) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "copies[%zu]: %s has %zu elements of %s, which no memory holds", index,
                       name, *out_elements, gcap_dtype_name(tensor->dtype));
  }
  if (tensor->data != NULL || *out_elements == 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "copies[%zu]: the data of %s is NULL", index, name);
}

gcap_status_t gcap_copy_check(const gcap_copy_t* copies, size_t index, size_t* out_bytes) {
  const gcap_tensor_t *src = copies[index].src, *dst = copies[index].dst;
  size_t src_elements = 0, dst_elements = 0;
  *out_bytes = 0;
  GCAP_RETURN_IF_ERROR(check_tensor(src, index, "src", &src_elements));
  GCAP_RETURN_IF_ERROR(check_tensor(dst, index, "dst", &dst_elements));
  if (src->dtype != dst->dtype || src_elements != dst_elements) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "copies[%zu]: src has %zu elements of %s, dst has %zu of %s", index,
                       src_elements, gcap_dtype_name(src->dtype), dst_elements, gcap_dtype_name(dst->dtype));
  }
  *out_bytes = src_elements * gcap_dtype_bytes(src->dtype);
  return NULL;
}

// "device 1 memory", "pinned memory".
static const char* describe(gcap_memory_t memory, char* text, size_t text_bytes) {
  if (memory.kind != GCAP_MEMORY_DEVICE) {
    snprintf(text, text_bytes, "%s memory", gcap_memory_kind_name(memory.kind));
  } else {
    snprintf(text, text_bytes, "memory of device %d", memory.device_id);
  }
  return text;
}

gcap_status_t gcap_copy_refuse_memory(const gcap_copy_t* copies, size_t index, const char* who) {
  char src[32], dst[32];
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "copies[%zu]: %s does not copy from %s to %s", index, who,
                     describe(copies[index].src_memory, src, sizeof(src)),
                     describe(copies[index].dst_memory, dst, sizeof(dst)));
}
