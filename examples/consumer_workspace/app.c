// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A program outside of gcap that uses its graph manager alone: it fills device memory and copies it back under one
// annotation id, first eagerly, then captured, then replayed, and checks the bytes after every run.
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#include "gcap/graph.h"

#define NUM_RUNS 5
#define NUM_BYTES 4096
#define PATTERN 0x2a
#define ANNOTATION_ID 7

typedef struct app {
  gcap_graph_manager_t* manager;
  cudaStream_t stream;
  unsigned char* device;
  unsigned char* host;  // pinned: a graph must not copy to memory that may move
} app_t;

// The work of a run: what is captured, and what a replay does again.
static gcap_status_t issue(void* user, const gcap_run_resources_t* resources) {
  const app_t* app = user;
  cudaStream_t stream = resources->cuda_stream;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(app->device, PATTERN, NUM_BYTES, stream)));
  return GCAP_CUDA(cudaMemcpyAsync(app->host, app->device, NUM_BYTES, cudaMemcpyDeviceToHost, stream));
}

static gcap_status_t run(app_t* app, const char** out_how) {
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = ANNOTATION_ID;
  run.stream = app->stream;
  run.work = issue;
  run.user = app;
  run.synchronize = true;
  run.result = &result;
  gcap_status_t status = gcap_graph_manager_run(app->manager, &run);
  *out_how = result.outcome == GCAP_RUN_REPLAYED ? "replayed" : "eager";
  if (result.outcome == GCAP_RUN_CAPTURED) *out_how = "captured";
  return status;
}

static gcap_status_t check(const app_t* app, int number, const char* how) {
  for (size_t i = 0; i < NUM_BYTES; ++i) {
    if (app->host[i] != PATTERN) {
      return GCAP_STATUS(GCAP_INTERNAL, "run %d (%s): byte %zu is %d, expected %d", number, how, i, app->host[i],
                         PATTERN);
    }
  }
  printf("run %d: %s, %d bytes are right\n", number, how, NUM_BYTES);
  return NULL;
}

static gcap_status_t run_all(app_t* app) {
  for (int number = 1; number <= NUM_RUNS; ++number) {
    const char* how = NULL;
    memset(app->host, 0, NUM_BYTES);
    GCAP_RETURN_IF_ERROR(run(app, &how));
    GCAP_RETURN_IF_ERROR(check(app, number, how));
  }
  gcap_graph_info_t info;
  gcap_graph_manager_get_info(app->manager, ANNOTATION_ID, &info);
  printf("graph of %zu nodes, launched %llu times\n", info.nodes, (unsigned long long)info.replays);
  if (info.captures == 1) return NULL;
  return GCAP_STATUS(GCAP_INTERNAL, "%llu captures, expected 1", (unsigned long long)info.captures);
}

static gcap_status_t create(app_t* app) {
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamCreateWithFlags(&app->stream, cudaStreamNonBlocking)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc((void**)&app->device, NUM_BYTES)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaHostAlloc((void**)&app->host, NUM_BYTES, cudaHostAllocDefault)));
  return gcap_graph_manager_create(NULL, &app->manager);
}

// The graph goes first: it uses the memory and the stream.
static gcap_status_t destroy(app_t* app) {
  gcap_status_t status = gcap_graph_manager_destroy(app->manager);
  if (app->host != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaFreeHost(app->host)));
  if (app->device != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaFree(app->device)));
  if (app->stream != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaStreamDestroy(app->stream)));
  return status;
}

int main(void) {
  app_t app = {0};
  gcap_status_t status = create(&app);
  if (status == NULL) status = run_all(&app);
  status = gcap_status_join(status, destroy(&app));
  if (status == NULL) return 0;
  fprintf(stderr, "app: %s\n", gcap_status_message(status));
  gcap_status_free(status);
  return 1;
}
