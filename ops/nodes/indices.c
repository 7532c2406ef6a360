// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators with indices on the device, read or made. A scatter copies the data to the output and then writes to the
// output alone; where both are one tensor, as a cache that a graph updates in place, nothing is copied.

#include <string.h>

#include "gcap/kit/shape_inference.h"
#include "ops/kernels/indexed.h"
#include "ops/kernels/select.h"
#include "ops/nodes/op.h"

#define STREAM(context) ((context)->resources.stream)

// --- Gathers --------------------------------------------------------------------------------------------------------

gcap_status_t gcap_node_gather_elements(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t* in = context->inputs;
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(kernel->node, in[0].rank, 0, &axis));
  return gcap_gather_elements(STREAM(context), &in[0], &in[1], axis, &context->outputs[0]);
}

gcap_status_t gcap_node_gather_nd(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t* in = context->inputs;
  const int batch_dims = (int)gcap_node_int(kernel->node, "batch_dims", 0);
  return gcap_gather_nd(STREAM(context), &in[0], &in[1], batch_dims, &context->outputs[0]);
}

// --- Scatters -------------------------------------------------------------------------------------------------------

static const char* const reductions[] = {[GCAP_SCATTER_NONE] = "none",
                                         [GCAP_SCATTER_ADD] = "add",
                                         [GCAP_SCATTER_MUL] = "mul",
                                         [GCAP_SCATTER_MIN] = "min",
                                         [GCAP_SCATTER_MAX] = "max"};

// A gcap_scatter_op_t; -1 if there is no such reduction.
static int find_reduction(const gcap_node_t* node) {
  const char* name = gcap_node_string(node, "reduction", "none");
  for (int op = GCAP_SCATTER_NONE; op <= GCAP_SCATTER_MAX; ++op) {
    if (strcmp(reductions[op], name) == 0) return op;
  }
  return -1;
}

bool gcap_node_scatter_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const int op = find_reduction(node);
  return op >= 0 && gcap_scatter_op_takes((gcap_scatter_op_t)op, gcap_node_input(model, node, 0)->dtype);
}

static gcap_status_t scatter(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context, bool is_nd) {
  const gcap_tensor_t *in = context->inputs, *y = &context->outputs[0];
  const gcap_scatter_op_t op = (gcap_scatter_op_t)find_reduction(kernel->node);  // an op: the node was accepted
  int axis = 0;
  if (!is_nd) GCAP_RETURN_IF_ERROR(gcap_infer_axis(kernel->node, in[0].rank, 0, &axis));
  if (in[0].data != y->data) GCAP_RETURN_IF_ERROR(gcap_node_copy_elements(kernel, context));
  if (is_nd) return gcap_scatter_nd(STREAM(context), op, &in[1], &in[2], y);
  return gcap_scatter_elements(STREAM(context), op, &in[1], &in[2], axis, y);
}

gcap_status_t gcap_node_scatter_elements(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  return scatter(kernel, context, /*is_nd=*/false);
}

gcap_status_t gcap_node_scatter_nd(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  return scatter(kernel, context, /*is_nd=*/true);
}

static bool is_circular(const gcap_node_t* node) {
  return strcmp(gcap_node_string(node, "mode", "linear"), "circular") == 0;
}

bool gcap_node_tensor_scatter_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  (void)model;
  return is_circular(node) || strcmp(gcap_node_string(node, "mode", "linear"), "linear") == 0;
}

gcap_status_t gcap_node_tensor_scatter(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t *in = context->inputs, *y = &context->outputs[0];
  const gcap_tensor_t* starts = kernel->node->num_inputs == 3 ? &in[2] : NULL;
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(kernel->node, in[0].rank, -2, &axis));
  if (in[0].data != y->data) GCAP_RETURN_IF_ERROR(gcap_node_copy_elements(kernel, context));
  return gcap_write_cache(STREAM(context), starts, &in[1], axis, is_circular(kernel->node), y);
}

// --- Indices that are made ------------------------------------------------------------------------------------------

// The row's code: whether the smallest element is meant.
gcap_status_t gcap_node_arg(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const bool last = gcap_node_int(kernel->node, "select_last_index", 0) != 0;
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(kernel->node, context->inputs[0].rank, 0, &axis));
  return gcap_arg(STREAM(context), &context->inputs[0], axis, kernel->op->code, last, &context->outputs[0]);
}

gcap_status_t gcap_node_top_k(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const bool smallest = gcap_node_int(kernel->node, "largest", 1) == 0;
  const bool sorted = gcap_node_int(kernel->node, "sorted", 1) != 0;
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(kernel->node, context->inputs[0].rank, -1, &axis));
  return gcap_top_k(STREAM(context), &context->inputs[0], axis, smallest, sorted, &context->outputs[0],
                    &context->outputs[1]);
}
