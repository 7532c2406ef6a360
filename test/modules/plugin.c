// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A plugin that links gcap and exports one function: three graphs, of which two may be kept, are captured and replayed,
// with scratch. Gives how many runs went well.

#include <stdbool.h>
#include <stdio.h>

#include "gcap/runtime.h"

__attribute__((visibility("default"))) int plugin_main(void);

static gcap_status_t fill(void* memory, const gcap_run_resources_t* run) {
  void* scratch = NULL;
  const cudaStream_t stream = gcap_stream_handle(run->stream);
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, 256, run->stream, &scratch));
  gcap_status_t status = GCAP_CUDA(cudaMemsetAsync(scratch, 1, 64, stream));
  if (status == NULL) status = GCAP_CUDA(cudaMemcpyAsync(memory, scratch, 64, cudaMemcpyDeviceToDevice, stream));
  return gcap_status_join(status, gcap_scratch_free(run->scratch, scratch));
}

static gcap_status_t run_all(gcap_runtime_t* runtime, void* memory, int* num_good) {
  for (int round = 0; round < 3; ++round) {
    for (int id = 0; id < 3; ++id) {
      gcap_run_t run;
      gcap_run_init(&run);
      run.id = id;
      run.work = fill;
      run.user = memory;
      run.synchronize = true;
      GCAP_RETURN_IF_ERROR(gcap_runtime_run(runtime, &run));
      ++*num_good;
    }
  }
  return NULL;
}

int plugin_main(void) {
  int num_good = 0;
  void* memory = NULL;
  gcap_runtime_t* runtime = NULL;
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  options.graph.max_graphs = 2;
  options.graph.min_num_runs_before_capture = 1;
  gcap_status_t status = GCAP_CUDA(cudaMalloc(&memory, 64));
  if (status == NULL) status = gcap_runtime_create(&options, &runtime);
  if (status == NULL) status = run_all(runtime, memory, &num_good);
  status = gcap_status_join(status, gcap_runtime_destroy(runtime));
  status = gcap_status_join(status, GCAP_CUDA(cudaFree(memory)));
  printf("plugin: %s\n", gcap_status_message(status));
  gcap_status_free(status);
  return num_good;
}
