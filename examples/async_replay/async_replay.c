// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Asynchronous replay: a session on the application's own stream, with fixed buffers, a graph, and no wait. The
// application issues six frames, each a copy in, a run and a copy out, and waits for its stream once. Without
// disable_synchronize_execution_providers each run would wait for its result before it returns. What stays fixed is the
// addresses: the graph reads x and writes y, and the copies around a replay change what is there. It prints:
//
//     frame 1 ran eagerly:  x = (0, 0), y = (10, 20)
//     frame 2 ran eagerly:  x = (1, 2), y = (11, 22)
//     frame 3 was captured: x = (2, 4), y = (12, 24)
//     frame 4 was replayed: x = (3, 6), y = (13, 26)
//     frame 5 was replayed: x = (4, 8), y = (14, 28)
//     frame 6 was replayed: x = (5, 10), y = (15, 30)
//
// (The same without an EP is examples/external_stream.)

#include <stdio.h>

#include "examples/lesson_ep/lesson_ep.h"
#include "gcap/kit/session.h"

#define NUM_FRAMES 6

#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

// The model: y = x + bias.
enum { X, BIAS, Y, NUM_VALUES };
static const float bias[2] = {10, 20};
static const gcap_value_t values[NUM_VALUES] = {
    [X] = {.name = "x", .rank = 1, .shape = {2}},
    [BIAS] = {.name = "bias", .rank = 1, .shape = {2}, .host_data = bias},
    [Y] = {.name = "y", .rank = 1, .shape = {2}},
};
static const gcap_node_t node = {"Add", "add", (const int[]){X, BIAS}, 2, (const int[]){Y}, 1, NULL};
static const gcap_model_t model = {values, NUM_VALUES, &node, 1, (const int[]){X}, 1, (const int[]){Y}, 1, NULL, 0};

// An EP whose runs go to the application's stream.
static gcap_status_t create_ep(cudaStream_t stream, gcap_ep_t** out_ep) {
  char address[32];
  snprintf(address, sizeof(address), "%p", (void*)stream);
  const char* keys[] = {"enable_cuda_graph", "user_compute_stream"};
  const char* texts[] = {"1", address};
  return lesson_ep_create(keys, texts, 2, GCAP_GRAPH_ALL_NODES_ON_EP, out_ep);
}

static gcap_status_t asynchronous(gcap_run_options_t* options) {
  const char* keys[] = {"gpu_graph_id", "disable_synchronize_execution_providers"};
  const char* texts[] = {"1", "1"};
  gcap_run_options_init(options);
  return gcap_run_options_parse(options, keys, texts, 2);
}

int main(void) {
  gcap_tensor_t x = {.rank = 1, .shape = {2}}, y = {.rank = 1, .shape = {2}};
  const size_t bytes = gcap_tensor_bytes(&x);
  float(*frames)[2], (*results)[2];  // page-locked: else a copy is not asynchronous
  TRY(GCAP_CUDA(cudaMalloc(&x.data, bytes)));
  TRY(GCAP_CUDA(cudaMalloc(&y.data, bytes)));
  TRY(GCAP_CUDA(cudaHostAlloc((void**)&frames, NUM_FRAMES * bytes, 0)));
  TRY(GCAP_CUDA(cudaHostAlloc((void**)&results, NUM_FRAMES * bytes, 0)));
  for (int i = 0; i < NUM_FRAMES; ++i) frames[i][0] = (float)i, frames[i][1] = 2 * (float)i;
  cudaStream_t stream;
  TRY(GCAP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)));
  gcap_ep_t* ep;
  gcap_session_t* session;
  TRY(create_ep(stream, &ep));
  TRY(gcap_session_create(&model, &ep, 1, /*options=*/NULL, &session));
  gcap_run_options_t options;
  TRY(asynchronous(&options));

  // All is issued here, and nothing waits.
  const char* ways[NUM_FRAMES];
  for (int i = 0; i < NUM_FRAMES; ++i) {
    const bool replays = gcap_runtime_is_captured(gcap_ep_runtime(ep), options.graph_id);
    TRY(GCAP_CUDA(cudaMemcpyAsync(x.data, frames[i], bytes, cudaMemcpyHostToDevice, stream)));
    TRY(gcap_session_run(session, &options, &x, &y));
    TRY(GCAP_CUDA(cudaMemcpyAsync(results[i], y.data, bytes, cudaMemcpyDeviceToHost, stream)));
    const bool captured = gcap_runtime_is_captured(gcap_ep_runtime(ep), options.graph_id);
    ways[i] = replays ? "was replayed:" : captured ? "was captured:" : "ran eagerly: ";
  }
  TRY(GCAP_CUDA(cudaStreamSynchronize(stream)));
  for (int i = 0; i < NUM_FRAMES; ++i) {
    printf("frame %d %s x = (%g, %g), y = (%g, %g)\n", i + 1, ways[i], frames[i][0], frames[i][1], results[i][0],
           results[i][1]);
  }

  TRY(gcap_session_destroy(session));
  TRY(gcap_ep_destroy(ep));
  TRY(GCAP_CUDA(cudaStreamDestroy(stream)));  // the application's, from its making to its end
  TRY(GCAP_CUDA(cudaFreeHost(results)));
  TRY(GCAP_CUDA(cudaFreeHost(frames)));
  TRY(GCAP_CUDA(cudaFree(y.data)));
  TRY(GCAP_CUDA(cudaFree(x.data)));
  return 0;
}
