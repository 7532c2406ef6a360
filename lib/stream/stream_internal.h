// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stream_internal.h: the stream's parts, shared by the files of this folder alone.
#ifndef GCAP_LIB_STREAM_STREAM_INTERNAL_H_
#define GCAP_LIB_STREAM_STREAM_INTERNAL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "gcap/stream.h"

// What one stream knows of another: it comes after everything issued there before point `sync_id`.
typedef struct known_point {
  uint64_t serial;
  uint64_t sync_id;
} known_point_t;

typedef struct knowledge {
  known_point_t* points;
  size_t count, capacity;
} knowledge_t;

typedef struct attachment {
  const gcap_attachment_key_t* key;
  void* object;
  struct attachment* older;
} attachment_t;

typedef struct deferred_release {
  cudaEvent_t passed;  // recorded when the release was asked for
  void (*release)(void* user);
  void* user;
  struct deferred_release* next;
} deferred_release_t;

// A stream's place in a pool (pool.c); all zero for a stream of none.
typedef struct pooled {
  gcap_stream_pool_t* pool;
  _Atomic(struct lane*) home;   // of the thread that acquired it last; NULL when that is gone
  atomic_bool is_out;           // acquired, not released
  gcap_stream_t* next_idle;     // on a lane's lists or the common one
  gcap_stream_t* next_of_pool;  // on the list of all
} pooled_t;

struct gcap_stream {
  cudaStream_t handle;
  int device_id;
  gcap_stream_ownership_t ownership;
  bool can_capture;

  // Timeline. `serial` is never used twice, so that knowledge of a stream that is gone matches no other.
  uint64_t serial;
  atomic_uint_fast64_t sync_id;
  atomic_uint_fast64_t finished_id;  // work issued at lower sync ids is finished
  pthread_mutex_t known_mutex;
  knowledge_t known;
  gcap_stream_t *previous_live, *next_live;  // under the registry's mutex

  attachment_t* attachments;     // newest first
  deferred_release_t* deferred;  // oldest first
  deferred_release_t** deferred_tail;

  pooled_t pooled;
};

// Puts the stream on the list of live ones and gives it a serial.
void timeline_join(gcap_stream_t* stream);
// Takes it off, and its points out of every other stream's knowledge.
void timeline_leave(gcap_stream_t* stream);
// Marks all work issued so far as finished.
void timeline_finish(gcap_stream_t* stream);

// Runs the releases whose point has passed; with `all`, every one: the caller has drained the stream.
gcap_status_t deferred_run(gcap_stream_t* stream, bool all);

// Ends the attachments, newest first, with the stream's device current. A status tells that it could not be made so.
gcap_status_t attachments_destroy(gcap_stream_t* stream);

// FAILED_PRECONDITION when the stream is in any capture state but none: also an invalidated capture is in the way.
gcap_status_t stream_check_not_capturing(const gcap_stream_t* stream, const char* operation);

#endif  // GCAP_LIB_STREAM_STREAM_INTERNAL_H_
