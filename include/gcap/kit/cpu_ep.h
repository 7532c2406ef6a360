// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cpu_ep.h: an EP on the CPU, for what a device EP leaves: the computation of shapes, integers, the odd node.
#ifndef GCAP_KIT_CPU_EP_H_
#define GCAP_KIT_CPU_EP_H_

#include "gcap/kit/ep.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes the CPU EP, of the name "cpu". Its kernels work on host memory, on the thread that runs them, and their work is
// done on return (gcap_ep_runs_on_host). It captures no graphs, and supports concurrent runs. It is made of plain
// loops: right, and fast enough for shapes; the products of a model belong on a device.
//
// Nodes have the semantics of ONNX's opset 13, with attributes in a gcap_attributes_t (model.h):
//
//   op                                   types                        attributes, and what differs
//   Shape, Size                          any; the output is i64       start, end (opset 15); they read no content
//   Gather                               any; indices i32 or i64      axis
//   Concat                               any                          axis
//   Slice                                any; the rest i32 or i64
//   Reshape, Expand                      any; the shape is i64        allowzero (Reshape, opset 14)
//   Flatten, Identity, Transpose         any                          axis; perm
//   Squeeze, Unsqueeze                   any; axes i64                axes, as input 1 or as attribute (opset 11)
//   Where                                bool; any, any
//   Cast                                 f32, i64, i32, bool, i8, u8  to, if given, is the output's type. From f32 to
//                                                                     an integer: toward zero, the nearest that there
//                                                                     is, NaN gives 0. An integer to a smaller one
//                                                                     keeps the low bits
//   Add, Sub, Mul, Neg, Abs              f32, i64, i32                integers wrap
//   Div                                  f32, i64, i32                integers: toward zero
//   Mod                                  f32, i64, i32                fmod; f32 needs fmod = 1
//   Min, Max                             f32, i64, i32                any number of inputs; a NaN stays
//   Relu                                 f32, i64, i32                (opset 14)
//   Equal                                f32, i64, i32, bool, i8, u8
//   Less, Greater                        f32, i64, i32
//   Not, And, Or                         bool
//   Range                                f32, i64, i32                element i is start + i * delta, rounded once
//   ConstantOfShape                      f32, i64, i32, bool          value: an int or a float attribute; 0 without it
//   ReduceProd, ReduceSum, ReduceMax     f32, i64, i32                axes, as input 1 or as attribute; keepdims,
//                                                                     noop_with_empty_axes. Of no elements: 1, 0, and
//                                                                     the least number of the type
//   MatMul                               f32
//
// Where one type is named, it is that of all inputs, and of the output unless it is bool by nature. Shapes are those of
// gcap_infer_shapes (shape_inference.h), any rank up to GCAP_MAX_RANK, sizes of 0 included. A dimension may be symbolic
// or inferred: any size that fits is computed. What does not fit is refused where it is known first, by
// gcap_ep_infer_shapes, gcap_ep_create_kernel, or compute: INVALID_ARGUMENT, with node, input and value. So is a
// division of integers by zero, and an index outside of its dimension.
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_cpu_ep_create(gcap_ep_t** out_ep) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_CPU_EP_H_
