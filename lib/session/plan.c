// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// From the caller's model to a plan of our own. Every index is checked once, here, so that a run needs no check. A plan
// reads a value only after the value was made, and makes each value once.

#include "lib/session/plan.h"

#include <stdlib.h>
#include <string.h>

static gcap_status_t no_memory(void) { return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a session"); }

static gcap_status_t copy_name(const char* name, const char* kind, int index, char** out_name) {
  if (name == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s %d has no name", kind, index);
  *out_name = strdup(name);
  return *out_name != NULL ? NULL : no_memory();
}

// Copies value indices; each must be one of the model's values.
static gcap_status_t copy_indices(const gcap_plan_t* plan, const char* owner, const char* role, const int* indices,
                                  int count, int** out_copy) {
  *out_copy = NULL;
  if (count < 0 || (count > 0 && indices == NULL)) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s: %d %ss given%s", owner, count, role,
                       indices == NULL ? " as NULL" : "");
  }
  for (int i = 0; i < count; ++i) {
    if (indices[i] >= 0 && indices[i] < plan->num_values) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s: %s %d is value %d, the model has values 0..%d", owner, role, i,
                       indices[i], plan->num_values - 1);
  }
  *out_copy = malloc((size_t)(count > 0 ? count : 1) * sizeof(int));
  if (*out_copy == NULL) return no_memory();
  if (count > 0) memcpy(*out_copy, indices, (size_t)count * sizeof(int));
  return NULL;
}

static gcap_status_t init_value(const gcap_value_t* from, int index, gcap_plan_value_t* value) {
  GCAP_RETURN_IF_ERROR(copy_name(from->name, "value", index, &value->name));
  if (gcap_dtype_bytes(from->dtype) == 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "value '%s': dtype is %d, allowed is %s (0) to %s (%d)", value->name,
                       (int)from->dtype, gcap_dtype_name(GCAP_DTYPE_F32), gcap_dtype_name(GCAP_DTYPE_BOOL),
                       (int)GCAP_DTYPE_BOOL);
  }
  if (from->rank < 0 || from->rank > GCAP_MAX_RANK) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "value '%s': rank is %d, allowed is 0..%d", value->name, from->rank,
                       GCAP_MAX_RANK);
  }
  int64_t room = PTRDIFF_MAX / (int64_t)gcap_dtype_bytes(from->dtype);
  for (int i = 0; i < from->rank; ++i) {
    if (from->shape[i] < 0 || from->shape[i] > room) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "value '%s': dimension %d is %lld, allowed is 0..%lld", value->name, i,
                         (long long)from->shape[i], (long long)room);
    }
    if (from->shape[i] > 0) room /= from->shape[i];
  }
  value->tensor = (gcap_tensor_t){.dtype = from->dtype, .rank = from->rank};
  memcpy(value->tensor.shape, from->shape, sizeof(from->shape));
  value->storage = from->host_data != NULL ? GCAP_PLAN_CONSTANT : GCAP_PLAN_BETWEEN;
  value->last_reader = -1;
  return NULL;
}

// Marks the model's inputs or outputs as bound by the caller.
static gcap_status_t bind_values(gcap_plan_t* plan, const int* indices, int count, gcap_plan_storage_t storage) {
  const char* role = storage == GCAP_PLAN_INPUT ? "input" : "output";
  for (int i = 0; i < count; ++i) {
    gcap_plan_value_t* value = &plan->values[indices[i]];
    if (value->storage != GCAP_PLAN_BETWEEN) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "model %s %d is value '%s', which is a constant or bound already", role,
                         i, value->name);
    }
    value->storage = storage;
    value->bound_index = i;
  }
  return NULL;
}

// Follows the data: a value is read only when it is there, and made only once.
static gcap_status_t trace_node(gcap_plan_t* plan, int index) {
  gcap_plan_node_t* node = &plan->nodes[index];
  for (int i = 0; i < node->num_inputs; ++i) {
    gcap_plan_value_t* value = &plan->values[node->inputs[i]];
    bool is_there = value->is_made || value->storage == GCAP_PLAN_INPUT || value->storage == GCAP_PLAN_CONSTANT;
    if (!is_there) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s' reads value '%s' before any node has made it", node->name,
                         value->name);
    }
    value->last_reader = index;
  }
  for (int i = 0; i < node->num_outputs; ++i) {
    gcap_plan_value_t* value = &plan->values[node->outputs[i]];
    if (value->is_made || value->storage == GCAP_PLAN_INPUT || value->storage == GCAP_PLAN_CONSTANT) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s' makes value '%s', which is there already", node->name,
                         value->name);
    }
    value->is_made = true;
  }
  int larger = node->num_inputs > node->num_outputs ? node->num_inputs : node->num_outputs;
  if (larger > plan->max_node_values) plan->max_node_values = larger;
  return NULL;
}

static gcap_status_t init_node(gcap_plan_t* plan, const gcap_node_t* from, int index) {
  gcap_plan_node_t* node = &plan->nodes[index];
  GCAP_RETURN_IF_ERROR(copy_name(from->name, "node", index, &node->name));
  if (from->op_type == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s' has no op_type", node->name);
  GCAP_RETURN_IF_ERROR(copy_indices(plan, node->name, "input", from->inputs, from->num_inputs, &node->inputs));
  GCAP_RETURN_IF_ERROR(copy_indices(plan, node->name, "output", from->outputs, from->num_outputs, &node->outputs));
  node->num_inputs = from->num_inputs;
  node->num_outputs = from->num_outputs;
  return trace_node(plan, index);
}

static gcap_status_t null_array(const char* field, int count) {
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "model: %s is NULL, num_%s is %d", field, field, count);
}

static gcap_status_t fill(const gcap_model_t* model, gcap_plan_t* plan) {
  if (model->num_values < 1 || model->num_nodes < 1) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the model has %d values and %d nodes; at least one of each is needed",
                       model->num_values, model->num_nodes);
  }
  if (model->values == NULL) return null_array("values", model->num_values);
  if (model->nodes == NULL) return null_array("nodes", model->num_nodes);
  plan->values = calloc((size_t)model->num_values, sizeof(*plan->values));
  plan->nodes = calloc((size_t)model->num_nodes, sizeof(*plan->nodes));
  if (plan->values == NULL || plan->nodes == NULL) return no_memory();
  plan->num_values = model->num_values;
  plan->num_nodes = model->num_nodes;
  for (int i = 0; i < model->num_values; ++i) {
    GCAP_RETURN_IF_ERROR(init_value(&model->values[i], i, &plan->values[i]));
  }
  GCAP_RETURN_IF_ERROR(copy_indices(plan, "model", "input", model->inputs, model->num_inputs, &plan->inputs));
  GCAP_RETURN_IF_ERROR(copy_indices(plan, "model", "output", model->outputs, model->num_outputs, &plan->outputs));
  plan->num_inputs = model->num_inputs;
  plan->num_outputs = model->num_outputs;
  GCAP_RETURN_IF_ERROR(bind_values(plan, plan->inputs, plan->num_inputs, GCAP_PLAN_INPUT));
  GCAP_RETURN_IF_ERROR(bind_values(plan, plan->outputs, plan->num_outputs, GCAP_PLAN_OUTPUT));
  for (int i = 0; i < model->num_nodes; ++i) GCAP_RETURN_IF_ERROR(init_node(plan, &model->nodes[i], i));
  for (int i = 0; i < plan->num_outputs; ++i) {
    const gcap_plan_value_t* value = &plan->values[plan->outputs[i]];
    if (value->is_made) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "model output %d is value '%s', which no node makes", i, value->name);
  }
  return NULL;
}

gcap_status_t gcap_plan_init(const gcap_model_t* model, gcap_plan_t* out_plan) {
  *out_plan = (gcap_plan_t){0};
  gcap_status_t status = fill(model, out_plan);
  if (status != NULL) gcap_plan_deinit(out_plan);
  return status;
}

void gcap_plan_deinit(gcap_plan_t* plan) {
  for (int i = 0; i < plan->num_values; ++i) free(plan->values[i].name);
  for (int i = 0; i < plan->num_nodes; ++i) {
    free(plan->nodes[i].name);
    free(plan->nodes[i].inputs);
    free(plan->nodes[i].outputs);
  }
  free(plan->values);
  free(plan->nodes);
  free(plan->inputs);
  free(plan->outputs);
  *plan = (gcap_plan_t){0};
}
