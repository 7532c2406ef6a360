// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// indexed.h: elements that move to and from places that indices name, as ONNX's GatherElements, GatherND,
// ScatterElements, ScatterND and TensorScatter.
#ifndef GCAP_OPS_KERNELS_INDEXED_H_
#define GCAP_OPS_KERNELS_INDEXED_H_

#include <stdbool.h>

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"
#include "ops/kernels/indexed_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

// Each call launches one kernel on `stream`; none if nothing moves. Shapes are those that gcap_infer_shapes of the
// operator accepts; `axis` and `batch_dims` are not negative. Indices are read when the work runs. A negative one
// counts from the end. Nothing outside of a tensor is read or written: an index that is out of range gathers zeros; an
// update of scatter_elements is left out for it, and in scatter_nd it is the nearest that is in range. The output
// shares no byte with an input.
//   INVALID_ARGUMENT  a tensor's type, size or address, or an overlap; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
gcap_status_t gcap_gather_elements(gcap_stream_t* stream, const gcap_tensor_t* x, const gcap_tensor_t* indices,
                                   int axis, const gcap_tensor_t* y) GCAP_NODISCARD;
gcap_status_t gcap_gather_nd(gcap_stream_t* stream, const gcap_tensor_t* x, const gcap_tensor_t* indices,
                             int batch_dims, const gcap_tensor_t* y) GCAP_NODISCARD;

// Whether elements of a type are combined by an op: any by GCAP_SCATTER_NONE, numbers by the others.
bool gcap_scatter_op_takes(gcap_scatter_op_t op, gcap_dtype_t dtype);

// `y` has the data already. Without an op, of several updates of one element any one stays; with one all count, in any
// order, which differs from run to run, and with it how sums and products of floats are rounded. On a GPU, an addition
// of f32 takes subnormal numbers as zeros of their sign, and gives such zeros for them: so PTX has red.add.f32 in
// global memory. The op takes the type.
gcap_status_t gcap_scatter_elements(gcap_stream_t* stream, gcap_scatter_op_t op, const gcap_tensor_t* indices,
                                    const gcap_tensor_t* updates, int axis, const gcap_tensor_t* y) GCAP_NODISCARD;
gcap_status_t gcap_scatter_nd(gcap_stream_t* stream, gcap_scatter_op_t op, const gcap_tensor_t* indices,
                              const gcap_tensor_t* updates, const gcap_tensor_t* y) GCAP_NODISCARD;

// Writes the rows of `update` along `axis`, which is not the first, to `cache`: for each of the first axis from the row
// on that `starts` says, or from the first one on if it is NULL. `circular`: behind the last row of the cache comes the
// first one; else a row that is out of range, also before the first one, is left out.
gcap_status_t gcap_write_cache(gcap_stream_t* stream, const gcap_tensor_t* starts, const gcap_tensor_t* update,
                               int axis, bool circular, const gcap_tensor_t* cache) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_INDEXED_H_
