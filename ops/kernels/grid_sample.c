// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The parameters and the launch of GridSample. No state.
#include "ops/kernels/grid_sample.h"

#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"

enum { LEADING = 2 };  // batch and channels

#define ENTRY(T) [GCAP_DTYPE_OF_##T] = (const void*)gcap_kernel_grid_sample_##T,
static const void* const kernels[GCAP_NUM_DTYPES] = {GCAP_GRID_SAMPLE_KERNELS(ENTRY)};

static gcap_status_t check(const gcap_tensor_t* x, const gcap_tensor_t* grid, const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("x", x));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("grid", grid));
  GCAP_RETURN_IF_ERROR(gcap_check_tensor("y", y));
  GCAP_RETURN_IF_ERROR(gcap_check_apart("y", y, "x", x, /*or_same=*/false));
  return gcap_check_apart("y", y, "grid", grid, /*or_same=*/false);
}

static gcap_status_t take_size(const char* name, int axis, const gcap_tensor_t* tensor, int32_t* out_size) {
  const int64_t size = tensor->shape[axis];
  if (size > INT32_MAX) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s.shape[%d] is %lld, allowed are up to %d", name, axis, (long long)size,
                       INT32_MAX);
  }
  *out_size = (int32_t)size;
  return NULL;
}

gcap_status_t gcap_grid_sample(gcap_stream_t* stream, gcap_grid_mode_t mode, gcap_grid_padding_t padding,
                               bool align_corners, const gcap_tensor_t* x, const gcap_tensor_t* grid,
                               const gcap_tensor_t* y) {
  GCAP_RETURN_IF_ERROR(check(x, grid, y));
  const int64_t outputs = gcap_tensor_elements(y);
  if (outputs == 0) return NULL;
  gcap_grid_sample_params_t params = {.x = x->data,
                                      .grid = grid->data,
                                      .y = y->data,
                                      .axes = x->rank - LEADING,
                                      .mode = (int32_t)mode,
                                      .padding = (int32_t)padding,
                                      .align_corners = align_corners};
  params.volume.outputs = outputs;
  params.volume.narrow = outputs <= INT32_MAX;
  GCAP_RETURN_IF_ERROR(take_size("x", 1, x, &params.volume.channels));
  for (int i = 0; i < GCAP_VOLUME_AXES; ++i) {
    gcap_window_side_t* side = &params.volume.side[i];
    const int axis = x->rank - GCAP_VOLUME_AXES + i;
    side->input = side->output = 1;
    if (axis < LEADING) continue;
    GCAP_RETURN_IF_ERROR(take_size("x", axis, x, &side->input));
    GCAP_RETURN_IF_ERROR(take_size("y", axis, y, &side->output));
  }
  return gcap_op_launch(stream, kernels[x->dtype], outputs, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &params);
}
