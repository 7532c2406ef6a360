// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions: a small version of what ONNX Runtime's InferenceSession does around an EP's graphs.
//
// A run checks its tensors and first tries a replay; that path is one look-up and one launch. Otherwise the session
// opens a run at the EP, issues the nodes with their intermediate values in scratch, and ends the run at the EP with
// the outcome, whatever happened. A capture that failed has executed nothing, so the session runs once more with
// GCAP_GRAPH_ID_NONE.
//
// Locking: a run's state is on its own stack and heap. If the EP cannot run concurrently, its turns serialize all uses
// of its stream: creation, whole runs including replays, the release of a graph, the end.

#include "gcap/session.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gcap/capture.h"
#include "gcap/log.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/forked.h"
#include "lib/internal/unwind.h"
#include "lib/options/run_options.h"
#include "lib/session/plan.h"

struct gcap_session {
  gcap_ep_t* ep;
  gcap_allocator_t* allocator;  // the EP's, for the constants
  gcap_plan_t plan;
  gcap_kernel_t* kernels;    // one a node; compute is NULL until made
  atomic_size_t num_inside;  // runs that call kernels now, and use the session afterwards
};

// --- Creation -------------------------------------------------------------------------------------------------------

static gcap_status_t check_eps(gcap_ep_t* const* eps, size_t num_eps) {
  for (size_t i = 0; i < num_eps; ++i) {
    if (eps[i] == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "gcap_session_create: eps[%zu] is NULL", i);
  }
  return NULL;
}

// The EP's resources, all of them: what an implementer leaves out is named here instead of followed later.
static gcap_status_t get_resources(gcap_ep_t* ep, gcap_run_resources_t* out_resources) {
  GCAP_RETURN_IF_ERROR(gcap_ep_get_run_resources(ep, out_resources));
  const char* missing = NULL;
  if (out_resources->allocator == NULL) missing = "allocator";
  if (out_resources->scratch == NULL) missing = "scratch";
  if (out_resources->stream == NULL) missing = "stream";
  if (missing == NULL) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "EP '%s': get_run_resources left %s NULL", gcap_ep_name(ep), missing);
}

// The first EP that supports every node.
static gcap_status_t select_ep(const gcap_model_t* model, gcap_ep_t* const* eps, size_t num_eps, gcap_ep_t** out_ep) {
  gcap_status_t refusals = NULL;
  for (size_t e = 0; e < num_eps; ++e) {
    int node = 0;
    while (node < model->num_nodes && gcap_ep_supports(eps[e], model, &model->nodes[node])) ++node;
    if (node == model->num_nodes) {
      gcap_status_ignore(refusals);  // another EP took the model
      *out_ep = eps[e];
      return NULL;
    }
    refusals = gcap_status_join(
        refusals, GCAP_STATUS(GCAP_UNIMPLEMENTED, "EP '%s' does not support node '%s' (%s)", gcap_ep_name(eps[e]),
                              model->nodes[node].name, model->nodes[node].op_type));
  }
  return refusals != NULL ? refusals : GCAP_STATUS(GCAP_INVALID_ARGUMENT, "a session needs at least one EP");
}

static gcap_status_t create_kernels(gcap_session_t* session, const gcap_model_t* model) {
  session->kernels = calloc((size_t)model->num_nodes, sizeof(*session->kernels));
  if (session->kernels == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a session");
  for (int i = 0; i < model->num_nodes; ++i) {
    gcap_status_t status = gcap_ep_create_kernel(session->ep, model, &model->nodes[i], &session->kernels[i]);
    if (status != NULL) {
      return gcap_status_annotate(status, gcap_status_code(status), "the kernel of node '%s'", model->nodes[i].name);
    }
  }
  return NULL;
}

static gcap_status_t copy_constants(gcap_session_t* session, const gcap_model_t* model, cudaStream_t stream) {
  for (int i = 0; i < model->num_values; ++i) {
    gcap_plan_value_t* value = &session->plan.values[i];
    if (value->storage != GCAP_PLAN_CONSTANT) continue;
    size_t bytes = gcap_tensor_bytes(&value->tensor);
    if (bytes == 0) continue;
    GCAP_RETURN_IF_ERROR(gcap_allocator_reserve(session->allocator, bytes, &value->tensor.data));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(
        cudaMemcpyAsync(value->tensor.data, model->values[i].host_data, bytes, cudaMemcpyHostToDevice, stream)));
  }
  return NULL;
}

// Copies the constants on the EP's stream and waits for them. cudaMemcpy would do neither: it uses the legacy stream,
// which breaks the captures of blocking streams, and may return before pageable memory has reached the device.
static gcap_status_t upload_constants(gcap_session_t* session, const gcap_model_t* model, gcap_stream_t* stream) {
  gcap_status_t status = copy_constants(session, model, gcap_stream_handle(stream));
  return gcap_status_join(status, gcap_stream_synchronize(stream));
}

// Fills a session whose EP is chosen. Called in a turn of the EP.
static gcap_status_t build(gcap_session_t* session, const gcap_model_t* model) {
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(get_resources(session->ep, &resources));
  session->allocator = resources.allocator;
  int device_id = gcap_stream_device(resources.stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status = create_kernels(session, model);
  if (status == NULL) status = upload_constants(session, model, resources.stream);
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}

// Gives the constants back. Where the device may still read them they are kept, and where one cannot be freed, it is.
static gcap_status_t free_constants(gcap_session_t* session, bool may_be_read) {
  gcap_status_t status = NULL;
  for (int i = 0; i < session->plan.num_values && !may_be_read; ++i) {
    const gcap_plan_value_t* value = &session->plan.values[i];
    if (value->storage != GCAP_PLAN_CONSTANT || value->tensor.data == NULL) continue;
    gcap_status_t freed = gcap_allocator_free(session->allocator, value->tensor.data);
    freed =
        gcap_status_annotate(freed, gcap_status_code(freed), "constant '%s' cannot be freed and is kept", value->name);
    status = gcap_status_join(status, freed);
  }
  return status;
}

// Frees all else that the session has, but for its claim. Called in a turn of the EP.
static void take_apart(gcap_session_t* session) {
  for (int i = 0; session->kernels != NULL && i < session->plan.num_nodes; ++i) {
    if (session->kernels[i].destroy != NULL) session->kernels[i].destroy(session->kernels[i].self);
  }
  free(session->kernels);
  gcap_plan_deinit(&session->plan);
  free(session);
}

gcap_status_t gcap_session_create(const gcap_model_t* model, gcap_ep_t* const* eps, size_t num_eps,
                                  gcap_session_t** out_session) {
  GCAP_RETURN_IF_NULL(out_session);
  *out_session = NULL;
  GCAP_RETURN_IF_NULL(model);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  if (num_eps > 0) GCAP_RETURN_IF_NULL(eps);
  GCAP_RETURN_IF_ERROR(check_eps(eps, num_eps));
  gcap_session_t* session = calloc(1, sizeof(*session));
  if (session == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a session");
  gcap_status_t status = gcap_plan_init(model, &session->plan);
  if (status == NULL) status = select_ep(model, eps, num_eps, &session->ep);
  if (status == NULL) status = gcap_ep_claim(session->ep);
  if (status != NULL) {
    gcap_plan_deinit(&session->plan);
    free(session);
    return status;
  }
  gcap_ep_t* ep = session->ep;
  gcap_ep_begin_turn(ep);
  status = build(session, model);
  if (status != NULL) {
    status = gcap_status_join(status, free_constants(session, /*may_be_read=*/false));
    take_apart(session);
  } else {
    *out_session = session;
  }
  gcap_ep_end_turn(ep);
  if (status != NULL) gcap_ep_unclaim(ep);  // last: without a claim another thread may destroy the EP
  return status;
}

// Whether a wait that failed may succeed later: then the session stays whole. Of a lost device it would stay for ever.
static bool may_be_retried(gcap_code_t code) {
  return code == GCAP_FAILED_PRECONDITION || code == GCAP_RESOURCE_EXHAUSTED || code == GCAP_UNAVAILABLE;
}

// In a turn of the EP.
static gcap_status_t end_in_turn(gcap_session_t* session) {
  // An asynchronous run may still read the constants.
  gcap_status_t status = gcap_ep_synchronize(session->ep);
  if (may_be_retried(gcap_status_code(status)))
    return gcap_status_annotate(status, gcap_status_code(status), "gcap_session_destroy");
  const bool may_be_read = status != NULL;
  if (may_be_read)
    status = gcap_status_annotate(status, GCAP_LEAKED, "the device may still read the constants, which are kept");
  status = gcap_status_join(status, free_constants(session, may_be_read));
  take_apart(session);
  return gcap_status_annotate(status, GCAP_LEAKED, "gcap_session_destroy");
}

gcap_status_t gcap_session_destroy(gcap_session_t* session) {
  if (session == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_session_destroy"));
  if (atomic_load(&session->num_inside) > 0) {  // before the turn, which the thread of a kernel has already
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "gcap_session_destroy: a run of this session has not returned yet, or calls back");
  }
  gcap_ep_t* ep = session->ep;
  gcap_ep_begin_turn(ep);
  gcap_status_t status = end_in_turn(session);
  gcap_ep_end_turn(ep);
  const bool is_gone = status == NULL || gcap_status_code(status) == GCAP_LEAKED;
  if (is_gone) gcap_ep_unclaim(ep);  // last: without a claim another thread may destroy the EP
  return status;
}

const char* gcap_session_ep_name(const gcap_session_t* session) { return gcap_ep_name(session->ep); }

// --- One run --------------------------------------------------------------------------------------------------------

// The tensors of one run: one per value, then room for one node's inputs and outputs.
typedef struct run_state {
  gcap_tensor_t* values;
  gcap_tensor_t* node_inputs;
  gcap_tensor_t* node_outputs;
} run_state_t;

static gcap_status_t run_state_init(const gcap_plan_t* plan, const gcap_tensor_t* inputs, const gcap_tensor_t* outputs,
                                    run_state_t* out_state) {
  size_t num_values = (size_t)plan->num_values;
  size_t num_node_values = (size_t)plan->max_node_values;
  out_state->values = malloc((num_values + 2 * num_node_values) * sizeof(gcap_tensor_t));
  if (out_state->values == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a run");
  out_state->node_inputs = out_state->values + num_values;
  out_state->node_outputs = out_state->node_inputs + num_node_values;
  for (size_t i = 0; i < num_values; ++i) {
    const gcap_plan_value_t* value = &plan->values[i];
    out_state->values[i] = value->tensor;
    if (value->storage == GCAP_PLAN_INPUT) out_state->values[i].data = inputs[value->bound_index].data;
    if (value->storage == GCAP_PLAN_OUTPUT) out_state->values[i].data = outputs[value->bound_index].data;
  }
  return NULL;
}

// A block that is not freed keeps its address, to be tried again when the run has failed; at last the run's end does.
static gcap_status_t free_between(run_state_t* state, int value, gcap_scratch_t* scratch) {
  gcap_status_t status = gcap_scratch_free(scratch, state->values[value].data);
  if (status == NULL || gcap_status_code(status) == GCAP_INTERNAL) state->values[value].data = NULL;  // it is freed
  return status;
}

static gcap_status_t issue_node(gcap_session_t* session, int index, const gcap_run_resources_t* resources,
                                run_state_t* state) {
  const gcap_plan_node_t* node = &session->plan.nodes[index];
  gcap_scratch_set_node(resources->scratch, resources->stream, node->name);  // the plan's own, which outlives the run
  for (int i = 0; i < node->num_outputs; ++i) {
    gcap_tensor_t* tensor = &state->values[node->outputs[i]];
    if (session->plan.values[node->outputs[i]].storage == GCAP_PLAN_BETWEEN) {
      GCAP_RETURN_IF_ERROR(
          gcap_scratch_alloc(resources->scratch, gcap_tensor_bytes(tensor), resources->stream, &tensor->data));
    }
    state->node_outputs[i] = *tensor;
  }
  for (int i = 0; i < node->num_inputs; ++i) state->node_inputs[i] = state->values[node->inputs[i]];
  const gcap_kernel_context_t context = {
      .resources = *resources, .inputs = state->node_inputs, .outputs = state->node_outputs, .ep = session->ep};
  gcap_status_t status = session->kernels[index].compute(session->kernels[index].self, &context);
  // Asks after each node whether the capture goes on: a kernel may have broken it without a word.
  GCAP_CAPTURE_NOTE(node->name, gcap_stream_handle(resources->stream));
  return status;
}

// Frees what `node` was the last to read, and what it made for nobody. The stream's order protects the memory.
static gcap_status_t free_after_node(const gcap_plan_t* plan, int index, gcap_scratch_t* scratch, run_state_t* state) {
  const gcap_plan_node_t* node = &plan->nodes[index];
  gcap_status_t status = NULL;
  for (int i = 0; i < node->num_inputs; ++i) {
    const gcap_plan_value_t* value = &plan->values[node->inputs[i]];
    if (value->storage != GCAP_PLAN_BETWEEN || value->last_reader != index) continue;
    status = gcap_status_join(status, free_between(state, node->inputs[i], scratch));
  }
  for (int i = 0; i < node->num_outputs; ++i) {
    const gcap_plan_value_t* value = &plan->values[node->outputs[i]];
    if (value->storage != GCAP_PLAN_BETWEEN || value->last_reader != -1) continue;
    status = gcap_status_join(status, free_between(state, node->outputs[i], scratch));
  }
  return status;
}

static void run_state_deinit(run_state_t* state) { free(state->values); }

static gcap_status_t issue_nodes(gcap_session_t* session, const gcap_run_resources_t* resources,
                                 const gcap_tensor_t* inputs, const gcap_tensor_t* outputs) {
  const gcap_plan_t* plan = &session->plan;
  GCAP_AT_SCOPE_END(run_state_deinit) run_state_t state = {0};
  GCAP_RETURN_IF_ERROR(run_state_init(plan, inputs, outputs, &state));
  gcap_status_t status = NULL;
  for (int i = 0; i < plan->num_nodes && status == NULL; ++i) {
    status = issue_node(session, i, resources, &state);
    if (status != NULL)
      status = gcap_status_annotate(status, gcap_status_code(status), "node '%s'", plan->nodes[i].name);
    if (status == NULL) status = free_after_node(plan, i, resources->scratch, &state);
  }
  // After a failure some values are left.
  for (int i = 0; i < plan->num_values && status != NULL; ++i) {
    if (plan->values[i].storage != GCAP_PLAN_BETWEEN || state.values[i].data == NULL) continue;
    status = gcap_status_join(status, free_between(&state, i, resources->scratch));
  }
  return status;
}

// What a run is bound to, for a graph's signature. Few enough tensors need no heap: a replay allocates nothing then.
#define BINDINGS_WITHOUT_HEAP 16

typedef struct bindings {
  gcap_graph_binding_t* items;
  size_t count;
  gcap_graph_binding_t few[BINDINGS_WITHOUT_HEAP];
} bindings_t;

static void bind(const gcap_plan_t* plan, const int* values, int count, const gcap_tensor_t* tensors,
                 bindings_t* bindings) {
  for (int i = 0; i < count; ++i) {
    const gcap_plan_value_t* value = &plan->values[values[i]];
    bindings->items[bindings->count++] = (gcap_graph_binding_t){
        .name = value->name, .address = tensors[i].data, .rank = value->tensor.rank, .shape = value->tensor.shape};
  }
}

static gcap_status_t bindings_init(const gcap_plan_t* plan, const gcap_tensor_t* inputs, const gcap_tensor_t* outputs,
                                   bindings_t* bindings) {
  size_t count = (size_t)plan->num_inputs + (size_t)plan->num_outputs;
  bindings->count = 0;
  bindings->items = bindings->few;
  if (count > BINDINGS_WITHOUT_HEAP) bindings->items = malloc(count * sizeof(*bindings->items));
  if (bindings->items == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu bindings", count);
  bind(plan, plan->inputs, plan->num_inputs, inputs, bindings);
  bind(plan, plan->outputs, plan->num_outputs, outputs, bindings);
  return NULL;
}

static void bindings_deinit(bindings_t* bindings) {
  if (bindings->items != bindings->few) free(bindings->items);
}

// A run whose nodes are being computed.
typedef struct unfinished_run {
  gcap_ep_t* ep;  // NULL: all of them returned
  int device_id, previous_device;
} unfinished_run_t;

static void end_run_on_unwind(unfinished_run_t* run) {
  if (run->ep == NULL) return;
  gcap_status_t status = gcap_ep_end_run(run->ep, GCAP_STATUS_OF_UNWINDING(), /*synchronize=*/false);
  status = gcap_status_join(status, gcap_device_pop(run->device_id, run->previous_device));
  gcap_status_ignore(status);  // the exception tells
}

// Start, nodes, end, with the stream's device current. The end is called whatever became of the nodes. `bound`: see
// bindings_t; NULL: the run is not signed.
static gcap_status_t run_once(gcap_session_t* session, int graph_id, bool synchronize, const gcap_tensor_t* inputs,
                              const gcap_tensor_t* outputs, const bindings_t* bound) {
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(get_resources(session->ep, &resources));
  int device_id = gcap_stream_device(resources.stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status = gcap_ep_begin_run(session->ep, graph_id);
  if (status == NULL) {
    gcap_status_t issued = bound != NULL ? gcap_ep_sign_graph(session->ep, bound->items, bound->count) : NULL;
    GCAP_AT_SCOPE_END(end_run_on_unwind) unfinished_run_t unfinished = {session->ep, device_id, previous};
    if (issued == NULL) issued = issue_nodes(session, &resources, inputs, outputs);
    unfinished.ep = NULL;
    status = gcap_ep_end_run(session->ep, issued, synchronize);
  }
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}

static gcap_status_t check_tensors(const gcap_plan_t* plan, const char* role, const int* values, int count,
                                   const gcap_tensor_t* tensors) {
  if (count > 0 && tensors == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the %ss are NULL, the model has %d", role, count);
  }
  for (int i = 0; i < count; ++i) {
    const gcap_plan_value_t* value = &plan->values[values[i]];
    const gcap_tensor_t *given = &tensors[i], *wanted = &value->tensor;
    if (given->dtype != wanted->dtype || given->rank != wanted->rank) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s '%s' has type %s and rank %d, the model wants %s and rank %d", role,
                         value->name, gcap_dtype_name(given->dtype), given->rank, gcap_dtype_name(wanted->dtype),
                         wanted->rank);
    }
    for (int d = 0; d < wanted->rank; ++d) {
      if (given->shape[d] == wanted->shape[d]) continue;
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s '%s': dimension %d is %lld, the model wants %lld", role,
                         value->name, d, (long long)given->shape[d], (long long)wanted->shape[d]);
    }
    if (given->data == NULL && gcap_tensor_elements(wanted) > 0) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s '%s' has no data", role, value->name);
    }
  }
  return NULL;
}

static gcap_status_t check_bindings(const gcap_session_t* session, const gcap_tensor_t* inputs,
                                    const gcap_tensor_t* outputs) {
  const gcap_plan_t* plan = &session->plan;
  GCAP_RETURN_IF_ERROR(check_tensors(plan, "input", plan->inputs, plan->num_inputs, inputs));
  return check_tensors(plan, "output", plan->outputs, plan->num_outputs, outputs);
}

static void leave(gcap_session_t** inside) { atomic_fetch_sub(&(*inside)->num_inside, 1); }

// Replays if there is a graph, else runs, once or twice. `bound`: as in run_once.
static gcap_status_t replay_or_run(gcap_session_t* session, const gcap_run_options_t* options,
                                   const gcap_tensor_t* inputs, const gcap_tensor_t* outputs, const bindings_t* bound) {
  gcap_ep_t* ep = session->ep;
  if (gcap_ep_is_graph_capture_enabled(ep) && options->graph_id != GCAP_GRAPH_ID_NONE) {
    bool replayed = false;
    gcap_graph_replay_options_t replay;
    gcap_graph_replay_options_init(&replay);
    replay.synchronize = options->synchronize;
    replay.check_bindings = bound != NULL;
    replay.bindings = bound != NULL ? bound->items : NULL;
    replay.num_bindings = bound != NULL ? bound->count : 0;
    gcap_status_t status = gcap_ep_replay_graph(ep, options->graph_id, &replay, &replayed);
    if (status != NULL || replayed) return status;
  }
  GCAP_AT_SCOPE_END(leave) gcap_session_t* inside = session;
  atomic_fetch_add(&inside->num_inside, 1);
  gcap_status_t status = run_once(session, options->graph_id, options->synchronize, inputs, outputs, bound);
  if (gcap_status_code(status) != GCAP_CAPTURE_INVALIDATED || !options->rerun_failed_capture) return status;
  gcap_log(GCAP_LOG_WARNING, "the run is done again eagerly: %s", gcap_status_message(status));
  gcap_status_free(status);
  return run_once(session, GCAP_GRAPH_ID_NONE, options->synchronize, inputs, outputs, NULL);
}

static gcap_status_t run_locked(gcap_session_t* session, const gcap_run_options_t* options, const gcap_tensor_t* inputs,
                                const gcap_tensor_t* outputs) {
  const bool may_capture = gcap_ep_is_graph_capture_enabled(session->ep) && options->graph_id != GCAP_GRAPH_ID_NONE;
  if (!options->check_bindings || !may_capture) return replay_or_run(session, options, inputs, outputs, NULL);
  GCAP_AT_SCOPE_END(bindings_deinit) bindings_t bound;
  bound.items = bound.few;
  GCAP_RETURN_IF_ERROR(bindings_init(&session->plan, inputs, outputs, &bound));
  return replay_or_run(session, options, inputs, outputs, &bound);
}

// A turn that ends also when a kernel's compute does not return.
static gcap_ep_t* begin_turn(gcap_ep_t* ep) {
  gcap_ep_begin_turn(ep);
  return ep;
}

static void end_turn(gcap_ep_t** turn) { gcap_ep_end_turn(*turn); }

gcap_status_t gcap_session_run(gcap_session_t* session, const gcap_run_options_t* options, const gcap_tensor_t* inputs,
                               const gcap_tensor_t* outputs) {
  GCAP_RETURN_IF_NULL(session);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_run_options_t known;
  if (options == NULL || options->struct_size != sizeof(*options)) {  // the defaults, or of another version
    GCAP_RETURN_IF_ERROR(gcap_run_options_read(options, &known));
    options = &known;
  }
  GCAP_RETURN_IF_ERROR(check_bindings(session, inputs, outputs));
  GCAP_AT_SCOPE_END(end_turn) gcap_ep_t* turn = begin_turn(session->ep);
  return run_locked(session, options, inputs, outputs);
}

static gcap_status_t not_captured(gcap_ep_t* ep, int graph_id) {
  gcap_status_t failure = gcap_ep_explain(ep, graph_id, GCAP_GRAPH_WHY_CAPTURE_FAILED);
  gcap_status_t status = GCAP_STATUS(
      GCAP_UNAVAILABLE, "EP '%s' has not captured graph id %d after %d runs; %s%s", gcap_ep_name(ep), graph_id,
      GCAP_SESSION_MAX_WARM_UP_RUNS,
      failure != NULL ? "the last capture failed: " : "min_num_runs_before_cuda_graph_capture must be below that",
      failure != NULL ? gcap_status_message(failure) : "");
  gcap_status_free(failure);
  return status;
}

static gcap_status_t run_until_captured(gcap_session_t* session, const gcap_run_options_t* options,
                                        const gcap_tensor_t* inputs, const gcap_tensor_t* outputs, bool* out_captured) {
  GCAP_AT_SCOPE_END(end_turn) gcap_ep_t* turn = begin_turn(session->ep);
  gcap_status_t status = NULL;
  *out_captured = gcap_ep_is_graph_captured(turn, options->graph_id);
  for (int i = 0; i < GCAP_SESSION_MAX_WARM_UP_RUNS && status == NULL && !*out_captured; ++i) {
    status = run_locked(session, options, inputs, outputs);
    *out_captured = status == NULL && gcap_ep_is_graph_captured(turn, options->graph_id);
  }
  return status;
}

gcap_status_t gcap_session_warm_up(gcap_session_t* session, const gcap_run_options_t* given,
                                   const gcap_tensor_t* inputs, const gcap_tensor_t* outputs) {
  GCAP_RETURN_IF_NULL(session);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_run_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_run_options_read(given, &known));
  const gcap_run_options_t* options = &known;
  if (!gcap_ep_is_graph_capture_enabled(session->ep) || options->graph_id == GCAP_GRAPH_ID_NONE) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "nothing to warm up: %s",
                       options->graph_id == GCAP_GRAPH_ID_NONE ? "the graph id is -1, which is never captured"
                                                               : "the EP does not capture graphs (enable_cuda_graph)");
  }
  GCAP_RETURN_IF_ERROR(check_bindings(session, inputs, outputs));
  bool captured = false;
  gcap_status_t status = run_until_captured(session, options, inputs, outputs, &captured);
  if (status != NULL || captured) return status;
  return not_captured(session->ep, options->graph_id);
}

gcap_status_t gcap_session_release_captured_graph(gcap_session_t* session, int graph_id) {
  GCAP_RETURN_IF_NULL(session);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_ep_begin_turn(session->ep);
  gcap_status_t status = gcap_ep_release_captured_graph(session->ep, graph_id);
  gcap_ep_end_turn(session->ep);
  return status;
}
