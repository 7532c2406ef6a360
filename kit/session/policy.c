// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Whether a graph would be all of a run. A graph records one EP's stream. What another EP does on a device, what is
// copied between them, and what the host computes from the content of this run's tensors, would be missing at each
// replay. What the host computes from shapes alone is done before the capture (program.c), and is not missed. Where the
// policy allows holes, what the host does and what is copied between it and the EP is in them. The nodes are looked at
// before there are kernels, and the kernels once they are made.
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

static bool allows_holes(const check_t* c) { return c->policy == GCAP_GRAPH_ALLOW_HOLES; }

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
    return REFUSAL(c, n, "is on another device EP; its policy, %s, allows nodes %son the host",
                   allows_holes(c) ? "GCAP_GRAPH_ALLOW_HOLES" : "GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES",
                   allows_holes(c) ? "" : "that compute shapes ");
  }
  const gcap_node_t* node = node_at(c, n);
  for (int i = 0; i < node->num_outputs && !allows_holes(c) && !c->program->is_folded[n]; ++i) {
    if (c->model->facts[node->outputs[i]].role != GCAP_VALUE_OUTPUT) continue;
    return REFUSAL(c, n, "makes the model's output '%s' on the host, which a replay would not write",
                   c->model->model.values[node->outputs[i]].name);
  }
  return NULL;
}

// The slot that the step reads on the host, and whose content a run decides; GCAP_NO_SLOT: none.
static int find_content(const check_t* c, const gcap_step_t* step) {
  for (int i = 0; i < node_at(c, step->node)->num_inputs; ++i) {
    if (step->inputs[i] == GCAP_NO_SLOT) continue;
    const gcap_slot_t* slot = &c->program->slots[step->inputs[i]];
    if (slot->space != GCAP_SPACE_HOST || slot->kind == GCAP_SLOT_CONSTANT || slot->kind == GCAP_SLOT_KNOWN) continue;
    return step->inputs[i];
  }
  return GCAP_NO_SLOT;
}

// The step is in the graph.
static gcap_status_t check_step(const check_t* c, const gcap_step_t* step) {
  if (allows_holes(c)) return NULL;
  if (step->is_copy) {
    return REFUSAL(c, step->node, "reads '%s' in %s, and the value is in %s: a copy between EPs is not in a graph",
                   value_name(c, step->from), space_name(c, step->to), space_name(c, step->from));
  }
  const int content = find_content(c, step);
  if (content != GCAP_NO_SLOT) {
    return REFUSAL(c, step->node,
                   "reads the content of '%s' on the host, which may be another in each run: a graph would keep that "
                   "of the captured one",
                   value_name(c, content));
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

// --- Kernels --------------------------------------------------------------------------------------------------------

bool gcap_policy_needs_hole(const gcap_step_t* step, int capturing, const gcap_kernel_t* kernels) {
  return step->is_copy || step->ep != capturing || kernels[step->node].not_capturable;
}

// A step that is captured reads nothing on the host that a hole, or the caller, makes anew for each run.
static gcap_status_t check_captured(const check_t* c, const gcap_step_t* step) {
  const int content = find_content(c, step);
  if (content == GCAP_NO_SLOT) return NULL;
  return REFUSAL(c, step->node,
                 "reads the content of '%s' on the host, which may be another in each run: a graph would keep that of "
                 "the captured one, since a capture comes before its holes; a kernel that says not_capturable is in a "
                 "hole, and reads it in each run",
                 value_name(c, content));
}

gcap_status_t gcap_policy_check_kernels(const gcap_session_model_t* model, gcap_ep_t* const* eps, const int* ep_of,
                                        const gcap_program_t* program, int capturing, gcap_graph_node_policy_t policy,
                                        const gcap_kernel_t* kernels) {
  const check_t c = {model, eps, ep_of, program, capturing, policy};
  bool is_any_captured = false;
  for (int i = 0; i < program->num_steps; ++i) {
    const gcap_step_t* step = &program->steps[i];
    if (!gcap_policy_needs_hole(step, capturing, kernels)) {
      is_any_captured = true;
      if (allows_holes(&c)) GCAP_RETURN_IF_ERROR(check_captured(&c, step));
    } else if (!allows_holes(&c)) {
      return REFUSAL(&c, step->node, "has a kernel that says not_capturable%s",
                     ", and only GCAP_GRAPH_ALLOW_HOLES leaves such a node to a hole");
    }
  }
  if (is_any_captured) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "EP '%s' cannot capture the model: each node would be in a hole, and none in a graph",
                     ep_name(&c, capturing));
}
