// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep_ops.h: the table that an EP's implementer fills in, and the runtime that fills most of it for him.
#ifndef GCAP_EP_OPS_H_
#define GCAP_EP_OPS_H_

#include "gcap/ep.h"
#include "gcap/options.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GCAP_EP_OPS_VERSION 1u

// EP ops: one implementation. Set struct_version, fill the required members, leave the rest zero. Each member does what
// the function of ep.h with its name says.
// Thread:   members may be called from several threads at once, unless supports_concurrent_runs is false.
// Capture:  run_end is called inside the capture that run_start began; a kernel's compute between them.
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
  gcap_status_t (*run_start)(void* self, int graph_id);
  gcap_status_t (*run_end)(void* self, int graph_id, gcap_status_t run_status, bool synchronize);

  // Optional, since 1: graphs. The first three all or none, and only with run_start and run_end.
  bool (*is_graph_capture_enabled)(const void* self);
  bool (*is_graph_captured)(void* self, int graph_id);
  gcap_status_t (*replay_graph)(void* self, int graph_id, bool synchronize, bool* out_replayed);
  gcap_status_t (*release_captured_graph)(void* self, int graph_id);

  // Optional, since 1.
  gcap_status_t (*destroy)(void* self);

  // Optional, since 1: what a graph is bound to. Both or neither, and only with the graph members.
  gcap_status_t (*sign_graph)(void* self, const gcap_graph_binding_t* bindings, size_t num_bindings);
  gcap_status_t (*replay_graph_signed)(void* self, int graph_id, const gcap_graph_binding_t* bindings,
                                       size_t num_bindings, bool synchronize, bool* out_replayed);

  // Optional, since 1.
  gcap_status_t (*last_capture_failure)(void* self, int graph_id);
} gcap_ep_ops_t;

// Makes an EP of a table. On failure `ops->destroy` is not called.
//   INVALID_ARGUMENT  NULL, an unknown version, a missing member or partner, named
GCAP_API gcap_status_t gcap_ep_create(const gcap_ep_ops_t* ops, gcap_ep_t** out_ep) GCAP_NODISCARD;

// EP runtime: the part of an EP that is the same for all of them: memory, a stream and a graph manager for each thread,
// capture with reserved scratch, replay, release. An implementer forwards his ops to it. From gcap_ep_runtime_create.
// Thread:   thread-safe; with a user stream, runs one at a time.
// Capture:  run_end, resources and is_graph_captured are legal while the thread's run is being captured.
// Lifetime: ends after the kernels that use its resources.
typedef struct gcap_ep_runtime gcap_ep_runtime_t;

// Errors: those of gcap_options_check and of the modules it is made of.
GCAP_API gcap_status_t gcap_ep_runtime_create(const gcap_options_t* options,
                                              gcap_ep_runtime_t** out_runtime) GCAP_NODISCARD;
// NULL is fine. What may still be in use is kept, and the status says so.
//   FAILED_PRECONDITION  the calling thread is capturing; nothing was destroyed
GCAP_API gcap_status_t gcap_ep_runtime_destroy(gcap_ep_runtime_t* runtime) GCAP_NODISCARD;

GCAP_API bool gcap_ep_runtime_supports_concurrent_runs(const gcap_ep_runtime_t* runtime);
GCAP_API bool gcap_ep_runtime_is_graph_capture_enabled(const gcap_ep_runtime_t* runtime);
GCAP_API gcap_scratch_t* gcap_ep_runtime_scratch(gcap_ep_runtime_t* runtime);

GCAP_API gcap_status_t gcap_ep_runtime_get_run_resources(gcap_ep_runtime_t* runtime,
                                                         gcap_run_resources_t* out_resources) GCAP_NODISCARD;
GCAP_API gcap_status_t gcap_ep_runtime_run_start(gcap_ep_runtime_t* runtime, int graph_id) GCAP_NODISCARD;
GCAP_API gcap_status_t gcap_ep_runtime_run_end(gcap_ep_runtime_t* runtime, gcap_status_t run_status,
                                               bool synchronize) GCAP_NODISCARD;
GCAP_API bool gcap_ep_runtime_is_graph_captured(gcap_ep_runtime_t* runtime, int graph_id);
GCAP_API gcap_status_t gcap_ep_runtime_replay_graph(gcap_ep_runtime_t* runtime, int graph_id, bool synchronize,
                                                    bool* out_replayed) GCAP_NODISCARD;
GCAP_API gcap_status_t gcap_ep_runtime_sign_graph(gcap_ep_runtime_t* runtime, const gcap_graph_binding_t* bindings,
                                                  size_t num_bindings) GCAP_NODISCARD;
GCAP_API gcap_status_t gcap_ep_runtime_replay_graph_signed(gcap_ep_runtime_t* runtime, int graph_id,
                                                           const gcap_graph_binding_t* bindings, size_t num_bindings,
                                                           bool synchronize, bool* out_replayed) GCAP_NODISCARD;
GCAP_API gcap_status_t gcap_ep_runtime_last_capture_failure(gcap_ep_runtime_t* runtime, int graph_id) GCAP_NODISCARD;
GCAP_API gcap_status_t gcap_ep_runtime_release_captured_graph(gcap_ep_runtime_t* runtime, int graph_id) GCAP_NODISCARD;
GCAP_API gcap_status_t gcap_ep_runtime_synchronize(gcap_ep_runtime_t* runtime) GCAP_NODISCARD;
// Counters of the calling thread's graph; zeros when the thread has run nothing.
GCAP_API void gcap_ep_runtime_get_graph_info(gcap_ep_runtime_t* runtime, int graph_id, gcap_graph_info_t* out_info);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EP_OPS_H_
