// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// An execution provider (EP) outside of gcap (swish_ep.c), with what an engine brings along: a kernel, memory and a
// stream of its own. The EP's device memory comes from a slab of the program, and its work goes to the program's
// stream. A session runs a model of two nodes, swish after swish, eagerly, captured and replayed, and the program
// checks each result. It prints:
//
//     run 1 is eager
//     run 2 is eager
//     run 3 is captured
//     run 4 is a replay
//     run 5 is a replay
//     the slab served 1 requests, 0 of them in a capture, and has all of its memory back
//
// The kernel is in kernels/. How an EP is written: docs/ep_guide.md of gcap.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gcap/kit/session.h"
#include "swish_ep.h"

#define COUNT 1000
#define NUM_RUNS 5
#define SLAB_BYTES ((size_t)64 << 20)
#define ALIGNMENT 256  // what gcap asks of external memory

// --- The program's memory -------------------------------------------------------------------------------------------

// A slab that is handed out from its start, and again from there once all of it came back.
static struct slab {
  char* memory;
  size_t used_bytes;
  int num_live, num_requests, num_in_capture;
  cudaStream_t stream;
} slab;

static void* slab_alloc(size_t bytes) {
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(slab.stream, &capture) != cudaSuccess) return NULL;
  slab.num_in_capture += capture != cudaStreamCaptureStatusNone;
  ++slab.num_requests;
  bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (bytes > SLAB_BYTES - slab.used_bytes) return NULL;
  void* block = slab.memory + slab.used_bytes;
  slab.used_bytes += bytes;
  ++slab.num_live;
  return block;
}

static void slab_free(void* block) {
  (void)block;
  if (--slab.num_live == 0) slab.used_bytes = 0;
}

static gcap_status_t create_ep(gcap_ep_t** out_ep) {
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  options.external_alloc = slab_alloc;
  options.external_free = slab_free;
  options.has_user_stream = true;
  options.user_stream = slab.stream;
  return swish_ep_create(&options, out_ep);
}

// --- The program ----------------------------------------------------------------------------------------------------

enum { X, H, Y, NUM_VALUES };
static const gcap_value_t values[NUM_VALUES] = {[X] = {.name = "x", .rank = 1, .shape = {COUNT}},
                                                [H] = {.name = "h", .rank = 1, .shape = {COUNT}},
                                                [Y] = {.name = "y", .rank = 1, .shape = {COUNT}}};
static const gcap_node_t nodes[] = {{"Swish", "inner", (const int[]){X}, 1, (const int[]){H}, 1, NULL},
                                    {"Swish", "outer", (const int[]){H}, 1, (const int[]){Y}, 1, NULL}};
static const gcap_model_t model = {values, NUM_VALUES, nodes, 2, (const int[]){X}, 1, (const int[]){Y}, 1, NULL, 0};

static double swish(double x) { return x / (1 + exp(-SWISH_EP_BETA * x)); }

// Runs with inputs that depend on the number of the run, and checks the outputs.
static gcap_status_t run_once(gcap_session_t* session, const gcap_tensor_t* x, const gcap_tensor_t* y, int number) {
  static float in[COUNT], out[COUNT];
  for (int i = 0; i < COUNT; ++i) in[i] = (float)(i % 17 - 8 + number) / 4;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(x->data, in, sizeof(in), cudaMemcpyHostToDevice, slab.stream)));
  GCAP_RETURN_IF_ERROR(gcap_session_run(session, /*options=*/NULL, x, y));  // the defaults: graph id 0
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(out, y->data, sizeof(out), cudaMemcpyDeviceToHost, slab.stream)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(slab.stream)));
  for (int i = 0; i < COUNT; ++i) {
    const double expected = swish(swish(in[i]));
    if (fabs(out[i] - expected) <= 1e-5) continue;
    return GCAP_STATUS(GCAP_INTERNAL, "run %d: y[%d] is %g, expected %g", number, i, out[i], expected);
  }
  return NULL;
}

static gcap_status_t run_all(gcap_ep_t* ep, gcap_session_t* session, const gcap_tensor_t* x, const gcap_tensor_t* y) {
  for (int number = 1; number <= NUM_RUNS; ++number) {
    const bool replays = gcap_runtime_is_captured(gcap_ep_runtime(ep), /*graph_id=*/0);
    GCAP_RETURN_IF_ERROR(run_once(session, x, y, number));
    const bool captured = gcap_runtime_is_captured(gcap_ep_runtime(ep), /*graph_id=*/0);
    printf("run %d is %s\n", number, replays ? "a replay" : captured ? "captured" : "eager");
  }
  return NULL;
}

static gcap_status_t use_ep(gcap_ep_t* ep) {
  gcap_session_t* session = NULL;
  GCAP_RETURN_IF_ERROR(gcap_session_create(&model, &ep, 1, /*options=*/NULL, &session));
  gcap_tensor_t x = {.rank = 1, .shape = {COUNT}}, y = {.rank = 1, .shape = {COUNT}};
  gcap_status_t status = GCAP_CUDA(cudaMalloc(&x.data, gcap_tensor_bytes(&x)));
  if (status == NULL) status = GCAP_CUDA(cudaMalloc(&y.data, gcap_tensor_bytes(&y)));
  if (status == NULL) status = run_all(ep, session, &x, &y);
  status = gcap_status_join(status, gcap_session_destroy(session));
  status = gcap_status_join(status, GCAP_CUDA(cudaFree(x.data)));
  return gcap_status_join(status, GCAP_CUDA(cudaFree(y.data)));
}

static gcap_status_t run_program(void) {
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamCreateWithFlags(&slab.stream, cudaStreamNonBlocking)));
  gcap_ep_t* ep = NULL;
  gcap_status_t status = GCAP_CUDA(cudaMalloc((void**)&slab.memory, SLAB_BYTES));
  if (status == NULL) status = create_ep(&ep);
  if (status == NULL) status = use_ep(ep);
  status = gcap_status_join(status, gcap_ep_destroy(ep));
  status = gcap_status_join(status, GCAP_CUDA(cudaFree(slab.memory)));
  status = gcap_status_join(status, GCAP_CUDA(cudaStreamDestroy(slab.stream)));
  if (status != NULL) return status;
  printf("the slab served %d requests, %d of them in a capture, and has %s of its memory back\n", slab.num_requests,
         slab.num_in_capture, slab.num_live == 0 ? "all" : "not all");
  if (slab.num_in_capture == 0 && slab.num_live == 0) return NULL;
  return GCAP_STATUS(GCAP_INTERNAL, "the slab was used as no EP should");
}

int main(void) {
  gcap_status_t status = run_program();
  if (status == NULL) return 0;
  fprintf(stderr, "ep: %s\n", gcap_status_message(status));
  gcap_status_free(status);
  return 1;
}
