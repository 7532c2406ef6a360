// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Five runs of one annotation id through the graph manager: two warm up, the third is captured, the others replay it.
// The README shows this program from its first include on.

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "gcap/graph.h"

#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

// What a run does; here one fill, elsewhere a whole model. It issues the work alike whether it is captured or not.
static gcap_status_t fill(void* memory, const gcap_run_resources_t* resources) {
  return GCAP_CUDA(cudaMemsetAsync(memory, 42, 4, resources->cuda_stream));
}

int main(void) {
  unsigned char *device, host[4] = {0};
  cudaStream_t stream;
  gcap_graph_manager_t* graphs;
  TRY(GCAP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)));
  TRY(GCAP_CUDA(cudaMalloc((void**)&device, sizeof(host))));
  TRY(gcap_graph_manager_create(NULL, &graphs));
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = 0;
  run.stream = stream;
  run.work = fill;
  run.user = device;
  for (int number = 1; number <= 5; ++number) {
    TRY(gcap_graph_manager_run(graphs, &run));
    TRY(GCAP_CUDA(cudaMemcpyAsync(host, device, sizeof(host), cudaMemcpyDeviceToHost, stream)));
    TRY(GCAP_CUDA(cudaStreamSynchronize(stream)));
    gcap_graph_info_t info;
    gcap_graph_manager_get_info(graphs, /*id=*/0, &info);
    printf("run %d: memory holds %d, graph 0 is %s, launched %d times\n", number, host[0],
           gcap_graph_state_name(info.state), (int)info.replays);
  }
  TRY(gcap_graph_manager_destroy(graphs));
  TRY(GCAP_CUDA(cudaFree(device)));
  TRY(GCAP_CUDA(cudaStreamDestroy(stream)));
  return 0;
}
