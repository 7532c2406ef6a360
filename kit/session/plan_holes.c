// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The holes of a plan: steps that no graph can hold (policy.c) and that follow one another are one hole. So each copy
// that crosses to the host or back is in a hole, beside the node that it is made for.
//
// Locking: none; the holes change only while the plan is made.

#include "kit/session/plan_holes.h"

#include <stdlib.h>

#include "gcap/log.h"
#include "kit/session/policy.h"
#include "lib/internal/text.h"

#define MAX_LINE_BYTES 1024  // the log tells the nodes, as many as fit

static gcap_status_t allocate(const gcap_session_parts_t* parts, gcap_plan_holes_t* holes) {
  const int num_nodes = parts->model.model.num_nodes;
  holes->items = malloc((size_t)(parts->program.num_steps + 1) * sizeof(*holes->items));
  holes->of_node = malloc((size_t)num_nodes * sizeof(*holes->of_node));
  holes->is_in_graph = calloc((size_t)parts->model.model.num_values, sizeof(*holes->is_in_graph));
  if (holes->items == NULL || holes->of_node == NULL || holes->is_in_graph == NULL) return gcap_session_no_memory();
  for (int n = 0; n < num_nodes; ++n) holes->of_node[n] = -1;
  return NULL;
}

static void note_captured(const gcap_session_parts_t* parts, const gcap_step_t* step, gcap_plan_holes_t* holes) {
  const gcap_node_t* node = &parts->model.model.nodes[step->node];
  for (int i = 0; i < node->num_inputs; ++i) {
    const int slot = step->inputs[i];
    if (slot != GCAP_NO_SLOT && slot < parts->model.model.num_values) holes->is_in_graph[slot] = true;
  }
  for (int i = 0; i < node->num_outputs; ++i) holes->is_in_graph[node->outputs[i]] = true;
}

static void find(const gcap_session_parts_t* parts, const gcap_kernel_t* kernels, gcap_plan_holes_t* holes) {
  for (int i = 0; i < parts->program.num_steps; ++i) {
    const gcap_step_t* step = &parts->program.steps[i];
    if (!gcap_policy_needs_hole(step, parts->main_ep, kernels)) {
      note_captured(parts, step, holes);
      continue;
    }
    if (holes->count == 0 || holes->items[holes->count - 1].end != i) {
      holes->items[holes->count++] = (gcap_plan_hole_t){.begin = i, .name = parts->model.model.nodes[step->node].name};
    }
    holes->items[holes->count - 1].end = i + 1;
    if (!step->is_copy) holes->of_node[step->node] = holes->count - 1;
  }
}

static void tell_step(const gcap_session_parts_t* parts, const gcap_step_t* step, gcap_text_t* text) {
  const gcap_node_t* node = &parts->model.model.nodes[step->node];
  const gcap_session_ep_t* ep = &parts->ep_facts[step->ep];
  const char* why = step->is_copy ? "a copy" : ep->runs_on_host ? "on the host" : "not capturable";
  gcap_text_add(text, " '%s' (%s, %s)", node->name, node->op_type, why);
}

static void tell(const gcap_session_parts_t* parts, const gcap_plan_holes_t* holes) {
  char chars[MAX_LINE_BYTES];
  gcap_text_t text;
  gcap_text_init(&text, chars, sizeof(chars));
  for (int h = 0; h < holes->count; ++h) {
    gcap_text_add(&text, "%s", h == 0 ? "" : ";");
    for (int i = holes->items[h].begin; i < holes->items[h].end; ++i) {
      tell_step(parts, &parts->program.steps[i], &text);
    }
  }
  gcap_log(GCAP_LOG_INFO, "EP '%s' captures the model with %d hole%s:%s", gcap_ep_name(parts->eps[parts->main_ep]),
           holes->count, holes->count == 1 ? "" : "s", chars);
}

gcap_status_t gcap_plan_holes_init(const gcap_session_parts_t* parts, const gcap_kernel_t* kernels,
                                   gcap_plan_holes_t* out_holes) {
  *out_holes = (gcap_plan_holes_t){0};
  gcap_status_t status = allocate(parts, out_holes);
  if (status == NULL) find(parts, kernels, out_holes);
  if (status != NULL || out_holes->count == 0) {
    gcap_plan_holes_deinit(out_holes);
    return status;
  }
  tell(parts, out_holes);
  return NULL;
}

void gcap_plan_holes_deinit(gcap_plan_holes_t* holes) {
  free(holes->items);
  free(holes->of_node);
  free(holes->is_in_graph);
  *holes = (gcap_plan_holes_t){0};
}
