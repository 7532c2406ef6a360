// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// EPs as hosts call them: a checked copy of the implementer's table, and one function for each member, or its default.
//
// Locking: hosts hold `turns` to serialize the runs of an EP that cannot run concurrently, across all its sessions.
// Only gcap_ep_begin_turn takes this mutex. The claims are atomics: a session claims before its first turn.

#include "gcap/kit/ep.h"

#include <stdlib.h>
#include <string.h>

#include "kit/ep/ep_internal.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"

static bool supports_concurrent_runs(const gcap_ep_ops_t* ops) {
  if (ops->runtime == NULL) return ops->supports_concurrent_runs;
  gcap_runtime_info_t info;
  gcap_runtime_get_info(ops->runtime, &info);
  return info.supports_concurrent_runs;
}

gcap_status_t gcap_ep_create(const gcap_ep_ops_t* ops, gcap_ep_t** out_ep) {
  GCAP_RETURN_IF_NULL(out_ep);
  *out_ep = NULL;
  GCAP_RETURN_IF_NULL(ops);
  gcap_ep_ops_t known;
  GCAP_RETURN_IF_ERROR(gcap_ep_ops_read(ops, &known));
  size_t name_bytes = strlen(known.name) + 1;
  gcap_ep_t* ep = malloc(sizeof(*ep) + name_bytes);
  if (ep == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for EP '%s'", known.name);
  memcpy(ep->name, known.name, name_bytes);
  known.name = ep->name;
  ep->ops = known;
  ep->supports_concurrent_runs = supports_concurrent_runs(&ep->ops);
  pthread_mutex_init(&ep->turns, NULL);
  atomic_init(&ep->num_sessions, 0);
  atomic_init(&ep->may_have_graphs, false);
  *out_ep = ep;
  return NULL;
}

// Ends what is behind the EP.
static gcap_status_t end(const gcap_ep_ops_t* ops) {
  return ops->destroy != NULL ? ops->destroy(ops->self) : gcap_runtime_destroy(ops->runtime);
}

gcap_status_t gcap_ep_destroy(gcap_ep_t* ep) {
  if (ep == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_ep_destroy"));
  const size_t num_sessions = atomic_load(&ep->num_sessions);
  if (num_sessions > 0) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "gcap_ep_destroy: EP '%s' has %zu live session%s; destroy the sessions first", ep->name,
                       num_sessions, num_sessions == 1 ? "" : "s");
  }
  gcap_status_t status = end(&ep->ops);
  if (status != NULL && gcap_status_code(status) != GCAP_LEAKED) return status;
  pthread_mutex_destroy(&ep->turns);
  free(ep);
  return status;
}

const char* gcap_ep_name(const gcap_ep_t* ep) { return ep->name; }

bool gcap_ep_supports_concurrent_runs(const gcap_ep_t* ep) { return ep->supports_concurrent_runs; }

bool gcap_ep_runs_on_host(const gcap_ep_t* ep) { return ep->ops.runs_on_host; }

gcap_runtime_t* gcap_ep_runtime(const gcap_ep_t* ep) { return ep->ops.runtime; }

gcap_status_t gcap_ep_trim(gcap_ep_t* ep) {
  GCAP_RETURN_IF_NULL(ep);
  if (ep->ops.trim != NULL) return ep->ops.trim(ep->ops.self);
  gcap_scratch_t* scratch = ep->ops.runtime != NULL ? gcap_runtime_scratch(ep->ops.runtime) : NULL;
  return scratch != NULL ? gcap_scratch_trim(scratch) : NULL;
}

static bool captures(const gcap_ep_t* ep) {
  if (ep->ops.runtime == NULL) return false;
  gcap_runtime_info_t info;
  gcap_runtime_get_info(ep->ops.runtime, &info);
  return info.is_graph_capture_enabled;
}

// Counts one session more, unless graphs allow one alone and there is, or was, one.
static bool claim(gcap_ep_t* ep) {
  if (!captures(ep)) {
    atomic_fetch_add(&ep->num_sessions, 1);
    return true;
  }
  size_t none = 0;
  return !atomic_load(&ep->may_have_graphs) && atomic_compare_exchange_strong(&ep->num_sessions, &none, 1);
}

gcap_status_t gcap_ep_claim(gcap_ep_t* ep) {
  GCAP_RETURN_IF_NULL(ep);
  if (claim(ep)) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "EP '%s' captures graphs and serves, or served, another session, whose addresses they hold: make "
                     "an EP for each session",
                     ep->name);
}

void gcap_ep_unclaim(gcap_ep_t* ep, bool has_run) {
  if (has_run) atomic_store(&ep->may_have_graphs, true);
  atomic_fetch_sub(&ep->num_sessions, 1);
}

void gcap_ep_begin_turn(gcap_ep_t* ep) {
  if (!ep->supports_concurrent_runs) pthread_mutex_lock(&ep->turns);
}

void gcap_ep_end_turn(gcap_ep_t* ep) {
  if (!ep->supports_concurrent_runs) pthread_mutex_unlock(&ep->turns);
}

bool gcap_ep_supports(gcap_ep_t* ep, const gcap_model_t* model, const gcap_node_t* node) {
  return ep->ops.supports(ep->ops.self, model, node);
}

gcap_input_place_t gcap_ep_input_place(gcap_ep_t* ep, const gcap_model_t* model, const gcap_node_t* node, int input) {
  if (ep->ops.input_place == NULL) return GCAP_INPUT_IN_EP_MEMORY;
  return ep->ops.input_place(ep->ops.self, model, node, input);
}

gcap_status_t gcap_ep_infer_shapes(gcap_ep_t* ep, const gcap_model_t* model, const gcap_node_t* node,
                                   const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  GCAP_RETURN_IF_NULL(ep);
  GCAP_RETURN_IF_NULL(model);
  GCAP_RETURN_IF_NULL(node);
  if (node->num_inputs > 0) GCAP_RETURN_IF_NULL(inputs);
  GCAP_RETURN_IF_NULL(outputs);
  if (ep->ops.infer_shapes == NULL) return NULL;
  return ep->ops.infer_shapes(ep->ops.self, model, node, inputs, outputs);
}

gcap_status_t gcap_ep_create_kernel(gcap_ep_t* ep, const gcap_model_t* model, const gcap_node_t* node,
                                    gcap_kernel_t* out_kernel) {
  GCAP_RETURN_IF_NULL(out_kernel);
  *out_kernel = (gcap_kernel_t){0};
  GCAP_RETURN_IF_NULL(ep);
  GCAP_RETURN_IF_NULL(model);
  GCAP_RETURN_IF_NULL(node);
  GCAP_RETURN_IF_NULL(node->name);
  GCAP_RETURN_IF_NULL(node->op_type);
  gcap_status_t status = ep->ops.create_kernel(ep->ops.self, model, node, out_kernel);
  if (status == NULL && out_kernel->compute != NULL) return NULL;
  if (status == NULL && out_kernel->destroy != NULL) out_kernel->destroy(out_kernel->self);
  *out_kernel = (gcap_kernel_t){0};
  if (status != NULL) return status;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "EP '%s' made a kernel for node '%s' without compute", ep->name,
                     node->name);
}

gcap_graph_node_policy_t gcap_ep_graph_capture_node_assignment_policy(const gcap_ep_t* ep) {
  if (ep->ops.graph_capture_node_assignment_policy == NULL) return GCAP_GRAPH_ALL_NODES_ON_EP;
  return ep->ops.graph_capture_node_assignment_policy(ep->ops.self);
}
