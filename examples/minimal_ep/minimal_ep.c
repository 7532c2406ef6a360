// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// An EP is its kernels. What every provider needs (streams, scratch, warm-up, capture, replay, copies) its runtime
// does: the ops table below names the runtime, and says which nodes the EP runs and how their kernels are made. Here
// the kernels are gcap's own (gcap/kit/ops/nodes.h); an EP with kernels of its own answers the same three questions.
// Each kernel plans its node once, before any capture, and afterwards only issues work, so it is as legal inside a
// capture as outside.

#include "examples/minimal_ep/minimal_ep.h"

#include <stdlib.h>

#include "gcap/kit/ops/nodes.h"
#include "gcap/kit/shape_inference.h"

typedef struct minimal_ep {
  gcap_runtime_t* runtime;
  gcap_node_kernels_t* kernels;
} minimal_ep_t;

static bool supports(void* self, const gcap_model_t* model, const gcap_node_t* node) {
  return gcap_node_kernels_supports(((minimal_ep_t*)self)->kernels, model, node);
}

static gcap_status_t create_kernel(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                   gcap_kernel_t* out_kernel) {
  const minimal_ep_t* ep = self;
  gcap_run_resources_t resources;  // of this thread: an exhaustive search needs a stream and scratch
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(ep->runtime, &resources));
  return gcap_node_kernels_create_kernel(ep->kernels, &resources, model, node, out_kernel);
}

static gcap_input_place_t input_place(void* self, const gcap_model_t* model, const gcap_node_t* node, int input) {
  return gcap_node_kernels_input_place(((minimal_ep_t*)self)->kernels, model, node, input);
}

static gcap_status_t infer_shapes(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                  const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  (void)self, (void)model;
  return gcap_infer_shapes(node, inputs, outputs);
}

static gcap_graph_node_policy_t policy(const void* self) {
  (void)self;
  return GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES;
}

// The kernels' handles go after the runtime, whose graphs need them. A runtime that refuses is whole, and so is the EP.
static gcap_status_t destroy(void* self) {
  minimal_ep_t* ep = self;
  gcap_status_t status = gcap_runtime_destroy(ep->runtime);
  if (status != NULL && gcap_status_code(status) != GCAP_LEAKED) return status;
  status = gcap_status_join(status, gcap_node_kernels_destroy(ep->kernels));
  free(ep);
  return gcap_status_annotate(status, GCAP_LEAKED, "the EP is gone");
}

gcap_status_t minimal_ep_create(const gcap_options_t* options, gcap_ep_t** out_ep) {
  *out_ep = NULL;
  minimal_ep_t* ep = calloc(1, sizeof(*ep));
  if (ep == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for an EP");
  gcap_status_t status = gcap_runtime_create(options, &ep->runtime);
  if (status == NULL) status = gcap_node_kernels_create(options->device_id, &options->kernels, &ep->kernels);
  if (status != NULL) return gcap_status_join(status, destroy(ep));
  const gcap_ep_ops_t ops = {
      .struct_size = sizeof(gcap_ep_ops_t),
      .name = "minimal",
      .self = ep,
      .supports = supports,
      .create_kernel = create_kernel,
      .input_place = input_place,
      .infer_shapes = infer_shapes,
      .graph_capture_node_assignment_policy = policy,
      .destroy = destroy,
      .runtime = ep->runtime,
  };
  status = gcap_ep_create(&ops, out_ep);
  return status == NULL ? NULL : gcap_status_join(status, destroy(ep));
}
