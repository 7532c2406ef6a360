// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Tensors: names and sizes.

#include "gcap/tensor.h"

static const struct {
  const char* name;
  size_t bytes;
} types[] = {
    [GCAP_DTYPE_F32] = {"f32", 4}, [GCAP_DTYPE_F16] = {"f16", 2}, [GCAP_DTYPE_BF16] = {"bf16", 2},
    [GCAP_DTYPE_I64] = {"i64", 8}, [GCAP_DTYPE_I32] = {"i32", 4}, [GCAP_DTYPE_BOOL] = {"bool", 1},
    [GCAP_DTYPE_I8] = {"i8", 1},   [GCAP_DTYPE_U8] = {"u8", 1},
};
#define NUM_TYPES (sizeof(types) / sizeof(types[0]))

size_t gcap_dtype_bytes(gcap_dtype_t dtype) { return (size_t)dtype < NUM_TYPES ? types[dtype].bytes : 0; }

const char* gcap_dtype_name(gcap_dtype_t dtype) {
  return (size_t)dtype < NUM_TYPES ? types[dtype].name : "unknown type";
}

const char* gcap_memory_kind_name(gcap_memory_kind_t kind) {
  switch (kind) {
    case GCAP_MEMORY_DEVICE: return "device";
    case GCAP_MEMORY_HOST: return "host";
    case GCAP_MEMORY_PINNED: return "pinned";
  }
  return "unknown kind";
}

int64_t gcap_tensor_elements(const gcap_tensor_t* tensor) {
  int64_t count = 1;
  for (int i = 0; i < tensor->rank; ++i) count *= tensor->shape[i];
  return count;
}

size_t gcap_tensor_bytes(const gcap_tensor_t* tensor) {
  return (size_t)gcap_tensor_elements(tensor) * gcap_dtype_bytes(tensor->dtype);
}
