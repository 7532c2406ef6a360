// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Resize, Upsample and GridSample. An input of scales or sizes that has no elements is not there: ONNX says so. Sizes
// are computed in f32, as ONNX's own inference computes them: in f64 some would be one element smaller.
//
// Locking: none; no state.

#include <math.h>
#include <string.h>

#include "kit/shape/infer.h"
#include "kit/shape/inner.h"

// The axes that are resized, in the order of the scales or sizes.
typedef struct axes {
  int count;
  int at[GCAP_MAX_RANK];
} axes_t;

bool gcap_resize_is_old(const gcap_node_t* node) {
  return node->num_inputs == 2 || strcmp(node->op_type, "Upsample") == 0;
}

static gcap_status_t read_axes(const gcap_node_t* node, int rank, axes_t* axes) {
  gcap_numbers_t given = {.known = true, .count = rank};
  size_t count = 0;
  const int64_t* numbers = gcap_node_ints(node, "axes", &count);
  if (count > (size_t)rank) {
    return GCAP_SHAPE_REFUSE(node, "axes has %zu numbers, input 0 has rank %d", count, rank);
  }
  if (numbers != NULL) given.count = (int)count;
  for (int i = 0; i < given.count; ++i) given.at[i] = numbers != NULL ? numbers[i] : i;
  bool seen[GCAP_MAX_RANK];
  GCAP_RETURN_IF_ERROR(gcap_shape_axes(node, &given, rank, seen));
  axes->count = given.count;
  for (int i = 0; i < given.count; ++i) axes->at[i] = (int)(given.at[i] < 0 ? given.at[i] + rank : given.at[i]);
  return NULL;
}

// Whether the node has input `i`, and it says something.
static bool is_given(const gcap_node_t* node, const gcap_tensor_t* inputs, int i) {
  return i < node->num_inputs && gcap_shape_count(&inputs[i], 0, inputs[i].rank) != 0;
}

static gcap_status_t check_list(const gcap_node_t* node, const char* what, int i, const gcap_tensor_t* list,
                                gcap_dtype_t dtype, const axes_t* axes) {
  if (list->dtype != dtype) {
    return GCAP_SHAPE_REFUSE(node, "input %d (%s) is of type %s, allowed is %s", i, what, gcap_dtype_name(list->dtype),
                             gcap_dtype_name(dtype));
  }
  if (list->rank != 1) {
    return GCAP_SHAPE_REFUSE(node, "input %d (%s) has rank %d, allowed is 1", i, what, list->rank);
  }
  if (list->shape[0] == axes->count) return NULL;
  return GCAP_SHAPE_REFUSE(node, "input %d (%s) has %lld numbers, allowed is %d, one for each axis", i, what,
                           (long long)list->shape[0], axes->count);
}

// The size that a scale gives, which is a float already. Beyond 2^62 no tensor is.
static gcap_status_t size_of(const gcap_node_t* node, int axis, float size, int64_t* out_size) {
  if (!(size < 0x1p62f)) {
    return GCAP_SHAPE_REFUSE(node, "dimension %d of output 0 would be %g", axis, (double)size);
  }
  *out_size = (int64_t)size;
  return NULL;
}

static gcap_status_t take_scales(const gcap_node_t* node, int input, const gcap_tensor_t* inputs, const axes_t* axes,
                                 gcap_resize_t* resize) {
  const gcap_tensor_t* scales = &inputs[input];
  GCAP_RETURN_IF_ERROR(check_list(node, "scales", input, scales, GCAP_DTYPE_F32, axes));
  if (scales->data == NULL) return NULL;
  for (int i = 0; i < axes->count; ++i) {
    const int axis = axes->at[i];
    const float scale = ((const float*)scales->data)[i];
    if (!(scale > 0) || isinf(scale)) {
      return GCAP_SHAPE_REFUSE(node, "scales[%d] is %g, allowed is a finite number above 0", i, (double)scale);
    }
    resize->scale[axis] = scale;
    GCAP_RETURN_IF_ERROR(size_of(node, axis, floorf((float)inputs[0].shape[axis] * scale), &resize->size[axis]));
  }
  resize->known = true;
  return NULL;
}

// One scale for all axes, so that no axis is larger, or none smaller, than its size says.
static gcap_status_t keep_ratio(const gcap_node_t* node, const gcap_tensor_t* x, const axes_t* axes, bool larger,
                                gcap_resize_t* resize) {
  float scale = larger ? 0 : INFINITY;
  for (int i = 0; i < axes->count; ++i) {
    const float of_axis = resize->scale[axes->at[i]];
    scale = larger ? fmaxf(scale, of_axis) : fminf(scale, of_axis);
  }
  for (int i = 0; i < axes->count; ++i) {
    const int axis = axes->at[i];
    resize->scale[axis] = scale;
    GCAP_RETURN_IF_ERROR(size_of(node, axis, roundf((float)x->shape[axis] * scale), &resize->size[axis]));
  }
  return NULL;
}

static gcap_status_t apply_policy(const gcap_node_t* node, const gcap_tensor_t* x, const axes_t* axes,
                                  gcap_resize_t* resize) {
  const char* policy = gcap_node_string(node, "keep_aspect_ratio_policy", "stretch");
  if (strcmp(policy, "stretch") == 0) return NULL;
  const bool larger = strcmp(policy, "not_smaller") == 0;
  if (larger || strcmp(policy, "not_larger") == 0) return keep_ratio(node, x, axes, larger, resize);
  return GCAP_SHAPE_REFUSE(node, "keep_aspect_ratio_policy is %s, allowed is stretch, not_larger or not_smaller",
                           policy);
}

static gcap_status_t take_sizes(const gcap_node_t* node, int input, const gcap_tensor_t* inputs, const axes_t* axes,
                                gcap_resize_t* resize) {
  const gcap_tensor_t *x = &inputs[0], *sizes = &inputs[input];
  GCAP_RETURN_IF_ERROR(check_list(node, "sizes", input, sizes, GCAP_DTYPE_I64, axes));
  if (sizes->data == NULL) return NULL;
  for (int i = 0; i < axes->count; ++i) {
    const int axis = axes->at[i];
    const int64_t size = gcap_shape_integer_at(sizes, i), from = x->shape[axis];
    if (size < 0 || (size == 0) != (from == 0)) {
      return GCAP_SHAPE_REFUSE(node, "sizes[%d] is %lld, allowed is 1 or more, or 0 where input 0 has 0; it has %lld",
                               i, (long long)size, (long long)from);
    }
    resize->size[axis] = size;
    if (from > 0) resize->scale[axis] = (float)size / (float)from;
  }
  GCAP_RETURN_IF_ERROR(apply_policy(node, x, axes, resize));
  resize->known = true;
  return NULL;
}

gcap_status_t gcap_infer_resize(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_resize_t* out_resize) {
  const gcap_tensor_t* x = &inputs[0];
  const int scales = gcap_resize_is_old(node) ? 1 : 2, sizes = 3;
  gcap_resize_t resize = {.known = false};
  *out_resize = resize;
  axes_t axes;
  GCAP_RETURN_IF_ERROR(read_axes(node, x->rank, &axes));
  for (int i = 0; i < x->rank; ++i) {
    resize.scale[i] = 1;
    resize.size[i] = x->shape[i];
  }
  const bool has_scales = is_given(node, inputs, scales), has_sizes = is_given(node, inputs, sizes);
  if (has_scales && has_sizes) return GCAP_SHAPE_REFUSE(node, "it has both scales and sizes");
  if (!has_scales && !has_sizes) {
    if (axes.count != 0) return GCAP_SHAPE_REFUSE(node, "it has neither scales nor sizes");
    resize.known = true;
  } else {
    GCAP_RETURN_IF_ERROR(has_scales ? take_scales(node, scales, inputs, &axes, &resize)
                                    : take_sizes(node, sizes, inputs, &axes, &resize));
  }
  *out_resize = resize;
  return NULL;
}

gcap_status_t gcap_infer_resize_op(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_resize_t resize;
  GCAP_RETURN_IF_ERROR(gcap_infer_resize(node, inputs, &resize));
  const gcap_shape_t shape = gcap_shape_of_sizes(inputs[0].rank, resize.known, resize.size);
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}

// --- GridSample -----------------------------------------------------------------------------------------------------

// A place of each output has a number for each axis of x behind batch and channels.
gcap_status_t gcap_infer_grid_sample(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  const gcap_tensor_t *x = &inputs[0], *grid = &inputs[1];
  if (x->rank < 3) return GCAP_SHAPE_REFUSE(node, "input 0 has rank %d, allowed is 3..%d", x->rank, GCAP_MAX_RANK);
  if (grid->rank != x->rank) {
    return GCAP_SHAPE_REFUSE(node, "input 1 has rank %d, input 0 has %d", grid->rank, x->rank);
  }
  const int64_t axes = grid->shape[grid->rank - 1];
  if (axes != x->rank - 2) {
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input 1 is %lld, allowed is %d", grid->rank - 1, (long long)axes,
                             x->rank - 2);
  }
  if (grid->shape[0] != x->shape[0]) {
    return GCAP_SHAPE_REFUSE(node, "inputs 0 and 1 have batches of %lld and %lld", (long long)x->shape[0],
                             (long long)grid->shape[0]);
  }
  gcap_shape_t shape = {.rank = x->rank, .at = {x->shape[0], x->shape[1]}};
  for (int i = 2; i < x->rank; ++i) shape.at[i] = grid->shape[i - 1];
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}
