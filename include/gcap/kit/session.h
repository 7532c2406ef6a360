// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// session.h: a small host that runs a model on EPs: which EP runs which node, plans for the shapes of a run, memory for
// intermediate values, replay.
#ifndef GCAP_KIT_SESSION_H_
#define GCAP_KIT_SESSION_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gcap/kit/ep.h"
#include "gcap/kit/run_options.h"
#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_session_options {
  size_t struct_size;  // set by gcap_session_options_init
  // If an EP captures graphs, and cannot capture the model: true, the model runs eagerly, and one warning says why;
  // false, the model is refused. Default false.
  bool run_eagerly_if_not_capturable;
  // Of a model with symbols: how many sets of shapes are remembered that no graph id is bound to. The one used longest
  // ago is forgotten first. Default 16.
  size_t max_shapes_without_id;
  // True: as if the policy of the EP that captures were GCAP_GRAPH_ALLOW_HOLES (ep.h), for an application that takes
  // the EP as it is. Default false.
  bool allow_holes;
} gcap_session_options_t;

// Sets the size and the defaults.
static inline void gcap_session_options_init(gcap_session_options_t* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = sizeof(*options);
  options->max_shapes_without_id = 16;
}

// Session: a model on EPs. From gcap_session_create.
// Nodes:    each node runs on the first EP that supports it. Nodes that only compute shapes are then moved to the first
//           EP that runs on the host, if it supports them. Where an EP reads what another one made, the session copies.
//           What a node on the host makes of shapes and constants alone is computed once for a set of shapes.
// Graphs:   the first EP that captures graphs captures the runs: the whole model is one graph. Whether that can be is
//           decided at creation, by the EP's policy (gcap_graph_node_policy_t): under ALL_NODES_ON_EP the EP has all
//           nodes; under ALLOW_CPU_FOR_SHAPES an EP that runs on the host may have nodes that compute shapes, nothing
//           is copied between EPs, and the EP has at least one node. Under both, no node reads on the host what a run
//           binds, and no kernel is not_capturable. Of a model with symbols, the kernels are made when shapes are new.
// Holes:    under ALLOW_HOLES, or with the option allow_holes, nodes of an EP that runs on the host, copies between the
// two EPs, and nodes whose kernels
//           are not_capturable are in holes (gcap/graph_holes.h): such steps that follow one another are one hole, which
//           each replay runs between two launches. At least one node is in none. Memory of the device that crosses a
//           hole is scratch of the graph, and memory of the host is the graph's. A node that is captured must not read
//           on the host what a run makes or binds, since a graph would keep the captured content. A hole with work on
//           the host waits for the device, also in a run without `synchronize`. A failure of a node in a hole is the
//           run's, and the graph stays. One line in the log, at GCAP_LOG_INFO, names the holes and their nodes.
// Shapes:   of a model with symbols, the inputs of a run decide the sizes. What is made for a set of shapes (kernels,
//           sizes, what shape nodes compute) is kept for each graph id that was run with it, until the id is released
//           on every thread that has a graph of it, and for max_shapes_without_id others. Constants are kept once.
// Thread:   thread-safe. Runs are serialized if an EP supports no concurrent runs. Else each thread has its own
//           warm-up and its own graphs. No other thread may run the session, or have a run's work in flight, while
//           the session is destroyed.
// Capture:  gcap_session_run is legal on a thread that has a capture scope open, and the run becomes a part of the
//           caller's graph. No other function may be called on a thread that is capturing.
// Lifetime: the EPs outlive the session: gcap_ep_destroy refuses while a session lives. The session outlives the graphs
//           of its callers. A model whose inputs have fixed shapes may end after gcap_session_create, another one after
//           the session. An EP that captures graphs serves one session that runs, until the EP ends, since its graphs
//           hold the session's addresses. (ONNX Runtime, too, makes an EP for each session.)
// Errors:   "of the EP" means: what the EP's function returns (ep.h). Besides those listed, INVALID_ARGUMENT if a
//           required argument is NULL.
typedef struct gcap_session gcap_session_t;

// Creates a session of the model on `eps`, in order of preference, and copies the constants to the EPs that read them.
// For a model whose inputs have fixed shapes, also makes the kernels. `options` NULL: the defaults.
//   INVALID_ARGUMENT     no EP, an EP that is NULL or leaves a run resource NULL, or a malformed model; the message has
//                        the index, the name and the wrong value; or a shape that follows from nothing
//   UNIMPLEMENTED        no EP supports a node, or none can make a copy that is needed; the message names the node
//   FAILED_PRECONDITION  an EP captures graphs, and cannot capture the model: the message names the first node that is
//                        in the way, its EP, the reason, and what to change; or an EP captures graphs, and serves
//                        another session or has run one (gcap_ep_claim)
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           a constant could not be copied
//   others               of the EPs (gcap_ep_infer_shapes, gcap_ep_create_kernel, a kernel's compute), of their
//                        runtimes (gcap_runtime_read_resources), and of their allocators
GCAP_API gcap_status_t gcap_session_create(const gcap_model_t* model, gcap_ep_t* const* eps, size_t num_eps,
                                           const gcap_session_options_t* options,
                                           gcap_session_t** out_session) GCAP_NODISCARD;

// Waits for the calling thread's work and ends the session. NULL is fine. The session's graphs stay in the EP, and end
// with the EP. Nobody may replay them any more, through the EP or its runtime: they read memory of the session.
//   FAILED_PRECONDITION  the calling thread is capturing, or its stream of the EP is; an IO binding of the session
//                        lives (io_binding.h); or a run of the session calls its kernels, so this may be a kernel's
//                        compute; nothing was destroyed
//   RESOURCE_EXHAUSTED   of the EP's runtime (gcap_runtime_synchronize); nothing was destroyed
//   UNAVAILABLE          of the EP's runtime (gcap_runtime_synchronize); nothing was destroyed
//   LEAKED               the session is gone; the wait failed, so that the device may still read the constants, which
//                        are kept; or the EP's allocator did not take a constant back
GCAP_API gcap_status_t gcap_session_destroy(gcap_session_t* session) GCAP_NODISCARD;

// What a session is.
typedef struct gcap_session_info {
  size_t struct_size;  // set by gcap_session_get_info
  bool captures;       // runs become graphs
  const char*
      ep_name;  // of the EP that captures; if none does, of the first on a device that has a node, else the first
  // Of a model whose inputs have fixed shapes; of another one 0 and NULL, for the holes may differ by shapes: the log
  // names them, and gcap_graph_info_t.holes counts them.
  size_t holes;           // in each captured run
  const int* node_holes;  // of each node of the model, the number of its hole, or -1. NULL: there are no holes
} gcap_session_info_t;

// Reads what the session is. The text and the array live as long as the session. Programs call gcap_session_get_info,
// which sets the size.
GCAP_API void gcap_session_read_info(const gcap_session_t* session, gcap_session_info_t* out_info);
static inline void gcap_session_get_info(const gcap_session_t* session, gcap_session_info_t* out_info) {
  out_info->struct_size = sizeof(*out_info);
  gcap_session_read_info(session, out_info);
}

// The name of the EP that runs node `node` of the model.
GCAP_API const char* gcap_session_node_ep_name(const gcap_session_t* session, int node);

// Where the tensor of input or output number `input` or `output` is bound: device memory of the first EP that reads the
// input there, host memory if only the host reads it; an output where it is made.
GCAP_API gcap_memory_t gcap_session_input_memory(const gcap_session_t* session, int input);
GCAP_API gcap_memory_t gcap_session_output_memory(const gcap_session_t* session, int output);

// Runs the model once. `options` NULL: the defaults. `inputs` and `outputs` are tensors in the model's order, of the
// model's types and shapes, in the memory that gcap_session_input_memory names. With a graph id, every run of that id
// on a thread must bind the same addresses, since a replay reads and writes the capture's: change the contents, not the
// addresses, or set the run option `bindings` (gcap/kit/run_options.h). Every run of that id on any thread has the same
// shapes, until the id is released. If the capture fails, the run is undone and repeated eagerly; see
// rerun_failed_capture. On a thread that has a capture scope open, the run is captured as a part of the caller's graph,
// whatever its options: the thread has run the session before, with these shapes, and a failure fails the scope.
//   INVALID_ARGUMENT     a tensor's type or shape is not the model's, or its address is NULL; the message names the
//                        tensor; a symbol with two sizes; a shape that follows from nothing; user_stream is the legacy
//                        default stream, or of another device
//   FAILED_PRECONDITION  the graph id means other shapes; check_bindings: the graph is bound to another address, or was
//                        captured without the option; user_stream is capturing; capture_only: the EP does not capture
//                        graphs, or the id is GCAP_GRAPH_ID_NONE; in a capture: the shapes are new, or the model cannot
//                        be captured
//   CAPTURE_INVALIDATED  the capture failed, and rerun_failed_capture is false, or capture_only is true
//   REPLAY_DIFFERS       verify: a replay left other results than the work (gcap/graph_verify.h)
//   UNAVAILABLE          capture_in_run: not captured after GCAP_WARM_UP_MAX_RUNS runs (gcap/graph.h), each of which
//                        succeeded; the message has the reason. A later run may still capture
//   RESOURCE_EXHAUSTED   no host memory, or no scratch memory (gcap_scratch_alloc)
//   others               of the EP and its kernels
GCAP_API gcap_status_t gcap_session_run(gcap_session_t* session, const gcap_run_options_t* options,
                                        const gcap_tensor_t* inputs, const gcap_tensor_t* outputs) GCAP_NODISCARD;

// One run of a warm-up: what gcap_session_run is given.
// Thread:   a plain value.
// Capture:  as gcap_session_warm_up: none on a thread that is capturing.
// Lifetime: the struct is read before the call returns; the tensors' data, and that of a graph, as of gcap_session_run.
typedef struct gcap_warm_up_run {
  const gcap_run_options_t* options;  // NULL: the defaults
  const gcap_tensor_t* inputs;
  const gcap_tensor_t* outputs;
} gcap_warm_up_run_t;

// Runs the model with each of `runs` until the calling thread has a graph of each graph id, so that the next run of
// each is a replay. In rounds: first all ids run eagerly, then all are captured, the one that needs the most memory
// first, and behind all others those with capture_only, which find what the others needed. This executes the model
// several times; gcap_session_run executes the model once. One line in the log, at GCAP_LOG_INFO, counts what these
// runs were the first to need: stream attachments such as library handles, plans, allocations from the driver. A
// capture that met one makes the line a warning. `on_run` is called after each run that was made, with the place of the
// run in `runs` and what became of it; NULL: nobody asks. It is called in the turns of the EPs, and calls nothing of
// the session or of its EPs.
//   FAILED_PRECONDITION  the EP does not capture graphs, or an id is GCAP_GRAPH_ID_NONE; or as gcap_session_run
//   UNAVAILABLE          as gcap_graph_manager_warm_up
//   RESOURCE_EXHAUSTED   no host memory
//   others               as gcap_session_run; the message has the graph id
GCAP_API gcap_status_t gcap_session_warm_up(gcap_session_t* session, const gcap_warm_up_run_t* runs, size_t num_runs,
                                            gcap_warm_up_fn on_run, void* user) GCAP_NODISCARD;

// Plans what the calling thread's graphs of `runs` will hold once they are captured (gcap_graph_manager_plan), before
// any is: an id each, which was run once before, as with bindings=fixed. Graphs that share their memory count it once.
// The arena grows by what the largest run lacks.
//   UNIMPLEMENTED        the EP's runtime is of a table (gcap_runtime_create_from)
//   FAILED_PRECONDITION  the EP does not capture graphs, or an id is GCAP_GRAPH_ID_NONE; the id means other shapes; or
//                        the calling thread is capturing
//   CAPTURE_INVALIDATED  a rehearsal failed; the message has the id and the first failure
//   RESOURCE_EXHAUSTED   no host memory
//   others               as gcap_session_run
GCAP_API gcap_status_t gcap_session_plan(gcap_session_t* session, const gcap_warm_up_run_t* runs, size_t num_runs,
                                         gcap_graph_plan_t* out_plan) GCAP_NODISCARD;

// Releases the calling thread's graph of `graph_id`. If no other thread has a graph of the id, the id may then be run
// with other shapes, and what was made for its shapes alone may be forgotten.
//   FAILED_PRECONDITION  the EP cannot release graphs
//   others               of the EP's runtime (gcap_runtime_release); usually NOT_FOUND if there is no such graph
GCAP_API gcap_status_t gcap_session_release_captured_graph(gcap_session_t* session, int graph_id) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_SESSION_H_
