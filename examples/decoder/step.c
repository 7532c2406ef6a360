// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A step as a run of gcap. All that the engine has to tell gcap about a step is in this file:
//
//   bucket   a step has the rows of the smallest bucket that holds its batch
//   key      what the host decides before the work: the bucket, and the size of the pool, which is a buffer of that size
//   guard    what the work decides by itself: whether tokens are drawn, which is another kernel
//   buffers  the pool and the tokens' place on the host are elsewhere in some steps: they are buffers of the run
//   values   what changes with each step, as positions, pages and seeds, is a value of the run that the kernels read in
//            device memory
//   holes    attention may be left to a function, which each replay calls between two segments of the graph
//
// Two steps are in flight: a lane is what one of them owns on the host. Its tokens are read before the lane's next step
// is issued. A step belongs to one thread.
#include "examples/decoder/step.h"

#include <string.h>

#include "gcap/buckets.h"
#include "gcap/graph_guards.h"

const size_t kStepBuckets[STEP_NUM_BUCKETS] = {1, 2, 4, 8};

// In a debug build the first replay after a capture, and after each move, is compared with its work (graph_verify.h).
#ifdef NDEBUG
#define NUM_VERIFIED_REPLAYS 0
#else
#define NUM_VERIFIED_REPLAYS 1
#endif

enum { POOL, TOKENS, NUM_BUFFERS };  // of each run

// --- Key ------------------------------------------------------------------------------------------------------------

// No padding, which would be a part of the key.
typedef struct step_key {
  int32_t rows;        // of the bucket
  int32_t pool_pages;  // the size of a buffer
} step_key_t;

static step_key_t decide(const batch_t* batch, const cache_t* cache) {
  const size_t rows = gcap_buckets_find(kStepBuckets, STEP_NUM_BUCKETS, (size_t)batch->num_rows);
  return (step_key_t){(int32_t)rows, cache->num_pages};
}

// --- Values ---------------------------------------------------------------------------------------------------------

enum { ROW, PAGES, NUM_ROW_VALUES };  // of each row of the bucket

static decoder_row_t row_of(const sequence_t* sequence) {
  return (decoder_row_t){
      .position = sequence->position,
      .token = sequence->position < sequence->num_prompt ? sequence->prompt[sequence->position] : -1,
      .slot = sequence->slot,
      .seed = sequence->seed,
      .temperature = sequence->temperature,
  };
}

// What the values of a step point to until its run returns.
typedef struct step_values {
  decoder_row_t rows[DECODER_MAX_ROWS];
  decoder_pages_t pages[DECODER_MAX_ROWS];
  gcap_graph_value_t items[DECODER_MAX_ROWS * NUM_ROW_VALUES];
} step_values_t;

static void write_values(const batch_t* batch, step_values_t* out_values) {
  memset(out_values, 0, sizeof(*out_values));
  for (int i = 0; i < DECODER_MAX_ROWS; ++i) {
    decoder_row_t* row = &out_values->rows[i];
    decoder_pages_t* pages = &out_values->pages[i];
    row->position = -1;
    if (i < batch->num_rows) {
      *row = row_of(batch->rows[i]);
      memcpy(pages->numbers, batch->rows[i]->pages, sizeof(pages->numbers));
    }
    gcap_graph_value_t* items = &out_values->items[i * NUM_ROW_VALUES];
    items[ROW] = (gcap_graph_value_t){.name = "row", .data = row, .bytes = sizeof(*row), .in_memory = true};
    items[PAGES] = (gcap_graph_value_t){.name = "pages", .data = pages, .bytes = sizeof(*pages), .in_memory = true};
  }
}

// Where the kernels find them.
static decoder_values_t find_values(const gcap_run_resources_t* run) {
  decoder_values_t values = {0};
  for (size_t i = 0; i < run->num_values / NUM_ROW_VALUES; ++i) {
    values.rows[i] = run->values[i * NUM_ROW_VALUES + ROW];
    values.pages[i] = run->values[i * NUM_ROW_VALUES + PAGES];
  }
  return values;
}

// --- The run --------------------------------------------------------------------------------------------------------

// Whether tokens are drawn, which the work decides by what the batch is. A graph has the kernel of its capture.
static gcap_status_t decide_draws(const step_t* step, bool* out_draws) {
  gcap_graph_guard_t guard;
  gcap_graph_guard_init(&guard);
  guard.name = "draws";
  guard.address = &step->draws;  // lives longer than the graphs
  guard.bytes = sizeof(step->draws);
  guard.low = guard.high = step->draws;
  *out_draws = step->draws != 0;
  return GCAP_GRAPH_GUARD(&guard);
}

// In the rehearsals before the capture the buffers are addresses with no memory behind.
static model_pass_t pass_of(const step_t* step, const gcap_run_resources_t* run) {
  model_pass_t pass = {
      .rows = run->num_values / NUM_ROW_VALUES,
      .values = find_values(run),
      .chosen = step->chosen,
      .crossing = step->crossing,
  };
  pass.pages = run->addresses[POOL];
  pass.tokens = run->addresses[TOKENS];
  return pass;
}

// The function of a hole. Each replay calls it, with what the replay brings.
static gcap_status_t attend(void* user, const gcap_run_resources_t* run) {
  const step_layer_t* layer = user;
  const model_pass_t pass = pass_of(layer->step, run);
  return model_attend(&pass, layer->number, run);
}

static gcap_graph_hole_t hole_of(step_layer_t* layer) {
  gcap_graph_hole_t hole;
  gcap_graph_hole_init(&hole);
  hole.name = "attention";
  hole.work = attend;
  hole.user = layer;  // lives longer than the graphs
  return hole;
}

static gcap_status_t issue(void* user, const gcap_run_resources_t* run) {
  step_t* step = user;
  model_pass_t pass = pass_of(step, run);
  GCAP_RETURN_IF_ERROR(decide_draws(step, &pass.draws));
  gcap_graph_hole_t attention[DECODER_LAYERS];  // copied, unlike the data of the holes
  for (int i = 0; i < DECODER_LAYERS; ++i) attention[i] = hole_of(&step->layers[i]);
  if (step->crossing != NULL) pass.attention = attention;
  return model_issue(step->model, &pass, run);
}

static void count(step_counts_t* counts, gcap_run_outcome_t outcome) {
  if (outcome == GCAP_RUN_EAGER) ++counts->eager;
  if (outcome == GCAP_RUN_CAPTURED) ++counts->captured;
  if (outcome == GCAP_RUN_REPLAYED) ++counts->replayed;
}

static gcap_status_t run_work(step_t* step, const step_lane_t* lane, const batch_t* batch, const cache_t* cache) {
  const gcap_graph_buffer_t items[NUM_BUFFERS] = {
      [POOL] = {"pool", cache->pages, (size_t)cache->num_pages * sizeof(*cache->pages), 256},
      [TOKENS] = {"tokens", lane->tokens, DECODER_MAX_ROWS * sizeof(*lane->tokens), 256},
  };
  step_values_t values;
  write_values(batch, &values);
  const step_key_t decided = decide(batch, cache);
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.items = items;
  buffers.count = NUM_BUFFERS;
  buffers.values = values.items;
  buffers.num_values = (size_t)decided.rows * NUM_ROW_VALUES;
  const gcap_graph_key_t key = {&decided, sizeof(decided), "decode"};
  step->draws = batch_draws(batch);
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  // Put back, and not compared: nothing has written the pages that no sequence has had yet, nor the free slots.
  const gcap_graph_verify_buffer_t states[] = {
      {.name = "pool", .address = items[POOL].address, .bytes = items[POOL].bytes, .is_state = true},
      {.name = "chosen", .address = step->chosen, .bytes = DECODER_MAX_ROWS * sizeof(*step->chosen), .is_state = true}};
  gcap_graph_verify_t verify;
  gcap_graph_verify_init(&verify);
  verify.buffers = states;
  verify.num_buffers = sizeof(states) / sizeof(states[0]);
  verify.first = NUM_VERIFIED_REPLAYS;
  gcap_run_t run;
  gcap_run_init(&run);
  run.key = &key;
  run.verify = &verify;
  run.work = issue;
  run.user = step;
  run.buffers = &buffers;
  run.result = &result;
  gcap_status_t status = gcap_runtime_run(model_runtime(step->model), &run);
  count(&step->counts, result.outcome);
  return status;
}

// --- Steps in flight ------------------------------------------------------------------------------------------------

// Waits for the lane's step, and hands out its tokens.
static gcap_status_t collect(step_lane_t* lane) {
  if (!lane->is_in_flight) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_notification_wait_on_host(lane->done));
  lane->is_in_flight = false;
  for (int i = 0; i < DECODER_MAX_ROWS; ++i) {
    sequence_t* sequence = lane->rows[i];
    if (sequence != NULL) sequence->tokens[sequence->num_tokens++] = lane->tokens[i];
  }
  return NULL;
}

// A token that follows a token of the prompt, but the last one, is nobody's.
static void assign_rows(step_lane_t* lane, const batch_t* batch) {
  memset(lane->rows, 0, sizeof(lane->rows));
  for (int i = 0; i < batch->num_rows; ++i) {
    sequence_t* sequence = batch->rows[i];
    if (sequence->position >= sequence->num_prompt - 1) lane->rows[i] = sequence;
  }
}

gcap_status_t step_run(step_t* step, const batch_t* batch, const cache_t* cache) {
  step_lane_t* lane = &step->lanes[step->number % STEP_IN_FLIGHT];
  GCAP_RETURN_IF_ERROR(collect(lane));
  GCAP_RETURN_IF_ERROR(run_work(step, lane, batch, cache));
  GCAP_RETURN_IF_ERROR(gcap_notification_record(lane->done));
  assign_rows(lane, batch);
  lane->is_in_flight = true;
  ++step->number;
  return NULL;
}

gcap_status_t step_drain(step_t* step) {
  for (unsigned i = 0; i < STEP_IN_FLIGHT; ++i) {
    GCAP_RETURN_IF_ERROR(collect(&step->lanes[(step->number + i) % STEP_IN_FLIGHT]));
  }
  return NULL;
}

// --- Life -----------------------------------------------------------------------------------------------------------

static gcap_status_t create_lane(const step_t* step, step_lane_t* lane) {
  GCAP_RETURN_IF_ERROR(
      gcap_allocator_alloc(step->pinned, DECODER_MAX_ROWS * sizeof(*lane->tokens), (void**)&lane->tokens));
  return gcap_notification_create(step->resources.stream, &lane->done);
}

static gcap_status_t create_layers(step_t* step) {
  for (int i = 0; i < DECODER_LAYERS; ++i) step->layers[i] = (step_layer_t){step, i};
  const size_t bytes = DECODER_MAX_ROWS * MODEL_CROSSING_FLOATS * sizeof(*step->crossing);
  return gcap_scratch_alloc(step->resources.scratch, bytes, step->resources.stream, (void**)&step->crossing);
}

gcap_status_t step_create(const model_t* model, bool attends_in_holes, step_t* out_step) {
  gcap_runtime_t* runtime = model_runtime(model);
  memset(out_step, 0, sizeof(*out_step));
  out_step->model = model;
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(runtime, &out_step->resources));
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_allocator(runtime, GCAP_MEMORY_PINNED, &out_step->pinned));
  gcap_scratch_t* scratch = out_step->resources.scratch;
  gcap_stream_t* stream = out_step->resources.stream;
  GCAP_RETURN_IF_ERROR(
      gcap_scratch_alloc(scratch, DECODER_MAX_ROWS * sizeof(*out_step->chosen), stream, (void**)&out_step->chosen));
  if (attends_in_holes) GCAP_RETURN_IF_ERROR(create_layers(out_step));
  for (int i = 0; i < STEP_IN_FLIGHT; ++i) GCAP_RETURN_IF_ERROR(create_lane(out_step, &out_step->lanes[i]));
  return NULL;
}

// The graphs go first: they use the memory.
static gcap_status_t release_graphs(step_t* step) {
  gcap_graph_manager_t* graphs = NULL;
  GCAP_RETURN_IF_ERROR(gcap_runtime_graphs(model_runtime(step->model), &graphs));
  gcap_graph_info_t info;
  gcap_graph_manager_get_info(graphs, GCAP_GRAPH_ID_NONE, &info);
  step->counts.evicted = (int)info.evictions;
  step->counts.holes = (int)info.holes;
  return gcap_graph_manager_release_all(graphs);
}

gcap_status_t step_destroy(step_t* step) {
  gcap_status_t status = gcap_runtime_synchronize(model_runtime(step->model));
  status = gcap_status_join(status, release_graphs(step));
  for (int i = 0; i < STEP_IN_FLIGHT; ++i) {
    gcap_notification_destroy(step->lanes[i].done);
    if (step->pinned == NULL) continue;
    status = gcap_status_join(status, gcap_allocator_free(step->pinned, step->lanes[i].tokens));
  }
  if (step->resources.scratch == NULL) return status;
  status = gcap_status_join(status, gcap_scratch_free(step->resources.scratch, step->crossing));
  return gcap_status_join(status, gcap_scratch_free(step->resources.scratch, step->chosen));
}
