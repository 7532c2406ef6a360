// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Two halves of a layer on two streams. The runtime gives the run two further streams, which in a captured run become
// two branches of one graph, and the work is the same code whether it is captured or not. A plan says before the
// capture what the graph will hold. It prints:
//
//     run 1: eager, the halves are 1 and 2
//     run 2: eager, the halves are 1 and 2
//     planned: a graph of 4 nodes that keeps 2048 KiB of scratch
//     run 3: captured, the halves are 1 and 2
//     run 4: replayed, the halves are 1 and 2

#include <stdio.h>

#include "gcap/runtime.h"

#define NUM_RUNS 4  // two warm up, the third is captured, the fourth replays
#define HALF_BYTES ((size_t)1 << 20)

enum { NUM_BRANCHES = 2 };

#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

typedef struct layer {
  gcap_runtime_t* runtime;
  unsigned char* output;  // a byte of each half
} layer_t;

// Each branch fills scratch memory of its own. Behind the join the run's stream may read what the branches wrote.
static gcap_status_t fill_halves(gcap_runtime_t* runtime, gcap_scratch_t* scratch, void** halves) {
  gcap_stream_t* branches[NUM_BRANCHES];
  GCAP_RETURN_IF_ERROR(gcap_runtime_fork(runtime, NUM_BRANCHES, branches));
  gcap_status_t status = NULL;
  for (int i = 0; i < NUM_BRANCHES && status == NULL; ++i) {
    status = gcap_scratch_alloc(scratch, HALF_BYTES, branches[i], &halves[i]);
    if (status == NULL) {
      status = GCAP_CUDA(cudaMemsetAsync(halves[i], i + 1, HALF_BYTES, gcap_stream_handle(branches[i])));
    }
  }
  return gcap_status_join(status, gcap_runtime_join(runtime));
}

static gcap_status_t issue(void* user, const gcap_run_resources_t* run) {
  const layer_t* layer = user;
  void* halves[NUM_BRANCHES] = {NULL};
  gcap_status_t status = fill_halves(layer->runtime, run->scratch, halves);
  for (int i = 0; i < NUM_BRANCHES && status == NULL; ++i) {
    status = GCAP_CUDA(cudaMemcpyAsync(&layer->output[i], halves[i], 1, cudaMemcpyDeviceToDevice, run->cuda_stream));
  }
  // Memory of a branch that another stream used is freed after the join.
  for (int i = 0; i < NUM_BRANCHES; ++i) status = gcap_status_join(status, gcap_scratch_free(run->scratch, halves[i]));
  return status;
}

static gcap_status_t show_plan(gcap_runtime_t* runtime, const gcap_run_t* run) {
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_RETURN_IF_ERROR(gcap_runtime_plan(runtime, run, 1, &plan));
  printf("planned: a graph of %zu nodes that keeps %zu KiB of scratch\n", plan.nodes, plan.retained_bytes >> 10);
  return NULL;
}

static gcap_status_t show_runs(layer_t* layer) {
  static const char* const outcomes[] = {"not done", "replayed", "captured", "eager"};
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = 0;
  run.work = issue;
  run.user = layer;
  run.synchronize = true;
  run.result = &result;
  for (int number = 1; number <= NUM_RUNS; ++number) {
    if (number == NUM_RUNS - 1) GCAP_RETURN_IF_ERROR(show_plan(layer->runtime, &run));
    GCAP_RETURN_IF_ERROR(gcap_runtime_run(layer->runtime, &run));
    unsigned char halves[NUM_BRANCHES];
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpy(halves, layer->output, sizeof(halves), cudaMemcpyDeviceToHost)));
    printf("run %d: %s, the halves are %d and %d\n", number, outcomes[result.outcome], halves[0], halves[1]);
  }
  return NULL;
}

int main(void) {
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  layer_t layer = {0};
  TRY(GCAP_CUDA(cudaMalloc((void**)&layer.output, NUM_BRANCHES)));
  TRY(gcap_runtime_create(&options, &layer.runtime));
  TRY(show_runs(&layer));
  TRY(gcap_runtime_destroy(layer.runtime));
  TRY(GCAP_CUDA(cudaFree(layer.output)));
  return 0;
}
