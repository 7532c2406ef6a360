// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// conv_transpose.h: launches transposed convolutions.
#ifndef GCAP_OPS_KERNELS_CONV_TRANSPOSE_H_
#define GCAP_OPS_KERNELS_CONV_TRANSPOSE_H_

#include "gcap/stream.h"
#include "gcap/tensor.h"
#include "ops/kernels/volume.h"

// y = x [images, channels, …], spread by weight [channels, channels of y in a group, …], plus bias, if it is not NULL.
// `side`: of the axes behind the channels, the last ones last. The tensors have the shapes that the sides and each
// other give, and types F32, F16 or BF16, all the same.
//   INVALID_ARGUMENT  addresses, or tensors that overlap
//   CUDA_ERROR        the launch failed, or the device could not be made current
gcap_status_t gcap_conv_transpose(gcap_stream_t* stream, const gcap_window_side_t side[GCAP_VOLUME_AXES],
                                  const gcap_tensor_t* x, const gcap_tensor_t* weight, const gcap_tensor_t* bias,
                                  const gcap_tensor_t* y) GCAP_NODISCARD;

#endif  // GCAP_OPS_KERNELS_CONV_TRANSPOSE_H_
