// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Four pieces of work that run well by themselves and break the capture that they are issued in. For each the program
// prints what gcap says of the failed capture: the call, the rule that it broke, the remedy. The results are there all
// the same, since gcap_graph_manager_run issues the work once more, eagerly.
//
// With a folder as its argument the program also writes the calls of each capture there, for gcap-doctor:
// `gcap-doctor explain FOLDER/mistake_1.events` has the call, its place, the rule and the repair.
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "gcap/capture.h"
#include "gcap/graph.h"

enum { BYTES = 64, FILL = 7 };

// What the pieces of work share.
typedef struct bench {
  unsigned char* memory;  // BYTES, to be filled with FILL
  cudaStream_t other;
  cudaEvent_t earlier;  // recorded before any capture
  cudaEvent_t fork;
  const char* folder;     // for events; may be NULL
  gcap_capture_t* scope;  // of the capture that is open
  int mistake;            // that is being made
} bench_t;

static gcap_status_t waits_for_its_stream(void* user, const gcap_run_resources_t* resources) {
  cudaStream_t stream = resources->cuda_stream;
  bench_t* bench = user;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(bench->memory, FILL, BYTES, stream)));
  return GCAP_CUDA(cudaStreamSynchronize(stream));
}

static gcap_status_t allocates(void* user, const gcap_run_resources_t* resources) {
  cudaStream_t stream = resources->cuda_stream;
  bench_t* bench = user;
  void* temporary = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc(&temporary, BYTES)));
  gcap_status_t status = GCAP_CUDA(cudaMemsetAsync(temporary, FILL, BYTES, stream));
  if (status == NULL) {
    status = GCAP_CUDA(cudaMemcpyAsync(bench->memory, temporary, BYTES, cudaMemcpyDeviceToDevice, stream));
  }
  return gcap_status_join(status, GCAP_CUDA(cudaFree(temporary)));
}

static gcap_status_t waits_for_an_earlier_event(void* user, const gcap_run_resources_t* resources) {
  cudaStream_t stream = resources->cuda_stream;
  bench_t* bench = user;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamWaitEvent(stream, bench->earlier, 0)));
  return GCAP_CUDA(cudaMemsetAsync(bench->memory, FILL, BYTES, stream));
}

static gcap_status_t forks_and_does_not_join(void* user, const gcap_run_resources_t* resources) {
  cudaStream_t stream = resources->cuda_stream;
  bench_t* bench = user;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(bench->fork, stream)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamWaitEvent(bench->other, bench->fork, 0)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(bench->memory, FILL, BYTES, bench->other)));
  GCAP_CAPTURE_NOTE("a fill on the other stream", bench->other);  // so that the message can name the stream
  return NULL;
}

static const struct {
  const char* title;
  gcap_work_t work;
} mistakes[] = {
    {"It waits for its own stream.", waits_for_its_stream},
    {"It allocates.", allocates},
    {"It waits for an event of before the capture.", waits_for_an_earlier_event},
    {"It forks to another stream and does not come back.", forks_and_does_not_join},
};
enum { NUM_MISTAKES = sizeof(mistakes) / sizeof(*mistakes) };

static gcap_status_t check_memory(const bench_t* bench) {
  unsigned char host[BYTES] = {0};
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaDeviceSynchronize()));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpy(host, bench->memory, BYTES, cudaMemcpyDeviceToHost)));
  for (int i = 0; i < BYTES; ++i) {
    if (host[i] != FILL) return GCAP_STATUS(GCAP_INTERNAL, "byte %d is %d, expected %d", i, host[i], FILL);
  }
  return NULL;
}

// When a capture ends, its scope still has the calls.
static void write_events(void* user, bool committed) {
  (void)committed;
  const bench_t* bench = user;
  char path[4096];
  snprintf(path, sizeof(path), "%s/mistake_%d.events", bench->folder, bench->mistake + 1);
  gcap_status_t status = gcap_capture_write_events(bench->scope, path);
  if (status != NULL) fprintf(stderr, "%s\n", gcap_status_message(status));
  gcap_status_free(status);
}

static gcap_status_t issue(void* user, const gcap_run_resources_t* resources) {
  bench_t* bench = user;
  gcap_capture_t* scope = gcap_capture_current();  // NULL in an eager run
  if (scope != NULL && bench->folder != NULL) {
    bench->scope = scope;
    GCAP_RETURN_IF_ERROR(gcap_capture_on_close(scope, write_events, bench));
  }
  return mistakes[bench->mistake].work(bench, resources);
}

// Makes one mistake, as graph id `id`, and tells what came of it.
static gcap_status_t make_mistake(gcap_graph_manager_t* graphs, int id, cudaStream_t stream, bench_t* bench) {
  bench->mistake = id;
  printf("%d. %s\n", id + 1, mistakes[id].title);
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemset(bench->memory, 0, BYTES)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaDeviceSynchronize()));  // a fill does not hold a non-blocking stream
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = id;
  run.stream = stream;
  run.work = issue;
  run.user = bench;
  run.synchronize = true;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_run(graphs, &run));
  gcap_status_t failure = gcap_graph_manager_explain(graphs, id, GCAP_GRAPH_WHY_CAPTURE_FAILED);
  if (failure == NULL) return GCAP_STATUS(GCAP_INTERNAL, "the capture did not fail");
  printf("   %s\n", gcap_status_message(failure));
  gcap_status_free(failure);
  GCAP_RETURN_IF_ERROR(check_memory(bench));
  printf("   The results are right: the work was issued once more, eagerly.\n\n");
  return NULL;
}

static gcap_status_t make_mistakes(gcap_graph_manager_t* graphs, cudaStream_t stream, bench_t* bench) {
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc((void**)&bench->memory, BYTES)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamCreateWithFlags(&bench->other, cudaStreamNonBlocking)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventCreateWithFlags(&bench->earlier, cudaEventDisableTiming)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventCreateWithFlags(&bench->fork, cudaEventDisableTiming)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(bench->earlier, bench->other)));
  for (int id = 0; id < NUM_MISTAKES; ++id) GCAP_RETURN_IF_ERROR(make_mistake(graphs, id, stream, bench));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventDestroy(bench->fork)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventDestroy(bench->earlier)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamDestroy(bench->other)));
  return GCAP_CUDA(cudaFree(bench->memory));
}

static gcap_status_t run(const char* folder) {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;  // the first run of an id is captured already
  gcap_graph_manager_t* graphs = NULL;
  cudaStream_t stream = NULL;
  bench_t bench = {.folder = folder};
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)));
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_create(&options, &graphs));
  gcap_status_t status = make_mistakes(graphs, stream, &bench);
  status = gcap_status_join(status, gcap_graph_manager_destroy(graphs));
  return gcap_status_join(status, GCAP_CUDA(cudaStreamDestroy(stream)));
}

int main(int argc, char** argv) {
  gcap_status_t status = run(argc > 1 ? argv[1] : NULL);
  if (status != NULL) fprintf(stderr, "%s\n", gcap_status_message(status));
  const int exit_code = status == NULL ? 0 : 1;
  gcap_status_free(status);
  return exit_code;
}
