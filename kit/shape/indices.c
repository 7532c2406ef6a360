// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators with indices: GatherElements, GatherND, ScatterElements, ScatterND, TensorScatter, ArgMax, ArgMin, TopK.
// What the indices are is on the device; shapes alone, and TopK's k, decide here.

#include "kit/shape/infer.h"

// --- An index for each element --------------------------------------------------------------------------------------

// Indices have the data's rank, and are no larger than the data but on the axis.
static gcap_status_t check_elements(const gcap_node_t* node, const gcap_tensor_t* inputs) {
  const gcap_tensor_t *data = &inputs[0], *indices = &inputs[1];
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(node, data->rank, 0, &axis));
  if (indices->rank != data->rank) {
    return GCAP_SHAPE_REFUSE(node, "input 1 has rank %d, input 0 has %d", indices->rank, data->rank);
  }
  for (int i = 0; i < data->rank; ++i) {
    if (i == axis || indices->shape[i] <= data->shape[i]) continue;
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input 1 is %lld, allowed is up to %lld, that of input 0", i,
                             (long long)indices->shape[i], (long long)data->shape[i]);
  }
  return NULL;
}

gcap_status_t gcap_infer_gather_elements(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  GCAP_RETURN_IF_ERROR(check_elements(node, inputs));
  const gcap_shape_t shape = gcap_shape_of(&inputs[1]);
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// Checks that the updates, input 2, have `shape`.
static gcap_status_t check_updates(const gcap_node_t* node, const gcap_tensor_t* updates, const gcap_shape_t* shape) {
  if (updates->rank != shape->rank) {
    return GCAP_SHAPE_REFUSE(node, "input 2 has rank %d, inputs 0 and 1 give %d", updates->rank, shape->rank);
  }
  for (int i = 0; i < shape->rank; ++i) {
    if (updates->shape[i] == shape->at[i]) continue;
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input 2 is %lld, inputs 0 and 1 give %lld", i,
                             (long long)updates->shape[i], (long long)shape->at[i]);
  }
  return NULL;
}

gcap_status_t gcap_infer_scatter_elements(const gcap_node_t* node, const gcap_tensor_t* inputs,
                                          gcap_tensor_t* outputs) {
  GCAP_RETURN_IF_ERROR(check_elements(node, inputs));
  const gcap_shape_t updates = gcap_shape_of(&inputs[1]), shape = gcap_shape_of(&inputs[0]);
  GCAP_RETURN_IF_ERROR(check_updates(node, &inputs[2], &updates));
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// --- Indices for each slice -----------------------------------------------------------------------------------------

// The shape of the slices that move: the indices' but for their last dimension, which says how many axes of the data
// behind the first `batch_dims` are indexed; then what is left of the data's.
static gcap_status_t slices(const gcap_node_t* node, const gcap_tensor_t* inputs, int batch_dims,
                            gcap_shape_t* out_shape) {
  const gcap_tensor_t *data = &inputs[0], *indices = &inputs[1];
  const int last = indices->rank - 1, most = data->rank - batch_dims;
  *out_shape = (gcap_shape_t){.rank = 0};
  if (indices->shape[last] < 1 || indices->shape[last] > most) {
    return GCAP_SHAPE_REFUSE(node, "the last dimension of input 1 is %lld, allowed is 1..%d",
                             (long long)indices->shape[last], most);
  }
  for (int i = 0; i < last; ++i) GCAP_RETURN_IF_ERROR(gcap_shape_add(node, out_shape, indices->shape[i]));
  for (int i = batch_dims + (int)indices->shape[last]; i < data->rank; ++i) {
    GCAP_RETURN_IF_ERROR(gcap_shape_add(node, out_shape, data->shape[i]));
  }
  return NULL;
}

static gcap_status_t check_ranks(const gcap_node_t* node, const gcap_tensor_t* inputs) {
  for (int i = 0; i < 2; ++i) {
    if (inputs[i].rank == 0) return GCAP_SHAPE_REFUSE(node, "input %d has rank 0, allowed is 1..%d", i, GCAP_MAX_RANK);
  }
  return NULL;
}

gcap_status_t gcap_infer_gather_nd(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  GCAP_RETURN_IF_ERROR(check_ranks(node, inputs));
  const gcap_tensor_t *data = &inputs[0], *indices = &inputs[1];
  const int64_t batch_dims = gcap_node_int(node, "batch_dims", 0);
  const int most = (data->rank < indices->rank ? data->rank : indices->rank) - 1;
  if (batch_dims < 0 || batch_dims > most) {
    return GCAP_SHAPE_REFUSE(node, "batch_dims is %lld, allowed is 0..%d", (long long)batch_dims, most);
  }
  for (int i = 0; i < batch_dims; ++i) {
    if (indices->shape[i] == data->shape[i]) continue;
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input 1 is %lld, of input 0 it is %lld", i,
                             (long long)indices->shape[i], (long long)data->shape[i]);
  }
  gcap_shape_t shape;
  GCAP_RETURN_IF_ERROR(slices(node, inputs, (int)batch_dims, &shape));
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

gcap_status_t gcap_infer_scatter_nd(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  GCAP_RETURN_IF_ERROR(check_ranks(node, inputs));
  gcap_shape_t updates;
  GCAP_RETURN_IF_ERROR(slices(node, inputs, 0, &updates));
  GCAP_RETURN_IF_ERROR(check_updates(node, &inputs[2], &updates));
  const gcap_shape_t shape = gcap_shape_of(&inputs[0]);
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// --- An index for each of a batch -----------------------------------------------------------------------------------

gcap_status_t gcap_infer_tensor_scatter(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const gcap_tensor_t *cache = &inputs[0], *update = &inputs[1];
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(node, cache->rank, -2, &axis));
  if (axis == 0) return GCAP_SHAPE_REFUSE(node, "axis is dimension 0 of %d, which is the batch's", cache->rank);
  if (update->rank != cache->rank) {
    return GCAP_SHAPE_REFUSE(node, "input 1 has rank %d, input 0 has %d", update->rank, cache->rank);
  }
  for (int i = 0; i < cache->rank; ++i) {
    const int64_t size = update->shape[i], most = cache->shape[i];
    if (i == axis ? size <= most : size == most) continue;
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input 1 is %lld, of input 0 it is %lld", i, (long long)size,
                             (long long)most);
  }
  if (node->num_inputs == 3 && (inputs[2].rank != 1 || inputs[2].shape[0] != cache->shape[0])) {
    return GCAP_SHAPE_REFUSE(node, "input 2 is no list of %lld numbers, one for each of the batch",
                             (long long)cache->shape[0]);
  }
  const gcap_shape_t shape = gcap_shape_of(cache);
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// --- Indices that are made ------------------------------------------------------------------------------------------

gcap_status_t gcap_infer_arg(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const gcap_tensor_t* data = &inputs[0];
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(node, data->rank, 0, &axis));
  if (data->shape[axis] == 0) {
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input 0 is 0, allowed is 1 or more: nothing has no extremum", axis);
  }
  const bool keep = gcap_node_int(node, "keepdims", 1) != 0;
  gcap_shape_t shape = {.rank = 0};
  for (int i = 0; i < data->rank; ++i) {
    if (i == axis && !keep) continue;
    GCAP_RETURN_IF_ERROR(gcap_shape_add(node, &shape, i == axis ? 1 : data->shape[i]));
  }
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// Reads k: input 1, or before opset 10 an attribute.
static gcap_status_t read_k(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_numbers_t* out_k) {
  *out_k = (gcap_numbers_t){.known = true, .count = 1, .at = {gcap_node_int(node, "k", 0)}};
  if (node->num_inputs == 1) {
    if (gcap_node_has(node, "k")) return NULL;
    return GCAP_SHAPE_REFUSE(node, "it has neither an input 1 nor an attribute k");
  }
  GCAP_RETURN_IF_ERROR(gcap_shape_read_input(node, 1, &inputs[1], out_k));
  if (out_k->count == 1) return NULL;
  return GCAP_SHAPE_REFUSE(node, "input 1 has %d numbers, allowed is 1", out_k->count);
}

gcap_status_t gcap_infer_top_k(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  int axis = 0;
  gcap_numbers_t k;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(node, inputs[0].rank, -1, &axis));
  GCAP_RETURN_IF_ERROR(read_k(node, inputs, &k));
  gcap_shape_t shape = gcap_shape_of(&inputs[0]);
  if (k.known && (k.at[0] < 0 || k.at[0] > shape.at[axis])) {
    return GCAP_SHAPE_REFUSE(node, "k is %lld, allowed is 0..%lld, dimension %d of input 0", (long long)k.at[0],
                             (long long)shape.at[axis], axis);
  }
  shape.at[axis] = k.known ? k.at[0] : GCAP_DIM_INFERRED;
  for (int i = 0; i < node->num_outputs; ++i) GCAP_RETURN_IF_ERROR(gcap_shape_give(node, i, &shape, &outputs[i]));
  return NULL;
}
