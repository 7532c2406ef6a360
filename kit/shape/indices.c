// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators with indices: GatherElements, GatherND, ScatterElements, ScatterND. Where the indices point is on the
// device; shapes alone decide here.

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
