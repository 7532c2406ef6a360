// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep.h: execution providers (EPs) as a host sees them: a model, the EP that runs the model, the kernels that the EP
// makes. Implementers include ep_ops.h.
#ifndef GCAP_EP_H_
#define GCAP_EP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/graph.h"
#include "gcap/runtime.h"
#include "gcap/status.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// A value of a model: an input, an output, an intermediate value, or a constant (with `host_data`).
typedef struct gcap_value {
  const char* name;  // required
  gcap_dtype_t dtype;
  int rank;
  int64_t shape[GCAP_MAX_RANK];  // fixed
  const void* host_data;         // of a constant: its content in host memory, read by gcap_session_create; else NULL
} gcap_value_t;

// A node. Inputs and outputs are indices into the model's values.
typedef struct gcap_node {
  const char* op_type;  // required; as in ONNX: "Conv", "Gemm", …
  const char* name;     // required
  const int* inputs;
  int num_inputs;
  const int* outputs;
  int num_outputs;
  const void* attributes;  // agreed between the model's maker and the EP, by op_type
} gcap_node_t;

// A model: nodes in an order in which they can run. All that the model points to must stay valid until its sessions are
// created.
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
  gcap_tensor_t* outputs;       // in the node's order; memory is allocated, the kernel writes it
} gcap_kernel_context_t;

// Kernel: one node made ready to run: plans, algorithms, library handles. From gcap_ep_create_kernel.
// Thread:   compute may run on several threads at once if the EP supports concurrent runs.
// Capture:  compute runs inside captures: it issues work only to the context's stream, allocates only from the
//           context's scratch, and does not synchronize.
// Lifetime: outlives the graphs that recorded the kernel; ends before the EP.
typedef struct gcap_kernel {
  void* self;                                                                  // passed to both members
  gcap_status_t (*compute)(void* self, const gcap_kernel_context_t* context);  // required
  void (*destroy)(void* self);  // optional; the creator of the kernel calls it once, when no run uses it
} gcap_kernel_t;

// EP: an execution provider. From gcap_ep_create (ep_ops.h), usually called by a function of the provider.
// Thread:   thread-safe. If gcap_ep_supports_concurrent_runs is false, the host serializes runs (gcap_ep_begin_turn).
// Capture:  gcap_ep_end_run, gcap_ep_sign_graph, gcap_ep_get_run_resources and the functions that only read are legal
//           while the thread's run is being captured.
// Lifetime: outlives the sessions and kernels made with the EP.
// Errors:   "of the EP" means: what the implementer's function returns. If the EP forwards to a runtime (runtime.h),
//           these are the errors of the runtime's function. Besides those listed, INVALID_ARGUMENT if a required
//           argument is NULL.
typedef struct gcap_ep gcap_ep_t;

// Ends the EP, after its sessions and kernels. NULL is fine.
//   FAILED_PRECONDITION  the calling thread is capturing, or a session of the EP lives; nothing was destroyed
//   LEAKED               of the EP (gcap_runtime_destroy): the EP is gone, a part of it is kept
//   others               of the EP (gcap_runtime_destroy): a refusal, the EP is whole
GCAP_API gcap_status_t gcap_ep_destroy(gcap_ep_t* ep) GCAP_NODISCARD;

GCAP_API const char* gcap_ep_name(const gcap_ep_t* ep);
GCAP_API bool gcap_ep_supports_concurrent_runs(const gcap_ep_t* ep);

// True if the EP can run the node, with the node's shapes and attributes.
GCAP_API bool gcap_ep_supports(gcap_ep_t* ep, const gcap_model_t* model, const gcap_node_t* node);

// Makes the kernel of a node that the EP supports.
//   INVALID_ARGUMENT  the node has no name or no op_type; or the EP made a kernel without compute
//   others            of the EP
GCAP_API gcap_status_t gcap_ep_create_kernel(gcap_ep_t* ep, const gcap_model_t* model, const gcap_node_t* node,
                                             gcap_kernel_t* out_kernel) GCAP_NODISCARD;

// Returns the calling thread's resources, which are made on first use.
//   errors of the EP (gcap_runtime_get_resources)
GCAP_API gcap_status_t gcap_ep_get_run_resources(gcap_ep_t* ep, gcap_run_resources_t* out_resources) GCAP_NODISCARD;

// --- Turns ----------------------------------------------------------------------------------------------------------

// Claims an EP for one session: while a session lives, the EP is not destroyed. An EP that captures graphs serves one
// session, and once that session ran, it serves no other until the EP ends: its graphs hold the session's addresses, on
// every thread that ran the session. A host that has no gcap_session_t claims too.
//   FAILED_PRECONDITION  the EP captures graphs, and another session has claimed it, or has run
GCAP_API gcap_status_t gcap_ep_claim(gcap_ep_t* ep) GCAP_NODISCARD;
// Gives up the claim of a session that ends. Once for each claim, and as the session's last use of the EP, after its
// turn: another thread may then destroy the EP.
GCAP_API void gcap_ep_unclaim(gcap_ep_t* ep);

// A turn is the right to use the EP's stream. A host takes a turn for each whole run, including replays, and for all
// else that uses the stream: making kernels, releasing a graph, ending a session. If the EP supports no concurrent
// runs, one turn excludes all others, on any thread and of any session: gcap_ep_begin_turn waits. Else each thread has
// its own stream, and both functions do nothing. The thread that began a turn ends it. A thread that has a turn must
// not begin another.
GCAP_API void gcap_ep_begin_turn(gcap_ep_t* ep);
GCAP_API void gcap_ep_end_turn(gcap_ep_t* ep);

// --- Runs -----------------------------------------------------------------------------------------------------------

// Opens a run. The EP may begin to capture the thread's stream. The stream's device must be current from this call
// until the run's end.
//   errors of the EP (gcap_runtime_begin_run)
GCAP_API gcap_status_t gcap_ep_begin_run(gcap_ep_t* ep, int graph_id) GCAP_NODISCARD;

// Ends a run that gcap_ep_begin_run opened; call it also after a kernel failed. `run_status` is the outcome of the
// kernels, NULL for success. (ONNX Runtime does not pass the outcome to its EPs, so they may store half a graph.) The
// call takes ownership of `run_status`, and the returned status includes that outcome. With `synchronize` the results
// are complete on return.
//   CAPTURE_INVALIDATED  the run was captured and the capture failed: nothing was executed; run again
//   others               `run_status` itself, if the run was eager and a kernel failed; or of the EP
//                        (gcap_runtime_end_run)
GCAP_API gcap_status_t gcap_ep_end_run(gcap_ep_t* ep, gcap_status_t run_status, bool synchronize) GCAP_NODISCARD;

// --- Graphs ---------------------------------------------------------------------------------------------------------

// Both are false for an EP without graph support. The second one is about the calling thread's graph.
GCAP_API bool gcap_ep_is_graph_capture_enabled(const gcap_ep_t* ep);
GCAP_API bool gcap_ep_is_graph_captured(gcap_ep_t* ep, int graph_id);

// Replays the calling thread's graph of `graph_id`. `options` NULL: the defaults of gcap_graph_replay_options_t.
// `*out_replayed` is false if there is no such graph, which is no failure.
//   FAILED_PRECONDITION  `check_bindings`: the EP cannot sign graphs
//   others               of the EP (gcap_runtime_replay)
GCAP_API gcap_status_t gcap_ep_replay_graph(gcap_ep_t* ep, int graph_id, const gcap_graph_replay_options_t* options,
                                            bool* out_replayed) GCAP_NODISCARD;

// Releases the calling thread's graph of `graph_id`.
//   FAILED_PRECONDITION  the EP cannot release graphs
//   others               of the EP (gcap_runtime_release)
GCAP_API gcap_status_t gcap_ep_release_captured_graph(gcap_ep_t* ep, int graph_id) GCAP_NODISCARD;

// Signs the run that the calling thread has open: `bindings` are the tensors that the graph will be bound to. An eager
// run is not signed. See gcap_graph_manager_sign.
//   FAILED_PRECONDITION  the EP cannot sign graphs
//   others               of the EP (gcap_runtime_sign)
GCAP_API gcap_status_t gcap_ep_sign_graph(gcap_ep_t* ep, const gcap_graph_binding_t* bindings,
                                          size_t num_bindings) GCAP_NODISCARD;

// Returns a copy of the failure that answers a question about the calling thread's graph of `graph_id`, for messages
// (gcap_graph_manager_explain). NULL if there was no such failure, or the EP explains nothing.
//   errors of the EP (gcap_runtime_explain)
GCAP_API gcap_status_t gcap_ep_explain(gcap_ep_t* ep, int graph_id, gcap_graph_question_t question) GCAP_NODISCARD;

// Blocks until all work of the calling thread's stream is done; never waits for the device.
//   errors of the EP (gcap_runtime_synchronize)
GCAP_API gcap_status_t gcap_ep_synchronize(gcap_ep_t* ep) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EP_H_
