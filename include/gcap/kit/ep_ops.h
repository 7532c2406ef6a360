// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep_ops.h: the table of functions that an EP's implementer fills in. An EP is its kernels: a table with a runtime
// (runtime.h), supports and create_kernel is complete. Who has streams or graphs of its own makes a runtime of its own
// (runtime_ops.h).
#ifndef GCAP_KIT_EP_OPS_H_
#define GCAP_KIT_EP_OPS_H_

#include "gcap/kit/ep.h"

#ifdef __cplusplus
extern "C" {
#endif

// EP ops: the functions of one EP. Start from zeros, set struct_size, fill in the required members. The function
// gcap_ep_<member> of ep.h specifies each member.
// Thread:   members may be called from several threads at once. If the EP supports no concurrent runs, hosts serialize
//           its runs (gcap_ep_begin_turn).
// Capture:  each kernel's compute is called inside the capture that the runtime's begin_run began.
// Lifetime: gcap_ep_create copies the table. `self` stays valid until `destroy`, or without one until gcap_ep_destroy
//           has ended the EP. `runtime` stays valid until the EP has ended; see `destroy`.
// Versions: struct_size says where the table ends. What a shorter table lacks is absent, and has its default. Of a
//           longer one, the members that this gcap knows are used, and the others are not looked at.
typedef struct gcap_ep_ops {
  size_t struct_size;  // sizeof(gcap_ep_ops_t) as the implementer was compiled
  const char* name;    // required; copied
  void* self;          // passed to every member

  // Streams, runs, graphs, copies and memory. Required, unless the kernels work on host memory: then runs_on_host is
  // true, and there is no runtime. Together with `destroy`, the runtime is the implementer's to end; alone, the EP's.
  gcap_runtime_t* runtime;
  bool runs_on_host;
  // Of an EP that runs on the host: several threads may run it at once. With a runtime not read: the EP is as
  // concurrent as the runtime is.
  bool supports_concurrent_runs;

  // Required.
  bool (*supports)(void* self, const gcap_model_t* model, const gcap_node_t* node);
  gcap_status_t (*create_kernel)(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                 gcap_kernel_t* out_kernel);

  // Optional. Default: GCAP_INPUT_IN_EP_MEMORY.
  gcap_input_place_t (*input_place)(void* self, const gcap_model_t* model, const gcap_node_t* node, int input);

  // Optional. Default: infers nothing.
  gcap_status_t (*infer_shapes)(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                const gcap_tensor_t* inputs, gcap_tensor_t* outputs);

  // Optional. Default: GCAP_GRAPH_ALL_NODES_ON_EP.
  gcap_graph_node_policy_t (*graph_capture_node_assignment_policy)(const void* self);

  // Optional. Default: trims the scratch of the runtime, if there is any.
  gcap_status_t (*trim)(void* self);

  // Optional. Ends `self`, and answers as every end in gcap.h: NULL, `self` is gone; LEAKED, `self` is gone but a part
  // of it is kept; any other code, `self` is whole and `destroy` is called again later. Not called while a session
  // lives. It ends the runtime too, if there is one. Default: gcap_ep_destroy ends the runtime.
  gcap_status_t (*destroy)(void* self);
} gcap_ep_ops_t;

// Makes an EP from a table. On failure the table's `destroy` is not called, and its runtime is not ended.
//   INVALID_ARGUMENT    `ops` is NULL; a size that is no version's; a missing member, or one that contradicts another;
//                       the message names the member
//   RESOURCE_EXHAUSTED  no host memory
GCAP_API gcap_status_t gcap_ep_create(const gcap_ep_ops_t* ops, gcap_ep_t** out_ep) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_EP_OPS_H_
