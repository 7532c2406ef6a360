// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// EPs as hosts call them: a checked copy of the implementer's table, and one function for each member. A member that is
// there wins; else the runtime answers; else there is a default.
//
// Locking: hosts hold `turns` to serialize the runs of an EP that cannot run concurrently, across all its sessions.
// Only gcap_ep_begin_turn takes this mutex. The claims are atomics: a session claims before its first turn.

#include "gcap/ep.h"

#include <stdlib.h>
#include <string.h>

#include "gcap/log.h"
#include "lib/ep/ep_internal.h"
#include "lib/ep/plan.h"
#include "lib/graph/options.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/runtime/plan.h"

static bool supports_concurrent_runs(const gcap_ep_ops_t* ops) {
  if (ops->is_concurrent_run_supported != NULL) return ops->is_concurrent_run_supported(ops->self);
  return ops->runtime != NULL ? gcap_runtime_supports_concurrent_runs(ops->runtime) : ops->supports_concurrent_runs;
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
  gcap_ep_ops_can_capture(&ep->ops, &ep->missing_to_capture);
  pthread_mutex_init(&ep->turns, NULL);
  atomic_init(&ep->warned, false);
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

gcap_status_t gcap_ep_trim(gcap_ep_t* ep) {
  GCAP_RETURN_IF_NULL(ep);
  if (ep->ops.trim != NULL) return ep->ops.trim(ep->ops.self);
  return ep->ops.runtime != NULL ? gcap_scratch_trim(gcap_runtime_scratch(ep->ops.runtime)) : NULL;
}

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

gcap_status_t gcap_ep_get_run_resources(gcap_ep_t* ep, gcap_run_resources_t* out_resources) {
  GCAP_RETURN_IF_NULL(out_resources);
  *out_resources = (gcap_run_resources_t){0};
  GCAP_RETURN_IF_NULL(ep);
  const gcap_ep_ops_t* ops = &ep->ops;
  if (ops->get_run_resources != NULL) return ops->get_run_resources(ops->self, out_resources);
  return ops->runtime != NULL ? gcap_runtime_get_resources(ops->runtime, out_resources) : NULL;
}

gcap_status_t gcap_ep_synchronize(gcap_ep_t* ep) {
  GCAP_RETURN_IF_NULL(ep);
  if (ep->ops.synchronize != NULL) return ep->ops.synchronize(ep->ops.self);
  return ep->ops.runtime != NULL ? gcap_runtime_synchronize(ep->ops.runtime) : NULL;
}

// Tells once that an EP wants to capture and cannot. The warning is about the table, so the second one has no news.
static void warn_that_it_cannot_capture(const gcap_ep_t* ep) {
  atomic_bool* warned = (atomic_bool*)&ep->warned;
  if (atomic_exchange_explicit(warned, true, memory_order_relaxed)) return;
  gcap_log(GCAP_LOG_WARNING,
           "EP '%s' says that it captures graphs, but its table has no %s and no runtime; it runs without capture",
           ep->name, ep->missing_to_capture);
}

// Whether an EP that wants to capture cannot: no host replays its graphs.
static bool cannot_capture(const gcap_ep_t* ep) {
  if (ep->missing_to_capture == NULL) return false;
  warn_that_it_cannot_capture(ep);
  return true;
}

// An EP that does not say that it captures may keep graphs of its own by id.
static bool must_not_capture(const gcap_ep_t* ep) {
  const gcap_ep_ops_t* ops = &ep->ops;
  if (ops->is_graph_capture_enabled == NULL || ep->missing_to_capture == NULL) return false;
  return ops->is_graph_capture_enabled(ops->self) && cannot_capture(ep);
}

// The id with which a run begins.
static int begin_id(gcap_ep_t* ep, int graph_id) {
  if (must_not_capture(ep)) return GCAP_GRAPH_ID_NONE;
  if (graph_id != GCAP_GRAPH_ID_NONE) atomic_store_explicit(&ep->may_have_graphs, true, memory_order_relaxed);
  return graph_id;
}

gcap_status_t gcap_ep_begin_run(gcap_ep_t* ep, int graph_id) {
  GCAP_RETURN_IF_NULL(ep);
  const gcap_ep_ops_t* ops = &ep->ops;
  if (ops->begin_run == NULL && ops->runtime == NULL) return NULL;
  graph_id = begin_id(ep, graph_id);
  if (ops->begin_run != NULL) return ops->begin_run(ops->self, graph_id);
  return gcap_runtime_begin_run(ops->runtime, graph_id);
}

gcap_status_t gcap_ep_begin_run_on(gcap_ep_t* ep, int graph_id, const gcap_graph_buffers_t* buffers,
                                   gcap_graph_run_kind_t* out_kind, void** out_addresses) {
  GCAP_RETURN_IF_NULL(out_kind);
  *out_kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_RETURN_IF_NULL(ep);
  GCAP_RETURN_IF_NULL(buffers);
  const gcap_ep_ops_t* ops = &ep->ops;
  gcap_graph_buffers_t known;
  GCAP_RETURN_IF_ERROR(gcap_graph_buffers_read(buffers, &known));
  if (known.count > 0) GCAP_RETURN_IF_NULL(out_addresses);
  if (ops->begin_run_on != NULL) {
    return ops->begin_run_on(ops->self, begin_id(ep, graph_id), &known, out_kind, out_addresses);
  }
  if (ops->begin_run != NULL) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "EP '%s' cannot move graphs: its table has begin_run, and no begin_run_on", ep->name);
  }
  if (ops->runtime != NULL) {
    return gcap_runtime_begin_run_on(ops->runtime, begin_id(ep, graph_id), &known, out_kind, out_addresses);
  }
  for (size_t i = 0; i < known.count; ++i) out_addresses[i] = known.items[i].address;
  return NULL;
}

gcap_status_t gcap_ep_end_run(gcap_ep_t* ep, gcap_status_t run_status, bool synchronize) {
  GCAP_RETURN_JOINED_IF_NULL(run_status, ep);
  const gcap_ep_ops_t* ops = &ep->ops;
  if (ops->end_run != NULL) return ops->end_run(ops->self, run_status, synchronize);
  if (ops->runtime != NULL) return gcap_runtime_end_run(ops->runtime, run_status, synchronize);
  return synchronize ? gcap_status_join(run_status, gcap_ep_synchronize(ep)) : run_status;
}

bool gcap_ep_is_graph_capture_enabled(const gcap_ep_t* ep) {
  const gcap_ep_ops_t* ops = &ep->ops;
  if (ops->is_graph_capture_enabled == NULL) {
    return ops->runtime != NULL && gcap_runtime_is_graph_capture_enabled(ops->runtime);
  }
  return ops->is_graph_capture_enabled(ops->self) && !cannot_capture(ep);
}

bool gcap_ep_is_graph_captured(gcap_ep_t* ep, int graph_id) {
  if (ep->ops.is_graph_captured != NULL) return ep->ops.is_graph_captured(ep->ops.self, graph_id);
  return ep->ops.runtime != NULL && gcap_runtime_is_captured(ep->ops.runtime, graph_id);
}

gcap_graph_node_policy_t gcap_ep_graph_capture_node_assignment_policy(const gcap_ep_t* ep) {
  if (ep->ops.graph_capture_node_assignment_policy == NULL) return GCAP_GRAPH_ALL_NODES_ON_EP;
  return ep->ops.graph_capture_node_assignment_policy(ep->ops.self);
}

gcap_status_t gcap_ep_plan(gcap_ep_t* ep, const int* graph_ids, size_t num_ids,
                           gcap_status_t (*work)(void* user, size_t index), void* user, gcap_graph_plan_t* plan) {
  if (ep->ops.runtime != NULL) {
    return gcap_runtime_rehearse(ep->ops.runtime, graph_ids, num_ids, work, user, plan);
  }
  return GCAP_STATUS(GCAP_UNIMPLEMENTED, "EP '%s' has no runtime, which would know what its graphs hold", ep->name);
}

static gcap_status_t cannot_sign(const gcap_ep_t* ep) {
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "EP '%s' cannot check what a graph is bound to: its table has no sign_graph", ep->name);
}

static bool can_sign(const gcap_ep_t* ep) { return ep->ops.sign_graph != NULL || ep->ops.runtime != NULL; }

gcap_status_t gcap_ep_replay_graph(gcap_ep_t* ep, int graph_id, const gcap_graph_replay_options_t* options,
                                   bool* out_replayed) {
  GCAP_RETURN_IF_NULL(out_replayed);
  *out_replayed = false;
  GCAP_RETURN_IF_NULL(ep);
  const gcap_ep_ops_t* ops = &ep->ops;
  if (ops->replay_graph == NULL && ops->runtime != NULL) {  // which reads the options by itself
    return gcap_runtime_replay(ops->runtime, graph_id, options, out_replayed);
  }
  gcap_graph_replay_options_t known;
  if (options == NULL || options->struct_size != sizeof(*options)) {  // the defaults, or of another version
    GCAP_RETURN_IF_ERROR(gcap_graph_replay_options_read(options, &known));
    options = &known;
  }
  if (options->check_bindings && !can_sign(ep)) return cannot_sign(ep);
  if (options->addresses != NULL && ops->begin_run_on == NULL) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "EP '%s' cannot move graphs: its table has replay_graph, and no begin_run_on", ep->name);
  }
  return ops->replay_graph != NULL ? ops->replay_graph(ops->self, graph_id, options, out_replayed) : NULL;
}

gcap_status_t gcap_ep_release_captured_graph(gcap_ep_t* ep, int graph_id) {
  GCAP_RETURN_IF_NULL(ep);
  if (ep->ops.release_captured_graph != NULL) return ep->ops.release_captured_graph(ep->ops.self, graph_id);
  if (ep->ops.runtime != NULL) return gcap_runtime_release(ep->ops.runtime, graph_id);
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "EP '%s' cannot release graph id %d: it captures no graphs", ep->name,
                     graph_id);
}

gcap_status_t gcap_ep_sign_graph(gcap_ep_t* ep, const gcap_graph_binding_t* bindings, size_t num_bindings) {
  GCAP_RETURN_IF_NULL(ep);
  if (ep->ops.sign_graph != NULL) return ep->ops.sign_graph(ep->ops.self, bindings, num_bindings);
  if (ep->ops.runtime != NULL) return gcap_runtime_sign(ep->ops.runtime, bindings, num_bindings);
  return cannot_sign(ep);
}

gcap_status_t gcap_ep_explain(gcap_ep_t* ep, int graph_id, gcap_graph_question_t question) {
  GCAP_RETURN_IF_NULL(ep);
  if (ep->ops.explain != NULL) return ep->ops.explain(ep->ops.self, graph_id, question);
  return ep->ops.runtime != NULL ? gcap_runtime_explain(ep->ops.runtime, graph_id, question) : NULL;
}
