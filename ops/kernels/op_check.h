// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// op_check.h: what the functions of this folder check of their tensors. Each returns INVALID_ARGUMENT with a message
// that names the tensor, the value and what is allowed.
#ifndef GCAP_OPS_KERNELS_OP_CHECK_H_
#define GCAP_OPS_KERNELS_OP_CHECK_H_

#include <stdbool.h>

#include "gcap/status.h"
#include "gcap/tensor.h"

enum { GCAP_NUM_DTYPES = GCAP_DTYPE_U8 + 1 };

// The enumerator of a type whose name is pasted (element.h).
#define GCAP_DTYPE_OF_f32 GCAP_DTYPE_F32
#define GCAP_DTYPE_OF_f16 GCAP_DTYPE_F16
#define GCAP_DTYPE_OF_bf16 GCAP_DTYPE_BF16
#define GCAP_DTYPE_OF_i64 GCAP_DTYPE_I64
#define GCAP_DTYPE_OF_i32 GCAP_DTYPE_I32
#define GCAP_DTYPE_OF_bool GCAP_DTYPE_BOOL
#define GCAP_DTYPE_OF_i8 GCAP_DTYPE_I8
#define GCAP_DTYPE_OF_u8 GCAP_DTYPE_U8

// A tensor's rank, type, dimensions, number of elements, and address.
gcap_status_t gcap_check_tensor(const char* name, const gcap_tensor_t* tensor) GCAP_NODISCARD;

// A tensor's dimensions and number of elements.
gcap_status_t gcap_check_dimensions(const char* name, const gcap_tensor_t* tensor) GCAP_NODISCARD;

// `tensor` is of `dtype`, since `because` is: "b is f16, must be f32 as a is".
gcap_status_t gcap_check_dtype(const char* name, const gcap_tensor_t* tensor, gcap_dtype_t dtype,
                               const char* because) GCAP_NODISCARD;

// `dtype` is one of the set, in which type t is the bit 1 << t. `what` is what is not defined for others.
gcap_status_t gcap_check_dtype_among(const char* what, gcap_dtype_t dtype, unsigned set) GCAP_NODISCARD;

// `tensor` has this shape, since `because` says so: "y is [2,3], must be [2,4]: the broadcast shape of a and b".
gcap_status_t gcap_check_shape(const char* name, const gcap_tensor_t* tensor, int rank, const int64_t* shape,
                               const char* because) GCAP_NODISCARD;

// `axis` is in -rank..rank - 1; the result is in 0..rank - 1.
gcap_status_t gcap_check_axis(const char* name, int64_t axis, int rank, int* out_axis) GCAP_NODISCARD;

// What is written shares no byte with what is read. With `or_same`, it may also be the same tensor: address, size and
// number of elements.
gcap_status_t gcap_check_apart(const char* written_name, const gcap_tensor_t* written, const char* read_name,
                               const gcap_tensor_t* read, bool or_same) GCAP_NODISCARD;

#endif  // GCAP_OPS_KERNELS_OP_CHECK_H_
