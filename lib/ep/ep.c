// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// EPs as hosts call them: a checked copy of the implementer's table, and one function for each member, which supplies
// the default if the member is absent.
//
// Locking: hosts hold `turns` to serialize the runs of an EP that cannot run concurrently, across all its sessions.
// Only gcap_ep_begin_turn takes this mutex. The claims are atomics: a session claims before its first turn.

#include "gcap/ep.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gcap/ep_ops.h"
#include "lib/graph/options.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"

struct gcap_ep {
  gcap_ep_ops_t ops;
  pthread_mutex_t turns;
  atomic_size_t num_sessions;   // alive
  atomic_bool may_have_graphs;  // a run with a graph id was begun
  char name[];
};

static gcap_status_t missing(const char* name, const char* member, const char* rule) {
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "EP '%s': member %s is NULL; %s", name, member, rule);
}

static gcap_status_t check_graph_ops(const gcap_ep_ops_t* ops) {
  if (ops->sign_graph != NULL && ops->replay_graph == NULL) {
    return missing(ops->name, "replay_graph", "sign_graph goes with the graph members");
  }
  bool any_graph = ops->is_graph_capture_enabled != NULL || ops->is_graph_captured != NULL ||
                   ops->replay_graph != NULL || ops->release_captured_graph != NULL;
  if (!any_graph) return NULL;
  const char* graph_group =
      "is_graph_capture_enabled, is_graph_captured and replay_graph go together, with begin_run and end_run";
  if (ops->is_graph_capture_enabled == NULL) return missing(ops->name, "is_graph_capture_enabled", graph_group);
  if (ops->is_graph_captured == NULL) return missing(ops->name, "is_graph_captured", graph_group);
  if (ops->replay_graph == NULL) return missing(ops->name, "replay_graph", graph_group);
  if (ops->begin_run == NULL) return missing(ops->name, "begin_run", graph_group);
  return NULL;
}

static gcap_status_t check_ops(const gcap_ep_ops_t* ops) {
  if (ops->struct_version != GCAP_EP_OPS_VERSION) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the EP's table has struct_version %u, this gcap knows up to %u",
                       ops->struct_version, GCAP_EP_OPS_VERSION);
  }
  if (ops->name == NULL) return missing("", "name", "it is required");
  const char* required = "it is required";
  if (ops->supports == NULL) return missing(ops->name, "supports", required);
  if (ops->create_kernel == NULL) return missing(ops->name, "create_kernel", required);
  if (ops->get_run_resources == NULL) return missing(ops->name, "get_run_resources", required);
  if (ops->synchronize == NULL) return missing(ops->name, "synchronize", required);
  const char* run_pair = "begin_run and end_run go together";
  if (ops->begin_run == NULL && ops->end_run != NULL) return missing(ops->name, "begin_run", run_pair);
  if (ops->begin_run != NULL && ops->end_run == NULL) return missing(ops->name, "end_run", run_pair);
  return check_graph_ops(ops);
}

gcap_status_t gcap_ep_create(const gcap_ep_ops_t* ops, gcap_ep_t** out_ep) {
  GCAP_RETURN_IF_NULL(out_ep);
  *out_ep = NULL;
  GCAP_RETURN_IF_NULL(ops);
  GCAP_RETURN_IF_ERROR(check_ops(ops));
  size_t name_bytes = strlen(ops->name) + 1;
  gcap_ep_t* ep = malloc(sizeof(*ep) + name_bytes);
  if (ep == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for EP '%s'", ops->name);
  ep->ops = *ops;
  memcpy(ep->name, ops->name, name_bytes);
  ep->ops.name = ep->name;
  pthread_mutex_init(&ep->turns, NULL);
  atomic_init(&ep->num_sessions, 0);
  atomic_init(&ep->may_have_graphs, false);
  *out_ep = ep;
  return NULL;
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
  gcap_status_t status = ep->ops.destroy != NULL ? ep->ops.destroy(ep->ops.self) : NULL;
  if (status != NULL && gcap_status_code(status) != GCAP_LEAKED) return status;
  pthread_mutex_destroy(&ep->turns);
  free(ep);
  return status;
}

const char* gcap_ep_name(const gcap_ep_t* ep) { return ep->name; }

bool gcap_ep_supports_concurrent_runs(const gcap_ep_t* ep) { return ep->ops.supports_concurrent_runs; }

// Counts one session more, unless graphs allow one alone and there is, or was, one.
static bool claim(gcap_ep_t* ep) {
  if (!gcap_ep_is_graph_capture_enabled(ep)) {
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

void gcap_ep_unclaim(gcap_ep_t* ep) { atomic_fetch_sub(&ep->num_sessions, 1); }

void gcap_ep_begin_turn(gcap_ep_t* ep) {
  if (!ep->ops.supports_concurrent_runs) pthread_mutex_lock(&ep->turns);
}

void gcap_ep_end_turn(gcap_ep_t* ep) {
  if (!ep->ops.supports_concurrent_runs) pthread_mutex_unlock(&ep->turns);
}

bool gcap_ep_supports(gcap_ep_t* ep, const gcap_model_t* model, const gcap_node_t* node) {
  return ep->ops.supports(ep->ops.self, model, node);
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

gcap_status_t gcap_ep_get_run_resources(gcap_ep_t* ep, gcap_run_resources_t* out_resources) {
  GCAP_RETURN_IF_NULL(out_resources);
  *out_resources = (gcap_run_resources_t){0};
  GCAP_RETURN_IF_NULL(ep);
  return ep->ops.get_run_resources(ep->ops.self, out_resources);
}

gcap_status_t gcap_ep_begin_run(gcap_ep_t* ep, int graph_id) {
  GCAP_RETURN_IF_NULL(ep);
  if (ep->ops.begin_run == NULL) return NULL;
  if (graph_id != GCAP_GRAPH_ID_NONE) atomic_store_explicit(&ep->may_have_graphs, true, memory_order_relaxed);
  return ep->ops.begin_run(ep->ops.self, graph_id);
}

gcap_status_t gcap_ep_end_run(gcap_ep_t* ep, gcap_status_t run_status, bool synchronize) {
  GCAP_RETURN_JOINED_IF_NULL(run_status, ep);
  if (ep->ops.end_run != NULL) return ep->ops.end_run(ep->ops.self, run_status, synchronize);
  return synchronize ? gcap_status_join(run_status, ep->ops.synchronize(ep->ops.self)) : run_status;
}

bool gcap_ep_is_graph_capture_enabled(const gcap_ep_t* ep) {
  return ep->ops.is_graph_capture_enabled != NULL && ep->ops.is_graph_capture_enabled(ep->ops.self);
}

bool gcap_ep_is_graph_captured(gcap_ep_t* ep, int graph_id) {
  return ep->ops.is_graph_captured != NULL && ep->ops.is_graph_captured(ep->ops.self, graph_id);
}

static gcap_status_t cannot_sign(const gcap_ep_t* ep) {
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "EP '%s' cannot check what a graph is bound to: its table has no sign_graph", ep->name);
}

gcap_status_t gcap_ep_replay_graph(gcap_ep_t* ep, int graph_id, const gcap_graph_replay_options_t* options,
                                   bool* out_replayed) {
  GCAP_RETURN_IF_NULL(out_replayed);
  *out_replayed = false;
  GCAP_RETURN_IF_NULL(ep);
  gcap_graph_replay_options_t known;
  if (options == NULL || options->struct_size != sizeof(*options)) {  // the defaults, or of another version
    GCAP_RETURN_IF_ERROR(gcap_graph_replay_options_read(options, &known));
    options = &known;
  }
  if (options->check_bindings && ep->ops.sign_graph == NULL) return cannot_sign(ep);
  if (ep->ops.replay_graph == NULL) return NULL;
  return ep->ops.replay_graph(ep->ops.self, graph_id, options, out_replayed);
}

gcap_status_t gcap_ep_release_captured_graph(gcap_ep_t* ep, int graph_id) {
  GCAP_RETURN_IF_NULL(ep);
  if (ep->ops.release_captured_graph != NULL) return ep->ops.release_captured_graph(ep->ops.self, graph_id);
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "EP '%s' cannot release graph id %d: it captures no graphs", ep->name,
                     graph_id);
}

gcap_status_t gcap_ep_sign_graph(gcap_ep_t* ep, const gcap_graph_binding_t* bindings, size_t num_bindings) {
  GCAP_RETURN_IF_NULL(ep);
  if (ep->ops.sign_graph == NULL) return cannot_sign(ep);
  return ep->ops.sign_graph(ep->ops.self, bindings, num_bindings);
}

gcap_status_t gcap_ep_explain(gcap_ep_t* ep, int graph_id, gcap_graph_question_t question) {
  GCAP_RETURN_IF_NULL(ep);
  return ep->ops.explain != NULL ? ep->ops.explain(ep->ops.self, graph_id, question) : NULL;
}

gcap_status_t gcap_ep_synchronize(gcap_ep_t* ep) {
  GCAP_RETURN_IF_NULL(ep);
  return ep->ops.synchronize(ep->ops.self);
}
