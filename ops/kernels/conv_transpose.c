// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The parameters and the launch of transposed convolutions. No state.
#include "ops/kernels/conv_transpose.h"

#include "ops/kernels/conv_transpose_kernels.h"
#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"

#define ENTRY(T) [GCAP_DTYPE_OF_##T] = (const void*)gcap_kernel_conv_transpose_##T,
static const void* const kernels[GCAP_NUM_DTYPES] = {GCAP_CONV_TRANSPOSE_KERNELS(ENTRY)};

static gcap_status_t check(const gcap_tensor_t* x, const gcap_tensor_t* weight, const gcap_tensor_t* bias,
                           const gcap_tensor_t* y) {
  const struct {
    const char* name;
    const gcap_tensor_t* tensor;
  } read[] = {{"x", x}, {"weight", weight}, {"bias", bias}};
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  for (int i = 0; i < (bias != NULL ? 3 : 2); ++i) {
    GCAP_RETURN_IF_ERROR(gcap_check_tensor(read[i].name, read[i].tensor));
    GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, read[i].name, read[i].tensor, /*or_same=*/false));
  }
  return NULL;
}

gcap_status_t gcap_conv_transpose(gcap_stream_t* stream, const gcap_window_side_t side[GCAP_VOLUME_AXES],
                                  const gcap_tensor_t* x, const gcap_tensor_t* weight, const gcap_tensor_t* bias,
                                  const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check(x, weight, bias, y));
  const int64_t outputs = gcap_tensor_elements(y);
  if (outputs == 0) return NULL;
  const int64_t groups = y->shape[1] / weight->shape[1];
  gcap_conv_transpose_params_t params = {.x = x->data,
                                         .weight = weight->data,
                                         .bias = bias != NULL ? bias->data : NULL,
                                         .y = y->data,
                                         .group_maps = (int32_t)weight->shape[1],
                                         .group_channels = (int32_t)(x->shape[1] / groups)};
  params.volume = (gcap_volume_t){.outputs = outputs, .channels = (int32_t)y->shape[1], .narrow = outputs <= INT32_MAX};
  for (int i = 0; i < GCAP_VOLUME_AXES; ++i) params.volume.side[i] = side[i];
  return gcap_op_launch(stream, kernels[x->dtype], outputs, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &params);
}
