// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Host threads as the runtime sees them: current device, last error, capture mode, per-thread default streams.
//
// The idea: a record a thread, made at its first call and freed when the thread ends. Its streams drain first: they are
// retired like destroyed ones. Invariant: only the owner touches its record, so the record itself needs no lock; the
// streams it points to belong to the global mutex.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "call.h"
#include "core.h"

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static _Thread_local gcap_sim_thread_t* current;

static void thread_ends(void* record) {
  gcap_sim_thread_t* thread = record;
  gcap_sim_lock();
  gcap_sim_turns_thread_ends(thread);
  gcap_sim_log_thread_ends(thread);
  for (int i = 0; i < GCAP_SIM_MAX_DEVICES; ++i) {
    if (thread->streams[i]) gcap_sim_stream_retire(thread->streams[i]);
  }
  gcap_sim_origin_release(thread->site.origin);
  gcap_sim_unlock();
  current = NULL;
  free(thread);
}

static void create_key(void) {
  if (pthread_key_create(&key, thread_ends) != 0) gcap_sim_die("the process has no thread-specific key left");
}

gcap_sim_thread_t* gcap_sim_thread(void) {
  static atomic_uint_fast64_t next_id = 1;
  if (!current) {
    pthread_once(&key_once, create_key);
    current = gcap_sim_calloc(1, sizeof(*current));
    current->id = atomic_fetch_add(&next_id, 1);
    current->call = "the simulator";
    pthread_setspecific(key, current);
  }
  return current;
}
