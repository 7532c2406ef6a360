// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that move a window: Conv, ConvTranspose and the pools. The output's size is what ONNX's documentation of
// Conv, ConvTranspose, MaxPool and AveragePool gives.

#include <string.h>

#include "kit/shape/infer.h"
#include "kit/shape/inner.h"
#include "lib/internal/check_argument.h"

// The axes before those of the window: batch and channels.
#define LEADING 2

// --- Attributes -----------------------------------------------------------------------------------------------------

// Reads `count` numbers of at least `least` each; without the attribute each is `fallback`.
static gcap_status_t read_list(const gcap_node_t* node, const char* name, int count, int64_t least, int64_t fallback,
                               int64_t* out_at) {
  size_t given = 0;
  const int64_t* numbers = gcap_node_ints(node, name, &given);
  for (int i = 0; i < count; ++i) out_at[i] = fallback;
  if (numbers == NULL) return NULL;
  if (given != (size_t)count) {
    return GCAP_SHAPE_REFUSE(node, "%s has %zu numbers, allowed is %d, for input 0 of rank %d", name, given, count,
                             count == 0 ? LEADING : (strcmp(name, "pads") == 0 ? count / 2 : count) + LEADING);
  }
  for (int i = 0; i < count; ++i) {
    if (numbers[i] < least) {
      return GCAP_SHAPE_REFUSE(node, "%s[%d] is %lld, allowed is %lld or more", name, i, (long long)numbers[i],
                               (long long)least);
    }
    out_at[i] = numbers[i];
  }
  return NULL;
}

static bool is_conv(const gcap_node_t* node) { return strncmp(node->op_type, "Conv", 4) == 0; }

// A convolution has its window's size from the weights; the attribute may say it again.
static gcap_status_t read_sizes(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_window_t* window) {
  if (!is_conv(node)) {
    if (!gcap_node_has(node, "kernel_shape")) return GCAP_SHAPE_REFUSE(node, "it has no attribute kernel_shape");
    return read_list(node, "kernel_shape", window->rank, 1, 1, window->size);
  }
  const gcap_tensor_t* weights = &inputs[1];
  if (weights->rank != inputs[0].rank) {
    return GCAP_SHAPE_REFUSE(node, "input 1 has rank %d, input 0 has %d", weights->rank, inputs[0].rank);
  }
  GCAP_RETURN_IF_ERROR(read_list(node, "kernel_shape", window->rank, 1, 0, window->size));
  for (int i = 0; i < window->rank; ++i) {
    const int64_t size = weights->shape[LEADING + i];
    if (size < 1)
      return GCAP_SHAPE_REFUSE(node, "dimension %d of input 1 is %lld, allowed is 1 or more", LEADING + i,
                               (long long)size);
    if (window->size[i] != 0 && window->size[i] != size) {
      return GCAP_SHAPE_REFUSE(node, "kernel_shape[%d] is %lld, dimension %d of input 1 is %lld", i,
                               (long long)window->size[i], LEADING + i, (long long)size);
    }
    window->size[i] = size;
  }
  return NULL;
}

static gcap_status_t read_attributes(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_window_t* window) {
  int64_t pads[2 * GCAP_MAX_RANK];
  GCAP_RETURN_IF_ERROR(read_sizes(node, inputs, window));
  GCAP_RETURN_IF_ERROR(read_list(node, "strides", window->rank, 1, 1, window->stride));
  GCAP_RETURN_IF_ERROR(read_list(node, "dilations", window->rank, 1, 1, window->dilation));
  GCAP_RETURN_IF_ERROR(read_list(node, "pads", 2 * window->rank, 0, 0, pads));
  for (int i = 0; i < window->rank; ++i) {
    window->pad_begin[i] = pads[i];
    window->pad_end[i] = pads[window->rank + i];
  }
  return NULL;
}

// --- Sizes ----------------------------------------------------------------------------------------------------------

static gcap_status_t too_large(const gcap_node_t* node, int axis) {
  return GCAP_SHAPE_REFUSE(node, "the window or the padded input is larger than %lld on axis %d", (long long)INT64_MAX,
                           axis + LEADING);
}

// The elements of the input from the first to the last one under the window.
static bool reach(const gcap_window_t* window, int i, int64_t* out_reach) {
  return !__builtin_mul_overflow(window->dilation[i], window->size[i] - 1, out_reach) &&
         !__builtin_add_overflow(*out_reach, 1, out_reach);
}

// auto_pad SAME_*: as many outputs as strides fit into the input, and as much padding as that needs.
static gcap_status_t pad_to_same(const gcap_node_t* node, int64_t size, int64_t reached, bool upper, int i,
                                 gcap_window_t* window) {
  const int64_t stride = window->stride[i];
  const int64_t count = size / stride + (size % stride != 0);
  int64_t needed = 0;  // (count - 1) * stride is less than size
  if (count > 0 && __builtin_add_overflow((count - 1) * stride, reached, &needed)) return too_large(node, i);
  const int64_t pad = needed > size ? needed - size : 0;
  window->pad_begin[i] = upper ? pad / 2 : pad - pad / 2;
  window->pad_end[i] = pad - window->pad_begin[i];
  window->count[i] = count;
  return NULL;
}

static gcap_status_t count_positions(const gcap_node_t* node, int64_t size, int64_t reached, bool ceil_mode, int i,
                                     gcap_window_t* window) {
  int64_t padded = 0;
  if (__builtin_add_overflow(size, window->pad_begin[i], &padded) ||
      __builtin_add_overflow(padded, window->pad_end[i], &padded)) {
    return too_large(node, i);
  }
  if (padded < reached) {
    return GCAP_SHAPE_REFUSE(node, "the window reaches over %lld elements of axis %d, which has %lld with its padding",
                             (long long)reached, i + LEADING, (long long)padded);
  }
  const int64_t stride = window->stride[i], way = padded - reached;
  int64_t count = way / stride + 1;
  // A further window must begin before the padding at the end.
  if (ceil_mode && way % stride != 0 && count <= (size + window->pad_begin[i] - 1) / stride) ++count;
  window->count[i] = count;
  return NULL;
}

typedef enum auto_pad { NOTSET, VALID, SAME_UPPER, SAME_LOWER } auto_pad_t;

// Reads auto_pad. Whatever it is but NOTSET, the attribute pads does not count.
static gcap_status_t read_auto_pad(const gcap_node_t* node, gcap_window_t* window, auto_pad_t* out_auto_pad) {
  static const char* const names[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
  const char* given = gcap_node_string(node, "auto_pad", "NOTSET");
  int i = NOTSET;
  while (i <= SAME_LOWER && strcmp(given, names[i]) != 0) ++i;
  if (i > SAME_LOWER) {
    return GCAP_SHAPE_REFUSE(node, "auto_pad is %s, allowed is NOTSET, SAME_UPPER, SAME_LOWER or VALID", given);
  }
  if (i != NOTSET) {
    memset(window->pad_begin, 0, sizeof(window->pad_begin));
    memset(window->pad_end, 0, sizeof(window->pad_end));
  }
  *out_auto_pad = (auto_pad_t)i;
  return NULL;
}

static gcap_status_t count_outputs(const gcap_node_t* node, const gcap_tensor_t* data, gcap_window_t* window) {
  auto_pad_t auto_pad = NOTSET;
  GCAP_RETURN_IF_ERROR(read_auto_pad(node, window, &auto_pad));
  const bool upper = auto_pad == SAME_UPPER, same = upper || auto_pad == SAME_LOWER;
  const bool ceil_mode = gcap_node_int(node, "ceil_mode", 0) != 0;
  for (int i = 0; i < window->rank; ++i) {
    const int64_t size = data->shape[LEADING + i];
    int64_t reached = 0;
    if (!reach(window, i, &reached)) return too_large(node, i);
    GCAP_RETURN_IF_ERROR(same ? pad_to_same(node, size, reached, upper, i, window)
                              : count_positions(node, size, reached, ceil_mode, i, window));
  }
  return NULL;
}

static gcap_status_t check_rank(const gcap_node_t* node, const gcap_tensor_t* data) {
  if (data->rank > LEADING) return NULL;
  return GCAP_SHAPE_REFUSE(node, "input 0 has rank %d, allowed is 3..%d", data->rank, GCAP_MAX_RANK);
}

gcap_status_t gcap_infer_window(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_window_t* out_window) {
  GCAP_RETURN_IF_NULL(out_window);
  *out_window = (gcap_window_t){0};
  GCAP_RETURN_IF_NULL(node);
  GCAP_RETURN_IF_NULL(node->op_type);
  GCAP_RETURN_IF_NULL(inputs);
  const int least = is_conv(node) ? 2 : 1;
  if (node->num_inputs < least)
    return GCAP_SHAPE_REFUSE(node, "it has %d inputs, allowed is %d or more", node->num_inputs, least);
  for (int i = 0; i < node->num_inputs; ++i) GCAP_RETURN_IF_ERROR(gcap_shape_check_input(node, i, &inputs[i]));
  GCAP_RETURN_IF_ERROR(check_rank(node, &inputs[0]));
  gcap_window_t window = {.rank = inputs[0].rank - LEADING};
  GCAP_RETURN_IF_ERROR(read_attributes(node, inputs, &window));
  GCAP_RETURN_IF_ERROR(count_outputs(node, &inputs[0], &window));
  *out_window = window;
  return NULL;
}

// --- Operators ------------------------------------------------------------------------------------------------------

// Batch, channels, and the positions of the window.
static gcap_status_t give_positions(const gcap_node_t* node, int64_t batch, int64_t channels,
                                    const gcap_window_t* window, gcap_tensor_t* outputs) {
  gcap_shape_t shape = {.rank = LEADING + window->rank, .at = {batch, channels}};
  for (int i = 0; i < window->rank; ++i) shape.at[LEADING + i] = window->count[i];
  for (int i = 0; i < node->num_outputs; ++i) {  // MaxPool may have a second one
    GCAP_RETURN_IF_ERROR(gcap_shape_give(node, i, &shape, &outputs[i]));
  }
  return NULL;
}

static gcap_status_t check_bias(const gcap_node_t* node, const gcap_tensor_t* inputs, int64_t maps) {
  if (node->num_inputs < 3) return NULL;
  const gcap_tensor_t* bias = &inputs[2];
  if (bias->rank != 1) return GCAP_SHAPE_REFUSE(node, "input 2 has rank %d, allowed is 1", bias->rank);
  if (bias->shape[0] == maps) return NULL;
  return GCAP_SHAPE_REFUSE(node, "input 2 has %lld elements, input 1 makes %lld channels", (long long)bias->shape[0],
                           (long long)maps);
}

static gcap_status_t check_channels(const gcap_node_t* node, const gcap_tensor_t* inputs) {
  const int64_t group = gcap_node_int(node, "group", 1), channels = inputs[0].shape[1];
  const int64_t maps = inputs[1].shape[0], channels_of_a_group = inputs[1].shape[1];
  if (group < 1) return GCAP_SHAPE_REFUSE(node, "group is %lld, allowed is 1 or more", (long long)group);
  if (channels % group != 0 || channels / group != channels_of_a_group) {
    return GCAP_SHAPE_REFUSE(node, "input 0 has %lld channels, input 1 has %lld in each of %lld groups",
                             (long long)channels, (long long)channels_of_a_group, (long long)group);
  }
  if (maps % group != 0) {
    return GCAP_SHAPE_REFUSE(node, "input 1 makes %lld channels, allowed is a multiple of group %lld", (long long)maps,
                             (long long)group);
  }
  return check_bias(node, inputs, maps);
}

gcap_status_t gcap_infer_conv(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_window_t window;
  GCAP_RETURN_IF_ERROR(gcap_infer_window(node, inputs, &window));
  GCAP_RETURN_IF_ERROR(check_channels(node, inputs));
  return give_positions(node, inputs[0].shape[0], inputs[1].shape[0], &window, outputs);
}

gcap_status_t gcap_infer_pool(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_window_t window;
  GCAP_RETURN_IF_ERROR(gcap_infer_window(node, inputs, &window));
  return give_positions(node, inputs[0].shape[0], inputs[0].shape[1], &window, outputs);
}

gcap_status_t gcap_infer_global_pool(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  GCAP_RETURN_IF_ERROR(check_rank(node, &inputs[0]));
  gcap_window_t window = {.rank = inputs[0].rank - LEADING};
  for (int i = 0; i < window.rank; ++i) window.count[i] = 1;
  return give_positions(node, inputs[0].shape[0], inputs[0].shape[1], &window, outputs);
}

// --- ConvTranspose --------------------------------------------------------------------------------------------------

// The sizes of the output that attribute output_shape gives, of the axes of the window alone or of all; 0 without it.
static gcap_status_t read_output_sizes(const gcap_node_t* node, int rank, int64_t* out_sizes) {
  size_t count = 0;
  const int64_t* given = gcap_node_ints(node, "output_shape", &count);
  for (int i = 0; i < rank; ++i) out_sizes[i] = 0;
  if (given == NULL || count == 0) return NULL;
  if (count != (size_t)rank && count != (size_t)(rank + LEADING)) {
    return GCAP_SHAPE_REFUSE(node, "output_shape has %zu numbers, allowed is %d or %d, for input 0 of rank %d", count,
                             rank, rank + LEADING, rank + LEADING);
  }
  for (int i = 0; i < rank; ++i) {
    const size_t at = count - (size_t)rank + (size_t)i;
    if (given[at] < 1) {
      return GCAP_SHAPE_REFUSE(node, "output_shape[%zu] is %lld, allowed is 1 or more", at, (long long)given[at]);
    }
    out_sizes[i] = given[at];
  }
  return NULL;
}

// How far the window reaches over the output where nothing is cut off: (size - 1) * stride + reach + added.
static bool spread(const gcap_window_t* window, int i, int64_t size, int64_t added, int64_t* out_spread) {
  int64_t reached = 0;
  return reach(window, i, &reached) && !__builtin_mul_overflow(size - 1, window->stride[i], out_spread) &&
         !__builtin_add_overflow(*out_spread, reached, out_spread) &&
         !__builtin_add_overflow(*out_spread, added, out_spread);
}

// Pads that make the output as large as is wanted. The odd one is at the beginning, but for SAME_UPPER. An output that
// is larger than what the window reaches has none.
static void pad_to(int64_t wanted, int64_t reached, bool upper, int i, gcap_window_t* window) {
  const int64_t pad = reached > wanted ? reached - wanted : 0;
  window->pad_begin[i] = upper ? pad / 2 : pad - pad / 2;
  window->pad_end[i] = pad - window->pad_begin[i];
}

static gcap_status_t count_spread(const gcap_node_t* node, int64_t size, int64_t added, int64_t wanted,
                                  auto_pad_t auto_pad, int i, gcap_window_t* window) {
  const bool upper = auto_pad == SAME_UPPER, same = upper || auto_pad == SAME_LOWER;
  int64_t reached = 0, scaled = 0;
  if (size < 1) {
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input 0 is %lld, allowed is 1 or more", LEADING + i,
                             (long long)size);
  }
  if (!spread(window, i, size, added, &reached) || __builtin_mul_overflow(size, window->stride[i], &scaled)) {
    return too_large(node, i);
  }
  if (wanted > 0 || same) pad_to(wanted > 0 ? wanted : scaled, reached, upper, i, window);
  window->count[i] = wanted;
  if (wanted > 0) return NULL;
  if (window->pad_begin[i] >= reached || window->pad_end[i] >= reached - window->pad_begin[i]) {
    return GCAP_SHAPE_REFUSE(node, "the pads of axis %d, %lld and %lld, leave nothing of %lld elements", LEADING + i,
                             (long long)window->pad_begin[i], (long long)window->pad_end[i], (long long)reached);
  }
  window->count[i] = reached - window->pad_begin[i] - window->pad_end[i];
  return NULL;
}

gcap_status_t gcap_infer_transposed_window(const gcap_node_t* node, const gcap_tensor_t* inputs,
                                           gcap_window_t* out_window) {
  const gcap_tensor_t* x = &inputs[0];
  int64_t added[GCAP_MAX_RANK], wanted[GCAP_MAX_RANK];
  GCAP_RETURN_IF_ERROR(check_rank(node, x));
  gcap_window_t window = {.rank = x->rank - LEADING};
  GCAP_RETURN_IF_ERROR(read_attributes(node, inputs, &window));
  auto_pad_t auto_pad = NOTSET;
  GCAP_RETURN_IF_ERROR(read_auto_pad(node, &window, &auto_pad));
  GCAP_RETURN_IF_ERROR(read_list(node, "output_padding", window.rank, 0, 0, added));
  GCAP_RETURN_IF_ERROR(read_output_sizes(node, window.rank, wanted));
  for (int i = 0; i < window.rank; ++i) {
    GCAP_RETURN_IF_ERROR(count_spread(node, x->shape[LEADING + i], added[i], wanted[i], auto_pad, i, &window));
  }
  *out_window = window;
  return NULL;
}

gcap_status_t gcap_infer_conv_transpose(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  gcap_window_t window;
  GCAP_RETURN_IF_ERROR(gcap_infer_transposed_window(node, inputs, &window));
  const int64_t group = gcap_node_int(node, "group", 1), channels = inputs[0].shape[1];
  int64_t maps = 0;
  if (group < 1) return GCAP_SHAPE_REFUSE(node, "group is %lld, allowed is 1 or more", (long long)group);
  if (channels % group != 0 || inputs[1].shape[0] != channels) {
    return GCAP_SHAPE_REFUSE(node, "input 0 has %lld channels, input 1 has %lld in %lld groups", (long long)channels,
                             (long long)inputs[1].shape[0], (long long)group);
  }
  if (__builtin_mul_overflow(inputs[1].shape[1], group, &maps)) {
    return GCAP_SHAPE_REFUSE(node, "input 1 makes %lld channels in each of %lld groups", (long long)inputs[1].shape[1],
                             (long long)group);
  }
  GCAP_RETURN_IF_ERROR(check_bias(node, inputs, maps));
  return give_positions(node, inputs[0].shape[0], maps, &window, outputs);
}
