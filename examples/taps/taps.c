// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A replay has another result than the work, and one wants to see the values on the way. At a label the work copies a
// buffer aside, a tap, and each run may ask for the copies: an eager run and a replay give them alike. Here the work
// fills memory with a level that the host decides on. The fill is in the graph with the level of the capture: the taps
// show that the difference is there at the first label already. The program prints:
//
//     level 3: an eager run, filled 3, output 3
//     level 4: a capture, filled 4, output 4
//     level 5: a replay, filled 4, output 4: the graph has the level of its capture
//
// docs/graphs.md says the rest, and how to have a level that changes.

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "gcap/graph.h"
#include "gcap/graph_taps.h"

#define STEP_ID 0
#define BYTES 256

typedef struct engine {
  gcap_graph_manager_t* graphs;
  cudaStream_t stream;
  unsigned char *filled, *output;
  int level;
} engine_t;

static gcap_status_t step(void* user, const gcap_run_resources_t* resources) {
  const engine_t* engine = user;
  const cudaStream_t stream = resources->cuda_stream;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(engine->filled, engine->level, BYTES, stream)));
  GCAP_RETURN_IF_ERROR(gcap_graph_tap_issue(stream, "filled", engine->filled, BYTES));
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(engine->output, engine->filled, BYTES, cudaMemcpyDeviceToDevice, stream)));
  return gcap_graph_tap_issue(stream, "output", engine->output, BYTES);
}

static const char* name_of(gcap_run_outcome_t outcome) {
  if (outcome == GCAP_RUN_EAGER) return "an eager run";
  return outcome == GCAP_RUN_CAPTURED ? "a capture" : "a replay";
}

static gcap_status_t show_step(engine_t* engine, int level) {
  engine->level = level;
  unsigned char filled = 0, output = 0;  // the first byte is enough here
  gcap_graph_tap_t taps[] = {{.label = "filled", .data = &filled, .bytes = 1},
                             {.label = "output", .data = &output, .bytes = 1}};
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = STEP_ID;
  run.stream = engine->stream;
  run.work = step;
  run.user = engine;
  run.result = &result;
  run.taps = taps;
  run.num_taps = sizeof(taps) / sizeof(taps[0]);
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_run(engine->graphs, &run));
  printf("level %d: %s, filled %d, output %d%s\n", level, name_of(result.outcome), filled, output,
         filled != level ? ": the graph has the level of its capture" : "");
  return NULL;
}

static gcap_status_t lesson(engine_t* engine) {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 1;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_create(&options, &engine->graphs));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamCreateWithFlags(&engine->stream, cudaStreamNonBlocking)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc((void**)&engine->filled, BYTES)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc((void**)&engine->output, BYTES)));
  for (int level = 3; level <= 5; ++level) GCAP_RETURN_IF_ERROR(show_step(engine, level));
  return NULL;
}

// Graphs end before the stream and the memory that they use.
static gcap_status_t end(engine_t* engine, gcap_status_t status) {
  status = gcap_status_join(status, gcap_graph_manager_destroy(engine->graphs));
  if (engine->stream != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaStreamDestroy(engine->stream)));
  status = gcap_status_join(status, GCAP_CUDA(cudaFree(engine->filled)));
  return gcap_status_join(status, GCAP_CUDA(cudaFree(engine->output)));
}

int main(void) {
  engine_t engine = {0};
  gcap_status_t status = end(&engine, lesson(&engine));
  if (status == NULL) return 0;
  fprintf(stderr, "%s\n", gcap_status_message(status));
  gcap_status_free(status);
  return 1;
}
