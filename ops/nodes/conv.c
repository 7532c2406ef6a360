// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Conv of one to three axes. One axis is a second one of size 1. cuDNN's handle for planning is that of the calling
// thread's stream, since a handle may serve one thread at a time; an exhaustive search runs there too.

#include <stdlib.h>

#include "gcap/kit/ops/conv2d.h"
#include "gcap/kit/ops/elementwise.h"
#include "gcap/kit/shape_inference.h"
#include "ops/nodes/op.h"

// Of an algorithm that may not have any: ONNX Runtime's limit for cudnn_conv_use_max_workspace = 0.
#define LIMITED_WORKSPACE_BYTES ((size_t)32 << 20)

typedef struct conv {
  gcap_conv2d_t* conv;
  bool has_bias;   // done by the convolution
  bool adds_bias;  // done by a kernel behind it
  bool adds_relu;
} conv_t;

bool gcap_node_conv_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const int rank = gcap_node_input(model, node, 0)->rank;
  if (rank < 3 || rank > 5 || gcap_node_input(model, node, 1)->rank != rank) return false;
  return gcap_node_activation_fits(node);
}

typedef enum axis { AXIS_H, AXIS_W, AXIS_D } axis_t;

// Puts the sizes of axis `from` where the options have those of axis `to`.
static gcap_status_t set_axis(const gcap_node_planning_t* planning, const gcap_window_t* window, int from, axis_t to,
                              gcap_conv2d_options_t* o) {
  const gcap_node_t* node = planning->node;
  const struct {
    const char* what;
    int64_t size;
    int* out_size;
  } sizes[] = {
      {"an axis of input 0", planning->inputs[0].shape[2 + from], (int*[]){&o->h, &o->w, &o->d}[to]},
      {"an axis of the window", window->size[from], (int*[]){&o->kernel_h, &o->kernel_w, &o->kernel_d}[to]},
      {"a stride", window->stride[from], (int*[]){&o->stride_h, &o->stride_w, &o->stride_d}[to]},
      {"a dilation", window->dilation[from], (int*[]){&o->dilation_h, &o->dilation_w, &o->dilation_d}[to]},
      {"a pad", window->pad_begin[from], (int*[]){&o->pad_h, &o->pad_w, &o->pad_d}[to]},
      {"a pad", window->pad_end[from], (int*[]){&o->pad_h_end, &o->pad_w_end, &o->pad_d_end}[to]},
  };
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, sizes[i].what, sizes[i].size, sizes[i].out_size));
  }
  return NULL;
}

static gcap_status_t set_shapes(const gcap_node_planning_t* planning, gcap_conv2d_options_t* options) {
  gcap_window_t window;
  GCAP_RETURN_IF_ERROR(gcap_infer_window(planning->node, planning->inputs, &window));
  const gcap_node_t* node = planning->node;
  const gcap_tensor_t *x = &planning->inputs[0], *weight = &planning->inputs[1];
  GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "the batch", x->shape[0], &options->n));
  GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "the number of channels", x->shape[1], &options->c));
  GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "the number of maps", weight->shape[0], &options->k));
  GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "group", gcap_node_int(node, "group", 1), &options->groups));
  options->h = options->w = options->kernel_h = options->kernel_w = 1;
  if (window.rank == 1) {
    return set_axis(planning, &window, 0, planning->kernels->options.conv1d_pad_to_nc1d ? AXIS_W : AXIS_H, options);
  }
  if (window.rank == 3) {
    // To gcap_conv2d_options_t a depth of 0 is none.
    if (x->shape[2] == 0) return GCAP_NODE_REFUSE(node, "axis 2 of input 0 is %d, allowed is 1 or more", 0);
    GCAP_RETURN_IF_ERROR(set_axis(planning, &window, 0, AXIS_D, options));
  }
  GCAP_RETURN_IF_ERROR(set_axis(planning, &window, window.rank - 2, AXIS_H, options));
  return set_axis(planning, &window, window.rank - 1, AXIS_W, options);
}

static void set_choices(const gcap_node_planning_t* planning, gcap_conv2d_options_t* options) {
  const gcap_kernel_options_t* wanted = &planning->kernels->options;
  options->dtype = planning->inputs[0].dtype;
  options->tf32 = options->dtype == GCAP_DTYPE_F32 && wanted->use_tf32;
  options->max_workspace_bytes = wanted->conv_use_max_workspace ? SIZE_MAX : LIMITED_WORKSPACE_BYTES;
  if (wanted->conv_search != GCAP_CONV_SEARCH_EXHAUSTIVE) return;
  options->search = GCAP_CONV2D_SEARCH_EXHAUSTIVE;
  options->search_stream = planning->resources->stream;
  options->search_scratch = planning->resources->scratch;
}

static gcap_status_t plan_conv(const gcap_node_planning_t* planning, conv_t* conv) {
  const bool has_bias = planning->node->num_inputs == 3, has_relu = gcap_node_has_relu(planning->node);
  const bool fuses = planning->kernels->options.fuse_conv_bias;
  gcap_conv2d_options_t options;
  gcap_conv2d_options_init(&options);
  GCAP_RETURN_IF_ERROR(set_shapes(planning, &options));
  set_choices(planning, &options);
  conv->has_bias = has_bias && fuses;
  conv->adds_bias = has_bias && !fuses;
  conv->adds_relu = has_relu && !fuses;
  options.no_bias = !conv->has_bias;
  options.relu = has_relu && fuses;
  GCAP_RETURN_IF_ERROR(gcap_stream_cudnn_handle(planning->resources->stream, &options.handle));
  return gcap_conv2d_create(&options, &conv->conv);
}

gcap_status_t gcap_node_conv_plan(const gcap_node_planning_t* planning, void** out_plan) {
  conv_t* conv = calloc(1, sizeof(*conv));
  if (conv == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node '%s'", planning->node->name);
  }
  gcap_status_t status = plan_conv(planning, conv);
  if (status != NULL) {
    free(conv);
    return status;
  }
  *out_plan = conv;
  return NULL;
}

void gcap_node_conv_end(void* plan) {
  conv_t* conv = plan;
  gcap_conv2d_destroy(conv->conv);
  free(conv);
}

// y += bias, one for each channel.
static gcap_status_t add_bias(gcap_stream_t* stream, const gcap_tensor_t* bias, const gcap_tensor_t* y) {
  gcap_tensor_t column = *bias;
  column.rank = y->rank - 1;
  for (int i = 1; i < column.rank; ++i) column.shape[i] = 1;
  return gcap_binary(stream, GCAP_BINARY_ADD, y, &column, y);
}

gcap_status_t gcap_node_conv(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const conv_t* conv = kernel->plan;
  gcap_stream_t* stream = context->resources.stream;
  const gcap_tensor_t* y = &context->outputs[0];
  void* workspace = NULL;
  gcap_conv2d_info_t info;
  gcap_conv2d_get_info(conv->conv, &info);
  GCAP_RETURN_IF_ERROR(gcap_node_take_workspace(context, info.workspace_bytes, &workspace));
  gcap_status_t status = gcap_conv2d_run(conv->conv, stream, context->inputs[0].data, context->inputs[1].data,
                                         conv->has_bias ? context->inputs[2].data : NULL, y->data, workspace);
  status = gcap_node_return_workspace(context, workspace, status);
  if (status == NULL && conv->adds_bias) status = add_bias(stream, &context->inputs[2], y);
  if (status == NULL && conv->adds_relu) status = gcap_unary(stream, GCAP_UNARY_RELU, y, y);
  return status;
}
