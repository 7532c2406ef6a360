// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// row_norm.h: launches normalizations of rows.
#ifndef GCAP_OPS_KERNELS_ROW_NORM_H_
#define GCAP_OPS_KERNELS_ROW_NORM_H_

#include "gcap/stream.h"
#include "gcap/tensor.h"
#include "ops/kernels/row_norm_kernels.h"

// y = the rows of x as `way` says, which has all parameters but addresses and lanes. `scale` and `bias` may be NULL,
// and have as many elements as `way` reads. All are of one type, F32, F16 or BF16; y may be x.
//   INVALID_ARGUMENT  addresses, or tensors that overlap
//   CUDA_ERROR        the launch failed, or the device could not be made current
gcap_status_t gcap_row_norm(gcap_stream_t* stream, const gcap_row_norm_params_t* way, const gcap_tensor_t* x,
                            const gcap_tensor_t* scale, const gcap_tensor_t* bias,
                            const gcap_tensor_t* y) GCAP_NODISCARD;

// The same of the rows of x + skip + addend, each of which has `way->columns` elements. `skip` has the rows of x, or a
// number of rows of which x has a multiple, which are added again and again; `addend` is a row, or NULL. `sum`, which
// has the shape of x and may be NULL, gets what is normalized.
//   INVALID_ARGUMENT  addresses, or tensors that overlap
//   CUDA_ERROR        the launch failed, or the device could not be made current
gcap_status_t gcap_skip_norm(gcap_stream_t* stream, const gcap_row_norm_params_t* way, const gcap_tensor_t* x,
                             const gcap_tensor_t* skip, const gcap_tensor_t* addend, const gcap_tensor_t* scale,
                             const gcap_tensor_t* bias, const gcap_tensor_t* y,
                             const gcap_tensor_t* sum) GCAP_NODISCARD;

#endif  // GCAP_OPS_KERNELS_ROW_NORM_H_
