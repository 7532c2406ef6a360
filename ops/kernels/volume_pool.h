// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// volume_pool.h: launches poolings of up to three axes.
#ifndef GCAP_OPS_KERNELS_VOLUME_POOL_H_
#define GCAP_OPS_KERNELS_VOLUME_POOL_H_

#include "gcap/stream.h"
#include "gcap/tensor.h"
#include "ops/kernels/volume_pool_kernels.h"

// y = x [images, channels, depth, height, width], without the first axes whose sides are 1, pooled as `way` says, which
// has the sides of its volume, and all parameters but addresses and counts. The tensors have the sizes of the sides,
// and are of one type, F32, F16 or BF16.
//   INVALID_ARGUMENT  addresses, or tensors that overlap
//   CUDA_ERROR        the launch failed, or the device could not be made current
gcap_status_t gcap_volume_pool(gcap_stream_t* stream, const gcap_volume_pool_params_t* way, const gcap_tensor_t* x,
                               const gcap_tensor_t* y) GCAP_NODISCARD;

#endif  // GCAP_OPS_KERNELS_VOLUME_POOL_H_
