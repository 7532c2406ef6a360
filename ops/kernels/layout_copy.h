// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// layout_copy.h: what the operators that move elements share: units, and the launch of a copy.
#ifndef GCAP_OPS_KERNELS_LAYOUT_COPY_H_
#define GCAP_OPS_KERNELS_LAYOUT_COPY_H_

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"
#include "ops/kernels/layout_kernels.h"

// The kernels of one unit.
typedef struct gcap_layout_kernels {
  const void* copy;
  const void* transpose;
  const void* gather;
} gcap_layout_kernels_t;
const gcap_layout_kernels_t* gcap_layout_kernels_of(size_t unit_bytes);

// The largest unit, of at least `bytes` (an element), of which all these addresses and lengths in bytes are multiples.
size_t gcap_unit_bytes(size_t bytes, uint64_t addresses_and_lengths);

// Strides of a dense tensor, for each axis.
void gcap_dense_strides(const gcap_tensor_t* tensor, int64_t* out_strides);

// Copies the elements of `shape` from x to y, whose strides are in elements of `element_bytes`; the addresses are those
// of the first elements. Launches nothing if there are none.
//   CUDA_ERROR  as gcap_op_launch
gcap_status_t gcap_copy_strided(gcap_stream_t* stream, size_t element_bytes, int rank, const int64_t* shape,
                                const void* x, const int64_t* x_strides, void* y,
                                const int64_t* y_strides) GCAP_NODISCARD;

#endif  // GCAP_OPS_KERNELS_LAYOUT_COPY_H_
