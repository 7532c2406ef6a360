// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A node on the CPU in the middle of a captured model: y = |x + bias| + bias, and the device's EP has no kernel for
// Abs. Under GCAP_GRAPH_ALLOW_HOLES the session captures the model all the same. What is on the CPU is a hole, with the
// copies there and back: a replay launches the first Add, copies and computes on the CPU, copies back, and launches the
// second Add. It prints:
//
//     EP 'lesson' captures the model with 1 hole: 'abs' (Abs, a copy) 'abs' (Abs, on the host) 'behind' (Add, a copy)
//     add is captured, abs is in hole 0, behind is captured
//     run 1 is eager:    y = 13 12 11 10
//     run 2 is captured: y = 12 11 10 11
//     run 3 is a replay: y = 11 10 11 12
//     run 4 is a replay: y = 10 11 12 13

#include <stdio.h>

#include "examples/lesson_ep/lesson_ep.h"
#include "gcap/kit/cpu_ep.h"
#include "gcap/kit/session.h"
#include "gcap/log.h"

#define COUNT 4
#define NUM_RUNS 4

#define TRY(call)                                                              \
  do {                                                                         \
    gcap_status_t status_ = (call);                                            \
    if (status_ != NULL) {                                                     \
      fprintf(stderr, "%s failed: %s\n", #call, gcap_status_message(status_)); \
      gcap_status_free(status_);                                               \
      return 1;                                                                \
    }                                                                          \
  } while (0)

enum { X, BIAS, SUM, ABS, Y, NUM_VALUES };
static const float bias[COUNT] = {10, 10, 10, 10};
static const gcap_value_t values[NUM_VALUES] = {
    [X] = {.name = "x", .rank = 1, .shape = {COUNT}},
    [BIAS] = {.name = "bias", .rank = 1, .shape = {COUNT}, .host_data = bias},
    [SUM] = {.name = "sum", .rank = 1, .shape = {COUNT}},
    [ABS] = {.name = "abs_of_sum", .rank = 1, .shape = {COUNT}},
    [Y] = {.name = "y", .rank = 1, .shape = {COUNT}},
};
static const gcap_node_t nodes[] = {
    {"Add", "add", (const int[]){X, BIAS}, 2, (const int[]){SUM}, 1, NULL},
    {"Abs", "abs", (const int[]){SUM}, 1, (const int[]){ABS}, 1, NULL},
    {"Add", "behind", (const int[]){ABS, BIAS}, 2, (const int[]){Y}, 1, NULL},
};
static const gcap_model_t model = {values, NUM_VALUES, nodes, 3, (const int[]){X}, 1, (const int[]){Y}, 1, NULL, 0};

static void show_line(void* user, gcap_log_level_t level, const char* message) {
  (void)user;
  (void)level;
  printf("%s\n", message);
}

static void show_holes(const gcap_session_t* session) {
  gcap_session_info_t info;
  gcap_session_get_info(session, &info);
  for (int n = 0; n < 3; ++n) {
    printf("%s%s is ", n == 0 ? "" : ", ", nodes[n].name);
    info.node_holes[n] < 0 ? printf("captured") : printf("in hole %d", info.node_holes[n]);
  }
  printf("\n");
}

static gcap_status_t show_runs(gcap_ep_t* ep, gcap_session_t* session, float* x_memory, float* y_memory) {
  const gcap_tensor_t x = {.data = x_memory, .rank = 1, .shape = {COUNT}};
  const gcap_tensor_t y = {.data = y_memory, .rank = 1, .shape = {COUNT}};
  gcap_run_resources_t resources;
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(gcap_ep_runtime(ep), &resources));
  cudaStream_t stream = resources.cuda_stream;
  for (int run = 0; run < NUM_RUNS; ++run) {
    float in[COUNT], out[COUNT];
    for (int i = 0; i < COUNT; ++i) in[i] = (float)(run + i - 13);
    const bool replays = gcap_runtime_is_captured(gcap_ep_runtime(ep), /*graph_id=*/0);
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(x.data, in, sizeof(in), cudaMemcpyHostToDevice, stream)));
    GCAP_RETURN_IF_ERROR(gcap_session_run(session, /*options=*/NULL, &x, &y));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(out, y.data, sizeof(out), cudaMemcpyDeviceToHost, stream)));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(stream)));
    const bool captured = gcap_runtime_is_captured(gcap_ep_runtime(ep), /*graph_id=*/0);
    printf("run %d is %s y =", run + 1, replays ? "a replay:" : captured ? "captured:" : "eager:   ");
    for (int i = 0; i < COUNT; ++i) printf(" %g", out[i]);
    printf("\n");
  }
  return NULL;
}

int main(void) {
  gcap_log_set_sink(show_line, /*user=*/NULL, GCAP_LOG_INFO);
  const char* keys[] = {"enable_cuda_graph", "min_num_runs_before_cuda_graph_capture"};
  const char* texts[] = {"1", "1"};
  gcap_ep_t *ep, *cpu;
  TRY(lesson_ep_create(keys, texts, 2, GCAP_GRAPH_ALLOW_HOLES, &ep));
  TRY(gcap_cpu_ep_create(&cpu));
  float *x, *y;
  TRY(GCAP_CUDA(cudaMalloc((void**)&x, COUNT * sizeof(float))));
  TRY(GCAP_CUDA(cudaMalloc((void**)&y, COUNT * sizeof(float))));
  gcap_session_t* session;
  TRY(gcap_session_create(&model, (gcap_ep_t* const[]){ep, cpu}, 2, /*options=*/NULL, &session));
  show_holes(session);
  TRY(show_runs(ep, session, x, y));
  TRY(gcap_session_destroy(session));
  TRY(gcap_ep_destroy(cpu));
  TRY(gcap_ep_destroy(ep));
  TRY(GCAP_CUDA(cudaFree(y)));
  TRY(GCAP_CUDA(cudaFree(x)));
  return 0;
}
