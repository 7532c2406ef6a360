// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep_ops.h: the table of functions that an EP's implementer fills in. In most EPs the members for runs and graphs
// forward to a runtime (runtime.h).
#ifndef GCAP_EP_OPS_H_
#define GCAP_EP_OPS_H_

#include "gcap/ep.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GCAP_EP_OPS_VERSION 1u

// EP ops: the functions of one EP. Set struct_version, fill in the required members, leave the rest zero. The function
// gcap_ep_<member> of ep.h specifies each member.
// Thread:   members may be called from several threads at once. If supports_concurrent_runs is false, hosts serialize
//           their runs (gcap_ep_begin_turn).
// Capture:  end_run, sign_graph and each kernel's compute are called inside the capture that begin_run began.
// Lifetime: gcap_ep_create copies the table. `self` stays valid until `destroy`.
typedef struct gcap_ep_ops {
  uint32_t struct_version;  // GCAP_EP_OPS_VERSION
  bool supports_concurrent_runs;
  const char* name;  // required; copied
  void* self;        // passed to every member

  // Required, since 1. get_run_resources fills in all members of `*out_resources`.
  bool (*supports)(void* self, const gcap_model_t* model, const gcap_node_t* node);
  gcap_status_t (*create_kernel)(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                 gcap_kernel_t* out_kernel);
  gcap_status_t (*get_run_resources)(void* self, gcap_run_resources_t* out_resources);
  gcap_status_t (*synchronize)(void* self);

  // Optional, since 1. Both or neither. Without them, a run needs no begin, and its end only synchronizes.
  gcap_status_t (*begin_run)(void* self, int graph_id);
  gcap_status_t (*end_run)(void* self, gcap_status_t run_status, bool synchronize);

  // Optional, since 1: graphs. The first three all or none, and only together with begin_run and end_run;
  // release_captured_graph only together with the first three.
  bool (*is_graph_capture_enabled)(const void* self);
  bool (*is_graph_captured)(void* self, int graph_id);
  // `options` is never NULL, and of the library's version: struct_size says what may be read.
  gcap_status_t (*replay_graph)(void* self, int graph_id, const gcap_graph_replay_options_t* options,
                                bool* out_replayed);
  gcap_status_t (*release_captured_graph)(void* self, int graph_id);

  // Optional, since 1. Ends `self`, and answers as every end in gcap.h: NULL, `self` is gone; LEAKED, `self` is gone
  // but a part of it is kept; any other code, `self` is whole and `destroy` is called again later. Not called while a
  // session lives.
  gcap_status_t (*destroy)(void* self);

  // Optional, since 1: signs the open run. Only together with the graph members. Without it, a replay with
  // `check_bindings` is refused.
  gcap_status_t (*sign_graph)(void* self, const gcap_graph_binding_t* bindings, size_t num_bindings);

  // Optional, since 1.
  gcap_status_t (*explain)(void* self, int graph_id, gcap_graph_question_t question);
} gcap_ep_ops_t;

// Makes an EP from a table. On failure `ops->destroy` is not called.
//   INVALID_ARGUMENT    `ops` is NULL, an unknown version, or a missing member; the message names the member
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_ep_create(const gcap_ep_ops_t* ops, gcap_ep_t** out_ep) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EP_OPS_H_
