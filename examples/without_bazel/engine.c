// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// An engine that CMake or make builds on an installed gcap, with a kernel of its own: a runtime captures two launches,
// with scratch memory between them, and replays them on new input. It prints:
//
//     run 1: graph 0 is WARMING, 1024 results are right
//     run 2: graph 0 is WARMING, 1024 results are right
//     run 3: graph 0 is CAPTURED, 1024 results are right
//     run 4: graph 0 is CAPTURED, 1024 results are right
//     graph 0 was captured 1 times and launched 2 times

#include <stdio.h>

#include "gcap/runtime.h"
#include "scale.h"

#define NUM_RUNS 4  // two warm up, the third is captured, the fourth replays
#define COUNT 1024
#define BYTES (COUNT * sizeof(float))

typedef struct engine {
  float *host, *x, *y;  // host: pinned; x, y: device memory
} engine_t;

static gcap_status_t scale(const float* x, float* y, float factor, cudaStream_t stream) {
  scale_params_t params = {x, y, COUNT, factor};
  void* args[] = {&params};
  const dim3 grid = {COUNT / SCALE_BLOCK_THREADS, 1, 1}, block = {SCALE_BLOCK_THREADS, 1, 1};
  return GCAP_CUDA(cudaLaunchKernel((const void*)scale_kernel, grid, block, args, 0, stream));
}

// The work of a run: y = 6 * x, in two steps, between the copies that a graph repeats too.
static gcap_status_t issue(void* user, const gcap_run_resources_t* run) {
  const engine_t* engine = user;
  cudaStream_t stream = gcap_stream_handle(run->stream);
  void* between = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(engine->x, engine->host, BYTES, cudaMemcpyHostToDevice, stream)));
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, BYTES, run->stream, &between));
  gcap_status_t status = scale(engine->x, between, 2.0f, stream);
  if (status == NULL) status = scale(between, engine->y, 3.0f, stream);
  status = gcap_status_join(status, gcap_scratch_free(run->scratch, between));
  if (status != NULL) return status;
  return GCAP_CUDA(cudaMemcpyAsync(engine->host, engine->y, BYTES, cudaMemcpyDeviceToHost, stream));
}

static gcap_status_t run_once(gcap_runtime_t* runtime, engine_t* engine, int number) {
  for (int i = 0; i < COUNT; ++i) engine->host[i] = (float)(i + number);
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = 0;
  run.work = issue;
  run.user = engine;
  run.synchronize = true;
  GCAP_RETURN_IF_ERROR(gcap_runtime_run(runtime, &run));
  for (int i = 0; i < COUNT; ++i) {
    const float expected = 6.0f * (float)(i + number);
    if (engine->host[i] != expected) {
      return GCAP_STATUS(GCAP_INTERNAL, "run %d: y[%d] is %g, expected %g", number, i, engine->host[i], expected);
    }
  }
  gcap_graph_manager_t* graphs;
  gcap_graph_info_t info;
  GCAP_RETURN_IF_ERROR(gcap_runtime_graphs(runtime, &graphs));
  gcap_graph_manager_get_info(graphs, /*id=*/0, &info);
  printf("run %d: graph 0 is %s, %d results are right\n", number, gcap_graph_state_name(info.state), COUNT);
  return NULL;
}

static gcap_status_t run_all(gcap_runtime_t* runtime, engine_t* engine) {
  for (int number = 1; number <= NUM_RUNS; ++number) GCAP_RETURN_IF_ERROR(run_once(runtime, engine, number));
  gcap_graph_manager_t* graphs;
  gcap_graph_info_t info;
  GCAP_RETURN_IF_ERROR(gcap_runtime_graphs(runtime, &graphs));
  gcap_graph_manager_get_info(graphs, /*id=*/0, &info);
  printf("graph 0 was captured %d times and launched %d times\n", (int)info.captures, (int)info.replays);
  return NULL;
}

static gcap_status_t create(engine_t* engine, gcap_runtime_t** out_runtime) {
  const char *key = "enable_cuda_graph", *value = "1";
  gcap_options_t options;
  gcap_options_init(&options);
  GCAP_RETURN_IF_ERROR(gcap_options_parse(&options, &key, &value, 1));
  GCAP_RETURN_IF_ERROR(gcap_runtime_create(&options, out_runtime));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc((void**)&engine->x, BYTES)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc((void**)&engine->y, BYTES)));
  return GCAP_CUDA(cudaMallocHost((void**)&engine->host, BYTES));
}

// The graphs of the runtime go first: they use the memory.
static gcap_status_t destroy(engine_t* engine, gcap_runtime_t* runtime) {
  gcap_status_t status = gcap_runtime_destroy(runtime);
  if (engine->host != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaFreeHost(engine->host)));
  if (engine->y != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaFree(engine->y)));
  if (engine->x != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaFree(engine->x)));
  return status;
}

int main(void) {
  engine_t engine = {0};
  gcap_runtime_t* runtime = NULL;
  gcap_status_t status = create(&engine, &runtime);
  if (status == NULL) status = run_all(runtime, &engine);
  status = gcap_status_join(status, destroy(&engine, runtime));
  if (status == NULL) return 0;
  fprintf(stderr, "engine: %s\n", gcap_status_message(status));
  gcap_status_free(status);
  return 1;
}
