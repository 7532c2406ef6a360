// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The parameters and the launch of poolings of three axes. No state.
#include "ops/kernels/volume_pool.h"

#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"

#define ENTRY(T) [GCAP_DTYPE_OF_##T] = (const void*)gcap_kernel_volume_pool_##T,
static const void* const kernels[GCAP_NUM_DTYPES] = {GCAP_VOLUME_POOL_KERNELS(ENTRY)};

gcap_status_t gcap_volume_pool(gcap_stream_t* stream, const gcap_volume_pool_params_t* way, const gcap_tensor_t* x,
                               const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, "x", x, /*or_same=*/false));
  const int64_t outputs = gcap_tensor_elements(y);
  if (outputs == 0) return NULL;
  gcap_volume_pool_params_t params = *way;
  params.x = x->data;
  params.y = y->data;
  params.volume.outputs = outputs;
  params.volume.channels = (int32_t)y->shape[1];
  params.volume.narrow = outputs <= INT32_MAX;
  return gcap_op_launch(stream, kernels[x->dtype], outputs, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &params);
}
