// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stream_internal.h: the stream's parts, shared by the files of this folder alone.
#ifndef GCAP_LIB_STREAM_STREAM_INTERNAL_H_
#define GCAP_LIB_STREAM_STREAM_INTERNAL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "gcap/stream.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/sequence.h"
#include "lib/internal/stream_table.h"
#include "lib/stream/inner.h"

// How often the end of a stream runs the releases that are there: a release may defer another, but not for ever.
#define GCAP_STREAM_LAST_ROUNDS 16

// What one stream knows of another: it comes after everything issued there before point `sync_id`.
typedef struct gcap_timeline_point {
  uint64_t serial;
  uint64_t sync_id;
} gcap_timeline_point_t;

// What a notification carries, by rising serial.
typedef struct gcap_timeline_points {
  gcap_timeline_point_t* points;
  size_t count, capacity;
} gcap_timeline_points_t;

// What a stream knows, by rising serial. Changed by the thread that uses the stream, read by any.
typedef struct gcap_timeline_knowledge {
  struct gcap_timeline_knowledge* outgrown;  // a reader may still be in it, so it goes with the stream
  size_t capacity;
  atomic_size_t count;
  struct {
    atomic_uint_fast64_t serial, sync_id;
  } cells[];
} gcap_timeline_knowledge_t;

typedef struct gcap_stream_attachment {
  const gcap_attachment_key_t* key;
  void* object;
  struct gcap_stream_attachment* older;
} gcap_stream_attachment_t;

typedef struct gcap_stream_deferred_release {
  uint64_t number;     // counts up over the stream's life
  cudaEvent_t passed;  // recorded when the release was asked for
  void (*release)(void* user);
  void* user;
  struct gcap_stream_deferred_release* next;
} gcap_stream_deferred_release_t;

// A stream's place in a pool (pool.c); all zero for a stream of none.
typedef struct gcap_stream_pooled {
  gcap_stream_pool_t* pool;
  _Atomic(struct lane*) home;   // of the thread that acquired it last; NULL when that is gone
  atomic_bool is_out;           // acquired, not released
  gcap_stream_t* next_idle;     // on a lane's lists or the common one
  gcap_stream_t* next_of_pool;  // on the list of all
} gcap_stream_pooled_t;

struct gcap_stream {
  cudaStream_t handle;
  unsigned long long id;  // the driver's, never used twice; 0: unknown
  int device_id;
  gcap_stream_ownership_t ownership;
  bool can_capture;
  gcap_stream_entry_t entry;  // for gcap_stream_from_handle

  // Timeline. `serial` is never used twice, so that knowledge of a stream that is gone matches no other.
  uint64_t serial;
  atomic_uint_fast64_t sync_id;
  atomic_uint_fast64_t finished_id;           // work issued at lower sync ids is finished
  _Atomic(gcap_timeline_knowledge_t*) known;  // NULL: nothing
  gcap_sequence_t known_sequence;
  pthread_mutex_t known_mutex;               // held while cells move
  gcap_stream_t *previous_live, *next_live;  // under the registry's mutex

  gcap_stream_attachment_t* attachments;     // newest first
  gcap_stream_deferred_release_t* deferred;  // oldest first
  gcap_stream_deferred_release_t** deferred_tail;
  uint64_t num_deferred;  // so far; the next one's number
  bool refuses_defers;    // it is being destroyed, and nobody would run what is deferred now
  int releases_running;   // deferred releases are being called

  gcap_stream_pooled_t pooled;
};

// Puts the stream on the list of live ones and gives it a serial.
void gcap_timeline_join(gcap_stream_t* stream);
// Takes it off, and frees what it knew. Others drop their points of it when they need the room.
void gcap_timeline_leave(gcap_stream_t* stream);
// Marks all work issued so far as finished, and what it had waited for. By the thread that uses the stream.
void gcap_timeline_finish(gcap_stream_t* stream);
// Marks what the points tell of as finished. From any thread.
void gcap_timeline_finish_points(const gcap_timeline_points_t* points);
// Marks all work issued before point `sync_id` as finished. From any thread.
void gcap_timeline_finish_before(gcap_stream_t* stream, uint64_t sync_id);
// Copies what the stream knows. Without memory it is nothing, which is safe.
void gcap_timeline_copy_known(const gcap_stream_t* stream, gcap_timeline_points_t* out_points);
// Adds to what the stream knows; points of streams that are gone may be taken out of `points`. Without memory for all
// of it the stream knows less, which is safe.
void gcap_timeline_learn(gcap_stream_t* stream, gcap_timeline_points_t* points);

// Runs the releases whose point has passed; with `all`, every one: the caller has drained the stream. Those that are
// deferred meanwhile, by the releases themselves, stay for the next time.
gcap_status_t gcap_stream_deferred_run(gcap_stream_t* stream, bool all);

// Ends the attachments, newest first, with the stream's device current. A status tells that it could not be made so.
gcap_status_t gcap_stream_attachments_destroy(gcap_stream_t* stream);

// FAILED_PRECONDITION when the stream is in any capture state but none: also an invalidated capture is in the way.
static inline gcap_status_t gcap_stream_check_not_capturing(const gcap_stream_t* stream, const char* operation) {
  return stream->can_capture ? gcap_check_stream_not_capturing(stream->handle, "%s", operation) : NULL;
}

// Tells whether the stream is in a capture.
static inline gcap_status_t gcap_stream_is_capturing(const gcap_stream_t* stream, bool* out_capturing) {
  *out_capturing = false;
  return stream->can_capture ? gcap_is_stream_capturing(stream->handle, out_capturing) : NULL;
}

#endif  // GCAP_LIB_STREAM_STREAM_INTERNAL_H_
