// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A step of which most can be captured, and one call in the middle cannot: how attention is launched is decided by the
// host, by a history that grows. A graph for each length would be captured once and replayed once. So attention is a
// hole: the step hands it over as a function, its graph is two segments, and each replay is launch, function, launch.
// The function launches what the length of now asks for, or nothing, and may fail.
//
// At the end of the step somebody else's function looks at the output. Whether that can be captured is unknown, so the
// step is a hole only where a capture refuses it: the capture of step 2 does, since the function waits, and from the
// next capture on it is a hole, too. The log says which call was refused, and where. The program prints:
//
//     step 1, 3 rows: an eager run, attention in 1 launch, right
//     step 2, 7 rows: an eager run, since a capture refused a step, attention in 2 launches, right
//     step 3, 16 rows: a capture, attention in 4 launches, right
//     step 4, 0 rows: a replay, attention in 0 launches, right
//     step 5, 99 rows: graph id 0, hole 'attention': the history has 16 rows, and not 99
//     step 6, 5 rows: a replay, attention in 2 launches, right
//     one graph of 3 segments: captured 1 time, launched 4 times; holes that a capture made: 1
//
// docs/graphs.md says when a hole is the right choice.

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>

#include "examples/holes/attend.h"
#include "gcap/graph.h"
#include "gcap/graph_holes.h"

#define STEP_ID 0
#define MAX_ROWS 16
#define PAGE_ROWS 4  // that one launch of attention takes
#define ROW_BYTES (ATTEND_WIDTH * sizeof(float))

typedef struct engine {
  gcap_graph_manager_t* graphs;
  cudaStream_t stream;
  float *token, *query, *sum, *output;
  float* history;    // [MAX_ROWS][ATTEND_WIDTH]: row r is r + 1
  uint32_t rows;     // of this step
  int num_launches;  // of attention, in this step
} engine_t;

// --- The work -------------------------------------------------------------------------------------------------------

static gcap_status_t launch(const void* kernel, void** args, cudaStream_t stream) {
  return GCAP_CUDA(
      cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){ATTEND_WIDTH, 1, 1}, args, /*sharedMem=*/0, stream));
}

static gcap_status_t project(const float* x, float* y, float factor, cudaStream_t stream) {
  void* args[] = {&x, &y, &factor};
  return launch((const void*)project_kernel, args, stream);
}

// The hole: a launch for each page of the history. What it needs lives in the engine, and so as long as the graph.
static gcap_status_t attend(void* user, const gcap_run_resources_t* resources) {
  engine_t* engine = user;
  engine->num_launches = 0;
  if (engine->rows > MAX_ROWS) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the history has %d rows, and not %u", MAX_ROWS, engine->rows);
  }
  for (uint32_t row = 0; row < engine->rows; row += PAGE_ROWS) {
    const float* page = engine->history + row * ATTEND_WIDTH;
    uint32_t rows = engine->rows - row < PAGE_ROWS ? engine->rows - row : PAGE_ROWS;
    void* args[] = {&engine->query, &page, &engine->sum, &rows};
    GCAP_RETURN_IF_ERROR(launch((const void*)attend_kernel, args, resources->cuda_stream));
    ++engine->num_launches;
  }
  return NULL;
}

// Somebody else's: refuses an output that is no number. It waits, which no capture allows.
static gcap_status_t look_at_output(void* user, const gcap_run_resources_t* resources) {
  const engine_t* engine = user;
  const cudaStream_t stream = resources->cuda_stream;
  float value = 0;
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(&value, engine->output, sizeof(value), cudaMemcpyDeviceToHost, stream)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(stream)));
  return value == value ? NULL : GCAP_STATUS(GCAP_INTERNAL, "the output is no number");
}

// query = 2 * token; sum = attention; output = 3 * sum. What the hole reads and writes crosses it: fixed memory does.
static gcap_status_t step(void* user, const gcap_run_resources_t* resources) {
  engine_t* engine = user;
  const cudaStream_t stream = resources->cuda_stream;
  GCAP_RETURN_IF_ERROR(project(engine->token, engine->query, 2.0f, stream));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(engine->sum, 0, ROW_BYTES, stream)));
  gcap_graph_hole_t hole;
  gcap_graph_hole_init(&hole);
  hole.name = "attention";
  hole.work = attend;
  hole.user = engine;
  GCAP_RETURN_IF_ERROR(gcap_graph_hole_issue(resources, &hole));
  GCAP_RETURN_IF_ERROR(project(engine->sum, engine->output, 3.0f, stream));
  hole.name = "look at output";
  hole.work = look_at_output;
  hole.break_where_refused = true;
  return gcap_graph_hole_issue(resources, &hole);
}

// --- The lesson -----------------------------------------------------------------------------------------------------

static gcap_status_t fill(const engine_t* engine, float* memory, float value) {
  float values[ATTEND_WIDTH];
  for (int i = 0; i < ATTEND_WIDTH; ++i) values[i] = value;
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(memory, values, sizeof(values), cudaMemcpyHostToDevice, engine->stream)));
  return GCAP_CUDA(cudaStreamSynchronize(engine->stream));
}

// Whether each element of the output is 3 * (2 * token) * (1 + ... + rows).
static gcap_status_t check(const engine_t* engine, float token, bool* out_right) {
  float values[ATTEND_WIDTH];
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(values, engine->output, ROW_BYTES, cudaMemcpyDeviceToHost, engine->stream)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(engine->stream)));
  *out_right = true;
  const float expected = 3 * (2 * token) * (float)(engine->rows * (engine->rows + 1) / 2);
  for (int i = 0; i < ATTEND_WIDTH; ++i) *out_right &= values[i] == expected;
  return NULL;
}

static const char* name_of(const gcap_run_result_t* result) {
  if (result->why_eager == GCAP_EAGER_STEP_REFUSED) return "an eager run, since a capture refused a step";
  if (result->outcome == GCAP_RUN_EAGER) return "an eager run";
  return result->outcome == GCAP_RUN_CAPTURED ? "a capture" : "a replay";
}

static gcap_status_t show_step(engine_t* engine, int number, uint32_t rows) {
  const float token = (float)number;
  GCAP_RETURN_IF_ERROR(fill(engine, engine->token, token));
  engine->rows = rows;
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = STEP_ID;
  run.stream = engine->stream;
  run.work = step;
  run.user = engine;
  run.synchronize = true;
  run.result = &result;
  gcap_status_t status = gcap_graph_manager_run(engine->graphs, &run);
  printf("step %d, %u rows: ", number, rows);
  if (gcap_status_code(status) == GCAP_INVALID_ARGUMENT) {  // of the hole: the run ends, and the graph stays
    printf("%s\n", gcap_status_message(status));
    gcap_status_free(status);
    return NULL;
  }
  if (status != NULL) return status;
  bool right = false;
  GCAP_RETURN_IF_ERROR(check(engine, token, &right));
  printf("%s, attention in %d launch%s, %s\n", name_of(&result), engine->num_launches,
         engine->num_launches == 1 ? "" : "es", right ? "right" : "WRONG");
  return NULL;
}

static gcap_status_t show_steps(engine_t* engine) {
  static const uint32_t rows[] = {3, 7, 16, 0, 99, 5};
  for (int i = 0; i < (int)(sizeof(rows) / sizeof(rows[0])); ++i) {
    GCAP_RETURN_IF_ERROR(show_step(engine, i + 1, rows[i]));
  }
  gcap_graph_info_t info;
  gcap_graph_manager_get_info(engine->graphs, STEP_ID, &info);
  printf("one graph of %d segments: captured %d time, launched %d times; holes that a capture made: %d\n",
         (int)info.holes + 1, (int)info.captures, (int)info.replays, (int)info.refused_steps);
  return NULL;
}

// --- The engine -----------------------------------------------------------------------------------------------------

static gcap_status_t create(engine_t* engine) {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 1;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_create(&options, &engine->graphs));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamCreateWithFlags(&engine->stream, cudaStreamNonBlocking)));
  float** const rows[] = {&engine->token, &engine->query, &engine->sum, &engine->output};
  for (int i = 0; i < 4; ++i) GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc((void**)rows[i], ROW_BYTES)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc((void**)&engine->history, MAX_ROWS * ROW_BYTES)));
  for (int row = 0; row < MAX_ROWS; ++row) {
    GCAP_RETURN_IF_ERROR(fill(engine, engine->history + row * ATTEND_WIDTH, (float)(row + 1)));
  }
  return NULL;
}

// The graph goes first: it uses the memory, and its hole the engine.
static gcap_status_t destroy(engine_t* engine) {
  gcap_status_t status = gcap_graph_manager_destroy(engine->graphs);
  float* const memory[] = {engine->token, engine->query, engine->sum, engine->output, engine->history};
  for (int i = 0; i < 5; ++i) status = gcap_status_join(status, GCAP_CUDA(cudaFree(memory[i])));
  if (engine->stream != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaStreamDestroy(engine->stream)));
  return status;
}

int main(void) {
  engine_t engine = {.rows = 0};
  gcap_status_t status = create(&engine);
  if (status == NULL) status = show_steps(&engine);
  status = gcap_status_join(status, destroy(&engine));
  if (status == NULL) return 0;
  fprintf(stderr, "holes: %s\n", gcap_status_message(status));
  gcap_status_free(status);
  return 1;
}
