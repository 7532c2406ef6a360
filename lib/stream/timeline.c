// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Timelines: which stream comes after which, known without asking the driver.
//
// A stream's sync id counts its notifications and synchronizations. A notification carries a copy of all that its
// producer knew when it was recorded, so one wait passes on what the producer had waited for. Knowledge is an array of
// points by rising serial; two arrays are merged in one walk. Before an array grows, points of streams that are gone
// are dropped, from the stream's array and from the notification's, so that no array is larger than four times the
// number of live streams.
//
// When the host has waited for a stream, the work that the stream knew of is finished too, and the streams concerned
// are updated.
//
// Claiming less knowledge than there is is safe: memory is then reused later. So when memory is short, less is claimed.
//
// Locking: only the thread that uses a stream changes what the stream knows; others read it. A point is raised in place
// by one store: a reader sees the old or the new value, and both are true. While cells move, known_mutex is held and
// the sequence is odd; a reader that is disturbed too often takes the mutex. Cells stop moving once each pair of
// streams has met. A release store at the end of a wait pairs with the acquire of the question. The registry's mutex
// guards the list of live streams.

#include <stdlib.h>

#include "lib/internal/grow.h"
#include "lib/stream/stream_internal.h"

enum { kFirstCapacity = 8 };

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static gcap_stream_t* live_streams;  // by falling serial
static uint64_t next_serial = 1;

void gcap_timeline_join(gcap_stream_t* stream) {
  pthread_mutex_init(&stream->known_mutex, NULL);
  pthread_mutex_lock(&registry_mutex);
  stream->serial = next_serial++;
  stream->next_live = live_streams;
  if (live_streams != NULL) live_streams->previous_live = stream;
  live_streams = stream;
  pthread_mutex_unlock(&registry_mutex);
}

void gcap_timeline_leave(gcap_stream_t* stream) {
  pthread_mutex_lock(&registry_mutex);
  if (stream->previous_live != NULL) {
    stream->previous_live->next_live = stream->next_live;
  } else {
    live_streams = stream->next_live;
  }
  if (stream->next_live != NULL) stream->next_live->previous_live = stream->previous_live;
  pthread_mutex_unlock(&registry_mutex);
  gcap_timeline_knowledge_t* known = atomic_load_explicit(&stream->known, memory_order_relaxed);
  while (known != NULL) {
    gcap_timeline_knowledge_t* outgrown = known->outgrown;
    free(known);
    known = outgrown;
  }
  pthread_mutex_destroy(&stream->known_mutex);
}

// --- What a stream knows, for the thread that uses it ---------------------------------------------------------------

static gcap_timeline_knowledge_t* known_of(const gcap_stream_t* stream) {
  return atomic_load_explicit(&stream->known, memory_order_relaxed);
}

static size_t count_of(const gcap_timeline_knowledge_t* known) {
  return known != NULL ? atomic_load_explicit(&known->count, memory_order_relaxed) : 0;
}

static gcap_timeline_point_t get_point(const gcap_timeline_knowledge_t* known, size_t i) {
  return (gcap_timeline_point_t){atomic_load_explicit(&known->cells[i].serial, memory_order_relaxed),
                                 atomic_load_explicit(&known->cells[i].sync_id, memory_order_relaxed)};
}

static void set_point(gcap_timeline_knowledge_t* known, size_t i, gcap_timeline_point_t point) {
  atomic_store_explicit(&known->cells[i].serial, point.serial, memory_order_release);
  atomic_store_explicit(&known->cells[i].sync_id, point.sync_id, memory_order_release);
}

void gcap_timeline_copy_known(const gcap_stream_t* stream, gcap_timeline_points_t* out_points) {
  const gcap_timeline_knowledge_t* known = known_of(stream);
  size_t count = count_of(known);
  out_points->count = 0;
  if (!gcap_grow(&out_points->points, &out_points->capacity, count, sizeof(*out_points->points))) return;
  for (size_t i = 0; i < count; ++i) out_points->points[i] = get_point(known, i);
  out_points->count = count;
}

// Raises the points that are known already, and gives the number of the others. A stream need not know itself.
static size_t raise_known(const gcap_stream_t* stream, const gcap_timeline_points_t* points) {
  gcap_timeline_knowledge_t* known = known_of(stream);
  size_t count = count_of(known);
  size_t missing = 0;
  for (size_t i = 0, at = 0; i < points->count; ++i) {
    const gcap_timeline_point_t* point = &points->points[i];
    while (at < count && get_point(known, at).serial < point->serial) ++at;
    if (at == count || get_point(known, at).serial != point->serial) {
      missing += point->serial != stream->serial;
    } else if (get_point(known, at).sync_id < point->sync_id) {
      atomic_store_explicit(&known->cells[at].sync_id, point->sync_id, memory_order_release);
    }
  }
  return missing;
}

static void begin_move(gcap_stream_t* stream) {
  pthread_mutex_lock(&stream->known_mutex);
  gcap_sequence_begin_change(&stream->known_sequence);
}

static void end_move(gcap_stream_t* stream) {
  gcap_sequence_end_change(&stream->known_sequence);
  pthread_mutex_unlock(&stream->known_mutex);
}

// For serials asked for in rising order: tells whether each is of a live stream. Called with the registry's mutex held.
static bool is_live(const gcap_stream_t** oldest_left, uint64_t serial) {
  const gcap_stream_t* stream = *oldest_left;
  while (stream != NULL && stream->serial < serial) stream = stream->previous_live;
  *oldest_left = stream;
  return stream != NULL && stream->serial == serial;
}

static const gcap_stream_t* oldest_live(void) {
  const gcap_stream_t* stream = live_streams;
  while (stream != NULL && stream->next_live != NULL) stream = stream->next_live;
  return stream;
}

// Drops what is known, and what is to be learned, of streams that are gone.
static void forget_dead_streams(gcap_stream_t* stream, gcap_timeline_points_t* points) {
  pthread_mutex_lock(&registry_mutex);
  const gcap_stream_t* oldest_left = oldest_live();
  size_t kept = 0;
  for (size_t i = 0; i < points->count; ++i) {
    if (is_live(&oldest_left, points->points[i].serial)) points->points[kept++] = points->points[i];
  }
  points->count = kept;

  gcap_timeline_knowledge_t* known = known_of(stream);
  if (known != NULL) {
    begin_move(stream);
    oldest_left = oldest_live();
    kept = 0;
    for (size_t i = 0, count = count_of(known); i < count; ++i) {
      const gcap_timeline_point_t point = get_point(known, i);
      if (is_live(&oldest_left, point.serial)) set_point(known, kept++, point);
    }
    atomic_store_explicit(&known->count, kept, memory_order_release);
    end_move(stream);
  }
  pthread_mutex_unlock(&registry_mutex);
}

// Makes room for `missing` points more, and for as many again, so that dead ones are looked for seldom.
static bool grow(gcap_stream_t* stream, size_t missing) {
  gcap_timeline_knowledge_t* known = known_of(stream);
  size_t count = count_of(known);
  size_t capacity = known != NULL ? known->capacity : kFirstCapacity;
  while (capacity < 2 * (count + missing)) capacity *= 2;
  if (known != NULL && capacity == known->capacity) return true;
  gcap_timeline_knowledge_t* grown = calloc(1, sizeof(*grown) + capacity * sizeof(grown->cells[0]));
  if (grown == NULL) return false;
  grown->capacity = capacity;
  grown->outgrown = known;
  for (size_t i = 0; i < count; ++i) set_point(grown, i, get_point(known, i));
  atomic_store_explicit(&grown->count, count, memory_order_relaxed);
  // A reader still in the old one finds there what it finds here.
  atomic_store_explicit(&stream->known, grown, memory_order_release);
  return true;
}

// Puts the points that are not known yet between the others, from the end so that each moves once. There is room.
static void insert_missing(gcap_stream_t* stream, const gcap_timeline_points_t* points, size_t missing) {
  gcap_timeline_knowledge_t* known = known_of(stream);
  begin_move(stream);
  size_t left = count_of(known);
  size_t to = left + missing;
  atomic_store_explicit(&known->count, to, memory_order_release);
  for (size_t i = points->count; i > 0; --i) {
    const gcap_timeline_point_t point = points->points[i - 1];
    while (left > 0 && get_point(known, left - 1).serial > point.serial) {
      set_point(known, --to, get_point(known, left - 1));
      --left;
    }
    bool is_known = left > 0 && get_point(known, left - 1).serial == point.serial;
    if (!is_known && point.serial != stream->serial) set_point(known, --to, point);
  }
  end_move(stream);
}

void gcap_timeline_learn(gcap_stream_t* stream, gcap_timeline_points_t* points) {
  size_t missing = raise_known(stream, points);
  if (missing == 0) return;
  const gcap_timeline_knowledge_t* known = known_of(stream);
  if (known == NULL || count_of(known) + missing > known->capacity) {
    forget_dead_streams(stream, points);
    missing = raise_known(stream, points);
    if (missing == 0 || !grow(stream, missing)) return;
  }
  insert_missing(stream, points, missing);
}

// --- Questions, from any thread -------------------------------------------------------------------------------------

void gcap_timeline_finish_before(gcap_stream_t* stream, uint64_t sync_id) {
  // Several threads may raise it; the highest stays.
  uint_fast64_t finished = atomic_load_explicit(&stream->finished_id, memory_order_relaxed);
  while (finished < sync_id && !atomic_compare_exchange_weak_explicit(&stream->finished_id, &finished, sync_id,
                                                                      memory_order_release, memory_order_relaxed)) {
  }
}

// For points by falling serial. Called with the registry's mutex held.
static void finish_point(gcap_stream_t** newest_left, gcap_timeline_point_t point) {
  gcap_stream_t* stream = *newest_left;
  while (stream != NULL && stream->serial > point.serial) stream = stream->next_live;
  *newest_left = stream;
  if (stream != NULL && stream->serial == point.serial) gcap_timeline_finish_before(stream, point.sync_id);
}

void gcap_timeline_finish_points(const gcap_timeline_points_t* points) {
  if (points->count == 0) return;
  pthread_mutex_lock(&registry_mutex);
  gcap_stream_t* newest_left = live_streams;
  for (size_t i = points->count; i > 0; --i) finish_point(&newest_left, points->points[i - 1]);
  pthread_mutex_unlock(&registry_mutex);
}

void gcap_timeline_finish(gcap_stream_t* stream) {
  gcap_timeline_finish_before(stream, atomic_fetch_add_explicit(&stream->sync_id, 1, memory_order_relaxed) + 1);
  const gcap_timeline_knowledge_t* known = known_of(stream);
  size_t count = count_of(known);
  if (count == 0) return;
  pthread_mutex_lock(&registry_mutex);
  gcap_stream_t* newest_left = live_streams;
  for (size_t i = count; i > 0; --i) finish_point(&newest_left, get_point(known, i - 1));
  pthread_mutex_unlock(&registry_mutex);
}

uint64_t gcap_stream_sync_id(const gcap_stream_t* stream) {
  return atomic_load_explicit(&stream->sync_id, memory_order_relaxed);
}

bool gcap_stream_has_finished(const gcap_stream_t* stream, uint64_t sync_id) {
  return atomic_load_explicit(&stream->finished_id, memory_order_acquire) > sync_id;
}

// The point up to which the serial is known, or 0. Where cells move meanwhile it may be anything; the sequence tells.
static uint64_t find_sync_id(const gcap_timeline_knowledge_t* known, uint64_t serial) {
  if (known == NULL) return 0;
  size_t first = 0;
  size_t end = atomic_load_explicit(&known->count, memory_order_acquire);
  while (first < end) {
    size_t middle = first + (end - first) / 2;
    uint64_t at = atomic_load_explicit(&known->cells[middle].serial, memory_order_acquire);
    if (at == serial) return atomic_load_explicit(&known->cells[middle].sync_id, memory_order_acquire);
    if (at < serial) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return 0;
}

static uint64_t known_sync_id(const gcap_stream_t* stream, uint64_t serial) {
  for (int disturbances = 0; disturbances < GCAP_SEQUENCE_PATIENCE; ++disturbances) {
    uint64_t number = 0;
    if (!gcap_sequence_begin_read(&stream->known_sequence, &number)) continue;
    uint64_t sync_id = find_sync_id(atomic_load_explicit(&stream->known, memory_order_acquire), serial);
    if (gcap_sequence_end_read(&stream->known_sequence, number)) return sync_id;
  }
  pthread_mutex_t* mutex = (pthread_mutex_t*)&stream->known_mutex;  // the question changes nothing a caller can see
  pthread_mutex_lock(mutex);
  uint64_t sync_id = find_sync_id(atomic_load_explicit(&stream->known, memory_order_relaxed), serial);
  pthread_mutex_unlock(mutex);
  return sync_id;
}

// Two wrappers of one stream, as two sessions have of the application's, are one stream.
static bool are_one_stream(const gcap_stream_t* a, const gcap_stream_t* b) {
  return a == b || (a->id != 0 && a->id == b->id);
}

bool gcap_stream_has_waited(const gcap_stream_t* consumer, const gcap_stream_t* producer, uint64_t sync_id) {
  if (are_one_stream(consumer, producer) || gcap_stream_has_finished(producer, sync_id)) return true;
  return known_sync_id(consumer, producer->serial) > sync_id;
}
