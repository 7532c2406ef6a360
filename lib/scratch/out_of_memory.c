// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What is tried before an allocation fails. First free memory, the growth of another thread, and growth of one's own;
// then, step by step, what costs more and more: wait for regions that other threads have in transit, give idle regions
// back upstream, let upstream give back what it caches, wait for the requesting stream, wait for the device where the
// unknown stream freed memory. After each step the request is tried again. What a step itself fails with joins the
// status in the end, or is logged when a later step helped.
//
// A thread that captures takes none of these steps: a free, a wait or foreign code would break its capture, and its
// placement has looked at all that is free without them. No step breaks a capture of another thread: upstream's calls
// and the wait for the stream are made in relaxed mode, the wait for the device only while no scope is open
// (unknown_stream.c). Locking: the arena is locked, and unlocked around each call of upstream, of CUDA and of the log.

#include "lib/scratch/out_of_memory.h"

#include <stdio.h>

#include "gcap/log.h"
#include "lib/base/capture_hooks.h"
#include "lib/scratch/bypass.h"
#include "lib/scratch/lock.h"
#include "lib/scratch/place.h"
#include "lib/scratch/report.h"
#include "lib/scratch/reservation.h"
#include "lib/scratch/unknown_stream.h"
#include "lib/scratch/upstream.h"

typedef struct attempt {
  gcap_scratch_t* scratch;
  const gcap_scratch_request_t* request;
  gcap_scratch_block_t* block;  // what was obtained
  gcap_status_t failure;        // why the last try failed
  bool is_short;                // it lacked memory, so the next step may help
  bool has_trimmed;             // upstream; again only when it was given something since
  gcap_scratch_patience_t patience;
  gcap_status_t trouble;  // what the steps failed with
} attempt_t;

// --- Trying ---------------------------------------------------------------------------------------------------------

static void try_placing(attempt_t* attempt) {
  const gcap_scratch_request_t* request = attempt->request;
  if (request->reserved || request->anew) return;
  request->state->cannot_grow = attempt->is_short || request->state->open != NULL || gcap_thread_captures();
  const bool whole = attempt->scratch->options.bypass && request->state->open == NULL;
  gcap_status_t status = (whole ? gcap_scratch_place_whole : gcap_scratch_place)(attempt->scratch, request->state,
                                                                                 request->bytes, &attempt->block);
  request->state->cannot_grow = false;
  if (status == NULL) return;
  attempt->failure = gcap_status_join(status, attempt->failure);
  attempt->is_short = false;  // of host memory
}

static void try_growing(attempt_t* attempt) {
  const gcap_scratch_request_t* request = attempt->request;
  gcap_scratch_block_t* block = NULL;
  gcap_status_free(attempt->failure);
  attempt->failure =
      gcap_scratch_get_region(attempt->scratch, request->bytes, request->reserved, &block, &attempt->is_short);
  if (attempt->failure == NULL)
    attempt->failure = gcap_scratch_take(attempt->scratch, request->state, request->bytes, &block);
  if (attempt->failure == NULL) attempt->block = block;
}

static bool goes_on(const attempt_t* attempt) { return attempt->block == NULL && attempt->is_short; }

// --- Steps ----------------------------------------------------------------------------------------------------------

static void note_trouble(attempt_t* attempt, gcap_status_t status) {
  attempt->trouble = gcap_status_join(attempt->trouble, status);
}

// Waits for memory that other threads get from upstream, or give back, and that counts for the limit meanwhile.
static void wait_for_threads(attempt_t* attempt) {
  while (goes_on(attempt) && gcap_scratch_wait_for_transit(attempt->scratch, &attempt->patience)) {
    try_placing(attempt);
    if (goes_on(attempt)) try_growing(attempt);
  }
}

// What needs no wait for work.
static void free_up(attempt_t* attempt) {
  gcap_scratch_t* scratch = attempt->scratch;
  gcap_scratch_settle(scratch, /*all=*/true);
  try_placing(attempt);
  if (!goes_on(attempt)) return;
  const size_t held_bytes = gcap_scratch_held_bytes(scratch);
  note_trouble(attempt, gcap_scratch_give_back_idle(scratch, /*all=*/true));
  const bool gave_back = gcap_scratch_held_bytes(scratch) < held_bytes;
  if (gave_back) try_growing(attempt);
  if (!goes_on(attempt) || (attempt->has_trimmed && !gave_back)) return;
  attempt->has_trimmed = true;
  note_trouble(attempt, gcap_scratch_trim_upstream(scratch));
  try_growing(attempt);
}

static void wait_for_stream(attempt_t* attempt) {
  gcap_scratch_t* scratch = attempt->scratch;
  gcap_scratch_stream_state_t* state = attempt->request->state;
  if (gcap_scratch_pool_first(&state->owner.pool) == NULL || gcap_scratch_is_unknown_stream(scratch, state))
    return;  // nothing to gain
  gcap_stream_t* stream = gcap_scratch_stream_of(state);
  const int paused = gcap_scratch_pause_lock(scratch);
  gcap_status_t status = gcap_stream_synchronize(stream);
  gcap_scratch_resume_lock(scratch, paused);
  note_trouble(attempt, status);
  if (status == NULL) free_up(attempt);
}

static void wait_for_device(attempt_t* attempt) {
  if (gcap_scratch_pool_first(&attempt->scratch->unknown_stream.owner.pool) == NULL) return;
  bool waited = false;
  note_trouble(attempt, gcap_scratch_wait_for_device(attempt->scratch, &waited));
  if (waited) free_up(attempt);
}

// Last, since a graph whose capture finds its rehearsal's memory gone may not be movable.
static void give_up_rehearsals(attempt_t* attempt) {
  bool gave_up = false;
  for (gcap_scratch_stream_state_t* state = attempt->scratch->streams; state != NULL; state = state->next) {
    gave_up |= state->rehearsed != NULL;
    gcap_scratch_drop_rehearsed(state);
  }
  if (gave_up) free_up(attempt);
}

static void try_steps(attempt_t* attempt) {
  static void (*const steps[])(attempt_t*) = {wait_for_threads, free_up, wait_for_stream, wait_for_device,
                                              give_up_rehearsals};
  for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && goes_on(attempt); ++i) steps[i](attempt);
}

// --- The request ----------------------------------------------------------------------------------------------------

static gcap_status_t describe_failure(attempt_t* attempt) {
  const gcap_scratch_request_t* request = attempt->request;
  char whom[80] = "any stream";
  if (request->reserved) {
    snprintf(whom, sizeof(whom), "a reserve");
  } else if (!gcap_scratch_is_unknown_stream(attempt->scratch, request->state)) {
    snprintf(whom, sizeof(whom), "stream %p, which has no open reservation,",
             (void*)gcap_stream_handle(gcap_scratch_stream_of(request->state)));
  }
  char text[2048];
  gcap_scratch_describe_held(attempt->scratch, "; ", text, sizeof(text));
  gcap_status_t status = gcap_status_join(attempt->failure, attempt->trouble);
  return gcap_status_annotate(status, gcap_status_code(status),
                              "scratch has no %zu bytes free for %s and cannot grow (%s)", request->bytes, whom, text);
}

static gcap_status_t reservation_lacks(gcap_scratch_t* scratch, const gcap_scratch_request_t* request) {
  const size_t bytes = request->bytes;
  const char* label = request->state->open->label;
  gcap_scratch_set_deficit(scratch, scratch->deficit_bytes + bytes);
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED,
                     "the scratch reservation of %s%sstream %p holds %zu bytes and lacks %zu more; scratch grows by "
                     "these at the next allocation outside a capture",
                     label, label[0] != '\0' ? " on " : "",
                     (void*)gcap_stream_handle(gcap_scratch_stream_of(request->state)), request->state->open->bytes,
                     bytes);
}

void gcap_scratch_log_trouble(gcap_scratch_request_t* request) {
  if (request->trouble == NULL) return;
  gcap_log(GCAP_LOG_WARNING, "scratch found the memory that it lacked, but something failed meanwhile: %s",
           gcap_status_message(request->trouble));
  gcap_status_free(request->trouble);
  request->trouble = NULL;
}

// What another thread is getting may be enough for this request too.
static void wait_for_growth(attempt_t* attempt) {
  if (attempt->request->reserved || attempt->request->anew) return;
  while (attempt->block == NULL && attempt->failure == NULL &&
         gcap_scratch_wait_for_growth(attempt->scratch, &attempt->patience)) {
    try_placing(attempt);
  }
}

// A request without a stream may get what the unknown stream freed, after a wait for the device: cudaFree would have
// waited as well.
static void wait_instead_of_growing(attempt_t* attempt) {
  const gcap_scratch_request_t* request = attempt->request;
  if (request->reserved || !gcap_scratch_is_unknown_stream(attempt->scratch, request->state)) return;
  if (!gcap_scratch_wait_would_help(attempt->scratch, request->bytes)) return;
  bool waited = false;
  note_trouble(attempt, gcap_scratch_wait_for_device(attempt->scratch, &waited));
  if (waited) try_placing(attempt);
}

gcap_status_t gcap_scratch_obtain(gcap_scratch_t* scratch, gcap_scratch_request_t* request,
                                  gcap_scratch_block_t** out_block) {
  attempt_t attempt = {.scratch = scratch, .request = request};
  try_placing(&attempt);
  if (attempt.block == NULL && attempt.failure == NULL && request->state->open != NULL && !request->anew) {
    return reservation_lacks(scratch, request);
  }
  if (attempt.block == NULL && attempt.failure == NULL) wait_instead_of_growing(&attempt);
  wait_for_growth(&attempt);
  if (attempt.block == NULL && attempt.failure == NULL) try_growing(&attempt);
  if (goes_on(&attempt) && !gcap_thread_captures() && !scratch->test_hooks.fail_at_once) try_steps(&attempt);
  *out_block = attempt.block;
  if (attempt.block == NULL) return describe_failure(&attempt);
  gcap_status_free(attempt.failure);
  request->trouble = attempt.trouble;  // to be logged when the block has its place: a sink may call this scratch
  return NULL;
}

// --- What captures lacked -------------------------------------------------------------------------------------------

void gcap_scratch_make_up_deficit(gcap_scratch_t* scratch) {
  const size_t bytes = scratch->deficit_bytes;
  if (bytes == 0) return;
  gcap_scratch_set_deficit(scratch, 0);
  gcap_scratch_block_t* block = NULL;
  gcap_status_t status = gcap_scratch_grow(scratch, bytes, &block);
  if (status == NULL && scratch->options.bypass) {
    gcap_scratch_find_region(&scratch->store, gcap_scratch_block_base(block))->held = true;
  }
  if (status == NULL) return;
  const int paused = gcap_scratch_pause_lock(scratch);
  gcap_log(GCAP_LOG_WARNING, "scratch cannot grow by the %zu bytes that a capture lacked: %s", bytes,
           gcap_status_message(status));
  gcap_status_free(status);
  gcap_scratch_resume_lock(scratch, paused);
}
