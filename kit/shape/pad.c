// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Pad. Its numbers are attributes before opset 11, and inputs since; the axes that they are for may be an input since
// opset 18.

#include <string.h>

#include "kit/shape/infer.h"
#include "kit/shape/inner.h"
#include "lib/internal/check_argument.h"

// Padding of one axis that can be added to a size without an overflow.
#define MAX_PAD (INT64_MAX / 4)

// The numbers that a node has: those before each axis, then those behind it.
typedef struct list {
  bool known;
  int64_t count;
  int64_t at[2 * GCAP_MAX_RANK];
} list_t;

static gcap_status_t check_count(const gcap_node_t* node, const char* what, int64_t count, int axes) {
  if (count == 2 * axes) return NULL;
  return GCAP_SHAPE_REFUSE(node, "%s has %lld numbers, allowed is %d, two for each axis", what, (long long)count,
                           2 * axes);
}

static gcap_status_t read_attribute(const gcap_node_t* node, int axes, list_t* out_list) {
  size_t count = 0;
  const int64_t* numbers = gcap_node_ints(node, "pads", &count);
  if (!gcap_node_has(node, "pads")) return GCAP_SHAPE_REFUSE(node, "it has neither an input 1 nor an attribute pads");
  if (numbers == NULL && count > 0) return GCAP_SHAPE_REFUSE(node, "attribute pads has %zu numbers at NULL", count);
  GCAP_RETURN_IF_ERROR(check_count(node, "attribute pads", (int64_t)count, axes));
  *out_list = (list_t){.known = true, .count = (int64_t)count};
  for (size_t i = 0; i < count; ++i) out_list->at[i] = numbers[i];
  return NULL;
}

static gcap_status_t read_input(const gcap_node_t* node, const gcap_tensor_t* pads, int axes, list_t* out_list) {
  if (gcap_node_has(node, "pads")) return GCAP_SHAPE_REFUSE(node, "it has both an input 1 and an attribute pads");
  if (pads->dtype != GCAP_DTYPE_I64) {
    return GCAP_SHAPE_REFUSE(node, "input 1 is of type %s, allowed is i64", gcap_dtype_name(pads->dtype));
  }
  if (pads->rank != 1) return GCAP_SHAPE_REFUSE(node, "input 1 has rank %d, allowed is 1", pads->rank);
  GCAP_RETURN_IF_ERROR(check_count(node, "input 1", pads->shape[0], axes));
  *out_list = (list_t){.known = gcap_shape_is_known(pads), .count = pads->shape[0]};
  for (int64_t i = 0; out_list->known && i < out_list->count; ++i) out_list->at[i] = gcap_shape_integer_at(pads, i);
  return NULL;
}

// The axes, of the rank, or all of them.
static gcap_status_t read_axes(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_numbers_t* out_axes) {
  const int rank = inputs[0].rank;
  if (node->num_inputs < 4) {
    *out_axes = (gcap_numbers_t){.known = true, .count = rank};
    for (int i = 0; i < rank; ++i) out_axes->at[i] = i;
    return NULL;
  }
  bool at[GCAP_MAX_RANK];
  GCAP_RETURN_IF_ERROR(gcap_shape_read_input(node, 3, &inputs[3], out_axes));
  if (!out_axes->known) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_shape_axes(node, out_axes, rank, at));
  for (int i = 0; i < out_axes->count; ++i) out_axes->at[i] += out_axes->at[i] < 0 ? rank : 0;
  return NULL;
}

static gcap_status_t check_pad(const gcap_node_t* node, int64_t i, int64_t pad) {
  if (pad >= -MAX_PAD && pad <= MAX_PAD) return NULL;
  return GCAP_SHAPE_REFUSE(node, "pads[%lld] is %lld, allowed is %lld..%lld", (long long)i, (long long)pad,
                           (long long)-MAX_PAD, (long long)MAX_PAD);
}

// --- Modes ----------------------------------------------------------------------------------------------------------

// Constant padding may be where nothing is left of the input. Other modes need elements to show.
static gcap_status_t check_left(const gcap_node_t* node, const char* mode, int axis, int64_t size, int64_t begin,
                                int64_t end) {
  if (strcmp(mode, "constant") == 0 || (begin == 0 && end == 0)) return NULL;
  const int64_t left = size + (begin < 0 ? begin : 0) + (end < 0 ? end : 0);
  if (left < 1) {
    return GCAP_SHAPE_REFUSE(node, "nothing is left of the %lld elements of axis %d for mode %s", (long long)size, axis,
                             mode);
  }
  const int64_t most = begin > end ? begin : end;
  if (strcmp(mode, "reflect") != 0 || most < left) return NULL;
  return GCAP_SHAPE_REFUSE(node, "it adds %lld elements to axis %d, allowed is %lld for mode reflect", (long long)most,
                           axis, (long long)left - 1);
}

static gcap_status_t check_mode(const gcap_node_t* node, const char* mode) {
  static const char* const modes[] = {"constant", "reflect", "edge", "wrap"};
  for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); ++i) {
    if (strcmp(mode, modes[i]) == 0) return NULL;
  }
  return GCAP_SHAPE_REFUSE(node, "mode is %s, allowed is constant, reflect, edge or wrap", mode);
}

// --- The operator ---------------------------------------------------------------------------------------------------

gcap_status_t gcap_infer_pads(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_pads_t* out_pads) {
  GCAP_RETURN_IF_NULL(out_pads);
  *out_pads = (gcap_pads_t){0};
  const char* mode = gcap_node_string(node, "mode", "constant");
  GCAP_RETURN_IF_ERROR(check_mode(node, mode));
  gcap_numbers_t axes;
  list_t list = {0};
  GCAP_RETURN_IF_ERROR(read_axes(node, inputs, &axes));
  GCAP_RETURN_IF_ERROR(node->num_inputs > 1 ? read_input(node, &inputs[1], axes.count, &list)
                                            : read_attribute(node, axes.count, &list));
  if (!axes.known || !list.known) return NULL;
  gcap_pads_t pads = {.known = true};
  for (int64_t i = 0; i < list.count; ++i) {
    GCAP_RETURN_IF_ERROR(check_pad(node, i, list.at[i]));
    const int axis = (int)axes.at[i % axes.count];
    *(i < axes.count ? &pads.begin[axis] : &pads.end[axis]) = list.at[i];
  }
  for (int i = 0; i < inputs[0].rank; ++i) {
    GCAP_RETURN_IF_ERROR(check_left(node, mode, i, inputs[0].shape[i], pads.begin[i], pads.end[i]));
  }
  *out_pads = pads;
  return NULL;
}

gcap_status_t gcap_infer_pad(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_pads_t pads;
  GCAP_RETURN_IF_ERROR(gcap_infer_pads(node, inputs, &pads));
  gcap_shape_t shape = gcap_shape_unknown(inputs[0].rank);
  for (int i = 0; pads.known && i < shape.rank; ++i) {
    if (__builtin_add_overflow(inputs[0].shape[i], pads.begin[i] + pads.end[i], &shape.at[i])) {
      return GCAP_SHAPE_REFUSE(node, "dimension %d of output 0 would be more than %lld", i, (long long)INT64_MAX);
    }
    if (shape.at[i] >= 0) continue;
    return GCAP_SHAPE_REFUSE(node, "dimension %d of output 0 would be %lld, allowed is 0 or more", i,
                             (long long)shape.at[i]);
  }
  return gcap_shape_give(node, 0, &shape, &outputs[0]);
}
