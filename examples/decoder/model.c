// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The model is one block of weights, reserved from the runtime's allocator since it lives as long as the runtime, and a
// plan for each product and each number of rows. Plans are made here, before any run: a capture forbids what a plan
// does. A pass launches kernels and products. It decides nothing but by its arguments, so it issues the same work each
// time that they are the same, which is what makes it fit to be captured. All is constant after model_create, and the
// threads share it without a lock.
#include "examples/decoder/model.h"

#include <stdio.h>
#include <stdlib.h>

#include "gcap/capture.h"
#include "gcap/kit/ops/cublaslt.h"
#include "gcap/kit/ops/matmul.h"

enum { TO_QKV, FROM_HEADS, TO_HIDDEN, FROM_HIDDEN, TO_WORDS, NUM_PRODUCTS };

// Of weights and activations: each of them has a multiple of 64 floats.
#define OPERAND_ALIGNMENT 256

// y[rows, n] = x[rows, k] times weights[n, k], added to what y holds or not.
static const struct {
  int64_t n, k;
  bool adds;
} kProducts[NUM_PRODUCTS] = {
    [TO_QKV] = {3 * DECODER_WIDTH, DECODER_WIDTH, false},  // query, key and value
    [FROM_HEADS] = {DECODER_WIDTH, DECODER_WIDTH, true},
    [TO_HIDDEN] = {2 * DECODER_HIDDEN, DECODER_WIDTH, false},  // gate and up
    [FROM_HIDDEN] = {DECODER_WIDTH, DECODER_HIDDEN, true},
    [TO_WORDS] = {DECODER_WORDS, DECODER_WIDTH, false},  // logits
};

typedef struct layer {
  const float *before_heads, *before_hidden;  // scales of the normalizations
  const float *to_qkv, *from_heads, *to_hidden, *from_hidden;
} layer_t;

struct model {
  gcap_runtime_t* runtime;
  gcap_allocator_t* allocator;
  float* weights;
  const float *table, *before_words, *to_words;
  layer_t layers[DECODER_LAYERS];
  gcap_matmul_t* products[NUM_PRODUCTS][DECODER_MAX_ROWS + 1];  // by the number of rows; NULL: no bucket
};

// --- Weights --------------------------------------------------------------------------------------------------------

#define NUM_LAYER_WEIGHTS (2 * DECODER_WIDTH + 4 * DECODER_WIDTH * DECODER_WIDTH + 3 * DECODER_HIDDEN * DECODER_WIDTH)
#define NUM_WEIGHTS (2 * DECODER_WORDS * DECODER_WIDTH + DECODER_WIDTH + DECODER_LAYERS * NUM_LAYER_WEIGHTS)
#define WEIGHT_RANGE 0.35f  // so large that the tokens of a sequence differ

// Takes the next `count` weights, drawn between -WEIGHT_RANGE and WEIGHT_RANGE.
static const float* take(const model_t* model, float* host, size_t* used, size_t count, uint64_t* state) {
  const size_t first = *used;
  for (size_t i = 0; i < count; ++i) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    host[first + i] = ((float)(*state >> 40) / 8388608.0f - 1.0f) * WEIGHT_RANGE;
  }
  *used += count;
  return model->weights + first;
}

static const float* take_product(const model_t* model, float* host, size_t* used, int product, uint64_t* state) {
  return take(model, host, used, (size_t)(kProducts[product].n * kProducts[product].k), state);
}

static void draw(model_t* model, float* host, uint64_t state) {
  size_t used = 0;
  model->table = take(model, host, &used, DECODER_WORDS * DECODER_WIDTH, &state);
  for (int i = 0; i < DECODER_LAYERS; ++i) {
    layer_t* layer = &model->layers[i];
    layer->before_heads = take(model, host, &used, DECODER_WIDTH, &state);
    layer->to_qkv = take_product(model, host, &used, TO_QKV, &state);
    layer->from_heads = take_product(model, host, &used, FROM_HEADS, &state);
    layer->before_hidden = take(model, host, &used, DECODER_WIDTH, &state);
    layer->to_hidden = take_product(model, host, &used, TO_HIDDEN, &state);
    layer->from_hidden = take_product(model, host, &used, FROM_HIDDEN, &state);
  }
  model->before_words = take(model, host, &used, DECODER_WIDTH, &state);
  model->to_words = take_product(model, host, &used, TO_WORDS, &state);
}

static gcap_status_t create_weights(model_t* model, uint32_t seed) {
  const size_t bytes = NUM_WEIGHTS * sizeof(float);
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_allocator(model->runtime, GCAP_MEMORY_DEVICE, &model->allocator));
  GCAP_RETURN_IF_ERROR(gcap_allocator_reserve(model->allocator, bytes, (void**)&model->weights));
  float* host = malloc(bytes);
  if (host == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu bytes of weights", bytes);
  draw(model, host, seed);
  gcap_status_t status = GCAP_CUDA(cudaMemcpy(model->weights, host, bytes, cudaMemcpyHostToDevice));
  free(host);
  return status;
}

// --- Products -------------------------------------------------------------------------------------------------------

static gcap_status_t create_products(model_t* model, size_t rows) {
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(model->runtime, &resources));
  gcap_matmul_options_t options;
  gcap_matmul_options_init(&options);
  GCAP_RETURN_IF_ERROR(gcap_stream_cublaslt_handle(resources.stream, &options.handle));
  options.m = (int64_t)rows;
  options.alignment_bytes = OPERAND_ALIGNMENT;
  for (int i = 0; i < NUM_PRODUCTS; ++i) {
    options.n = kProducts[i].n;
    options.k = kProducts[i].k;
    options.addend = kProducts[i].adds ? GCAP_MATMUL_ADDEND_FULL : GCAP_MATMUL_ADDEND_NONE;
    GCAP_RETURN_IF_ERROR(gcap_matmul_create(&options, &model->products[i][rows]));
  }
  return NULL;
}

// --- Life -----------------------------------------------------------------------------------------------------------

gcap_status_t model_create(gcap_runtime_t* runtime, uint32_t seed, const size_t* buckets, size_t num_buckets,
                           model_t** out_model) {
  *out_model = calloc(1, sizeof(**out_model));
  if (*out_model == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the model");
  (*out_model)->runtime = runtime;
  GCAP_RETURN_IF_ERROR(create_weights(*out_model, seed));
  for (size_t i = 0; i < num_buckets; ++i) GCAP_RETURN_IF_ERROR(create_products(*out_model, buckets[i]));
  return NULL;
}

gcap_status_t model_destroy(model_t* model) {
  if (model == NULL) return NULL;
  for (int i = 0; i < NUM_PRODUCTS; ++i) {
    for (int rows = 0; rows <= DECODER_MAX_ROWS; ++rows) gcap_matmul_destroy(model->products[i][rows]);
  }
  gcap_status_t status = NULL;
  if (model->weights != NULL) status = gcap_allocator_free(model->allocator, model->weights);
  free(model);
  return status;
}

gcap_runtime_t* model_runtime(const model_t* model) { return model->runtime; }

// --- A pass ---------------------------------------------------------------------------------------------------------

// The activations of a pass, one behind the other in one block of scratch. Scratch is elsewhere in each graph. So what
// crosses a hole is not there: the function of the hole is the same in all graphs.
typedef struct activations {
  float *x, *qkv, *y, *gate_and_up, *hidden, *logits;
} activations_t;

#define NUM_ACTIVATIONS (DECODER_WIDTH + MODEL_CROSSING_FLOATS + 3 * DECODER_HIDDEN + DECODER_WORDS)  // of a row

static activations_t cut(float* scratch, size_t rows, float* crossing) {
  activations_t a;
  a.x = scratch;
  float* own = a.x + rows * DECODER_WIDTH;
  a.qkv = crossing != NULL ? crossing : own;
  a.y = a.qkv + rows * 3 * DECODER_WIDTH;
  a.gate_and_up = own + rows * MODEL_CROSSING_FLOATS;
  a.hidden = a.gate_and_up + rows * 2 * DECODER_HIDDEN;
  a.logits = a.hidden + rows * DECODER_HIDDEN;
  return a;
}

// What a pass hands from kernel to kernel.
typedef struct issue {
  const model_t* model;
  const model_pass_t* pass;
  const gcap_run_resources_t* run;
} issue_t;

static gcap_status_t launch(const issue_t* issue, const void* kernel, unsigned heads, unsigned threads, void* params) {
  void* args[] = {params};
  const dim3 grid = {(unsigned)issue->pass->rows, heads, 1}, block = {threads, 1, 1};
  return GCAP_CUDA(cudaLaunchKernel(kernel, grid, block, args, /*sharedMem=*/0, issue->run->cuda_stream));
}

static gcap_status_t norm(const issue_t* issue, const float* x, const float* scale, float* y) {
  norm_params_t params = {x, scale, y};
  return launch(issue, (const void*)norm_kernel, 1, DECODER_WIDTH, &params);
}

static gcap_status_t multiply(const issue_t* issue, int product, const float* x, const float* weights, float* y) {
  const gcap_matmul_t* plan = issue->model->products[product][issue->pass->rows];
  return gcap_matmul_run(plan, issue->run->stream, x, weights, /*bias=*/NULL, kProducts[product].adds ? y : NULL, y,
                         /*workspace=*/NULL);
}

static gcap_status_t embed(const issue_t* issue, const activations_t* a) {
  embed_params_t params = {issue->pass->values, issue->pass->chosen, issue->model->table, a->x};
  return launch(issue, (const void*)embed_kernel, 1, DECODER_WIDTH, &params);
}

static gcap_status_t attend(const issue_t* issue, const float* qkv, float* y, int layer) {
  attend_params_t params = {issue->pass->values, qkv, issue->pass->pages, y, layer};
  return launch(issue, (const void*)attend_kernel, DECODER_HEADS, DECODER_MAX_POSITIONS, &params);
}

gcap_status_t model_attend(const model_pass_t* pass, int layer, const gcap_run_resources_t* run) {
  const issue_t issue = {NULL, pass, run};
  return attend(&issue, pass->crossing, pass->crossing + pass->rows * 3 * DECODER_WIDTH, layer);
}

static gcap_status_t heads(const issue_t* issue, const activations_t* a, int number) {
  const model_pass_t* pass = issue->pass;
  const layer_t* layer = &issue->model->layers[number];
  GCAP_RETURN_IF_ERROR(norm(issue, a->x, layer->before_heads, a->y));
  GCAP_RETURN_IF_ERROR(multiply(issue, TO_QKV, a->y, layer->to_qkv, a->qkv));
  rotate_params_t rotate = {pass->values, a->qkv, pass->pages, number};
  GCAP_RETURN_IF_ERROR(launch(issue, (const void*)rotate_kernel, 1, DECODER_WIDTH, &rotate));
  GCAP_RETURN_IF_ERROR(pass->attention != NULL ? gcap_graph_hole_issue(issue->run, &pass->attention[number])
                                               : attend(issue, a->qkv, a->y, number));
  return multiply(issue, FROM_HEADS, a->y, layer->from_heads, a->x);
}

static gcap_status_t hidden(const issue_t* issue, const activations_t* a, int number) {
  const layer_t* layer = &issue->model->layers[number];
  GCAP_RETURN_IF_ERROR(norm(issue, a->x, layer->before_hidden, a->y));
  GCAP_RETURN_IF_ERROR(multiply(issue, TO_HIDDEN, a->y, layer->to_hidden, a->gate_and_up));
  gate_params_t gate = {a->gate_and_up, a->hidden};
  GCAP_RETURN_IF_ERROR(launch(issue, (const void*)gate_kernel, 1, DECODER_HIDDEN, &gate));
  return multiply(issue, FROM_HIDDEN, a->hidden, layer->from_hidden, a->x);
}

// Messages, gcap-doctor and profilers name a call's layer.
static gcap_status_t issue_layer(const issue_t* issue, const activations_t* a, int number) {
  char label[24];
  snprintf(label, sizeof(label), "layer %d", number);
  gcap_label(label);
  gcap_status_t status = heads(issue, a, number);
  if (status == NULL) status = hidden(issue, a, number);
  gcap_label(NULL);
  return status;
}

static gcap_status_t choose(const issue_t* issue, const activations_t* a) {
  const model_pass_t* pass = issue->pass;
  GCAP_RETURN_IF_ERROR(norm(issue, a->x, issue->model->before_words, a->y));
  GCAP_RETURN_IF_ERROR(multiply(issue, TO_WORDS, a->y, issue->model->to_words, a->logits));
  choose_params_t params = {pass->values, a->logits, pass->chosen, pass->tokens};
  const void* kernel = pass->draws ? (const void*)draw_kernel : (const void*)choose_kernel;
  return launch(issue, kernel, 1, DECODER_WORDS, &params);
}

// A failure leaves the scratch to the run's end.
gcap_status_t model_issue(const model_t* model, const model_pass_t* pass, const gcap_run_resources_t* run) {
  const issue_t issue = {model, pass, run};
  float* scratch = NULL;
  GCAP_RETURN_IF_ERROR(
      gcap_scratch_alloc(run->scratch, pass->rows * NUM_ACTIVATIONS * sizeof(float), run->stream, (void**)&scratch));
  const activations_t a = cut(scratch, pass->rows, pass->crossing);
  GCAP_RETURN_IF_ERROR(embed(&issue, &a));
  for (int i = 0; i < DECODER_LAYERS; ++i) GCAP_RETURN_IF_ERROR(issue_layer(&issue, &a, i));
  GCAP_RETURN_IF_ERROR(choose(&issue, &a));
  return gcap_scratch_free(run->scratch, scratch);
}
