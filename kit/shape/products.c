// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that sum over axes: reductions, MatMul, Gemm.

#include "kit/shape/infer.h"
#include "lib/internal/check_argument.h"

// --- Reductions -----------------------------------------------------------------------------------------------------

gcap_status_t gcap_infer_reduced_axes(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_axes_t* out_axes) {
  GCAP_RETURN_IF_NULL(out_axes);
  *out_axes = (gcap_axes_t){0};
  GCAP_RETURN_IF_NULL(node);
  GCAP_RETURN_IF_NULL(inputs);
  if (node->num_inputs < 1 || node->num_inputs > 2) {
    return GCAP_SHAPE_REFUSE(node, "it has %d inputs, allowed is 1..2", node->num_inputs);
  }
  for (int i = 0; i < node->num_inputs; ++i) GCAP_RETURN_IF_ERROR(gcap_shape_check_input(node, i, &inputs[i]));
  gcap_numbers_t numbers;
  bool given = false;
  GCAP_RETURN_IF_ERROR(gcap_shape_read_numbers(node, "axes", inputs, &numbers, &given));
  if (!numbers.known) return NULL;
  gcap_axes_t axes = {.known = true};
  GCAP_RETURN_IF_ERROR(gcap_shape_axes(node, &numbers, inputs[0].rank, axes.at));
  const bool all = numbers.count == 0 && gcap_node_int(node, "noop_with_empty_axes", 0) == 0;
  for (int i = 0; all && i < inputs[0].rank; ++i) axes.at[i] = true;
  *out_axes = axes;
  return NULL;
}

gcap_status_t gcap_infer_reduce(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_axes_t axes;
  GCAP_RETURN_IF_ERROR(gcap_infer_reduced_axes(node, inputs, &axes));
  const bool keep = gcap_node_int(node, "keepdims", 1) != 0;
  if (!axes.known && !keep) return NULL;
  gcap_shape_t shape = {.rank = 0};
  for (int i = 0; i < inputs[0].rank; ++i) {
    const int64_t kept = axes.known ? inputs[0].shape[i] : GCAP_DIM_INFERRED;
    if (axes.at[i] && !keep) continue;
    GCAP_RETURN_IF_ERROR(gcap_shape_add(node, &shape, axes.at[i] ? 1 : kept));
  }
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// --- Products -------------------------------------------------------------------------------------------------------

// `b`: which input B is.
static gcap_status_t check_inner(const gcap_node_t* node, int b, int64_t of_a, int64_t of_b) {
  if (of_a == of_b) return NULL;
  return GCAP_SHAPE_REFUSE(node, "input 0 has %lld columns, input %d has %lld rows", (long long)of_a, b,
                           (long long)of_b);
}

// The axes before the matrix.
static gcap_shape_t batch_of(const gcap_tensor_t* tensor) {
  gcap_shape_t shape = gcap_shape_of(tensor);
  shape.rank = tensor->rank > 2 ? tensor->rank - 2 : 0;
  return shape;
}

// A tensor whose matrices are transposed; a vector stays.
static gcap_tensor_t transposed(const gcap_tensor_t* tensor) {
  gcap_tensor_t swapped = *tensor;
  const int rank = tensor->rank;
  if (rank < 2) return swapped;
  swapped.shape[rank - 1] = tensor->shape[rank - 2];
  swapped.shape[rank - 2] = tensor->shape[rank - 1];
  return swapped;
}

gcap_status_t gcap_infer_fused_matmul(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_tensor_t operands[] = {inputs[0], inputs[1]};
  if (gcap_node_int(node, "transA", 0) != 0) operands[0] = transposed(&inputs[0]);
  if (gcap_node_int(node, "transB", 0) != 0) operands[1] = transposed(&inputs[1]);
  return gcap_infer_product(node, &operands[0], /*b_input=*/1, &operands[1], outputs);
}

gcap_status_t gcap_infer_matmul(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  return gcap_infer_product(node, &inputs[0], /*b_input=*/1, &inputs[1], outputs);
}

gcap_status_t gcap_infer_product(const gcap_node_t* node, const gcap_tensor_t* a, int b_input, const gcap_tensor_t* b,
                                 gcap_tensor_t* outputs) {
  if (a->rank == 0 || b->rank == 0) {
    return GCAP_SHAPE_REFUSE(node, "input %d has rank 0, allowed is 1..%d", a->rank == 0 ? 0 : b_input, GCAP_MAX_RANK);
  }
  const int64_t rows_of_b = b->rank == 1 ? b->shape[0] : b->shape[b->rank - 2];
  GCAP_RETURN_IF_ERROR(check_inner(node, b_input, a->shape[a->rank - 1], rows_of_b));
  gcap_shape_t shape = batch_of(a);
  const gcap_shape_t batch_of_b = batch_of(b);
  GCAP_RETURN_IF_ERROR(gcap_shape_broadcast(node, b_input, &batch_of_b, &shape));
  if (a->rank > 1) GCAP_RETURN_IF_ERROR(gcap_shape_add(node, &shape, a->shape[a->rank - 2]));
  if (b->rank > 1) GCAP_RETURN_IF_ERROR(gcap_shape_add(node, &shape, b->shape[b->rank - 1]));
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// C goes to the output's shape, never the other way round.
static gcap_status_t check_bias(const gcap_node_t* node, const gcap_tensor_t* c, const gcap_shape_t* product) {
  if (c->rank > 2) return GCAP_SHAPE_REFUSE(node, "input 2 has rank %d, allowed is 0..2", c->rank);
  for (int i = 0; i < c->rank; ++i) {
    const int64_t size = product->at[2 - c->rank + i];
    if (c->shape[i] == 1 || c->shape[i] == size) continue;
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input 2 is %lld, allowed is 1 or %lld", i, (long long)c->shape[i],
                             (long long)size);
  }
  return NULL;
}

gcap_status_t gcap_infer_gemm(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const gcap_tensor_t *a = &inputs[0], *b = &inputs[1];
  for (int i = 0; i < 2; ++i) {
    if (inputs[i].rank != 2) return GCAP_SHAPE_REFUSE(node, "input %d has rank %d, allowed is 2", i, inputs[i].rank);
  }
  const int columns_of_a = gcap_node_int(node, "transA", 0) != 0 ? 0 : 1;
  const int rows_of_b = gcap_node_int(node, "transB", 0) != 0 ? 1 : 0;
  GCAP_RETURN_IF_ERROR(check_inner(node, 1, a->shape[columns_of_a], b->shape[rows_of_b]));
  const gcap_shape_t shape = {.rank = 2, .at = {a->shape[1 - columns_of_a], b->shape[1 - rows_of_b]}};
  if (node->num_inputs > 2) GCAP_RETURN_IF_ERROR(check_bias(node, &inputs[2], &shape));
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}
