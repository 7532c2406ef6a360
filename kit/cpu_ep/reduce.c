// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reductions: the output is filled with what no elements give, then a walk over the input takes in each element. Sums
// of f32 are taken in order, in f32.

#include <math.h>

#include "gcap/kit/shape_inference.h"
#include "kit/cpu_ep/op.h"
#include "kit/cpu_ep/walk.h"

// What a reduction of no elements gives.
typedef struct neutral {
  float f32;
  int64_t i64;
  int32_t i32;
} neutral_t;

static void fill(const gcap_tensor_t* out, const neutral_t* neutral) {
  for (int64_t i = 0, count = gcap_tensor_elements(out); i < count; ++i) {
    switch (out->dtype) {
      case GCAP_DTYPE_I64: ((int64_t*)out->data)[i] = neutral->i64; break;
      case GCAP_DTYPE_I32: ((int32_t*)out->data)[i] = neutral->i32; break;
      default: ((float*)out->data)[i] = neutral->f32; break;
    }
  }
}

// The strides of the output by axis of the input: 0 along what is reduced.
static gcap_status_t find_strides(const gcap_cpu_call_t* call, int64_t out_strides[GCAP_MAX_RANK]) {
  const gcap_tensor_t* in = &call->inputs[0];
  gcap_axes_t reduced;
  GCAP_RETURN_IF_ERROR(gcap_infer_reduced_axes(call->node, call->inputs, &reduced));
  int64_t stride = 1;
  for (int i = in->rank - 1; i >= 0; --i) {
    out_strides[i] = reduced.at[i] ? 0 : stride;
    if (!reduced.at[i]) stride *= in->shape[i];
  }
  return NULL;
}

static gcap_status_t reduce(const gcap_cpu_call_t* call, const neutral_t* neutral) {
  const gcap_tensor_t* in = &call->inputs[0];
  const size_t bytes = gcap_dtype_bytes(in->dtype);
  const gcap_cpu_binary_t binary = call->op->binary[in->dtype];
  int64_t strides[GCAP_MAX_RANK] = {0};
  GCAP_RETURN_IF_ERROR(find_strides(call, strides));
  fill(call->output, neutral);
  gcap_cpu_walk_t walk;
  gcap_cpu_walk_init(&walk, in);
  gcap_cpu_walk_add(&walk, strides, 0);
  for (int64_t i = 0, count = gcap_tensor_elements(in); i < count; ++i, gcap_cpu_walk_next(&walk)) {
    char* out = (char*)call->output->data + (size_t)walk.at[0] * bytes;
    binary(out, (const char*)in->data + (size_t)i * bytes, out);
  }
  return NULL;
}

gcap_status_t gcap_cpu_reduce_prod(const gcap_cpu_call_t* call) {
  return reduce(call, &(neutral_t){.f32 = 1, .i64 = 1, .i32 = 1});
}

gcap_status_t gcap_cpu_reduce_sum(const gcap_cpu_call_t* call) { return reduce(call, &(neutral_t){0}); }

gcap_status_t gcap_cpu_reduce_max(const gcap_cpu_call_t* call) {
  return reduce(call, &(neutral_t){.f32 = -INFINITY, .i64 = INT64_MIN, .i32 = INT32_MIN});
}
