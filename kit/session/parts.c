// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The parts of a session: what can be decided without the EPs' streams. Which EPs are used, and which of them captures:
// the first one that can at all, as in ONNX Runtime, whether or not a later one could capture this model.
//
// Locking: none; parts change only while they are made. Claims are taken in the order of the turns.

#include "kit/session/parts.h"

#include <stdlib.h>
#include <string.h>

#include "gcap/log.h"
#include "kit/session/partition.h"
#include "kit/session/policy.h"

// --- The EPs --------------------------------------------------------------------------------------------------------

static gcap_status_t allocate_eps(gcap_session_parts_t* parts, gcap_ep_t* const* eps, size_t num_eps) {
  parts->eps = calloc(num_eps, sizeof(gcap_ep_t*));
  parts->ep_facts = calloc(num_eps, sizeof(*parts->ep_facts));
  parts->ep_of = calloc((size_t)parts->model.model.num_nodes, sizeof(*parts->ep_of));
  parts->used = calloc(num_eps, sizeof(*parts->used));
  parts->turns = calloc(num_eps, sizeof(gcap_ep_t*));
  if (parts->eps == NULL || parts->ep_facts == NULL || parts->ep_of == NULL || parts->used == NULL ||
      parts->turns == NULL) {
    return gcap_session_no_memory();
  }
  memcpy(parts->eps, eps, num_eps * sizeof(gcap_ep_t*));
  parts->num_eps = num_eps;
  return NULL;
}

static int compare_addresses(const void* a, const void* b) {
  gcap_ep_t *const *x = a, *const *y = b;
  return (*x > *y) - (*x < *y);
}

// Notes which EPs have a node, and in which order their turns are taken.
static void note_used(gcap_session_parts_t* parts) {
  for (int n = 0; n < parts->model.model.num_nodes; ++n) parts->ep_facts[parts->ep_of[n]].is_used = true;
  for (size_t e = 0; e < parts->num_eps; ++e) {
    parts->ep_facts[e].runs_on_host = gcap_ep_runs_on_host(parts->eps[e]);
    parts->ep_facts[e].runtime = gcap_ep_runtime(parts->eps[e]);
    if (!parts->ep_facts[e].is_used) continue;
    parts->turns[parts->num_used] = parts->eps[e];
    parts->takes_turns |= !gcap_ep_supports_concurrent_runs(parts->eps[e]);
    parts->used[parts->num_used++] = (int)e;
  }
  qsort(parts->turns, (size_t)parts->num_used, sizeof(gcap_ep_t*), compare_addresses);
}

// The first EP that captures; -1 if none does.
static int find_capturing(const gcap_session_parts_t* parts) {
  for (size_t e = 0; e < parts->num_eps; ++e) {
    if (parts->ep_facts[e].runtime == NULL) continue;
    gcap_runtime_info_t info;
    gcap_runtime_get_info(parts->ep_facts[e].runtime, &info);
    if (info.is_graph_capture_enabled) return (int)e;
  }
  return -1;
}

static gcap_status_t check_policy(const gcap_session_parts_t* parts, int capturing, gcap_graph_node_policy_t policy) {
  return gcap_policy_check(&parts->model, parts->eps, parts->ep_of, &parts->program, capturing, policy);
}

static bool is_allowed(const gcap_session_parts_t* parts, int capturing, gcap_graph_node_policy_t policy) {
  gcap_status_t status = check_policy(parts, capturing, policy);
  gcap_status_free(status);
  return status == NULL;
}

// The refusal, and what to change.
static gcap_status_t add_remedies(const gcap_session_parts_t* parts, int capturing, gcap_status_t refusal) {
  const bool is_strict = parts->policy == GCAP_GRAPH_ALL_NODES_ON_EP;
  const bool shapes = is_strict && is_allowed(parts, capturing, GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES);
  const bool holes = parts->policy != GCAP_GRAPH_ALLOW_HOLES && is_allowed(parts, capturing, GCAP_GRAPH_ALLOW_HOLES);
  gcap_status_t status = GCAP_STATUS(
      gcap_status_code(refusal),
      "%s. To run the model: %s%schange the order of the EPs or what they support, make EP '%s' without graphs, or set "
      "run_eagerly_if_not_capturable",
      gcap_status_message(refusal),
      shapes ? "give the EP the policy GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES, which allows this model; or " : "",
      holes ? "set allow_holes, or give the EP the policy GCAP_GRAPH_ALLOW_HOLES, under which nodes that cannot be "
              "captured are in holes; or "
            : "",
      gcap_ep_name(parts->eps[capturing]));
  gcap_status_free(refusal);
  return status;
}

gcap_status_t gcap_session_take_refusal(const gcap_session_parts_t* parts, int capturing, gcap_status_t refusal) {
  if (!parts->runs_eagerly) return add_remedies(parts, capturing, refusal);
  gcap_log(GCAP_LOG_WARNING, "a session runs eagerly: %s", gcap_status_message(refusal));
  gcap_status_free(refusal);
  return NULL;
}

// Chooses the EP whose graphs are the session's, and checks that it can capture the model.
static gcap_status_t choose_capture(gcap_session_parts_t* parts, bool allow_holes) {
  parts->main_ep = parts->used[0];
  for (int i = parts->num_used - 1; i >= 0; --i) {
    if (!parts->ep_facts[parts->used[i]].runs_on_host) parts->main_ep = parts->used[i];
  }
  const int capturing = find_capturing(parts);
  if (capturing < 0) return NULL;
  parts->policy =
      allow_holes ? GCAP_GRAPH_ALLOW_HOLES : gcap_ep_graph_capture_node_assignment_policy(parts->eps[capturing]);
  gcap_status_t status = check_policy(parts, capturing, parts->policy);
  if (status != NULL) return gcap_session_take_refusal(parts, capturing, status);
  parts->main_ep = capturing;
  parts->captures = true;
  return NULL;
}

// --- Claims ---------------------------------------------------------------------------------------------------------

gcap_status_t gcap_session_parts_claim(const gcap_session_parts_t* parts) {
  for (int i = 0; i < parts->num_used; ++i) {
    gcap_status_t status = gcap_ep_claim(parts->turns[i]);
    if (status == NULL) continue;
    while (i > 0) gcap_ep_unclaim(parts->turns[--i], /*has_run=*/false);
    return status;
  }
  return NULL;
}

void gcap_session_parts_unclaim(const gcap_session_parts_t* parts, bool has_run) {
  for (int i = 0; i < parts->num_used; ++i) {
    gcap_ep_unclaim(parts->turns[i], has_run && parts->turns[i] == parts->eps[parts->main_ep]);
  }
}

// --- The whole ------------------------------------------------------------------------------------------------------

static gcap_status_t fill(gcap_session_parts_t* parts, const gcap_model_t* model, gcap_ep_t* const* eps, size_t num_eps,
                          const gcap_session_options_t* options) {
  GCAP_RETURN_IF_ERROR(gcap_session_model_init(model, &parts->model));
  GCAP_RETURN_IF_ERROR(allocate_eps(parts, eps, num_eps));
  GCAP_RETURN_IF_ERROR(gcap_partition(&parts->model, parts->eps, num_eps, parts->ep_of));
  note_used(parts);
  GCAP_RETURN_IF_ERROR(gcap_program_init(&parts->model, parts->eps, num_eps, parts->ep_of, &parts->program));
  parts->runs_eagerly = options->run_eagerly_if_not_capturable;
  GCAP_RETURN_IF_ERROR(choose_capture(parts, options->allow_holes));
  parts->main_runtime = parts->ep_facts[parts->main_ep].runtime;
  return NULL;
}

gcap_status_t gcap_session_parts_init(const gcap_model_t* model, gcap_ep_t* const* eps, size_t num_eps,
                                      const gcap_session_options_t* options, gcap_session_parts_t* out_parts) {
  *out_parts = (gcap_session_parts_t){0};
  gcap_status_t status = fill(out_parts, model, eps, num_eps, options);
  if (status != NULL) gcap_session_parts_deinit(out_parts);
  return status;
}

void gcap_session_parts_deinit(gcap_session_parts_t* parts) {
  gcap_program_deinit(&parts->program);
  gcap_session_model_deinit(&parts->model);
  free(parts->eps);
  free(parts->ep_facts);
  free(parts->ep_of);
  free(parts->used);
  free(parts->turns);
  *parts = (gcap_session_parts_t){0};
}

gcap_memory_t gcap_session_memory_of(const gcap_session_parts_t* parts, int space) {
  if (space == GCAP_SPACE_HOST) return (gcap_memory_t){.kind = GCAP_MEMORY_HOST};
  return (gcap_memory_t){.kind = GCAP_MEMORY_DEVICE, .device_id = parts->ep_facts[space].device_id};
}
