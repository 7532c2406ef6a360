// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that take parts of tensors, or put them together: Concat, Gather, Slice, Split.

#include "kit/shape/infer.h"
#include "lib/internal/check_argument.h"

// --- Concat and Gather ----------------------------------------------------------------------------------------------

// Adds an input to the concatenation `shape` along `axis`.
static gcap_status_t append(const gcap_node_t* node, int input, const gcap_tensor_t* tensor, int axis,
                            gcap_shape_t* shape) {
  if (tensor->rank != shape->rank) {
    return GCAP_SHAPE_REFUSE(node, "input %d has rank %d, input 0 has %d", input, tensor->rank, shape->rank);
  }
  for (int i = 0; i < shape->rank; ++i) {
    if (i == axis || tensor->shape[i] == shape->at[i]) continue;
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input %d is %lld, of input 0 it is %lld", i, input,
                             (long long)tensor->shape[i], (long long)shape->at[i]);
  }
  if (!__builtin_add_overflow(shape->at[axis], tensor->shape[axis], &shape->at[axis])) return NULL;
  return GCAP_SHAPE_REFUSE(node, "dimension %d of output 0 would be more than %lld", axis, (long long)INT64_MAX);
}

gcap_status_t gcap_infer_concat(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  if (!gcap_node_has(node, "axis")) return GCAP_SHAPE_REFUSE(node, "it has no attribute axis, which is required");
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(node, inputs[0].rank, 0, &axis));
  gcap_shape_t shape = gcap_shape_of(&inputs[0]);
  for (int i = 1; i < node->num_inputs; ++i) GCAP_RETURN_IF_ERROR(append(node, i, &inputs[i], axis, &shape));
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

gcap_status_t gcap_infer_gather(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const gcap_tensor_t *data = &inputs[0], *indices = &inputs[1];
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(node, data->rank, 0, &axis));
  gcap_shape_t shape = {.rank = 0};
  for (int i = 0; i < axis; ++i) GCAP_RETURN_IF_ERROR(gcap_shape_add(node, &shape, data->shape[i]));
  for (int i = 0; i < indices->rank; ++i) GCAP_RETURN_IF_ERROR(gcap_shape_add(node, &shape, indices->shape[i]));
  for (int i = axis + 1; i < data->rank; ++i) GCAP_RETURN_IF_ERROR(gcap_shape_add(node, &shape, data->shape[i]));
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// --- Slice ----------------------------------------------------------------------------------------------------------

// The inputs of a Slice but the first, or before opset 10 attributes. Those that it lacks have their defaults.
typedef struct requests {
  gcap_numbers_t starts, ends, axes, steps;
} requests_t;

static void count_axes(gcap_numbers_t* axes, int count) {
  *axes = (gcap_numbers_t){.known = true, .count = count};
  for (int i = 0; i < count; ++i) axes->at[i] = i;
}

static void step_by_one(gcap_numbers_t* steps, int count) {
  *steps = (gcap_numbers_t){.known = true, .count = count};
  for (int i = 0; i < count; ++i) steps->at[i] = 1;
}

static gcap_status_t read_attributes(const gcap_node_t* node, const gcap_tensor_t* inputs, requests_t* out_requests) {
  static const char* const names[] = {"starts", "ends", "axes"};
  gcap_numbers_t* const lists[] = {&out_requests->starts, &out_requests->ends, &out_requests->axes};
  for (int i = 0; i < 3; ++i) {
    bool given = false;
    GCAP_RETURN_IF_ERROR(gcap_shape_read_numbers(node, names[i], inputs, lists[i], &given));
    if (!given && i < 2)
      return GCAP_SHAPE_REFUSE(node, "it has neither an input %d nor an attribute %s", i + 1, names[i]);
    if (!given) count_axes(lists[i], lists[0]->count);
    if (lists[i]->count == lists[0]->count) continue;
    return GCAP_SHAPE_REFUSE(node, "attribute %s has %d numbers, starts has %d", names[i], lists[i]->count,
                             lists[0]->count);
  }
  step_by_one(&out_requests->steps, lists[0]->count);
  return NULL;
}

static gcap_status_t read_requests(const gcap_node_t* node, const gcap_tensor_t* inputs, requests_t* out_requests) {
  gcap_numbers_t* const lists[] = {&out_requests->starts, &out_requests->ends, &out_requests->axes,
                                   &out_requests->steps};
  for (int i = 0; i < 4 && i + 1 < node->num_inputs; ++i) {
    GCAP_RETURN_IF_ERROR(gcap_shape_read_input(node, i + 1, &inputs[i + 1], lists[i]));
    if (i == 2 && lists[i]->count == 0) count_axes(lists[i], lists[0]->count);  // left out before steps
    if (lists[i]->count == lists[0]->count) continue;
    return GCAP_SHAPE_REFUSE(node, "input %d has %d numbers, input 1 has %d", i + 1, lists[i]->count, lists[0]->count);
  }
  if (node->num_inputs < 4) count_axes(&out_requests->axes, lists[0]->count);
  if (node->num_inputs < 5) step_by_one(&out_requests->steps, lists[0]->count);
  return NULL;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most) {
  return value < least ? least : value > most ? most : value;
}

// One axis of a slice, as ONNX says it: negative bounds count from the end, then both are clamped to what a step in its
// direction can reach.
static gcap_status_t slice_axis(const gcap_node_t* node, int64_t size, int64_t start, int64_t end, int64_t step,
                                int axis, gcap_slice_t* slice) {
  if (step == 0) return GCAP_SHAPE_REFUSE(node, "the step of axis %d is 0, allowed is any other number", axis);
  slice->step[axis] = step;
  if (size == 0) return NULL;  // nothing to clamp to; start and count stay 0
  if (start < 0) start += size;
  if (end < 0) end += size;
  const bool forward = step > 0;
  start = clamp(start, 0, forward ? size : size - 1);
  end = clamp(end, forward ? 0 : -1, forward ? size : size - 1);
  const int64_t way = forward ? end - start : start - end;
  const uint64_t stride = forward ? (uint64_t)step : 0 - (uint64_t)step;
  slice->start[axis] = start;
  slice->count[axis] = way > 0 ? (int64_t)(((uint64_t)way - 1) / stride + 1) : 0;
  return NULL;
}

static gcap_status_t resolve_slice(const gcap_node_t* node, const gcap_tensor_t* data, const requests_t* requests,
                                   gcap_slice_t* slice) {
  bool at[GCAP_MAX_RANK];
  GCAP_RETURN_IF_ERROR(gcap_shape_axes(node, &requests->axes, data->rank, at));
  slice->known = true;
  for (int i = 0; i < data->rank; ++i) {
    slice->step[i] = 1;
    slice->count[i] = data->shape[i];
  }
  for (int i = 0; i < requests->axes.count; ++i) {
    const int64_t given = requests->axes.at[i];
    const int axis = (int)(given < 0 ? given + data->rank : given);
    GCAP_RETURN_IF_ERROR(slice_axis(node, data->shape[axis], requests->starts.at[i], requests->ends.at[i],
                                    requests->steps.at[i], axis, slice));
  }
  return NULL;
}

static gcap_status_t read_slice(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_slice_t* out_slice) {
  requests_t requests;
  GCAP_RETURN_IF_ERROR(node->num_inputs == 1 ? read_attributes(node, inputs, &requests)
                                             : read_requests(node, inputs, &requests));
  const bool known = requests.starts.known && requests.ends.known && requests.axes.known && requests.steps.known;
  return known ? resolve_slice(node, &inputs[0], &requests, out_slice) : NULL;
}

gcap_status_t gcap_infer_slice(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_slice_t* out_slice) {
  GCAP_RETURN_IF_NULL(out_slice);
  *out_slice = (gcap_slice_t){0};
  GCAP_RETURN_IF_NULL(node);
  GCAP_RETURN_IF_NULL(inputs);
  if (node->num_inputs != 1 && (node->num_inputs < 3 || node->num_inputs > 5)) {
    return GCAP_SHAPE_REFUSE(node, "it has %d inputs, allowed is 1 or 3..5", node->num_inputs);
  }
  for (int i = 0; i < node->num_inputs; ++i) GCAP_RETURN_IF_ERROR(gcap_shape_check_input(node, i, &inputs[i]));
  gcap_slice_t slice = {0};
  GCAP_RETURN_IF_ERROR(read_slice(node, inputs, &slice));
  *out_slice = slice;
  return NULL;
}

gcap_status_t gcap_infer_slice_op(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_slice_t slice;
  GCAP_RETURN_IF_ERROR(gcap_infer_slice(node, inputs, &slice));
  const gcap_shape_t shape = gcap_shape_of_sizes(inputs[0].rank, slice.known, slice.count);
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// --- Split ----------------------------------------------------------------------------------------------------------

// Without `split`: equal parts. With num_outputs (opset 18) the last part may be smaller.
static gcap_status_t equal_parts(const gcap_node_t* node, int64_t size, gcap_numbers_t* parts) {
  const int count = node->num_outputs;
  const bool may_differ = gcap_node_has(node, "num_outputs");
  if (may_differ && gcap_node_int(node, "num_outputs", count) != count) {
    return GCAP_SHAPE_REFUSE(node, "num_outputs is %lld, but it has %d outputs",
                             (long long)gcap_node_int(node, "num_outputs", 0), count);
  }
  if (!may_differ && size % count != 0) {
    return GCAP_SHAPE_REFUSE(node, "a dimension of %lld does not split into %d equal parts", (long long)size, count);
  }
  const int64_t part = size / count + (size % count != 0);
  for (int i = 0; i < count; ++i) {
    parts->at[i] = size < part ? size : part;
    size -= parts->at[i];
  }
  return NULL;
}

static gcap_status_t check_parts(const gcap_node_t* node, int64_t size, const gcap_numbers_t* parts) {
  if (parts->count != node->num_outputs) {
    return GCAP_SHAPE_REFUSE(node, "split has %d numbers, it has %d outputs", parts->count, node->num_outputs);
  }
  int64_t left = size;
  for (int i = 0; i < parts->count; ++i) {
    if (parts->at[i] < 0 || parts->at[i] > left) {
      return GCAP_SHAPE_REFUSE(node, "split[%d] is %lld, allowed is 0..%lld, what is left of the dimension", i,
                               (long long)parts->at[i], (long long)left);
    }
    left -= parts->at[i];
  }
  if (left == 0) return NULL;
  return GCAP_SHAPE_REFUSE(node, "split leaves %lld of a dimension of %lld", (long long)left, (long long)size);
}

gcap_status_t gcap_infer_split(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  int axis = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_axis(node, inputs[0].rank, 0, &axis));
  gcap_numbers_t parts;
  bool given = false;
  GCAP_RETURN_IF_ERROR(gcap_shape_read_numbers(node, "split", inputs, &parts, &given));
  const int64_t size = inputs[0].shape[axis];
  if (!given) GCAP_RETURN_IF_ERROR(equal_parts(node, size, &parts));
  if (given && parts.known) GCAP_RETURN_IF_ERROR(check_parts(node, size, &parts));
  gcap_shape_t shape = gcap_shape_of(&inputs[0]);
  for (int i = 0; i < node->num_outputs; ++i) {
    shape.at[axis] = parts.known ? parts.at[i] : GCAP_DIM_INFERRED;
    GCAP_RETURN_IF_ERROR(gcap_shape_give(node, i, &shape, &outputs[i]));
  }
  return NULL;
}
