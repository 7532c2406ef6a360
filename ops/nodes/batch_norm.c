// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// BatchNormalization for inference, of any number of axes behind the channels: they are one axis for cuDNN.

#include "gcap/kit/ops/batch_norm.h"
#include "ops/nodes/op.h"

#define NUM_PARAMETERS 4

bool gcap_node_batch_norm_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  for (int i = 1; i <= NUM_PARAMETERS; ++i) {
    if (gcap_node_input(model, node, i)->rank != 1) return false;
  }
  return gcap_node_input(model, node, 0)->rank >= 2 && gcap_node_int(node, "training_mode", 0) == 0;
}

// A parameter has an element for each channel: inference looks at x alone.
static gcap_status_t check_parameters(const gcap_node_planning_t* planning) {
  const int64_t channels = planning->inputs[0].shape[1];
  for (int i = 1; i <= NUM_PARAMETERS; ++i) {
    const int64_t count = planning->inputs[i].shape[0];
    if (count == channels) continue;
    return GCAP_NODE_REFUSE(planning->node, "input %d has %lld elements, input 0 has %lld channels", i,
                            (long long)count, (long long)channels);
  }
  return NULL;
}

gcap_status_t gcap_node_batch_norm_plan(const gcap_node_planning_t* planning, void** out_plan) {
  GCAP_RETURN_IF_ERROR(check_parameters(planning));
  const gcap_node_t* node = planning->node;
  const gcap_tensor_t* x = &planning->inputs[0];
  gcap_batch_norm_options_t options;
  gcap_batch_norm_options_init(&options);
  int64_t behind = 1;
  for (int i = 2; i < x->rank; ++i) behind *= x->shape[i];
  GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "the batch", x->shape[0], &options.n));
  GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "the number of channels", x->shape[1], &options.c));
  GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "the size of a channel", behind, &options.h));
  options.w = 1;
  options.epsilon = gcap_node_float(node, "epsilon", 1e-5f);
  options.dtype = x->dtype;
  gcap_batch_norm_t* norm = NULL;
  GCAP_RETURN_IF_ERROR(gcap_batch_norm_create(&options, &norm));
  *out_plan = norm;
  return NULL;
}

void gcap_node_batch_norm_end(void* plan) { gcap_batch_norm_destroy(plan); }

gcap_status_t gcap_node_batch_norm(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  const gcap_tensor_t* in = context->inputs;
  return gcap_batch_norm_run(kernel->plan, context->resources.stream, in[0].data, in[1].data, in[2].data, in[3].data,
                             in[4].data, context->outputs[0].data);
}
