// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pow.h: powers whose exponent is of another type than the base.
#ifndef GCAP_OPS_KERNELS_POW_H_
#define GCAP_OPS_KERNELS_POW_H_

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"
#include "ops/kernels/index_map.h"

// The types of a base and of an exponent, in which type t is the bit 1 << t.
unsigned gcap_pow_types(void);

// Launches y = a to the power of b. The types are among gcap_pow_types, that of y is that of a; the tensors are
// checked, and y has elements.
//   CUDA_ERROR  the launch failed, or the device could not be made current
gcap_status_t gcap_pow(gcap_stream_t* stream, const gcap_tensor_t* a, const gcap_tensor_t* b, const gcap_tensor_t* y,
                       const gcap_index_map_t* map) GCAP_NODISCARD;

#endif  // GCAP_OPS_KERNELS_POW_H_
