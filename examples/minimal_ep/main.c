// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A host of the provider in minimal_ep.c: it runs a model of two nodes, y = Relu(Gemm(x, weightᵀ, bias)), five times.
// Two runs warm up, the third is captured into a CUDA graph, and from then on a run is one launch of that graph. The
// graph keeps the addresses of x and y, so each run writes new numbers into the same x. It prints:
//
//     run 1: x = (1, 2, 3, 4), y = (40, 0), graph is WARMING, launched 0 times
//     run 2: x = (4, 3, 2, 1), y = (30, 0), graph is WARMING, launched 0 times
//     run 3: x = (0, 0, 0, 0), y = (10, 13), graph is CAPTURED, launched 1 times
//     run 4: x = (-1, 0, 0, 1), y = (13, 10), graph is CAPTURED, launched 2 times
//     run 5: x = (-9, 0, 0, 0), y = (1, 22), graph is CAPTURED, launched 3 times
//
// gcap_session_warm_up would make the first three runs in one call. One thread, so no locking.

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "examples/minimal_ep/minimal_ep.h"
#include "gcap/kit/session.h"

// The process ends at the first failure, and everything with it.
#define TRY(call)                                                        \
  do {                                                                   \
    gcap_status_t status_ = (call);                                      \
    if (status_ != NULL) {                                               \
      fprintf(stderr, "minimal_ep: %s\n", gcap_status_message(status_)); \
      return 1;                                                          \
    }                                                                    \
  } while (0)

// --- The model: values, and the nodes between them ------------------------------------------------------------------

enum { X, WEIGHT, BIAS, SUM, Y, NUM_VALUES };

// Whole numbers: their sums are exact, in whatever order they are added.
static const float weight[2][4] = {{1, 2, 3, 4}, {-1, -2, -3, -4}};
static const float bias[2] = {10, 13};

static const gcap_value_t values[NUM_VALUES] = {
    [X] = {.name = "x", .rank = 2, .shape = {1, 4}},
    [WEIGHT] = {.name = "weight", .rank = 2, .shape = {2, 4}, .host_data = weight},
    [BIAS] = {.name = "bias", .rank = 1, .shape = {2}, .host_data = bias},
    [SUM] = {.name = "sum", .rank = 2, .shape = {1, 2}},
    [Y] = {.name = "y", .rank = 2, .shape = {1, 2}},
};

static const gcap_attribute_t trans_b = {.name = "transB", .kind = GCAP_ATTRIBUTE_INT, .i = 1};
static const gcap_attributes_t gemm_attributes = {&trans_b, 1};

static const gcap_node_t nodes[] = {
    {"Gemm", "gemm", (const int[]){X, WEIGHT, BIAS}, 3, (const int[]){SUM}, 1, &gemm_attributes},
    {"Relu", "relu", (const int[]){SUM}, 1, (const int[]){Y}, 1, NULL},
};

static const gcap_model_t model = {values, NUM_VALUES, nodes, 2, (const int[]){X}, 1, (const int[]){Y}, 1, NULL, 0};

// --- The host: memory, runs, checks ---------------------------------------------------------------------------------

static const float inputs[5][4] = {{1, 2, 3, 4}, {4, 3, 2, 1}, {0, 0, 0, 0}, {-1, 0, 0, 1}, {-9, 0, 0, 0}};

// Compares with plain C.
static gcap_status_t check(const float in[4], const float out[2]) {
  for (int i = 0; i < 2; ++i) {
    float sum = bias[i];
    for (int k = 0; k < 4; ++k) sum += weight[i][k] * in[k];
    float expected = sum > 0 ? sum : 0;
    if (out[i] != expected) return GCAP_STATUS(GCAP_INTERNAL, "y[%d] is %g, expected %g", i, out[i], expected);
  }
  return NULL;
}

int main(void) {
  gcap_ep_t* ep;
  gcap_graph_manager_t* graphs;
  gcap_session_t* session;
  gcap_run_resources_t resources;
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  TRY(minimal_ep_create(&options, &ep));
  TRY(gcap_session_create(&model, &ep, 1, /*options=*/NULL, &session));
  TRY(gcap_runtime_get_resources(gcap_ep_runtime(ep), &resources));
  TRY(gcap_runtime_graphs(gcap_ep_runtime(ep), &graphs));

  // Device memory, bound to the graph. The copies go on the stream of the run, so the three are in order.
  cudaStream_t stream = resources.cuda_stream;
  gcap_tensor_t x = {.rank = 2, .shape = {1, 4}}, y = {.rank = 2, .shape = {1, 2}};
  TRY(GCAP_CUDA(cudaMalloc(&x.data, gcap_tensor_bytes(&x))));
  TRY(GCAP_CUDA(cudaMalloc(&y.data, gcap_tensor_bytes(&y))));
  for (int i = 0; i < 5; ++i) {
    const float* in = inputs[i];
    float out[2];
    TRY(GCAP_CUDA(cudaMemcpyAsync(x.data, in, sizeof(inputs[i]), cudaMemcpyHostToDevice, stream)));
    TRY(gcap_session_run(session, /*options=*/NULL, &x, &y));  // the defaults: graph id 0
    TRY(GCAP_CUDA(cudaMemcpyAsync(out, y.data, sizeof(out), cudaMemcpyDeviceToHost, stream)));
    TRY(GCAP_CUDA(cudaStreamSynchronize(stream)));
    gcap_graph_info_t graph;
    gcap_graph_manager_get_info(graphs, /*id=*/0, &graph);
    printf("run %d: x = (%g, %g, %g, %g), y = (%g, %g), graph is %s, launched %d times\n", i + 1, in[0], in[1], in[2],
           in[3], out[0], out[1], gcap_graph_state_name(graph.state), (int)graph.replays);
    TRY(check(in, out));
  }

  // The graph ends with the provider, and the memory that the graph points to after it.
  TRY(gcap_session_destroy(session));
  TRY(gcap_ep_destroy(ep));
  TRY(GCAP_CUDA(cudaFree(x.data)));
  TRY(GCAP_CUDA(cudaFree(y.data)));
  return 0;
}
