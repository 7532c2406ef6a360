// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// From a program to one that can run: the shapes of all values follow from those of the inputs, node by node, and each
// node gets a kernel that is made for its shapes. On the way the nodes that only the shapes decide are computed, since
// the shapes of later values may follow from what they make. Once the kernels are made, the holes are known.
//
// Locking: none; a plan changes only while it is made.

#include "kit/session/shape_plan.h"

#include <stdlib.h>
#include <string.h>

#include "kit/session/policy.h"
#include "kit/session/resources.h"
#include "kit/session/tensors.h"
#include "lib/internal/unwind.h"

// Parts of a run's memory on the host begin at multiples of this, which is enough for every type and a cache line.
#define HOST_ALIGNMENT 64

typedef struct builder {
  const gcap_session_parts_t* parts;
  gcap_shape_plan_t* plan;
  gcap_tensor_t *inputs, *outputs;  // of one node
  gcap_device_visit_t devices;
} builder_t;

static const gcap_node_t* node_at(const builder_t* b, int n) { return &b->plan->model.nodes[n]; }
static gcap_ep_t* ep_at(const builder_t* b, int n) { return b->parts->eps[b->parts->ep_of[n]]; }

// --- Shapes ---------------------------------------------------------------------------------------------------------

static gcap_status_t put_sizes(gcap_shape_plan_t* plan, const int64_t* sizes) {
  for (int v = 0; v < plan->model.num_values; ++v) {
    gcap_value_t* value = &plan->values[v];
    for (int d = 0; d < value->rank; ++d) {
      if (value->shape[d] >= 0 || value->shape[d] == GCAP_DIM_INFERRED) continue;
      value->shape[d] = sizes[GCAP_DIM_SYMBOL(value->shape[d])];  // the macro is its own inverse
    }
    GCAP_RETURN_IF_ERROR(gcap_session_check_size(value));
  }
  return NULL;
}

static gcap_status_t put_symbols(gcap_shape_plan_t* plan, const gcap_tensor_t* inputs) {
  int64_t* sizes = malloc(((size_t)plan->model.num_symbols + 1) * sizeof(*sizes));
  if (sizes == NULL) return gcap_session_no_memory();
  gcap_status_t status = gcap_tensors_solve(&plan->model, inputs, sizes);
  if (status == NULL) status = put_sizes(plan, sizes);
  free(sizes);
  return status;
}

static gcap_tensor_t tensor_of(const gcap_value_t* value, void* data) {
  gcap_tensor_t tensor = {.data = data, .dtype = value->dtype, .rank = value->rank};
  memcpy(tensor.shape, value->shape, sizeof(tensor.shape));
  return tensor;
}

// The value's content where it is known before a run: of a constant, or of what a shape node made.
static void* known_content(const gcap_shape_plan_t* plan, int value) {
  return plan->known[value] != NULL ? plan->known[value] : (void*)plan->values[value].host_data;
}

static void fill_tensors(builder_t* b, int n) {
  const gcap_node_t* node = node_at(b, n);
  for (int i = 0; i < node->num_inputs; ++i) {
    b->inputs[i] = tensor_of(&b->plan->values[node->inputs[i]], known_content(b->plan, node->inputs[i]));
  }
  for (int i = 0; i < node->num_outputs; ++i) b->outputs[i] = tensor_of(&b->plan->values[node->outputs[i]], NULL);
}

static bool is_known(const builder_t* b, int n) {
  const gcap_node_t* node = node_at(b, n);
  for (int i = 0; i < node->num_outputs; ++i) {
    const gcap_value_t* value = &b->plan->values[node->outputs[i]];
    for (int d = 0; d < value->rank; ++d) {
      if (value->shape[d] < 0) return false;
    }
  }
  return true;
}

// Takes what the EP inferred for one output: every open size, and no other than the model has.
static gcap_status_t take_inferred(const builder_t* b, int n, int output) {
  const gcap_node_t* node = node_at(b, n);
  gcap_value_t* value = &b->plan->values[node->outputs[output]];
  for (int d = 0; d < value->rank; ++d) {
    const int64_t size = b->outputs[output].shape[d];
    if (size >= 0 && (value->shape[d] < 0 || value->shape[d] == size)) {
      value->shape[d] = size;
      continue;
    }
    if (value->shape[d] >= 0) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                         "value '%s': dimension %d is %lld in the model, and EP '%s' infers %lld for node '%s' (%s)",
                         value->name, d, (long long)value->shape[d], gcap_ep_name(ep_at(b, n)), (long long)size,
                         node->name, node->op_type);
    }
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "value '%s': nothing decides dimension %d: EP '%s' infers no size for node '%s' (%s)",
                       value->name, d, gcap_ep_name(ep_at(b, n)), node->name, node->op_type);
  }
  return gcap_session_check_size(value);
}

static gcap_status_t infer(builder_t* b, int n) {
  if (is_known(b, n)) return NULL;
  const gcap_node_t* node = node_at(b, n);
  fill_tensors(b, n);
  gcap_status_t status = gcap_ep_infer_shapes(ep_at(b, n), &b->plan->model, node, b->inputs, b->outputs);
  if (status != NULL) {
    return gcap_status_annotate(status, gcap_status_code(status), "the shapes of node '%s'", node->name);
  }
  for (int i = 0; i < node->num_outputs; ++i) GCAP_RETURN_IF_ERROR(take_inferred(b, n, i));
  return NULL;
}

// --- Kernels --------------------------------------------------------------------------------------------------------

static gcap_status_t create_kernel(builder_t* b, int n) {
  const gcap_node_t* node = node_at(b, n);
  GCAP_RETURN_IF_ERROR(gcap_device_visit_enter(&b->devices, b->parts, b->parts->ep_of[n]));
  gcap_status_t status = gcap_ep_create_kernel(ep_at(b, n), &b->plan->model, node, &b->plan->kernels[n]);
  return gcap_status_annotate(status, gcap_status_code(status), "the kernel of node '%s'", node->name);
}

// Computes a node that only the shapes decide.
static gcap_status_t fold(builder_t* b, int n) {
  const gcap_node_t* node = node_at(b, n);
  GCAP_RETURN_IF_ERROR(create_kernel(b, n));
  fill_tensors(b, n);
  for (int i = 0; i < node->num_outputs; ++i) {
    const size_t bytes = gcap_tensor_bytes(&b->outputs[i]);
    b->outputs[i].data = b->plan->known[node->outputs[i]] = calloc(bytes > 0 ? bytes : 1, 1);
    if (b->outputs[i].data == NULL) return gcap_session_no_memory();
  }
  const gcap_kernel_context_t context = {.inputs = b->inputs, .outputs = b->outputs, .ep = ep_at(b, n)};
  gcap_status_t status = b->plan->kernels[n].compute(b->plan->kernels[n].self, &context);
  return gcap_status_annotate(status, gcap_status_code(status), "node '%s'", node->name);
}

static gcap_status_t plan_nodes(builder_t* b) {
  const int num_nodes = b->plan->model.num_nodes;
  const bool* is_folded = b->parts->program.is_folded;
  for (int n = 0; n < num_nodes; ++n) {
    GCAP_RETURN_IF_ERROR(infer(b, n));
    if (is_folded[n]) GCAP_RETURN_IF_ERROR(fold(b, n));
  }
  for (int n = 0; n < num_nodes; ++n) {
    if (!is_folded[n]) GCAP_RETURN_IF_ERROR(create_kernel(b, n));
  }
  return NULL;
}

// --- Holes ----------------------------------------------------------------------------------------------------------

static gcap_status_t plan_holes(builder_t* b) {
  const gcap_session_parts_t* parts = b->parts;
  gcap_shape_plan_t* plan = b->plan;
  if (!parts->captures) return NULL;
  gcap_status_t status = gcap_policy_check_kernels(&parts->model, parts->eps, parts->ep_of, &parts->program,
                                                   parts->main_ep, parts->policy, plan->kernels);
  if (status == NULL) return gcap_plan_holes_init(parts, plan->kernels, &plan->holes);
  plan->is_eager = true;
  return gcap_session_take_refusal(parts, parts->main_ep, status);
}

// --- Memory ---------------------------------------------------------------------------------------------------------

static void plan_memory(builder_t* b) {
  gcap_shape_plan_t* plan = b->plan;
  for (int s = 0; s < b->parts->program.num_slots; ++s) {
    const gcap_slot_t* slot = &b->parts->program.slots[s];
    gcap_tensor_t* tensor = &plan->tensors[s];
    *tensor = tensor_of(&plan->values[slot->value], NULL);
    if (slot->kind == GCAP_SLOT_CONSTANT) tensor->data = b->parts->constants[s];
    if (slot->kind == GCAP_SLOT_KNOWN) tensor->data = plan->known[slot->value];
    const bool is_made = b->parts->model.facts[slot->value].maker >= 0 || s >= plan->model.num_values;
    if (slot->kind != GCAP_SLOT_BETWEEN || !is_made) continue;
    const size_t bytes = gcap_tensor_bytes(tensor);
    plan->total_bytes += bytes;
    if (slot->space != GCAP_SPACE_HOST) continue;
    plan->host_offsets[s] = plan->host_bytes;
    plan->host_bytes += (bytes + HOST_ALIGNMENT - 1) / HOST_ALIGNMENT * HOST_ALIGNMENT;
  }
}

// --- The whole ------------------------------------------------------------------------------------------------------

static gcap_status_t allocate(builder_t* b) {
  const gcap_model_t* model = &b->parts->model.model;
  gcap_shape_plan_t* plan = b->plan;
  const size_t num_values = (size_t)model->num_values, num_slots = (size_t)b->parts->program.num_slots;
  const size_t num_node_values = (size_t)b->parts->model.max_node_values;
  plan->values = malloc(num_values * sizeof(*plan->values));
  plan->kernels = calloc((size_t)model->num_nodes, sizeof(*plan->kernels));
  plan->tensors = calloc(num_slots, sizeof(*plan->tensors));
  plan->known = calloc(num_values, sizeof(*plan->known));
  plan->host_offsets = calloc(num_slots, sizeof(*plan->host_offsets));
  plan->hold = gcap_hold_create();
  b->inputs = malloc((2 * num_node_values + 1) * sizeof(*b->inputs));
  if (plan->values == NULL || plan->kernels == NULL || plan->tensors == NULL || plan->known == NULL ||
      plan->host_offsets == NULL || plan->hold == NULL || b->inputs == NULL) {
    return gcap_session_no_memory();
  }
  b->outputs = b->inputs + num_node_values;
  memcpy(plan->values, model->values, num_values * sizeof(*plan->values));
  plan->model = *model;
  plan->model.values = plan->values;
  return NULL;
}

static gcap_status_t build(builder_t* b, const gcap_tensor_t* inputs) {
  GCAP_RETURN_IF_ERROR(allocate(b));
  if (inputs != NULL) GCAP_RETURN_IF_ERROR(put_symbols(b->plan, inputs));
  GCAP_RETURN_IF_ERROR(plan_nodes(b));
  GCAP_RETURN_IF_ERROR(plan_holes(b));
  plan_memory(b);
  return NULL;
}

// A plan that is not handed out is ended; a shape node's compute need not return.
static void builder_deinit(builder_t* b) {
  free(b->inputs);
  gcap_status_ignore(gcap_device_visit_leave(&b->devices));  // nothing is left to leave, or an exception tells
  gcap_shape_plan_destroy(b->plan, b->parts);
}

gcap_status_t gcap_shape_plan_create(const gcap_session_parts_t* parts, const gcap_tensor_t* inputs,
                                     gcap_shape_plan_t** out_plan) {
  *out_plan = NULL;
  GCAP_AT_SCOPE_END(builder_deinit) builder_t b = {.parts = parts, .plan = calloc(1, sizeof(gcap_shape_plan_t))};
  if (b.plan == NULL) return gcap_session_no_memory();
  gcap_status_t status = build(&b, inputs);
  status = gcap_status_join(status, gcap_device_visit_leave(&b.devices));
  if (status != NULL) return status;
  *out_plan = b.plan;
  b.plan = NULL;
  return NULL;
}

void gcap_shape_plan_destroy(gcap_shape_plan_t* plan, const gcap_session_parts_t* parts) {
  if (plan == NULL) return;
  for (int n = 0; plan->kernels != NULL && n < parts->model.model.num_nodes; ++n) {
    if (plan->kernels[n].destroy != NULL) plan->kernels[n].destroy(plan->kernels[n].self);
  }
  for (int v = 0; plan->known != NULL && v < parts->model.model.num_values; ++v) free(plan->known[v]);
  free(plan->values);
  free(plan->kernels);
  free(plan->tensors);
  free(plan->known);
  free(plan->host_offsets);
  gcap_plan_holes_deinit(&plan->holes);
  if (plan->hold != NULL) gcap_hold_let_go(plan->hold);
  free(plan);
}
