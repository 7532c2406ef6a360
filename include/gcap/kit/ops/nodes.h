// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// nodes.h: kernels for the nodes of models, by ONNX operator: what a device EP's supports, create_kernel and
// input_place answer, over the operators of gcap/kit/ops.
#ifndef GCAP_KIT_OPS_NODES_H_
#define GCAP_KIT_OPS_NODES_H_

#include <stdbool.h>

#include "gcap/kit/ep.h"
#include "gcap/options.h"

#ifdef __cplusplus
extern "C" {
#endif

// Nodes have the semantics of ONNX's opset 13, and what later opsets added to them, with attributes in a
// gcap_attributes_t (model.h). Floats are f32, f16 and bf16. Integers are i64, i32, i8 and u8, and wrap around. Any is
// each type of gcap_dtype_t.
//
//   op                                   types of T                what is honored, and what is refused
//   MatMul                               floats                    any ranks, with broadcasting
//   com.microsoft.FusedMatMul            floats                    transA, transB, alpha; not: transBatchA, transBatchB
//   Einsum                               floats                    equation: letters, ellipses, a letter twice in an
//                                                                  input; up to 8 inputs. Not: more than 8 axes on the
//                                                                  way, where inputs are taken from the left
//   Gemm                                 floats                    transA, transB, alpha, beta; C: any that broadcasts;
//                                                                  activation
//   Conv                                 floats                    one to three axes, kernel_shape, pads, strides,
//                                                                  dilations, group, auto_pad; activation
//   ConvTranspose                        floats                    one to three axes; as Conv, and output_padding and
//                                                                  output_shape; not: activation
//   MaxPool, AveragePool                 floats                    one to three axes; kernel_shape, pads, strides,
//                                                                  dilations, auto_pad, ceil_mode, count_include_pad.
//                                                                  Not: Indices, pads as large as the window reaches
//   LpPool                               floats                    p; else as MaxPool
//   GlobalMaxPool, GlobalAveragePool     floats                    any number of axes
//   BatchNormalization                   floats; the rest f32      epsilon; not: training_mode
//   Add, Sub, Mul, Div                   floats, integers
//   Pow                                  floats, i64, i32          the exponent may be of another of these types
//   Mod                                  floats, integers          fmod, which floats must have; a modulo 0 of
//                                                                  integers is 0
//   Min, Max                             floats, integers          any number of inputs
//   Sum                                  floats, i64, i32          any number of inputs
//   Mean                                 floats                    any number of inputs
//   Equal                                any                       gives bool
//   Less, LessOrEqual                    floats, integers          give bool
//   Greater, GreaterOrEqual              floats, integers          give bool
//   And, Or, Xor, Not                    bool
//   BitwiseAnd, BitwiseOr, BitwiseXor    integers
//   BitwiseNot                           integers
//   BitShift                             u8                        direction; by 8 and more gives 0
//   BitCast                              f32, integers             to: the output's type, of as many bits
//   Where                                any                       condition: bool
//   Cast                                 any to any                to, if given, is the output's type
//   Abs, Sign                            floats, integers
//   Relu, Neg                            floats, i64, i32, i8
//   LeakyRelu, ThresholdedRelu           floats                    alpha
//   Elu, Celu, Swish                     floats                    alpha
//   Selu                                 floats                    alpha, gamma
//   HardSigmoid                          floats                    alpha, beta
//   Shrink                               floats, integers          bias, lambd; integers are truncated
//   PRelu                                floats                    the slope is broadcast to the other input
//   Gelu, com.microsoft.Gelu             floats                    approximate, of the first
//   com.microsoft.QuickGelu              floats                    alpha
//   com.microsoft.BiasGelu, .FastGelu    floats                    the bias is broadcast to the other input
//   Sigmoid, Tanh, Erf, Exp, Log, Sqrt   floats
//   Reciprocal, Floor, Ceil, Round       floats
//   Sin, Cos, Tan, Asin, Acos, Atan      floats
//   Sinh, Cosh, Asinh, Acosh, Atanh      floats
//   HardSwish, Mish, Softplus, Softsign  floats
//   IsNaN, IsInf                         floats                    give bool; detect_negative, detect_positive
//   Clip                                 floats, integers          min, max: inputs on the host, or attributes
//   Softmax, LogSoftmax                  floats                    axis
//   Softmax-1, LogSoftmax-1              floats                    axis: as before opset 13, of all axes from it on
//   LayerNormalization                   floats                    axis, epsilon; scale and bias have the shape of the
//                                                                  axes. Mean and InvStdDev are f32
//   RMSNormalization                     floats                    axis, epsilon; the scale has the shape of the axes.
//                                                                  Also as SimplifiedLayerNormalization
//   com.microsoft.SkipLayerNormalization floats                    epsilon; beta, bias, the sum as output 3. Without
//                                                                  beta also as .SkipSimplifiedLayerNormalization.
//                                                                  Not: mean and inv_std_var as outputs
//   GridSample                           floats                    one to three axes; mode, padding_mode,
//                                                                  align_corners; the grid is of the type of the image
//   InstanceNormalization                floats                    epsilon
//   GroupNormalization                   floats                    epsilon, num_groups; scale and bias of channels, as
//                                                                  opset 21 has them
//   LpNormalization                      floats                    axis, p; a norm of 0 gives zeros
//   MeanVarianceNormalization            floats                    axes: the first ones, the last ones, or both
//   LSTM, GRU, RNN                       floats; lengths i32       direction, hidden_size, layout, linear_before_reset;
//                                                                  peepholes; what is left out. Lengths are read on the
//                                                                  device; one that is outside counts as the nearest.
//                                                                  Not: clip, input_forget, activations that are no
//                                                                  defaults
//   LRN                                  floats                    size, alpha, beta, bias
//   ReduceSum, ReduceMean, ReduceProd    floats, i64, i32          axes, as input on the host or as attribute;
//   ReduceL1, ReduceSumSquare            floats, i64, i32          keepdims, noop_with_empty_axes
//   ReduceL2, ReduceLogSum               floats
//   ReduceMax, ReduceMin                 floats, i64, i32, bool
//   QuantizeLinear                       floats, i8, u8            floats to i8 or u8; the quotient is of the scale's
//                                                                  type or of precision; axis, block_size, output_dtype
//   DequantizeLinear                     floats, i8, u8, i32       integers to floats; axis, block_size
//   ArgMax, ArgMin                       floats, i64, i32          axis, keepdims, select_last_index; give i64. A NaN
//                                                                  is an extremum
//   Hardmax                              floats                    axis, as from opset 13 on
//   TopK                                 floats, i64, i32          axis, largest, sorted; k: on the host, or attribute.
//                                                                  Of equals the first; a NaN of either sign is larger
//                                                                  than infinity
//   DynamicQuantizeLinear                f32 to u8
//   MatMulInteger                        i8, u8; gives i32         zero points: one, or one for each row or column
//   QLinearMatMul                        i8, u8; scales f32        one scale and zero point, or for B one a column
//   Attention                            floats; mask bool or T    scale, is_causal, softcap, q_num_heads,
//                                                                  kv_num_heads; a past, if both; grouped heads. Not:
//                                                                  nonpad_kv_seqlen, qk_matmul_output_mode but 0, f64
//                                                                  as softmax_precision
//   com.microsoft.MultiHeadAttention     floats; mask i32          num_heads, scale, unidirectional, mask_filter_value;
//                                                                  bias, key_padding_mask, attention_bias, a past with
//                                                                  its present; K and V with heads as an axis. Not:
//                                                                  packed Q, K and V, offsets of packed batches, a
//                                                                  mask of less than all keys, buffers that past and
//                                                                  present share, qk
//   RotaryEmbedding                      floats; positions i64     interleaved, num_heads, rotary_embedding_dim; a
//   com.microsoft.RotaryEmbedding                                  position out of range gives zeros. Not: scale,
//                                                                  is_packed_batching
//   Transpose, Concat                    any                       perm; axis
//   Split                                any                       axis, num_outputs; split on the host; not: more
//                                                                  than 8 outputs
//   Slice                                any                       starts, ends, axes, steps on the host; before opset
//                                                                  10 attributes
//   Pad                                  any                       mode: constant, reflect, edge, wrap; pads, value and
//                                                                  axes on the host, before opset 11 attributes. What
//                                                                  is negative crops, before other modes than constant
//                                                                  look. Not: reflect of more than is left but one
//   Expand                               any                       the shape on the host
//   SpaceToDepth, DepthToSpace           any                       blocksize, mode
//   ConstantOfShape                      any                       the shape on the host; value: a float or an int
//   Tile                                 any                       repeats on the host
//   Trilu                                any                       k on the host; upper
//   EyeLike                              any to any                k; dtype, if given, is the output's type
//   OneHot                               any; indices and depth    axis; depth on the host. An index out of range is
//                                        i64, i32 or f32           nowhere
//   CumSum                               floats, i64, i32          axis on the host; exclusive, reverse; integers wrap
//   ReverseSequence                      any; lengths i64          batch_axis, time_axis. Lengths are read on the
//                                                                  device; one that is outside counts as the nearest
//   Range                                f32, i64, i32             start, limit, delta on the host; integers wrap
//   Gather, GatherElements               any; indices i64 or i32   axis; an index out of range gives zeros
//   GatherND                             any; indices i64          batch_dims; an index out of range gives zeros
//   ScatterElements, Scatter             any; indices i64 or i32   axis, reduction (not of bool); an update whose index
//                                                                  is out of range is left out
//   ScatterND                            any; indices i64          reduction (not of bool); an index out of range is
//                                                                  the nearest that is not
//   TensorScatter                        any; indices i64          axis, mode; a row that is out of range is left out
//   Reshape, Flatten, Squeeze, Unsqueeze any                       shapes and axes on the host; all copy
//   Resize, Upsample                     any by nearest, else      scales or sizes on the host; all but antialias and
//                                        floats                    tf_crop_and_resize
//   Identity, Dropout                    any; floats               not: training_mode that is not a constant false. The
//                                                                  mask is all true
//
// "On the host": gcap_node_kernels_input_place says GCAP_INPUT_IN_HOST_MEMORY. The content is read when the work is
// issued, and a graph keeps it.
//
// `activation` is no attribute of ONNX: "Relu", what ONNX has as a node of its own, is done by the same kernel. Any
// other value is refused.
//
// A dimension of a model that is not fixed may have any size, but none of a window's operator may be 0 but the batch's.
// Sizes of operators by cuDNN (Conv, pools, BatchNormalization) fit an int. Tensors of f16 and bf16 are aligned to 16
// bytes where cuBLASLt or cuDNN read or write them, all others as their elements.

// Node kernels: what the kernels of one EP have in common. From gcap_node_kernels_create.
// Thread:   thread-safe. Kernels compute on several threads at once.
// Capture:  gcap_node_kernels_create, _create_kernel and _destroy before or after a capture: they make and end library
//           handles and plans. A kernel's compute allocates workspace from the run's scratch alone, and is legal once
//           it was computed eagerly on the stream, which makes the stream's handle of cuDNN.
// Lifetime: outlives its kernels, and the graphs that recorded them.
typedef struct gcap_node_kernels gcap_node_kernels_t;

// Makes node kernels for a device. `options` NULL: the defaults. Of the options,
//   use_tf32                products of f32 may use TF32
//   conv_search             DEFAULT is what HEURISTIC is. An exhaustive search runs in gcap_node_kernels_create_kernel,
//                           on the thread's stream and scratch, and waits for it; not for what gcap's own kernel does
//                           (conv2d.h)
//   conv_use_max_workspace  true: an algorithm of a convolution may need any workspace; false: up to 32 MiB
//   conv1d_pad_to_nc1d      where the second axis of a one-dimensional convolution is added
//   fuse_conv_bias          true: bias and activation are done by the convolution; false: by kernels behind it
//   use_cudnn               false: Conv, pools and BatchNormalization are not supported
// are honored. prefer_nhwc is refused: tensors of a model are NCHW, and each convolution would transpose them there and
// back. The others are about operators that are not here.
//   INVALID_ARGUMENT    `out_kernels` is NULL; options that were not initialized; prefer_nhwc; no such device
//   LIBRARY_ERROR       cuBLASLt could not start
//   RESOURCE_EXHAUSTED  no host memory
// Also what gcap_stream_create and gcap_stream_cublaslt_handle return.
GCAP_API gcap_status_t gcap_node_kernels_create(int device_id, const gcap_kernel_options_t* options,
                                                gcap_node_kernels_t** out_kernels) GCAP_NODISCARD;

// Ends node kernels. NULL is fine.
//   FAILED_PRECONDITION  as gcap_stream_destroy: nothing was ended
//   LEAKED               the kernels are gone; what could not be ended is kept
GCAP_API gcap_status_t gcap_node_kernels_destroy(gcap_node_kernels_t* kernels) GCAP_NODISCARD;

// gcap_ep_supports: true if the node's operator is in the table, and its types, ranks and attributes are as there said.
// Shapes that contradict each other are refused by gcap_node_kernels_create_kernel, whose message says which.
GCAP_API bool gcap_node_kernels_supports(const gcap_node_kernels_t* kernels, const gcap_model_t* model,
                                         const gcap_node_t* node);

// gcap_ep_input_place.
GCAP_API gcap_input_place_t gcap_node_kernels_input_place(const gcap_node_kernels_t* kernels, const gcap_model_t* model,
                                                          const gcap_node_t* node, int input);

// gcap_ep_create_kernel: makes the kernel of a node, whose shapes are all fixed. `resources` are the calling thread's
// of the EP (gcap_runtime_get_resources); nothing of them is kept. The device is current. The kernel computes with
// tensors of these types and shapes alone, and refuses others. The model may end before the kernel.
//   INVALID_ARGUMENT     a NULL argument; a node that is not supported; shapes or attributes that are none of the
//                        operator's, or that the libraries do not take; the message names the node
//   UNIMPLEMENTED        cuDNN or cuBLASLt has no algorithm
//   FAILED_PRECONDITION  the calling thread is capturing, and the operator needs a plan
//   LIBRARY_ERROR        cuDNN or cuBLASLt failed
//   RESOURCE_EXHAUSTED   no host memory, or no scratch for a search
// Also what gcap_stream_cudnn_handle, gcap_conv2d_create, gcap_pool2d_create, gcap_batch_norm_create and
// gcap_matmul_create return.
GCAP_API gcap_status_t gcap_node_kernels_create_kernel(const gcap_node_kernels_t* kernels,
                                                       const gcap_run_resources_t* resources, const gcap_model_t* model,
                                                       const gcap_node_t* node,
                                                       gcap_kernel_t* out_kernel) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_OPS_NODES_H_
