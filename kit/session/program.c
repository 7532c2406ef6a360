// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// From nodes on EPs to the steps of a run. A value lies in the space of the EP that makes it; where another space reads
// it, a copy is a step of its own, once for each space, before the first node that reads it there. An input lies where
// the first device reads it, or on the host if only the host does.
//
// A node on the host whose inputs are all shapes, constants, or made by such nodes, is no step: its result follows from
// the shapes, and is computed when these are first seen (shape_plan.c). So a capture, which records no work of the
// host, needs none of it. A node that makes an output of the model is always a step, since each run writes its outputs.
//
// Locking: none; a program changes only while it is made.

#include "kit/session/program.h"

#include <stdlib.h>

typedef struct builder {
  const gcap_session_model_t* model;
  gcap_ep_t* const* eps;
  size_t num_eps;
  const int* ep_of;
  gcap_program_t* program;
  int* slot_in;  // [num_values][1 + num_eps]: the slot of a value in a space, or GCAP_NO_SLOT
  int num_inputs;
} builder_t;

static int space_of(const builder_t* b, int ep) { return gcap_ep_runs_on_host(b->eps[ep]) ? GCAP_SPACE_HOST : ep; }

static int* slot_in(const builder_t* b, int value, int space) {
  return &b->slot_in[(size_t)value * (1 + b->num_eps) + (size_t)(1 + space)];
}

// The space in which the node reads the input's content. `*out_reads`: whether it does.
static int reads_in(const builder_t* b, int node, int input, bool* out_reads) {
  const gcap_model_t* model = &b->model->model;
  const int ep = b->ep_of[node];
  const gcap_input_place_t place = gcap_ep_input_place(b->eps[ep], model, &model->nodes[node], input);
  *out_reads = place != GCAP_INPUT_SHAPE_ONLY;
  return place == GCAP_INPUT_IN_EP_MEMORY ? space_of(b, ep) : GCAP_SPACE_HOST;
}

// --- Where values lie -----------------------------------------------------------------------------------------------

// Where the caller binds an input. One whose content nobody reads may be anywhere: a device's memory, as for the
// others.
static int space_of_input(const builder_t* b, int value) {
  const gcap_model_t* model = &b->model->model;
  bool is_read = false;
  int first_device = GCAP_SPACE_HOST;
  for (int n = 0; n < model->num_nodes; ++n) {
    if (first_device == GCAP_SPACE_HOST) first_device = space_of(b, b->ep_of[n]);
    for (int i = 0; i < model->nodes[n].num_inputs; ++i) {
      if (model->nodes[n].inputs[i] != value) continue;
      bool reads = false;
      const int space = reads_in(b, n, i, &reads);
      if (reads && space != GCAP_SPACE_HOST) return space;
      is_read |= reads;
    }
  }
  return is_read ? GCAP_SPACE_HOST : first_device;
}

static void add_slot(builder_t* b, int value, int space, gcap_slot_kind_t kind) {
  gcap_program_t* program = b->program;
  *slot_in(b, value, space) = program->num_slots;
  program->slots[program->num_slots++] = (gcap_slot_t){.value = value, .space = space, .kind = kind, .last_reader = -1};
}

static void place_values(builder_t* b) {
  for (int v = 0; v < b->model->model.num_values; ++v) {
    const gcap_value_facts_t* facts = &b->model->facts[v];
    const bool is_made = facts->maker >= 0;
    switch (facts->role) {
      case GCAP_VALUE_CONSTANT: add_slot(b, v, GCAP_SPACE_HOST, GCAP_SLOT_CONSTANT); break;
      case GCAP_VALUE_INPUT: add_slot(b, v, space_of_input(b, v), GCAP_SLOT_BOUND); break;
      case GCAP_VALUE_OUTPUT: add_slot(b, v, space_of(b, b->ep_of[facts->maker]), GCAP_SLOT_BOUND); break;
      case GCAP_VALUE_BETWEEN:
        add_slot(b, v, is_made ? space_of(b, b->ep_of[facts->maker]) : GCAP_SPACE_HOST,
                 is_made && b->program->is_folded[facts->maker] ? GCAP_SLOT_KNOWN : GCAP_SLOT_BETWEEN);
    }
  }
}

// --- Nodes that only the shapes decide ------------------------------------------------------------------------------

static bool can_fold(const builder_t* b, int n) {
  const gcap_node_t* node = &b->model->model.nodes[n];
  if (space_of(b, b->ep_of[n]) != GCAP_SPACE_HOST) return false;
  for (int i = 0; i < node->num_outputs; ++i) {
    if (b->model->facts[node->outputs[i]].role == GCAP_VALUE_OUTPUT) return false;
  }
  for (int i = 0; i < node->num_inputs; ++i) {
    const gcap_value_facts_t* facts = &b->model->facts[node->inputs[i]];
    bool reads = false;
    reads_in(b, n, i, &reads);
    if (!reads || facts->role == GCAP_VALUE_CONSTANT) continue;
    if (facts->maker < 0 || !b->program->is_folded[facts->maker]) return false;
  }
  return true;
}

// --- Steps ----------------------------------------------------------------------------------------------------------

static gcap_step_t* add_step(builder_t* b, int node, int ep) {
  gcap_step_t* step = &b->program->steps[b->program->num_steps++];
  *step = (gcap_step_t){.node = node, .ep = ep, .inputs = b->program->inputs + b->num_inputs};
  return step;
}

// The slot of the value in the space. If there is none, a copy makes it, or, of a constant, the session.
static int need(builder_t* b, int node, int value, int space) {
  const int home = value;
  if (*slot_in(b, value, space) == GCAP_NO_SLOT) {
    const bool is_constant = b->program->slots[home].kind == GCAP_SLOT_CONSTANT;
    add_slot(b, value, space, is_constant ? GCAP_SLOT_CONSTANT : GCAP_SLOT_BETWEEN);
    if (!is_constant) {
      // The device that the copy ends on issues it, or else the one that it leaves.
      gcap_step_t* copy = add_step(b, node, space != GCAP_SPACE_HOST ? space : b->program->slots[home].space);
      copy->is_copy = true;
      copy->from = home;
      copy->to = *slot_in(b, value, space);
      b->program->slots[home].last_reader = b->program->num_steps - 1;
      ++b->program->num_copies;
    }
  }
  return *slot_in(b, value, space);
}

static void add_node(builder_t* b, int n) {
  const gcap_node_t* node = &b->model->model.nodes[n];
  int* inputs = b->program->inputs + b->num_inputs;
  for (int i = 0; i < node->num_inputs; ++i) {
    bool reads = false;
    const int space = reads_in(b, n, i, &reads);
    inputs[i] = reads ? need(b, n, node->inputs[i], space) : GCAP_NO_SLOT;
  }
  add_step(b, n, b->ep_of[n]);
  b->num_inputs += node->num_inputs;
  for (int i = 0; i < node->num_inputs; ++i) {
    if (inputs[i] != GCAP_NO_SLOT) b->program->slots[inputs[i]].last_reader = b->program->num_steps - 1;
  }
}

// --- The whole ------------------------------------------------------------------------------------------------------

// An upper bound for all arrays: each input of a node brings one slot and one copy at most.
static gcap_status_t allocate(builder_t* b) {
  gcap_program_t* program = b->program;
  const size_t num_values = (size_t)b->model->model.num_values, num_nodes = (size_t)b->model->model.num_nodes;
  const size_t num_inputs = (size_t)b->model->num_node_inputs, num_cells = num_values * (1 + b->num_eps);
  program->slots = malloc((num_values + num_inputs) * sizeof(*program->slots));
  program->steps = malloc((num_nodes + num_inputs) * sizeof(*program->steps));
  program->is_folded = calloc(num_nodes, sizeof(*program->is_folded));
  program->inputs = malloc((1 + num_inputs) * sizeof(*program->inputs));
  b->slot_in = malloc(num_cells * sizeof(*b->slot_in));
  if (program->slots == NULL || program->steps == NULL || program->is_folded == NULL || program->inputs == NULL ||
      b->slot_in == NULL) {
    return gcap_session_no_memory();
  }
  for (size_t i = 0; i < num_cells; ++i) b->slot_in[i] = GCAP_NO_SLOT;
  return NULL;
}

gcap_status_t gcap_program_init(const gcap_session_model_t* model, gcap_ep_t* const* eps, size_t num_eps,
                                const int* ep_of, gcap_program_t* out_program) {
  *out_program = (gcap_program_t){0};
  builder_t b = {.model = model, .eps = eps, .num_eps = num_eps, .ep_of = ep_of, .program = out_program};
  gcap_status_t status = allocate(&b);
  if (status == NULL) {
    for (int n = 0; n < model->model.num_nodes; ++n) out_program->is_folded[n] = can_fold(&b, n);
    place_values(&b);
    for (int n = 0; n < model->model.num_nodes; ++n) {
      if (!out_program->is_folded[n]) add_node(&b, n);
    }
  } else {
    gcap_program_deinit(out_program);
  }
  free(b.slot_in);
  return status;
}

void gcap_program_deinit(gcap_program_t* program) {
  free(program->slots);
  free(program->steps);
  free(program->is_folded);
  free(program->inputs);
  *program = (gcap_program_t){0};
}
