// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// LSTM, GRU and RNN. Each input but the data has one shape, which the data, the recurrent weights and the attributes
// decide. What a node leaves out before others is of shape [0].

#include <string.h>

#include "kit/shape/infer.h"
#include "kit/shape/inner.h"

// Sizes of one node.
typedef struct recurrent {
  int64_t gates;  // rows of weights for each unit
  int64_t steps, batch, features, directions, hidden;
  bool batch_first;
} recurrent_t;

static gcap_status_t read_attributes(const gcap_node_t* node, recurrent_t* out) {
  const char* direction = gcap_node_string(node, "direction", "forward");
  const bool both = strcmp(direction, "bidirectional") == 0;
  const bool one = strcmp(direction, "forward") == 0 || strcmp(direction, "reverse") == 0;
  if (!one && !both) {
    return GCAP_SHAPE_REFUSE(node, "direction is %s, allowed is forward, reverse or bidirectional", direction);
  }
  const int64_t layout = gcap_node_int(node, "layout", 0);
  if (layout != 0 && layout != 1) {
    return GCAP_SHAPE_REFUSE(node, "layout is %lld, allowed is 0 or 1", (long long)layout);
  }
  out->gates = strcmp(node->op_type, "LSTM") == 0 ? 4 : strcmp(node->op_type, "GRU") == 0 ? 3 : 1;
  out->directions = both ? 2 : 1;
  out->batch_first = layout == 1;
  return NULL;
}

// The number of units is what the recurrent weights have; the attribute may say it again.
static gcap_status_t read_sizes(const gcap_node_t* node, const gcap_tensor_t* inputs, recurrent_t* out) {
  const gcap_tensor_t *x = &inputs[0], *weights = &inputs[2];
  if (x->rank != 3) return GCAP_SHAPE_REFUSE(node, "input 0 has rank %d, allowed is 3", x->rank);
  if (weights->rank != 3) return GCAP_SHAPE_REFUSE(node, "input 2 has rank %d, allowed is 3", weights->rank);
  out->steps = x->shape[out->batch_first ? 1 : 0];
  out->batch = x->shape[out->batch_first ? 0 : 1];
  out->features = x->shape[2];
  out->hidden = weights->shape[2];
  if (out->hidden > INT32_MAX) {
    return GCAP_SHAPE_REFUSE(node, "dimension 2 of input 2 is %lld, allowed is 0..%d", (long long)out->hidden,
                             INT32_MAX);
  }
  const int64_t said = gcap_node_int(node, "hidden_size", out->hidden);
  if (said == out->hidden) return NULL;
  return GCAP_SHAPE_REFUSE(node, "hidden_size is %lld, dimension 2 of input 2 is %lld", (long long)said,
                           (long long)out->hidden);
}

static gcap_status_t check_input(const gcap_node_t* node, int input, const gcap_tensor_t* tensor,
                                 const gcap_shape_t* expected) {
  if (tensor->rank != expected->rank) {
    return GCAP_SHAPE_REFUSE(node, "input %d has rank %d, allowed is %d", input, tensor->rank, expected->rank);
  }
  for (int i = 0; i < expected->rank; ++i) {
    if (tensor->shape[i] == expected->at[i]) continue;
    return GCAP_SHAPE_REFUSE(node, "dimension %d of input %d is %lld, the other inputs and attributes give %lld", i,
                             input, (long long)tensor->shape[i], (long long)expected->at[i]);
  }
  return NULL;
}

// The state of all directions after a step.
static gcap_shape_t state_of(const recurrent_t* r) {
  gcap_shape_t shape = {.rank = 3, .at = {r->directions, r->batch, r->hidden}};
  if (r->batch_first) shape.at[0] = r->batch, shape.at[1] = r->directions;
  return shape;
}

static gcap_status_t check_inputs(const gcap_node_t* node, const gcap_tensor_t* inputs, const recurrent_t* r) {
  const int64_t rows = r->gates * r->hidden;
  const gcap_shape_t state = state_of(r);
  const gcap_shape_t expected[] = {{.rank = 3},  // X, which decides
                                   {.rank = 3, .at = {r->directions, rows, r->features}},
                                   {.rank = 3, .at = {r->directions, rows, r->hidden}},
                                   {.rank = 2, .at = {r->directions, 2 * rows}},
                                   {.rank = 1, .at = {r->batch}},
                                   state,
                                   state,
                                   {.rank = 2, .at = {r->directions, 3 * r->hidden}}};
  for (int i = 1; i < node->num_inputs; ++i) {
    if (i > 2 && gcap_shape_is_left_out(inputs[i].rank, inputs[i].shape)) continue;
    GCAP_RETURN_IF_ERROR(check_input(node, i, &inputs[i], &expected[i]));
  }
  return NULL;
}

gcap_status_t gcap_infer_recurrent(const gcap_node_t* node, const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  recurrent_t r = {.gates = 0};
  GCAP_RETURN_IF_ERROR(read_attributes(node, &r));
  GCAP_RETURN_IF_ERROR(read_sizes(node, inputs, &r));
  GCAP_RETURN_IF_ERROR(check_inputs(node, inputs, &r));
  const int most = strcmp(node->op_type, "LSTM") == 0 ? 3 : 2;
  if (node->num_outputs > most) {
    return GCAP_SHAPE_REFUSE(node, "it has %d outputs, allowed is 1..%d", node->num_outputs, most);
  }
  const gcap_shape_t state = state_of(&r);
  gcap_shape_t all = {.rank = 4, .at = {r.steps, r.directions, r.batch, r.hidden}};
  if (r.batch_first) all.at[0] = r.batch, all.at[1] = r.steps, all.at[2] = r.directions;
  for (int i = 0; i < node->num_outputs; ++i) {
    if (i < node->num_outputs - 1 && gcap_shape_is_left_out(outputs[i].rank, outputs[i].shape)) continue;
    GCAP_RETURN_IF_ERROR(gcap_shape_give(node, i, i == 0 ? &all : &state, &outputs[i]));
  }
  return NULL;
}
