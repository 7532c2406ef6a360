// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// shape_inference.h: the shapes of what nodes make, by the ONNX operator of the node: an EP's infer_shapes in one call,
// and what its kernels need of the same attributes.
#ifndef GCAP_KIT_SHAPE_INFERENCE_H_
#define GCAP_KIT_SHAPE_INFERENCE_H_

#include <stdbool.h>
#include <stdint.h>

#include "gcap/kit/model.h"
#include "gcap/status.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// Thread:   thread-safe.
// Capture:  every function here is legal while a stream is capturing: none allocates, and none calls CUDA.
// Lifetime: nothing is kept.
//
// A node's `attributes` is a gcap_attributes_t, or NULL. The operators, with the semantics of ONNX's opset 13 and what
// later opsets added to them:
//
//   element by element   Add, Sub, Mul, Div, Mod, Pow, Min, Max, Sum, Mean, Equal, Less, LessOrEqual, Greater,
//                        GreaterOrEqual, And, Or, Xor, BitwiseAnd, BitwiseOr, BitwiseXor, BitShift, Where: with
//                        broadcasting; of input 1 to input 0: PRelu, com.microsoft.BiasGelu, com.microsoft.FastGelu
//   one input's shape    Abs, Acos, Acosh, Asin, Asinh, Atan, Atanh, BitCast, BitwiseNot, Cast, Ceil, Celu, Clip, Cos,
//                        Cosh, Dropout, Elu, Erf, Exp, Floor, Gelu, com.microsoft.Gelu, com.microsoft.QuickGelu,
//                        HardSigmoid, HardSwish, Identity, IsInf, IsNaN, LeakyRelu, Log, Mish, Neg, Not, Reciprocal,
//                        Relu, Round, Selu, Shrink, Sigmoid, Sign, Sin, Sinh, Softplus, Softsign, Sqrt, Swish, Tan,
//                        Tanh, ThresholdedRelu, BatchNormalization, GroupNormalization, InstanceNormalization, LRN,
//                        MeanVarianceNormalization, with checked scales QuantizeLinear and DequantizeLinear
//                        (block_size), DynamicQuantizeLinear, and with a checked axis
//                        Hardmax, LayerNormalization (and its Mean and InvStdDev), LogSoftmax, LpNormalization,
//                        RMSNormalization, SimplifiedLayerNormalization, Softmax; with what is added to the input
//                        com.microsoft.SkipLayerNormalization, com.microsoft.SkipSimplifiedLayerNormalization
//   shapes               Shape (start, end), Size, ConstantOfShape, Range, Expand, Reshape (allowzero), Flatten,
//                        Squeeze, Unsqueeze
//   parts                Concat, Gather, Pad (mode), Slice, Split (num_outputs), Transpose, SpaceToDepth, DepthToSpace
//                        (blocksize, mode)
//   indices              GatherElements, GatherND (batch_dims), Scatter, ScatterElements, ScatterND, TensorScatter,
//                        ArgMax, ArgMin (keepdims), TopK (k as input 1, or as attribute)
//   elements by place    Tile, Trilu, EyeLike, OneHot, CumSum, ReverseSequence (batch_axis, time_axis)
//   reductions           ReduceL1, ReduceL2, ReduceLogSum, ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum,
//                        ReduceSumSquare (keepdims, noop_with_empty_axes)
//   products             MatMul, MatMulInteger, QLinearMatMul; com.microsoft.FusedMatMul and Gemm (transA, transB);
//                        Einsum (equation)
//   recurrent networks   LSTM, GRU, RNN (direction, hidden_size, layout)
//   resizes              Resize (axes, keep_aspect_ratio_policy; of opset 10 with two inputs), Upsample (opset 9),
//                        GridSample
//   attention            Attention (q_num_heads, kv_num_heads), com.microsoft.MultiHeadAttention (num_heads);
//                        RotaryEmbedding, also of com.microsoft: input 0's shape
//   windows              Conv, ConvTranspose, LpPool, MaxPool, AveragePool, GlobalAveragePool, GlobalMaxPool (auto_pad,
//                        ceil_mode)
//
// Squeeze, Unsqueeze and the reductions take their axes as input 1, or as attribute `axes` where an earlier opset has
// it there; Split takes `split` likewise, and so do Slice and Pad with all of their numbers.

// Computes the shapes of the node's outputs, as gcap_ep_infer_shapes specifies it: `inputs[i].data` is the content of
// input i in host memory, or NULL where it is unknown; it is read only where it decides a shape. A size that depends on
// an unknown content stays as it is. A size that `outputs` already has must be the one that the inputs give. On failure
// `outputs` are as before.
//   INVALID_ARGUMENT  the number, rank, size, type or content of an input, or an attribute, is none that the operator
//                     takes, or disagrees with another one or with `outputs`; the tensor would have more than
//                     PTRDIFF_MAX bytes. The message names the node, the input and the value
//   UNIMPLEMENTED     the operator is none of the above
GCAP_API gcap_status_t gcap_infer_shapes(const gcap_node_t* node, const gcap_tensor_t* inputs,
                                         gcap_tensor_t* outputs) GCAP_NODISCARD;

// --- What kernels need ----------------------------------------------------------------------------------------------

// Reads the attribute `axis` of a node for a tensor of `rank` dimensions; a negative axis counts from the end.
//   INVALID_ARGUMENT  the axis is outside of -rank..rank-1
GCAP_API gcap_status_t gcap_infer_axis(const gcap_node_t* node, int rank, int64_t fallback,
                                       int* out_axis) GCAP_NODISCARD;

// The axes of a reduction.
typedef struct gcap_axes {
  bool known;              // false if they are the content of an input, which is unknown
  bool at[GCAP_MAX_RANK];  // by axis of input 0: true if the node reduces it
} gcap_axes_t;

// Reads the axes over which a reduction (ReduceSum, …) reduces.
//   INVALID_ARGUMENT  as gcap_infer_shapes
GCAP_API gcap_status_t gcap_infer_reduced_axes(const gcap_node_t* node, const gcap_tensor_t* inputs,
                                               gcap_axes_t* out_axes) GCAP_NODISCARD;

// What a Slice takes, by axis of input 0: element i of the output is element start + i * step of the input.
typedef struct gcap_slice {
  bool known;  // false if the content of an input is unknown
  int64_t start[GCAP_MAX_RANK];
  int64_t step[GCAP_MAX_RANK];
  int64_t count[GCAP_MAX_RANK];
} gcap_slice_t;

// Reads what a Slice takes, with starts and ends clamped to the input.
//   INVALID_ARGUMENT  as gcap_infer_shapes
GCAP_API gcap_status_t gcap_infer_slice(const gcap_node_t* node, const gcap_tensor_t* inputs,
                                        gcap_slice_t* out_slice) GCAP_NODISCARD;

// How the window of a Conv or a pool moves, by axis after the first two of input 0.
typedef struct gcap_window {
  int rank;  // of the arrays
  int64_t size[GCAP_MAX_RANK];
  int64_t stride[GCAP_MAX_RANK];
  int64_t dilation[GCAP_MAX_RANK];
  int64_t pad_begin[GCAP_MAX_RANK];  // with auto_pad resolved
  int64_t pad_end[GCAP_MAX_RANK];
  int64_t count[GCAP_MAX_RANK];  // the output's size
} gcap_window_t;

// Reads the window of a Conv, MaxPool or AveragePool. What ceil_mode adds at the end is in `count` alone.
//   INVALID_ARGUMENT  as gcap_infer_shapes
GCAP_API gcap_status_t gcap_infer_window(const gcap_node_t* node, const gcap_tensor_t* inputs,
                                         gcap_window_t* out_window) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_SHAPE_INFERENCE_H_
