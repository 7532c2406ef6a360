// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that show elements of one input at several places: Pad, and Expand, whose dimensions of 1 are padded with
// the one element that they have. The numbers are read on the host, and the shapes were made of them.

#include <string.h>

#include "kit/shape/inner.h"
#include "ops/kernels/pad.h"
#include "ops/nodes/op.h"

#define STREAM(context) ((context)->resources.stream)

// --- Pad ------------------------------------------------------------------------------------------------------------

// Before opset 11 Pad is for floats, and its value an attribute.
bool gcap_node_pad_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  return !gcap_node_has(node, "value") || gcap_node_is_float(gcap_node_input(model, node, 0)->dtype);
}

static gcap_pad_mode_t mode_of(const gcap_node_t* node) {
  const char* mode = gcap_node_string(node, "mode", "constant");
  if (strcmp(mode, "reflect") == 0) return GCAP_PAD_REFLECT;
  if (strcmp(mode, "edge") == 0) return GCAP_PAD_EDGE;
  return strcmp(mode, "wrap") == 0 ? GCAP_PAD_WRAP : GCAP_PAD_CONSTANT;
}

static gcap_status_t read_value(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context,
                                gcap_node_element_t* out_value) {
  *out_value = gcap_node_value(kernel->node, context->inputs[0].dtype);
  const gcap_tensor_t* value = &context->inputs[2];
  if (kernel->node->num_inputs < 3 || gcap_tensor_elements(value) == 0) return NULL;  // left out before axes
  if (gcap_tensor_elements(value) != 1) {
    return GCAP_NODE_REFUSE(kernel->node, "input 2 (constant_value) has %lld elements, allowed is 1",
                            (long long)gcap_tensor_elements(value));
  }
  if (value->data == NULL) return GCAP_NODE_REFUSE(kernel->node, "input %d has an element at NULL", 2);
  memcpy(out_value, value->data, gcap_dtype_bytes(value->dtype));
  return NULL;
}

gcap_status_t gcap_node_pad(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  gcap_pads_t pads;
  gcap_node_element_t value;
  GCAP_RETURN_IF_ERROR(gcap_infer_pads(kernel->node, context->inputs, &pads));
  if (!pads.known) return GCAP_NODE_REFUSE(kernel->node, "%s are at NULL", "pads or axes");
  GCAP_RETURN_IF_ERROR(read_value(kernel, context, &value));
  return gcap_pad(STREAM(context), &context->inputs[0], pads.begin, mode_of(kernel->node), &value,
                  &context->outputs[0]);
}

// --- Expand ---------------------------------------------------------------------------------------------------------

gcap_status_t gcap_node_expand(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  (void)kernel;
  static const int64_t begins[GCAP_MAX_RANK] = {0};
  const gcap_tensor_t *given = &context->inputs[0], *y = &context->outputs[0];
  gcap_tensor_t x = *given;
  const int added = y->rank - x.rank;
  for (int i = 0; i < y->rank; ++i) x.shape[i] = i < added ? 1 : given->shape[i - added];
  x.rank = y->rank;
  return gcap_pad(STREAM(context), &x, begins, GCAP_PAD_EDGE, NULL, y);
}
