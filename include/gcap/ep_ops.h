// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep_ops.h: the table that an EP's implementer fills in. Most members forward to a runtime (runtime.h).
#ifndef GCAP_EP_OPS_H_
#define GCAP_EP_OPS_H_

#include "gcap/ep.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GCAP_EP_OPS_VERSION 1u

// EP ops: one implementation. Set struct_version, fill the required members, leave the rest zero. Each member does what
// the function of ep.h with its name says.
// Thread:   members may be called from several threads at once, unless supports_concurrent_runs is false.
// Capture:  end_run is called inside the capture that begin_run began; a kernel's compute between them.
// Lifetime: the table is copied; what `self` points to lives until `destroy`.
typedef struct gcap_ep_ops {
  uint32_t struct_version;  // GCAP_EP_OPS_VERSION
  bool supports_concurrent_runs;
  const char* name;  // required; copied
  void* self;        // handed to every member

  // Required, since 1.
  bool (*supports)(void* self, const gcap_model_t* model, const gcap_node_t* node);
  gcap_status_t (*create_kernel)(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                 gcap_kernel_t* out_kernel);
  gcap_status_t (*get_run_resources)(void* self, gcap_run_resources_t* out_resources);
  gcap_status_t (*synchronize)(void* self);

  // Optional, since 1. Both or neither.
  gcap_status_t (*begin_run)(void* self, int graph_id);
  gcap_status_t (*end_run)(void* self, gcap_status_t run_status, bool synchronize);

  // Optional, since 1: graphs. The first three all or none, and only with begin_run and end_run.
  bool (*is_graph_capture_enabled)(const void* self);
  bool (*is_graph_captured)(void* self, int graph_id);
  // `options` is never NULL.
  gcap_status_t (*replay_graph)(void* self, int graph_id, const gcap_graph_replay_options_t* options,
                                bool* out_replayed);
  gcap_status_t (*release_captured_graph)(void* self, int graph_id);

  // Optional, since 1.
  gcap_status_t (*destroy)(void* self);

  // Optional, since 1: what a graph is bound to. Only with the graph members. Without it no replay checks them.
  gcap_status_t (*sign_graph)(void* self, const gcap_graph_binding_t* bindings, size_t num_bindings);

  // Optional, since 1.
  gcap_status_t (*explain)(void* self, int graph_id, gcap_graph_question_t question);
} gcap_ep_ops_t;

// Makes an EP of a table. On failure `ops->destroy` is not called.
//   INVALID_ARGUMENT  NULL, an unknown version, a missing member or partner, named
GCAP_API gcap_status_t gcap_ep_create(const gcap_ep_ops_t* ops, gcap_ep_t** out_ep) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EP_OPS_H_
