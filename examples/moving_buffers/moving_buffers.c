// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A captured graph works on the addresses of its capture. Here the buffers of a loop change at each step: another page
// of a cache, and one of two outputs in turn. The graph is captured once, together with these buffers, and each replay
// is given others: no further capture, and no copy into fixed buffers. Then what does not move: a graph whose kernel
// was chosen by an alignment that nobody promised, which is named, and a pointer that lies in memory, which nobody
// sees: the program says that it writes that pointer itself. Last, how two captures of the same work differ. It prints:
//
//     step 1 on page 0 and output 0: an eager run, right
//     step 2 on page 1 and output 1: two rehearsals and a capture, right
//     step 3 on page 2 and output 0: a replay, right
//     step 4 on page 3 and output 1: a replay, right
//     step 5 on page 4 and output 0: a replay, right
//     step 6 on page 5 and output 1: a replay, right
//     captures: 1, launches: 5; 6 of 6 pages hold the values of their own step
//     an alignment of 4, and a kernel chosen for 16: node 0 of 2, kernel scale4_kernel: function differs
//       on page 1: an eager run, right
//     the check of a graph with a table: graph id 2, moved from its buffers, leaves another result in buffer 1 'output'
//       it reads memory that a bind does not reach, or does not do the same twice
//     the address of page 2 in memory, and page 3 bound: a replay, WRONG
//       the address of page 3 is written there: a replay, right
//     the work on 2048 elements is another graph than on 1024:
//       node 0 of 2, kernel scale4_kernel: grid 1x1x1 -> 2x1x1
//       node 0 of 2, kernel scale4_kernel: argument 2 0x400 -> 0x800
//       node 1 of 2, kernel scale4_kernel: grid 1x1x1 -> 2x1x1
//       node 1 of 2, kernel scale4_kernel: argument 2 0x400 -> 0x800
//
// docs/graphs.md says the rest.

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "examples/moving_buffers/scale.h"
#include "gcap/capture.h"
#include "gcap/graph.h"
#include "gcap/graph_buffers.h"
#include "gcap/log.h"

#define NUM_PAGES 6
#define NUM_OUTPUTS 2
#define COUNT 1024        // elements of a step
#define OTHER_COUNT 2048  // of another model's
#define BYTES (COUNT * sizeof(float))
#define APART 1  // a byte more, so that no page touches an output: a graph that was captured apart stays apart

// In a debug build the first replay after a capture, and after each move, is compared with its work (graph_verify.h).
#ifdef NDEBUG
#define NUM_VERIFIED_REPLAYS 0
#else
#define NUM_VERIFIED_REPLAYS 1
#endif

enum { GRAPH_THAT_MOVES, GRAPH_THAT_STAYS, GRAPH_WITH_A_TABLE };  // ids
enum { PAGE, OUTPUT, NUM_BUFFERS };                               // of each run

typedef struct engine {
  gcap_graph_manager_t* graphs;
  cudaStream_t stream;
  float* token;  // the input of each step, which stays where it is
  float* pages[NUM_PAGES];
  float* outputs[NUM_OUTPUTS];
  const float** table;         // in device memory: the address of one page
  uint32_t count;              // elements of a launch
  gcap_run_outcome_t outcome;  // of the last run
} engine_t;

// --- The work -------------------------------------------------------------------------------------------------------

static gcap_status_t launch(const void* kernel, const void* x, float* y, const engine_t* engine, float factor,
                            cudaStream_t stream) {
  uint32_t count = engine->count;
  const uint32_t elements = kernel == (const void*)scale4_kernel ? count / 4 : count;
  void* args[] = {&x, &y, &count, &factor};
  const dim3 grid = {(elements + SCALE_BLOCK_THREADS - 1) / SCALE_BLOCK_THREADS, 1, 1};
  const dim3 block = {SCALE_BLOCK_THREADS, 1, 1};
  return GCAP_CUDA(cudaLaunchKernel(kernel, grid, block, args, /*sharedMem=*/0, stream));
}

// As libraries do: the fast kernel where the addresses allow it.
static gcap_status_t scale(const float* x, float* y, const engine_t* engine, float factor, cudaStream_t stream) {
  const bool is_wide = ((uintptr_t)x | (uintptr_t)y) % 16 == 0;
  const void* kernel = is_wide ? (const void*)scale4_kernel : (const void*)scale_kernel;
  return launch(kernel, x, y, engine, factor, stream);
}

// The work of a step: page = 2 * token, output = 3 * page. It finds the buffers in `addresses`: in the rehearsals
// before the capture they are addresses with no memory behind.
static gcap_status_t step(void* user, const gcap_run_resources_t* resources) {
  const engine_t* engine = user;
  cudaStream_t stream = resources->cuda_stream;
  void* const* at = resources->addresses;
  GCAP_RETURN_IF_ERROR(scale(engine->token, at[PAGE], engine, 2.0f, stream));
  return scale(at[PAGE], at[OUTPUT], engine, 3.0f, stream);
}

// The same from a page whose address the kernel reads from memory. No argument of the kernel says so: the page that is
// bound is not the one that is read. gcap would keep the graph where it is, and run the step eagerly on other pages,
// but for `may_be_unused`: the page may have no pointer, since the program writes the table.
static gcap_status_t step_with_table(void* user, const gcap_run_resources_t* resources) {
  const engine_t* engine = user;
  cudaStream_t stream = resources->cuda_stream;
  void* const* at = resources->addresses;
  return launch((const void*)scale_listed_kernel, engine->table, at[OUTPUT], engine, 3.0f, stream);
}

// --- Runs -----------------------------------------------------------------------------------------------------------

static gcap_status_t fill(const engine_t* engine, float* memory, float first) {
  float values[COUNT];
  for (int i = 0; i < COUNT; ++i) values[i] = first + (float)i;
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(memory, values, sizeof(values), cudaMemcpyHostToDevice, engine->stream)));
  return GCAP_CUDA(cudaStreamSynchronize(engine->stream));
}

// Whether the memory holds factor * (first + i).
static gcap_status_t check(const engine_t* engine, const float* memory, float factor, float first, bool* out_right) {
  float values[COUNT];
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(values, memory, BYTES, cudaMemcpyDeviceToHost, engine->stream)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(engine->stream)));
  *out_right = true;
  for (int i = 0; i < COUNT; ++i) *out_right &= values[i] == factor * (first + (float)i);
  return NULL;
}

// A run on a page and an output. `alignment` 0: that of the addresses, up to 256.
static gcap_status_t run_step(engine_t* engine, int id, int page, int output, size_t alignment) {
  const gcap_graph_buffer_t items[NUM_BUFFERS] = {
      [PAGE] = {"page", engine->pages[page], BYTES, alignment},
      [OUTPUT] = {"output", engine->outputs[output], BYTES, alignment},
  };
  const bool may_be_unused[NUM_BUFFERS] = {[PAGE] = id == GRAPH_WITH_A_TABLE};
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.items = items;
  buffers.count = NUM_BUFFERS;
  buffers.may_be_unused = may_be_unused;
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_graph_verify_t verify;
  gcap_graph_verify_init(&verify);
  verify.first = NUM_VERIFIED_REPLAYS;
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = id;
  run.stream = engine->stream;
  run.work = id == GRAPH_WITH_A_TABLE ? step_with_table : step;
  run.user = engine;
  run.buffers = &buffers;
  run.synchronize = true;
  run.result = &result;
  run.verify = &verify;
  gcap_status_t status = gcap_graph_manager_run(engine->graphs, &run);
  engine->outcome = result.outcome;
  return status;
}

// Prints what the last run was, and whether its output is 6 * (first + i).
static gcap_status_t judge(const engine_t* engine, int output, float first) {
  const char* what = engine->outcome == GCAP_RUN_REPLAYED ? "a replay" : "an eager run";
  if (engine->outcome == GCAP_RUN_CAPTURED) what = "two rehearsals and a capture";
  bool right = false;
  GCAP_RETURN_IF_ERROR(check(engine, engine->outputs[output], 6.0f, first, &right));
  printf("%s, %s\n", what, right ? "right" : "WRONG");
  return NULL;
}

// --- The lesson -----------------------------------------------------------------------------------------------------

// One step warms up, the second is rehearsed and captured, all others replay. A replay that wrote to a page of an
// earlier step would leave another token's values there.
static gcap_status_t show_loop(engine_t* engine) {
  for (int i = 0; i < NUM_PAGES; ++i) {
    const int output = i % NUM_OUTPUTS;
    GCAP_RETURN_IF_ERROR(fill(engine, engine->token, (float)i));
    GCAP_RETURN_IF_ERROR(run_step(engine, GRAPH_THAT_MOVES, i, output, /*alignment=*/0));
    printf("step %d on page %d and output %d: ", i + 1, i, output);
    GCAP_RETURN_IF_ERROR(judge(engine, output, (float)i));
  }
  int num_right = 0;
  for (int i = 0; i < NUM_PAGES; ++i) {
    bool right = false;
    GCAP_RETURN_IF_ERROR(check(engine, engine->pages[i], 2.0f, (float)i, &right));
    num_right += right;
  }
  gcap_graph_info_t info;
  gcap_graph_manager_get_info(engine->graphs, GRAPH_THAT_MOVES, &info);
  printf("captures: %d, launches: %d; %d of %d pages hold the values of their own step\n", (int)info.captures,
         (int)info.replays, num_right, NUM_PAGES);
  return NULL;
}

// With an alignment of 4 the address of any float may be bound. But the graph has the kernel for multiples of 16. gcap
// finds that, since some stand-ins are multiples of 4 alone: there the work is another kernel. Such a graph replays
// where it was captured, and its runs elsewhere are eager. The remedy is to promise what the kernels need.
static gcap_status_t show_alignment(engine_t* engine) {
  for (int i = 0; i < 2; ++i) GCAP_RETURN_IF_ERROR(run_step(engine, GRAPH_THAT_STAYS, 0, 0, /*alignment=*/4));
  gcap_status_t reason = gcap_graph_manager_explain(engine->graphs, GRAPH_THAT_STAYS, GCAP_GRAPH_WHY_NOT_MOVABLE);
  const char* text = reason != NULL ? gcap_status_message(reason) : "it moves";
  const char* addresses = strstr(text, " is 0x");  // of both functions, which no two programs have alike
  printf("an alignment of 4, and a kernel chosen for 16: %.*s differs\n",
         (int)(addresses != NULL ? (size_t)(addresses - text) : strlen(text)), text);
  gcap_status_free(reason);
  GCAP_RETURN_IF_ERROR(fill(engine, engine->token, 10));
  GCAP_RETURN_IF_ERROR(run_step(engine, GRAPH_THAT_STAYS, 1, 0, /*alignment=*/4));
  printf("  on page 1: ");
  return judge(engine, 0, 10);
}

static gcap_status_t write_table(const engine_t* engine, const float* page) {
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(engine->table, &page, sizeof(page), cudaMemcpyHostToDevice, engine->stream)));
  return GCAP_CUDA(cudaStreamSynchronize(engine->stream));
}

// For debugging: a check launches the graph on its buffers and on copies of them, and compares. It finds that the graph
// reads more than gcap can move.
static gcap_status_t check_table(engine_t* engine) {
  gcap_status_t found = gcap_graph_manager_check_moves(engine->graphs, GRAPH_WITH_A_TABLE);
  if (found == NULL) return GCAP_STATUS(GCAP_INTERNAL, "the check found nothing");
  const char* message = gcap_status_message(found);
  const char* reason = strstr(message, ": it reads");
  printf("the check of a graph with a table: %.*s\n",
         (int)(reason != NULL ? (size_t)(reason - message) : strlen(message)), message);
  if (reason != NULL) printf("  %s\n", reason + 2);
  gcap_status_free(found);
  return NULL;
}

// Nothing in the graph says that the kernel reads a page, so nothing is refused, and page 2 is read. What lies in
// memory is data: write it before the replay, as any input. The pages are as the loop left them.
static gcap_status_t show_table(engine_t* engine) {
  GCAP_RETURN_IF_ERROR(write_table(engine, engine->pages[2]));
  for (int i = 0; i < 2; ++i) GCAP_RETURN_IF_ERROR(run_step(engine, GRAPH_WITH_A_TABLE, 2, 0, /*alignment=*/0));
  GCAP_RETURN_IF_ERROR(check_table(engine));
  printf("the address of page 2 in memory, and page 3 bound: ");
  GCAP_RETURN_IF_ERROR(run_step(engine, GRAPH_WITH_A_TABLE, 3, 0, /*alignment=*/0));
  GCAP_RETURN_IF_ERROR(judge(engine, 0, 3));
  printf("  the address of page 3 is written there: ");
  GCAP_RETURN_IF_ERROR(write_table(engine, engine->pages[3]));
  GCAP_RETURN_IF_ERROR(run_step(engine, GRAPH_WITH_A_TABLE, 3, 0, /*alignment=*/0));
  return judge(engine, 0, 3);
}

// Captures a step on so many elements. Nothing is executed, so more than the memory holds is fine.
static gcap_status_t capture(engine_t* engine, uint32_t count, cudaGraph_t* out_graph) {
  void* const at[NUM_BUFFERS] = {[PAGE] = engine->pages[0], [OUTPUT] = engine->outputs[0]};
  gcap_capture_t* scope = NULL;
  gcap_retained_t* retained = NULL;
  engine->count = count;
  GCAP_RETURN_IF_ERROR(gcap_capture_begin(engine->stream, NULL, &scope));
  gcap_run_resources_t resources;
  gcap_run_resources_init(&resources);
  resources.cuda_stream = engine->stream;
  resources.addresses = at;
  resources.num_addresses = NUM_BUFFERS;
  gcap_status_t status = step(engine, &resources);
  if (status != NULL) gcap_capture_fail(scope, status);
  status = gcap_status_join(status, gcap_capture_end(scope, out_graph, &retained));
  gcap_retained_release(retained);  // the work retains nothing
  return status;
}

static void print_difference(void* user, const gcap_graph_difference_t* d) {
  (void)user;
  printf("  %s: %s %s -> %s\n", d->node_text, d->field, d->before, d->after);
}

// Two captures of the work tell why a graph had to be captured again, or why an executable was not updated.
static gcap_status_t show_difference(engine_t* engine) {
  cudaGraph_t before = NULL, after = NULL;
  GCAP_RETURN_IF_ERROR(capture(engine, COUNT, &before));
  gcap_status_t status = capture(engine, OTHER_COUNT, &after);
  printf("the work on %d elements is another graph than on %d:\n", OTHER_COUNT, COUNT);
  if (status == NULL) status = gcap_graph_diff(before, after, print_difference, NULL, NULL);
  if (after != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaGraphDestroy(after)));
  return gcap_status_join(status, GCAP_CUDA(cudaGraphDestroy(before)));
}

// --- The engine -----------------------------------------------------------------------------------------------------

static void print_error(void* user, gcap_log_level_t level, const char* message) {
  (void)user, (void)level;
  fprintf(stderr, "%s\n", message);
}

static gcap_status_t create(engine_t* engine) {
  gcap_log_set_sink(print_error, NULL, GCAP_LOG_ERROR);  // without the warning that a graph cannot be moved
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 1;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_create(&options, &engine->graphs));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamCreateWithFlags(&engine->stream, cudaStreamNonBlocking)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc((void**)&engine->token, BYTES)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc((void**)&engine->table, sizeof(*engine->table))));
  for (int i = 0; i < NUM_PAGES; ++i)
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc((void**)&engine->pages[i], BYTES + APART)));
  for (int i = 0; i < NUM_OUTPUTS; ++i) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc((void**)&engine->outputs[i], BYTES + APART)));
  }
  return NULL;
}

// The graphs go first: they use the memory.
static gcap_status_t destroy(engine_t* engine) {
  gcap_status_t status = gcap_graph_manager_destroy(engine->graphs);
  for (int i = 0; i < NUM_OUTPUTS; ++i) status = gcap_status_join(status, GCAP_CUDA(cudaFree(engine->outputs[i])));
  for (int i = 0; i < NUM_PAGES; ++i) status = gcap_status_join(status, GCAP_CUDA(cudaFree(engine->pages[i])));
  status = gcap_status_join(status, GCAP_CUDA(cudaFree(engine->table)));
  status = gcap_status_join(status, GCAP_CUDA(cudaFree(engine->token)));
  if (engine->stream != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaStreamDestroy(engine->stream)));
  return status;
}

int main(void) {
  engine_t engine = {.count = COUNT};
  gcap_status_t status = create(&engine);
  if (status == NULL) status = show_loop(&engine);
  if (status == NULL) status = show_alignment(&engine);
  if (status == NULL) status = show_table(&engine);
  if (status == NULL) status = show_difference(&engine);
  status = gcap_status_join(status, destroy(&engine));
  if (status == NULL) return 0;
  fprintf(stderr, "moving_buffers: %s\n", gcap_status_message(status));
  gcap_status_free(status);
  return 1;
}
