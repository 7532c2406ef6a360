// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Buckets: the batch of a decoder changes from step to step, and a graph has one size. Here the sizes that graphs are
// captured for come from a histogram of batches. A batch of another size is padded to the next bucket, whose size is
// the id of its graph; a batch that is larger than all buckets runs eagerly. It prints:
//
//     powers of two: 1 2 4 8 16 32, padding is 21.6 % of the work
//     as many, chosen: 1 3 6 12 24 32, padding is 7.7 % of the work
//     half as many, chosen: 6 12 32, padding is 32.1 % of the work
//     batch 5 in bucket 6: captured, right
//     batch 12 in bucket 12: captured, right
//     batch 7 in bucket 12: replayed, right
//     batch 6 in bucket 6: replayed, right
//     batch 33 in no bucket: eager, right

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

typedef struct engine {
  gcap_graph_manager_t* graphs;
  cudaStream_t stream;
  float *in, *out;  // of MAX_BATCH rows
  size_t buckets[MAX_BUCKETS];
  size_t num_buckets;
  size_t rows;  // of the run
} engine_t;

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
  const engine_t* engine = user;
  return GCAP_CUDA(cudaMemcpyAsync(engine->out, engine->in, engine->rows * ROW * sizeof(float),
                                   cudaMemcpyDeviceToDevice, resources->cuda_stream));
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

static gcap_status_t run_batch(engine_t* engine, size_t batch) {
  static const char* const outcomes[] = {"not done", "replayed", "captured", "eager"};
  const size_t bucket = gcap_buckets_find(engine->buckets, engine->num_buckets, batch);
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run;
  gcap_run_init(&run);
  if (bucket > 0) run.id = (int)bucket;
  run.stream = engine->stream;
  run.work = step;
  run.user = engine;
  run.result = &result;
  engine->rows = bucket > 0 ? bucket : batch;
  GCAP_RETURN_IF_ERROR(write_rows(engine, batch, (float)batch));
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_run(engine->graphs, &run));
  bool right = false;
  GCAP_RETURN_IF_ERROR(check_rows(engine, batch, (float)batch, &right));
  printf("batch %zu in ", batch);
  if (bucket > 0) {
    printf("bucket %zu", bucket);
  } else {
    printf("no bucket");
  }
  printf(": %s, %s\n", outcomes[result.outcome], right ? "right" : "WRONG");
  return NULL;
}

// --- The engine -----------------------------------------------------------------------------------------------------

static gcap_status_t create(engine_t* engine) {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;  // a copy needs no library and no memory
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
  static const size_t steps[] = {5, 12, 7, 6, 33};
  GCAP_RETURN_IF_ERROR(choose_all(engine));
  for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); ++i) GCAP_RETURN_IF_ERROR(run_batch(engine, steps[i]));
  return NULL;
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
