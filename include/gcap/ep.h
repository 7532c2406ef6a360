// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ep.h: execution providers (EPs) as a host sees them: kernels, runs, graphs, copies, streams and memory. Implementers
// include ep_ops.h.
#ifndef GCAP_EP_H_
#define GCAP_EP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/graph.h"
#include "gcap/model.h"
#include "gcap/runtime.h"
#include "gcap/status.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// EP: an execution provider. From gcap_ep_create (ep_ops.h), usually called by a function of the provider.
// Thread:   thread-safe. If gcap_ep_supports_concurrent_runs is false, the host serializes runs (gcap_ep_begin_turn).
// Capture:  gcap_ep_end_run, gcap_ep_sign_graph, gcap_ep_get_run_resources and the functions that only read are legal
//           while the thread's run is being captured.
// Lifetime: outlives the sessions and kernels made with the EP.
// Errors:   "of the EP" means: what the implementer's function returns, or in its place the runtime's function
//           (runtime.h). Besides those listed, INVALID_ARGUMENT if a required argument is NULL.
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

// --- Nodes and kernels ----------------------------------------------------------------------------------------------

// What a kernel gets for one computation. All of it is borrowed until compute returns: a kernel that keeps the stream,
// to compare it in a later computation, must not use it then, for another thread's stream may be the run's.
typedef struct gcap_kernel_context {
  gcap_run_resources_t resources;  // all NULL if the EP runs on the host
  const gcap_tensor_t* inputs;     // in the node's order; gcap_ep_input_place says where their data is
  gcap_tensor_t* outputs;          // in the node's order; memory of the EP is allocated, the kernel writes it
  gcap_ep_t* ep;                   // the EP that made the kernel
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

// --- Resources ------------------------------------------------------------------------------------------------------

// Returns the calling thread's resources, which are made on first use; all NULL for an EP that runs on the host.
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

// Opens a run on buffers that may be elsewhere at each replay. The kernels find them at `out_addresses[count]`. If
// `*out_kind` is RUN_REHEARSAL, nothing of the run is executed: end the run, and begin it again. See
// gcap_graph_manager_begin_run_on.
//   FAILED_PRECONDITION  the EP has begin_run and no begin_run_on
//   others               of the EP (gcap_runtime_begin_run_on)
GCAP_API gcap_status_t gcap_ep_begin_run_on(gcap_ep_t* ep, int graph_id, const gcap_graph_buffers_t* buffers,
                                            gcap_graph_run_kind_t* out_kind, void** out_addresses) GCAP_NODISCARD;

// Ends a run that gcap_ep_begin_run opened; call it also after a kernel failed. `run_status` is the outcome of the
// kernels, NULL for success. (ONNX Runtime does not pass the outcome to its EPs, so they may store half a graph.) The
// call takes ownership of `run_status`, and the returned status includes that outcome. With `synchronize` the results
// are complete on return.
//   CAPTURE_INVALIDATED  the run was captured and the capture failed: nothing was executed; run again
//   others               `run_status` itself, if the run was eager and a kernel failed; or of the EP
//                        (gcap_runtime_end_run)
GCAP_API gcap_status_t gcap_ep_end_run(gcap_ep_t* ep, gcap_status_t run_status, bool synchronize) GCAP_NODISCARD;

// --- Graphs ---------------------------------------------------------------------------------------------------------

// Both are false for an EP without graph support. The second one is about the calling thread's graph. An EP that says
// that it captures, but whose table lacks what a host needs for that, runs without capture, and one warning says so.
GCAP_API bool gcap_ep_is_graph_capture_enabled(const gcap_ep_t* ep);
GCAP_API bool gcap_ep_is_graph_captured(gcap_ep_t* ep, int graph_id);

// Which nodes of a model may be on another EP if this EP is to capture the model, as ONNX Runtime's
// OrtGraphCaptureNodeAssignmentPolicy.
typedef enum gcap_graph_node_policy {
  // No node may be on another EP.
  GCAP_GRAPH_ALL_NODES_ON_EP = 0,
  // Nodes that only compute shapes may be on an EP that runs on the host, so long as nothing is copied between EPs.
  GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES,
} gcap_graph_node_policy_t;

// The EP's policy; GCAP_GRAPH_ALL_NODES_ON_EP if the EP has none.
GCAP_API gcap_graph_node_policy_t gcap_ep_graph_capture_node_assignment_policy(const gcap_ep_t* ep);

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

// Blocks until all work of the calling thread's stream is done; never waits for the device. Returns at once for an EP
// that runs on the host.
//   errors of the EP (gcap_runtime_synchronize)
GCAP_API gcap_status_t gcap_ep_synchronize(gcap_ep_t* ep) GCAP_NODISCARD;

// Gives cached memory back, as ONNX Runtime's arena shrinkage. An EP without caches does nothing.
//   errors of the EP (gcap_scratch_trim)
GCAP_API gcap_status_t gcap_ep_trim(gcap_ep_t* ep) GCAP_NODISCARD;

// --- Copies, streams and memory for a host --------------------------------------------------------------------------

// True if gcap_ep_copy_tensors copies between such memory. The default of an EP that runs on the host: host memory.
GCAP_API bool gcap_ep_can_copy(gcap_ep_t* ep, gcap_memory_t src, gcap_memory_t dst);

// Copies one tensor: gcap_ep_copy_tensors of one.
//   errors of gcap_ep_copy_tensors
GCAP_API gcap_status_t gcap_ep_copy_tensor(gcap_ep_t* ep, const gcap_copy_t* copy) GCAP_NODISCARD;

// Copies tensors in the order of `copies`. A copy without a stream is done on return; one with a stream is issued there
// and may be under way. gcap_ep_copies_in_default_stream says whether copies without a stream come after the runs that
// the thread has issued. The data of both tensors stays until the copy is done; of a captured copy, as long as the
// graph.
//   INVALID_ARGUMENT  a tensor is NULL, or has no data, or is not like its partner; gcap_ep_can_copy is false; or a copy
//                     has a stream and the EP runs on the host
//   others            of the EP (gcap_runtime_copy_tensors)
GCAP_API gcap_status_t gcap_ep_copy_tensors(gcap_ep_t* ep, const gcap_copy_t* copies, size_t count) GCAP_NODISCARD;

// The option do_copy_in_default_stream, as ONNX Runtime's kernels ask (DoCopyOnDefaultStream): true, a copy without a
// stream comes after the runs of its thread; false, the host orders it.
GCAP_API bool gcap_ep_copies_in_default_stream(const gcap_ep_t* ep);

// Makes a stream for the host, which ends it with gcap_stream_destroy before the EP.
//   UNIMPLEMENTED  the EP gives no streams
//   others         of the EP (gcap_runtime_create_stream)
GCAP_API gcap_status_t gcap_ep_create_stream(gcap_ep_t* ep, gcap_stream_t** out_stream) GCAP_NODISCARD;

// Returns the EP's allocator of such memory, for memory that outlives runs. Borrowed until the EP ends; its memory is
// freed before.
//   UNIMPLEMENTED  the EP has no allocator of that kind
//   others         of the EP (gcap_runtime_get_allocator)
GCAP_API gcap_status_t gcap_ep_get_allocator(gcap_ep_t* ep, gcap_memory_kind_t kind,
                                             gcap_allocator_t** out_allocator) GCAP_NODISCARD;

// --- More streams in a run ------------------------------------------------------------------------------------------

// For kernels: gives `count` further streams to the run of the calling thread, borrowed until the run ends. Their next
// work comes after what the run's stream was given so far; in a capture they take part in it.
//   UNIMPLEMENTED  the EP has one stream for a run
//   others         of the EP (gcap_runtime_fork)
GCAP_API gcap_status_t gcap_ep_fork(gcap_ep_t* ep, size_t count, gcap_stream_t** out_streams) GCAP_NODISCARD;

// Orders the next work of the run's stream after all work of the streams that were forked since the last join.
//   UNIMPLEMENTED  the EP has one stream for a run
//   others         of the EP (gcap_runtime_join)
GCAP_API gcap_status_t gcap_ep_join(gcap_ep_t* ep) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EP_H_
