// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The table of operators. Here inputs are counted and checked, once for all; outputs are given to a copy, so that a
// failure changes nothing.

#include <string.h>

#include "kit/shape/infer.h"
#include "lib/internal/check_argument.h"

#define ANY_NUMBER INT32_MAX
#define MAX_OUTPUTS GCAP_MAX_RANK

static const struct {
  const char* op_type;
  gcap_infer_t* infer;
  int min_inputs, max_inputs;
} operators[] = {
    {"Abs", gcap_infer_same, 1, 1},
    {"Acos", gcap_infer_same, 1, 1},
    {"Acosh", gcap_infer_same, 1, 1},
    {"Add", gcap_infer_elementwise, 2, 2},
    {"And", gcap_infer_elementwise, 2, 2},
    {"ArgMax", gcap_infer_arg, 1, 1},
    {"ArgMin", gcap_infer_arg, 1, 1},
    {"Asin", gcap_infer_same, 1, 1},
    {"Asinh", gcap_infer_same, 1, 1},
    {"Atan", gcap_infer_same, 1, 1},
    {"Atanh", gcap_infer_same, 1, 1},
    {"Attention", gcap_infer_attention, 3, 6},
    {"AveragePool", gcap_infer_pool, 1, 1},
    {"BatchNormalization", gcap_infer_same, 5, 5},
    {"BitCast", gcap_infer_same, 1, 1},
    {"BitShift", gcap_infer_elementwise, 2, 2},
    {"BitwiseAnd", gcap_infer_elementwise, 2, 2},
    {"BitwiseNot", gcap_infer_same, 1, 1},
    {"BitwiseOr", gcap_infer_elementwise, 2, 2},
    {"BitwiseXor", gcap_infer_elementwise, 2, 2},
    {"Cast", gcap_infer_same, 1, 1},
    {"Ceil", gcap_infer_same, 1, 1},
    {"Celu", gcap_infer_same, 1, 1},
    {"Clip", gcap_infer_same, 1, 3},
    {"Concat", gcap_infer_concat, 1, ANY_NUMBER},
    {"ConstantOfShape", gcap_infer_constant_of_shape, 1, 1},
    {"Conv", gcap_infer_conv, 2, 3},
    {"ConvTranspose", gcap_infer_conv_transpose, 2, 3},
    {"Cos", gcap_infer_same, 1, 1},
    {"Cosh", gcap_infer_same, 1, 1},
    {"CumSum", gcap_infer_cum_sum, 2, 2},
    {"DepthToSpace", gcap_infer_depth_to_space, 1, 1},
    {"DequantizeLinear", gcap_infer_quantize, 2, 3},
    {"Div", gcap_infer_elementwise, 2, 2},
    {"Dropout", gcap_infer_dropout, 1, 3},
    {"DynamicQuantizeLinear", gcap_infer_dynamic_quantize, 1, 1},
    {"Einsum", gcap_infer_einsum, 1, 8},
    {"Elu", gcap_infer_same, 1, 1},
    {"Equal", gcap_infer_elementwise, 2, 2},
    {"Erf", gcap_infer_same, 1, 1},
    {"Exp", gcap_infer_same, 1, 1},
    {"Expand", gcap_infer_expand, 2, 2},
    {"EyeLike", gcap_infer_eye_like, 1, 1},
    {"Flatten", gcap_infer_flatten, 1, 1},
    {"Floor", gcap_infer_same, 1, 1},
    {"GRU", gcap_infer_recurrent, 3, 6},
    {"Gather", gcap_infer_gather, 2, 2},
    {"GatherElements", gcap_infer_gather_elements, 2, 2},
    {"GatherND", gcap_infer_gather_nd, 2, 2},
    {"Gelu", gcap_infer_same, 1, 1},
    {"Gemm", gcap_infer_gemm, 2, 3},
    {"GlobalAveragePool", gcap_infer_global_pool, 1, 1},
    {"GlobalMaxPool", gcap_infer_global_pool, 1, 1},
    {"Greater", gcap_infer_elementwise, 2, 2},
    {"GreaterOrEqual", gcap_infer_elementwise, 2, 2},
    {"GridSample", gcap_infer_grid_sample, 2, 2},
    {"GroupNormalization", gcap_infer_same, 3, 3},
    {"Hardmax", gcap_infer_same_with_axis, 1, 1},
    {"HardSigmoid", gcap_infer_same, 1, 1},
    {"HardSwish", gcap_infer_same, 1, 1},
    {"Identity", gcap_infer_same, 1, 1},
    {"InstanceNormalization", gcap_infer_same, 3, 3},
    {"IsInf", gcap_infer_same, 1, 1},
    {"IsNaN", gcap_infer_same, 1, 1},
    {"LRN", gcap_infer_same, 1, 1},
    {"LSTM", gcap_infer_recurrent, 3, 8},
    {"LayerNormalization", gcap_infer_layer_norm, 2, 3},
    {"LeakyRelu", gcap_infer_same, 1, 1},
    {"Less", gcap_infer_elementwise, 2, 2},
    {"LessOrEqual", gcap_infer_elementwise, 2, 2},
    {"Log", gcap_infer_same, 1, 1},
    {"LogSoftmax", gcap_infer_same_with_axis, 1, 1},
    {"LogSoftmax-1", gcap_infer_same_in_rows, 1, 1},
    {"LpNormalization", gcap_infer_same_with_axis, 1, 1},
    {"LpPool", gcap_infer_pool, 1, 1},
    {"MatMul", gcap_infer_matmul, 2, 2},
    {"MatMulInteger", gcap_infer_matmul_integer, 2, 4},
    {"Max", gcap_infer_elementwise, 1, ANY_NUMBER},
    {"MaxPool", gcap_infer_pool, 1, 1},
    {"Mean", gcap_infer_elementwise, 1, ANY_NUMBER},
    {"MeanVarianceNormalization", gcap_infer_same, 1, 1},
    {"Min", gcap_infer_elementwise, 1, ANY_NUMBER},
    {"Mish", gcap_infer_same, 1, 1},
    {"Mod", gcap_infer_elementwise, 2, 2},
    {"Mul", gcap_infer_elementwise, 2, 2},
    {"Neg", gcap_infer_same, 1, 1},
    {"Not", gcap_infer_same, 1, 1},
    {"OneHot", gcap_infer_one_hot, 3, 3},
    {"Or", gcap_infer_elementwise, 2, 2},
    {"PRelu", gcap_infer_onto_first, 2, 2},
    {"Pad", gcap_infer_pad, 1, 4},
    {"Pow", gcap_infer_elementwise, 2, 2},
    {"QuantizeLinear", gcap_infer_quantize, 2, 3},
    {"QLinearMatMul", gcap_infer_qlinear_matmul, 8, 8},
    {"RMSNormalization", gcap_infer_same_with_axis, 2, 2},
    {"RNN", gcap_infer_recurrent, 3, 6},
    {"Range", gcap_infer_range, 3, 3},
    {"Reciprocal", gcap_infer_same, 1, 1},
    {"ReduceL1", gcap_infer_reduce, 1, 2},
    {"ReduceL2", gcap_infer_reduce, 1, 2},
    {"ReduceLogSum", gcap_infer_reduce, 1, 2},
    {"ReduceMax", gcap_infer_reduce, 1, 2},
    {"ReduceMean", gcap_infer_reduce, 1, 2},
    {"ReduceMin", gcap_infer_reduce, 1, 2},
    {"ReduceProd", gcap_infer_reduce, 1, 2},
    {"ReduceSum", gcap_infer_reduce, 1, 2},
    {"ReduceSumSquare", gcap_infer_reduce, 1, 2},
    {"Relu", gcap_infer_same, 1, 1},
    {"Reshape", gcap_infer_reshape, 2, 2},
    {"Resize", gcap_infer_resize_op, 2, 4},
    {"ReverseSequence", gcap_infer_reverse_sequence, 2, 2},
    {"RotaryEmbedding", gcap_infer_same, 3, 4},
    {"Round", gcap_infer_same, 1, 1},
    {"Scatter", gcap_infer_scatter_elements, 3, 3},
    {"ScatterElements", gcap_infer_scatter_elements, 3, 3},
    {"ScatterND", gcap_infer_scatter_nd, 3, 3},
    {"Selu", gcap_infer_same, 1, 1},
    {"Shape", gcap_infer_shape_op, 1, 1},
    {"Shrink", gcap_infer_same, 1, 1},
    {"Sigmoid", gcap_infer_same, 1, 1},
    {"Sign", gcap_infer_same, 1, 1},
    {"SimplifiedLayerNormalization", gcap_infer_same_with_axis, 2, 2},
    {"Sin", gcap_infer_same, 1, 1},
    {"Sinh", gcap_infer_same, 1, 1},
    {"Size", gcap_infer_size_op, 1, 1},
    {"Slice", gcap_infer_slice_op, 1, 5},
    {"Softmax", gcap_infer_same_with_axis, 1, 1},
    {"Softmax-1", gcap_infer_same_in_rows, 1, 1},
    {"Softplus", gcap_infer_same, 1, 1},
    {"Softsign", gcap_infer_same, 1, 1},
    {"SpaceToDepth", gcap_infer_space_to_depth, 1, 1},
    {"Split", gcap_infer_split, 1, 2},
    {"Sqrt", gcap_infer_same, 1, 1},
    {"Squeeze", gcap_infer_squeeze, 1, 2},
    {"Sub", gcap_infer_elementwise, 2, 2},
    {"Sum", gcap_infer_elementwise, 1, ANY_NUMBER},
    {"Swish", gcap_infer_same, 1, 1},
    {"Tan", gcap_infer_same, 1, 1},
    {"Tanh", gcap_infer_same, 1, 1},
    {"TensorScatter", gcap_infer_tensor_scatter, 2, 3},
    {"ThresholdedRelu", gcap_infer_same, 1, 1},
    {"Tile", gcap_infer_tile, 2, 2},
    {"TopK", gcap_infer_top_k, 1, 2},
    {"Transpose", gcap_infer_transpose, 1, 1},
    {"Trilu", gcap_infer_trilu, 1, 2},
    {"Unsqueeze", gcap_infer_unsqueeze, 1, 2},
    {"Upsample", gcap_infer_resize_op, 2, 2},
    {"Where", gcap_infer_elementwise, 3, 3},
    {"Xor", gcap_infer_elementwise, 2, 2},
    {"com.microsoft.BiasGelu", gcap_infer_onto_first, 2, 2},
    {"com.microsoft.FastGelu", gcap_infer_onto_first, 1, 2},
    {"com.microsoft.FusedMatMul", gcap_infer_fused_matmul, 2, 2},
    {"com.microsoft.Gelu", gcap_infer_same, 1, 1},
    {"com.microsoft.MultiHeadAttention", gcap_infer_attention, 3, 8},
    {"com.microsoft.QuickGelu", gcap_infer_same, 1, 1},
    {"com.microsoft.RotaryEmbedding", gcap_infer_same, 4, 4},
    {"com.microsoft.SkipLayerNormalization", gcap_infer_skip_norm, 3, 5},
    {"com.microsoft.SkipSimplifiedLayerNormalization", gcap_infer_skip_norm, 3, 4},
};
#define NUM_OPERATORS ((int)(sizeof(operators) / sizeof(operators[0])))

// The row of an operator; -1 if there is none.
static int find(const char* op_type) {
  for (int i = 0; i < NUM_OPERATORS; ++i) {
    if (strcmp(operators[i].op_type, op_type) == 0) return i;
  }
  return -1;
}

static gcap_status_t check_inputs(const gcap_node_t* node, int row, const gcap_tensor_t* inputs) {
  const int least = operators[row].min_inputs, most = operators[row].max_inputs;
  if (most == ANY_NUMBER && node->num_inputs < least) {
    return GCAP_SHAPE_REFUSE(node, "it has %d inputs, allowed is %d or more", node->num_inputs, least);
  }
  if (node->num_inputs < least || node->num_inputs > most) {
    return GCAP_SHAPE_REFUSE(node, "it has %d inputs, allowed is %d..%d", node->num_inputs, least, most);
  }
  for (int i = 0; i < node->num_inputs; ++i) GCAP_RETURN_IF_ERROR(gcap_shape_check_input(node, i, &inputs[i]));
  return NULL;
}

static gcap_status_t check_outputs(const gcap_node_t* node, const gcap_tensor_t* outputs) {
  if (node->num_outputs < 1 || node->num_outputs > MAX_OUTPUTS) {
    return GCAP_SHAPE_REFUSE(node, "it has %d outputs, allowed is 1..%d", node->num_outputs, MAX_OUTPUTS);
  }
  for (int i = 0; i < node->num_outputs; ++i) {
    if (outputs[i].rank >= 0 && outputs[i].rank <= GCAP_MAX_RANK) continue;
    return GCAP_SHAPE_REFUSE(node, "output %d has rank %d, allowed is 0..%d", i, outputs[i].rank, GCAP_MAX_RANK);
  }
  return NULL;
}

gcap_status_t gcap_infer_shapes(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  GCAP_RETURN_IF_NULL(node);
  GCAP_RETURN_IF_NULL(node->name);
  GCAP_RETURN_IF_NULL(node->op_type);
  if (node->num_inputs > 0) GCAP_RETURN_IF_NULL(inputs);
  GCAP_RETURN_IF_NULL(outputs);
  const int row = find(node->op_type);
  if (row < 0) {
    return GCAP_STATUS(GCAP_UNIMPLEMENTED, "node '%s': the shapes of op '%s' cannot be inferred", node->name,
                       node->op_type);
  }
  GCAP_RETURN_IF_ERROR(check_inputs(node, row, inputs));
  GCAP_RETURN_IF_ERROR(check_outputs(node, outputs));
  const size_t bytes = (size_t)node->num_outputs * sizeof(*outputs);
  gcap_tensor_t made[MAX_OUTPUTS];
  memcpy(made, outputs, bytes);
  GCAP_RETURN_IF_ERROR(operators[row].infer(node, inputs, made));
  memcpy(outputs, made, bytes);
  return NULL;
}
