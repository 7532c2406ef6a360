// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU EP is an EP as any other: a table over a table of operators. It has no state, so any thread may run it.

#include "gcap/kit/cpu_ep.h"

#include "gcap/kit/ep_ops.h"
#include "gcap/kit/shape_inference.h"
#include "kit/cpu_ep/kernel.h"
#include "kit/cpu_ep/op.h"
#include "lib/internal/check_argument.h"

// The row that takes the node; NULL if there is none.
static const gcap_cpu_op_t* op_of(const gcap_model_t* model, const gcap_node_t* node) {
  const gcap_cpu_op_t* op = node->op_type != NULL ? gcap_cpu_op_find(node->op_type) : NULL;
  return op != NULL && gcap_cpu_op_accepts(op, model, node) ? op : NULL;
}

static bool supports(void* self, const gcap_model_t* model, const gcap_node_t* node) {
  (void)self;
  return op_of(model, node) != NULL;
}

static gcap_status_t unsupported(const gcap_node_t* node) {
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "EP 'cpu' does not support node '%s' (%s) with its types and attributes",
                     node->name, node->op_type);
}

static gcap_status_t create_kernel(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                   gcap_kernel_t* out_kernel) {
  (void)self;
  const gcap_cpu_op_t* op = op_of(model, node);
  return op != NULL ? gcap_cpu_kernel_create(op, model, node, out_kernel) : unsupported(node);
}

static gcap_input_place_t input_place(void* self, const gcap_model_t* model, const gcap_node_t* node, int input) {
  (void)self;
  const gcap_cpu_op_t* op = op_of(model, node);
  return op != NULL && gcap_cpu_op_reads_shape_only(op, input) ? GCAP_INPUT_SHAPE_ONLY : GCAP_INPUT_IN_EP_MEMORY;
}

static gcap_status_t infer_shapes(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                  const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  (void)self, (void)model;
  return gcap_infer_shapes(node, inputs, outputs);
}

gcap_status_t gcap_cpu_ep_create(gcap_ep_t** out_ep) {
  GCAP_RETURN_IF_NULL(out_ep);
  const gcap_ep_ops_t ops = {
      .struct_size = sizeof(gcap_ep_ops_t),
      .supports_concurrent_runs = true,
      .name = "cpu",
      .supports = supports,
      .create_kernel = create_kernel,
      .runs_on_host = true,
      .input_place = input_place,
      .infer_shapes = infer_shapes,
  };
  return gcap_ep_create(&ops, out_ep);
}
