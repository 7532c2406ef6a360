// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Shapes as tensors, and tensors out of shapes: Shape, Size, Range, ConstantOfShape.

#include "kit/cpu_ep/op.h"

// Where Shape's slice begins; where it ends, the output's size says.
static int first_axis(const gcap_node_t* node, int rank) {
  int64_t start = gcap_node_int(node, "start", 0);
  if (start < 0) start += rank;
  return start < 0 ? 0 : start < rank ? (int)start : rank;
}

gcap_status_t gcap_cpu_shape(const gcap_cpu_call_t* call) {
  const gcap_tensor_t* in = &call->inputs[0];
  const int first = first_axis(call->node, in->rank);
  for (int64_t i = 0; i < call->output->shape[0]; ++i) ((int64_t*)call->output->data)[i] = in->shape[first + i];
  return NULL;
}

gcap_status_t gcap_cpu_size(const gcap_cpu_call_t* call) {
  *(int64_t*)call->output->data = gcap_tensor_elements(&call->inputs[0]);
  return NULL;
}

// i * delta may be more than its type holds although the sum is not: it wraps there and back.
gcap_status_t gcap_cpu_range(const gcap_cpu_call_t* call) {
  const void *start = call->inputs[0].data, *delta = call->inputs[2].data;
  void* out = call->output->data;
  for (int64_t i = 0; i < call->output->shape[0]; ++i) {
    switch (call->output->dtype) {
      case GCAP_DTYPE_F32: ((float*)out)[i] = (float)(*(const float*)start + (double)i * *(const float*)delta); break;
      case GCAP_DTYPE_I32:
        ((int32_t*)out)[i] = (int32_t)(*(const uint32_t*)start + (uint32_t)i * *(const uint32_t*)delta);
        break;
      default: ((int64_t*)out)[i] = (int64_t)(*(const uint64_t*)start + (uint64_t)i * *(const uint64_t*)delta); break;
    }
  }
  return NULL;
}

gcap_status_t gcap_cpu_constant_of_shape(const gcap_cpu_call_t* call) {
  const int64_t integer = gcap_node_int(call->node, "value", 0);
  const float number = gcap_node_float(call->node, "value", (float)integer);
  void* out = call->output->data;
  for (int64_t i = 0, count = gcap_tensor_elements(call->output); i < count; ++i) {
    switch (call->output->dtype) {
      case GCAP_DTYPE_F32: ((float*)out)[i] = number; break;
      case GCAP_DTYPE_I64: ((int64_t*)out)[i] = integer; break;
      case GCAP_DTYPE_I32: ((int32_t*)out)[i] = (int32_t)integer; break;
      default: ((uint8_t*)out)[i] = integer != 0; break;
    }
  }
  return NULL;
}
