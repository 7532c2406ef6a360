// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lives. The count is atomic and the end is one release store, so a life needs no lock. A thread's life hangs on a
// pthread key, whose destructor ends it.

#include "lib/internal/life.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/stay_loaded.h"
#include "lib/internal/forked.h"

gcap_life_t* gcap_life_create(void) {
  gcap_life_t* life = malloc(sizeof(*life));
  if (life == NULL) return NULL;
  life->references = 1;
  life->over = false;
  return life;
}

gcap_life_t* gcap_life_retain(gcap_life_t* life) {
  if (life != NULL) __atomic_fetch_add(&life->references, 1, __ATOMIC_RELAXED);
  return life;
}

void gcap_life_release(gcap_life_t* life) {
  if (life == NULL) return;
  if (__atomic_fetch_sub(&life->references, 1, __ATOMIC_ACQ_REL) == 1) free(life);
}

void gcap_life_end(gcap_life_t* life) {
  if (life == NULL) return;
  __atomic_store_n(&life->over, true, __ATOMIC_RELEASE);
  gcap_life_release(life);
}

static pthread_key_t thread_key;
static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;
static bool has_thread_key;

static void end_thread_life(void* life) { gcap_life_end(life); }

static void make_thread_key(void) {
  gcap_watch_forks();
  gcap_stay_loaded();
  has_thread_key = pthread_key_create(&thread_key, end_thread_life) == 0;
}

gcap_life_t* gcap_thread_life(void) {
  pthread_once(&thread_key_once, make_thread_key);
  if (!has_thread_key) return NULL;
  gcap_life_t* life = pthread_getspecific(thread_key);
  if (life != NULL) return life;
  life = gcap_life_create();
  if (life == NULL || pthread_setspecific(thread_key, life) == 0) return life;
  gcap_life_release(life);
  return NULL;
}
