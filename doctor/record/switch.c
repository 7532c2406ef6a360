// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Callbacks cost, so outside of captures there are few: those of calls that begin, end or use captures, or that pin
// memory, and those of the making and ending of streams and graphs.
//
// While a capture is open all of the driver's are enabled, one by one. To disable the domain would disable the few too,
// and another thread's capture that begins just then would not be seen. And CUPTI takes the enabling of a domain that
// was enabled before, and never disabled as a whole, for done (seen with CUPTI 13.0 on an H200: the second capture of a
// program had no calls).
//
// Locking: the lock is held over memory alone. CUPTI wants changes of callbacks one at a time: one thread makes them,
// and goes on until they are as they are wished by then; others leave their wish and go. A thread that begins a capture
// waits for its callbacks, since it would miss calls of its own without them, but not for ever: CUPTI may hold the
// switching thread until this one has left its callback.
//
// The invariant, under the lock: `made.others` is true only while each of the driver's callbacks is enabled. The
// switching thread makes it false in the same hold of the lock in which that thread reads the wish to disable them, and
// true after the last one is enabled; and where no thread is switching, what is made is what is wished. So a begin that
// has left its wish and then finds `made.others` true loses no call: nobody is disabling callbacks, and nobody will
// before that capture ends.
#include "doctor/record/switch.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "doctor/record/driver_calls.h"
#include "doctor/record/memory_calls.h"
#include "doctor/record/writer.h"

enum {
  kMaxOpen = 256,  // captures at once; more are not counted, and end with the others
};

// A switching thread that is not held in CUPTI changes a callback in less, on a busy machine too.
#define MOST_STANDSTILL_NS UINT64_C(1000000000)

// Which callbacks are enabled beside those that always are.
typedef struct enabled {
  bool others;    // all of the driver's
  bool frees;     // cuMemFree
  bool is_ended;  // none at all, for ever
} enabled_t;

static const uint8_t resources[] = {
    GCAP_DOCTOR_CUPTI_STREAM_CREATED,     GCAP_DOCTOR_CUPTI_STREAM_DESTROY, GCAP_DOCTOR_CUPTI_GRAPH_CREATED,
    GCAP_DOCTOR_CUPTI_GRAPH_DESTROY,      GCAP_DOCTOR_CUPTI_NODE_STARTS,    GCAP_DOCTOR_CUPTI_NODE_CREATED,
    GCAP_DOCTOR_CUPTI_DEPENDENCY_CREATED, GCAP_DOCTOR_CUPTI_EXEC_CREATED,   GCAP_DOCTOR_CUPTI_EXEC_DESTROY,
    GCAP_DOCTOR_CUPTI_NODE_CLONED,
};

static struct {
  const gcap_doctor_cupti_t* cupti;
  gcap_doctor_cupti_subscriber_t* subscriber;
  pthread_mutex_t lock;
  uint32_t open[kMaxOpen];  // streams
  uint32_t num_open;
  atomic_bool audits;
  enabled_t wished, made;
  bool is_switching;             // a thread is in CUPTI for it
  uint32_t last_callback;        // of the driver's, once that is known; the switching thread's own
  _Atomic uint32_t num_changes;  // of callbacks, so far
  atomic_bool is_capturing;
  _Atomic uint32_t epoch;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_always_on(uint32_t callback, bool with_frees) {
  if (state.audits && gcap_doctor_memory_call(callback)->does != GCAP_DOCTOR_MEMORY_DOES_NOTHING) return true;
  const uint8_t role = gcap_doctor_driver_call(callback)->role;
  return role != GCAP_DOCTOR_ROLE_NONE && (role != GCAP_DOCTOR_ROLE_MANAGED_FREE || with_frees);
}

static int change(uint32_t on, int32_t domain, uint32_t callback) {
  const int result = state.cupti->EnableCallback(on, state.subscriber, domain, callback);
  atomic_fetch_add_explicit(&state.num_changes, 1, memory_order_relaxed);
  return result;
}

static int enable(uint32_t on, uint32_t callback) { return change(on, GCAP_DOCTOR_CUPTI_DRIVER, callback); }

static void make_wished(void);

int gcap_doctor_switch_start(const gcap_doctor_cupti_t* cupti, gcap_doctor_cupti_subscriber_t* subscriber,
                             bool audits) {
  int result = GCAP_DOCTOR_CUPTI_SUCCESS;
  // The first callback may come at once, in another thread.
  pthread_mutex_lock(&state.lock);
  state.cupti = cupti;
  state.subscriber = subscriber;
  state.audits = audits;
  state.is_switching = true;
  pthread_mutex_unlock(&state.lock);
  for (uint32_t i = 1; i < GCAP_DOCTOR_NUM_DRIVER_CALLS; ++i) {
    // An older CUPTI does not know all.
    if (is_always_on(i, false)) enable(1, i);
  }
  for (size_t i = 0; i < sizeof(resources); ++i) {
    const int refused = change(1, GCAP_DOCTOR_CUPTI_RESOURCE, resources[i]);
    if (refused != GCAP_DOCTOR_CUPTI_SUCCESS) result = refused;
  }
  make_wished();
  return result;
}

// --- By the switching thread, without the lock -----------------------------------------------------------------------

// An older CUPTI knows fewer callbacks: where the first pass found the last one, later ones end.
static void switch_others(uint32_t on, bool with_frees) {
  const uint32_t end = state.last_callback != 0 ? state.last_callback + 1 : GCAP_DOCTOR_NUM_DRIVER_CALLS;
  for (uint32_t i = 1; i < end; ++i) {
    if (is_always_on(i, with_frees) || enable(on, i) != GCAP_DOCTOR_CUPTI_SUCCESS) continue;
    if (i > state.last_callback) state.last_callback = i;
  }
}

static void watch_frees(void) {
  for (uint32_t i = 1; i < GCAP_DOCTOR_NUM_DRIVER_CALLS; ++i) {
    if (gcap_doctor_driver_call(i)->role == GCAP_DOCTOR_ROLE_MANAGED_FREE) enable(1, i);
  }
}

static void end_all(void) {
  for (uint32_t i = 1; i < GCAP_DOCTOR_NUM_DRIVER_CALLS; ++i) enable(0, i);
  for (size_t i = 0; i < sizeof(resources); ++i) change(0, GCAP_DOCTOR_CUPTI_RESOURCE, resources[i]);
}

static bool wants_others(enabled_t wished) { return wished.others && !wished.is_ended; }

// One step from what is made to what is wished; what is made then.
static enabled_t step(enabled_t made, enabled_t wished) {
  if (wished.is_ended) {
    end_all();
    return (enabled_t){.is_ended = true};
  }
  if (wished.frees && !made.frees) {
    watch_frees();
    made.frees = true;
  } else if (wants_others(wished) != made.others) {
    made.others = wants_others(wished);
    switch_others(made.others, made.frees);
    if (!made.others) atomic_fetch_add(&state.epoch, 1);
  }
  return made;
}

static bool is_made(void) {
  const enabled_t made = state.made, wished = state.wished;
  if (wished.is_ended) return made.is_ended;
  return made.others == wants_others(wished) && made.frees == wished.frees;
}

// Ends the switching when all is as it is wished.
static void make_wished(void) {
  pthread_mutex_lock(&state.lock);
  while (!is_made()) {
    const enabled_t made = state.made, wished = state.wished;
    state.made.others = made.others && wants_others(wished);
    pthread_mutex_unlock(&state.lock);
    const enabled_t now = step(made, wished);
    pthread_mutex_lock(&state.lock);
    state.made = now;
  }
  state.is_switching = false;
  pthread_mutex_unlock(&state.lock);
}

// With the lock held. Whether the calling thread is to switch.
static bool takes_switching(void) {
  if (state.is_switching || is_made()) return false;
  state.is_switching = true;
  return true;
}

// With the lock held. Whether the calls of a capture that has begun may still go unseen.
static bool lacks_others(void) { return state.is_switching && !state.made.others && wants_others(state.wished); }

static uint32_t changes_so_far(void) { return atomic_load_explicit(&state.num_changes, memory_order_relaxed); }

// The clock is read before the changes are, and again after new ones: no change came in the time that is taken for a
// standstill, wherever this thread was held.
static void await_others(void) {
  uint32_t num_changes = changes_so_far();
  uint64_t since_ns = gcap_doctor_writer_now();
  bool is_lacking = true, stands_still = false;
  while (is_lacking && !stands_still) {
    sched_yield();
    const uint64_t now_ns = gcap_doctor_writer_now();
    if (changes_so_far() == num_changes) {
      stands_still = now_ns - since_ns >= MOST_STANDSTILL_NS;
    } else {
      num_changes = changes_so_far();
      since_ns = gcap_doctor_writer_now();
    }
    pthread_mutex_lock(&state.lock);
    is_lacking = lacks_others();
    pthread_mutex_unlock(&state.lock);
  }
}

// --- Wishes ----------------------------------------------------------------------------------------------------------

void gcap_doctor_switch_began(uint32_t stream) {
  bool is_known = false;
  pthread_mutex_lock(&state.lock);
  for (uint32_t i = 0; i < state.num_open; ++i) is_known |= state.open[i] == stream;
  if (!is_known && state.num_open < kMaxOpen) state.open[state.num_open++] = stream;
  state.wished.others = true;
  if (!state.wished.is_ended) atomic_store(&state.is_capturing, true);
  const bool switches = takes_switching();
  const bool waits = !switches && lacks_others();
  pthread_mutex_unlock(&state.lock);
  if (switches) make_wished();
  if (waits) await_others();
}

void gcap_doctor_switch_ended(uint32_t stream) {
  bool switches = false;
  pthread_mutex_lock(&state.lock);
  for (uint32_t i = 0; i < state.num_open; ++i) {
    if (state.open[i] != stream) continue;
    state.open[i] = state.open[--state.num_open];
    if (state.num_open == 0) {
      atomic_store(&state.is_capturing, false);
      state.wished.others = false;
      switches = takes_switching();
    }
    break;
  }
  pthread_mutex_unlock(&state.lock);
  if (switches) make_wished();
}

void gcap_doctor_switch_watch_frees(void) {
  pthread_mutex_lock(&state.lock);
  state.wished.frees = true;
  const bool switches = takes_switching();
  pthread_mutex_unlock(&state.lock);
  if (switches) make_wished();
}

void gcap_doctor_switch_stop(void) {
  pthread_mutex_lock(&state.lock);
  state.wished.is_ended = true;
  atomic_store(&state.is_capturing, false);
  const bool switches = takes_switching();
  pthread_mutex_unlock(&state.lock);
  if (switches) make_wished();
}

bool gcap_doctor_switch_is_capturing(void) { return atomic_load_explicit(&state.is_capturing, memory_order_relaxed); }

bool gcap_doctor_switch_audits(void) { return atomic_load_explicit(&state.audits, memory_order_relaxed); }

uint32_t gcap_doctor_switch_epoch(void) { return atomic_load_explicit(&state.epoch, memory_order_relaxed); }
