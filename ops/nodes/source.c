// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators whose elements are numbers of the node, not of a tensor on the device: ConstantOfShape, Range.

#include <string.h>

#include "gcap/kit/shape_inference.h"
#include "ops/kernels/half.h"
#include "ops/kernels/pad.h"
#include "ops/kernels/range.h"
#include "ops/nodes/op.h"

#define STREAM(context) ((context)->resources.stream)

// --- The attribute value --------------------------------------------------------------------------------------------

bool gcap_node_is_float(gcap_dtype_t dtype) {
  return dtype == GCAP_DTYPE_F32 || dtype == GCAP_DTYPE_F16 || dtype == GCAP_DTYPE_BF16;
}

static void put_float(gcap_dtype_t dtype, float value, gcap_node_element_t* out) {
  const uint16_t half = dtype == GCAP_DTYPE_F16 ? gcap_f16_from_f32(value) : gcap_bf16_from_f32(value);
  if (dtype == GCAP_DTYPE_F32) memcpy(out->bytes, &value, sizeof(value));
  if (dtype != GCAP_DTYPE_F32) memcpy(out->bytes, &half, sizeof(half));
}

// The bytes of a smaller integer are the low ones, which come first wherever CUDA runs.
static void put_integer(gcap_dtype_t dtype, int64_t value, gcap_node_element_t* out) {
  if (dtype == GCAP_DTYPE_BOOL) value = value != 0;
  memcpy(out->bytes, &value, gcap_dtype_bytes(dtype));
}

gcap_node_element_t gcap_node_element(gcap_dtype_t dtype, int64_t value) {
  gcap_node_element_t element = {{0}};
  if (gcap_node_is_float(dtype)) put_float(dtype, (float)value, &element);
  if (!gcap_node_is_float(dtype)) put_integer(dtype, value, &element);
  return element;
}

gcap_node_element_t gcap_node_value(const gcap_node_t* node, gcap_dtype_t dtype) {
  const int64_t integer = gcap_node_int(node, "value", 0);
  if (!gcap_node_is_float(dtype)) return gcap_node_element(dtype, integer);
  gcap_node_element_t element = {{0}};
  put_float(dtype, gcap_node_float(node, "value", (float)integer), &element);
  return element;
}

// --- ConstantOfShape ------------------------------------------------------------------------------------------------

// A float attribute is for floats; an int attribute is for all. Only what is no int gives each fallback back.
bool gcap_node_constant_of_shape_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  if (gcap_node_is_float(model->values[node->outputs[0]].dtype) || !gcap_node_has(node, "value")) return true;
  return gcap_node_int(node, "value", 0) == gcap_node_int(node, "value", 1);
}

gcap_status_t gcap_node_constant_of_shape(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t* y = &context->outputs[0];
  const gcap_node_element_t value = gcap_node_value(kernel->node, y->dtype);
  return gcap_fill(STREAM(context), &value, y);
}

// --- Range ----------------------------------------------------------------------------------------------------------

gcap_status_t gcap_node_range(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const void *start = context->inputs[0].data, *delta = context->inputs[2].data;
  if (start == NULL || delta == NULL) return GCAP_NODE_REFUSE(kernel->node, "%s are at NULL", "start or delta");
  return gcap_range(STREAM(context), start, delta, &context->outputs[0]);
}
