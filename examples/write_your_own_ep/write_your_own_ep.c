// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// An execution provider (EP) of your own, with a CUDA kernel of your own, whole: its kernels and a table of functions.
// The rest of an EP (streams, memory, warm-up, capture, replay, copies) is its runtime's. A session runs a model of two
// nodes on it: h = 2x + 1, then y = 3h - 1. It prints:
//
//     node 'inner' is on EP 'mine'
//     node 'outer' is on EP 'mine'
//     run 1 is eager:    x = (0, 1, 2), y = (2, 8, 14)
//     run 2 is eager:    x = (1, 2, 3), y = (8, 14, 20)
//     run 3 is captured: x = (2, 3, 4), y = (14, 20, 26)
//     run 4 is a replay: x = (3, 4, 5), y = (20, 26, 32)
//     run 5 is a replay: x = (4, 5, 6), y = (26, 32, 38)
//
// The kernel is in affine.cu, its twin for the simulator in affine_twin.c. docs/ep_guide.md has the other members of
// the table, the order of the calls, and what a kernel may do.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/write_your_own_ep/affine.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/kit/session.h"

// --- The EP ---------------------------------------------------------------------------------------------------------

// The node "Affine", y = alpha * x + beta, made ready to run. What a real kernel plans, it plans when it is made.
typedef struct affine {
  float alpha, beta;
} affine_t;

// A host gives the EP the nodes that it supports: look at all that the kernel takes for granted.
static bool supports(void* self, const gcap_model_t* model, const gcap_node_t* node) {
  (void)self;
  if (strcmp(node->op_type, "Affine") != 0 || node->num_inputs != 1 || node->num_outputs != 1) return false;
  const gcap_value_t *x = &model->values[node->inputs[0]], *y = &model->values[node->outputs[0]];
  return x->dtype == GCAP_DTYPE_F32 && y->dtype == GCAP_DTYPE_F32 && x->rank == y->rank &&
         memcmp(x->shape, y->shape, (size_t)x->rank * sizeof(*x->shape)) == 0;
}

// Runs inside captures too. So it only issues work, on the stream of this run, and neither waits nor allocates.
static gcap_status_t compute(void* self, const gcap_kernel_context_t* context) {
  const affine_t* affine = self;
  const gcap_tensor_t *x = &context->inputs[0], *y = &context->outputs[0];
  affine_params_t params = {x->data, y->data, gcap_tensor_elements(y), affine->alpha, affine->beta};
  if (params.count == 0) return NULL;
  const dim3 grid = {(unsigned)((params.count + AFFINE_BLOCK_THREADS - 1) / AFFINE_BLOCK_THREADS), 1, 1};
  const dim3 block = {AFFINE_BLOCK_THREADS, 1, 1};
  void* args[] = {&params};
  return GCAP_CUDA(
      cudaLaunchKernel((const void*)affine_kernel, grid, block, args, /*sharedMem=*/0, context->resources.cuda_stream));
}

// Runs once for each node. Whatever may allocate, search or fail for want of something belongs here.
static gcap_status_t create_kernel(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                   gcap_kernel_t* out_kernel) {
  (void)self;
  (void)model;
  affine_t* affine = malloc(sizeof(*affine));
  if (affine == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node '%s'", node->name);
  affine->alpha = gcap_node_float(node, "alpha", /*fallback=*/1);
  affine->beta = gcap_node_float(node, "beta", /*fallback=*/0);
  *out_kernel = (gcap_kernel_t){.self = affine, .compute = compute, .destroy = free};
  return NULL;
}

// The options come as hosts have them: text.
static gcap_status_t create_ep(const char* const* keys, const char* const* values, size_t count, gcap_ep_t** out_ep) {
  *out_ep = NULL;
  gcap_options_t options;
  gcap_options_init(&options);
  GCAP_RETURN_IF_ERROR(gcap_options_parse_for_ep(&options, "mine", keys, values, count));
  gcap_runtime_t* runtime = NULL;
  GCAP_RETURN_IF_ERROR(gcap_runtime_create(&options, &runtime));
  const gcap_ep_ops_t ops = {
      .struct_size = sizeof(gcap_ep_ops_t),
      .name = "mine",
      .supports = supports,
      .create_kernel = create_kernel,
      .runtime = runtime,  // has the rest, and ends with the EP
  };
  gcap_status_t status = gcap_ep_create(&ops, out_ep);
  if (status != NULL) status = gcap_status_join(status, gcap_runtime_destroy(runtime));
  return status;
}

// --- A host ---------------------------------------------------------------------------------------------------------

#define COUNT 3
#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

enum { X, H, Y, NUM_VALUES };
static const gcap_value_t values[NUM_VALUES] = {
    [X] = {.name = "x", .rank = 1, .shape = {COUNT}},
    [H] = {.name = "h", .rank = 1, .shape = {COUNT}},
    [Y] = {.name = "y", .rank = 1, .shape = {COUNT}},
};
#define FLOAT(key, value) \
  { .name = key, .kind = GCAP_ATTRIBUTE_FLOAT, .f = value }
static const gcap_attribute_t numbers[] = {FLOAT("alpha", 2), FLOAT("beta", 1), FLOAT("alpha", 3), FLOAT("beta", -1)};
static const gcap_attributes_t inner = {&numbers[0], 2}, outer = {&numbers[2], 2};
static const gcap_node_t nodes[] = {
    {"Affine", "inner", (const int[]){X}, 1, (const int[]){H}, 1, &inner},
    {"Affine", "outer", (const int[]){H}, 1, (const int[]){Y}, 1, &outer},
};
static const gcap_model_t model = {values, NUM_VALUES, nodes, 2, (const int[]){X}, 1, (const int[]){Y}, 1, NULL, 0};

int main(void) {
  gcap_ep_t* ep;
  gcap_session_t* session;
  TRY(create_ep((const char*[]){"enable_cuda_graph"}, (const char*[]){"1"}, 1, &ep));
  TRY(gcap_session_create(&model, &ep, 1, /*options=*/NULL, &session));
  for (int n = 0; n < 2; ++n) printf("node '%s' is on EP '%s'\n", nodes[n].name, gcap_session_node_ep_name(session, n));

  gcap_run_resources_t resources;
  TRY(gcap_runtime_get_resources(gcap_ep_runtime(ep), &resources));
  const cudaStream_t stream = resources.cuda_stream;
  gcap_tensor_t x = {.rank = 1, .shape = {COUNT}}, y = {.rank = 1, .shape = {COUNT}};
  TRY(GCAP_CUDA(cudaMalloc(&x.data, gcap_tensor_bytes(&x))));
  TRY(GCAP_CUDA(cudaMalloc(&y.data, gcap_tensor_bytes(&y))));
  for (int run = 0; run < 5; ++run) {
    const float in[COUNT] = {(float)run, (float)run + 1, (float)run + 2};
    float out[COUNT];
    const bool replays = gcap_runtime_is_captured(gcap_ep_runtime(ep), /*graph_id=*/0);
    TRY(GCAP_CUDA(cudaMemcpyAsync(x.data, in, sizeof(in), cudaMemcpyHostToDevice, stream)));
    TRY(gcap_session_run(session, /*options=*/NULL, &x, &y));  // the defaults: graph id 0
    TRY(GCAP_CUDA(cudaMemcpyAsync(out, y.data, sizeof(out), cudaMemcpyDeviceToHost, stream)));
    TRY(GCAP_CUDA(cudaStreamSynchronize(stream)));
    const bool captured = gcap_runtime_is_captured(gcap_ep_runtime(ep), /*graph_id=*/0);
    const char* way = replays ? "a replay:" : captured ? "captured:" : "eager:   ";
    printf("run %d is %s x = (%g, %g, %g), y = (%g, %g, %g)\n", run + 1, way, in[0], in[1], in[2], out[0], out[1],
           out[2]);
  }

  // The graphs end with the EP, and the memory that they point to after it.
  TRY(gcap_session_destroy(session));
  TRY(gcap_ep_destroy(ep));
  TRY(GCAP_CUDA(cudaFree(y.data)));
  TRY(GCAP_CUDA(cudaFree(x.data)));
  return 0;
}
