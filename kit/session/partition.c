// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which EP runs which node. Each node goes to the first EP that supports it. Then nodes that only compute shapes are
// moved to the EP that runs on the host, the idea of ONNX Runtime's GetCpuPreferredNodes: their few integers are read
// on the host, and on a device they would only be copied there and back. A node computes only shapes if what it reads
// are shapes, constants and what other such nodes or the host made, and if nobody needs what it makes in device memory.
//
// The nodes to move are the largest set with that property: all that the host's EP supports are tried, and those are
// taken out that break it, until none does.
//
// Locking: none; the state is on the heap of one call.

#include "kit/session/partition.h"

#include <stdlib.h>

#include "lib/internal/text.h"

// Refusals name the EPs that were asked, as many as fit.
#define MAX_EP_NAMES_BYTES 256

typedef struct partition {
  const gcap_session_model_t* model;
  gcap_ep_t* const* eps;
  int* ep_of;
  int host_ep;         // the first EP that runs on the host; -1: none does
  bool* moves;         // of each node: it is moved to host_ep, as far as is known
  bool* is_read;       // of each value: by a node
  bool* is_on_device;  // of each value: a node that stays reads it in device memory
} partition_t;

static gcap_status_t no_ep_supports(const gcap_node_t* node, gcap_ep_t* const* eps, size_t num_eps) {
  char names[MAX_EP_NAMES_BYTES];
  gcap_text_t text;
  gcap_text_init(&text, names, sizeof(names));
  for (size_t e = 0; e < num_eps; ++e) gcap_text_add(&text, "%s'%s'", e > 0 ? ", " : "", gcap_ep_name(eps[e]));
  return GCAP_STATUS(GCAP_UNIMPLEMENTED, "no EP supports node '%s' (%s); asked %s %s", node->name, node->op_type,
                     num_eps == 1 ? "was EP" : "were EPs", names);
}

static gcap_status_t choose_first(const gcap_model_t* model, gcap_ep_t* const* eps, size_t num_eps, int* out_eps) {
  for (int n = 0; n < model->num_nodes; ++n) {
    size_t e = 0;
    while (e < num_eps && !gcap_ep_supports(eps[e], model, &model->nodes[n])) ++e;
    if (e == num_eps) return no_ep_supports(&model->nodes[n], eps, num_eps);
    out_eps[n] = (int)e;
  }
  return NULL;
}

static bool runs_on_host(const partition_t* p, int node) {
  return p->moves[node] || gcap_ep_runs_on_host(p->eps[p->ep_of[node]]);
}

static gcap_input_place_t place(const partition_t* p, int ep, int node, int input) {
  return gcap_ep_input_place(p->eps[ep], &p->model->model, &p->model->model.nodes[node], input);
}

// What the node reads is a shape, a constant, or made on the host.
static bool reads_from_host(const partition_t* p, int n) {
  const gcap_node_t* node = &p->model->model.nodes[n];
  for (int i = 0; i < node->num_inputs; ++i) {
    const gcap_value_facts_t* facts = &p->model->facts[node->inputs[i]];
    if (facts->role == GCAP_VALUE_CONSTANT || place(p, p->host_ep, n, i) == GCAP_INPUT_SHAPE_ONLY) continue;
    if (facts->maker < 0 || !runs_on_host(p, facts->maker)) return false;
  }
  return true;
}

// Somebody reads what the node makes, and nobody on a device. An output of the model is read by the caller.
static bool is_read_on_host(const partition_t* p, int n) {
  const gcap_node_t* node = &p->model->model.nodes[n];
  bool is_read = false;
  for (int i = 0; i < node->num_outputs; ++i) {
    const int value = node->outputs[i];
    if (p->model->facts[value].role == GCAP_VALUE_OUTPUT || p->is_on_device[value]) return false;
    is_read |= p->is_read[value];
  }
  return is_read;
}

static void find_readers(partition_t* p) {
  const gcap_model_t* model = &p->model->model;
  for (int v = 0; v < model->num_values; ++v) p->is_on_device[v] = false;
  for (int n = 0; n < model->num_nodes; ++n) {
    for (int i = 0; i < model->nodes[n].num_inputs; ++i) {
      const int value = model->nodes[n].inputs[i];
      p->is_read[value] = true;
      if (runs_on_host(p, n)) continue;
      p->is_on_device[value] |= place(p, p->ep_of[n], n, i) == GCAP_INPUT_IN_EP_MEMORY;
    }
  }
}

// Takes out of the set what breaks it; false if nothing does.
static bool take_out(partition_t* p) {
  bool changed = false;
  find_readers(p);
  for (int n = 0; n < p->model->model.num_nodes; ++n) {
    if (!p->moves[n] || (reads_from_host(p, n) && is_read_on_host(p, n))) continue;
    p->moves[n] = false;
    changed = true;
  }
  return changed;
}

static void move_shape_nodes(partition_t* p) {
  const gcap_model_t* model = &p->model->model;
  for (int n = 0; n < model->num_nodes; ++n) {
    p->moves[n] =
        !gcap_ep_runs_on_host(p->eps[p->ep_of[n]]) && gcap_ep_supports(p->eps[p->host_ep], model, &model->nodes[n]);
  }
  while (take_out(p)) {
  }
  for (int n = 0; n < model->num_nodes; ++n) {
    if (p->moves[n]) p->ep_of[n] = p->host_ep;
  }
}

gcap_status_t gcap_partition(const gcap_session_model_t* model, gcap_ep_t* const* eps, size_t num_eps, int* out_eps) {
  GCAP_RETURN_IF_ERROR(choose_first(&model->model, eps, num_eps, out_eps));
  partition_t p = {.model = model, .eps = eps, .ep_of = out_eps, .host_ep = -1};
  for (size_t e = 0; e < num_eps && p.host_ep < 0; ++e) {
    if (gcap_ep_runs_on_host(eps[e])) p.host_ep = (int)e;
  }
  if (p.host_ep < 0) return NULL;
  const size_t num_nodes = (size_t)model->model.num_nodes, num_values = (size_t)model->model.num_values;
  bool* flags = calloc(num_nodes + 2 * num_values, sizeof(bool));
  if (flags == NULL) return gcap_session_no_memory();
  p.moves = flags;
  p.is_read = p.moves + num_nodes;
  p.is_on_device = p.is_read + num_values;
  move_shape_nodes(&p);
  free(flags);
  return NULL;
}
