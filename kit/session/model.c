// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// From the caller's model to one of our own. Every index is checked once, here, so that nothing later needs a check. A
// model reads a value only after the value was made, makes each value once, and every size that is not fixed has
// somebody who decides it: an input of the run, or the node that makes the value.
//
// Locking: none; a copy changes only while it is made.

#include "kit/session/model.h"

#include <stdlib.h>
#include <string.h>

gcap_status_t gcap_session_no_memory(void) {
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a session");
}

const char* gcap_session_symbol_name(const gcap_model_t* model, int64_t number) {
  return model->symbols[number] != NULL ? model->symbols[number] : "?";
}

static gcap_status_t copy_text(const char* text, const char** out_copy) {
  *out_copy = strdup(text);
  return *out_copy != NULL ? NULL : gcap_session_no_memory();
}

static gcap_status_t copy_name(const char* name, const char* kind, int index, const char** out_name) {
  if (name == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s %d has no name", kind, index);
  return copy_text(name, out_name);
}

// Copies value indices; each must be one of the model's values.
static gcap_status_t copy_indices(const gcap_model_t* model, const char* owner, const char* role, const int* indices,
                                  int count, const int** out_copy) {
  *out_copy = NULL;
  if (count < 0 || (count > 0 && indices == NULL)) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s: %d %ss given%s", owner, count, role,
                       indices == NULL ? " as NULL" : "");
  }
  for (int i = 0; i < count; ++i) {
    if (indices[i] >= 0 && indices[i] < model->num_values) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s: %s %d is value %d, the model has values 0..%d", owner, role, i,
                       indices[i], model->num_values - 1);
  }
  int* copy = malloc((size_t)(count > 0 ? count : 1) * sizeof(int));
  if (copy == NULL) return gcap_session_no_memory();
  if (count > 0) memcpy(copy, indices, (size_t)count * sizeof(int));
  *out_copy = copy;
  return NULL;
}

// --- Values ---------------------------------------------------------------------------------------------------------

static int64_t symbol_of(int64_t dimension) { return GCAP_DIM_SYMBOL(dimension); }  // the macro is its own inverse

gcap_status_t gcap_session_check_size(const gcap_value_t* value) {
  int64_t room = PTRDIFF_MAX / (int64_t)gcap_dtype_bytes(value->dtype);
  for (int i = 0; i < value->rank; ++i) {
    if (value->shape[i] > room) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "value '%s': dimension %d is %lld, allowed is 0..%lld", value->name, i,
                         (long long)value->shape[i], (long long)room);
    }
    if (value->shape[i] > 0) room /= value->shape[i];
  }
  return NULL;
}

static gcap_status_t check_dimension(const gcap_model_t* model, const gcap_value_t* value, int i) {
  const int64_t size = value->shape[i];
  if (size >= 0) return NULL;
  if (value->host_data != NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "value '%s': dimension %d is %lld, a constant's must be fixed",
                       value->name, i, (long long)size);
  }
  if (size == GCAP_DIM_INFERRED || symbol_of(size) < model->num_symbols) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "value '%s': dimension %d is %lld, which is symbol %lld; the model has %d",
                     value->name, i, (long long)size, (long long)symbol_of(size), model->num_symbols);
}

static gcap_status_t check_value(const gcap_model_t* model, const gcap_value_t* value) {
  if (gcap_dtype_bytes(value->dtype) == 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "value '%s': dtype is %d, allowed is %s (0) to %s (%d)", value->name,
                       (int)value->dtype, gcap_dtype_name(GCAP_DTYPE_F32), gcap_dtype_name(GCAP_DTYPE_U8),
                       (int)GCAP_DTYPE_U8);
  }
  if (value->rank < 0 || value->rank > GCAP_MAX_RANK) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "value '%s': rank is %d, allowed is 0..%d", value->name, value->rank,
                       GCAP_MAX_RANK);
  }
  for (int i = 0; i < value->rank; ++i) GCAP_RETURN_IF_ERROR(check_dimension(model, value, i));
  return gcap_session_check_size(value);
}

static gcap_status_t copy_values(const gcap_model_t* from, gcap_session_model_t* copy) {
  gcap_value_t* values = calloc((size_t)from->num_values, sizeof(*values));
  copy->facts = calloc((size_t)from->num_values, sizeof(*copy->facts));
  copy->model.values = values;
  if (values == NULL || copy->facts == NULL) return gcap_session_no_memory();
  copy->model.num_values = from->num_values;
  for (int i = 0; i < from->num_values; ++i) {
    const char* name = NULL;
    GCAP_RETURN_IF_ERROR(copy_name(from->values[i].name, "value", i, &name));
    values[i] = from->values[i];
    values[i].name = name;
    GCAP_RETURN_IF_ERROR(check_value(&copy->model, &values[i]));
    copy->facts[i].role = values[i].host_data != NULL ? GCAP_VALUE_CONSTANT : GCAP_VALUE_BETWEEN;
    copy->facts[i].maker = -1;
  }
  return NULL;
}

static gcap_status_t copy_symbols(const gcap_model_t* from, gcap_session_model_t* copy) {
  const int count = from->num_symbols;
  if (count < 0 || (count > 0 && from->symbols == NULL)) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "model: symbols is %s, num_symbols is %d",
                       from->symbols == NULL ? "NULL" : "not NULL", count);
  }
  const char** symbols = calloc((size_t)(count > 0 ? count : 1), sizeof(*symbols));
  copy->model.symbols = symbols;
  if (symbols == NULL) return gcap_session_no_memory();
  copy->model.num_symbols = count;
  for (int i = 0; i < count; ++i) {
    if (from->symbols[i] != NULL) GCAP_RETURN_IF_ERROR(copy_text(from->symbols[i], &symbols[i]));
  }
  return NULL;
}

// --- Inputs and outputs of the model --------------------------------------------------------------------------------

// Marks the model's inputs or outputs as bound by the caller.
static gcap_status_t bind_values(gcap_session_model_t* copy, const int* indices, int count, gcap_value_role_t role) {
  const char* kind = role == GCAP_VALUE_INPUT ? "input" : "output";
  for (int i = 0; i < count; ++i) {
    gcap_value_facts_t* facts = &copy->facts[indices[i]];
    if (facts->role != GCAP_VALUE_BETWEEN) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "model %s %d is value '%s', which is a constant or bound already", kind,
                         i, copy->model.values[indices[i]].name);
    }
    facts->role = role;
    facts->bound_index = i;
  }
  return NULL;
}

static bool input_has_symbol(const gcap_model_t* model, int64_t symbol) {
  for (int i = 0; i < model->num_inputs; ++i) {
    const gcap_value_t* value = &model->values[model->inputs[i]];
    for (int d = 0; d < value->rank; ++d) {
      if (value->shape[d] == GCAP_DIM_SYMBOL(symbol)) return true;
    }
  }
  return false;
}

// Every size of the value that is not fixed is decided by somebody.
static gcap_status_t check_decided(gcap_session_model_t* copy, int index) {
  const gcap_value_t* value = &copy->model.values[index];
  const bool is_input = copy->facts[index].role == GCAP_VALUE_INPUT;
  for (int d = 0; d < value->rank; ++d) {
    if (value->shape[d] >= 0) continue;
    if (is_input && value->shape[d] != GCAP_DIM_INFERRED) {
      copy->is_open = true;
    } else if (is_input) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                         "model input '%s': dimension %d is GCAP_DIM_INFERRED, but no node makes an input: give it a "
                         "symbol",
                         value->name, d);
    } else if (value->shape[d] != GCAP_DIM_INFERRED && !input_has_symbol(&copy->model, symbol_of(value->shape[d]))) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                         "value '%s': dimension %d is symbol '%s', which no input of the model has: nothing decides it",
                         value->name, d, gcap_session_symbol_name(&copy->model, symbol_of(value->shape[d])));
    }
  }
  return NULL;
}

static gcap_status_t copy_bound(const gcap_model_t* from, gcap_session_model_t* copy) {
  gcap_model_t* model = &copy->model;
  GCAP_RETURN_IF_ERROR(copy_indices(model, "model", "input", from->inputs, from->num_inputs, &model->inputs));
  GCAP_RETURN_IF_ERROR(copy_indices(model, "model", "output", from->outputs, from->num_outputs, &model->outputs));
  model->num_inputs = from->num_inputs;
  model->num_outputs = from->num_outputs;
  GCAP_RETURN_IF_ERROR(bind_values(copy, model->inputs, model->num_inputs, GCAP_VALUE_INPUT));
  GCAP_RETURN_IF_ERROR(bind_values(copy, model->outputs, model->num_outputs, GCAP_VALUE_OUTPUT));
  for (int i = 0; i < model->num_values; ++i) GCAP_RETURN_IF_ERROR(check_decided(copy, i));
  return NULL;
}

// --- Nodes ----------------------------------------------------------------------------------------------------------

static bool is_there(const gcap_value_facts_t* facts) {
  return facts->maker >= 0 || facts->role == GCAP_VALUE_INPUT || facts->role == GCAP_VALUE_CONSTANT;
}

// Follows the data: a value is read only when it is there, and made only once.
static gcap_status_t trace_node(gcap_session_model_t* copy, int index) {
  const gcap_node_t* node = &copy->model.nodes[index];
  for (int i = 0; i < node->num_inputs; ++i) {
    if (is_there(&copy->facts[node->inputs[i]])) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s' reads value '%s' before any node has made it", node->name,
                       copy->model.values[node->inputs[i]].name);
  }
  for (int i = 0; i < node->num_outputs; ++i) {
    if (is_there(&copy->facts[node->outputs[i]])) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s' makes value '%s', which is there already", node->name,
                         copy->model.values[node->outputs[i]].name);
    }
    copy->facts[node->outputs[i]].maker = index;
  }
  const int larger = node->num_inputs > node->num_outputs ? node->num_inputs : node->num_outputs;
  if (larger > copy->max_node_values) copy->max_node_values = larger;
  copy->num_node_inputs += node->num_inputs;
  return NULL;
}

static gcap_status_t copy_node(gcap_session_model_t* copy, const gcap_node_t* from, int index, gcap_node_t* node) {
  const gcap_model_t* model = &copy->model;
  GCAP_RETURN_IF_ERROR(copy_name(from->name, "node", index, &node->name));
  if (from->op_type == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s' has no op_type", node->name);
  GCAP_RETURN_IF_ERROR(copy_text(from->op_type, &node->op_type));
  GCAP_RETURN_IF_ERROR(copy_indices(model, node->name, "input", from->inputs, from->num_inputs, &node->inputs));
  GCAP_RETURN_IF_ERROR(copy_indices(model, node->name, "output", from->outputs, from->num_outputs, &node->outputs));
  node->num_inputs = from->num_inputs;
  node->num_outputs = from->num_outputs;
  node->attributes = from->attributes;
  return trace_node(copy, index);
}

static gcap_status_t copy_nodes(const gcap_model_t* from, gcap_session_model_t* copy) {
  gcap_node_t* nodes = calloc((size_t)from->num_nodes, sizeof(*nodes));
  copy->model.nodes = nodes;
  if (nodes == NULL) return gcap_session_no_memory();
  copy->model.num_nodes = from->num_nodes;
  for (int i = 0; i < from->num_nodes; ++i) GCAP_RETURN_IF_ERROR(copy_node(copy, &from->nodes[i], i, &nodes[i]));
  for (int i = 0; i < copy->model.num_outputs; ++i) {
    const int output = copy->model.outputs[i];
    if (copy->facts[output].maker >= 0) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "model output %d is value '%s', which no node makes", i,
                       copy->model.values[output].name);
  }
  return NULL;
}

// --- The whole ------------------------------------------------------------------------------------------------------

static gcap_status_t null_array(const char* field, int count) {
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "model: %s is NULL, num_%s is %d", field, field, count);
}

static gcap_status_t fill(const gcap_model_t* from, gcap_session_model_t* copy) {
  if (from->num_values < 1 || from->num_nodes < 1) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the model has %d values and %d nodes; at least one of each is needed",
                       from->num_values, from->num_nodes);
  }
  if (from->values == NULL) return null_array("values", from->num_values);
  if (from->nodes == NULL) return null_array("nodes", from->num_nodes);
  GCAP_RETURN_IF_ERROR(copy_symbols(from, copy));
  GCAP_RETURN_IF_ERROR(copy_values(from, copy));
  GCAP_RETURN_IF_ERROR(copy_bound(from, copy));
  return copy_nodes(from, copy);
}

gcap_status_t gcap_session_model_init(const gcap_model_t* model, gcap_session_model_t* out_copy) {
  *out_copy = (gcap_session_model_t){0};
  gcap_status_t status = fill(model, out_copy);
  if (status != NULL) gcap_session_model_deinit(out_copy);
  return status;
}

// What the copy owns is const to its readers.
static void free_const(const void* memory) { free((void*)memory); }

void gcap_session_model_deinit(gcap_session_model_t* copy) {
  const gcap_model_t* model = &copy->model;
  for (int i = 0; i < model->num_values; ++i) free_const(model->values[i].name);
  for (int i = 0; i < model->num_symbols; ++i) free_const(model->symbols[i]);
  for (int i = 0; i < model->num_nodes; ++i) {
    free_const(model->nodes[i].name);
    free_const(model->nodes[i].op_type);
    free_const(model->nodes[i].inputs);
    free_const(model->nodes[i].outputs);
  }
  free_const(model->values);
  free_const(model->symbols);
  free_const(model->nodes);
  free_const(model->inputs);
  free_const(model->outputs);
  free(copy->facts);
  *copy = (gcap_session_model_t){0};
}
