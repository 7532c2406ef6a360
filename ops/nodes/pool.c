// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// MaxPool, AveragePool, GlobalMaxPool and GlobalAveragePool. One axis is a second one of size 1; a window of three
// axes, and that of LpPool, is moved by a kernel of gcap's, without a plan. A global pool of more axes than two has
// them in one.

#include <stdint.h>
#include <string.h>

#include "gcap/kit/ops/pool2d.h"
#include "gcap/kit/shape_inference.h"
#include "ops/kernels/volume_pool.h"
#include "ops/nodes/op.h"

enum { LEADING = 2 };  // batch and channels

bool gcap_node_global_pool_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  return gcap_node_input(model, node, 0)->rank > LEADING;
}

// A pad is smaller than the window reaches, whatever the sizes are. What is wrong with the attributes is said, to the
// host, when the kernel is made.
static bool has_small_pads(const gcap_node_t* node, int axes) {
  if (strcmp(gcap_node_string(node, "auto_pad", "NOTSET"), "NOTSET") != 0) return true;  // no more than are needed
  size_t num_sizes = 0, num_pads = 0, num_dilations = 0;
  const int64_t* sizes = gcap_node_ints(node, "kernel_shape", &num_sizes);
  const int64_t* pads = gcap_node_ints(node, "pads", &num_pads);
  const int64_t* dilations = gcap_node_ints(node, "dilations", &num_dilations);
  if (num_sizes != (size_t)axes || num_pads != 2 * (size_t)axes) return true;
  for (int i = 0; i < axes; ++i) {
    const int64_t dilation = num_dilations == (size_t)axes ? dilations[i] : 1;
    const int64_t pad = pads[i] > pads[axes + i] ? pads[i] : pads[axes + i];
    // pad > dilation * (size - 1), where nothing overflows
    if (dilation >= 1 && pad / dilation + (pad % dilation != 0) >= sizes[i]) return false;
  }
  return true;
}

bool gcap_node_pool_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_value_t* x = gcap_node_input(model, node, 0);
  return x->rank > LEADING && x->rank <= LEADING + GCAP_VOLUME_AXES && has_small_pads(node, x->rank - LEADING);
}

static gcap_status_t set_window(const gcap_node_planning_t* planning, gcap_pool2d_options_t* options) {
  gcap_window_t window;
  GCAP_RETURN_IF_ERROR(gcap_infer_window(planning->node, planning->inputs, &window));
  const gcap_node_t* node = planning->node;
  options->kernel_h = 1;
  for (int i = 0; i < window.rank; ++i) {
    const bool is_h = i + 2 - window.rank == 0;
    const struct {
      const char* what;
      int64_t size;
      int* out_size;
    } sizes[] = {{"an axis of the window", window.size[i], is_h ? &options->kernel_h : &options->kernel_w},
                 {"a stride", window.stride[i], is_h ? &options->stride_h : &options->stride_w},
                 {"a dilation", window.dilation[i], is_h ? &options->dilation_h : &options->dilation_w},
                 {"a pad", window.pad_begin[i], is_h ? &options->pad_h : &options->pad_w},
                 {"a pad", window.pad_end[i], is_h ? &options->pad_h_end : &options->pad_w_end}};
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); ++k) {
      GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, sizes[k].what, sizes[k].size, sizes[k].out_size));
    }
  }
  options->ceil_mode = gcap_node_int(node, "ceil_mode", 0) != 0;
  return NULL;
}

static bool is_global(const gcap_node_t* node) { return strncmp(node->op_type, "Global", 6) == 0; }

static bool is_max(const gcap_node_t* node) { return strstr(node->op_type, "MaxPool") != NULL; }

static bool is_volume(const gcap_node_t* node, const gcap_tensor_t* x) { return !is_global(node) && x->rank == 5; }

// The axes as batch, channels, rows and columns: those before the last are the rows.
static gcap_status_t set_shape(const gcap_node_t* node, const gcap_tensor_t* x, gcap_pool2d_options_t* options) {
  int64_t rows = 1;
  for (int i = LEADING; i < x->rank - 1; ++i) {
    if (__builtin_mul_overflow(rows, x->shape[i], &rows)) rows = INT64_MAX;
  }
  const int64_t sizes[] = {x->shape[0], x->shape[1], rows, x->shape[x->rank - 1]};
  int* const to[] = {&options->n, &options->c, &options->h, &options->w};
  for (int i = 0; i < 4; ++i) {
    GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "an axis of input 0", sizes[i], to[i]));
  }
  return NULL;
}

gcap_status_t gcap_node_pool_plan(const gcap_node_planning_t* planning, void** out_plan) {
  const gcap_node_t* node = planning->node;
  const gcap_tensor_t* x = &planning->inputs[0];
  if (is_volume(node, x)) return NULL;
  gcap_pool2d_options_t options;
  gcap_pool2d_options_init(&options);
  GCAP_RETURN_IF_ERROR(set_shape(node, x, &options));
  options.global = is_global(node);
  if (!options.global) GCAP_RETURN_IF_ERROR(set_window(planning, &options));
  options.mode = is_max(node) ? GCAP_POOL2D_MAX : GCAP_POOL2D_AVERAGE;
  options.count_include_pad = gcap_node_int(node, "count_include_pad", 0) != 0;
  options.dtype = x->dtype;
  gcap_pool2d_t* pool = NULL;
  GCAP_RETURN_IF_ERROR(gcap_pool2d_create(&options, &pool));
  *out_plan = pool;
  return NULL;
}

void gcap_node_pool_end(void* plan) { gcap_pool2d_destroy(plan); }

static gcap_status_t pool_volume(const gcap_node_t* node, gcap_volume_pool_mode_t mode,
                                 const gcap_kernel_context_t* context) {
  static const gcap_window_side_t one = {.input = 1, .output = 1, .kernel = 1, .stride = 1, .dilation = 1};
  const gcap_tensor_t* x = &context->inputs[0];
  gcap_window_t window;
  int ignored = 0;
  GCAP_RETURN_IF_ERROR(gcap_infer_window(node, x, &window));
  gcap_volume_pool_params_t way = {.mode = mode,
                                   .counts_pad = gcap_node_int(node, "count_include_pad", 0) != 0,
                                   .p = (float)gcap_node_int(node, "p", 2),
                                   .volume.side = {one, one, one}};
  GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "the number of channels", x->shape[1], &ignored));
  for (int i = 0; i < window.rank; ++i) {
    const int at = GCAP_VOLUME_AXES - window.rank + i;
    GCAP_RETURN_IF_ERROR(gcap_node_window_side(node, &window, x->shape[LEADING + i], i, &way.volume.side[at]));
    GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "a pad", window.pad_end[i], &way.pad_end[at]));
  }
  return gcap_volume_pool(context->resources.stream, &way, x, &context->outputs[0]);
}

gcap_status_t gcap_node_pool(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  if (is_volume(kernel->node, &context->inputs[0])) {
    return pool_volume(kernel->node, is_max(kernel->node) ? GCAP_VOLUME_POOL_MAX : GCAP_VOLUME_POOL_AVERAGE, context);
  }
  return gcap_pool2d_run(kernel->plan, context->resources.stream, context->inputs[0].data, context->outputs[0].data);
}

// --- LpPool ---------------------------------------------------------------------------------------------------------

bool gcap_node_lp_pool_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  return gcap_node_pool_accepts(model, node) && gcap_node_int(node, "p", 2) >= 1;
}

gcap_status_t gcap_node_lp_pool(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  return pool_volume(kernel->node, GCAP_VOLUME_POOL_NORM, context);
}
