// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear: the shape of input 0; scales and zero points must fit it.
// MatMulInteger: that of MatMul, with zero points for all, for each row of A, or for each column of B. QLinearMatMul:
// the same of inputs 0 and 3, with one scale and one zero point for all of A and of Y.

#include "kit/shape/infer.h"

// A scale for each index on the axis, or for each block of indices.
static gcap_status_t check_scales(const gcap_node_t* node, const gcap_tensor_t* x, const gcap_tensor_t* scale,
                                  int64_t block_size) {
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(node, x->rank, 1, &axis));
  const int rank = block_size > 0 ? x->rank : 1;
  if (scale->rank != rank) {
    return GCAP_SHAPE_REFUSE(node, "input 1 has rank %d, allowed is %d%s", scale->rank, rank,
                             block_size > 0 ? "" : ", or 1 element");
  }
  for (int i = 0; i < rank; ++i) {
    int64_t wanted = block_size > 0 ? x->shape[i] : x->shape[axis];
    if (block_size > 0 && i == axis) wanted = wanted / block_size + (wanted % block_size != 0);
    if (scale->shape[i] == wanted) continue;
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input 1 is %lld, allowed is %lld", i, (long long)scale->shape[i],
                             (long long)wanted);
  }
  return NULL;
}

static bool is_one_number(const gcap_tensor_t* tensor) {
  return tensor->rank <= 1 && gcap_shape_count(tensor, 0, tensor->rank) == 1;
}

// One scale and one zero point may each be a scalar or an array of one element, as ONNX Runtime's quantizer writes
// them.
gcap_status_t gcap_infer_quantize(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const gcap_tensor_t* scale = &inputs[1];
  const int64_t block_size = gcap_node_int(node, "block_size", 0);
  if (block_size < 0) return GCAP_SHAPE_REFUSE(node, "block_size is %lld, allowed is 0 or more", (long long)block_size);
  const bool is_one = is_one_number(scale) && block_size == 0;
  if (!is_one) GCAP_RETURN_IF_ERROR(check_scales(node, &inputs[0], scale, block_size));
  if (is_one && node->num_inputs == 3 && is_one_number(&inputs[2])) return gcap_infer_same(node, inputs, outputs);
  for (int i = 0; node->num_inputs == 3 && (i < scale->rank || i < inputs[2].rank); ++i) {
    if (scale->rank == inputs[2].rank && scale->shape[i] == inputs[2].shape[i]) continue;
    return GCAP_SHAPE_REFUSE(node, "input 2 has another shape than input 1, from dimension %d on", i);
  }
  return gcap_infer_same(node, inputs, outputs);
}

gcap_status_t gcap_infer_dynamic_quantize(const gcap_node_t* node, const gcap_tensor_t* inputs,
                                          gcap_tensor_t* outputs) {
  const gcap_shape_t one = {.rank = 0};
  if (node->num_outputs > 3) return GCAP_SHAPE_REFUSE(node, "it has %d outputs, allowed is 3", node->num_outputs);
  for (int i = 1; i < node->num_outputs; ++i) GCAP_RETURN_IF_ERROR(gcap_shape_give(node, i, &one, &outputs[i]));
  return gcap_infer_same(node, inputs, outputs);
}

// A vector is one row of A, and one column of B.
gcap_status_t gcap_infer_matmul_integer(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const gcap_tensor_t *a = &inputs[0], *b = &inputs[1];
  const int64_t rows = a->rank > 1 ? a->shape[a->rank - 2] : 1, columns = b->rank > 1 ? b->shape[b->rank - 1] : 1;
  for (int i = 2; i < node->num_inputs; ++i) {
    const gcap_tensor_t* zero_point = &inputs[i];
    const int64_t wanted = i == 2 ? rows : columns;
    if (gcap_shape_count(zero_point, 0, zero_point->rank) == 1) continue;
    if (zero_point->rank == 1 && zero_point->shape[0] == wanted) continue;
    return GCAP_SHAPE_REFUSE(node, "input %d has rank %d, allowed is 1 element, or rank 1 with %lld", i,
                             zero_point->rank, (long long)wanted);
  }
  return gcap_infer_matmul(node, inputs, outputs);
}

// One number, or for `columns` of B one for each.
static gcap_status_t check_scale(const gcap_node_t* node, const gcap_tensor_t* inputs, int input, int64_t columns) {
  const gcap_tensor_t* scale = &inputs[input];
  if (is_one_number(scale) || (columns > 0 && scale->rank == 1 && scale->shape[0] == columns)) return NULL;
  if (columns == 0) return GCAP_SHAPE_REFUSE(node, "input %d has rank %d, allowed is 1 element", input, scale->rank);
  return GCAP_SHAPE_REFUSE(node, "input %d has rank %d, allowed is 1 element, or rank 1 with %lld", input, scale->rank,
                           (long long)columns);
}

gcap_status_t gcap_infer_qlinear_matmul(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const int64_t columns = inputs[3].rank > 1 ? inputs[3].shape[inputs[3].rank - 1] : 0;
  for (int i = 1; i < node->num_inputs; ++i) {
    if (i != 3) GCAP_RETURN_IF_ERROR(check_scale(node, inputs, i, i == 4 || i == 5 ? columns : 0));
  }
  return gcap_infer_product(node, &inputs[0], /*b_input=*/3, &inputs[3], outputs);
}
