// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The operators of gcap/kit/ops/nodes.h, and from which to which version of ONNX their nodes mean what the kernels do.
// The types that ONNX allows have grown with the versions; which of them the kernels take, gcap_node_kernels_supports
// says.
//
// Locking: none; constants.

#include "gcap/kit/ort.h"

// The newest opset whose operators were compared with the kernels, by ONNX's own tests.
enum { NEWEST = 27 };

#define INPUT(i) (1u << (i))
#define SINCE(op_type, first) \
  { op_type, NULL, first, NEWEST, 0, NULL }
#define OF_MICROSOFT(op_type) \
  { op_type, "com.microsoft", 1, 1, 0, NULL }
#define ON_HOST(op_type, first, last, inputs) \
  { op_type, NULL, first, last, inputs, NULL }

// Before opset 13 all axes from `axis` on were one; so they are where the others have size 1. And `axis` was 1 if
// absent, not the last one.
static bool is_of_one_axis(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_value_t* x = &model->values[node->inputs[0]];
  const int64_t axis = gcap_node_int(node, "axis", 1);
  if (!gcap_node_has(node, "axis") && x->rank != 2) return false;
  const int64_t first = axis < 0 ? axis + x->rank : axis;
  if (first < 0) return false;  // not of this rank
  for (int64_t i = first + 1; i < x->rank; ++i) {
    if (x->shape[i] != 1) return false;
  }
  return true;
}

const gcap_ort_op_t gcap_ort_node_ops[] = {
    SINCE("Abs", 6),
    SINCE("Acos", 7),
    SINCE("Acosh", 9),
    SINCE("Add", 7),
    SINCE("And", 7),
    SINCE("Asin", 7),
    SINCE("Asinh", 9),
    SINCE("Atan", 7),
    SINCE("Atanh", 9),
    SINCE("AveragePool", 7),
    SINCE("BatchNormalization", 9),
    OF_MICROSOFT("BiasGelu"),
    SINCE("BitwiseAnd", 18),
    SINCE("BitwiseNot", 18),
    SINCE("BitwiseOr", 18),
    SINCE("BitwiseXor", 18),
    SINCE("Cast", 6),
    SINCE("Ceil", 6),
    SINCE("Celu", 12),
    ON_HOST("Clip", 6, 10, 0),
    ON_HOST("Clip", 11, NEWEST, INPUT(1) | INPUT(2)),
    SINCE("Concat", 4),
    ON_HOST("ConstantOfShape", 9, NEWEST, INPUT(0)),
    SINCE("Conv", 1),
    SINCE("ConvTranspose", 1),
    SINCE("Cos", 7),
    SINCE("Cosh", 9),
    SINCE("DepthToSpace", 1),
    SINCE("DequantizeLinear", 10),
    SINCE("Div", 7),
    ON_HOST("Dropout", 7, 11, 0),
    ON_HOST("Dropout", 12, NEWEST, INPUT(1) | INPUT(2)),
    SINCE("Elu", 6),
    SINCE("Equal", 7),
    SINCE("Erf", 9),
    SINCE("Exp", 6),
    ON_HOST("Expand", 8, NEWEST, INPUT(1)),
    OF_MICROSOFT("FastGelu"),
    SINCE("Flatten", 1),
    SINCE("Floor", 6),
    OF_MICROSOFT("FusedMatMul"),
    SINCE("Gather", 1),
    SINCE("GatherElements", 11),
    SINCE("GatherND", 11),
    SINCE("Gelu", 20),
    SINCE("Gemm", 7),
    SINCE("GlobalAveragePool", 1),
    SINCE("GlobalMaxPool", 1),
    SINCE("Greater", 7),
    SINCE("GreaterOrEqual", 12),
    SINCE("GroupNormalization", 21),
    SINCE("HardSigmoid", 6),
    SINCE("HardSwish", 14),
    SINCE("Identity", 1),
    SINCE("InstanceNormalization", 6),
    SINCE("IsInf", 10),
    SINCE("IsNaN", 9),
    SINCE("LRN", 1),
    SINCE("LayerNormalization", 17),
    SINCE("LeakyRelu", 6),
    SINCE("Less", 7),
    SINCE("LessOrEqual", 12),
    SINCE("Log", 6),
    {"LogSoftmax", NULL, 1, 12, 0, is_of_one_axis},
    SINCE("LogSoftmax", 13),
    SINCE("LpNormalization", 1),
    SINCE("MatMul", 1),
    SINCE("Max", 8),
    SINCE("MaxPool", 1),
    SINCE("Mean", 6),
    SINCE("MeanVarianceNormalization", 9),
    SINCE("Min", 8),
    SINCE("Mish", 18),
    SINCE("Mod", 10),
    SINCE("Mul", 7),
    SINCE("Neg", 6),
    SINCE("Not", 1),
    SINCE("Or", 7),
    SINCE("PRelu", 7),
    ON_HOST("Pad", 2, 10, 0),
    ON_HOST("Pad", 11, NEWEST, INPUT(1) | INPUT(2) | INPUT(3)),
    SINCE("Pow", 7),
    SINCE("QuantizeLinear", 10),
    OF_MICROSOFT("QuickGelu"),
    SINCE("RMSNormalization", 23),
    ON_HOST("Range", 11, NEWEST, INPUT(0) | INPUT(1) | INPUT(2)),
    SINCE("Reciprocal", 6),
    ON_HOST("ReduceL1", 1, 17, 0),
    ON_HOST("ReduceL1", 18, NEWEST, INPUT(1)),
    ON_HOST("ReduceL2", 1, 17, 0),
    ON_HOST("ReduceL2", 18, NEWEST, INPUT(1)),
    ON_HOST("ReduceLogSum", 1, 17, 0),
    ON_HOST("ReduceLogSum", 18, NEWEST, INPUT(1)),
    ON_HOST("ReduceMax", 1, 17, 0),
    ON_HOST("ReduceMax", 18, NEWEST, INPUT(1)),
    ON_HOST("ReduceMean", 1, 17, 0),
    ON_HOST("ReduceMean", 18, NEWEST, INPUT(1)),
    ON_HOST("ReduceMin", 1, 17, 0),
    ON_HOST("ReduceMin", 18, NEWEST, INPUT(1)),
    ON_HOST("ReduceProd", 1, 17, 0),
    ON_HOST("ReduceProd", 18, NEWEST, INPUT(1)),
    ON_HOST("ReduceSum", 1, 12, 0),
    ON_HOST("ReduceSum", 13, NEWEST, INPUT(1)),
    ON_HOST("ReduceSumSquare", 1, 17, 0),
    ON_HOST("ReduceSumSquare", 18, NEWEST, INPUT(1)),
    SINCE("Relu", 6),
    ON_HOST("Reshape", 5, NEWEST, INPUT(1)),
    ON_HOST("Resize", 10, 10, INPUT(1)),
    ON_HOST("Resize", 11, NEWEST, INPUT(1) | INPUT(2) | INPUT(3)),
    SINCE("Round", 11),
    ON_HOST("Scatter", 9, 10, 0),
    SINCE("ScatterElements", 11),
    SINCE("ScatterND", 11),
    SINCE("Selu", 6),
    SINCE("Shrink", 9),
    SINCE("Sigmoid", 6),
    SINCE("Sign", 9),
    SINCE("SimplifiedLayerNormalization", 1),  // of ONNX Runtime, in ONNX's domain
    SINCE("Sin", 7),
    SINCE("Sinh", 9),
    ON_HOST("Slice", 1, 9, 0),
    ON_HOST("Slice", 10, NEWEST, INPUT(1) | INPUT(2) | INPUT(3) | INPUT(4)),
    {"Softmax", NULL, 1, 12, 0, is_of_one_axis},
    SINCE("Softmax", 13),
    SINCE("Softplus", 1),
    SINCE("Softsign", 1),
    SINCE("SpaceToDepth", 1),
    ON_HOST("Split", 2, 12, 0),
    ON_HOST("Split", 13, NEWEST, INPUT(1)),
    SINCE("Sqrt", 6),
    ON_HOST("Squeeze", 1, 12, 0),
    ON_HOST("Squeeze", 13, NEWEST, INPUT(1)),
    SINCE("Sub", 7),
    SINCE("Sum", 6),
    SINCE("Swish", 24),
    SINCE("Tan", 7),
    SINCE("Tanh", 6),
    SINCE("ThresholdedRelu", 10),
    SINCE("Transpose", 1),
    ON_HOST("Unsqueeze", 1, 12, 0),
    ON_HOST("Unsqueeze", 13, NEWEST, INPUT(1)),
    ON_HOST("Upsample", 9, 9, INPUT(1)),
    SINCE("Where", 9),
    SINCE("Xor", 7),
    {.op_type = NULL},
};

const gcap_ort_attribute_t gcap_ort_node_attributes[] = {
    {"allowzero", GCAP_ATTRIBUTE_INT},
    {"alpha", GCAP_ATTRIBUTE_FLOAT},
    {"antialias", GCAP_ATTRIBUTE_INT},
    {"approximate", GCAP_ATTRIBUTE_STRING},
    {"auto_pad", GCAP_ATTRIBUTE_STRING},
    {"axes", GCAP_ATTRIBUTE_INTS},
    {"axis", GCAP_ATTRIBUTE_INT},
    {"batch_dims", GCAP_ATTRIBUTE_INT},
    {"beta", GCAP_ATTRIBUTE_FLOAT},
    {"bias", GCAP_ATTRIBUTE_FLOAT},
    {"block_size", GCAP_ATTRIBUTE_INT},
    {"blocksize", GCAP_ATTRIBUTE_INT},
    {"ceil_mode", GCAP_ATTRIBUTE_INT},
    {"coordinate_transformation_mode", GCAP_ATTRIBUTE_STRING},
    {"count_include_pad", GCAP_ATTRIBUTE_INT},
    {"detect_negative", GCAP_ATTRIBUTE_INT},
    {"detect_positive", GCAP_ATTRIBUTE_INT},
    {"cubic_coeff_a", GCAP_ATTRIBUTE_FLOAT},
    {"dilations", GCAP_ATTRIBUTE_INTS},
    {"ends", GCAP_ATTRIBUTE_INTS},
    {"epsilon", GCAP_ATTRIBUTE_FLOAT},
    {"fmod", GCAP_ATTRIBUTE_INT},
    {"gamma", GCAP_ATTRIBUTE_FLOAT},
    {"exclude_outside", GCAP_ATTRIBUTE_INT},
    {"extrapolation_value", GCAP_ATTRIBUTE_FLOAT},  // of a mode of coordinates that the kernels lack
    {"group", GCAP_ATTRIBUTE_INT},
    {"keep_aspect_ratio_policy", GCAP_ATTRIBUTE_STRING},
    {"keepdims", GCAP_ATTRIBUTE_INT},
    {"kernel_shape", GCAP_ATTRIBUTE_INTS},
    {"lambd", GCAP_ATTRIBUTE_FLOAT},
    {"max", GCAP_ATTRIBUTE_FLOAT},
    {"min", GCAP_ATTRIBUTE_FLOAT},
    {"mode", GCAP_ATTRIBUTE_STRING},
    {"momentum", GCAP_ATTRIBUTE_FLOAT},  // of training
    {"nearest_mode", GCAP_ATTRIBUTE_STRING},
    {"noop_with_empty_axes", GCAP_ATTRIBUTE_INT},
    {"num_groups", GCAP_ATTRIBUTE_INT},
    {"num_outputs", GCAP_ATTRIBUTE_INT},
    {"output_dtype", GCAP_ATTRIBUTE_INT},
    {"output_padding", GCAP_ATTRIBUTE_INTS},
    {"output_shape", GCAP_ATTRIBUTE_INTS},
    {"p", GCAP_ATTRIBUTE_INT},
    {"pads", GCAP_ATTRIBUTE_INTS},
    {"perm", GCAP_ATTRIBUTE_INTS},
    {"precision", GCAP_ATTRIBUTE_INT},
    {"ratio", GCAP_ATTRIBUTE_FLOAT},        // of training
    {"reduction", GCAP_ATTRIBUTE_STRING},   // of a scatter
    {"round_mode", GCAP_ATTRIBUTE_STRING},  // to a type that gcap lacks
    {"saturate", GCAP_ATTRIBUTE_INT},       // to a type that gcap lacks
    {"seed", GCAP_ATTRIBUTE_INT},           // of training
    {"size", GCAP_ATTRIBUTE_INT},
    {"split", GCAP_ATTRIBUTE_INTS},
    {"starts", GCAP_ATTRIBUTE_INTS},
    {"stash_type", GCAP_ATTRIBUTE_INT},     // the least precision of the sums, which gcap's have
    {"storage_order", GCAP_ATTRIBUTE_INT},  // of the output Indices, which gcap lacks
    {"strides", GCAP_ATTRIBUTE_INTS},
    {"to", GCAP_ATTRIBUTE_INT},
    {"training_mode", GCAP_ATTRIBUTE_INT},
    {"transA", GCAP_ATTRIBUTE_INT},
    {"transB", GCAP_ATTRIBUTE_INT},
    {"transBatchA", GCAP_ATTRIBUTE_INT},
    {"transBatchB", GCAP_ATTRIBUTE_INT},
    {"value", GCAP_ATTRIBUTE_FLOAT},
    {.name = NULL},
};
