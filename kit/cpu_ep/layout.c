// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that move elements without reading them, so of any type. Those that take elements at regular distances are
// one walk with strides of their own; the others copy runs.

#include <string.h>

#include "gcap/kit/shape_inference.h"
#include "kit/cpu_ep/op.h"
#include "kit/cpu_ep/walk.h"

// memcpy and pointer arithmetic need memory even for nothing.
static void copy(char* to, const char* from, size_t bytes) {
  if (bytes > 0) memcpy(to, from, bytes);
}

// Identity, Reshape, Flatten, Squeeze, Unsqueeze.
gcap_status_t gcap_cpu_copy(const gcap_cpu_call_t* call) {
  copy(call->output->data, call->inputs[0].data, gcap_tensor_bytes(call->output));
  return NULL;
}

// --- At regular distances -------------------------------------------------------------------------------------------

// output[index] = input[at + index . strides]
static void take(const gcap_cpu_call_t* call, const int64_t strides[GCAP_MAX_RANK], int64_t at) {
  const gcap_tensor_t* out = call->output;
  const size_t bytes = gcap_dtype_bytes(out->dtype);
  const char* from = call->inputs[0].data;
  char* to = out->data;
  gcap_cpu_walk_t walk;
  gcap_cpu_walk_init(&walk, out);
  gcap_cpu_walk_add(&walk, strides, at);
  for (int64_t i = 0, count = gcap_tensor_elements(out); i < count; ++i, gcap_cpu_walk_next(&walk)) {
    memcpy(to + (size_t)i * bytes, from + (size_t)walk.at[0] * bytes, bytes);
  }
}

gcap_status_t gcap_cpu_expand(const gcap_cpu_call_t* call) {
  const gcap_tensor_t* in = &call->inputs[0];
  int64_t own[GCAP_MAX_RANK], strides[GCAP_MAX_RANK] = {0};
  gcap_cpu_strides(in, own);
  const int offset = call->output->rank - in->rank;
  for (int i = 0; i < in->rank; ++i) strides[offset + i] = in->shape[i] == 1 ? 0 : own[i];
  take(call, strides, 0);
  return NULL;
}

gcap_status_t gcap_cpu_transpose(const gcap_cpu_call_t* call) {
  const int rank = call->inputs[0].rank;
  int64_t own[GCAP_MAX_RANK], strides[GCAP_MAX_RANK] = {0};
  gcap_cpu_strides(&call->inputs[0], own);
  size_t count = 0;
  const int64_t* perm = gcap_node_ints(call->node, "perm", &count);
  for (int i = 0; i < rank; ++i) strides[i] = own[perm != NULL ? perm[i] : rank - 1 - i];
  take(call, strides, 0);
  return NULL;
}

gcap_status_t gcap_cpu_slice(const gcap_cpu_call_t* call) {
  gcap_slice_t slice;
  GCAP_RETURN_IF_ERROR(gcap_infer_slice(call->node, call->inputs, &slice));
  int64_t own[GCAP_MAX_RANK], strides[GCAP_MAX_RANK] = {0}, at = 0;
  gcap_cpu_strides(&call->inputs[0], own);
  for (int i = 0; i < call->output->rank; ++i) {
    // The step of an axis with one element or none is not taken, and may be too large to multiply.
    strides[i] = slice.count[i] > 1 ? own[i] * slice.step[i] : 0;
    at += own[i] * slice.start[i];
  }
  take(call, strides, at);
  return NULL;
}

// --- In runs --------------------------------------------------------------------------------------------------------

static size_t product(const int64_t* shape, int begin, int end) {
  size_t count = 1;
  for (int i = begin; i < end; ++i) count *= (size_t)shape[i];
  return count;
}

gcap_status_t gcap_cpu_concat(const gcap_cpu_call_t* call) {
  const gcap_tensor_t* out = call->output;
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(call->node, out->rank, 0, &axis));
  const size_t times = product(out->shape, 0, axis);
  const size_t inner = product(out->shape, axis + 1, out->rank) * gcap_dtype_bytes(out->dtype);
  const size_t row = (size_t)out->shape[axis] * inner;
  size_t offset = 0;
  for (int i = 0; i < call->node->num_inputs; ++i) {
    const size_t run = (size_t)call->inputs[i].shape[axis] * inner;
    const char* from = call->inputs[i].data;
    char* to = out->data;
    for (size_t j = 0; run > 0 && j < times; ++j) copy(to + j * row + offset, from + j * run, run);
    offset += run;
  }
  return NULL;
}

// Reads index number `i`, counted from the end if negative.
static gcap_status_t read_index(const gcap_cpu_call_t* call, size_t i, int64_t size, size_t* out_index) {
  const gcap_tensor_t* indices = &call->inputs[1];
  const int64_t given =
      indices->dtype == GCAP_DTYPE_I32 ? ((const int32_t*)indices->data)[i] : ((const int64_t*)indices->data)[i];
  *out_index = 0;
  if (given < -size || given >= size) {
    return GCAP_CPU_REFUSE(call, "element %zu of input 1 is %lld, allowed is %lld..%lld", i, (long long)given,
                           (long long)-size, (long long)size - 1);
  }
  *out_index = (size_t)(given < 0 ? given + size : given);
  return NULL;
}

gcap_status_t gcap_cpu_gather(const gcap_cpu_call_t* call) {
  const gcap_tensor_t *data = &call->inputs[0], *out = call->output;
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(call->node, data->rank, 0, &axis));
  const size_t times = product(data->shape, 0, axis), count = (size_t)gcap_tensor_elements(&call->inputs[1]);
  const size_t run = product(data->shape, axis + 1, data->rank) * gcap_dtype_bytes(data->dtype);
  const size_t row = (size_t)data->shape[axis] * run;
  const bool empty = gcap_tensor_elements(out) == 0;
  for (size_t i = 0; i < count; ++i) {
    size_t index = 0;
    GCAP_RETURN_IF_ERROR(read_index(call, i, data->shape[axis], &index));
    for (size_t j = 0; !empty && j < times; ++j) {
      copy((char*)out->data + (j * count + i) * run, (const char*)data->data + j * row + index * run, run);
    }
  }
  return NULL;
}
