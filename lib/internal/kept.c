// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What is kept for ever: one list of the process, which only grows. Locking: one mutex, over its head.

#include "lib/internal/kept.h"

#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static gcap_kept_t* newest;

void gcap_keep_for_ever(gcap_kept_t* link) {
  pthread_mutex_lock(&mutex);
  link->next = newest;
  newest = link;
  pthread_mutex_unlock(&mutex);
}
