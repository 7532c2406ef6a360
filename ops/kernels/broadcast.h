// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// broadcast.h: inputs that are broadcast to the shape of an output, as NumPy and ONNX do.
#ifndef GCAP_OPS_KERNELS_BROADCAST_H_
#define GCAP_OPS_KERNELS_BROADCAST_H_

#include "gcap/status.h"
#include "gcap/tensor.h"
#include "ops/kernels/index_map.h"

typedef struct gcap_named_tensor {
  const char* name;
  const gcap_tensor_t* tensor;
} gcap_named_tensor_t;

// The map of `count` (1 to GCAP_MAP_MAX_OPERANDS) inputs, for `y` in the order of its elements. All have passed
// gcap_check_tensor. Of no use if `y` has no elements.
//   INVALID_ARGUMENT  the inputs cannot be broadcast to one shape, `y` has another one, or `y` shares bytes with an input
//                     that is not the same tensor
gcap_status_t gcap_broadcast(const gcap_named_tensor_t* inputs, int count, const gcap_tensor_t* y,
                             gcap_index_map_t* out_map) GCAP_NODISCARD;

#endif  // GCAP_OPS_KERNELS_BROADCAST_H_
