// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The threads. Each has a batch, a pool of pages and steps of its own; gcap gives it a stream and graphs. They share
// the model, the arena with its limit, and nothing else, so they need no lock. Between two steps a thread lets finished
// sequences leave, lets waiting ones join, and gives each a page for its next position.
#include "examples/decoder/serve.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

typedef struct worker {
  pthread_t thread;
  const serve_options_t* options;
  const model_t* model;
  sequence_t* sequences;  // of all threads
  int next;               // the sequence that joins next
  batch_t batch;
  cache_t cache;
  step_t step;
  int steps;
  gcap_status_t status;
} worker_t;

// --- Between two steps ----------------------------------------------------------------------------------------------

static gcap_status_t let_leave(worker_t* worker) {
  for (int row = worker->batch.num_rows - 1; row >= 0; --row) {
    sequence_t* sequence = worker->batch.rows[row];
    if (sequence->position < sequence_positions(sequence)) continue;
    GCAP_RETURN_IF_ERROR(cache_uncover(&worker->cache, batch_leave(&worker->batch, row)));
  }
  return NULL;
}

// In the order of their arrivals: who finds no room waits, and so do those behind.
static void let_join(worker_t* worker) {
  while (worker->next < worker->options->num_sequences) {
    sequence_t* sequence = &worker->sequences[worker->next];
    if (sequence->arrival > worker->steps || !batch_join(&worker->batch, sequence)) return;
    worker->next += worker->options->num_threads;
  }
}

static gcap_status_t prepare_step(worker_t* worker) {
  const int between_moves = worker->options->steps_between_moves;
  GCAP_RETURN_IF_ERROR(let_leave(worker));
  let_join(worker);
  for (int i = 0; i < worker->batch.num_rows; ++i) {
    GCAP_RETURN_IF_ERROR(cache_cover(&worker->cache, worker->batch.rows[i]));
  }
  if (between_moves == 0 || worker->steps % between_moves != between_moves - 1) return NULL;
  return cache_move(&worker->cache);
}

// --- A thread -------------------------------------------------------------------------------------------------------

static bool is_done(const worker_t* worker) {
  return worker->batch.num_rows == 0 && worker->next >= worker->options->num_sequences;
}

static gcap_status_t decode(worker_t* worker) {
  for (; worker->steps < worker->options->num_steps; ++worker->steps) {
    GCAP_RETURN_IF_ERROR(prepare_step(worker));
    if (is_done(worker)) break;
    if (worker->batch.num_rows == 0) continue;  // the next sequence has not arrived
    GCAP_RETURN_IF_ERROR(step_run(&worker->step, &worker->batch, &worker->cache));
    for (int i = 0; i < worker->batch.num_rows; ++i) ++worker->batch.rows[i]->position;
  }
  return step_drain(&worker->step);
}

static gcap_status_t work(worker_t* worker) {
  worker->batch.max_pages = CACHE_MAX_PAGES;
  gcap_status_t status = step_create(worker->model, worker->options->attends_in_holes, &worker->step);
  if (status == NULL) {
    status = cache_create(&worker->step.resources, &worker->cache);
    if (status == NULL) status = decode(worker);
  }
  // A pool that is freed while steps read it is used again after them only.
  if (worker->cache.scratch != NULL) status = gcap_status_join(status, cache_destroy(&worker->cache));
  return gcap_status_join(status, step_destroy(&worker->step));
}

static void* thread_main(void* argument) {
  worker_t* worker = argument;
  worker->status = work(worker);
  return NULL;
}

// --- All threads ----------------------------------------------------------------------------------------------------

static gcap_status_t start_and_join(worker_t* workers, int count) {
  gcap_status_t status = NULL;
  int started = 0;
  while (started < count && status == NULL) {
    const int error = pthread_create(&workers[started].thread, NULL, thread_main, &workers[started]);
    if (error != 0) {
      status = GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "thread %d cannot start: %s", started, strerror(error));
    } else {
      ++started;
    }
  }
  for (int i = 0; i < started; ++i) {
    pthread_join(workers[i].thread, NULL);
    status = gcap_status_join(status, workers[i].status);
  }
  return status;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void add(serve_report_t* report, const worker_t* worker) {
  const step_counts_t* runs = &worker->step.counts;
  report->steps += (int)worker->step.number;
  report->runs.eager += runs->eager;
  report->runs.captured += runs->captured;
  report->runs.replayed += runs->replayed;
  report->runs.evicted += runs->evicted;
  report->runs.holes += runs->holes;
  report->cache.growths += worker->cache.counts.growths;
  report->cache.pool_moves += worker->cache.counts.pool_moves;
  report->cache.page_moves += worker->cache.counts.page_moves;
}

static gcap_status_t run_threads(const serve_options_t* options, const model_t* model, sequence_t* sequences,
                                 serve_report_t* report) {
  worker_t workers[SERVE_MAX_THREADS];
  memset(workers, 0, sizeof(workers));
  for (int i = 0; i < options->num_threads; ++i) {
    workers[i].options = options;
    workers[i].model = model;
    workers[i].sequences = sequences;
    workers[i].next = i;
  }
  const double start = now();
  gcap_status_t status = start_and_join(workers, options->num_threads);
  report->seconds = now() - start;
  for (int i = 0; i < options->num_threads; ++i) add(report, &workers[i]);
  gcap_allocator_stats_t stats;
  gcap_scratch_get_stats(gcap_runtime_scratch(model_runtime(model)), &stats);
  report->memory_bytes = stats.total_allocated_bytes;
  return status;
}

static gcap_status_t create_runtime(const serve_options_t* options, gcap_runtime_t** out_runtime) {
  gcap_options_t runtime;
  gcap_options_init(&runtime);
  runtime.enable_cuda_graph = !options->is_eager;
  runtime.arena.memory_limit_bytes = options->memory_limit_bytes;
  runtime.graph.max_graphs = options->max_graphs;
  runtime.graph.min_num_runs_before_capture = 1;
  return gcap_runtime_create(&runtime, out_runtime);
}

gcap_status_t serve(const serve_options_t* options, sequence_t* out_sequences, serve_report_t* out_report) {
  memset(out_report, 0, sizeof(*out_report));
  for (int i = 0; i < options->num_sequences; ++i) sequence_draw(options->seed, i, &out_sequences[i]);
  gcap_runtime_t* runtime = NULL;
  model_t* model = NULL;
  gcap_status_t status = create_runtime(options, &runtime);
  if (status == NULL) status = model_create(runtime, options->seed, kStepBuckets, STEP_NUM_BUCKETS, &model);
  if (status == NULL) status = run_threads(options, model, out_sequences, out_report);
  status = gcap_status_join(status, model_destroy(model));
  return gcap_status_join(status, gcap_runtime_destroy(runtime));
}
