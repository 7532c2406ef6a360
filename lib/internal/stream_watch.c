// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The watchers of the ends of streams: a list of the process. Streams end seldom, so one mutex is over all of it, also
// while the watchers are called; a watcher's own lock is taken below it.

#include "lib/internal/stream_watch.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static gcap_stream_watch_t* first;

void gcap_stream_watch_add(gcap_stream_watch_t* watch) {
  pthread_mutex_lock(&mutex);
  watch->previous = NULL;
  watch->next = first;
  if (first != NULL) first->previous = watch;
  first = watch;
  pthread_mutex_unlock(&mutex);
}

void gcap_stream_watch_remove(gcap_stream_watch_t* watch) {
  pthread_mutex_lock(&mutex);
  if (watch->next != NULL) watch->next->previous = watch->previous;
  *(watch->previous != NULL ? &watch->previous->next : &first) = watch->next;
  pthread_mutex_unlock(&mutex);
}

void gcap_stream_watch_tell(struct gcap_stream* stream) {
  pthread_mutex_lock(&mutex);
  for (gcap_stream_watch_t* watch = first; watch != NULL; watch = watch->next) watch->stream_ends(watch, stream);
  pthread_mutex_unlock(&mutex);
}
