// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep_ops.h: the table of functions that an EP's implementer fills in. An EP is its kernels: a table with a runtime
// (runtime.h), supports and create_kernel is complete.
#ifndef GCAP_EP_OPS_H_
#define GCAP_EP_OPS_H_

#include "gcap/ep.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GCAP_EP_OPS_VERSION 2u

// EP ops: the functions of one EP. Set struct_version and struct_bytes, fill in the required members, leave the rest
// zero. The function gcap_ep_<member> of ep.h specifies each member. A member that is absent is answered from
// `runtime`; without a runtime, by the default that the member's comment has.
// Thread:   members may be called from several threads at once. If the EP supports no concurrent runs, hosts serialize
//           its runs (gcap_ep_begin_turn).
// Capture:  end_run, sign_graph and each kernel's compute are called inside the capture that begin_run began.
// Lifetime: gcap_ep_create copies the table. `self` stays valid until `destroy`, or without one until gcap_ep_destroy
//           has ended the EP. `runtime` stays valid until the EP has ended; see `destroy`.
// Versions: a table of version 1 ends before struct_bytes; what it lacks has its default. Of a table that is newer than
//           this gcap, the members that this gcap knows are used.
typedef struct gcap_ep_ops {
  uint32_t struct_version;        // GCAP_EP_OPS_VERSION
  bool supports_concurrent_runs;  // without a runtime and without is_concurrent_run_supported
  const char* name;               // required; copied
  void* self;                     // passed to every member

  // Required, since 1.
  bool (*supports)(void* self, const gcap_model_t* model, const gcap_node_t* node);
  gcap_status_t (*create_kernel)(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                 gcap_kernel_t* out_kernel);

  // Since 1. Required without a runtime, unless runs_on_host. get_run_resources fills in all of `*out_resources`.
  gcap_status_t (*get_run_resources)(void* self, gcap_run_resources_t* out_resources);
  gcap_status_t (*synchronize)(void* self);

  // Optional, since 1. Without a runtime both or neither; then a run needs no begin, and its end only synchronizes.
  gcap_status_t (*begin_run)(void* self, int graph_id);
  gcap_status_t (*end_run)(void* self, gcap_status_t run_status, bool synchronize);

  // Optional, since 1: graphs. Without a runtime, a host captures only if the first three, begin_run and end_run are
  // there.
  bool (*is_graph_capture_enabled)(const void* self);
  bool (*is_graph_captured)(void* self, int graph_id);
  // `options` is never NULL, and of the library's version: struct_size says what may be read.
  gcap_status_t (*replay_graph)(void* self, int graph_id, const gcap_graph_replay_options_t* options,
                                bool* out_replayed);
  gcap_status_t (*release_captured_graph)(void* self, int graph_id);

  // Optional, since 1. Ends `self`, and answers as every end in gcap.h: NULL, `self` is gone; LEAKED, `self` is gone
  // but a part of it is kept; any other code, `self` is whole and `destroy` is called again later. Not called while a
  // session lives. It ends the runtime too, if there is one. Absent: gcap_ep_destroy ends the runtime.
  gcap_status_t (*destroy)(void* self);

  // Optional, since 1: signs the open run. Without it and without a runtime, a replay with `check_bindings` is refused.
  gcap_status_t (*sign_graph)(void* self, const gcap_graph_binding_t* bindings, size_t num_bindings);

  // Optional, since 1.
  gcap_status_t (*explain)(void* self, int graph_id, gcap_graph_question_t question);

  // Since 2. sizeof(gcap_ep_ops_t) as the implementer was compiled.
  size_t struct_bytes;

  // Optional, since 2. Answers each absent member below and above. Together with `destroy`, it is the implementer's to
  // end; alone, the EP's.
  gcap_runtime_t* runtime;

  // Optional, since 2. The kernels work on host memory. Not together with a runtime.
  bool runs_on_host;

  // Optional, since 2. Default: supports_concurrent_runs. Called once, by gcap_ep_create.
  bool (*is_concurrent_run_supported)(const void* self);

  // Optional, since 2. Default: GCAP_INPUT_IN_EP_MEMORY.
  gcap_input_place_t (*input_place)(void* self, const gcap_model_t* model, const gcap_node_t* node, int input);

  // Optional, since 2. Default: infers nothing.
  gcap_status_t (*infer_shapes)(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                const gcap_tensor_t* inputs, gcap_tensor_t* outputs);

  // Optional, since 2. Default, with a runtime too: GCAP_GRAPH_ALL_NODES_ON_EP.
  gcap_graph_node_policy_t (*graph_capture_node_assignment_policy)(const void* self);

  // Optional, since 2. Default: nothing to trim.
  gcap_status_t (*trim)(void* self);

  // Optional, since 2: copies. Default of an EP that runs on the host: host memory is copied. Default of any other:
  // nothing is. Without a runtime both or neither.
  bool (*can_copy)(const void* self, gcap_memory_t src, gcap_memory_t dst);
  // `copies` is never NULL, `count` not 0.
  gcap_status_t (*copy_tensors)(void* self, const gcap_copy_t* copies, size_t count);
  // Default: true.
  bool (*copies_in_default_stream)(const void* self);

  // Optional, since 2. Default: refused, but for the allocator of get_run_resources, which is that of device memory.
  gcap_status_t (*create_stream)(void* self, gcap_stream_t** out_stream);
  gcap_status_t (*get_allocator)(void* self, gcap_memory_kind_t kind, gcap_allocator_t** out_allocator);

  // Optional, since 2: more streams in a run. Default: refused. Without a runtime both or neither.
  gcap_status_t (*fork)(void* self, size_t count, gcap_stream_t** out_streams);
  gcap_status_t (*join)(void* self);

  // Optional, since 2: a run on buffers that may be elsewhere at each replay, whose options then have their addresses.
  // `buffers` and `options` are of the library's version. Default of an EP with begin_run: refused. Default without:
  // the runtime's, or without a runtime an eager run.
  gcap_status_t (*begin_run_on)(void* self, int graph_id, const gcap_graph_buffers_t* buffers,
                                gcap_graph_run_kind_t* out_kind, void** out_addresses);
} gcap_ep_ops_t;

// Makes an EP from a table. On failure the table's `destroy` is not called, and its runtime is not ended.
//   INVALID_ARGUMENT    `ops` is NULL; version 0; a size that is none of the version; a missing member, or one that
//                       contradicts another; the message names the member
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_ep_create(const gcap_ep_ops_t* ops, gcap_ep_t** out_ep) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EP_OPS_H_
