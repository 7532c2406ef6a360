// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep.h: execution providers as a host sees them: a model to run, the provider that runs it, the kernels it makes.
// Implementers include ep_ops.h.
#ifndef GCAP_EP_H_
#define GCAP_EP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/graph.h"
#include "gcap/runtime.h"
#include "gcap/status.h"

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

// --- Turns ----------------------------------------------------------------------------------------------------------

// Makes the caller the only session of an EP that captures graphs, for good: the graphs hold the session's addresses,
// on every thread that ran it. Does nothing for an EP that captures none.
//   FAILED_PRECONDITION  another session has claimed the EP
GCAP_API gcap_status_t gcap_ep_claim(gcap_ep_t* ep) GCAP_NODISCARD;
// Takes a claim back, of a session that never ran.
GCAP_API void gcap_ep_unclaim(gcap_ep_t* ep);

// A host takes a turn around each whole run, replays included, and around whatever else uses the EP's stream: the
// making of kernels, the release of a graph, the end of a session. Turns of an EP that supports no concurrent runs
// exclude each other, whichever thread and session takes them; else each thread has a stream of its own and nothing
// happens. A turn ends on the thread that began it, and is not taken twice.
GCAP_API void gcap_ep_begin_turn(gcap_ep_t* ep);
GCAP_API void gcap_ep_end_turn(gcap_ep_t* ep);

// --- Runs -----------------------------------------------------------------------------------------------------------

// Opens a run. The EP may begin a capture of the thread's stream. The caller has made the stream's device current,
// until the run's end.
//   errors of the EP; of one that stands on a runtime: gcap_runtime_begin_run
GCAP_API gcap_status_t gcap_ep_begin_run(gcap_ep_t* ep, int graph_id) GCAP_NODISCARD;

// Ends the run, always, also after a failure: `run_status` is what became of the kernels, NULL for success (ONNX
// Runtime does not tell its EPs, and they store half a graph). The call takes `run_status`, and returns a status that
// says no less. With `synchronize` the results are there on return.
//   CAPTURE_INVALIDATED  the run was captured and the capture failed: nothing was executed, run it again
//   others               of `run_status`, and of the EP
GCAP_API gcap_status_t gcap_ep_end_run(gcap_ep_t* ep, gcap_status_t run_status, bool synchronize) GCAP_NODISCARD;

// --- Graphs ---------------------------------------------------------------------------------------------------------

// An EP without graph support answers false.
GCAP_API bool gcap_ep_is_graph_capture_enabled(const gcap_ep_t* ep);
GCAP_API bool gcap_ep_is_graph_captured(gcap_ep_t* ep, int graph_id);

// Replays the calling thread's graph of that id. `options` NULL: the defaults of gcap_graph_replay_options_t.
// `*out_replayed` is false when there is no such graph.
//   FAILED_PRECONDITION  `check_bindings`: the EP cannot sign graphs
//   others               of the EP; of one that stands on a runtime: gcap_graph_manager_replay
GCAP_API gcap_status_t gcap_ep_replay_graph(gcap_ep_t* ep, int graph_id, const gcap_graph_replay_options_t* options,
                                            bool* out_replayed) GCAP_NODISCARD;

// Releases the calling thread's graph of that id.
//   FAILED_PRECONDITION  the EP captures no graphs
//   others               of the EP; of one that stands on a runtime: gcap_graph_manager_release
GCAP_API gcap_status_t gcap_ep_release_captured_graph(gcap_ep_t* ep, int graph_id) GCAP_NODISCARD;

// Signs the run that the thread has open: `bindings` are the tensors that its graph will be bound to. A run that is not
// captured ignores them. See gcap_graph_manager_sign.
//   FAILED_PRECONDITION  the EP cannot sign graphs, or no run is open
GCAP_API gcap_status_t gcap_ep_sign_graph(gcap_ep_t* ep, const gcap_graph_binding_t* bindings,
                                          size_t num_bindings) GCAP_NODISCARD;

// Answers a question about the calling thread's graph of that id (gcap_graph_manager_explain): a copy for messages.
// NULL when there is nothing to tell, or the EP does not tell.
GCAP_API gcap_status_t gcap_ep_explain(gcap_ep_t* ep, int graph_id, gcap_graph_question_t question) GCAP_NODISCARD;

// Blocks until all work of the calling thread's stream is done; never waits for the device.
//   errors of the EP
GCAP_API gcap_status_t gcap_ep_synchronize(gcap_ep_t* ep) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EP_H_
