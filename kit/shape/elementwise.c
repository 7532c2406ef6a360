// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that work element by element: with broadcasting as ONNX (and NumPy) has it, or on one input.

#include "kit/shape/infer.h"
#include "lib/internal/check_argument.h"

// Makes room for the axes of a shape of higher rank: the last axes are aligned, and what is new has size 1.
static void align(gcap_shape_t* shape, int rank) {
  const int added = rank - shape->rank;
  if (added <= 0) return;
  for (int i = rank - 1; i >= 0; --i) shape->at[i] = i >= added ? shape->at[i - added] : 1;
  shape->rank = rank;
}

gcap_status_t gcap_shape_broadcast(const gcap_node_t* node, int input, const gcap_shape_t* of_input,
                                   gcap_shape_t* shape) {
  align(shape, of_input->rank);
  const int offset = shape->rank - of_input->rank;
  for (int i = 0; i < of_input->rank; ++i) {
    const int64_t theirs = of_input->at[i];
    int64_t* ours = &shape->at[offset + i];
    if (theirs == 1 || theirs == *ours) continue;
    if (*ours != 1) {
      return GCAP_SHAPE_REFUSE(node,
                               "dimension %d of input %d is %lld, allowed is 1 or %lld, as the inputs before have", i,
                               input, (long long)theirs, (long long)*ours);
    }
    *ours = theirs;
  }
  return NULL;
}

gcap_status_t gcap_infer_elementwise(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_shape_t shape = gcap_shape_of(&inputs[0]);
  for (int i = 1; i < node->num_inputs; ++i) {
    const gcap_shape_t next = gcap_shape_of(&inputs[i]);
    GCAP_RETURN_IF_ERROR(gcap_shape_broadcast(node, i, &next, &shape));
  }
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// Input 1, if it is there, is broadcast to input 0 alone.
gcap_status_t gcap_infer_onto_first(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  if (node->num_inputs == 1) return gcap_infer_same(node, inputs, outputs);
  const gcap_shape_t x = gcap_shape_of(&inputs[0]), other = gcap_shape_of(&inputs[1]);
  gcap_shape_t shape = x;
  GCAP_RETURN_IF_ERROR(gcap_shape_broadcast(node, 1, &other, &shape));
  if (shape.rank != x.rank) {
    return GCAP_SHAPE_REFUSE(node, "input 1 has rank %d, allowed is 0..%d, the rank of input 0", other.rank, x.rank);
  }
  for (int i = 0; i < x.rank; ++i) {
    if (shape.at[i] == x.at[i]) continue;
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input 1 is %lld, allowed is 1, as input 0 has",
                             i - x.rank + other.rank, (long long)shape.at[i]);
  }
  return gcap_shape_give(node, 0, &x, &outputs[0]);
}

gcap_status_t gcap_infer_same(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const gcap_shape_t shape = gcap_shape_of(&inputs[0]);
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// The mask, if it is there, has the shape too.
gcap_status_t gcap_infer_dropout(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const gcap_shape_t shape = gcap_shape_of(&inputs[0]);
  for (int i = 0; i < node->num_outputs; ++i) GCAP_RETURN_IF_ERROR(gcap_shape_give(node, i, &shape, &outputs[i]));
  return NULL;
}

gcap_status_t gcap_infer_axis(const gcap_node_t* node, int rank, int64_t fallback, int* out_axis) {
  GCAP_RETURN_IF_NULL(out_axis);
  *out_axis = 0;
  GCAP_RETURN_IF_NULL(node);
  return gcap_shape_axis(node, "axis", gcap_node_int(node, "axis", fallback), rank, out_axis);
}

gcap_status_t gcap_infer_same_with_axis(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(node, inputs[0].rank, -1, &axis));
  return gcap_infer_same(node, inputs, outputs);
}

// Before opset 13 a Softmax's axis was 1 where none is given.
gcap_status_t gcap_infer_same_in_rows(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(node, inputs[0].rank, 1, &axis));
  return gcap_infer_same(node, inputs, outputs);
}

// Mean and InvStdDev, if they are there, have 1 for each axis that is normalized.
gcap_status_t gcap_infer_layer_norm(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(node, inputs[0].rank, -1, &axis));
  GCAP_RETURN_IF_ERROR(gcap_infer_same(node, inputs, outputs));
  gcap_shape_t shape = gcap_shape_of(&inputs[0]);
  for (int i = axis; i < shape.rank; ++i) shape.at[i] = 1;
  for (int i = 1; i < node->num_outputs; ++i) GCAP_RETURN_IF_ERROR(gcap_shape_give(node, i, &shape, &outputs[i]));
  return NULL;
}

// What is added has the rows of input 0, or those of one of its batches.
static gcap_status_t check_skip(const gcap_node_t* node, const gcap_tensor_t* x, const gcap_tensor_t* skip) {
  if (skip->rank != 2 && skip->rank != 3) {
    return GCAP_SHAPE_REFUSE(node, "input 1 has rank %d, allowed is 2 or 3", skip->rank);
  }
  for (int back = 1; back <= skip->rank; ++back) {
    const int64_t size = skip->shape[skip->rank - back], wanted = back <= x->rank ? x->shape[x->rank - back] : 1;
    if (size == wanted || (back == 3 && size == 1)) continue;
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input 1 is %lld, allowed is %lld", skip->rank - back,
                             (long long)size, (long long)wanted);
  }
  return NULL;
}

// Mean and InvStdVar, if they are there, have 1 for the axis that is normalized; the sum has the shape.
gcap_status_t gcap_infer_skip_norm(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const gcap_tensor_t* x = &inputs[0];
  if (x->rank != 2 && x->rank != 3) return GCAP_SHAPE_REFUSE(node, "input 0 has rank %d, allowed is 2 or 3", x->rank);
  GCAP_RETURN_IF_ERROR(check_skip(node, x, &inputs[1]));
  const int64_t columns = x->shape[x->rank - 1];
  for (int i = 2; i < node->num_inputs; ++i) {
    if (i > 2 && inputs[i].rank == 1 && inputs[i].shape[0] == 0) continue;  // left out before others
    if (inputs[i].rank == 1 && inputs[i].shape[0] == columns) continue;
    return GCAP_SHAPE_REFUSE(node, "input %d has rank %d, allowed is rank 1 with %lld", i, inputs[i].rank,
                             (long long)columns);
  }
  if (node->num_outputs > 4) return GCAP_SHAPE_REFUSE(node, "it has %d outputs, allowed is 1..4", node->num_outputs);
  const gcap_shape_t same = gcap_shape_of(x);
  gcap_shape_t of_rows = same;
  of_rows.at[of_rows.rank - 1] = 1;
  for (int i = 0; i < node->num_outputs; ++i) {
    if (i > 0 && outputs[i].rank == 1 && outputs[i].shape[0] == 0) continue;  // left out before others
    GCAP_RETURN_IF_ERROR(gcap_shape_give(node, i, i == 1 || i == 2 ? &of_rows : &same, &outputs[i]));
  }
  return NULL;
}
