// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The ladder: what is tried before an allocation fails. First free memory and growth; then, rung by rung, what costs
// more and more: regions that other threads have on their way are waited for, those that are idle go back upstream,
// upstream gives back what it caches, the requesting stream is waited for, the device is waited for where memory was
// freed for nobody knows whom. After each the request is tried again. What a rung itself fails with joins the status in
// the end, or is logged when a later one helped.
//
// A thread that captures climbs nothing: a free, a wait or foreign code would break its capture, and its placement has
// looked at all that is free without them. No rung breaks a capture of another thread: upstream's calls and the wait
// for the stream are made in relaxed mode, the wait for the device only while no scope is open (untagged.c).
// Locking: the arena is held, and let go around each call of upstream, of CUDA and of the log.

#include <stdio.h>
#include <time.h>

#include "gcap/log.h"
#include "lib/base/capture_hooks.h"
#include "lib/scratch/arena.h"

// A tenth of a second in all, many times what a driver takes for a region.
enum { kNapNs = 100000, kMaxNaps = 1000 };

typedef struct climb {
  gcap_scratch_t* scratch;
  const gcap_scratch_request_t* request;
  gcap_scratch_block_t* block;  // what was obtained
  gcap_status_t failure;        // why the last try failed
  bool is_short;                // it lacked memory, so the next rung may help
  bool has_trimmed;             // upstream; again only when it was given something since
  gcap_status_t trouble;        // what the rungs failed with
} climb_t;

// --- Trying ---------------------------------------------------------------------------------------------------------

static void try_placing(climb_t* climb) {
  const gcap_scratch_request_t* request = climb->request;
  if (request->reserved || request->anew) return;
  request->user->cannot_grow = climb->is_short || request->user->open != NULL || gcap_thread_captures();
  gcap_status_t status = gcap_scratch_place(climb->scratch, request->user, request->bytes, &climb->block);
  request->user->cannot_grow = false;
  if (status == NULL) return;
  climb->failure = gcap_status_join(status, climb->failure);
  climb->is_short = false;  // of host memory
}

static void try_growing(climb_t* climb) {
  const gcap_scratch_request_t* request = climb->request;
  gcap_scratch_block_t* block = NULL;
  gcap_status_free(climb->failure);
  climb->failure = gcap_scratch_get_region(climb->scratch, request->bytes, request->reserved, &block, &climb->is_short);
  if (climb->failure == NULL) climb->failure = gcap_scratch_take(climb->scratch, request->user, request->bytes, &block);
  if (climb->failure == NULL) climb->block = block;
}

static bool goes_on(const climb_t* climb) { return climb->block == NULL && climb->is_short; }

// --- Rungs ----------------------------------------------------------------------------------------------------------

static void note_trouble(climb_t* climb, gcap_status_t status) {
  climb->trouble = gcap_status_join(climb->trouble, status);
}

// Memory that other threads fetch from upstream, or give back, and that counts for the limit meanwhile. Only for a
// while: upstream may be foreign code that calls this scratch, and then it is we whom it waits for.
static void wait_for_threads(climb_t* climb) {
  gcap_scratch_t* scratch = climb->scratch;
  for (int naps = 0; goes_on(climb) && scratch->num_absent > 0 && naps < kMaxNaps;) {
    const size_t num_absent = scratch->num_absent;
    for (; scratch->num_absent == num_absent && naps < kMaxNaps; ++naps) {
      gcap_scratch_step_out(scratch);
      nanosleep(&(struct timespec){.tv_nsec = kNapNs}, NULL);
      gcap_scratch_step_in(scratch);
    }
    try_placing(climb);
    if (goes_on(climb)) try_growing(climb);
  }
}

// What needs no wait for work.
static void free_up(climb_t* climb) {
  gcap_scratch_t* scratch = climb->scratch;
  gcap_scratch_settle(scratch, /*all=*/true);
  try_placing(climb);
  if (!goes_on(climb)) return;
  const size_t held_bytes = gcap_scratch_held_bytes(scratch);
  note_trouble(climb, gcap_scratch_give_back_idle(scratch));
  const bool gave_back = gcap_scratch_held_bytes(scratch) < held_bytes;
  if (gave_back) try_growing(climb);
  if (!goes_on(climb) || (climb->has_trimmed && !gave_back)) return;
  climb->has_trimmed = true;
  gcap_scratch_step_out(scratch);
  gcap_status_t status = gcap_allocator_trim(scratch->upstream);
  gcap_scratch_step_in(scratch);
  note_trouble(climb, status);
  try_growing(climb);
}

static void wait_for_stream(climb_t* climb) {
  gcap_scratch_t* scratch = climb->scratch;
  gcap_scratch_stream_t* user = climb->request->user;
  if (gcap_scratch_pool_first(&user->pool) == NULL || gcap_scratch_is_nobody(scratch, user)) return;  // nothing to gain
  gcap_stream_t* stream = gcap_scratch_user_stream(user);
  gcap_scratch_step_out(scratch);
  gcap_status_t status = gcap_stream_synchronize(stream);
  gcap_scratch_step_in(scratch);
  note_trouble(climb, status);
  if (status == NULL) free_up(climb);
}

static void wait_for_device(climb_t* climb) {
  if (gcap_scratch_pool_first(&climb->scratch->nobody.pool) == NULL) return;
  bool waited = false;
  note_trouble(climb, gcap_scratch_wait_for_device(climb->scratch, &waited));
  if (waited) free_up(climb);
}

static void climb_ladder(climb_t* climb) {
  static void (*const rungs[])(climb_t*) = {wait_for_threads, free_up, wait_for_stream, wait_for_device};
  for (size_t i = 0; i < sizeof(rungs) / sizeof(rungs[0]) && goes_on(climb); ++i) rungs[i](climb);
}

// --- The request ----------------------------------------------------------------------------------------------------

static gcap_status_t describe_failure(climb_t* climb) {
  const gcap_scratch_request_t* request = climb->request;
  char whom[80] = "any stream";
  if (request->reserved) {
    snprintf(whom, sizeof(whom), "a reserve");
  } else if (!gcap_scratch_is_nobody(climb->scratch, request->user)) {
    snprintf(whom, sizeof(whom), "stream %p, which has no open reservation,",
             (void*)gcap_stream_handle(gcap_scratch_user_stream(request->user)));
  }
  char text[2048];
  gcap_scratch_describe_held(climb->scratch, "; ", text, sizeof(text));
  gcap_status_t status = gcap_status_join(climb->failure, climb->trouble);
  return gcap_status_annotate(status, gcap_status_code(status),
                              "scratch has no %zu bytes free for %s and cannot grow (%s)", request->bytes, whom, text);
}

static gcap_status_t reservation_lacks(gcap_scratch_t* scratch, const gcap_scratch_request_t* request) {
  const size_t bytes = request->bytes;
  const char* label = request->user->open->label;
  atomic_fetch_add_explicit(&scratch->deficit_bytes, bytes, memory_order_relaxed);
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED,
                     "the scratch reservation of %s%sstream %p holds %zu bytes and lacks %zu more; scratch grows by "
                     "these at the next allocation outside a capture",
                     label, label[0] != '\0' ? " on " : "",
                     (void*)gcap_stream_handle(gcap_scratch_user_stream(request->user)), request->user->open->bytes,
                     bytes);
}

void gcap_scratch_log_trouble(gcap_scratch_request_t* request) {
  if (request->trouble == NULL) return;
  gcap_log(GCAP_LOG_WARNING, "scratch found the memory that it lacked, but something failed meanwhile: %s",
           gcap_status_message(request->trouble));
  gcap_status_free(request->trouble);
  request->trouble = NULL;
}

// Memory that was freed for nobody knows whom: a wait gives it back to such requests, as cudaFree would have.
static void wait_instead_of_growing(climb_t* climb) {
  const gcap_scratch_request_t* request = climb->request;
  if (request->reserved || !gcap_scratch_is_nobody(climb->scratch, request->user)) return;
  if (!gcap_scratch_wait_would_help(climb->scratch, request->bytes)) return;
  bool waited = false;
  note_trouble(climb, gcap_scratch_wait_for_device(climb->scratch, &waited));
  if (waited) try_placing(climb);
}

gcap_status_t gcap_scratch_obtain(gcap_scratch_t* scratch, gcap_scratch_request_t* request,
                                  gcap_scratch_block_t** out_block) {
  climb_t climb = {.scratch = scratch, .request = request};
  try_placing(&climb);
  if (climb.block == NULL && climb.failure == NULL && request->user->open != NULL && !request->anew) {
    return reservation_lacks(scratch, request);
  }
  if (climb.block == NULL && climb.failure == NULL) wait_instead_of_growing(&climb);
  if (climb.block == NULL && climb.failure == NULL) try_growing(&climb);
  if (goes_on(&climb) && !gcap_thread_captures() && !scratch->test_hooks.fail_at_once) climb_ladder(&climb);
  *out_block = climb.block;
  if (climb.block == NULL) return describe_failure(&climb);
  gcap_status_free(climb.failure);
  request->trouble = climb.trouble;  // to be logged when the block has its place: a sink may call this scratch
  return NULL;
}
