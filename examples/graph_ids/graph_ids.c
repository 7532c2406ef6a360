// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graph ids. A captured graph has fixed shapes and fixed addresses, so an id stands for one set of each: here id 1 for
// batches of one row and id 2 for batches of three, of one session with a symbolic batch. Ids take turns freely, and a
// replay reads what the inputs hold by then. Id -1 stands for no graph: such runs stay eager, of any shape. An id that
// has a graph refuses other shapes, until the graph is released. It prints:
//
//     id 1, batch 1: runs eagerly, y = 10 20
//     id 1, batch 1: is captured, y = 11 21
//     id 2, batch 3: runs eagerly, y = 12 22 13 23 14 24
//     id 2, batch 3: is captured, y = 13 23 14 24 15 25
//     id 1, batch 1: replays, y = 14 24
//     id 2, batch 3: replays, y = 15 25 16 26 17 27
//     id 1, batch 1: replays, y = 16 26
//     id -1, batch 2: runs eagerly, y = 17 27 18 28
//     id -1, batch 2: runs eagerly, y = 18 28 19 29
//     id -1, batch 2: runs eagerly, y = 19 29 20 30
//     id 1, batch 3: is refused:
//       graph id 1 means the shapes 'x' [1,2], with which it was first run, and this run has 'x' [3,2]:
//       use another id, or release the id
//     id 1 is released
//     id 1, batch 3: runs eagerly, y = 20 30 21 31 22 32
//     id 1, batch 3: is captured, y = 21 31 22 32 23 33
//     id 1, batch 3: replays, y = 22 32 23 33 24 34

#include <stdio.h>
#include <string.h>

#include "examples/lesson_ep/lesson_ep.h"
#include "gcap/kit/session.h"

#define MAX_ROWS 3

#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

// The model: y = x + bias, for each row of a batch whose size the inputs of a run decide.
enum { X, BIAS, Y, NUM_VALUES };
static const float bias[2] = {10, 20};
static const char* const symbols[] = {"batch"};
static const gcap_value_t values[NUM_VALUES] = {
    [X] = {.name = "x", .rank = 2, .shape = {GCAP_DIM_SYMBOL(0), 2}},
    [BIAS] = {.name = "bias", .rank = 1, .shape = {2}, .host_data = bias},
    [Y] = {.name = "y", .rank = 2, .shape = {GCAP_DIM_SYMBOL(0), 2}},
};
static const gcap_node_t node = {"Add", "add", (const int[]){X, BIAS}, 2, (const int[]){Y}, 1, NULL};
static const gcap_model_t model = {values, NUM_VALUES, &node, 1, (const int[]){X}, 1, (const int[]){Y}, 1, symbols, 1};

typedef struct host {
  gcap_ep_t* ep;
  gcap_session_t* session;
  cudaStream_t stream;  // of the EP's runs
  float* x[3];          // device memory for an id each: [0] is that of id -1, which may have any
  float* y[3];
  int num_runs;
} host_t;

static gcap_status_t show_run(host_t* host, int id, int rows) {
  printf("id %d, batch %d: ", id, rows);
  const int at = id < 0 ? 0 : id;
  const gcap_tensor_t x = {.data = host->x[at], .rank = 2, .shape = {rows, 2}};
  const gcap_tensor_t y = {.data = host->y[at], .rank = 2, .shape = {rows, 2}};
  float rows_in[MAX_ROWS][2], rows_out[MAX_ROWS][2];
  for (int i = 0; i < rows; ++i)
    rows_in[i][0] = rows_in[i][1] = (float)(host->num_runs + i);  // other content each time
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  options.graph_id = id;
  const bool replays = gcap_runtime_is_captured(gcap_ep_runtime(host->ep), id);
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(x.data, rows_in, gcap_tensor_bytes(&x), cudaMemcpyHostToDevice, host->stream)));
  GCAP_RETURN_IF_ERROR(gcap_session_run(host->session, &options, &x, &y));
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(rows_out, y.data, gcap_tensor_bytes(&y), cudaMemcpyDeviceToHost, host->stream)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(host->stream)));
  const bool captured = gcap_runtime_is_captured(gcap_ep_runtime(host->ep), id);
  printf("%s, y =", replays ? "replays" : captured ? "is captured" : "runs eagerly");
  for (int i = 0; i < rows; ++i) printf(" %g %g", rows_out[i][0], rows_out[i][1]);
  printf("\n");
  ++host->num_runs;
  return NULL;
}

// The message, with a line for what to do.
static void show_refusal(gcap_status_t refusal) {
  const char* message = gcap_status_message(refusal);
  const char* remedy = strstr(message, ": ");
  const int length = remedy == NULL ? (int)strlen(message) : (int)(remedy + 1 - message);
  printf("is refused:\n  %.*s\n", length, message);
  if (remedy != NULL) printf("  %s\n", remedy + 2);
}

static gcap_status_t show_runs(host_t* host) {
  const struct {
    int id, rows;
  } runs[] = {{1, 1}, {1, 1}, {2, 3}, {2, 3}, {1, 1}, {2, 3}, {1, 1}, {-1, 2}, {-1, 2}, {-1, 2}};
  for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); ++i) {
    GCAP_RETURN_IF_ERROR(show_run(host, runs[i].id, runs[i].rows));
  }
  gcap_status_t refusal = show_run(host, /*id=*/1, /*rows=*/3);
  if (refusal == NULL) return GCAP_STATUS(GCAP_INTERNAL, "id 1 took other shapes");
  show_refusal(refusal);
  gcap_status_free(refusal);
  GCAP_RETURN_IF_ERROR(gcap_session_release_captured_graph(host->session, /*graph_id=*/1));
  printf("id 1 is released\n");
  for (int i = 0; i < 3; ++i) GCAP_RETURN_IF_ERROR(show_run(host, /*id=*/1, /*rows=*/3));
  return NULL;
}

int main(void) {
  host_t host = {0};
  const char* keys[] = {"enable_cuda_graph", "min_num_runs_before_cuda_graph_capture"};
  const char* texts[] = {"1", "1"};
  TRY(lesson_ep_create(keys, texts, 2, GCAP_GRAPH_ALL_NODES_ON_EP, &host.ep));
  TRY(gcap_session_create(&model, &host.ep, 1, /*options=*/NULL, &host.session));
  gcap_run_resources_t resources;
  TRY(gcap_runtime_get_resources(gcap_ep_runtime(host.ep), &resources));
  host.stream = gcap_stream_handle(resources.stream);
  for (int i = 0; i < 3; ++i) {
    TRY(GCAP_CUDA(cudaMalloc((void**)&host.x[i], MAX_ROWS * 2 * sizeof(float))));
    TRY(GCAP_CUDA(cudaMalloc((void**)&host.y[i], MAX_ROWS * 2 * sizeof(float))));
  }

  TRY(show_runs(&host));

  TRY(gcap_session_destroy(host.session));
  TRY(gcap_ep_destroy(host.ep));
  for (int i = 0; i < 3; ++i) {
    TRY(GCAP_CUDA(cudaFree(host.y[i])));
    TRY(GCAP_CUDA(cudaFree(host.x[i])));
  }
  return 0;
}
