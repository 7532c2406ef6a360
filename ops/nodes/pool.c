// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// MaxPool, AveragePool and GlobalAveragePool. cuDNN pads both ends alike, so other pads fit only if there are no other
// windows for them; whether that is so depends on the sizes.

#include <stdint.h>
#include <string.h>

#include "gcap/ops/pool2d.h"
#include "gcap/shape_inference.h"
#include "ops/nodes/op.h"

static bool has_rank(const gcap_value_t* x) { return x->rank == 3 || x->rank == 4; }

bool gcap_node_global_pool_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  return has_rank(gcap_node_input(model, node, 0));
}

// The windows are those of equal pads at both ends, each smaller than the window.
static bool fits_cudnn(const gcap_window_t* window, const gcap_tensor_t* x) {
  for (int i = 0; i < window->rank; ++i) {
    const int64_t way = x->shape[2 + i] + 2 * window->pad_begin[i] - window->size[i];
    if (window->dilation[i] != 1 || window->pad_begin[i] >= window->size[i] || way < 0) return false;
    if (way / window->stride[i] + 1 != window->count[i]) return false;
  }
  return true;
}

// True if the window is one of cuDNN for any size: what `fits_cudnn` asks follows from the attributes alone.
static bool fits_any_size(const gcap_node_t* node, int axes) {
  const char* auto_pad = gcap_node_string(node, "auto_pad", "NOTSET");
  if (gcap_node_int(node, "ceil_mode", 0) != 0 || strncmp(auto_pad, "SAME", 4) == 0) return false;
  size_t num_sizes = 0, num_pads = 0, num_dilations = 0;
  const int64_t* sizes = gcap_node_ints(node, "kernel_shape", &num_sizes);
  const int64_t* pads = gcap_node_ints(node, "pads", &num_pads);
  const int64_t* dilations = gcap_node_ints(node, "dilations", &num_dilations);
  for (size_t i = 0; i < num_dilations; ++i) {
    if (dilations[i] != 1) return false;
  }
  if (num_sizes != (size_t)axes || (pads != NULL && num_pads != 2 * (size_t)axes)) return false;
  for (int i = 0; i < axes && pads != NULL; ++i) {
    if (pads[i] != pads[axes + i] || pads[i] >= sizes[i]) return false;
  }
  return true;
}

bool gcap_node_pool_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_value_t* value = gcap_node_input(model, node, 0);
  if (!has_rank(value)) return false;
  gcap_tensor_t x = {.dtype = value->dtype, .rank = value->rank};
  for (int i = 0; i < value->rank; ++i) {
    x.shape[i] = value->shape[i];
    if (i < 2 && x.shape[i] < 0) x.shape[i] = 1;  // a window does not depend on it
    if (x.shape[i] < 0) return fits_any_size(node, value->rank - 2);
  }
  gcap_window_t window;
  gcap_status_t status = gcap_infer_window(node, &x, &window);
  if (status == NULL) return fits_cudnn(&window, &x);
  gcap_status_ignore(status);  // the same refusal comes again, to the host, when the kernel is made
  return true;
}

static gcap_status_t set_window(const gcap_node_planning_t* planning, gcap_pool2d_options_t* options) {
  gcap_window_t window;
  GCAP_RETURN_IF_ERROR(gcap_infer_window(planning->node, planning->inputs, &window));
  int* const sizes[] = {&options->kernel_h, &options->kernel_w};
  int* const strides[] = {&options->stride_h, &options->stride_w};
  int* const pads[] = {&options->pad_h, &options->pad_w};
  options->kernel_h = 1;
  for (int i = 0; i < window.rank; ++i) {
    const int to = i + 2 - window.rank;
    GCAP_RETURN_IF_ERROR(gcap_node_int_size(planning->node, "an axis of the window", window.size[i], sizes[to]));
    GCAP_RETURN_IF_ERROR(gcap_node_int_size(planning->node, "a stride", window.stride[i], strides[to]));
    GCAP_RETURN_IF_ERROR(gcap_node_int_size(planning->node, "a pad", window.pad_begin[i], pads[to]));
  }
  if (fits_cudnn(&window, &planning->inputs[0])) return NULL;
  return GCAP_STATUS(GCAP_UNIMPLEMENTED,
                     "node '%s' (%s): pads, dilations or ceil_mode make other windows than equal pads at both ends do",
                     planning->node->name, planning->node->op_type);
}

static bool is_global(const gcap_node_t* node) { return strncmp(node->op_type, "Global", 6) == 0; }

gcap_status_t gcap_node_pool_plan(const gcap_node_planning_t* planning, void** out_plan) {
  const gcap_node_t* node = planning->node;
  const gcap_tensor_t* x = &planning->inputs[0];
  gcap_pool2d_options_t options;
  gcap_pool2d_options_init(&options);
  options.h = 1;
  int* const sizes[] = {&options.n, &options.c, &options.h, &options.w};
  for (int i = 0; i < x->rank; ++i) {
    const int to = i < 2 ? i : i + 4 - x->rank;
    GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "an axis of input 0", x->shape[i], sizes[to]));
  }
  options.global = is_global(node);
  if (!options.global) GCAP_RETURN_IF_ERROR(set_window(planning, &options));
  options.mode = strcmp(node->op_type, "MaxPool") == 0 ? GCAP_POOL2D_MAX : GCAP_POOL2D_AVERAGE;
  options.count_include_pad = gcap_node_int(node, "count_include_pad", 0) != 0;
  options.dtype = x->dtype;
  gcap_pool2d_t* pool = NULL;
  GCAP_RETURN_IF_ERROR(gcap_pool2d_create(&options, &pool));
  *out_plan = pool;
  return NULL;
}

void gcap_node_pool_end(void* plan) { gcap_pool2d_destroy(plan); }

gcap_status_t gcap_node_pool(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  return gcap_pool2d_run(kernel->plan, context->resources.stream, context->inputs[0].data, context->outputs[0].data);
}
