// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that keep the elements and change the shape: Reshape, Flatten, Squeeze, Unsqueeze, Expand, Transpose.

#include "kit/shape/infer.h"

// --- Reshape --------------------------------------------------------------------------------------------------------

// One number of a Reshape: a size, 0 for the input's size unless allowzero is set, or -1.
static gcap_status_t requested_size(const gcap_node_t* node, const gcap_tensor_t* data, const gcap_numbers_t* request,
                                    int i, int64_t* out_size) {
  *out_size = request->at[i];
  if (*out_size < -1) {
    return GCAP_SHAPE_REFUSE(node, "number %d of input 1 is %lld, allowed is -1 or more", i, (long long)*out_size);
  }
  if (*out_size != 0 || gcap_node_int(node, "allowzero", 0) != 0) return NULL;
  if (i >= data->rank) {
    return GCAP_SHAPE_REFUSE(node, "number %d of input 1 is 0, but input 0 has no dimension %d", i, i);
  }
  *out_size = data->shape[i];
  return NULL;
}

// Gives the dimension of -1 what the others leave.
static gcap_status_t resolve_rest(const gcap_node_t* node, int64_t elements, int64_t others, int64_t* size) {
  if (others == 0) return GCAP_SHAPE_REFUSE(node, "input 1 has a -1 beside a dimension of 0, which may have any size");
  if (elements % others != 0) {
    return GCAP_SHAPE_REFUSE(node, "input 0 has %lld elements, input 1 asks for a multiple of %lld",
                             (long long)elements, (long long)others);
  }
  *size = elements / others;
  return NULL;
}

static gcap_status_t resolve_request(const gcap_node_t* node, const gcap_tensor_t* data, const gcap_numbers_t* request,
                                     gcap_shape_t* shape) {
  int rest = -1;
  int64_t others = 1;
  for (int i = 0; i < request->count; ++i) {
    GCAP_RETURN_IF_ERROR(requested_size(node, data, request, i, &shape->at[i]));
    if (shape->at[i] == -1 && rest >= 0) return GCAP_SHAPE_REFUSE(node, "numbers %d and %d of input 1 are -1", rest, i);
    if (shape->at[i] == -1) {
      rest = i;
    } else if (__builtin_mul_overflow(others, shape->at[i], &others)) {
      return GCAP_SHAPE_REFUSE(node, "input 1 asks for more than %lld elements", (long long)INT64_MAX);
    }
  }
  const int64_t elements = gcap_shape_count(data, 0, data->rank);
  if (rest >= 0) return resolve_rest(node, elements, others, &shape->at[rest]);
  if (others == elements) return NULL;
  return GCAP_SHAPE_REFUSE(node, "input 0 has %lld elements, input 1 asks for %lld", (long long)elements,
                           (long long)others);
}

gcap_status_t gcap_infer_reshape(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_numbers_t request;
  GCAP_RETURN_IF_ERROR(gcap_shape_read_input(node, 1, &inputs[1], &request));
  gcap_shape_t shape = gcap_shape_unknown(request.count);
  if (request.known) GCAP_RETURN_IF_ERROR(resolve_request(node, &inputs[0], &request, &shape));
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

gcap_status_t gcap_infer_flatten(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const int rank = inputs[0].rank;
  const int64_t axis = gcap_node_int(node, "axis", 1);
  // Behind the last dimension too.
  if (axis < -rank || axis > rank) {
    return GCAP_SHAPE_REFUSE(node, "axis is %lld, allowed is %d..%d", (long long)axis, -rank, rank);
  }
  const int split = (int)(axis < 0 ? axis + rank : axis);
  const gcap_shape_t shape = {
      .rank = 2, .at = {gcap_shape_count(&inputs[0], 0, split), gcap_shape_count(&inputs[0], split, rank)}};
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// --- Squeeze and Unsqueeze --------------------------------------------------------------------------------------------

static gcap_status_t squeezed(const gcap_node_t* node, const gcap_tensor_t* data, const bool* at, bool all,
                              gcap_shape_t* shape) {
  for (int i = 0; i < data->rank; ++i) {
    if (!all && at[i] && data->shape[i] != 1) {
      return GCAP_SHAPE_REFUSE(node, "dimension %d of input 0 is %lld, allowed is 1 where it is squeezed", i,
                               (long long)data->shape[i]);
    }
    if (all ? data->shape[i] == 1 : at[i]) continue;
    GCAP_RETURN_IF_ERROR(gcap_shape_add(node, shape, data->shape[i]));
  }
  return NULL;
}

gcap_status_t gcap_infer_squeeze(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_numbers_t axes;
  bool given = false, at[GCAP_MAX_RANK];
  GCAP_RETURN_IF_ERROR(gcap_shape_read_numbers(node, "axes", inputs, &axes, &given));
  // Each axis is named once, so the rank is known before the axes are.
  if (axes.count > inputs[0].rank) {
    return GCAP_SHAPE_REFUSE(node, "it has %d axes, input 0 has %d dimensions", axes.count, inputs[0].rank);
  }
  gcap_shape_t shape = gcap_shape_unknown(inputs[0].rank - axes.count);
  if (!axes.known) return gcap_shape_give(node, 0, &shape, &outputs[0]);
  GCAP_RETURN_IF_ERROR(gcap_shape_axes(node, &axes, inputs[0].rank, at));
  shape.rank = 0;
  GCAP_RETURN_IF_ERROR(squeezed(node, &inputs[0], at, !given, &shape));
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

gcap_status_t gcap_infer_unsqueeze(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_numbers_t axes;
  bool given = false, at[GCAP_MAX_RANK];
  GCAP_RETURN_IF_ERROR(gcap_shape_read_numbers(node, "axes", inputs, &axes, &given));
  if (!given) return GCAP_SHAPE_REFUSE(node, "it has neither an input 1 nor an attribute axes");
  const int rank = inputs[0].rank + axes.count;
  if (rank > GCAP_MAX_RANK) {
    return GCAP_SHAPE_REFUSE(node, "its output would have %d dimensions, allowed is 0..%d", rank, GCAP_MAX_RANK);
  }
  gcap_shape_t shape = gcap_shape_unknown(rank);
  if (axes.known) GCAP_RETURN_IF_ERROR(gcap_shape_axes(node, &axes, rank, at));
  for (int i = 0, from = 0; axes.known && i < rank; ++i) shape.at[i] = at[i] ? 1 : inputs[0].shape[from++];
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// --- Expand and Transpose ---------------------------------------------------------------------------------------------

gcap_status_t gcap_infer_expand(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_numbers_t request;
  GCAP_RETURN_IF_ERROR(gcap_shape_read_input(node, 1, &inputs[1], &request));
  const int rank = inputs[0].rank > request.count ? inputs[0].rank : request.count;
  gcap_shape_t shape = gcap_shape_unknown(rank);
  if (!request.known) return gcap_shape_give(node, 0, &shape, &outputs[0]);
  shape = (gcap_shape_t){.rank = request.count};
  for (int i = 0; i < request.count; ++i) {
    if (request.at[i] < 0) {
      return GCAP_SHAPE_REFUSE(node, "number %d of input 1 is %lld, allowed is 0 or more", i, (long long)request.at[i]);
    }
    shape.at[i] = request.at[i];
  }
  const gcap_shape_t data = gcap_shape_of(&inputs[0]);
  GCAP_RETURN_IF_ERROR(gcap_shape_broadcast(node, 0, &data, &shape));
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

gcap_status_t gcap_infer_transpose(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const int rank = inputs[0].rank;
  size_t count = 0;
  const int64_t* perm = gcap_node_ints(node, "perm", &count);
  if (perm != NULL && count != (size_t)rank) {
    return GCAP_SHAPE_REFUSE(node, "perm has %zu numbers, allowed is %d, the rank of input 0", count, rank);
  }
  gcap_shape_t shape = {.rank = rank};
  bool taken[GCAP_MAX_RANK] = {false};
  for (int i = 0; i < rank; ++i) {
    const int64_t from = perm != NULL ? perm[i] : rank - 1 - i;
    if (from < 0 || from >= rank || taken[from]) {
      return GCAP_SHAPE_REFUSE(node, "perm[%d] is %lld, allowed is each of 0..%d once", i, (long long)from, rank - 1);
    }
    taken[from] = true;
    shape.at[i] = inputs[0].shape[from];
  }
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}
