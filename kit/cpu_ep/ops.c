// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The table of operators, and what it says of a node: its types. Shapes are no matter of the table, so that a dimension
// may be open when a host asks.

#include <string.h>

#include "kit/cpu_ep/op.h"

#define BIT(dtype) (1u << (dtype))
#define BOOL BIT(GCAP_DTYPE_BOOL)
#define NUMBERS (BIT(GCAP_DTYPE_F32) | BIT(GCAP_DTYPE_I64) | BIT(GCAP_DTYPE_I32))
#define BYTES (BIT(GCAP_DTYPE_I8) | BIT(GCAP_DTYPE_U8))
#define ANY (NUMBERS | BOOL | BYTES | BIT(GCAP_DTYPE_F16) | BIT(GCAP_DTYPE_BF16))

static const gcap_value_t* value_of(const gcap_model_t* model, int index) {
  return index >= 0 && index < model->num_values ? &model->values[index] : NULL;
}

static gcap_dtype_t output_type(const gcap_model_t* model, const gcap_node_t* node) {
  return model->values[node->outputs[0]].dtype;
}

// --- Attributes that types decide -----------------------------------------------------------------------------------

// The number that ONNX's TensorProto has for a type.
static int64_t onnx_type(gcap_dtype_t dtype) {
  switch (dtype) {
    case GCAP_DTYPE_F32: return 1;
    case GCAP_DTYPE_U8: return 2;
    case GCAP_DTYPE_I8: return 3;
    case GCAP_DTYPE_I32: return 6;
    case GCAP_DTYPE_I64: return 7;
    case GCAP_DTYPE_BOOL: return 9;
    case GCAP_DTYPE_F16: return 10;
    case GCAP_DTYPE_BF16: return 16;
  }
  return 0;
}

static bool accepts_cast(const gcap_model_t* model, const gcap_node_t* node) {
  const int64_t made = onnx_type(output_type(model, node));
  return gcap_node_int(node, "to", made) == made;
}

// As ONNX has it: without fmod, floats have no Mod.
static bool accepts_mod(const gcap_model_t* model, const gcap_node_t* node) {
  return output_type(model, node) != GCAP_DTYPE_F32 || gcap_node_int(node, "fmod", 0) != 0;
}

// A float attribute is for floats; an int attribute is for all. Only what is no int gives each fallback back.
static bool accepts_value(const gcap_model_t* model, const gcap_node_t* node) {
  if (output_type(model, node) == GCAP_DTYPE_F32 || !gcap_node_has(node, "value")) return true;
  return gcap_node_int(node, "value", 0) == gcap_node_int(node, "value", 1);
}

// --- The table ------------------------------------------------------------------------------------------------------

static const gcap_cpu_op_t ops[] = {
    {"Abs", "T>T", NUMBERS, .compute = gcap_cpu_unary, .unary = gcap_cpu_abs},
    {"Add", "TT>T", NUMBERS, .compute = gcap_cpu_binary, .binary = gcap_cpu_add},
    {"And", "TT>T", BOOL, .compute = gcap_cpu_binary, .binary = gcap_cpu_and},
    {"Cast", "U>U", NUMBERS | BOOL | BYTES, .compute = gcap_cpu_cast, .accepts = accepts_cast},
    {"Concat", "T*>T", ANY, .compute = gcap_cpu_concat},
    {"ConstantOfShape", "L>T", NUMBERS | BOOL, .compute = gcap_cpu_constant_of_shape, .accepts = accepts_value},
    {"Div", "TT>T", NUMBERS, .compute = gcap_cpu_binary, .binary = gcap_cpu_div},
    {"Equal", "TT>B", NUMBERS | BOOL | BYTES, .compute = gcap_cpu_binary, .binary = gcap_cpu_equal},
    {"Expand", "TL>T", ANY, .compute = gcap_cpu_expand},
    {"Flatten", "T>T", ANY, .compute = gcap_cpu_copy},
    {"Gather", "TI>T", ANY, .compute = gcap_cpu_gather},
    {"Greater", "TT>B", NUMBERS, .compute = gcap_cpu_binary, .binary = gcap_cpu_greater},
    {"Identity", "T>T", ANY, .compute = gcap_cpu_copy},
    {"Less", "TT>B", NUMBERS, .compute = gcap_cpu_binary, .binary = gcap_cpu_less},
    {"MatMul", "TT>T", BIT(GCAP_DTYPE_F32), .compute = gcap_cpu_matmul},
    {"Max", "T*>T", NUMBERS, .compute = gcap_cpu_fold, .binary = gcap_cpu_max},
    {"Min", "T*>T", NUMBERS, .compute = gcap_cpu_fold, .binary = gcap_cpu_min},
    {"Mod", "TT>T", NUMBERS, .compute = gcap_cpu_mod, .accepts = accepts_mod},
    {"Mul", "TT>T", NUMBERS, .compute = gcap_cpu_binary, .binary = gcap_cpu_mul},
    {"Neg", "T>T", NUMBERS, .compute = gcap_cpu_unary, .unary = gcap_cpu_neg},
    {"Not", "T>T", BOOL, .compute = gcap_cpu_unary, .unary = gcap_cpu_not},
    {"Or", "TT>T", BOOL, .compute = gcap_cpu_binary, .binary = gcap_cpu_or},
    {"Range", "TTT>T", NUMBERS, .compute = gcap_cpu_range},
    {"ReduceMax", "T?L>T", NUMBERS, .compute = gcap_cpu_reduce_max, .binary = gcap_cpu_max},
    {"ReduceProd", "T?L>T", NUMBERS, .compute = gcap_cpu_reduce_prod, .binary = gcap_cpu_mul},
    {"ReduceSum", "T?L>T", NUMBERS, .compute = gcap_cpu_reduce_sum, .binary = gcap_cpu_add},
    {"Relu", "T>T", NUMBERS, .compute = gcap_cpu_unary, .unary = gcap_cpu_relu},
    {"Reshape", "TL>T", ANY, .compute = gcap_cpu_copy},
    {"Shape", "S>L", 0, .compute = gcap_cpu_shape},
    {"Size", "S>L", 0, .compute = gcap_cpu_size},
    {"Slice", "TII?II>T", ANY, .compute = gcap_cpu_slice},
    {"Squeeze", "T?L>T", ANY, .compute = gcap_cpu_copy},
    {"Sub", "TT>T", NUMBERS, .compute = gcap_cpu_binary, .binary = gcap_cpu_sub},
    {"Transpose", "T>T", ANY, .compute = gcap_cpu_transpose},
    {"Unsqueeze", "T?L>T", ANY, .compute = gcap_cpu_copy},
    {"Where", "BTT>T", ANY, .compute = gcap_cpu_where},
};
#define NUM_OPS (sizeof(ops) / sizeof(ops[0]))

const gcap_cpu_op_t* gcap_cpu_op_find(const char* op_type) {
  for (size_t i = 0; i < NUM_OPS; ++i) {
    if (strcmp(ops[i].op_type, op_type) == 0) return &ops[i];
  }
  return NULL;
}

bool gcap_cpu_op_reads_shape_only(const gcap_cpu_op_t* op, int input) { return input == 0 && op->signature[0] == 'S'; }

// --- Types ----------------------------------------------------------------------------------------------------------

// True if a value may stand where the signature has `letter`. The first T decides all of them.
static bool fits(const gcap_cpu_op_t* op, char letter, const gcap_value_t* value, int* t) {
  if (value == NULL || gcap_dtype_bytes(value->dtype) == 0) return false;
  const unsigned bit = BIT(value->dtype);
  switch (letter) {
    case 'T':
      if (*t < 0) *t = (int)value->dtype;
      return (op->types & bit) != 0 && *t == (int)value->dtype;
    case 'U': return (op->types & bit) != 0;
    case 'L': return value->dtype == GCAP_DTYPE_I64;
    case 'I': return value->dtype == GCAP_DTYPE_I64 || value->dtype == GCAP_DTYPE_I32;
    case 'B': return value->dtype == GCAP_DTYPE_BOOL;
    default: return letter == 'S';
  }
}

// Goes along the signature, and stops before what no input is left for.
static bool fit_inputs(const gcap_cpu_op_t* op, const gcap_model_t* model, const gcap_node_t* node, int* t) {
  const char* letter = op->signature;
  bool may_end = false;
  for (int i = 0; i < node->num_inputs; ++i) {
    if (*letter == '?') {
      may_end = true;
      ++letter;
    }
    if (*letter == '>') return false;  // more inputs than the signature has
    if (!fits(op, *letter, value_of(model, node->inputs[i]), t)) return false;
    if (letter[1] == '*') {
      may_end = true;
    } else {
      ++letter;
    }
  }
  return may_end || *letter == '>' || *letter == '?';
}

bool gcap_cpu_op_accepts(const gcap_cpu_op_t* op, const gcap_model_t* model, const gcap_node_t* node) {
  int t = -1;
  if (node->num_outputs != 1 || !fit_inputs(op, model, node, &t)) return false;
  const char letter = strchr(op->signature, '>')[1];
  if (!fits(op, letter, value_of(model, node->outputs[0]), &t)) return false;
  return op->accepts == NULL || op->accepts(model, node);
}
