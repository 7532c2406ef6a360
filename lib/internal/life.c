// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lives. The count is atomic and the end is one release store, so a life needs no lock. A thread's life hangs on a
// pthread key, whose destructor ends it.

#include "lib/internal/life.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/internal/forked.h"
#include "lib/internal/stay_loaded.h"

struct gcap_life {
  atomic_uint references;
  atomic_bool over;
};

gcap_life_t* gcap_life_create(void) {
  gcap_life_t* life = malloc(sizeof(*life));
  if (life == NULL) return NULL;
  atomic_init(&life->references, 1);
  atomic_init(&life->over, false);
  return life;
}

gcap_life_t* gcap_life_retain(gcap_life_t* life) {
  if (life != NULL) atomic_fetch_add_explicit(&life->references, 1, memory_order_relaxed);
  return life;
}

void gcap_life_release(gcap_life_t* life) {
  if (life == NULL) return;
  if (atomic_fetch_sub_explicit(&life->references, 1, memory_order_acq_rel) == 1) free(life);
}

void gcap_life_end(gcap_life_t* life) {
  if (life == NULL) return;
  atomic_store_explicit(&life->over, true, memory_order_release);
  gcap_life_release(life);
}

bool gcap_life_goes_on(const gcap_life_t* life) {
  return life == NULL || !atomic_load_explicit(&life->over, memory_order_acquire);
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
