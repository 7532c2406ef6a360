// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Cast. ONNX leaves open what becomes of a number that the new type does not have; here it is the same on every
// machine.

#include <math.h>

#include "kit/cpu_ep/op.h"

static int64_t read_integer(const gcap_tensor_t* tensor, int64_t i) {
  switch (tensor->dtype) {
    case GCAP_DTYPE_I64: return ((const int64_t*)tensor->data)[i];
    case GCAP_DTYPE_I32: return ((const int32_t*)tensor->data)[i];
    case GCAP_DTYPE_I8: return ((const int8_t*)tensor->data)[i];
    case GCAP_DTYPE_U8: return ((const uint8_t*)tensor->data)[i];
    default: return ((const uint8_t*)tensor->data)[i] != 0;
  }
}

// The nearest integer toward zero between `least` and `most`, which is 2^n - 1; 0 for NaN. In f32, `most` rounds up to
// 2^n, which is too large itself.
static int64_t truncated(float value, int64_t least, int64_t most) {
  if (isnan(value)) return 0;
  if (value <= (float)least) return least;
  if (value >= (float)most) return most;
  return (int64_t)value;
}

static void cast_float(float value, const gcap_tensor_t* out, int64_t i) {
  switch (out->dtype) {
    case GCAP_DTYPE_F32: ((float*)out->data)[i] = value; break;
    case GCAP_DTYPE_I64: ((int64_t*)out->data)[i] = truncated(value, INT64_MIN, INT64_MAX); break;
    case GCAP_DTYPE_I32: ((int32_t*)out->data)[i] = (int32_t)truncated(value, INT32_MIN, INT32_MAX); break;
    case GCAP_DTYPE_I8: ((int8_t*)out->data)[i] = (int8_t)truncated(value, INT8_MIN, INT8_MAX); break;
    case GCAP_DTYPE_U8: ((uint8_t*)out->data)[i] = (uint8_t)truncated(value, 0, UINT8_MAX); break;
    default: ((uint8_t*)out->data)[i] = value != 0; break;
  }
}

static void cast_integer(int64_t value, const gcap_tensor_t* out, int64_t i) {
  switch (out->dtype) {
    case GCAP_DTYPE_F32: ((float*)out->data)[i] = (float)value; break;
    case GCAP_DTYPE_I64: ((int64_t*)out->data)[i] = value; break;
    case GCAP_DTYPE_I32: ((int32_t*)out->data)[i] = (int32_t)(uint32_t)value; break;
    case GCAP_DTYPE_I8: ((int8_t*)out->data)[i] = (int8_t)(uint8_t)value; break;
    case GCAP_DTYPE_U8: ((uint8_t*)out->data)[i] = (uint8_t)value; break;
    default: ((uint8_t*)out->data)[i] = value != 0; break;
  }
}

gcap_status_t gcap_cpu_cast(const gcap_cpu_call_t* call) {
  const gcap_tensor_t *in = &call->inputs[0], *out = call->output;
  for (int64_t i = 0, count = gcap_tensor_elements(out); i < count; ++i) {
    if (in->dtype == GCAP_DTYPE_F32) {
      cast_float(((const float*)in->data)[i], out, i);
    } else {
      cast_integer(read_integer(in, i), out, i);
    }
  }
  return NULL;
}
