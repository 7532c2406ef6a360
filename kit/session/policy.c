// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Whether a graph would be all of a run. A graph records one EP's stream. What another EP does on a device, what is
// copied between them, and what the host computes from the content of this run's tensors, would be missing at each
// replay. What the host computes from shapes alone is done before the capture (program.c), and is not missed.
//
// Locking: none.

#include "kit/session/policy.h"

typedef struct check {
  const gcap_session_model_t* model;
  gcap_ep_t* const* eps;
  const int* ep_of;
  const gcap_program_t* program;
  int capturing;
  gcap_graph_node_policy_t policy;
} check_t;

static const gcap_node_t* node_at(const check_t* c, int n) { return &c->model->model.nodes[n]; }
static const char* ep_name(const check_t* c, int ep) { return gcap_ep_name(c->eps[ep]); }
static const char* value_name(const check_t* c, int slot) {
  return c->model->model.values[c->program->slots[slot].value].name;
}
static const char* space_name(const check_t* c, int slot) {
  const int space = c->program->slots[slot].space;
  return space == GCAP_SPACE_HOST ? "host memory" : ep_name(c, space);
}

#define REFUSAL(c, n, format, ...)                                                                             \
  GCAP_STATUS(GCAP_FAILED_PRECONDITION, "EP '%s' cannot capture the model: node '%s' (%s) on EP '%s' " format, \
              ep_name((c), (c)->capturing), node_at((c), (n))->name, node_at((c), (n))->op_type,               \
              ep_name((c), (c)->ep_of[n]), __VA_ARGS__)

// The node is on an EP where it may be.
static gcap_status_t check_ep(const check_t* c, int n) {
  const int ep = c->ep_of[n];
  if (ep == c->capturing) return NULL;
  if (c->policy == GCAP_GRAPH_ALL_NODES_ON_EP) {
    return REFUSAL(c, n, "is not on it, and its policy is %s", "GCAP_GRAPH_ALL_NODES_ON_EP");
  }
  if (!gcap_ep_runs_on_host(c->eps[ep])) {
    return REFUSAL(c, n, "is on another device EP; its policy, %s, allows nodes that compute shapes on the host",
                   "GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES");
  }
  const gcap_node_t* node = node_at(c, n);
  for (int i = 0; i < node->num_outputs && !c->program->is_folded[n]; ++i) {
    if (c->model->facts[node->outputs[i]].role != GCAP_VALUE_OUTPUT) continue;
    return REFUSAL(c, n, "makes the model's output '%s' on the host, which a replay would not write",
                   c->model->model.values[node->outputs[i]].name);
  }
  return NULL;
}

// The step is in the graph.
static gcap_status_t check_step(const check_t* c, const gcap_step_t* step) {
  if (step->is_copy) {
    return REFUSAL(c, step->node, "reads '%s' in %s, and the value is in %s: a copy between EPs is not in a graph",
                   value_name(c, step->from), space_name(c, step->to), space_name(c, step->from));
  }
  const gcap_node_t* node = node_at(c, step->node);
  for (int i = 0; i < node->num_inputs; ++i) {
    if (step->inputs[i] == GCAP_NO_SLOT) continue;
    const gcap_slot_t* slot = &c->program->slots[step->inputs[i]];
    if (slot->space != GCAP_SPACE_HOST || slot->kind == GCAP_SLOT_CONSTANT || slot->kind == GCAP_SLOT_KNOWN) continue;
    return REFUSAL(c, step->node,
                   "reads the content of '%s' on the host, which may be another in each run: a graph would keep that "
                   "of the captured one",
                   value_name(c, step->inputs[i]));
  }
  if (c->ep_of[step->node] == c->capturing) return NULL;
  return REFUSAL(c, step->node, "computes on the host in each run%s", ", which a replay would not");
}

gcap_status_t gcap_policy_check(const gcap_session_model_t* model, gcap_ep_t* const* eps, const int* ep_of,
                                const gcap_program_t* program, int capturing, gcap_graph_node_policy_t policy) {
  const check_t c = {model, eps, ep_of, program, capturing, policy};
  bool has_node = false;
  int step = 0;
  for (int n = 0; n < model->model.num_nodes; ++n) {
    has_node |= ep_of[n] == capturing;
    GCAP_RETURN_IF_ERROR(check_ep(&c, n));
    for (; step < program->num_steps && program->steps[step].node == n; ++step) {
      GCAP_RETURN_IF_ERROR(check_step(&c, &program->steps[step]));
    }
  }
  if (has_node) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "EP '%s' cannot capture the model: no node of the model is on it",
                     ep_name(&c, capturing));
}
