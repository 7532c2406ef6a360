// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The gate between captures and waits for a whole device: two counts, one of which is zero. They are the process's, as
// the runtime's rule is. A capture begins seldom, and waits here no longer than the device is waited for.
// Locking: one mutex, over both; nothing is called while it is held.

#include "lib/internal/capture_gate.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static atomic_uint num_inside;
static uint32_t num_closers, num_waiting;

void gcap_capture_gate_enter(void) {
  int cancel_state = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
                         &cancel_state);  // a thread that ended in the wait would keep the mutex
  pthread_mutex_lock(&mutex);
  ++num_waiting;
  while (num_closers > 0) pthread_cond_wait(&opened, &mutex);
  --num_waiting;
  atomic_fetch_add_explicit(&num_inside, 1, memory_order_relaxed);
  pthread_mutex_unlock(&mutex);
  pthread_setcancelstate(cancel_state, NULL);
}

void gcap_capture_gate_leave(void) {
  pthread_mutex_lock(&mutex);
  atomic_fetch_sub_explicit(&num_inside, 1, memory_order_relaxed);
  pthread_mutex_unlock(&mutex);
}

uint32_t gcap_capture_gate_num_inside(void) { return atomic_load_explicit(&num_inside, memory_order_relaxed); }

bool gcap_capture_gate_try_close(void) {
  pthread_mutex_lock(&mutex);
  bool may = gcap_capture_gate_num_inside() == 0 && num_waiting == 0;  // else waits in turn would starve captures
  if (may) ++num_closers;
  pthread_mutex_unlock(&mutex);
  return may;
}

void gcap_capture_gate_open(void) {
  pthread_mutex_lock(&mutex);
  if (--num_closers == 0) pthread_cond_broadcast(&opened);
  pthread_mutex_unlock(&mutex);
}
