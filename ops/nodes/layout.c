// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that move elements. Those that change the shape alone copy all elements: a host gives each value memory of
// its own. What the host reads (shapes, axes, parts) decided the shapes before, so that most is not read here again.

#include "gcap/kit/ops/layout.h"

#include <cuda_runtime_api.h>
#include <string.h>

#include "gcap/kit/ops/elementwise.h"
#include "gcap/kit/shape_inference.h"
#include "ops/nodes/op.h"

#define STREAM(context) ((context)->resources.stream)

gcap_status_t gcap_node_copy_elements(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  (void)kernel;
  gcap_tensor_t x = context->outputs[0];  // as many elements
  x.data = context->inputs[0].data;
  return gcap_cast(STREAM(context), &x, &context->outputs[0]);
}

gcap_status_t gcap_node_transpose(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t* x = &context->inputs[0];
  size_t count = 0;
  const int64_t* perm = gcap_node_ints(kernel->node, "perm", &count);
  int64_t reversed[GCAP_MAX_RANK];
  for (int i = 0; i < x->rank; ++i) reversed[i] = x->rank - 1 - i;
  return gcap_transpose(STREAM(context), x, perm != NULL ? perm : reversed, &context->outputs[0]);
}

gcap_status_t gcap_node_concat(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const int axis = (int)gcap_node_int(kernel->node, "axis", 0);
  return gcap_concat(STREAM(context), context->inputs, kernel->node->num_inputs, axis, &context->outputs[0]);
}

// Shape inference counts no further.
GCAP_NODE_ACCEPTS(gcap_node_split_accepts) {
  (void)model;
  return node->num_outputs <= GCAP_MAX_RANK;
}

gcap_status_t gcap_node_split(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const int axis = (int)gcap_node_int(kernel->node, "axis", 0);
  return gcap_split(STREAM(context), &context->inputs[0], axis, context->outputs, kernel->node->num_outputs);
}

// Two inputs are none: starts without ends.
bool gcap_node_slice_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  (void)model;
  return node->num_inputs != 2;
}

gcap_status_t gcap_node_slice(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  gcap_slice_t slice;
  GCAP_RETURN_IF_ERROR(gcap_infer_slice(kernel->node, context->inputs, &slice));
  if (!slice.known) return GCAP_NODE_REFUSE(kernel->node, "%s are at NULL", "starts, ends, axes or steps");
  const gcap_tensor_t* y = &context->outputs[0];
  for (int i = 0; i < y->rank; ++i) {
    if (slice.count[i] == y->shape[i]) continue;
    return GCAP_NODE_REFUSE(kernel->node, "it takes %lld elements of axis %d, the kernel was made for %lld",
                            (long long)slice.count[i], i, (long long)y->shape[i]);
  }
  if (gcap_tensor_elements(y) == 0) return NULL;  // a start may then be outside
  return gcap_slice(STREAM(context), &context->inputs[0], slice.start, slice.step, y);
}

gcap_status_t gcap_node_gather(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const int axis = (int)gcap_node_int(kernel->node, "axis", 0);
  return gcap_gather(STREAM(context), &context->inputs[0], &context->inputs[1], axis, &context->outputs[0]);
}

// --- Blocks ---------------------------------------------------------------------------------------------------------

// y = the input, as a tensor of six axes, with these axes in another order.
static gcap_status_t transpose_six(const gcap_kernel_context_t* context, const int64_t shape[6],
                                   const int64_t perm[6]) {
  gcap_tensor_t x = context->inputs[0], y = context->outputs[0];
  x.rank = y.rank = 6;
  for (int i = 0; i < 6; ++i) {
    x.shape[i] = shape[i];
    y.shape[i] = shape[perm[i]];
  }
  return gcap_transpose(STREAM(context), &x, perm, &y);
}

gcap_status_t gcap_node_space_to_depth(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const int64_t block = gcap_node_int(kernel->node, "blocksize", 1);
  const int64_t *x = context->inputs[0].shape, *y = context->outputs[0].shape;
  return transpose_six(context, (const int64_t[]){x[0], x[1], y[2], block, y[3], block},
                       (const int64_t[]){0, 3, 5, 1, 2, 4});
}

gcap_status_t gcap_node_depth_to_space(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const int64_t block = gcap_node_int(kernel->node, "blocksize", 1);
  const int64_t *x = context->inputs[0].shape, *y = context->outputs[0].shape;
  if (strcmp(gcap_node_string(kernel->node, "mode", "DCR"), "CRD") == 0) {
    return transpose_six(context, (const int64_t[]){x[0], y[1], block, block, x[2], x[3]},
                         (const int64_t[]){0, 1, 4, 2, 5, 3});
  }
  return transpose_six(context, (const int64_t[]){x[0], block, block, y[1], x[2], x[3]},
                       (const int64_t[]){0, 3, 4, 1, 5, 2});
}

// --- Dropout --------------------------------------------------------------------------------------------------------

// In inference nothing is dropped.
bool gcap_node_dropout_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  if (node->num_inputs < 3) return true;
  const bool* training_mode = gcap_node_input(model, node, 2)->host_data;
  return training_mode != NULL && !*training_mode;
}

gcap_status_t gcap_node_dropout(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  GCAP_RETURN_IF_ERROR(gcap_node_copy_elements(kernel, context));
  if (kernel->node->num_outputs == 1) return NULL;
  const gcap_tensor_t* mask = &context->outputs[1];
  const size_t bytes = gcap_tensor_bytes(mask);
  if (bytes == 0) return NULL;
  return GCAP_CUDA(cudaMemsetAsync(mask->data, true, bytes, gcap_stream_handle(STREAM(context))));
}
