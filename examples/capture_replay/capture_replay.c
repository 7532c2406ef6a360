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

int main(void) {
  unsigned char *device, host[4] = {0};
  cudaStream_t stream;
  gcap_graph_manager_t* graphs;
  TRY(GCAP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)));
  TRY(GCAP_CUDA(cudaMalloc((void**)&device, sizeof(host))));
  TRY(gcap_graph_manager_create(NULL, &graphs));
  for (int run = 0; run < 5; ++run) {
    bool replayed;
    TRY(gcap_graph_manager_try_replay(graphs, /*id=*/0, /*synchronize=*/false, &replayed));
    if (!replayed) {
      gcap_graph_run_kind_t kind;  // eager or captured: the work is issued alike
      TRY(gcap_graph_manager_begin_run(graphs, /*id=*/0, stream, &kind));
      gcap_status_t work = GCAP_CUDA(cudaMemsetAsync(device, 42, sizeof(host), stream));
      gcap_status_t ended = gcap_graph_manager_end_run(graphs, work, /*synchronize=*/false);
      TRY(gcap_status_join(work, ended));
    }
    TRY(GCAP_CUDA(cudaMemcpyAsync(host, device, sizeof(host), cudaMemcpyDeviceToHost, stream)));
    TRY(GCAP_CUDA(cudaStreamSynchronize(stream)));
    printf("run %d: %s, memory holds %d\n", run, replayed ? "replayed" : "issued", host[0]);
  }
  TRY(gcap_graph_manager_destroy(graphs));
  TRY(GCAP_CUDA(cudaFree(device)));
  TRY(GCAP_CUDA(cudaStreamDestroy(stream)));
  return 0;
}
