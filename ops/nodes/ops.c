// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The table of operators, and what it says of a node: its types. Sizes are no matter of the table, so that a dimension
// may be open when a host asks.

#include <string.h>

#include "gcap/kit/ops/pool2d.h"
#include "gcap/kit/ops/reduce.h"
#include "kit/shape/inner.h"
#include "ops/kernels/elementwise.h"
#include "ops/nodes/op.h"

#define BIT(dtype) (1u << (dtype))
#define BOOL BIT(GCAP_DTYPE_BOOL)
#define FLOATS (BIT(GCAP_DTYPE_F32) | BIT(GCAP_DTYPE_F16) | BIT(GCAP_DTYPE_BF16))
#define INTEGERS (BIT(GCAP_DTYPE_I64) | BIT(GCAP_DTYPE_I32))
#define NUMBERS (FLOATS | INTEGERS)
#define BYTES (BIT(GCAP_DTYPE_I8) | BIT(GCAP_DTYPE_U8))
#define ALL_INTEGERS (INTEGERS | BYTES)
#define ALL_NUMBERS (FLOATS | ALL_INTEGERS)
#define ANY (ALL_NUMBERS | BOOL)

#define PLAN(name) .plan = name##_plan, .end_plan = name##_end
#define BINARY(op_type, signature, types, which) \
  { op_type, signature, types, .compute = gcap_node_binary, .code = which }
#define UNARY(op_type, types, which) \
  { op_type, "T>T", types, .compute = gcap_node_unary, .code = which }
#define UNARY_BY(op_type, types, which, of_alpha, of_beta) \
  { op_type, "T>T", types, .compute = gcap_node_unary, .code = which, .alpha = of_alpha, .beta = of_beta }
#define ATTRIBUTE(name, fallback) \
  { name, fallback }
#define NONE ATTRIBUTE(NULL, 0.0f)
#define REDUCE(op_type, types, which) \
  { op_type, "T?l>T", types, .compute = gcap_node_reduce, .code = which }
#define POOL(op_type, which, fits)                                                                          \
  {                                                                                                         \
    op_type, "T>T", FLOATS, .compute = gcap_node_pool, .code = which, .needs_cudnn = true, .accepts = fits, \
                            PLAN(gcap_node_pool)                                                            \
  }
#define SCATTER(op_type, signature, how) \
  { op_type, signature, ANY, .compute = how, .accepts = gcap_node_scatter_accepts }

static const gcap_node_op_t ops[] = {
    UNARY("Abs", ALL_NUMBERS, GCAP_UNARY_ABS),
    UNARY("Acos", FLOATS, GCAP_UNARY_ACOS),
    UNARY("Acosh", FLOATS, GCAP_UNARY_ACOSH),
    BINARY("Add", "TT>T", ALL_NUMBERS, GCAP_BINARY_ADD),
    BINARY("And", "TT>T", BOOL, GCAP_BINARY_AND),
    {"ArgMax", "T>L", NUMBERS, .compute = gcap_node_arg, .code = false},
    {"ArgMin", "T>L", NUMBERS, .compute = gcap_node_arg, .code = true},
    UNARY("Asin", FLOATS, GCAP_UNARY_ASIN),
    UNARY("Asinh", FLOATS, GCAP_UNARY_ASINH),
    UNARY("Atan", FLOATS, GCAP_UNARY_ATAN),
    UNARY("Atanh", FLOATS, GCAP_UNARY_ATANH),
    {"Attention", "TTT?UTT>T?TTT", FLOATS | BOOL, .compute = gcap_node_attention, .takes_left_out = true,
     .accepts = gcap_node_attention_accepts, PLAN(gcap_node_attention)},
    POOL("AveragePool", GCAP_POOL2D_AVERAGE, gcap_node_pool_accepts),
    {"BatchNormalization", "TFFFF>T", FLOATS, .compute = gcap_node_batch_norm, .needs_cudnn = true,
     .accepts = gcap_node_batch_norm_accepts, PLAN(gcap_node_batch_norm)},
    {"BitCast", "U>U", BIT(GCAP_DTYPE_F32) | ALL_INTEGERS, .compute = gcap_node_bit_cast,
     .accepts = gcap_node_bit_cast_accepts},
    {"BitShift", "TT>T", BIT(GCAP_DTYPE_U8), .compute = gcap_node_bit_shift, .accepts = gcap_node_bit_shift_accepts},
    BINARY("BitwiseAnd", "TT>T", ALL_INTEGERS, GCAP_BINARY_BIT_AND),
    UNARY("BitwiseNot", ALL_INTEGERS, GCAP_UNARY_BIT_NOT),
    BINARY("BitwiseOr", "TT>T", ALL_INTEGERS, GCAP_BINARY_BIT_OR),
    BINARY("BitwiseXor", "TT>T", ALL_INTEGERS, GCAP_BINARY_BIT_XOR),
    {"Cast", "U>U", ANY, .compute = gcap_node_cast, .accepts = gcap_node_cast_accepts},
    UNARY("Ceil", FLOATS, GCAP_UNARY_CEIL),
    UNARY_BY("Celu", FLOATS, GCAP_UNARY_CELU, ATTRIBUTE("alpha", 1.0f), NONE),
    {"Clip", "T?tt>T", ALL_NUMBERS, .compute = gcap_node_clip, .takes_left_out = true},
    {"Concat", "T*>T", ANY, .compute = gcap_node_concat},
    {"ConstantOfShape", "l>T", ANY, .compute = gcap_node_constant_of_shape,
     .accepts = gcap_node_constant_of_shape_accepts},
    {"Conv", "TT?T>T", FLOATS, .compute = gcap_node_conv, .needs_cudnn = true, .accepts = gcap_node_conv_accepts,
     PLAN(gcap_node_conv)},
    {"ConvTranspose", "TT?T>T", FLOATS, .compute = gcap_node_conv_transpose,
     .accepts = gcap_node_conv_transpose_accepts},
    UNARY("Cos", FLOATS, GCAP_UNARY_COS),
    UNARY("Cosh", FLOATS, GCAP_UNARY_COSH),
    {"CumSum", "Ti>T", NUMBERS, .compute = gcap_node_cum_sum},
    {"DepthToSpace", "T>T", ANY, .compute = gcap_node_depth_to_space},
    {"DequantizeLinear", "UU?U>U", FLOATS | BYTES | BIT(GCAP_DTYPE_I32), .compute = gcap_node_dequantize,
     .accepts = gcap_node_dequantize_accepts},
    BINARY("Div", "TT>T", ALL_NUMBERS, GCAP_BINARY_DIV),
    {"Dropout", "T?ub>T?B", FLOATS, .compute = gcap_node_dropout, .accepts = gcap_node_dropout_accepts},
    {"DynamicQuantizeLinear", "F>UFU", BIT(GCAP_DTYPE_U8), .compute = gcap_node_dynamic_quantize},
    {"Einsum", "T*>T", FLOATS, .compute = gcap_node_einsum, .accepts = gcap_node_einsum_accepts,
     PLAN(gcap_node_einsum)},
    UNARY_BY("Elu", FLOATS, GCAP_UNARY_ELU, ATTRIBUTE("alpha", 1.0f), NONE),
    BINARY("Equal", "TT>B", ANY, GCAP_BINARY_EQUAL),
    UNARY("Erf", FLOATS, GCAP_UNARY_ERF),
    UNARY("Exp", FLOATS, GCAP_UNARY_EXP),
    {"Expand", "Tl>T", ANY, .compute = gcap_node_expand},
    {"EyeLike", "U>U", ANY, .compute = gcap_node_eye_like, .accepts = gcap_node_eye_like_accepts},
    {"Flatten", "T>T", ANY, .compute = gcap_node_copy_elements},
    UNARY("Floor", FLOATS, GCAP_UNARY_FLOOR),
    {"GRU", "TTT?TIT>?TT", FLOATS, .compute = gcap_node_recurrent, .takes_left_out = true,
     .accepts = gcap_node_recurrent_accepts, PLAN(gcap_node_recurrent)},
    {"Gather", "TI>T", ANY, .compute = gcap_node_gather},
    {"GatherElements", "TI>T", ANY, .compute = gcap_node_gather_elements},
    {"GatherND", "TL>T", ANY, .compute = gcap_node_gather_nd},
    {"Gelu", "T>T", FLOATS, .compute = gcap_node_gelu, .accepts = gcap_node_gelu_accepts},
    {"Gemm", "TT?T>T", FLOATS, .compute = gcap_node_gemm, .accepts = gcap_node_gemm_accepts, PLAN(gcap_node_gemm)},
    POOL("GlobalAveragePool", GCAP_POOL2D_AVERAGE, gcap_node_global_pool_accepts),
    POOL("GlobalMaxPool", GCAP_POOL2D_MAX, gcap_node_global_pool_accepts),
    BINARY("Greater", "TT>B", ALL_NUMBERS, GCAP_BINARY_GREATER),
    BINARY("GreaterOrEqual", "TT>B", ALL_NUMBERS, GCAP_BINARY_GREATER_OR_EQUAL),
    {"GridSample", "TT>T", FLOATS, .compute = gcap_node_grid_sample, .accepts = gcap_node_grid_sample_accepts},
    {"GroupNormalization", "TTT>T", FLOATS, .compute = gcap_node_channel_norm, .code = 1,
     .accepts = gcap_node_channel_norm_accepts},
    {"Hardmax", "T>T", FLOATS, .compute = gcap_node_hardmax},
    UNARY_BY("HardSigmoid", FLOATS, GCAP_UNARY_HARD_SIGMOID, ATTRIBUTE("alpha", 0.2f), ATTRIBUTE("beta", 0.5f)),
    UNARY_BY("HardSwish", FLOATS, GCAP_UNARY_HARD_SWISH, ATTRIBUTE(NULL, 1.0f / 6.0f), ATTRIBUTE(NULL, 0.5f)),
    {"Identity", "T>T", ANY, .compute = gcap_node_copy_elements},
    {"InstanceNormalization", "TTT>T", FLOATS, .compute = gcap_node_channel_norm,
     .accepts = gcap_node_channel_norm_accepts},
    {"IsInf", "T>B", FLOATS, .compute = gcap_node_is_inf},
    {"IsNaN", "T>B", FLOATS, .compute = gcap_node_unary, .code = GCAP_UNARY_IS_NAN},
    {"LRN", "T>T", FLOATS, .compute = gcap_node_lrn, .accepts = gcap_node_lrn_accepts},
    {"LSTM", "TTT?TITTT>?TTT", FLOATS, .compute = gcap_node_recurrent, .takes_left_out = true,
     .accepts = gcap_node_recurrent_accepts, PLAN(gcap_node_recurrent)},
    {"LayerNormalization", "TT?T>T?FF", FLOATS, .compute = gcap_node_layer_norm,
     .accepts = gcap_node_layer_norm_accepts},
    {"LeakyRelu", "T>T", FLOATS, .compute = gcap_node_leaky_relu},
    BINARY("Less", "TT>B", ALL_NUMBERS, GCAP_BINARY_LESS),
    BINARY("LessOrEqual", "TT>B", ALL_NUMBERS, GCAP_BINARY_LESS_OR_EQUAL),
    UNARY("Log", FLOATS, GCAP_UNARY_LOG),
    {"LogSoftmax", "T>T", FLOATS, .compute = gcap_node_log_softmax},
    {"LogSoftmax-1", "T>T", FLOATS, .compute = gcap_node_log_softmax_in_rows},
    {"LpNormalization", "T>T", FLOATS, .compute = gcap_node_lp_norm, .accepts = gcap_node_lp_norm_accepts},
    {"LpPool", "T>T", FLOATS, .compute = gcap_node_lp_pool, .accepts = gcap_node_lp_pool_accepts},
    {"MatMul", "TT>T", FLOATS, .compute = gcap_node_matmul, PLAN(gcap_node_matmul)},
    {"MatMulInteger", "UU?UU>I", BYTES, .compute = gcap_node_matmul_integer,
     .accepts = gcap_node_matmul_integer_accepts},
    {"Max", "T*>T", ALL_NUMBERS, .compute = gcap_node_fold, .code = GCAP_BINARY_MAX},
    POOL("MaxPool", GCAP_POOL2D_MAX, gcap_node_pool_accepts),
    {"Mean", "T*>T", FLOATS, .compute = gcap_node_fold, .code = GCAP_BINARY_RUNNING_MEAN},
    {"MeanVarianceNormalization", "T>T", FLOATS, .compute = gcap_node_mean_variance,
     .accepts = gcap_node_mean_variance_accepts},
    {"Min", "T*>T", ALL_NUMBERS, .compute = gcap_node_fold, .code = GCAP_BINARY_MIN},
    UNARY("Mish", FLOATS, GCAP_UNARY_MISH),
    {"Mod", "TT>T", ALL_NUMBERS, .compute = gcap_node_mod, .accepts = gcap_node_mod_accepts},
    BINARY("Mul", "TT>T", ALL_NUMBERS, GCAP_BINARY_MUL),
    UNARY("Neg", NUMBERS | BIT(GCAP_DTYPE_I8), GCAP_UNARY_NEG),
    UNARY("Not", BOOL, GCAP_UNARY_NOT),
    {"OneHot", "UuT>T", ANY, .compute = gcap_node_one_hot, .accepts = gcap_node_one_hot_accepts},
    BINARY("Or", "TT>T", BOOL, GCAP_BINARY_OR),
    BINARY("PRelu", "TT>T", FLOATS, GCAP_BINARY_PRELU),
    {"Pad", "T?lti>T", ANY, .compute = gcap_node_pad, .takes_left_out = true, .accepts = gcap_node_pad_accepts},
    BINARY("Pow", "TU>T", NUMBERS, GCAP_BINARY_POW),
    {"QuantizeLinear", "UU?U>U", FLOATS | BYTES, .compute = gcap_node_quantize, .accepts = gcap_node_quantize_accepts},
    {"QLinearMatMul", "UFUUFUFU>U", BYTES, .compute = gcap_node_qlinear_matmul,
     .accepts = gcap_node_qlinear_matmul_accepts},
    {"RMSNormalization", "TT>T", FLOATS, .compute = gcap_node_rms_norm, .accepts = gcap_node_rms_norm_accepts},
    {"RNN", "TTT?TIT>?TT", FLOATS, .compute = gcap_node_recurrent, .takes_left_out = true,
     .accepts = gcap_node_recurrent_accepts, PLAN(gcap_node_recurrent)},
    {"Range", "ttt>T", BIT(GCAP_DTYPE_F32) | BIT(GCAP_DTYPE_I64) | BIT(GCAP_DTYPE_I32), .compute = gcap_node_range},
    UNARY("Reciprocal", FLOATS, GCAP_UNARY_RECIPROCAL),
    REDUCE("ReduceL1", NUMBERS, GCAP_REDUCE_L1),
    REDUCE("ReduceL2", FLOATS, GCAP_REDUCE_L2),
    REDUCE("ReduceLogSum", FLOATS, GCAP_REDUCE_LOG_SUM),
    REDUCE("ReduceMax", NUMBERS | BOOL, GCAP_REDUCE_MAX),
    REDUCE("ReduceMean", NUMBERS, GCAP_REDUCE_MEAN),
    REDUCE("ReduceMin", NUMBERS | BOOL, GCAP_REDUCE_MIN),
    REDUCE("ReduceProd", NUMBERS, GCAP_REDUCE_PROD),
    REDUCE("ReduceSum", NUMBERS, GCAP_REDUCE_SUM),
    REDUCE("ReduceSumSquare", NUMBERS, GCAP_REDUCE_SUM_SQUARE),
    UNARY("Relu", NUMBERS | BIT(GCAP_DTYPE_I8), GCAP_UNARY_RELU),
    {"Reshape", "Tl>T", ANY, .compute = gcap_node_copy_elements},
    {"Resize", "T?ffl>T", ANY, .compute = gcap_node_resize, .takes_left_out = true,
     .accepts = gcap_node_resize_accepts},
    {"ReverseSequence", "TL>T", ANY, .compute = gcap_node_reverse_sequence},
    {"RotaryEmbedding", "TTT?L>T", FLOATS, .compute = gcap_node_rotary, .code = GCAP_NODE_ROTARY_OF_ONNX,
     .accepts = gcap_node_rotary_accepts},
    UNARY("Round", FLOATS, GCAP_UNARY_ROUND),
    SCATTER("Scatter", "TIT>T", gcap_node_scatter_elements),
    SCATTER("ScatterElements", "TIT>T", gcap_node_scatter_elements),
    SCATTER("ScatterND", "TLT>T", gcap_node_scatter_nd),
    UNARY_BY("Selu", FLOATS, GCAP_UNARY_SELU, ATTRIBUTE("alpha", 1.67326319f), ATTRIBUTE("gamma", 1.05070102f)),
    UNARY_BY("Shrink", ALL_NUMBERS, GCAP_UNARY_SHRINK, ATTRIBUTE("bias", 0.0f), ATTRIBUTE("lambd", 0.5f)),
    UNARY("Sigmoid", FLOATS, GCAP_UNARY_SIGMOID),
    UNARY("Sign", ALL_NUMBERS, GCAP_UNARY_SIGN),
    {"SimplifiedLayerNormalization", "TT>T", FLOATS, .compute = gcap_node_rms_norm,
     .accepts = gcap_node_rms_norm_accepts},
    UNARY("Sin", FLOATS, GCAP_UNARY_SIN),
    UNARY("Sinh", FLOATS, GCAP_UNARY_SINH),
    {"Slice", "T?iiii>T", ANY, .compute = gcap_node_slice, .accepts = gcap_node_slice_accepts},
    {"Softmax", "T>T", FLOATS, .compute = gcap_node_softmax},
    {"Softmax-1", "T>T", FLOATS, .compute = gcap_node_softmax_in_rows},
    UNARY("Softplus", FLOATS, GCAP_UNARY_SOFTPLUS),
    UNARY("Softsign", FLOATS, GCAP_UNARY_SOFTSIGN),
    {"SpaceToDepth", "T>T", ANY, .compute = gcap_node_space_to_depth},
    {"Split", "T?l>T*", ANY, .compute = gcap_node_split, .accepts = gcap_node_split_accepts},
    UNARY("Sqrt", FLOATS, GCAP_UNARY_SQRT),
    {"Squeeze", "T?l>T", ANY, .compute = gcap_node_copy_elements},
    BINARY("Sub", "TT>T", ALL_NUMBERS, GCAP_BINARY_SUB),
    {"Sum", "T*>T", NUMBERS, .compute = gcap_node_fold, .code = GCAP_BINARY_ADD},
    UNARY_BY("Swish", FLOATS, GCAP_UNARY_SWISH, ATTRIBUTE("alpha", 1.0f), NONE),
    UNARY("Tan", FLOATS, GCAP_UNARY_TAN),
    UNARY("Tanh", FLOATS, GCAP_UNARY_TANH),
    {"TensorScatter", "TT?L>T", ANY, .compute = gcap_node_tensor_scatter, .accepts = gcap_node_tensor_scatter_accepts},
    UNARY_BY("ThresholdedRelu", FLOATS, GCAP_UNARY_THRESHOLDED_RELU, ATTRIBUTE("alpha", 1.0f), NONE),
    {"Tile", "Tl>T", ANY, .compute = gcap_node_tile},
    {"TopK", "T?l>TL", NUMBERS, .compute = gcap_node_top_k},
    {"Transpose", "T>T", ANY, .compute = gcap_node_transpose},
    {"Trilu", "T?l>T", ANY, .compute = gcap_node_trilu},
    {"Unsqueeze", "T?l>T", ANY, .compute = gcap_node_copy_elements},
    {"Upsample", "Tf>T", ANY, .compute = gcap_node_resize, .accepts = gcap_node_resize_accepts},
    {"Where", "BTT>T", ANY, .compute = gcap_node_where},
    BINARY("Xor", "TT>T", BOOL, GCAP_BINARY_XOR),
    BINARY("com.microsoft.BiasGelu", "TT>T", FLOATS, GCAP_BINARY_GELU),
    {"com.microsoft.FastGelu", "T?T>T", FLOATS, .compute = gcap_node_fast_gelu},
    {"com.microsoft.FusedMatMul", "TT>T", FLOATS, .compute = gcap_node_matmul,
     .accepts = gcap_node_fused_matmul_accepts, PLAN(gcap_node_matmul)},
    UNARY("com.microsoft.Gelu", FLOATS, GCAP_UNARY_GELU),
    {"com.microsoft.MultiHeadAttention", "TTT?TITTT>T?TT", FLOATS, .compute = gcap_node_attention,
     .takes_left_out = true, .accepts = gcap_node_multi_head_accepts, PLAN(gcap_node_attention)},
    UNARY_BY("com.microsoft.QuickGelu", FLOATS, GCAP_UNARY_SWISH, ATTRIBUTE("alpha", 1.702f), NONE),
    {"com.microsoft.RotaryEmbedding", "TLTT>T", FLOATS, .compute = gcap_node_rotary,
     .code = GCAP_NODE_ROTARY_OF_MICROSOFT, .accepts = gcap_node_rotary_accepts},
    {"com.microsoft.SkipLayerNormalization", "TTT?TT>T?FFT", FLOATS, .compute = gcap_node_skip_norm,
     .code = GCAP_NODE_SKIP_CENTERS, .takes_left_out = true, .accepts = gcap_node_skip_norm_accepts},
    {"com.microsoft.SkipSimplifiedLayerNormalization", "TTT?T>T?FFT", FLOATS, .compute = gcap_node_skip_norm,
     .code = GCAP_NODE_SKIP_SIMPLIFIED, .takes_left_out = true, .accepts = gcap_node_skip_norm_accepts},
};
#define NUM_OPS (sizeof(ops) / sizeof(ops[0]))

const gcap_node_op_t* gcap_node_op_find(const char* op_type) {
  for (size_t i = 0; i < NUM_OPS; ++i) {
    if (strcmp(ops[i].op_type, op_type) == 0) return &ops[i];
  }
  return NULL;
}

// --- Signatures -----------------------------------------------------------------------------------------------------

static const gcap_value_t* value_of(const gcap_model_t* model, int index) {
  return index >= 0 && index < model->num_values ? &model->values[index] : NULL;
}

// True if a value may stand where the signature has `letter`. The first T decides all of them.
static bool fits(const gcap_node_op_t* op, char letter, const gcap_value_t* value, int* t) {
  if (value == NULL || gcap_dtype_bytes(value->dtype) == 0) return false;
  const unsigned bit = BIT(value->dtype);
  switch (letter) {
    case 'T':
    case 't':
      if (*t < 0) *t = (int)value->dtype;
      return (op->types & bit) != 0 && *t == (int)value->dtype;
    case 'U':
    case 'u': return (op->types & bit) != 0;
    case 'F':
    case 'f': return value->dtype == GCAP_DTYPE_F32;
    case 'L':
    case 'l': return value->dtype == GCAP_DTYPE_I64;
    case 'I':
    case 'i': return value->dtype == GCAP_DTYPE_I64 || value->dtype == GCAP_DTYPE_I32;
    default: return (letter == 'B' || letter == 'b') && value->dtype == GCAP_DTYPE_BOOL;
  }
}

// True if the node leaves the value out, and the row knows what to do then. What is left out is of no type.
static bool may_leave_out(const gcap_node_op_t* op, const gcap_value_t* value) {
  return op->takes_left_out && gcap_shape_is_left_out(value->rank, value->shape);
}

// The letter of value `index` in the part of a signature that begins at `letter`; 0 if it has none. `*out_least`: how
// many values there are at least.
static char letter_at(const char* letter, int index, int* out_least) {
  char found = 0, last = 0;
  int count = 0;
  *out_least = -1;
  for (; *letter != 0 && *letter != '>'; ++letter) {
    if (*letter == '?' && *out_least < 0) *out_least = count;
    if (*letter == '*' && index >= count) found = last;
    if (*letter == '?' || *letter == '*') continue;
    if (count == index) found = *letter;
    last = *letter;
    ++count;
  }
  if (*out_least < 0) *out_least = count;
  return found;
}

static bool fit_all(const gcap_node_op_t* op, const char* letters, const gcap_model_t* model, const int* indices,
                    int count, int* t) {
  int least = 0;
  letter_at(letters, 0, &least);
  if (count < least) return false;
  for (int i = 0; i < count; ++i) {
    const gcap_value_t* value = value_of(model, indices[i]);
    const char letter = letter_at(letters, i, &least);
    if (value != NULL && value->name[0] == 0) {
      if (i < least || letter == 0 || !may_leave_out(op, value)) return false;
    } else if (!fits(op, letter, value, t)) {
      return false;
    }
  }
  return true;
}

bool gcap_node_op_accepts(const gcap_node_op_t* op, const gcap_model_t* model, const gcap_node_t* node) {
  int t = -1;
  const char* of_outputs = strchr(op->signature, '>') + 1;
  if (!fit_all(op, op->signature, model, node->inputs, node->num_inputs, &t)) return false;
  if (!fit_all(op, of_outputs, model, node->outputs, node->num_outputs, &t)) return false;
  return op->accepts == NULL || op->accepts(model, node);
}

bool gcap_node_op_reads_on_host(const gcap_node_op_t* op, int input) {
  int least = 0;
  const char letter = letter_at(op->signature, input, &least);
  return letter >= 'a' && letter <= 'z';
}
