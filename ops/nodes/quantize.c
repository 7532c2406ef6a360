// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear and DequantizeLinear. The node's values tell the types; what attributes say of them too must agree.

#include "ops/kernels/quantize.h"

#include "gcap/kit/shape_inference.h"
#include "ops/nodes/op.h"

static bool is_float(gcap_dtype_t dtype) {
  return dtype == GCAP_DTYPE_F32 || dtype == GCAP_DTYPE_F16 || dtype == GCAP_DTYPE_BF16;
}
static bool is_byte(gcap_dtype_t dtype) { return dtype == GCAP_DTYPE_I8 || dtype == GCAP_DTYPE_U8; }

// The quotient is f32: a node that asks for another precision is not computed as it wants.
static bool attributes_fit(const gcap_node_t* node, gcap_dtype_t made) {
  const int64_t type = gcap_node_int(node, "output_dtype", 0), precision = gcap_node_int(node, "precision", 0);
  return (type == 0 || type == gcap_node_onnx_type(made)) && (precision == 0 || precision == 1) &&
         gcap_node_int(node, "block_size", 0) >= 0;
}

bool gcap_node_quantize_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_dtype_t made = model->values[node->outputs[0]].dtype;
  if (!is_float(gcap_node_input(model, node, 0)->dtype) || !is_float(gcap_node_input(model, node, 1)->dtype)) {
    return false;
  }
  if (node->num_inputs == 3 && gcap_node_input(model, node, 2)->dtype != made) return false;
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
  return gcap_quantize(context->resources.stream, &how, &context->inputs[0], &context->outputs[0]);
}

gcap_status_t gcap_node_dequantize(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  gcap_quantization_t how;
  GCAP_RETURN_IF_ERROR(read_how(kernel, context, &how));
  return gcap_dequantize(context->resources.stream, &how, &context->inputs[0], &context->outputs[0]);
}
