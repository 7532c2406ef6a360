// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// An engine with a stream and an arena of its own: the graph manager beside scratch memory, and one line between them.
// The work allocates its scratch as in any run. In a captured run that memory becomes the graph's, since each replay
// writes there again, and it goes back to the arena with the graph. It prints, of the memory that is not the driver's:
//
//     run 1: graph 0 is WARMING and keeps 0 KiB, output 1
//     run 2: graph 1 is WARMING and keeps 0 KiB, output 2
//     run 3: graph 0 is WARMING and keeps 0 KiB, output 1
//     run 4: graph 1 is WARMING and keeps 0 KiB, output 2
//     run 5: graph 0 is CAPTURED and keeps 1024 KiB, output 1
//     run 6: graph 1 is CAPTURED and keeps 1024 KiB, output 2
//     run 7: graph 0 is CAPTURED and keeps 1024 KiB, output 1
//     run 8: graph 1 is CAPTURED and keeps 1024 KiB, output 2
//
// An engine without a stream of its own is served by gcap/runtime.h, where even this much is done.

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "gcap/allocator.h"
#include "gcap/graph.h"
#include "gcap/scratch.h"
#include "gcap/stream.h"

#define SCRATCH_BYTES ((size_t)1 << 20)

#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

typedef struct engine {
  gcap_scratch_t* scratch;
  gcap_stream_t* stream;
  int id;  // of the model that runs
  unsigned char* output;
} engine_t;

// The work of a run: a model's intermediate is filled, and its first byte is the output.
static gcap_status_t work(void* user, const gcap_run_resources_t* resources) {
  engine_t* engine = user;
  cudaStream_t stream = resources->cuda_stream;
  void* intermediate = NULL;
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(engine->scratch, SCRATCH_BYTES, engine->stream, &intermediate));
  gcap_status_t status = GCAP_CUDA(cudaMemsetAsync(intermediate, engine->id + 1, SCRATCH_BYTES, stream));
  if (status == NULL) {
    status = GCAP_CUDA(cudaMemcpyAsync(engine->output, intermediate, 1, cudaMemcpyDeviceToDevice, stream));
  }
  return gcap_status_join(status, gcap_scratch_free(engine->scratch, intermediate));
}

int main(void) {
  engine_t engine = {0};
  gcap_allocator_t* device_memory;
  gcap_graph_manager_t* graphs;
  TRY(gcap_stream_create(/*device_id=*/0, &engine.stream));
  TRY(gcap_device_allocator_create(/*device_id=*/0, &device_memory));
  TRY(gcap_scratch_create(device_memory, NULL, &engine.scratch));
  TRY(gcap_graph_manager_create(NULL, &graphs));
  TRY(GCAP_CUDA(cudaMalloc((void**)&engine.output, 1)));

  gcap_run_t run;
  gcap_run_init(&run);
  run.stream = gcap_stream_handle(engine.stream);
  run.work = work;
  run.user = &engine;
  for (int number = 1; number <= 8; ++number) {
    run.id = engine.id = (number - 1) % 2;
    gcap_graph_info_t info;
    gcap_graph_manager_get_info(graphs, engine.id, &info);
    // A capture gets no memory from the driver. What the first graph keeps, the second one has to find beside it;
    // without this line the second one's first capture would fail, and its next one succeed.
    if (info.captures_next) TRY(gcap_scratch_reservation_prepare(engine.scratch, engine.stream));
    TRY(gcap_graph_manager_run(graphs, &run));
    unsigned char output = 0;
    TRY(GCAP_CUDA(cudaMemcpyAsync(&output, engine.output, 1, cudaMemcpyDeviceToHost, run.stream)));
    TRY(gcap_stream_synchronize(engine.stream));
    gcap_graph_manager_get_info(graphs, engine.id, &info);
    printf("run %d: graph %d is %s and keeps %zu KiB, output %d\n", number, engine.id,
           gcap_graph_state_name(info.state), (info.bytes - info.exec_bytes) >> 10, output);
  }

  TRY(gcap_graph_manager_destroy(graphs));
  TRY(gcap_scratch_destroy(engine.scratch));
  gcap_allocator_destroy(device_memory);
  TRY(gcap_stream_destroy(engine.stream));
  TRY(GCAP_CUDA(cudaFree(engine.output)));
  return 0;
}
