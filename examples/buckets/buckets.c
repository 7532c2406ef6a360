// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Buckets: the batch of a decoder changes from step to step, and a graph has one size. Here the sizes that graphs are
// captured for come from a histogram of batches. A batch of another size is padded to the next bucket, whose size is
// the id of its graph; a batch that is larger than all buckets runs eagerly. It prints:
//
//     powers of two: 1 2 4 8 16 32, padding is 21.6 % of the work
//     as many, chosen: 1 3 6 12 24 32, padding is 7.7 % of the work
//     half as many, chosen: 6 12 32, padding is 32.1 % of the work
//     warm-up: graph 1 of 6, 2 of 6, 3 of 6, 4 of 6, 5 of 6, 6 of 6, and nothing is written
//     batch 5 in bucket 6: replayed, right
//     batch 12 in bucket 12: replayed, right
//     batch 33 in no bucket: eager, right
//     5 prompts: 3 of their graphs were evicted
//     batch 1 in bucket 1: replayed, right

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gcap/buckets.h"
#include "gcap/graph.h"

#define MAX_BATCH 33
#define MAX_BUCKETS 6
#define LARGEST 32  // larger batches are too seldom for a graph
#define ROW 4       // floats of a sequence
#define NUM_PROMPTS 5
#define MAX_PROMPT_GRAPHS 2
#define FIRST_PROMPT_ID 1000  // ids of prompts: this and their length

typedef struct engine {
  gcap_graph_manager_t* graphs;
  cudaStream_t stream;
  float *in, *out;  // of MAX_BATCH rows
  size_t buckets[MAX_BUCKETS];
  size_t num_buckets;
} engine_t;

// What a run works on.
typedef struct batch {
  const engine_t* engine;
  size_t rows;
} batch_t;

// --- Which sizes ----------------------------------------------------------------------------------------------------

// What an engine counts while it serves: a line for each size, in any order.
static const gcap_size_count_t batches[] = {
    {1, 400}, {2, 90},   {3, 260}, {4, 80},   {5, 60},  {6, 310}, {7, 50},
    {8, 40},  {12, 220}, {16, 30}, {24, 150}, {32, 10}, {33, 2},
};

// A step of a decoder takes a fixed time and a time for each row, so the default cost is the right one: the size.
static gcap_status_t choose(const char* what, const size_t* required, size_t num_required, size_t max_buckets,
                            engine_t* engine) {
  gcap_buckets_options_t options;
  gcap_buckets_options_init(&options);
  options.largest = LARGEST;
  options.required = required;
  options.num_required = num_required;
  gcap_buckets_choice_t choice;
  gcap_buckets_choice_init(&choice);
  GCAP_RETURN_IF_ERROR(gcap_buckets_choose(batches, sizeof(batches) / sizeof(*batches), &options, max_buckets,
                                           engine->buckets, &choice));
  engine->num_buckets = choice.num_buckets;
  printf("%s:", what);
  for (size_t i = 0; i < choice.num_buckets; ++i) printf(" %zu", engine->buckets[i]);
  printf(", padding is %.1f %% of the work\n", 100 * choice.padding_cost / choice.cost);
  return NULL;
}

static gcap_status_t choose_all(engine_t* engine) {
  // A list made by hand is judged as one of which each size is required.
  static const size_t powers[MAX_BUCKETS] = {1, 2, 4, 8, 16, 32};
  GCAP_RETURN_IF_ERROR(choose("powers of two", powers, MAX_BUCKETS, MAX_BUCKETS, engine));
  engine_t other = *engine;
  GCAP_RETURN_IF_ERROR(choose("as many, chosen", NULL, 0, MAX_BUCKETS, engine));
  return choose("half as many, chosen", NULL, 0, MAX_BUCKETS / 2, &other);
}

// --- Steps ----------------------------------------------------------------------------------------------------------

// A step of a network: here each row is copied.
static gcap_status_t step(void* user, const gcap_run_resources_t* resources) {
  const batch_t* batch = user;
  return GCAP_CUDA(cudaMemcpyAsync(batch->engine->out, batch->engine->in, batch->rows * ROW * sizeof(float),
                                   cudaMemcpyDeviceToDevice, resources->cuda_stream));
}

static gcap_run_t run_of(int id, batch_t* batch) {
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = id;
  run.stream = batch->engine->stream;
  run.work = step;
  run.user = batch;
  return run;
}

static gcap_status_t write_rows(const engine_t* engine, size_t batch, float first) {
  float rows[MAX_BATCH * ROW] = {0};  // the rows behind the batch are padding
  for (size_t i = 0; i < batch * ROW; ++i) rows[i] = first + (float)i;
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(engine->in, rows, sizeof(rows), cudaMemcpyHostToDevice, engine->stream)));
  return GCAP_CUDA(cudaStreamSynchronize(engine->stream));
}

static gcap_status_t check_rows(const engine_t* engine, size_t batch, float first, bool* out_right) {
  float rows[MAX_BATCH * ROW];
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(
      cudaMemcpyAsync(rows, engine->out, batch * ROW * sizeof(float), cudaMemcpyDeviceToHost, engine->stream)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(engine->stream)));
  *out_right = true;
  for (size_t i = 0; i < batch * ROW; ++i) *out_right &= rows[i] == first + (float)i;
  return NULL;
}

static gcap_status_t run_batch(engine_t* engine, size_t size) {
  static const char* const outcomes[] = {"not done", "replayed", "captured", "eager", "recorded"};
  const size_t bucket = gcap_buckets_find(engine->buckets, engine->num_buckets, size);
  batch_t batch = {engine, bucket > 0 ? bucket : size};
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run = run_of(bucket > 0 ? (int)bucket : GCAP_GRAPH_ID_NONE, &batch);
  run.result = &result;
  GCAP_RETURN_IF_ERROR(write_rows(engine, size, (float)size));
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_run(engine->graphs, &run));
  bool right = false;
  GCAP_RETURN_IF_ERROR(check_rows(engine, size, (float)size, &right));
  printf("batch %zu in ", size);
  if (bucket > 0) {
    printf("bucket %zu", bucket);
  } else {
    printf("no bucket");
  }
  printf(": %s, %s\n", outcomes[result.outcome], right ? "right" : "WRONG");
  return NULL;
}

// --- Warm-up --------------------------------------------------------------------------------------------------------

static void tell(void* user, size_t index, size_t total, const gcap_run_result_t* result) {
  (void)user;
  if (result->outcome == GCAP_RUN_RECORDED) printf("%s %zu of %zu", index == 0 ? "graph" : ",", index + 1, total);
}

// A graph for each bucket, the largest first.
static gcap_status_t warm_up(engine_t* engine) {
  batch_t batches_of[MAX_BUCKETS];
  gcap_run_t runs[MAX_BUCKETS];
  const size_t count = engine->num_buckets;
  for (size_t i = 0; i < count; ++i) {
    const size_t bucket = engine->buckets[count - 1 - i];
    batches_of[i] = (batch_t){engine, bucket};
    runs[i] = run_of((int)bucket, &batches_of[i]);
    runs[i].capture_only = true;
    runs[i].pinned = true;
  }
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(engine->out, 0, MAX_BATCH * ROW * sizeof(float), engine->stream)));
  GCAP_RETURN_IF_ERROR(write_rows(engine, LARGEST, /*first=*/1));
  printf("warm-up: ");
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_warm_up(engine->graphs, runs, count, tell, /*user=*/NULL));
  float first = -1;
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(&first, engine->out, sizeof(first), cudaMemcpyDeviceToHost, engine->stream)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamSynchronize(engine->stream)));
  printf(", and %s is written\n", first == 0 ? "nothing" : "SOMETHING");
  return NULL;
}

static gcap_status_t run_prompts(engine_t* engine) {
  for (int i = 0; i < NUM_PROMPTS; ++i) {
    batch_t prompt = {engine, (size_t)(MAX_BATCH - i)};
    const gcap_run_t run = run_of(FIRST_PROMPT_ID + (int)prompt.rows, &prompt);
    GCAP_RETURN_IF_ERROR(gcap_graph_manager_run(engine->graphs, &run));
  }
  gcap_graph_info_t all;
  gcap_graph_manager_get_info(engine->graphs, GCAP_GRAPH_ID_NONE, &all);
  printf("%d prompts: %llu of their graphs were evicted\n", NUM_PROMPTS, (unsigned long long)all.evictions);
  return NULL;
}

// --- The engine -----------------------------------------------------------------------------------------------------

static gcap_status_t create(engine_t* engine) {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;  // a copy needs no library and no memory
  options.max_graphs = MAX_BUCKETS + MAX_PROMPT_GRAPHS;
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_create(&options, &engine->graphs));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamCreateWithFlags(&engine->stream, cudaStreamNonBlocking)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMalloc((void**)&engine->in, MAX_BATCH * ROW * sizeof(float))));
  return GCAP_CUDA(cudaMalloc((void**)&engine->out, MAX_BATCH * ROW * sizeof(float)));
}

static gcap_status_t destroy(engine_t* engine) {
  gcap_status_t status = gcap_graph_manager_destroy(engine->graphs);
  status = gcap_status_join(status, GCAP_CUDA(cudaFree(engine->out)));
  status = gcap_status_join(status, GCAP_CUDA(cudaFree(engine->in)));
  if (engine->stream != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaStreamDestroy(engine->stream)));
  return status;
}

static gcap_status_t serve(engine_t* engine) {
  GCAP_RETURN_IF_ERROR(choose_all(engine));
  GCAP_RETURN_IF_ERROR(warm_up(engine));
  GCAP_RETURN_IF_ERROR(run_batch(engine, 5));
  GCAP_RETURN_IF_ERROR(run_batch(engine, 12));
  GCAP_RETURN_IF_ERROR(run_batch(engine, 33));
  GCAP_RETURN_IF_ERROR(run_prompts(engine));
  return run_batch(engine, 1);
}

int main(void) {
  engine_t engine = {0};
  gcap_status_t status = create(&engine);
  if (status == NULL) status = serve(&engine);
  status = gcap_status_join(status, destroy(&engine));
  if (status == NULL) return 0;
  fprintf(stderr, "buckets: %s\n", gcap_status_message(status));
  gcap_status_free(status);
  return 1;
}
