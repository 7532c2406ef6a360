// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Host threads as the runtime sees them: current device, last error, capture mode, per-thread default streams.
//
// The idea: a record a thread, made at its first call and freed when the thread ends, after the runtime has let go of
// what it keeps there: the thread's streams drain, and are retired like destroyed ones. Invariant: only the owner
// touches its record, so the record itself needs no lock; what it points to belongs to the global mutex.
#include "sim/base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "sim/base/die.h"
#include "sim/base/heap.h"

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static _Thread_local gcap_sim_thread_t* current;
static void (*at_end)(gcap_sim_thread_t* thread);

void gcap_sim_thread_at_end(void (*function)(gcap_sim_thread_t* thread)) { at_end = function; }

static void thread_ends(void* record) {
  gcap_sim_thread_t* thread = record;
  if (at_end != NULL) at_end(thread);
  current = NULL;
  free(thread);
}

static const char* call_under_way(void) { return current != NULL && current->in_call ? current->call : ""; }

static void create_key(void) {
  gcap_sim_die_in(call_under_way);
  if (pthread_key_create(&key, thread_ends) != 0) gcap_sim_die("the process has no thread-specific key left");
}

gcap_sim_thread_t* gcap_sim_thread(void) {
  static atomic_uint_fast64_t next_id = 1;
  if (current == NULL) {
    pthread_once(&key_once, create_key);
    current = gcap_sim_calloc(1, sizeof(*current));
    current->id = atomic_fetch_add(&next_id, 1);
    current->call = "the simulator";
    pthread_setspecific(key, current);
  }
  return current;
}
