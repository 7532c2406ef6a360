// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Kernels. ONNX Runtime has one kernel for a node, of whatever shapes a run brings; gcap's kernels are made for fixed
// shapes. So there is a gcap kernel for each set of shapes that the node has seen: made in the first run that brings
// the shapes, which is never a capture. Of those that no graph has, the ones used last are kept (plans.h).
//
// Locking: none of its own: the plans of a node lock (plans.c). The model of a node is only read once it is made.

#include "ort/kernel.h"

#include <stdlib.h>
#include <string.h>

#include "gcap/capture.h"
#include "lib/internal/cuda_guard.h"
#include "ort/devices.h"
#include "ort/holds.h"
#include "ort/kernel_node.h"
#include "ort/plans.h"
#include "ort/run.h"

// A kernel in the runtime's hands. `abi` is first.
typedef struct kernel {
  gcap_ort_kernel_impl_t abi;
  gcap_ort_session_ep_t* ep;
  gcap_ort_node_model_t* node;
  uint32_t host_inputs;
  gcap_ort_plans_t plans;
} kernel_t;

// What one computation works on: the tensors as the runtime has them now.
typedef struct call {
  kernel_t* kernel;
  gcap_ort_kernel_context_t* context;
  int num_inputs;
  int num_outputs;
  gcap_tensor_t tensors[GCAP_ORT_MAX_VALUES];  // inputs, then outputs
} call_t;

// --- Tensors --------------------------------------------------------------------------------------------------------

static bool is_on_host(const kernel_t* kernel, int input) { return gcap_ort_reads_on_host(kernel->host_inputs, input); }

// What the node leaves out. A run has nothing in its place.
static bool is_left_out(const call_t* call, int value) {
  return gcap_ort_value_is_left_out(&call->kernel->node->values[value]);
}

static gcap_tensor_t left_out(const call_t* call, int value) {
  return (gcap_tensor_t){.dtype = call->kernel->node->values[value].dtype, .rank = 1, .shape = {0}};
}

// The kernel must not follow an address of memory that is elsewhere.
static gcap_status_t check_place(const kernel_t* kernel, int input, const gcap_ort_value_t* value) {
  gcap_ort_factory_t* factory = kernel->ep->factory;
  gcap_memory_t memory = {.kind = GCAP_MEMORY_HOST};
  gcap_ort_memory_of(factory, factory->host.ep_api->Value_GetMemoryDevice(value), &memory);
  if (gcap_memory_is_on_host(memory) == is_on_host(kernel, input)) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s': input %d is in %s memory, the kernel reads it in %s memory",
                     kernel->node->name, input, gcap_memory_kind_name(memory.kind),
                     is_on_host(kernel, input) ? "host" : "device");
}

static gcap_status_t read_input(call_t* call, int i) {
  const gcap_ort_host_t* host = &call->kernel->ep->factory->host;
  const char* name = call->kernel->node->name;
  const gcap_ort_value_t* value = NULL;
  const int64_t* shape = NULL;
  size_t rank = 0;
  gcap_ort_element_type_t type = GCAP_ORT_UNDEFINED;
  gcap_tensor_t* tensor = &call->tensors[i];
  if (is_left_out(call, i)) {
    *tensor = left_out(call, i);
    return NULL;
  }
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, KernelContext_GetInput(call->context, (size_t)i, &value)));
  if (value == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s': input %d is absent", name, i);
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetTensorElementTypeAndShapeDataReference(value, &type, &shape, &rank)));
  if (rank > GCAP_MAX_RANK || !gcap_ort_dtype(type, &tensor->dtype)) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s': input %d has the type %d and %zu dimensions", name, i,
                       (int)type, rank);
  }
  GCAP_RETURN_IF_ERROR(check_place(call->kernel, i, value));
  tensor->rank = (int)rank;
  if (rank > 0) memcpy(tensor->shape, shape, rank * sizeof(*shape));
  return GCAP_ORT_CALL(host, GetTensorData(value, (const void**)&tensor->data));
}

static gcap_status_t get_output(call_t* call, int i) {
  const gcap_ort_host_t* host = &call->kernel->ep->factory->host;
  gcap_tensor_t* tensor = &call->tensors[call->num_inputs + i];
  gcap_ort_value_t* value = NULL;
  if (is_left_out(call, call->num_inputs + i)) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(
      host, KernelContext_GetOutput(call->context, (size_t)i, tensor->shape, (size_t)tensor->rank, &value)));
  return GCAP_ORT_CALL(host, GetTensorMutableData(value, &tensor->data));
}

static bool has_output_of_any_rank(const call_t* call) {
  const gcap_value_t* outputs = &call->kernel->node->values[call->num_inputs];
  bool any = false;
  for (int i = 0; !any && i < call->num_outputs; ++i) any = outputs[i].rank == GCAP_ORT_ANY_RANK;
  return any;
}

// Of the outputs whose ranks are sought: the rank of the first one, and that of those behind it. AS_DECLARED: none is.
typedef struct ranks {
  int first, rest;
} ranks_t;
enum { AS_DECLARED = -1 };

// Infers the shapes of outputs that have the ranks of the model. Sought are those of the outputs of unknown rank; of
// all outputs, if the model says a rank of each, since then what it says is wrong.
static gcap_status_t infer_at(call_t* call, const gcap_tensor_t* inputs, ranks_t ranks) {
  const gcap_ort_node_model_t* node = call->kernel->node;
  gcap_tensor_t* outputs = call->tensors + call->num_inputs;
  const bool any_open = has_output_of_any_rank(call);
  int rank = ranks.first;
  for (int i = 0; i < call->num_outputs; ++i) {
    const gcap_value_t* value = &node->values[call->num_inputs + i];
    if (gcap_ort_value_is_left_out(value)) {
      outputs[i] = left_out(call, call->num_inputs + i);
      continue;
    }
    const bool is_open = rank >= 0 && (value->rank == GCAP_ORT_ANY_RANK || !any_open);
    outputs[i] = (gcap_tensor_t){.dtype = value->dtype, .rank = is_open ? rank : value->rank};
    for (int d = 0; d < outputs[i].rank; ++d) outputs[i].shape[d] = GCAP_DIM_INFERRED;
    if (is_open) rank = ranks.rest;
  }
  return gcap_ep_infer_shapes(call->kernel->ep->ep, &node->model, &node->node, inputs, outputs);
}

// A search for the only ranks that the inputs allow.
typedef struct search {
  ranks_t found;          // AS_DECLARED: none yet
  gcap_status_t refusal;  // the first one, which tells as much as the others
} search_t;

static gcap_status_t try_ranks(call_t* call, const gcap_tensor_t* inputs, ranks_t ranks, search_t* search) {
  gcap_status_t status = infer_at(call, inputs, ranks);
  if (status != NULL && search->refusal == NULL) {
    search->refusal = status;
    return NULL;
  }
  gcap_status_ignore(status);  // a refusal is an answer
  if (status != NULL) return NULL;
  if (search->found.first != AS_DECLARED) {
    const bool differs = search->found.first != ranks.first;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the model says no rank of the outputs, and the EP infers %d and %d",
                       differs ? search->found.first : search->found.rest, differs ? ranks.first : ranks.rest);
  }
  search->found = ranks;
  return NULL;
}

// The same rank for all, or one for the first output and another one for the rest, as a cache beside it has.
static gcap_status_t try_all_ranks(call_t* call, const gcap_tensor_t* inputs, bool alike, search_t* search) {
  for (int first = 0; first <= GCAP_MAX_RANK; ++first) {
    for (int rest = 0; rest <= GCAP_MAX_RANK; ++rest) {
      if ((first == rest) != alike) continue;
      GCAP_RETURN_IF_ERROR(try_ranks(call, inputs, (ranks_t){first, rest}, search));
    }
  }
  return NULL;
}

// Where the model's ranks are unknown, or are not those that the inputs give.
static gcap_status_t infer_rank(call_t* call, const gcap_tensor_t* inputs) {
  search_t search = {.found = {AS_DECLARED, AS_DECLARED}};
  gcap_status_t status = try_all_ranks(call, inputs, /*alike=*/true, &search);
  if (status == NULL && search.found.first == AS_DECLARED && call->num_outputs > 1) {
    status = try_all_ranks(call, inputs, /*alike=*/false, &search);
  }
  if (status == NULL && search.found.first == AS_DECLARED) return search.refusal;
  gcap_status_free(search.refusal);
  return status != NULL ? status : infer_at(call, inputs, search.found);
}

static gcap_status_t infer_all(call_t* call, const gcap_tensor_t* inputs) {
  if (has_output_of_any_rank(call)) return infer_rank(call, inputs);
  gcap_status_t status = infer_at(call, inputs, (ranks_t){AS_DECLARED, AS_DECLARED});
  if (gcap_status_code(status) != GCAP_INVALID_ARGUMENT) return status;
  gcap_status_t other = infer_rank(call, inputs);
  gcap_status_ignore(other != NULL ? other : status);  // the model's ranks are what the application knows
  return other != NULL ? status : NULL;
}

// Infers the shapes of the outputs. Of the inputs, only the content that is in host memory is known. What a model
// declares of a value between its nodes may be wrong, and ONNX Runtime runs such models: where the inputs contradict
// the declared ranks, the outputs have the rank that the inputs allow.
static gcap_status_t infer(call_t* call) {
  gcap_tensor_t inputs[GCAP_ORT_MAX_VALUES];
  const gcap_tensor_t* outputs = call->tensors + call->num_inputs;
  for (int i = 0; i < call->num_inputs; ++i) {
    inputs[i] = call->tensors[i];
    if (!is_on_host(call->kernel, i)) inputs[i].data = NULL;
  }
  GCAP_RETURN_IF_ERROR(infer_all(call, inputs));
  for (int i = 0; i < call->num_outputs; ++i) {
    for (int d = 0; d < outputs[i].rank; ++d) {
      if (outputs[i].shape[d] >= 0) continue;
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s': the EP inferred no size for dimension %d of output %d",
                         call->kernel->node->name, d, i);
    }
  }
  return NULL;
}

// --- Plans ----------------------------------------------------------------------------------------------------------

static gcap_status_t create_gcap_kernel(const call_t* call, gcap_kernel_t* out_kernel) {
  gcap_ort_node_model_t fixed;
  gcap_ort_node_copy(call->kernel->node, &fixed);
  for (int i = 0; i < call->num_inputs + call->num_outputs; ++i) {
    fixed.values[i].dtype = call->tensors[i].dtype;
    fixed.values[i].rank = call->tensors[i].rank;
    memcpy(fixed.values[i].shape, call->tensors[i].shape, sizeof(fixed.values[i].shape));
    const bool is_hidden = i < call->num_inputs && gcap_ort_reads_on_host(call->kernel->node->hidden_constants, i);
    if (is_hidden) fixed.values[i].host_data = call->tensors[i].data;
  }
  return gcap_ep_create_kernel(call->kernel->ep->ep, &fixed.model, &fixed.node, out_kernel);
}

static gcap_status_t create_plan(const call_t* call, gcap_ort_plan_t** out_plan) {
  const char* name = call->kernel->node->name;
  if (gcap_thread_is_capturing()) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "node '%s' has shapes in this capture that no run shortly before the capture had: a graph id "
                       "stands for one set of shapes",
                       name);
  }
  gcap_ort_plan_t* plan = NULL;
  GCAP_RETURN_IF_ERROR(gcap_ort_plan_create(name, call->tensors, call->num_inputs + call->num_outputs, &plan));
  gcap_status_t status = create_gcap_kernel(call, &plan->kernel);
  if (status != NULL) {
    gcap_hold_let_go(plan->hold);
    gcap_ort_plan_destroy(plan);
    return status;
  }
  gcap_ort_plans_add(&call->kernel->plans, plan);
  *out_plan = plan;
  return NULL;
}

// Finds or makes the plan, of which the caller gets a part, and gets the outputs. Where no content decides their
// shapes, a plan that was found knows them.
static gcap_status_t prepare(call_t* call, gcap_ort_plan_t** out_plan) {
  gcap_ort_plans_t* plans = &call->kernel->plans;
  *out_plan = call->kernel->host_inputs == 0 ? gcap_ort_plans_find(plans, call->tensors, call->num_inputs) : NULL;
  if (*out_plan != NULL) {
    memcpy(call->tensors + call->num_inputs, (*out_plan)->tensors + call->num_inputs,
           (size_t)call->num_outputs * sizeof(call->tensors[0]));
  } else {
    GCAP_RETURN_IF_ERROR(infer(call));
    *out_plan = gcap_ort_plans_find(plans, call->tensors, call->num_inputs + call->num_outputs);
  }
  for (int i = 0; i < call->num_outputs; ++i) GCAP_RETURN_IF_ERROR(get_output(call, i));
  return *out_plan != NULL ? NULL : create_plan(call, out_plan);
}

// --- Computation ----------------------------------------------------------------------------------------------------

// The graph of a capture has a part of the plan, and else the run, until its work is done.
static gcap_status_t hold_plan(const gcap_ort_plan_t* plan, gcap_ort_run_t* run) {
  gcap_capture_t* capture = gcap_capture_current();
  if (capture != NULL) return gcap_hold_give_to_capture(plan->hold, capture);
  return run != NULL ? gcap_ort_run_hold(run, plan->hold) : NULL;
}

// Without a run, as in a test of ONNX Runtime's, the calling thread's stream is used.
static gcap_status_t compute_plan(call_t* call, const gcap_ort_plan_t* plan, gcap_ort_run_t* run) {
  gcap_ep_t* ep = call->kernel->ep->ep;
  gcap_kernel_context_t context = {.inputs = call->tensors, .outputs = call->tensors + call->num_inputs, .ep = ep};
  if (run == NULL) {
    GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(gcap_ep_runtime(ep), &context.resources));
  } else {
    ++run->num_computed;
    if (run->failure != NULL) return NULL;  // the run's results are lost: the rest need not be computed
    if (run->captures && !gcap_thread_is_capturing()) {
      return GCAP_STATUS(
          GCAP_FAILED_PRECONDITION,
          "ONNX Runtime computes the node on another thread than the one that captures: use ORT_SEQUENTIAL "
          "for captured runs");
    }
    context.resources = run->resources;
  }
  if (plan->kernel.not_capturable && gcap_thread_is_capturing()) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "the kernel is not_capturable, and ONNX Runtime's runs have no holes for it");
  }
  GCAP_RETURN_IF_ERROR(hold_plan(plan, run));
  gcap_status_t status = plan->kernel.compute(plan->kernel.self, &context);
  const bool is_eager_without_run = run == NULL && !gcap_thread_is_capturing();
  if (is_eager_without_run) gcap_hold_give_to_stream(plan->hold, gcap_ep_runtime(ep), context.resources.stream);
  return status;
}

static gcap_status_t compute_in_run(call_t* call, gcap_ort_run_t* run) {
  for (int i = 0; i < call->num_inputs; ++i) GCAP_RETURN_IF_ERROR(read_input(call, i));
  gcap_ort_plan_t* plan = NULL;
  gcap_status_t status = prepare(call, &plan);
  if (status == NULL) status = compute_plan(call, plan, run);
  if (plan != NULL) gcap_hold_let_go(plan->hold);
  return status;
}

// A run has made its device current on its own thread.
static gcap_status_t compute_on_device(call_t* call, gcap_ort_run_t* run) {
  const gcap_ort_session_ep_t* ep = call->kernel->ep;
  if (run != NULL && run == gcap_ort_run_current(ep)) return compute_in_run(call, run);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(ep->device->id, &previous));
  gcap_status_t status = compute_in_run(call, run);
  return gcap_status_join(status, gcap_device_pop(ep->device->id, previous));
}

static gcap_ort_status_t* compute(gcap_ort_kernel_impl_t* self, gcap_ort_kernel_context_t* context) {
  kernel_t* kernel = (kernel_t*)self;
  gcap_ort_session_ep_t* ep = kernel->ep;
  gcap_ort_run_t* run = NULL;
  call_t call;
  call.kernel = kernel;
  call.context = context;
  call.num_inputs = kernel->node->node.num_inputs;
  call.num_outputs = kernel->node->node.num_outputs;
  gcap_status_t status = gcap_ort_run_of_kernel(ep, context, &run);
  if (status == NULL) status = compute_on_device(&call, run);
  if (status == NULL) return NULL;
  status = gcap_status_annotate(status, gcap_status_code(status), "node '%s'", kernel->node->name);
  gcap_ort_run_note_failure(run, status);
  // Nothing of a captured run was executed, so the run is done again: see run.c.
  if (run == NULL || !gcap_ort_run_reruns(run)) return gcap_ort_give(&ep->factory->host, status);
  gcap_status_ignore(status);  // the run has a copy
  return NULL;
}

// --- Begin and end --------------------------------------------------------------------------------------------------

static void release(gcap_ort_kernel_impl_t* self) {
  kernel_t* kernel = (kernel_t*)self;
  atomic_fetch_sub(&kernel->ep->num_kernels, 1);
  gcap_ort_plans_deinit(&kernel->plans);
  gcap_ort_node_free(kernel->node);
  free(kernel);
}

// Reads the node, which the EP claimed. What ONNX Runtime cannot give here looks as if it were not there. Of an unknown
// rank the EP has said that its kernels take each, and of a constant that is hidden here that they take its content.
static gcap_status_t read_node(gcap_ort_session_ep_t* ep, const gcap_ort_op_t* op, const gcap_ort_kernel_info_t* info,
                               gcap_ort_node_model_t** out_node) {
  GCAP_RETURN_IF_ERROR(gcap_ort_node_read_kernel(ep->factory, op, info, out_node));
  const gcap_ort_node_model_t* m = *out_node;
  if (m->hidden_constants != 0 || gcap_ort_node_has_any_rank(m) || gcap_ep_supports(ep->ep, &m->model, &m->node))
    return NULL;
  gcap_status_t status =
      GCAP_STATUS(GCAP_INTERNAL,
                  "ONNX Runtime describes node '%s' (%s), of %d inputs and %d outputs, as one that '%s' does not run",
                  m->name, op->op_type, m->node.num_inputs, m->node.num_outputs, ep->factory->plugin->name);
  gcap_ort_node_free(*out_node);
  return status;
}

static gcap_status_t create(gcap_ort_session_ep_t* ep, const gcap_ort_op_t* op, const gcap_ort_kernel_info_t* info,
                            gcap_ort_kernel_impl_t** out_kernel) {
  kernel_t* kernel = calloc(1, sizeof(*kernel));
  if (kernel == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a kernel of %s", op->op_type);
  gcap_status_t status = read_node(ep, op, info, &kernel->node);
  if (status != NULL) {
    free(kernel);
    return status;
  }
  kernel->abi = (gcap_ort_kernel_impl_t){
      .ort_version_supported = ep->factory->host.version, .Compute = compute, .Release = release};
  kernel->ep = ep;
  kernel->host_inputs = op->host_inputs;
  gcap_ort_plans_init(&kernel->plans);
  atomic_fetch_add(&ep->num_kernels, 1);
  *out_kernel = &kernel->abi;
  return NULL;
}

gcap_ort_status_t* gcap_ort_create_kernel(void* state, const gcap_ort_kernel_info_t* info,
                                          gcap_ort_kernel_impl_t** out_kernel) {
  *out_kernel = NULL;
  const gcap_ort_registered_op_t* registered = state;
  const gcap_ort_host_t* host = &registered->factory->host;
  const gcap_ort_ep_t* ep = NULL;
  gcap_status_t status = GCAP_ORT_EP_CALL(host, KernelInfo_GetEp(info, &ep));
  if (status == NULL) status = create((gcap_ort_session_ep_t*)ep, registered->op, info, out_kernel);
  return gcap_ort_give(host, status);
}
