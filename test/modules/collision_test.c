// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A program whose own functions have the names that gcap's had once. It links, and gcap calls its own.

#include <stdio.h>

#include "gcap/graph.h"

int num_calls;

void* evict(void* cache, const void* key);
void* find_graph(void* graphs, int id);
int calls_add(int a, int b);
int clean_up(void);
int trace_begin(void);

void* evict(void* cache, const void* key) {
  ++num_calls;
  return key != NULL ? cache : NULL;
}
void* find_graph(void* graphs, int id) {
  ++num_calls;
  return id == 0 ? graphs : NULL;
}
int calls_add(int a, int b) { return ++num_calls + a + b; }
int clean_up(void) { return ++num_calls; }
int trace_begin(void) { return ++num_calls; }

static gcap_status_t nothing(void* user, const gcap_run_resources_t* resources) {
  (void)user, (void)resources;
  return NULL;
}

// Two graphs of which one may be kept, so that one is evicted.
static gcap_status_t run_two(cudaStream_t stream) {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;
  options.max_graphs = 1;
  gcap_graph_manager_t* graphs = NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_create(&options, &graphs));
  gcap_run_t run;
  gcap_run_init(&run);
  run.stream = stream;
  run.work = nothing;
  run.synchronize = true;
  gcap_status_t status = NULL;
  for (int id = 0; id < 2 && status == NULL; ++id) {
    run.id = id;
    status = gcap_graph_manager_run(graphs, &run);
  }
  return gcap_status_join(status, gcap_graph_manager_destroy(graphs));
}

int main(void) {
  cudaStream_t stream = NULL;
  gcap_status_t status = GCAP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (status == NULL) status = run_two(stream);
  status = gcap_status_join(status, GCAP_CUDA(cudaStreamDestroy(stream)));
  if (status != NULL) printf("%s\n", gcap_status_message(status));
  if (num_calls != 0) printf("gcap called a function of the program %d times\n", num_calls);
  const int failed = status != NULL || num_calls != 0;
  gcap_status_free(status);
  return failed;
}
