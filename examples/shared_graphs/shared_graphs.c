// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Four graphs of one thread, each of which needs scratch: first each keeps its own, then they share
// (arena.share_graph_memory). They replay on one stream, one after the other, so what one leaves in the scratch the
// next may overwrite; together they need what the largest needs. Their outputs lie elsewhere. It prints, without what
// the driver takes for a graph:
//
//     apart:
//       graph 0 gives 1 and keeps 1.0 MiB
//       graph 1 gives 2 and keeps 2.0 MiB
//       graph 2 gives 3 and keeps 3.0 MiB
//       graph 3 gives 4 and keeps 4.0 MiB
//       together 10.0 MiB
//     shared:
//       graph 0 gives 1 and keeps 1.0 MiB
//       graph 1 gives 2 and keeps 1.0 MiB
//       graph 2 gives 3 and keeps 1.0 MiB
//       graph 3 gives 4 and keeps 1.0 MiB
//       together 4.0 MiB

#include <stdio.h>

#include "gcap/runtime.h"

#define NUM_GRAPHS 4
#define MIB ((size_t)1 << 20)

#define TRY(call)                                            \
  do {                                                       \
    gcap_status_t status_ = (call);                          \
    if (status_ != NULL) {                                   \
      fprintf(stderr, "%s\n", gcap_status_message(status_)); \
      return 1;                                              \
    }                                                        \
  } while (0)

typedef struct job {
  int id;
  unsigned char* output;
} job_t;

// The work of a graph: fills id + 1 MiB of scratch, and gives their first byte.
static gcap_status_t issue(void* user, const gcap_run_resources_t* run) {
  const job_t* job = user;
  const size_t bytes = (size_t)(job->id + 1) * MIB;
  void* scratch = NULL;
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, bytes, run->stream, &scratch));
  cudaStream_t stream = gcap_stream_handle(run->stream);
  gcap_status_t status = GCAP_CUDA(cudaMemsetAsync(scratch, job->id + 1, bytes, stream));
  if (status == NULL) status = GCAP_CUDA(cudaMemcpyAsync(job->output, scratch, 1, cudaMemcpyDeviceToDevice, stream));
  return gcap_status_join(status, gcap_scratch_free(run->scratch, scratch));
}

// The largest first: what the others need is then there already.
static void list_runs(unsigned char* outputs, job_t* jobs, gcap_run_t* runs) {
  for (int i = 0; i < NUM_GRAPHS; ++i) {
    const int id = NUM_GRAPHS - 1 - i;
    jobs[i] = (job_t){.id = id, .output = &outputs[id]};
    gcap_run_init(&runs[i]);
    runs[i].id = id;
    runs[i].work = issue;
    runs[i].user = &jobs[i];
    runs[i].synchronize = true;
  }
}

static gcap_status_t show(gcap_runtime_t* runtime, const char* name, unsigned char* outputs) {
  job_t jobs[NUM_GRAPHS];
  gcap_run_t runs[NUM_GRAPHS];
  list_runs(outputs, jobs, runs);
  GCAP_RETURN_IF_ERROR(gcap_runtime_warm_up(runtime, runs, NUM_GRAPHS, /*on_run=*/NULL, /*user=*/NULL));
  for (int i = 0; i < NUM_GRAPHS; ++i) GCAP_RETURN_IF_ERROR(gcap_runtime_run(runtime, &runs[i]));  // replays
  unsigned char host[NUM_GRAPHS];
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpy(host, outputs, sizeof(host), cudaMemcpyDeviceToHost)));
  gcap_graph_manager_t* graphs;
  GCAP_RETURN_IF_ERROR(gcap_runtime_graphs(runtime, &graphs));
  double sum_mib = 0;
  printf("%s:\n", name);
  for (int id = 0; id < NUM_GRAPHS; ++id) {
    gcap_graph_info_t info;
    gcap_graph_manager_get_info(graphs, id, &info);
    const double scratch_mib = (double)(info.bytes - info.exec_bytes) / MIB;
    printf("  graph %d gives %d and keeps %.1f MiB\n", id, host[id], scratch_mib);
    sum_mib += scratch_mib;
  }
  printf("  together %.1f MiB\n", sum_mib);
  return NULL;
}

// `share` is the option's value.
static gcap_status_t show_with(const char* share, const char* name, unsigned char* outputs) {
  const char* keys[] = {"enable_cuda_graph", "arena.share_graph_memory"};
  const char* values[] = {"1", share};
  gcap_options_t options;
  gcap_options_init(&options);
  GCAP_RETURN_IF_ERROR(gcap_options_parse(&options, keys, values, 2));
  gcap_runtime_t* runtime = NULL;
  GCAP_RETURN_IF_ERROR(gcap_runtime_create(&options, &runtime));
  gcap_status_t status = show(runtime, name, outputs);
  return gcap_status_join(status, gcap_runtime_destroy(runtime));
}

int main(void) {
  unsigned char* outputs = NULL;
  TRY(GCAP_CUDA(cudaMalloc((void**)&outputs, NUM_GRAPHS)));
  TRY(show_with("0", "apart", outputs));
  TRY(show_with("1", "shared", outputs));
  TRY(GCAP_CUDA(cudaFree(outputs)));
  return 0;
}
