// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// layout.h: operators that move elements and compute nothing.
#ifndef GCAP_KIT_OPS_LAYOUT_H_
#define GCAP_KIT_OPS_LAYOUT_H_

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// Each call launches one kernel on `stream`, concat and split one for each part; none for an output, or a part, without
// elements.
// Thread:   one thread at a time for each stream.
// Capture:  legal: kernel nodes, no allocation.
// Lifetime: tensors are read during the call. Their memory is device memory, of the stream's device or reachable from
//           it, and stays valid until the work is done, or as long as the work's graph.
//
// Tensors.  Of any type; those of one call are of one type, but for indices. Up to 2^40 elements. An address is a
// multiple
//           of the size of an element; if all are multiples of 16, copies are faster. `data` may be NULL if there are
//           no elements. An output shares no byte with an input.

// y = x with its axes in another order: axis i of `y` is axis perm[i] of `x`, as ONNX's Transpose. `perm` has each of
// 0..rank - 1 once; it may be NULL if the rank is 0.
//   INVALID_ARGUMENT  a NULL argument, or a tensor or permutation that is not as said above; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
GCAP_API gcap_status_t gcap_transpose(gcap_stream_t* stream, const gcap_tensor_t* x, const int64_t* perm,
                                      const gcap_tensor_t* y) GCAP_NODISCARD;

// y = the `num_inputs` inputs, at least one, behind one another on `axis`, in -rank..rank - 1. On the other axes all
// have one size.
//   INVALID_ARGUMENT  a NULL argument, or a tensor or axis that is not as said above; the message names it
//   CUDA_ERROR        a launch failed, or the stream's device could not be made current; some parts may be copied
GCAP_API gcap_status_t gcap_concat(gcap_stream_t* stream, const gcap_tensor_t* inputs, int num_inputs, int axis,
                                   const gcap_tensor_t* y) GCAP_NODISCARD;

// The reverse of concat: the `num_outputs` outputs, at least one, are the parts of `x` behind one another on `axis`.
// Outputs share no byte with each other.
//   INVALID_ARGUMENT  a NULL argument, or a tensor or axis that is not as said above; the message names it
//   CUDA_ERROR        a launch failed, or the stream's device could not be made current; some parts may be copied
GCAP_API gcap_status_t gcap_split(gcap_stream_t* stream, const gcap_tensor_t* x, int axis, const gcap_tensor_t* outputs,
                                  int num_outputs) GCAP_NODISCARD;

// y[i, ...] = x[starts[0] + i * steps[0], ...]. `starts` and `steps` have a member for each axis; `steps` may be NULL:
// all 1. The shape of `y` says how many elements there are on each axis: ONNX's `ends` are clamped by the caller. A
// negative start counts from the end; a step may be negative, not 0. All that is read lies inside `x`.
//   INVALID_ARGUMENT  a NULL argument, or a tensor, start or step that is not as said above; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
GCAP_API gcap_status_t gcap_slice(gcap_stream_t* stream, const gcap_tensor_t* x, const int64_t* starts,
                                  const int64_t* steps, const gcap_tensor_t* y) GCAP_NODISCARD;

// y = the elements of `x` at `indices` on `axis`, in -rank..rank - 1, as ONNX's Gather: the shape of `y` is that of `x`
// with the shape of `indices` in place of the axis. `indices` are i64 or i32; a negative one counts from the end. The
// indices are read when the work runs: one that is out of range gives zeros, and nothing outside of `x` is read.
//   INVALID_ARGUMENT  a NULL argument, or a tensor or axis that is not as said above; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
GCAP_API gcap_status_t gcap_gather(gcap_stream_t* stream, const gcap_tensor_t* x, const gcap_tensor_t* indices,
                                   int axis, const gcap_tensor_t* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_OPS_LAYOUT_H_
