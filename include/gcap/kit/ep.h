// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep.h: execution providers (EPs) as a host sees them: nodes, kernels and turns. Runs, graphs, copies, streams and
// memory are those of the EP's runtime (runtime.h). Implementers include ep_ops.h.
#ifndef GCAP_KIT_EP_H_
#define GCAP_KIT_EP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/kit/model.h"
#include "gcap/runtime.h"
#include "gcap/status.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// EP: an execution provider. From gcap_ep_create (ep_ops.h), usually called by a function of the provider.
// Thread:   thread-safe. If gcap_ep_supports_concurrent_runs is false, the host serializes runs (gcap_ep_begin_turn).
// Capture:  the functions that only read are legal while the thread's run is being captured.
// Lifetime: outlives the sessions and kernels made with the EP.
// Errors:   "of the EP" means what the implementer's function returns. Besides those listed, INVALID_ARGUMENT if a
//           required argument is NULL.
typedef struct gcap_ep gcap_ep_t;

// Ends the EP, after its sessions and kernels. NULL is fine.
//   FAILED_PRECONDITION  the calling thread is capturing, or a session of the EP lives; nothing was destroyed
//   LEAKED               of the EP (gcap_runtime_destroy): the EP is gone, a part of it is kept
//   others               of the EP (gcap_runtime_destroy): a refusal, the EP is whole
GCAP_API gcap_status_t gcap_ep_destroy(gcap_ep_t* ep) GCAP_NODISCARD;

// The name that the EP has in messages and in the keys of options.
GCAP_API const char* gcap_ep_name(const gcap_ep_t* ep);
// True if several threads may run the EP at once. Else the host serializes runs (gcap_ep_begin_turn).
GCAP_API bool gcap_ep_supports_concurrent_runs(const gcap_ep_t* ep);
// True if the EP's kernels work on host memory, as a CPU EP's. Such an EP has no stream: its work is done on return.
GCAP_API bool gcap_ep_runs_on_host(const gcap_ep_t* ep);
// The runtime of the EP, of which a host asks all that runs need; NULL for an EP that runs on the host, whose kernels
// are called without a begin or an end, and whose memory the host copies by itself. Borrowed until the EP ends.
GCAP_API gcap_runtime_t* gcap_ep_runtime(const gcap_ep_t* ep);

// --- Nodes and kernels ----------------------------------------------------------------------------------------------

// What a kernel gets for one computation.
// Thread:   for the thread that calls compute. Several computations have a struct each.
// Capture:  as gcap_run_resources_t: in a captured run the stream is capturing.
// Lifetime: all of it is borrowed until compute returns: a kernel that keeps the stream, to compare it in a later
//           computation, must not use it then, for another thread's stream may be the run's.
typedef struct gcap_kernel_context {
  const gcap_tensor_t* inputs;     // in the node's order; gcap_ep_input_place says where their data is
  gcap_tensor_t* outputs;          // in the node's order; memory of the EP is allocated, the kernel writes it
  gcap_ep_t* ep;                   // the EP that made the kernel; gcap_runtime_fork takes its runtime
  gcap_run_resources_t resources;  // all NULL if the EP runs on the host. Last, since it grows
} gcap_kernel_context_t;

// Kernel: one node made ready to run: plans, algorithms, library handles. From gcap_ep_create_kernel.
// Thread:   compute may run on several threads at once if the EP supports concurrent runs.
// Capture:  compute runs inside captures: it issues work only to the context's stream, allocates only from the
//           context's scratch, and does not synchronize. One that is not_capturable may do all that, for it is called in
//           no capture.
// Lifetime: outlives the graphs that recorded the kernel; ends before the EP.
typedef struct gcap_kernel {
  void* self;                                                                  // passed to both members
  gcap_status_t (*compute)(void* self, const gcap_kernel_context_t* context);  // required
  void (*destroy)(void* self);  // optional; the creator of the kernel calls it once, when no run uses it
  // Optional. True: no graph can hold what compute does with these shapes: it waits, allocates from the driver, calls a
  // library that is not capturable, or decides on the host by what the device has computed. Under
  // GCAP_GRAPH_ALLOW_HOLES the node is in a hole, so compute is called in each replay; under the other policies a model
  // with such a node is not captured. Default false.
  bool not_capturable;
} gcap_kernel_t;

// True if the EP can run the node, with the node's types, shapes and attributes. A host asks before any run: a
// dimension may then be GCAP_DIM_SYMBOL or GCAP_DIM_INFERRED, and true means that the EP runs the node for whatever
// size a run brings.
GCAP_API bool gcap_ep_supports(gcap_ep_t* ep, const gcap_model_t* model, const gcap_node_t* node);

// Where a kernel reads an input.
typedef enum gcap_input_place {
  GCAP_INPUT_IN_EP_MEMORY = 0,  // device memory of the EP; host memory if the EP runs on the host
  GCAP_INPUT_IN_HOST_MEMORY,    // the kernel reads the content on the CPU, when its plan is made or when it is issued
  GCAP_INPUT_SHAPE_ONLY,        // the kernel reads the shape alone; `data` may be memory of any EP
} gcap_input_place_t;

// Where the node's kernel reads its input number `input`. ONNX Runtime's KernelDef says the same by OrtMemTypeCPUInput.
GCAP_API gcap_input_place_t gcap_ep_input_place(gcap_ep_t* ep, const gcap_model_t* model, const gcap_node_t* node,
                                                int input);

// Computes the shapes of a node's outputs from those of its inputs. `inputs[i].data` is the content of input i in host
// memory where that is known before the run, else NULL. `outputs` come with type and rank of the model's values and
// with the sizes that the model has fixed; the others are GCAP_DIM_INFERRED, and the EP fills them in. An EP that
// infers nothing leaves `outputs` as they are.
//   errors of the EP
GCAP_API gcap_status_t gcap_ep_infer_shapes(gcap_ep_t* ep, const gcap_model_t* model, const gcap_node_t* node,
                                            const gcap_tensor_t* inputs, gcap_tensor_t* outputs) GCAP_NODISCARD;

// Makes the kernel of a node that the EP supports. The shapes of the node's inputs and outputs are fixed by then; those
// of other values may follow from what the kernel makes.
//   INVALID_ARGUMENT  the node has no name or no op_type; or the EP made a kernel without compute
//   others            of the EP
GCAP_API gcap_status_t gcap_ep_create_kernel(gcap_ep_t* ep, const gcap_model_t* model, const gcap_node_t* node,
                                             gcap_kernel_t* out_kernel) GCAP_NODISCARD;

// --- Turns ----------------------------------------------------------------------------------------------------------

// Claims an EP for one session: while a session lives, the EP is not destroyed. An EP that captures graphs serves one
// session, and once that session ran, it serves no other until the EP ends: its graphs hold the session's addresses, on
// every thread that ran the session. A host that has no gcap_session_t claims too.
//   FAILED_PRECONDITION  the EP captures graphs, and another session has claimed it, or has run
GCAP_API gcap_status_t gcap_ep_claim(gcap_ep_t* ep) GCAP_NODISCARD;
// Gives up the claim of a session that ends. Once for each claim, and as the session's last use of the EP, after its
// turn: another thread may then destroy the EP. `has_run`: the session began a run with a graph id, so there may be
// graphs of it.
GCAP_API void gcap_ep_unclaim(gcap_ep_t* ep, bool has_run);

// A turn is the right to use the EP's stream. A host takes a turn for each whole run, including replays, and for all
// else that uses the stream: making kernels, releasing a graph, ending a session. If the EP supports no concurrent
// runs, one turn excludes all others, on any thread and of any session: gcap_ep_begin_turn waits. Else each thread has
// its own stream, and both functions do nothing. The thread that began a turn ends it. A thread that has a turn must
// not begin another.
GCAP_API void gcap_ep_begin_turn(gcap_ep_t* ep);
GCAP_API void gcap_ep_end_turn(gcap_ep_t* ep);

// --- Graphs and memory ------------------------------------------------------------------------------------------------

// Which nodes of a model may be on another EP if this EP is to capture the model. The first two are those of ONNX
// Runtime's OrtGraphCaptureNodeAssignmentPolicy.
typedef enum gcap_graph_node_policy {
  // No node may be on another EP.
  GCAP_GRAPH_ALL_NODES_ON_EP = 0,
  // Nodes that only compute shapes may be on an EP that runs on the host, so long as nothing is copied between EPs.
  GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES,
  // Any node may be on an EP that runs on the host, and a node of this EP may be not_capturable (gcap_kernel_t). Such
  // nodes, and copies between EPs, are in holes (gcap/graph_holes.h): each replay runs them on the host between
  // launches.
  // ONNX Runtime makes no holes; it is told the policy before this one.
  GCAP_GRAPH_ALLOW_HOLES,
} gcap_graph_node_policy_t;

// The EP's policy; GCAP_GRAPH_ALL_NODES_ON_EP if the EP has none.
GCAP_API gcap_graph_node_policy_t gcap_ep_graph_capture_node_assignment_policy(const gcap_ep_t* ep);

// Gives cached memory back, as ONNX Runtime's arena shrinkage. An EP without caches does nothing.
//   errors of the EP (gcap_scratch_trim)
GCAP_API gcap_status_t gcap_ep_trim(gcap_ep_t* ep) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_EP_H_
