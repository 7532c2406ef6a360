// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Steps with streams: owned, wrapped and of a pool; notifications, attachments, deferred releases.
#include "lib/stream/inner.h"
#include "test/fuzz/api_world.h"

// --- Streams --------------------------------------------------------------------------------------------------------

static void create_stream(int slot) {
  fuzz_stream_t* stream = &fuzz_world.streams[slot];
  stream->device = (int)fuzz_draw(FUZZ_DEVICES);
  fuzz_ok(gcap_stream_create(fuzz_draw(16) == 0 ? 77 : stream->device, &stream->stream));
}

// One of the user's streams, or a default stream.
static void wrap_stream(int slot) {
  fuzz_stream_t* stream = &fuzz_world.streams[slot];
  const unsigned which = fuzz_draw(FUZZ_RAW_STREAMS + 3);
  static const cudaStream_t defaults[] = {NULL, cudaStreamLegacy, cudaStreamPerThread};
  const cudaStream_t handle = which < FUZZ_RAW_STREAMS ? fuzz_world.raw[which] : defaults[which - FUZZ_RAW_STREAMS];
  stream->device = which == 2 ? 1 : 0;
  const unsigned how = fuzz_draw(8);
  fuzz_ok(gcap_stream_wrap(handle, (gcap_stream_ownership_t)(how % 4),
                           how / 4 ? GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM : 0, stream->device, &stream->stream));
}

static void destroy_notifications_of(int slot) {
  for (int i = 0; i < FUZZ_NOTIFICATIONS; ++i) {
    if (fuzz_world.notifications[i] == NULL || fuzz_world.notification_streams[i] != slot) continue;
    gcap_notification_destroy(fuzz_world.notifications[i]);
    fuzz_world.notifications[i] = NULL;
  }
}

static void destroy_stream(int slot) {
  fuzz_stream_t* stream = &fuzz_world.streams[slot];
  if (stream->users > 0 || fuzz_world.in_sink > 0) return;
  if (stream->forked && gcap_capture_current() != NULL) return;
  if (!stream->of_pool) destroy_notifications_of(slot);
  ++stream->users;
  stream->ends = true;
  const bool gone = fuzz_gone(gcap_stream_destroy(stream->stream));
  stream->ends = false;
  --stream->users;
  if (gone && !stream->of_pool) fuzz_forget_stream(slot);
}

static gcap_status_t make_attachment(gcap_stream_t* stream, void** out_object) {
  (void)stream;
  fuzz_reenter();
  if (fuzz_draw(8) == 0) return GCAP_STATUS(GCAP_UNAVAILABLE, "no object today");
  ++fuzz_world.released;
  *out_object = &fuzz_world;
  return NULL;
}

static void attach(fuzz_stream_t* stream) {
  static const gcap_attachment_key_t keys[] = {
      {"first", make_attachment, fuzz_release}, {"second", make_attachment, fuzz_release}, {"no function", NULL, NULL}};
  void* object;
  ++stream->users;
  fuzz_ok(gcap_stream_attachment(stream->stream, &keys[fuzz_draw(3)], &object));
  --stream->users;
}

static void release_and_defer_again(void* user) {
  fuzz_stream_t* stream = user;
  --fuzz_world.released;
  if (fuzz_draw(2) == 0 || stream->stream == NULL) return;
  ++fuzz_world.released;
  if (!fuzz_ok(gcap_stream_defer(stream->stream, fuzz_release, NULL))) --fuzz_world.released;
}

static void defer(fuzz_stream_t* stream) {
  // In a scope the release is the graph's, which may outlive the stream.
  const bool again = fuzz_draw(2) == 0 && !gcap_thread_is_capturing();
  ++fuzz_world.released;
  if (!fuzz_ok(
          gcap_stream_defer(stream->stream, again ? release_and_defer_again : fuzz_release, again ? stream : NULL))) {
    --fuzz_world.released;
  }
}

void fuzz_stream_step(void) {
  const int slot = (int)fuzz_draw(FUZZ_STREAMS);
  fuzz_stream_t* stream = &fuzz_world.streams[slot];
  const unsigned what = fuzz_draw(10);
  if (stream->stream == NULL) {
    if (slot == FUZZ_POOL_STREAM) return;
    if (what < 6)
      create_stream(slot);
    else
      wrap_stream(slot);
    return;
  }
  ++stream->users;
  switch (what) {
    case 0: fuzz_ok(gcap_stream_synchronize(stream->stream)); break;
    case 1:
    case 2: fuzz_ok(gcap_stream_end_run(stream->stream, what == 1)); break;
    case 3: attach(stream); break;
    case 4:
    case 5: defer(stream); break;
    case 6: gcap_stream_from_handle(gcap_stream_handle(stream->stream)); break;
    default: break;
  }
  --stream->users;
  if (what >= 8) destroy_stream(slot);
}

// --- Timeline -------------------------------------------------------------------------------------------------------

void fuzz_timeline_step(void) {
  const unsigned which = fuzz_draw(FUZZ_NOTIFICATIONS);
  gcap_notification_t** notification = &fuzz_world.notifications[which];
  const int slot = fuzz_draw_stream();
  gcap_stream_t* stream = slot < 0 ? NULL : fuzz_world.streams[slot].stream;
  if (*notification == NULL) {
    if (slot >= 0 && fuzz_world.streams[slot].ends) return;
    fuzz_world.notification_streams[which] = slot;
    fuzz_ok(gcap_notification_create(stream, notification));
    return;
  }
  switch (fuzz_draw(5)) {
    case 0:
    case 1: fuzz_ok(gcap_notification_record(*notification)); break;
    case 2: fuzz_ok(gcap_notification_wait(*notification, stream)); break;
    case 3: fuzz_ok(gcap_notification_wait_on_host(*notification)); break;
    default:
      if (fuzz_world.in_sink > 0) return;
      gcap_notification_destroy(*notification);
      *notification = NULL;
  }
}

// --- Pool -----------------------------------------------------------------------------------------------------------

static void acquire(void) {
  fuzz_stream_t* stream = &fuzz_world.streams[FUZZ_POOL_STREAM];
  if (stream->stream != NULL) return;
  *stream = (fuzz_stream_t){.device = 0, .of_pool = true};
  fuzz_ok(gcap_stream_pool_acquire(fuzz_world.pool, &stream->stream));
}

static void release(void) {
  fuzz_stream_t* stream = &fuzz_world.streams[FUZZ_POOL_STREAM];
  if (stream->stream == NULL || stream->users > 0 || fuzz_world.in_sink > 0) return;
  // Where no call answers whether the stream captures, it would be released, and nobody could end the capture.
  if (fuzz_world.mode == FUZZ_FAULTS && fuzz_capture_of(gcap_stream_handle(stream->stream)) != 0) return;
  if (!fuzz_gone(gcap_stream_pool_release(fuzz_world.pool, stream->stream))) return;
  // The pool may end before a notification of its stream.
  destroy_notifications_of(FUZZ_POOL_STREAM);
  fuzz_forget_stream(FUZZ_POOL_STREAM);
}

void fuzz_pool_step(void) {
  if (fuzz_world.pool_ends) return;
  if (fuzz_world.pool == NULL) {
    fuzz_ok(gcap_stream_pool_create(0, &fuzz_world.pool));
    return;
  }
  const unsigned what = fuzz_draw(6);
  if (what < 3) acquire();
  if (what == 3 || what == 4) release();
  if (what < 5 || fuzz_world.in_sink > 0) return;
  fuzz_world.pool_ends = true;
  if (fuzz_gone(gcap_stream_pool_destroy(fuzz_world.pool))) fuzz_world.pool = NULL;
  fuzz_world.pool_ends = false;
}

// --- The end --------------------------------------------------------------------------------------------------------

void fuzz_end_streams(void) {
  for (int i = 0; i < FUZZ_NOTIFICATIONS; ++i) {
    gcap_notification_destroy(fuzz_world.notifications[i]);
    fuzz_world.notifications[i] = NULL;
  }
  if (fuzz_world.streams[FUZZ_POOL_STREAM].stream != NULL) release();
  FUZZ_CHECK(fuzz_world.streams[FUZZ_POOL_STREAM].stream == NULL, "the pool's stream is not taken back");
  if (fuzz_world.pool != NULL)
    FUZZ_CHECK(fuzz_gone(gcap_stream_pool_destroy(fuzz_world.pool)), "the pool stays: %s", fuzz_world.refusal);
  fuzz_world.pool = NULL;
  for (int i = 0; i < FUZZ_STREAMS; ++i) {
    if (fuzz_world.streams[i].stream != NULL) destroy_stream(i);
    FUZZ_CHECK(fuzz_world.streams[i].stream == NULL, "stream %d stays: %s", i, fuzz_world.refusal);
  }
  for (int i = 0; i < FUZZ_RAW_STREAMS; ++i) {
    FUZZ_CHECK(cudaStreamDestroy(fuzz_world.raw[i]) == cudaSuccess, "the user's stream %d is broken", i);
  }
}
