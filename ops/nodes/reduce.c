// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators along axes: reductions, softmax, layer normalization and local response normalization.

#include "gcap/kit/ops/reduce.h"

#include "gcap/kit/ops/normalize.h"
#include "gcap/kit/shape_inference.h"
#include "ops/nodes/op.h"

#define STREAM(context) ((context)->resources.stream)

// --- Normalizations -------------------------------------------------------------------------------------------------

static int last_axis_or(const gcap_node_t* node) { return (int)gcap_node_int(node, "axis", -1); }

gcap_status_t gcap_node_softmax(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  return gcap_softmax(STREAM(context), &context->inputs[0], last_axis_or(kernel->node), &context->outputs[0]);
}

gcap_status_t gcap_node_log_softmax(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  return gcap_log_softmax(STREAM(context), &context->inputs[0], last_axis_or(kernel->node), &context->outputs[0]);
}

// Before opset 13 all axes from `axis` on were one, and `axis` was 1 where none is given.
static gcap_status_t rows_of(const gcap_node_t* node, const gcap_tensor_t* tensor, gcap_tensor_t* out_rows) {
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(node, tensor->rank, 1, &axis));
  *out_rows = (gcap_tensor_t){.data = tensor->data, .dtype = tensor->dtype, .rank = 2, .shape = {1, 1}};
  for (int d = 0; d < tensor->rank; ++d) out_rows->shape[d < axis ? 0 : 1] *= tensor->shape[d];
  return NULL;
}

gcap_status_t gcap_node_softmax_in_rows(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  gcap_tensor_t x, y;
  GCAP_RETURN_IF_ERROR(rows_of(kernel->node, &context->inputs[0], &x));
  GCAP_RETURN_IF_ERROR(rows_of(kernel->node, &context->outputs[0], &y));
  return gcap_softmax(STREAM(context), &x, 1, &y);
}

gcap_status_t gcap_node_log_softmax_in_rows(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  gcap_tensor_t x, y;
  GCAP_RETURN_IF_ERROR(rows_of(kernel->node, &context->inputs[0], &x));
  GCAP_RETURN_IF_ERROR(rows_of(kernel->node, &context->outputs[0], &y));
  return gcap_log_softmax(STREAM(context), &x, 1, &y);
}

// Scale and bias have as many axes as are normalized. Their sizes are compared when the work is issued.
bool gcap_node_layer_norm_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const int rank = gcap_node_input(model, node, 0)->rank;
  const int64_t given = gcap_node_int(node, "axis", -1), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) return false;
  for (int i = 1; i < node->num_inputs; ++i) {
    if (gcap_node_input(model, node, i)->rank != rank - axis) return false;
  }
  return gcap_node_float(node, "epsilon", 1e-5f) >= 0;
}

gcap_status_t gcap_node_layer_norm(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t *in = context->inputs, *out = context->outputs;
  const gcap_node_t* node = kernel->node;
  return gcap_layer_norm(STREAM(context), &in[0], last_axis_or(node), gcap_node_float(node, "epsilon", 1e-5f), &in[1],
                         node->num_inputs == 3 ? &in[2] : NULL, &out[0], node->num_outputs > 1 ? &out[1] : NULL,
                         node->num_outputs > 2 ? &out[2] : NULL);
}

// ONNX has no default for `size`.
bool gcap_node_lrn_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  return gcap_node_input(model, node, 0)->rank >= 2 && gcap_node_int(node, "size", 0) >= 1;
}

gcap_status_t gcap_node_lrn(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_node_t* node = kernel->node;
  return gcap_lrn(STREAM(context), &context->inputs[0], gcap_node_int(node, "size", 0),
                  gcap_node_float(node, "alpha", 1e-4f), gcap_node_float(node, "beta", 0.75f),
                  gcap_node_float(node, "bias", 1.0f), &context->outputs[0]);
}

// --- Reductions -----------------------------------------------------------------------------------------------------

gcap_status_t gcap_node_reduce(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  gcap_axes_t reduced;
  GCAP_RETURN_IF_ERROR(gcap_infer_reduced_axes(kernel->node, context->inputs, &reduced));
  if (!reduced.known) return GCAP_NODE_REFUSE(kernel->node, "input 1 (%s) is at NULL", "axes");
  int64_t axes[GCAP_MAX_RANK];
  int num_axes = 0;
  for (int i = 0; i < context->inputs[0].rank; ++i) {
    if (reduced.at[i]) axes[num_axes++] = i;
  }
  return gcap_reduce(STREAM(context), (gcap_reduce_op_t)kernel->op->code, &context->inputs[0], axes, num_axes,
                     &context->outputs[0]);
}
