// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// io_binding.h: the inputs and outputs of a session's runs, bound by name, wherever their memory is.
#ifndef GCAP_KIT_IO_BINDING_H_
#define GCAP_KIT_IO_BINDING_H_

#include "gcap/kit/run_options.h"
#include "gcap/kit/session.h"
#include "gcap/status.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// IO binding: a tensor for each input and output of a session's model, for any number of runs, as ONNX Runtime's
// IoBinding. From gcap_io_binding_create.
// Memory:   a tensor in the memory that gcap_session_input_memory or gcap_session_output_memory names is used as it is;
//           so is pinned memory where that is host memory. Any other tensor is staged: the binding has memory of the EP
//           for it from the bind on, and each run copies the input there before its work, or the output from there
//           after it. The copies are on the stream of the run, outside of its graph: a graph has the address of the
//           staging memory, so the tensor may be bound to another address between replays.
// Sizes:    staging memory of another size has another address. Earlier memory is kept as long as a graph has its
//           address, and is used again when a tensor of its size is bound again.
// Graphs:   once a tensor was staged, the runs of the binding are run with check_bindings: a graph id that was captured
//           with other addresses, such as those of another binding, is refused by the name of the tensor.
// Thread:   one at a time; another one that comes meanwhile is refused. Before another thread runs it, the work of the
//           earlier runs is done. Several threads have several bindings.
// Capture:  only gcap_session_run_bound may be called on a thread that has a capture scope open.
// Lifetime: the session outlives the binding: gcap_session_destroy refuses while a binding lives. The data of a tensor
//           stays as long as the tensor is bound, and until the work of the runs is done; staging memory does so by
//           itself.
// Errors:   besides those listed, INVALID_ARGUMENT if a required argument is NULL, and FAILED_PRECONDITION if a run of
//           the binding has not returned yet, or another thread uses the binding.
typedef struct gcap_io_binding gcap_io_binding_t;

// Creates a binding to which nothing is bound.
//   FAILED_PRECONDITION  the calling thread is capturing
//   RESOURCE_EXHAUSTED   no host memory
GCAP_API gcap_status_t gcap_io_binding_create(gcap_session_t* session, gcap_io_binding_t** out_binding) GCAP_NODISCARD;

// Ends the binding. NULL is fine. Staging memory that a graph or a stream may still use is the session's then.
//   FAILED_PRECONDITION  the calling thread is capturing, or calls from inside a run of the binding; nothing was destroyed
GCAP_API gcap_status_t gcap_io_binding_destroy(gcap_io_binding_t* binding) GCAP_NODISCARD;

// Binds the tensor, whose data is in `memory`, to the model's input `name`, in the place of the one that was bound. The
// struct is copied. On failure the earlier tensor stays bound.
//   INVALID_ARGUMENT     the model has no input of that name: the message has those that it has; the type, the rank or a
//                        size is not the model's; the data is NULL; or the session's EP cannot copy between `memory`
//                        and its own
//   FAILED_PRECONDITION  the calling thread is capturing
//   RESOURCE_EXHAUSTED   no host memory
//   others               of the EP's allocator (gcap_allocator_alloc)
GCAP_API gcap_status_t gcap_io_binding_bind_input(gcap_io_binding_t* binding, const char* name,
                                                  const gcap_tensor_t* tensor, gcap_memory_t memory) GCAP_NODISCARD;
// The same for an output.
//   errors of gcap_io_binding_bind_input
GCAP_API gcap_status_t gcap_io_binding_bind_output(gcap_io_binding_t* binding, const char* name,
                                                   const gcap_tensor_t* tensor, gcap_memory_t memory) GCAP_NODISCARD;

// Unbinds all inputs and outputs, whose data may then go, once the work of the runs is done.
//   FAILED_PRECONDITION  the calling thread is capturing
GCAP_API gcap_status_t gcap_io_binding_clear(gcap_io_binding_t* binding) GCAP_NODISCARD;

// Waits for the calling thread's runs without `synchronize`, by waiting for its streams of the session's EPs: the
// outputs are complete then, and the contents of the inputs may be changed.
//   FAILED_PRECONDITION  the calling thread is capturing
//   others               of the EP's runtime (gcap_runtime_synchronize)
GCAP_API gcap_status_t gcap_io_binding_synchronize(gcap_io_binding_t* binding) GCAP_NODISCARD;

// Runs the model once, as gcap_session_run, with what is bound. `options` NULL: the defaults. With `synchronize` the
// results are in the outputs on return, also in host memory; without, in the order of the run's stream, and an output
// in pageable host memory is refused. On a thread that has a capture scope open the run is captured as a part of the
// caller's graph, with the copies of what is staged: pinned memory is copied again in each replay, pageable memory is
// refused, which fails the scope.
//   INVALID_ARGUMENT     an input or output is not bound; or the binding is of another session
//   FAILED_PRECONDITION  without `synchronize`: an output is in pageable host memory; in a capture: so is a tensor; or
//                        the EP cannot sign graphs, a tensor was staged, and there is a graph id
//   others               as gcap_session_run, also for outputs whose shape the inputs decide; and of the EP
//                        (gcap_runtime_copy_tensors, gcap_runtime_synchronize)
GCAP_API gcap_status_t gcap_session_run_bound(gcap_session_t* session, const gcap_run_options_t* options,
                                              gcap_io_binding_t* binding) GCAP_NODISCARD;

// Runs the model, as gcap_session_warm_up, with what is bound: the inputs are copied once before all runs, the outputs
// once after them. Makes at least one run, which is a replay if the id has a graph.
//   FAILED_PRECONDITION  the calling thread is capturing; or as gcap_session_warm_up and gcap_session_run_bound
//   UNAVAILABLE          as gcap_session_warm_up
//   others               as gcap_session_run_bound
GCAP_API gcap_status_t gcap_session_warm_up_bound(gcap_session_t* session, const gcap_run_options_t* options,
                                                  gcap_io_binding_t* binding) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_IO_BINDING_H_
