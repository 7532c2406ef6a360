// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the functions of several operators need.

#include <limits.h>
#include <string.h>

#include "gcap/scratch.h"
#include "ops/nodes/op.h"

const gcap_value_t* gcap_node_input(const gcap_model_t* model, const gcap_node_t* node, int input) {
  return &model->values[node->inputs[input]];
}

bool gcap_node_has_relu(const gcap_node_t* node) {
  return strcmp(gcap_node_string(node, "activation", ""), "Relu") == 0;
}

bool gcap_node_activation_fits(const gcap_node_t* node) {
  return !gcap_node_has(node, "activation") || gcap_node_has_relu(node);
}

gcap_status_t gcap_node_int_size(const gcap_node_t* node, const char* what, int64_t size, int* out_size) {
  *out_size = 0;
  if (size < 0 || size > INT_MAX) {
    return GCAP_NODE_REFUSE(node, "%s is %lld, allowed is up to %d", what, (long long)size, INT_MAX);
  }
  *out_size = (int)size;
  return NULL;
}

gcap_status_t gcap_node_window_side(const gcap_node_t* node, const gcap_window_t* window, int64_t size, int i,
                                    gcap_window_side_t* out_side) {
  gcap_window_side_t side;
  const struct {
    const char* what;
    int64_t size;
    int32_t* out_size;
  } sizes[] = {{"an axis of input 0", size, &side.input},
               {"an axis of output 0", window->count[i], &side.output},
               {"an axis of the window", window->size[i], &side.kernel},
               {"a stride", window->stride[i], &side.stride},
               {"a dilation", window->dilation[i], &side.dilation},
               {"a pad", window->pad_begin[i], &side.pad}};
  for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); ++k) {
    GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, sizes[k].what, sizes[k].size, sizes[k].out_size));
  }
  *out_side = side;
  return NULL;
}

gcap_status_t gcap_node_take_workspace(const gcap_kernel_context_t* context, size_t bytes, void** out_workspace) {
  *out_workspace = NULL;
  if (bytes == 0) return NULL;
  return gcap_scratch_alloc(context->resources.scratch, bytes, context->resources.stream, out_workspace);
}

gcap_status_t gcap_node_return_workspace(const gcap_kernel_context_t* context, void* workspace, gcap_status_t status) {
  if (workspace == NULL) return status;
  return gcap_status_join(status, gcap_scratch_free(context->resources.scratch, workspace));
}
