// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// LSTM, GRU and RNN, composed: one product of X with the weights of all gates, for all steps and both directions; then
// for each step a product of the state with the recurrent weights, of both directions as a batch, and one kernel for
// gates and state. A GRU without linear_before_reset has two of each. A graph so has two or four nodes a step.
//
// cuDNN's RNN is not used: cuDNN wants the lengths of sequences on the host too, which a graph would keep, it has
// neither peepholes nor a GRU without linear_before_reset, and it wants the weights in a packed order of its own,
// copied at each run. Whether cuDNN is faster where it could serve was not measured.
//
// The state is kept in the type of the tensors, cells and sums in f32. Lengths are read by the kernels, on the device.
// Workspace: the sums, the state, and what the products want, in one piece.

#include "ops/kernels/recurrent.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gcap/kit/ops/matmul.h"
#include "kit/shape/inner.h"
#include "ops/nodes/op.h"

#define MAX_WORKSPACE_BYTES ((size_t)32 << 20)  // as in matmul.c
#define VECTOR_BYTES 16
#define PART_ALIGNMENT ((size_t)256)  // what cuBLASLt wants of its workspace

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLE };  // inputs
enum { Y, Y_H, Y_C };                                          // outputs

typedef struct recurrent {
  gcap_recurrent_params_t sizes;  // no addresses
  gcap_recurrent_part_t step;     // the last kernel of a step
  gcap_matmul_t* of_x;            // of all steps
  gcap_matmul_t* of_h;            // of one step
  gcap_matmul_t* of_reset;        // of one step of a GRU, behind of_h, for the candidate; NULL: of_h has it too
  // Where the parts of the workspace begin.
  size_t inputs, recurrent, candidate, hidden, reset, cell, products;
  size_t bytes;
} recurrent_t;

// --- Acceptance -----------------------------------------------------------------------------------------------------

static bool is_lstm(const gcap_node_t* node) { return strcmp(node->op_type, "LSTM") == 0; }
static bool is_gru(const gcap_node_t* node) { return strcmp(node->op_type, "GRU") == 0; }

// The activations that ONNX has as defaults, for each direction.
static bool has_default_activations(const gcap_node_t* node) {
  const char* defaults = is_lstm(node) ? "Sigmoid,Tanh,Tanh" : is_gru(node) ? "Sigmoid,Tanh" : "Tanh";
  const char* given = gcap_node_string(node, "activations", "");
  const size_t length = strlen(defaults);
  for (; *given != 0; given += length + (given[length] == ',')) {
    if (strncasecmp(given, defaults, length) != 0 || (given[length] != 0 && given[length] != ',')) return false;
  }
  return true;
}

bool gcap_node_recurrent_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const bool has_lengths = node->num_inputs > LENGTHS && gcap_node_input(model, node, LENGTHS)->name[0] != 0;
  if (has_lengths && gcap_node_input(model, node, LENGTHS)->dtype != GCAP_DTYPE_I32) return false;
  return !gcap_node_has(node, "clip") && gcap_node_int(node, "input_forget", 0) == 0 && has_default_activations(node);
}

// --- Plans ----------------------------------------------------------------------------------------------------------

// A GRU that resets the state before the product for the candidate.
static bool resets_first(const gcap_node_t* node) {
  return is_gru(node) && gcap_node_int(node, "linear_before_reset", 0) == 0;
}

static gcap_recurrent_part_t step_of(const gcap_node_t* node) {
  if (is_lstm(node)) return GCAP_RECURRENT_lstm;
  if (!is_gru(node)) return GCAP_RECURRENT_rnn;
  return resets_first(node) ? GCAP_RECURRENT_gru : GCAP_RECURRENT_gru_linear;
}

static void set_sizes(const gcap_node_planning_t* planning, gcap_recurrent_params_t* sizes) {
  const gcap_node_t* node = planning->node;
  const gcap_tensor_t *x = &planning->inputs[X], *r = &planning->inputs[R];
  sizes->batch_first = gcap_node_int(node, "layout", 0) == 1;
  sizes->reverse = strcmp(gcap_node_string(node, "direction", ""), "reverse") == 0;
  sizes->steps = x->shape[sizes->batch_first ? 1 : 0];
  sizes->batch = x->shape[sizes->batch_first ? 0 : 1];
  sizes->directions = r->shape[0];
  sizes->units = r->shape[2];
  sizes->gates = is_lstm(node) ? 4 : is_gru(node) ? 3 : 1;
  sizes->recurrent_gates = resets_first(node) ? 2 : sizes->gates;
  sizes->elements = sizes->directions * sizes->batch * sizes->units;
  sizes->narrow = sizes->elements <= INT32_MAX;
}

static gcap_matmul_options_t product_options(const gcap_node_planning_t* planning) {
  gcap_matmul_options_t options;
  gcap_matmul_options_init(&options);
  options.handle = planning->kernels->cublaslt;
  options.dtype = planning->inputs[X].dtype;
  options.out_f32 = true;
  options.tf32 = options.dtype == GCAP_DTYPE_F32 && planning->kernels->options.use_tf32;
  options.max_workspace_bytes = MAX_WORKSPACE_BYTES;
  if (gcap_dtype_bytes(options.dtype) < sizeof(float)) options.alignment_bytes = VECTOR_BYTES;
  return options;
}

// The product of the state with the recurrent weights of `gates` gates.
static gcap_matmul_options_t state_options(const gcap_node_planning_t* planning, const gcap_recurrent_params_t* sizes,
                                           int64_t gates) {
  gcap_matmul_options_t options = product_options(planning);
  options.batch = sizes->directions;
  options.m = sizes->batch;
  options.n = gates * sizes->units;
  options.k = sizes->units;
  options.b_stride = sizes->gates * sizes->units * sizes->units;
  return options;
}

static gcap_status_t plan_products(const gcap_node_planning_t* planning, recurrent_t* plan) {
  const gcap_recurrent_params_t* sizes = &plan->sizes;
  gcap_matmul_options_t of_x = product_options(planning);
  gcap_matmul_options_t of_h = state_options(planning, sizes, sizes->recurrent_gates);
  int fits = 0;
  of_x.m = sizes->steps * sizes->batch;
  of_x.n = sizes->directions * sizes->gates * sizes->units;
  of_x.k = planning->inputs[X].shape[2];
  GCAP_RETURN_IF_ERROR(gcap_node_int_size(planning->node, "the number of steps times the batch", of_x.m, &fits));
  GCAP_RETURN_IF_ERROR(gcap_node_int_size(planning->node, "the number of rows of input 1", of_x.n, &fits));
  GCAP_RETURN_IF_ERROR(gcap_matmul_create(&of_x, &plan->of_x));
  GCAP_RETURN_IF_ERROR(gcap_matmul_create(&of_h, &plan->of_h));
  if (!resets_first(planning->node)) return NULL;
  gcap_matmul_options_t of_reset = state_options(planning, sizes, 1);
  if (sizes->units % 2 != 0) of_reset.alignment_bytes = 0;  // the weights begin behind those of two gates
  return gcap_matmul_create(&of_reset, &plan->of_reset);
}

// Adds a part of a * b elements to the workspace.
static gcap_status_t add_part(const gcap_node_t* node, int64_t a, int64_t b, size_t element_bytes, recurrent_t* plan,
                              size_t* out_begin) {
  size_t bytes = 0;
  const bool fits = !__builtin_mul_overflow((size_t)a, (size_t)b, &bytes) &&
                    !__builtin_mul_overflow(bytes, element_bytes, &bytes) &&
                    !__builtin_add_overflow(bytes, plan->bytes + PART_ALIGNMENT - 1, &bytes) && bytes <= PTRDIFF_MAX;
  if (!fits) return GCAP_NODE_REFUSE(node, "its workspace would have more than %lld bytes", (long long)PTRDIFF_MAX);
  *out_begin = plan->bytes;
  plan->bytes = bytes / PART_ALIGNMENT * PART_ALIGNMENT;
  return NULL;
}

static size_t most_for_products(const recurrent_t* plan) {
  const gcap_matmul_t* const products[] = {plan->of_x, plan->of_h, plan->of_reset};
  size_t most = 0;
  for (int i = 0; i < 3; ++i) {
    const size_t bytes = products[i] != NULL ? gcap_matmul_workspace_bytes(products[i]) : 0;
    if (bytes > most) most = bytes;
  }
  return most;
}

static gcap_status_t plan_workspace(const gcap_node_planning_t* planning, recurrent_t* plan) {
  const gcap_node_t* node = planning->node;
  const gcap_recurrent_params_t* sizes = &plan->sizes;
  const size_t element_bytes = gcap_dtype_bytes(planning->inputs[X].dtype);
  const int64_t elements = sizes->elements, for_cells = is_lstm(node), for_reset = resets_first(node);
  const struct {
    int64_t times;  // as many elements as the state
    size_t element_bytes;
    size_t* begin;
  } parts[] = {{sizes->steps * sizes->gates, sizeof(float), &plan->inputs},
               {sizes->recurrent_gates, sizeof(float), &plan->recurrent},
               {for_reset, sizeof(float), &plan->candidate},
               {1, element_bytes, &plan->hidden},
               {for_reset, element_bytes, &plan->reset},
               {for_cells, sizeof(float), &plan->cell}};
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
    GCAP_RETURN_IF_ERROR(add_part(node, elements, parts[i].times, parts[i].element_bytes, plan, parts[i].begin));
  }
  return add_part(node, (int64_t)most_for_products(plan), 1, 1, plan, &plan->products);
}

void gcap_node_recurrent_end(void* made) {
  recurrent_t* plan = made;
  gcap_matmul_destroy(plan->of_x);
  gcap_matmul_destroy(plan->of_h);
  gcap_matmul_destroy(plan->of_reset);
  free(plan);
}

gcap_status_t gcap_node_recurrent_plan(const gcap_node_planning_t* planning, void** out_plan) {
  recurrent_t* plan = calloc(1, sizeof(*plan));
  if (plan == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node '%s'", planning->node->name);
  }
  set_sizes(planning, &plan->sizes);
  plan->step = step_of(planning->node);
  gcap_status_t status = plan_products(planning, plan);
  if (status == NULL) status = plan_workspace(planning, plan);
  if (status != NULL) {
    gcap_node_recurrent_end(plan);
    return status;
  }
  *out_plan = plan;
  return NULL;
}

// --- Computing ------------------------------------------------------------------------------------------------------

// The address of an input or output; NULL if the node leaves it out.
static void* data_of(const gcap_tensor_t* tensors, int count, int i) {
  return i < count && !gcap_shape_is_left_out(tensors[i].rank, tensors[i].shape) ? tensors[i].data : NULL;
}

// One computation.
typedef struct work {
  const recurrent_t* plan;
  const gcap_node_kernel_t* kernel;
  const gcap_kernel_context_t* context;
  char* workspace;
} work_t;

static void* input(const work_t* w, int i) { return data_of(w->context->inputs, w->kernel->node->num_inputs, i); }
static void* output(const work_t* w, int i) { return data_of(w->context->outputs, w->kernel->node->num_outputs, i); }

static gcap_status_t launch(const work_t* w, gcap_recurrent_part_t part, const gcap_recurrent_params_t* params) {
  return gcap_recurrent(w->context->resources.stream, w->kernel->inputs[X].dtype, part, params);
}

// The state, for all kernels.
static gcap_recurrent_params_t params_of(const work_t* w) {
  gcap_recurrent_params_t params = w->plan->sizes;
  params.hidden = w->workspace + w->plan->hidden;
  if (is_lstm(w->kernel->node)) params.cell = (float*)(w->workspace + w->plan->cell);
  return params;
}

static gcap_status_t begin(const work_t* w) {
  gcap_recurrent_params_t params = params_of(w);
  params.initial_h = input(w, INITIAL_H);
  params.initial_c = input(w, INITIAL_C);
  return launch(w, GCAP_RECURRENT_begin, &params);
}

static gcap_status_t end(const work_t* w) {
  gcap_recurrent_params_t params = params_of(w);
  params.lengths = input(w, LENGTHS);
  params.y_h = output(w, Y_H);
  params.y_c = output(w, Y_C);
  if (params.y_h == NULL && params.y_c == NULL) return NULL;
  return launch(w, GCAP_RECURRENT_end, &params);
}

static gcap_status_t multiply(const work_t* w, const gcap_matmul_t* product, const void* a, const void* b, void* sums) {
  return gcap_matmul_run(product, w->context->resources.stream, a, b, NULL, NULL, sums,
                         w->workspace + w->plan->products);
}

// The candidate's product of a GRU, from the state that is reset.
static gcap_status_t multiply_reset(const work_t* w, const gcap_recurrent_params_t* step, float* candidate) {
  const gcap_recurrent_params_t* sizes = &w->plan->sizes;
  const size_t before = (size_t)(2 * sizes->units * sizes->units) * gcap_dtype_bytes(w->kernel->inputs[R].dtype);
  gcap_recurrent_params_t params = *step;
  params.candidate = NULL;
  params.y = NULL;
  params.reset = w->workspace + w->plan->reset;
  GCAP_RETURN_IF_ERROR(launch(w, GCAP_RECURRENT_gru_reset, &params));
  return multiply(w, w->plan->of_reset, params.reset, (const char*)input(w, R) + before, candidate);
}

static gcap_status_t run_steps(const work_t* w) {
  const recurrent_t* plan = w->plan;
  float* inputs = (float*)(w->workspace + plan->inputs);
  float* recurrent = (float*)(w->workspace + plan->recurrent);
  float* candidate = plan->of_reset != NULL ? (float*)(w->workspace + plan->candidate) : NULL;
  gcap_recurrent_params_t params = params_of(w);
  params.inputs = inputs;
  params.recurrent = recurrent;
  params.candidate = candidate;
  params.bias = input(w, B);
  params.peephole = input(w, PEEPHOLE);
  params.lengths = input(w, LENGTHS);
  params.y = output(w, Y);
  GCAP_RETURN_IF_ERROR(multiply(w, plan->of_x, input(w, X), input(w, W), inputs));
  for (; params.step < params.steps; ++params.step) {
    GCAP_RETURN_IF_ERROR(multiply(w, plan->of_h, params.hidden, input(w, R), recurrent));
    if (candidate != NULL) GCAP_RETURN_IF_ERROR(multiply_reset(w, &params, candidate));
    GCAP_RETURN_IF_ERROR(launch(w, plan->step, &params));
  }
  return NULL;
}

gcap_status_t gcap_node_recurrent(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  work_t work = {.plan = kernel->plan, .kernel = kernel, .context = context};
  if (work.plan->sizes.elements == 0) return NULL;
  void* workspace = NULL;
  GCAP_RETURN_IF_ERROR(gcap_node_take_workspace(context, work.plan->bytes, &workspace));
  work.workspace = workspace;
  gcap_status_t status = begin(&work);
  if (status == NULL) status = run_steps(&work);
  if (status == NULL) status = end(&work);
  return gcap_node_return_workspace(context, workspace, status);
}
