// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep.h: execution providers as a host sees them: a model to run, the provider that runs it, the kernels it makes.
// Implementers include ep_ops.h.
#ifndef GCAP_EP_H_
#define GCAP_EP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/allocator.h"
#include "gcap/graph.h"
#include "gcap/scratch.h"
#include "gcap/status.h"
#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GCAP_MAX_RANK 8

typedef enum gcap_dtype {
  GCAP_DTYPE_F32 = 0,
} gcap_dtype_t;

// A densely packed, row-major tensor. `data` is device memory of its EP.
typedef struct gcap_tensor {
  void* data;
  gcap_dtype_t dtype;
  int rank;  // 0..GCAP_MAX_RANK
  int64_t shape[GCAP_MAX_RANK];
} gcap_tensor_t;

GCAP_API size_t gcap_tensor_bytes(const gcap_tensor_t* tensor);

// A value of a model: an input, an output, something between, or, with `host_data`, a constant.
typedef struct gcap_value {
  const char* name;
  gcap_dtype_t dtype;
  int rank;
  int64_t shape[GCAP_MAX_RANK];  // fixed
  const void* host_data;         // the constant's content in host memory, read when a session is created; else NULL
} gcap_value_t;

// A node. Inputs and outputs are indices into the model's values.
typedef struct gcap_node {
  const char* op_type;  // as in ONNX: "Conv", "Gemm", …
  const char* name;
  const int* inputs;
  int num_inputs;
  const int* outputs;
  int num_outputs;
  const void* attributes;  // agreed between the model's maker and the EP, by op_type
} gcap_node_t;

// A model: nodes in an order in which they can run. The maker keeps all it points to until its sessions are created.
typedef struct gcap_model {
  const gcap_value_t* values;
  int num_values;
  const gcap_node_t* nodes;
  int num_nodes;
  const int* inputs;  // indices into values
  int num_inputs;
  const int* outputs;
  int num_outputs;
} gcap_model_t;

// What one run may use: the calling thread's stream, the EP's scratch and its allocator for long-lived memory.
typedef struct gcap_run_resources {
  gcap_stream_t* stream;
  gcap_scratch_t* scratch;
  gcap_allocator_t* allocator;
} gcap_run_resources_t;

// What a kernel gets for one computation.
typedef struct gcap_kernel_context {
  gcap_run_resources_t resources;
  const gcap_tensor_t* inputs;  // in the node's order
  gcap_tensor_t* outputs;       // allocated; the kernel writes their data
} gcap_kernel_context_t;

// Kernel: one node made ready: plans, algorithms, library handles. Made by gcap_ep_create_kernel.
// Thread:   compute may run on several threads at once when the EP supports concurrent runs.
// Capture:  compute runs inside captures: it issues work on the context's stream and nothing else, allocates from the
//           scratch only, and does not synchronise.
// Lifetime: outlives the graphs that recorded it; ends before its EP.
typedef struct gcap_kernel {
  void* self;
  gcap_status_t (*compute)(void* self, const gcap_kernel_context_t* context);
  void (*destroy)(void* self);
} gcap_kernel_t;

// EP: an execution provider. From gcap_ep_create (ep_ops.h), as a rule through a function of the provider.
// Thread:   thread-safe, except that runs are serialised by the host when gcap_ep_supports_concurrent_runs is false.
// Capture:  see each function.
// Lifetime: outlives the sessions and kernels made with it.
typedef struct gcap_ep gcap_ep_t;

// NULL is fine. Its sessions and kernels are gone.
//   FAILED_PRECONDITION  the calling thread is capturing; nothing was destroyed
GCAP_API gcap_status_t gcap_ep_destroy(gcap_ep_t* ep) GCAP_NODISCARD;

GCAP_API const char* gcap_ep_name(const gcap_ep_t* ep);
GCAP_API bool gcap_ep_supports_concurrent_runs(const gcap_ep_t* ep);

// Tells whether the EP can run the node, with its shapes and attributes.
GCAP_API bool gcap_ep_supports(gcap_ep_t* ep, const gcap_model_t* model, const gcap_node_t* node);

// Makes the kernel of a node that the EP supports.
GCAP_API gcap_status_t gcap_ep_create_kernel(gcap_ep_t* ep, const gcap_model_t* model, const gcap_node_t* node,
                                             gcap_kernel_t* out_kernel) GCAP_NODISCARD;

// The calling thread's resources, made on its first call.
GCAP_API gcap_status_t gcap_ep_get_run_resources(gcap_ep_t* ep, gcap_run_resources_t* out_resources) GCAP_NODISCARD;

// Opens a run. The EP may begin a capture of the thread's stream, whose device the caller has made current until the
// run's end.
GCAP_API gcap_status_t gcap_ep_run_start(gcap_ep_t* ep, int graph_id) GCAP_NODISCARD;

// Ends it, always, also after a failure: `run_status` is what became of the kernels, NULL for success (ONNX Runtime
// does not tell its EPs, and they store half a graph). It is read, not consumed. With `synchronize` the results are
// there on return.
//   CAPTURE_INVALIDATED  the run was captured and the capture failed: nothing was executed, run it again
GCAP_API gcap_status_t gcap_ep_run_end(gcap_ep_t* ep, int graph_id, gcap_status_t run_status,
                                       bool synchronize) GCAP_NODISCARD;

// Graphs. An EP without graph support answers false, and FAILED_PRECONDITION to a release.
GCAP_API bool gcap_ep_is_graph_capture_enabled(const gcap_ep_t* ep);
GCAP_API bool gcap_ep_is_graph_captured(gcap_ep_t* ep, int graph_id);
// Replays the calling thread's graph of that id; `*out_replayed` is false when there is none.
GCAP_API gcap_status_t gcap_ep_replay_graph(gcap_ep_t* ep, int graph_id, bool synchronize,
                                            bool* out_replayed) GCAP_NODISCARD;
GCAP_API gcap_status_t gcap_ep_release_captured_graph(gcap_ep_t* ep, int graph_id) GCAP_NODISCARD;

// Signs the run that the thread has open: `bindings` are the tensors that its graph will be bound to. A run that is not
// captured ignores it. See gcap_graph_manager_sign.
//   FAILED_PRECONDITION  the EP cannot sign graphs, or no run is open
GCAP_API gcap_status_t gcap_ep_sign_graph(gcap_ep_t* ep, const gcap_graph_binding_t* bindings,
                                          size_t num_bindings) GCAP_NODISCARD;
// As gcap_ep_replay_graph, for a graph that is bound to these very tensors.
//   FAILED_PRECONDITION  it is bound to others, in a sentence that names the first one; or it was not signed; or the EP
//                        cannot sign graphs
GCAP_API gcap_status_t gcap_ep_replay_graph_signed(gcap_ep_t* ep, int graph_id, const gcap_graph_binding_t* bindings,
                                                   size_t num_bindings, bool synchronize,
                                                   bool* out_replayed) GCAP_NODISCARD;
// Why the calling thread's last capture of that id failed: a copy for messages. NULL when none did, or the EP does not
// tell.
GCAP_API gcap_status_t gcap_ep_last_capture_failure(gcap_ep_t* ep, int graph_id) GCAP_NODISCARD;

// Blocks until all work of the calling thread's stream is done; never a device-wide wait.
GCAP_API gcap_status_t gcap_ep_synchronize(gcap_ep_t* ep) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EP_H_
