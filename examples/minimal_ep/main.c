// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A host of the provider in minimal_ep.c: it runs a model of two nodes, y = Relu(Gemm(x, weight, bias)), five times.
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
#include "gcap/session.h"

#define GRAPH_ID 0

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

static const minimal_ep_gemm_attributes_t gemm_attributes = {.relu = false};

static const gcap_node_t nodes[] = {
    {"Gemm", "gemm", (const int[]){X, WEIGHT, BIAS}, 3, (const int[]){SUM}, 1, &gemm_attributes},
    {"Relu", "relu", (const int[]){SUM}, 1, (const int[]){Y}, 1, NULL},
};

static const gcap_model_t model = {values, NUM_VALUES, nodes, 2, (const int[]){X}, 1, (const int[]){Y}, 1};

// --- The host: memory, runs, checks ---------------------------------------------------------------------------------

typedef struct host {
  gcap_ep_t* ep;
  gcap_runtime_t* runtime;  // the provider's, asked for the graph's state
  gcap_session_t* session;  // the model on the provider
  cudaStream_t stream;      // the provider's for this thread
  gcap_tensor_t x;          // device memory, bound to the graph
  gcap_tensor_t y;
} host_t;

static gcap_status_t create(host_t* host) {
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  GCAP_RETURN_IF_ERROR(minimal_ep_create(&options, &host->ep, &host->runtime));
  GCAP_RETURN_IF_ERROR(gcap_session_create(&model, &host->ep, 1, &host->session));
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(gcap_ep_get_run_resources(host->ep, &resources));
  host->stream = gcap_stream_handle(resources.stream);
  host->x = (gcap_tensor_t){.rank = 2, .shape = {1, 4}};
  host->y = (gcap_tensor_t){.rank = 2, .shape = {1, 2}};
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc(&host->x.data, gcap_tensor_bytes(&host->x))));
  return GCAP_CUDA(cudaMalloc(&host->y.data, gcap_tensor_bytes(&host->y)));
}

// The graph ends with the provider, and the memory that the graph points to after it.
static gcap_status_t destroy(host_t* host) {
  gcap_status_t status = gcap_session_destroy(host->session);
  status = gcap_status_join(status, gcap_ep_destroy(host->ep));
  status = gcap_status_join(status, GCAP_CUDA(cudaFree(host->x.data)));
  return gcap_status_join(status, GCAP_CUDA(cudaFree(host->y.data)));
}

// Runs the model on new contents of x. The copies go on the stream of the run, so the three are in order.
static gcap_status_t run(host_t* host, const float in[4], float out[2]) {
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  options.graph_id = GRAPH_ID;
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(host->x.data, in, 4 * sizeof(float), cudaMemcpyHostToDevice, host->stream)));
  GCAP_RETURN_IF_ERROR(gcap_session_run(host->session, &options, &host->x, &host->y));
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(out, host->y.data, 2 * sizeof(float), cudaMemcpyDeviceToHost, host->stream)));
  return GCAP_CUDA(cudaStreamSynchronize(host->stream));
}

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

static gcap_status_t run_all(host_t* host) {
  static const float inputs[5][4] = {{1, 2, 3, 4}, {4, 3, 2, 1}, {0, 0, 0, 0}, {-1, 0, 0, 1}, {-9, 0, 0, 0}};
  for (int i = 0; i < 5; ++i) {
    const float* in = inputs[i];
    float out[2];
    GCAP_RETURN_IF_ERROR(run(host, in, out));
    gcap_graph_info_t graph;
    gcap_runtime_get_graph_info(host->runtime, GRAPH_ID, &graph);
    printf("run %d: x = (%g, %g, %g, %g), y = (%g, %g), graph is %s, launched %d times\n", i + 1, in[0], in[1], in[2],
           in[3], out[0], out[1], gcap_graph_state_name(graph.state), (int)graph.replays);
    GCAP_RETURN_IF_ERROR(check(in, out));
  }
  return NULL;
}

int main(void) {
  host_t host = {0};
  gcap_status_t status = create(&host);
  if (status == NULL) status = run_all(&host);
  status = gcap_status_join(status, destroy(&host));
  if (status == NULL) return 0;
  fprintf(stderr, "minimal_ep: %s\n", gcap_status_message(status));
  gcap_status_free(status);
  return 1;
}
