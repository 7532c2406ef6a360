// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear and DequantizeLinear: the node's values tell the types; what attributes say of them too must agree.
// DynamicQuantizeLinear, which looks for the scale itself, MatMulInteger and QLinearMatMul.

#include "ops/kernels/quantize.h"

#include "gcap/kit/ops/elementwise.h"
#include "gcap/kit/ops/reduce.h"
#include "gcap/kit/shape_inference.h"
#include "ops/kernels/matmul_integer.h"
#include "ops/nodes/op.h"

static bool is_float(gcap_dtype_t dtype) {
  return dtype == GCAP_DTYPE_F32 || dtype == GCAP_DTYPE_F16 || dtype == GCAP_DTYPE_BF16;
}
static bool is_byte(gcap_dtype_t dtype) { return dtype == GCAP_DTYPE_I8 || dtype == GCAP_DTYPE_U8; }

static bool attributes_fit(const gcap_node_t* node, gcap_dtype_t made) {
  const int64_t type = gcap_node_int(node, "output_dtype", 0);
  return (type == 0 || type == gcap_node_onnx_type(made)) && gcap_node_int(node, "block_size", 0) >= 0;
}

// The type of the quotient: that of the scale, if the attribute does not name one. False: none of ours.
static bool read_precision(const gcap_node_t* node, gcap_dtype_t scale, gcap_dtype_t* out_precision) {
  static const gcap_dtype_t floats[] = {GCAP_DTYPE_F32, GCAP_DTYPE_F16, GCAP_DTYPE_BF16};
  const int64_t wanted = gcap_node_int(node, "precision", 0);
  *out_precision = scale;
  bool is_known = wanted == 0;
  for (size_t i = 0; i < sizeof(floats) / sizeof(floats[0]); ++i) {
    if (wanted != gcap_node_onnx_type(floats[i])) continue;
    *out_precision = floats[i];
    is_known = true;
  }
  return is_known;
}

bool gcap_node_quantize_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_dtype_t made = model->values[node->outputs[0]].dtype;
  if (!is_float(gcap_node_input(model, node, 0)->dtype) || !is_float(gcap_node_input(model, node, 1)->dtype)) {
    return false;
  }
  if (node->num_inputs == 3 && gcap_node_input(model, node, 2)->dtype != made) return false;
  gcap_dtype_t precision;
  if (!read_precision(node, gcap_node_input(model, node, 1)->dtype, &precision)) return false;
  return is_byte(made) && attributes_fit(node, made);
}

bool gcap_node_dequantize_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_dtype_t made = model->values[node->outputs[0]].dtype, from = gcap_node_input(model, node, 0)->dtype;
  if (!is_float(made) || !is_float(gcap_node_input(model, node, 1)->dtype)) return false;
  if (node->num_inputs == 3 && gcap_node_input(model, node, 2)->dtype != from) return false;
  return (is_byte(from) || from == GCAP_DTYPE_I32) && attributes_fit(node, made);
}

// With one scale for all, the axis counts for nothing, and need not be there.
static gcap_status_t read_how(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context,
                              gcap_quantization_t* out_how) {
  const gcap_tensor_t* in = context->inputs;
  *out_how = (gcap_quantization_t){.scale = &in[1],
                                   .zero_point = kernel->node->num_inputs == 3 ? &in[2] : NULL,
                                   .block_size = gcap_node_int(kernel->node, "block_size", 0)};
  if (in[1].rank <= 1 && gcap_tensor_elements(&in[1]) == 1 && out_how->block_size == 0) return NULL;
  return gcap_infer_axis(kernel->node, in[0].rank, 1, &out_how->axis);
}

gcap_status_t gcap_node_quantize(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  gcap_quantization_t how;
  GCAP_RETURN_IF_ERROR(read_how(kernel, context, &how));
  read_precision(kernel->node, how.scale->dtype, &how.precision);
  return gcap_quantize(context->resources.stream, &how, &context->inputs[0], &context->outputs[0]);
}

gcap_status_t gcap_node_dequantize(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  gcap_quantization_t how;
  GCAP_RETURN_IF_ERROR(read_how(kernel, context, &how));
  return gcap_dequantize(context->resources.stream, &how, &context->inputs[0], &context->outputs[0]);
}

// --- DynamicQuantizeLinear ------------------------------------------------------------------------------------------

static gcap_status_t quantize_dynamically(const gcap_kernel_context_t* context, float* extremes) {
  const gcap_tensor_t *x = &context->inputs[0], *outputs = context->outputs;
  gcap_stream_t* stream = context->resources.stream;
  int64_t axes[GCAP_MAX_RANK];
  for (int i = 0; i < x->rank; ++i) axes[i] = i;
  const gcap_tensor_t high = {.data = extremes, .dtype = GCAP_DTYPE_F32};
  const gcap_tensor_t low = {.data = extremes + 1, .dtype = GCAP_DTYPE_F32};
  const gcap_tensor_t both = {.data = extremes, .dtype = GCAP_DTYPE_F32, .rank = 1, .shape = {2}};
  GCAP_RETURN_IF_ERROR(gcap_reduce(stream, GCAP_REDUCE_MAX, x, axes, x->rank, &high));
  GCAP_RETURN_IF_ERROR(gcap_reduce(stream, GCAP_REDUCE_MIN, x, axes, x->rank, &low));
  GCAP_RETURN_IF_ERROR(gcap_quantization_of(stream, &both, &outputs[1], &outputs[2]));
  const gcap_quantization_t how = {.scale = &outputs[1], .zero_point = &outputs[2], .precision = GCAP_DTYPE_F32};
  return gcap_quantize(stream, &how, x, &outputs[0]);
}

gcap_status_t gcap_node_dynamic_quantize(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  (void)kernel;
  void* extremes = NULL;
  GCAP_RETURN_IF_ERROR(gcap_node_take_workspace(context, 2 * sizeof(float), &extremes));
  return gcap_node_return_workspace(context, extremes, quantize_dynamically(context, extremes));
}

// --- MatMulInteger --------------------------------------------------------------------------------------------------

bool gcap_node_matmul_integer_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  for (int i = 2; i < node->num_inputs; ++i) {
    const gcap_value_t* zero_point = gcap_node_input(model, node, i);
    if (zero_point->dtype != gcap_node_input(model, node, i - 2)->dtype || zero_point->rank > 1) return false;
  }
  return model->values[node->outputs[0]].dtype == GCAP_DTYPE_I32;
}

gcap_status_t gcap_node_matmul_integer(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t* in = context->inputs;
  const int count = kernel->node->num_inputs;
  return gcap_matmul_integer(context->resources.stream, &in[0], &in[1], count > 2 ? &in[2] : NULL,
                             count > 3 ? &in[3] : NULL, &context->outputs[0]);
}

// --- QLinearMatMul --------------------------------------------------------------------------------------------------

enum { A, A_SCALE, A_ZERO_POINT, B, B_SCALE, B_ZERO_POINT, Y_SCALE, Y_ZERO_POINT };

// One scale for all of A and one for all of Y; B may have one for each column.
bool gcap_node_qlinear_matmul_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_dtype_t made = model->values[node->outputs[0]].dtype;
  for (int i = A; i <= B; i += B) {
    if (gcap_node_input(model, node, i + 2)->dtype != gcap_node_input(model, node, i)->dtype) return false;
    if (gcap_node_input(model, node, i + 2)->rank > 1 || gcap_node_input(model, node, i + 1)->rank > 1) return false;
  }
  return gcap_node_input(model, node, Y_ZERO_POINT)->dtype == made;
}

// The sums of integers, scaled as A and then as B are, in `sums` and `scaled`, of 4 bytes an element.
static gcap_status_t multiply_and_scale(const gcap_kernel_context_t* context, void* sums, void* scaled) {
  const gcap_tensor_t* in = context->inputs;
  gcap_stream_t* stream = context->resources.stream;
  gcap_tensor_t products = context->outputs[0], numbers = context->outputs[0];
  products.data = sums;
  products.dtype = GCAP_DTYPE_I32;
  numbers.data = scaled;
  numbers.dtype = GCAP_DTYPE_F32;
  gcap_tensor_t b_scale = in[B_SCALE];
  if (gcap_tensor_elements(&b_scale) == 1) b_scale.rank = 0;  // a list of one number has a rank more than a dot product
  const gcap_quantization_t as_a = {.scale = &in[A_SCALE]};
  const gcap_quantization_t as_y = {
      .scale = &in[Y_SCALE], .zero_point = &in[Y_ZERO_POINT], .precision = GCAP_DTYPE_F32};
  GCAP_RETURN_IF_ERROR(gcap_matmul_integer(stream, &in[A], &in[B], &in[A_ZERO_POINT], &in[B_ZERO_POINT], &products));
  GCAP_RETURN_IF_ERROR(gcap_dequantize(stream, &as_a, &products, &numbers));
  GCAP_RETURN_IF_ERROR(gcap_binary(stream, GCAP_BINARY_MUL, &numbers, &b_scale, &numbers));
  return gcap_quantize(stream, &as_y, &numbers, &context->outputs[0]);
}

gcap_status_t gcap_node_qlinear_matmul(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  (void)kernel;
  const size_t bytes = (size_t)gcap_tensor_elements(&context->outputs[0]) * sizeof(float);
  void* workspace = NULL;
  GCAP_RETURN_IF_ERROR(gcap_node_take_workspace(context, 2 * bytes, &workspace));
  return gcap_node_return_workspace(context, workspace,
                                    multiply_and_scale(context, workspace, (char*)workspace + bytes));
}
