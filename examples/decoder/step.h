// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// step.h: one decode step of a thread as a run of gcap.
#ifndef GCAP_EXAMPLES_DECODER_STEP_H_
#define GCAP_EXAMPLES_DECODER_STEP_H_

#include <stdint.h>

#include "examples/decoder/batch.h"
#include "examples/decoder/cache.h"
#include "examples/decoder/model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { STEP_NUM_BUCKETS = 4, STEP_IN_FLIGHT = 2 };

// The numbers of rows that are captured, in ascending order.
extern const size_t kStepBuckets[STEP_NUM_BUCKETS];

typedef struct step_counts {
  int eager;
  int captured;
  int replayed;
  int evicted;
  int holes;  // of the graphs that there were at the end
} step_counts_t;

// What belongs to a step from its start until its tokens are collected.
typedef struct step_lane {
  int32_t* tokens;  // [DECODER_MAX_ROWS], page-locked
  gcap_notification_t* done;
  bool is_in_flight;
  sequence_t* rows[DECODER_MAX_ROWS];  // who gets the token of a row; NULL: nobody
} step_lane_t;

// What the function of a hole gets.
typedef struct step_layer {
  const struct step* step;
  int number;
} step_layer_t;

// The steps of one thread.
typedef struct step {
  const model_t* model;
  gcap_run_resources_t resources;
  gcap_allocator_t* pinned;
  int32_t* chosen;  // in device memory: [DECODER_MAX_ROWS], by slot
  float* crossing;  // in device memory: model_pass_t.crossing; NULL: attention is in no hole
  step_layer_t layers[DECODER_LAYERS];
  step_lane_t lanes[STEP_IN_FLIGHT];
  int32_t draws;    // a sequence of the next step's batch does
  unsigned number;  // of the next step
  step_counts_t counts;
} step_t;

// For the calling thread, which makes all calls. To be destroyed also after a failure.
gcap_status_t step_create(const model_t* model, bool attends_in_holes, step_t* out_step);
// Waits for the thread's work, and releases its graphs.
gcap_status_t step_destroy(step_t* step);

// Issues a step of the batch, whose pages cover all positions. Its tokens come two steps later.
gcap_status_t step_run(step_t* step, const batch_t* batch, const cache_t* cache);
// Waits for the steps in flight, and hands out their tokens.
gcap_status_t step_drain(step_t* step);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_DECODER_STEP_H_
