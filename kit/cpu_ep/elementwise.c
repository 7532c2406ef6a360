// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Element by element, with broadcasting: a walk over the output, and the row's function for each element.

#include <string.h>

#include "kit/cpu_ep/op.h"
#include "kit/cpu_ep/walk.h"

static char* element(const gcap_tensor_t* tensor, int64_t at) {
  return (char*)tensor->data + (size_t)at * gcap_dtype_bytes(tensor->dtype);
}

gcap_status_t gcap_cpu_unary(const gcap_cpu_call_t* call) {
  const gcap_tensor_t *a = &call->inputs[0], *out = call->output;
  const gcap_cpu_unary_t unary = call->op->unary[a->dtype];
  for (int64_t i = 0, count = gcap_tensor_elements(out); i < count; ++i) unary(element(a, i), element(out, i));
  return NULL;
}

// out = a op b. `a` may be the output itself.
static gcap_status_t compute(const gcap_cpu_call_t* call, const gcap_cpu_binary_t* by_type, const gcap_tensor_t* a,
                             const gcap_tensor_t* b) {
  const gcap_tensor_t* out = call->output;
  const gcap_cpu_binary_t binary = by_type[a->dtype];
  gcap_cpu_walk_t walk;
  gcap_cpu_walk_init(&walk, out);
  gcap_cpu_walk_add_broadcast(&walk, a);
  gcap_cpu_walk_add_broadcast(&walk, b);
  for (int64_t i = 0, count = gcap_tensor_elements(out); i < count; ++i, gcap_cpu_walk_next(&walk)) {
    if (binary(element(a, walk.at[0]), element(b, walk.at[1]), element(out, i))) continue;
    return GCAP_CPU_REFUSE(call, "element %lld of input 1 is 0, by which an integer is divided", (long long)walk.at[1]);
  }
  return NULL;
}

gcap_status_t gcap_cpu_binary(const gcap_cpu_call_t* call) {
  return compute(call, call->op->binary, &call->inputs[0], &call->inputs[1]);
}

gcap_status_t gcap_cpu_mod(const gcap_cpu_call_t* call) {
  const bool is_fmod = gcap_node_int(call->node, "fmod", 0) != 0;
  return compute(call, is_fmod ? gcap_cpu_fmod : gcap_cpu_floor_mod, &call->inputs[0], &call->inputs[1]);
}

// Min and Max of any number of inputs: the first with itself, then the output with each.
gcap_status_t gcap_cpu_fold(const gcap_cpu_call_t* call) {
  gcap_status_t status = compute(call, call->op->binary, &call->inputs[0], &call->inputs[0]);
  for (int i = 1; status == NULL && i < call->node->num_inputs; ++i) {
    status = compute(call, call->op->binary, call->output, &call->inputs[i]);
  }
  return status;
}

gcap_status_t gcap_cpu_where(const gcap_cpu_call_t* call) {
  const gcap_tensor_t* out = call->output;
  const size_t bytes = gcap_dtype_bytes(out->dtype);
  gcap_cpu_walk_t walk;
  gcap_cpu_walk_init(&walk, out);
  for (int i = 0; i < 3; ++i) gcap_cpu_walk_add_broadcast(&walk, &call->inputs[i]);
  for (int64_t i = 0, count = gcap_tensor_elements(out); i < count; ++i, gcap_cpu_walk_next(&walk)) {
    const int chosen = *element(&call->inputs[0], walk.at[0]) != 0 ? 1 : 2;
    memcpy(element(out, i), element(&call->inputs[chosen], walk.at[chosen]), bytes);
  }
  return NULL;
}
