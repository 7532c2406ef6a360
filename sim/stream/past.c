// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a stream is known to come after, for pools that follow events.
//
// The idea: a free is a point: a stream and the number of its frees up to then. A stream's past is a short list of
// points; a record copies it into the event, with the stream's own point, and a wait joins the event's into the
// stream's. This is by the calls made, whether or not the work has run, and so the same on every run. The list is
// immutable and counted: records share it. It is kept only while some pool has pending frees, and it forgets all but
// the latest points, which costs a reuse of memory and nothing else. Locking: the global mutex.
#include "sim/stream/past.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/heap.h"
#include "sim/memory/pool.h"
#include "sim/stream/event.h"
#include "sim/stream/stream.h"

void gcap_sim_past_release(gcap_sim_past_t* past) {
  if (past != NULL && --past->refs == 0) free(past);
}

gcap_sim_past_t* gcap_sim_past_retain(gcap_sim_past_t* past) {
  if (past != NULL) ++past->refs;
  return past;
}

bool gcap_sim_past_holds(const gcap_sim_past_t* past, gcap_sim_point_t point) {
  for (size_t i = 0; past != NULL && i < past->count; ++i) {
    if (past->points[i].stream == point.stream) return point.order <= past->points[i].order;
  }
  return false;
}

// The latest come last; when the list is full, the first one goes.
static void add(gcap_sim_past_t* past, gcap_sim_point_t point) {
  if (point.order == 0 || gcap_sim_past_holds(past, point)) return;
  size_t at = 0;
  while (at < past->count && past->points[at].stream != point.stream) ++at;
  if (at == past->count && at == GCAP_SIM_MAX_PAST) at = 0;
  if (at < past->count) {
    --past->count;
    memmove(&past->points[at], &past->points[at + 1], (past->count - at) * sizeof(gcap_sim_point_t));
  }
  past->points[past->count++] = point;
}

void gcap_sim_past_learn(gcap_sim_stream_t* stream, const gcap_sim_event_t* event) {
  if (!gcap_sim_pools_pending()) {
    gcap_sim_past_release(stream->past);
    stream->past = NULL;
    return;
  }
  if (event->point.order == 0 && event->past == NULL) return;
  gcap_sim_past_t* past = gcap_sim_calloc(1, sizeof(*past));
  if (stream->past != NULL) *past = *stream->past;
  past->refs = 1;
  for (size_t i = 0; event->past != NULL && i < event->past->count; ++i) add(past, event->past->points[i]);
  add(past, event->point);
  gcap_sim_past_release(stream->past);
  stream->past = past;
}
