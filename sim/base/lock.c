// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The global mutex, and the queue of what must run without it.
//
// The idea: destructors that the program gave to user objects may call anything, so none runs while the mutex is held:
// it is queued, and run by whoever gives the mutex back next, after that. Locking: the queue is guarded by the mutex.
#include "sim/base/lock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"

typedef struct deferred {
  struct deferred* next;
  void (*function)(void* data);
  void* data;
} deferred_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static deferred_t* first_deferred;
static deferred_t* last_deferred;  // valid while there is a first

pthread_mutex_t* gcap_sim_mutex(void) { return &lock; }

void gcap_sim_lock(void) {
  if (gcap_sim_thread()->in_device_work) {
    gcap_sim_die("a kernel's twin calls CUDA or the simulator: no device code can");
  }
  pthread_mutex_lock(&lock);
}

static void run_deferred(deferred_t* first) {
  gcap_sim_thread_t* thread = gcap_sim_thread();
  bool before = thread->in_host_function;
  thread->in_host_function = true;
  while (first != NULL) {
    deferred_t* next = first->next;
    first->function(first->data);
    free(first);
    first = next;
  }
  thread->in_host_function = before;
}

void gcap_sim_unlock(void) {
  deferred_t* first = first_deferred;
  first_deferred = NULL;
  pthread_mutex_unlock(&lock);
  if (first != NULL) run_deferred(first);
}

void gcap_sim_defer(void (*function)(void* data), void* data) {
  deferred_t* added = gcap_sim_calloc(1, sizeof(*added));
  *added = (deferred_t){.function = function, .data = data};
  if (first_deferred != NULL) {
    last_deferred->next = added;
  } else {
    first_deferred = added;
  }
  last_deferred = added;
}
