// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// grid_sample.h: elements of an image, or between them, at places that a grid on the device names.
#ifndef GCAP_OPS_KERNELS_GRID_SAMPLE_H_
#define GCAP_OPS_KERNELS_GRID_SAMPLE_H_

#include <stdbool.h>

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"
#include "ops/kernels/grid_sample_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

// y[n, c, places...] = x[n, c, ...] at grid[n, places..., :], a place in -1..1 on each of the one to three axes, the
// last axis first: the centers of the outermost elements with `align_corners`, else their outer edges. A NaN in the
// grid is a place far before the image. The three tensors are of one type, F32, F16 or BF16, and of the shapes that
// gcap_infer_shapes of GridSample accepts.
//   INVALID_ARGUMENT  an address, an overlap, or a size that is no int; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
gcap_status_t gcap_grid_sample(gcap_stream_t* stream, gcap_grid_mode_t mode, gcap_grid_padding_t padding,
                               bool align_corners, const gcap_tensor_t* x, const gcap_tensor_t* grid,
                               const gcap_tensor_t* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_GRID_SAMPLE_H_
