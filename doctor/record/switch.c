// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Callbacks cost, so outside of captures there are few: those of calls that begin, end or use captures, or that pin
// memory, and those of the making and ending of streams and graphs.
//
// While a capture is open all of the driver's are enabled, one by one. To disable the domain would disable the few too,
// and another thread's capture that begins just then would not be seen. And CUPTI takes the enabling of a domain that
// was enabled before, and never disabled as a whole, for done (seen with CUPTI 13.0 on an H200: the second capture of a
// program had no calls). Locking: CUPTI wants changes of callbacks one at a time, so the lock is held over CUPTI's
// function, and nothing else.
#include "doctor/record/switch.h"

#include <pthread.h>
#include <stdatomic.h>

#include "doctor/record/driver_calls.h"

enum {
  kMaxOpen = 256,  // captures at once; more are not counted, and end with the others
};

static const uint8_t resources[] = {
    GCAP_CUPTI_STREAM_CREATED, GCAP_CUPTI_STREAM_DESTROY, GCAP_CUPTI_GRAPH_CREATED,      GCAP_CUPTI_GRAPH_DESTROY,
    GCAP_CUPTI_NODE_STARTS,    GCAP_CUPTI_NODE_CREATED,   GCAP_CUPTI_DEPENDENCY_CREATED, GCAP_CUPTI_EXEC_CREATED,
    GCAP_CUPTI_EXEC_DESTROY,   GCAP_CUPTI_NODE_CLONED,
};

static struct {
  const gcap_cupti_t* cupti;
  gcap_cupti_subscriber_t* subscriber;
  pthread_mutex_t lock;
  uint32_t open[kMaxOpen];  // streams
  uint32_t num_open;
  uint32_t last_callback;  // of the driver's, once that is known
  bool watches_frees, is_stopped;
  atomic_bool is_capturing;
  _Atomic uint32_t epoch;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_always_on(uint32_t callback) {
  const uint8_t role = gcap_driver_call(callback)->role;
  return role != GCAP_ROLE_NONE && (role != GCAP_ROLE_MANAGED_FREE || state.watches_frees);
}

static int enable(uint32_t on, uint32_t callback) {
  return state.cupti->EnableCallback(on, state.subscriber, GCAP_CUPTI_DRIVER, callback);
}

int gcap_switch_start(const gcap_cupti_t* cupti, gcap_cupti_subscriber_t* subscriber) {
  state.cupti = cupti;
  state.subscriber = subscriber;
  int result = GCAP_CUPTI_SUCCESS;
  pthread_mutex_lock(&state.lock);
  for (uint32_t i = 1; i < GCAP_NUM_DRIVER_CALLS; ++i) {
    // An older CUPTI does not know all.
    if (is_always_on(i)) enable(1, i);
  }
  for (size_t i = 0; i < sizeof(resources); ++i) {
    const int refused = cupti->EnableCallback(1, subscriber, GCAP_CUPTI_RESOURCE, resources[i]);
    if (refused != GCAP_CUPTI_SUCCESS) result = refused;
  }
  pthread_mutex_unlock(&state.lock);
  return result;
}

// With the lock held. An older CUPTI knows fewer callbacks: where the first pass found the last one, later ones end.
static void switch_others(uint32_t on) {
  const uint32_t end = state.last_callback != 0 ? state.last_callback + 1 : GCAP_NUM_DRIVER_CALLS;
  for (uint32_t i = 1; i < end; ++i) {
    if (is_always_on(i) || enable(on, i) != GCAP_CUPTI_SUCCESS) continue;
    if (i > state.last_callback) state.last_callback = i;
  }
}

void gcap_switch_began(uint32_t stream) {
  pthread_mutex_lock(&state.lock);
  bool is_known = false;
  for (uint32_t i = 0; i < state.num_open; ++i) is_known |= state.open[i] == stream;
  if (!is_known && state.num_open < kMaxOpen) {
    state.open[state.num_open++] = stream;
    if (state.num_open == 1 && !state.is_stopped) {
      atomic_store(&state.is_capturing, true);
      switch_others(1);
    }
  }
  pthread_mutex_unlock(&state.lock);
}

void gcap_switch_ended(uint32_t stream) {
  pthread_mutex_lock(&state.lock);
  for (uint32_t i = 0; i < state.num_open; ++i) {
    if (state.open[i] != stream) continue;
    state.open[i] = state.open[--state.num_open];
    if (state.num_open == 0 && !state.is_stopped) {
      atomic_store(&state.is_capturing, false);
      switch_others(0);
      atomic_fetch_add(&state.epoch, 1);
    }
    break;
  }
  pthread_mutex_unlock(&state.lock);
}

void gcap_switch_watch_frees(void) {
  pthread_mutex_lock(&state.lock);
  if (!state.watches_frees && !state.is_stopped) {
    state.watches_frees = true;
    for (uint32_t i = 1; i < GCAP_NUM_DRIVER_CALLS; ++i) {
      if (gcap_driver_call(i)->role == GCAP_ROLE_MANAGED_FREE) enable(1, i);
    }
  }
  pthread_mutex_unlock(&state.lock);
}

void gcap_switch_stop(void) {
  pthread_mutex_lock(&state.lock);
  if (!state.is_stopped) {
    state.is_stopped = true;
    atomic_store(&state.is_capturing, false);
    for (uint32_t i = 1; i < GCAP_NUM_DRIVER_CALLS; ++i) enable(0, i);
    for (size_t i = 0; i < sizeof(resources); ++i) {
      state.cupti->EnableCallback(0, state.subscriber, GCAP_CUPTI_RESOURCE, resources[i]);
    }
  }
  pthread_mutex_unlock(&state.lock);
}

bool gcap_switch_is_capturing(void) { return atomic_load_explicit(&state.is_capturing, memory_order_relaxed); }

uint32_t gcap_switch_epoch(void) { return atomic_load_explicit(&state.epoch, memory_order_relaxed); }
