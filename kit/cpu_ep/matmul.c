// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// MatMul in plain loops: a walk over the matrices of the batch, and the product of two of them. It is there so that a
// model with one node that no device takes runs at all.

#include "kit/cpu_ep/op.h"
#include "kit/cpu_ep/walk.h"

// The inner loop goes along rows, which lie together.
static void multiply(const float* a, const float* b, float* out, int64_t m, int64_t k, int64_t n) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) out[i * n + j] = 0;
    for (int64_t l = 0; l < k; ++l) {
      for (int64_t j = 0; j < n; ++j) out[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
}

// The axes before the matrix, which a vector and a matrix lack.
static gcap_tensor_t batch_of(const gcap_tensor_t* tensor) {
  gcap_tensor_t batch = *tensor;
  batch.rank = tensor->rank > 2 ? tensor->rank - 2 : 0;
  return batch;
}

gcap_status_t gcap_cpu_matmul(const gcap_cpu_call_t* call) {
  const gcap_tensor_t *a = &call->inputs[0], *b = &call->inputs[1], *out = call->output;
  if (gcap_tensor_elements(out) == 0) return NULL;
  const int64_t m = a->rank > 1 ? a->shape[a->rank - 2] : 1, k = a->shape[a->rank - 1];
  const int64_t n = b->rank > 1 ? b->shape[b->rank - 1] : 1;
  const gcap_tensor_t batch_of_a = batch_of(a), batch_of_b = batch_of(b);
  gcap_tensor_t batch = *out;
  batch.rank = batch_of_a.rank > batch_of_b.rank ? batch_of_a.rank : batch_of_b.rank;
  gcap_cpu_walk_t walk;
  gcap_cpu_walk_init(&walk, &batch);
  gcap_cpu_walk_add_broadcast(&walk, &batch_of_a);
  gcap_cpu_walk_add_broadcast(&walk, &batch_of_b);
  for (int64_t i = 0, count = gcap_tensor_elements(&batch); i < count; ++i, gcap_cpu_walk_next(&walk)) {
    // Without an inner axis there is nothing to read, and `data` may be NULL.
    const float* from_a = k > 0 ? (const float*)a->data + walk.at[0] * m * k : NULL;
    const float* from_b = k > 0 ? (const float*)b->data + walk.at[1] * k * n : NULL;
    multiply(from_a, from_b, (float*)out->data + i * m * n, m, k, n);
  }
  return NULL;
}
