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
    SINCE("Add", 7),
    SINCE("And", 7),
    SINCE("ArgMax", 1),
    SINCE("ArgMin", 1),
    SINCE("AveragePool", 7),
    SINCE("BatchNormalization", 9),
    SINCE("Cast", 6),
    ON_HOST("Clip", 6, 10, 0),
    ON_HOST("Clip", 11, NEWEST, INPUT(1) | INPUT(2)),
    SINCE("Concat", 4),
    SINCE("Conv", 1),
    SINCE("Div", 7),
    ON_HOST("Dropout", 7, 11, 0),
    ON_HOST("Dropout", 12, NEWEST, INPUT(1) | INPUT(2)),
    SINCE("Equal", 7),
    SINCE("Erf", 9),
    SINCE("Exp", 6),
    SINCE("Flatten", 1),
    SINCE("Gather", 1),
    SINCE("GatherElements", 11),
    SINCE("GatherND", 11),
    SINCE("Gelu", 20),
    SINCE("Gemm", 7),
    SINCE("GlobalAveragePool", 1),
    SINCE("Greater", 7),
    SINCE("Identity", 1),
    SINCE("LRN", 1),
    SINCE("LayerNormalization", 17),
    SINCE("LeakyRelu", 6),
    SINCE("Less", 7),
    SINCE("Log", 6),
    {"LogSoftmax", NULL, 1, 12, 0, is_of_one_axis},
    SINCE("LogSoftmax", 13),
    SINCE("MatMul", 1),
    SINCE("Max", 8),
    SINCE("MaxPool", 1),
    SINCE("Min", 8),
    SINCE("Mul", 7),
    SINCE("Neg", 6),
    SINCE("Not", 1),
    SINCE("Or", 7),
    SINCE("Pow", 7),
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
    ON_HOST("Scatter", 9, 10, 0),
    SINCE("ScatterElements", 11),
    SINCE("ScatterND", 11),
    SINCE("Sigmoid", 6),
    ON_HOST("Slice", 10, NEWEST, INPUT(1) | INPUT(2) | INPUT(3) | INPUT(4)),
    {"Softmax", NULL, 1, 12, 0, is_of_one_axis},
    SINCE("Softmax", 13),
    ON_HOST("Split", 2, 12, 0),
    ON_HOST("Split", 13, NEWEST, INPUT(1)),
    SINCE("Sqrt", 6),
    ON_HOST("Squeeze", 1, 12, 0),
    ON_HOST("Squeeze", 13, NEWEST, INPUT(1)),
    SINCE("Sub", 7),
    SINCE("Sum", 6),
    SINCE("Tanh", 6),
    SINCE("TensorScatter", 24),
    ON_HOST("TopK", 1, 9, 0),
    ON_HOST("TopK", 10, NEWEST, INPUT(1)),
    SINCE("Transpose", 1),
    ON_HOST("Unsqueeze", 1, 12, 0),
    ON_HOST("Unsqueeze", 13, NEWEST, INPUT(1)),
    SINCE("Where", 9),
    {.op_type = NULL},
};

const gcap_ort_attribute_t gcap_ort_node_attributes[] = {
    {"allowzero", GCAP_ATTRIBUTE_INT},
    {"alpha", GCAP_ATTRIBUTE_FLOAT},
    {"approximate", GCAP_ATTRIBUTE_STRING},
    {"auto_pad", GCAP_ATTRIBUTE_STRING},
    {"axes", GCAP_ATTRIBUTE_INTS},
    {"axis", GCAP_ATTRIBUTE_INT},
    {"batch_dims", GCAP_ATTRIBUTE_INT},
    {"beta", GCAP_ATTRIBUTE_FLOAT},
    {"bias", GCAP_ATTRIBUTE_FLOAT},
    {"ceil_mode", GCAP_ATTRIBUTE_INT},
    {"count_include_pad", GCAP_ATTRIBUTE_INT},
    {"dilations", GCAP_ATTRIBUTE_INTS},
    {"epsilon", GCAP_ATTRIBUTE_FLOAT},
    {"group", GCAP_ATTRIBUTE_INT},
    {"k", GCAP_ATTRIBUTE_INT},
    {"keepdims", GCAP_ATTRIBUTE_INT},
    {"kernel_shape", GCAP_ATTRIBUTE_INTS},
    {"largest", GCAP_ATTRIBUTE_INT},
    {"max", GCAP_ATTRIBUTE_FLOAT},
    {"min", GCAP_ATTRIBUTE_FLOAT},
    {"mode", GCAP_ATTRIBUTE_STRING},
    {"momentum", GCAP_ATTRIBUTE_FLOAT},  // of training
    {"noop_with_empty_axes", GCAP_ATTRIBUTE_INT},
    {"num_outputs", GCAP_ATTRIBUTE_INT},
    {"pads", GCAP_ATTRIBUTE_INTS},
    {"perm", GCAP_ATTRIBUTE_INTS},
    {"ratio", GCAP_ATTRIBUTE_FLOAT},        // of training
    {"reduction", GCAP_ATTRIBUTE_STRING},   // of a scatter
    {"round_mode", GCAP_ATTRIBUTE_STRING},  // to a type that gcap lacks
    {"saturate", GCAP_ATTRIBUTE_INT},       // to a type that gcap lacks
    {"seed", GCAP_ATTRIBUTE_INT},           // of training
    {"select_last_index", GCAP_ATTRIBUTE_INT},
    {"size", GCAP_ATTRIBUTE_INT},
    {"sorted", GCAP_ATTRIBUTE_INT},
    {"split", GCAP_ATTRIBUTE_INTS},
    {"stash_type", GCAP_ATTRIBUTE_INT},     // the least precision of the sums, which gcap's have
    {"storage_order", GCAP_ATTRIBUTE_INT},  // of the output Indices, which gcap lacks
    {"strides", GCAP_ATTRIBUTE_INTS},
    {"to", GCAP_ATTRIBUTE_INT},
    {"training_mode", GCAP_ATTRIBUTE_INT},
    {"transA", GCAP_ATTRIBUTE_INT},
    {"transB", GCAP_ATTRIBUTE_INT},
    {.name = NULL},
};
