// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// tensor.h: tensors, the types of their elements, and where memory is.
#ifndef GCAP_TENSOR_H_
#define GCAP_TENSOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GCAP_MAX_RANK 8

typedef enum gcap_dtype {
  GCAP_DTYPE_F32 = 0,
  GCAP_DTYPE_F16,   // IEEE 754 binary16
  GCAP_DTYPE_BF16,  // bfloat16: the upper half of an f32
  GCAP_DTYPE_I64,
  GCAP_DTYPE_I32,
  GCAP_DTYPE_BOOL,  // one byte, 0 or 1
  GCAP_DTYPE_I8,
  GCAP_DTYPE_U8,
} gcap_dtype_t;

// The size of one element; 0 if `dtype` is none of the enum.
GCAP_API size_t gcap_dtype_bytes(gcap_dtype_t dtype);
GCAP_API const char* gcap_dtype_name(gcap_dtype_t dtype);  // "f32"; "unknown type" if `dtype` is none of the enum

// Where memory is.
typedef enum gcap_memory_kind {
  GCAP_MEMORY_DEVICE = 0,  // of the device `device_id`
  GCAP_MEMORY_HOST,        // pageable
  GCAP_MEMORY_PINNED,      // host memory that CUDA has page-locked
} gcap_memory_kind_t;

GCAP_API const char* gcap_memory_kind_name(gcap_memory_kind_t kind);  // "device"

typedef struct gcap_memory {
  gcap_memory_kind_t kind;
  int device_id;  // of device memory; else ignored
} gcap_memory_t;

// True if the CPU reads and writes the memory, pinned or not.
static inline bool gcap_memory_is_on_host(gcap_memory_t memory) {
  return memory.kind == GCAP_MEMORY_HOST || memory.kind == GCAP_MEMORY_PINNED;
}

// A densely packed, row-major tensor. Where `data` is depends on who gets the tensor.
// Thread:   a plain value.
// Capture:  legal.
// Lifetime: owns no memory.
typedef struct gcap_tensor {
  void* data;
  gcap_dtype_t dtype;
  int rank;                      // 0..GCAP_MAX_RANK
  int64_t shape[GCAP_MAX_RANK];  // each >= 0
} gcap_tensor_t;

// The number of elements of the tensor: 1 for rank 0, 0 if a dimension is 0.
GCAP_API int64_t gcap_tensor_elements(const gcap_tensor_t* tensor);
// The size of the tensor's data.
GCAP_API size_t gcap_tensor_bytes(const gcap_tensor_t* tensor);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_TENSOR_H_
