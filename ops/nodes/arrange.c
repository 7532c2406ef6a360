// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that repeat, keep or reorder elements by numbers that they have beside them. What the host reads decides
// the shapes, or which elements a kernel takes.

#include "ops/kernels/arrange.h"

#include "gcap/kit/shape_inference.h"
#include "kit/shape/inner.h"
#include "ops/kernels/cum_sum.h"
#include "ops/kernels/pad.h"
#include "ops/kernels/select.h"
#include "ops/nodes/op.h"

#define STREAM(context) ((context)->resources.stream)

// The number that input `input` is.
static gcap_status_t read_number(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context, int input,
                                 const char* name, int64_t* out_number) {
  bool known = false;
  GCAP_RETURN_IF_ERROR(gcap_infer_number(kernel->node, input, name, &context->inputs[input], &known, out_number));
  return known ? NULL : GCAP_NODE_REFUSE(kernel->node, "input %d (%s) is at NULL", input, name);
}

// To tile is to wrap behind the end.
gcap_status_t gcap_node_tile(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  (void)kernel;
  static const int64_t begins[GCAP_MAX_RANK] = {0};
  return gcap_pad(STREAM(context), &context->inputs[0], begins, GCAP_PAD_WRAP, NULL, &context->outputs[0]);
}

gcap_status_t gcap_node_trilu(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  int64_t k = 0;
  if (kernel->node->num_inputs > 1) GCAP_RETURN_IF_ERROR(read_number(kernel, context, 1, "k", &k));
  const bool upper = gcap_node_int(kernel->node, "upper", 1) != 0;
  return gcap_triangle(STREAM(context), upper ? GCAP_TRIANGLE_UPPER : GCAP_TRIANGLE_LOWER, k, &context->inputs[0], NULL,
                       &context->outputs[0]);
}

// --- EyeLike --------------------------------------------------------------------------------------------------------

bool gcap_node_eye_like_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_dtype_t made = model->values[node->outputs[0]].dtype;
  if (!gcap_node_has(node, "dtype")) return made == gcap_node_input(model, node, 0)->dtype;
  return gcap_node_int(node, "dtype", 0) == gcap_node_onnx_type(made);
}

gcap_status_t gcap_node_eye_like(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t* y = &context->outputs[0];
  const gcap_node_element_t one = gcap_node_element(y->dtype, 1);
  return gcap_triangle(STREAM(context), GCAP_TRIANGLE_DIAGONAL, gcap_node_int(kernel->node, "k", 0), NULL, &one, y);
}

// --- OneHot ---------------------------------------------------------------------------------------------------------

static bool is_index(gcap_dtype_t dtype) {
  return dtype == GCAP_DTYPE_I64 || dtype == GCAP_DTYPE_I32 || dtype == GCAP_DTYPE_F32;
}

bool gcap_node_one_hot_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  return is_index(gcap_node_input(model, node, 0)->dtype) && is_index(gcap_node_input(model, node, 1)->dtype);
}

gcap_status_t gcap_node_one_hot(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const int axis = (int)gcap_node_int(kernel->node, "axis", -1);
  return gcap_one_hot(STREAM(context), &context->inputs[0], &context->inputs[2], axis, &context->outputs[0]);
}

// --- Hardmax --------------------------------------------------------------------------------------------------------

// One hot at the largest element of each row, the first of them. `workspace` has 0 and 1 of the type, then the indices.
static gcap_status_t mark_largest(const gcap_kernel_context_t* context, int axis, void* workspace) {
  const gcap_tensor_t *x = &context->inputs[0], *y = &context->outputs[0];
  const gcap_node_element_t one = gcap_node_element(y->dtype, 1);
  const gcap_tensor_t values = {.data = workspace, .dtype = y->dtype, .rank = 2, .shape = {1, 2}};
  gcap_tensor_t indices = *x, off_on = values;
  indices.data = (int64_t*)workspace + 1;  // two elements of the type take no more than that
  indices.dtype = GCAP_DTYPE_I64;
  indices.shape[axis] = 1;
  GCAP_RETURN_IF_ERROR(gcap_arg(STREAM(context), x, axis, /*smallest=*/false, /*last=*/false, &indices));
  GCAP_RETURN_IF_ERROR(gcap_triangle(STREAM(context), GCAP_TRIANGLE_DIAGONAL, /*k=*/1, NULL, &one, &values));
  for (int i = axis; i < x->rank - 1; ++i) indices.shape[i] = x->shape[i + 1];
  --indices.rank;
  off_on.rank = 1;
  off_on.shape[0] = 2;
  return gcap_one_hot(STREAM(context), &indices, &off_on, axis, y);
}

gcap_status_t gcap_node_hardmax(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t* x = &context->inputs[0];
  const int64_t elements = gcap_tensor_elements(x);
  int axis = 0;
  void* workspace = NULL;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(kernel->node, x->rank, -1, &axis));
  if (elements == 0) return NULL;
  const size_t bytes = (size_t)(1 + elements / x->shape[axis]) * sizeof(int64_t);
  GCAP_RETURN_IF_ERROR(gcap_node_take_workspace(context, bytes, &workspace));
  return gcap_node_return_workspace(context, workspace, mark_largest(context, axis, workspace));
}

// --- CumSum and ReverseSequence -------------------------------------------------------------------------------------

gcap_status_t gcap_node_cum_sum(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  int64_t axis = 0;
  GCAP_RETURN_IF_ERROR(read_number(kernel, context, 1, "axis", &axis));
  const bool exclusive = gcap_node_int(kernel->node, "exclusive", 0) != 0;
  const bool reverse = gcap_node_int(kernel->node, "reverse", 0) != 0;
  return gcap_cum_sum(STREAM(context), &context->inputs[0], axis, exclusive, reverse, &context->outputs[0]);
}

gcap_status_t gcap_node_reverse_sequence(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const int time_axis = (int)gcap_node_int(kernel->node, "time_axis", 0);
  return gcap_reverse_sequence(STREAM(context), &context->inputs[0], &context->inputs[1], time_axis,
                               &context->outputs[0]);
}
