// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A captured graph repeats the arguments of its capture. A step that adds `weight` times an input to a sum is captured;
// then the weight changes, and then the input is another block. Each replay would be wrong, and nothing would say so.
// Here each replay is compared with its work: gcap keeps what the replay left, puts back what was there, issues the
// work eagerly, and compares. The run fails, names the buffer, and leaves what the work computed; and gcap looks for
// the first call behind which the two differ, and for what is wrong with its node. Last, input and weight are named to
// gcap, and each replay has its own. The program prints:
//
//     weight 0.5, input 1: an eager run, the sum is 0.5
//     weight 0.5, input 1: a capture, the sum is 1
//     weight 0.5, input 1: a replay, equal to its work in 2 buffers, the sum is 1.5
//     weight 2, input 1: REPLAY_DIFFERS, the sum is 3.5
//       buffer 1 'sum' differs first in element 0 (f32)
//       the replay has 2, the work 3.5
//       the first wrong step is 0, node 0 of the graph: a frozen value
//     weight 2, input 1: a capture, the sum is 5.5
//     weight 2, input 10: REPLAY_DIFFERS, the sum is 25.5
//       buffer 1 'sum' differs first in element 0 (f32)
//       the replay has 7.5, the work 25.5
//       the first wrong step is 0, node 0 of the graph: a stale pointer
//     input and weight are named:
//     weight 1, input 1: an eager run, the sum is 26.5
//     weight 0.5, input 10: a capture, the sum is 31.5
//     weight 4, input 1: a replay, equal to its work in 2 buffers, the sum is 35.5
//     weight 1, input 10: a replay, equal to its work in 2 buffers, the sum is 45.5
//
// docs/graphs.md says what a verification costs, and what it cannot put back.

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "examples/verify_replay/blend.h"
#include "gcap/graph.h"
#include "gcap/graph_verify.h"
#include "gcap/log.h"

#define BYTES (BLEND_WIDTH * sizeof(float))

enum { STEP_OF_FIXED, STEP_OF_NAMED };  // ids
enum { INPUT, SUM, NUM_BUFFERS };

typedef struct engine {
  gcap_graph_manager_t* graphs;
  cudaStream_t stream;
  float *ones, *tens;  // inputs
  float* sum;
  float* input;  // of this step
  float weight;
} engine_t;

// --- The work -------------------------------------------------------------------------------------------------------

static gcap_status_t blend(const float* input, float* sum, float weight, cudaStream_t stream) {
  void* args[] = {&input, &sum, &weight};
  return GCAP_CUDA(cudaLaunchKernel((const void*)blend_kernel, (dim3){1, 1, 1}, (dim3){BLEND_WIDTH, 1, 1}, args,
                                    /*sharedMem=*/0, stream));
}

// Reads input and weight from the engine: a graph keeps those of its capture.
static gcap_status_t step_of_fixed(void* user, const gcap_run_resources_t* resources) {
  const engine_t* engine = user;
  return blend(engine->input, engine->sum, engine->weight, resources->cuda_stream);
}

// Reads them from the run: each replay is given its own.
static gcap_status_t step_of_named(void* user, const gcap_run_resources_t* resources) {
  (void)user;
  void* const* at = resources->addresses;
  return blend(at[INPUT], at[SUM], *(const float*)resources->values[0], resources->cuda_stream);
}

// --- A run that is verified -----------------------------------------------------------------------------------------

static gcap_status_t run_verified(engine_t* engine, int id, gcap_run_result_t* result,
                                  gcap_graph_verify_report_t* report) {
  const gcap_graph_verify_buffer_t compared[NUM_BUFFERS] = {
      [INPUT] = {.name = "input", .address = engine->input, .bytes = BYTES, .type = GCAP_DTYPE_F32},
      [SUM] = {.name = "sum", .address = engine->sum, .bytes = BYTES, .type = GCAP_DTYPE_F32}};
  gcap_graph_verify_t verify;
  gcap_graph_verify_init(&verify);
  verify.buffers = compared;
  verify.num_buffers = NUM_BUFFERS;
  verify.each = 1;  // in production: each 1,000th, or `first` after each capture
  verify.report = report;
  verify.bisect = true;

  const gcap_graph_buffer_t items[NUM_BUFFERS] = {
      [INPUT] = {"input", engine->input, BYTES, 0}, [SUM] = {"sum", engine->sum, BYTES, 0}};
  const float least = 0, most = 100;
  const gcap_graph_value_t weight = {.name = "weight",
                                     .data = &engine->weight,
                                     .bytes = sizeof(float),
                                     .type = GCAP_GRAPH_VALUE_FLOAT,
                                     .low = &least,
                                     .high = &most};
  gcap_graph_buffers_t named;
  gcap_graph_buffers_init(&named);
  named.items = items;
  named.count = NUM_BUFFERS;
  named.values = &weight;
  named.num_values = 1;

  gcap_run_t run;
  gcap_run_init(&run);
  run.id = id;
  run.stream = engine->stream;
  run.work = id == STEP_OF_NAMED ? step_of_named : step_of_fixed;
  run.user = engine;
  run.buffers = id == STEP_OF_NAMED ? &named : NULL;
  run.synchronize = true;
  run.result = result;
  run.verify = &verify;
  return gcap_graph_manager_run(engine->graphs, &run);
}

// --- The lesson -----------------------------------------------------------------------------------------------------

static gcap_status_t fill(const engine_t* engine, float* memory, float value) {
  float values[BLEND_WIDTH];
  for (int i = 0; i < BLEND_WIDTH; ++i) values[i] = value;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(memory, values, BYTES, cudaMemcpyHostToDevice, engine->stream)));
  return GCAP_CUDA(cudaStreamSynchronize(engine->stream));
}

static gcap_status_t print_sum(const engine_t* engine) {
  float values[BLEND_WIDTH];
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(values, engine->sum, BYTES, cudaMemcpyDeviceToHost, engine->stream)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(engine->stream)));
  printf("the sum is %g\n", (double)values[BLEND_WIDTH - 1]);
  return NULL;
}

// What the message says of the buffer, behind the graph's name.
static void print_difference(const char* message) {
  const char* buffer = strstr(message, "buffer ");
  const char* values = strstr(message, "the replay has");
  const char* end = values != NULL ? strchr(values, ';') : NULL;
  if (buffer == NULL || end == NULL) return;
  printf("  %.*s\n  %.*s\n", (int)(values - buffer) - 2, buffer, (int)(end - values), values);
}

// What the message says in words, with the call, its file and line, and both arguments.
static void print_step(const gcap_graph_verify_report_t* report) {
  const char* fault = "nothing that is seen";
  if (report->fault == GCAP_GRAPH_FAULT_FROZEN_VALUE) fault = "a frozen value";
  if (report->fault == GCAP_GRAPH_FAULT_STALE_POINTER) fault = "a stale pointer";
  printf("  the first wrong step is %zu, node %zu of the graph: %s\n", report->step, report->node, fault);
}

static gcap_status_t show_step(engine_t* engine, int id, float weight, float* input) {
  engine->weight = weight;
  engine->input = input;
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_graph_verify_report_t report;
  gcap_graph_verify_report_init(&report);
  gcap_status_t status = run_verified(engine, id, &result, &report);
  printf("weight %g, input %d: ", (double)weight, input == engine->ones ? 1 : 10);
  if (gcap_status_code(status) == GCAP_REPLAY_DIFFERS) {  // the sum is right all the same
    printf("%s, ", gcap_code_name(gcap_status_code(status)));
    gcap_status_t printed = print_sum(engine);
    print_difference(gcap_status_message(status));
    print_step(&report);
    gcap_status_free(status);
    return printed;
  }
  if (status != NULL) return status;
  const char* outcome = result.outcome == GCAP_RUN_EAGER ? "an eager run" : "a capture";
  if (report.is_verified) {
    printf("a replay, equal to its work in %d buffers, ", (int)(report.compared_bytes / BYTES));
  } else {
    printf("%s, ", outcome);
  }
  return print_sum(engine);
}

static gcap_status_t show_steps(engine_t* engine) {
  for (int i = 0; i < 3; ++i) GCAP_RETURN_IF_ERROR(show_step(engine, STEP_OF_FIXED, 0.5f, engine->ones));
  for (int i = 0; i < 2; ++i) GCAP_RETURN_IF_ERROR(show_step(engine, STEP_OF_FIXED, 2.0f, engine->ones));
  GCAP_RETURN_IF_ERROR(show_step(engine, STEP_OF_FIXED, 2.0f, engine->tens));
  printf("input and weight are named:\n");
  GCAP_RETURN_IF_ERROR(show_step(engine, STEP_OF_NAMED, 1.0f, engine->ones));
  GCAP_RETURN_IF_ERROR(show_step(engine, STEP_OF_NAMED, 0.5f, engine->tens));
  GCAP_RETURN_IF_ERROR(show_step(engine, STEP_OF_NAMED, 4.0f, engine->ones));
  return show_step(engine, STEP_OF_NAMED, 1.0f, engine->tens);
}

// --- The engine -----------------------------------------------------------------------------------------------------

static void print_error(void* user, gcap_log_level_t level, const char* message) {
  (void)user, (void)level;
  fprintf(stderr, "%s\n", message);
}

static gcap_status_t create(engine_t* engine) {
  gcap_log_set_sink(print_error, NULL, GCAP_LOG_ERROR);  // without the warning of each wrong replay
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 1;
  options.backoff_runs = 0;  // capture again at once
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_create(&options, &engine->graphs));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamCreateWithFlags(&engine->stream, cudaStreamNonBlocking)));
  float** const blocks[] = {&engine->ones, &engine->tens, &engine->sum};
  const float values[] = {1, 10, 0};
  for (int i = 0; i < 3; ++i) {
    // A byte more, so that no two blocks touch.
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc((void**)blocks[i], BYTES + 1)));
    GCAP_RETURN_IF_ERROR(fill(engine, *blocks[i], values[i]));
  }
  return NULL;
}

// The graphs go first: they use the memory.
static gcap_status_t destroy(engine_t* engine) {
  gcap_status_t status = gcap_graph_manager_destroy(engine->graphs);
  float* const blocks[] = {engine->ones, engine->tens, engine->sum};
  for (int i = 0; i < 3; ++i) status = gcap_status_join(status, GCAP_CUDA(cudaFree(blocks[i])));
  if (engine->stream != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaStreamDestroy(engine->stream)));
  return status;
}

int main(void) {
  engine_t engine = {.weight = 0};
  gcap_status_t status = create(&engine);
  if (status == NULL) status = show_steps(&engine);
  status = gcap_status_join(status, destroy(&engine));
  if (status == NULL) return 0;
  fprintf(stderr, "verify_replay: %s\n", gcap_status_message(status));
  gcap_status_free(status);
  return 1;
}
