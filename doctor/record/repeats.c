// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A loop beside an open capture, such as a thread that polls an event or works on a stream of its own, makes the same
// calls a million times.
//
// The idea: the first call of its kind has its line. The calls like it are counted from then on, those of several kinds
// and threads beside one another, since a loop has more than one call. Before another line is written, on whichever
// thread, a line tells of each kind the last call and how many were counted; and where that other call changes a
// capture, or may, the next call of each kind is a first one again. So the first and the last call of each kind stand
// where they were made, and between the two there is nothing that the others could come before or after. A count that
// is held for a second gets its line too: a crash loses no more.
//
// Locking: the lock is held over memory alone, and over the one counter of calls' numbers: a call that changes a
// capture has a number that no count reaches across.
#include "doctor/record/repeats.h"

#include <pthread.h>
#include <stddef.h>

enum { kMostKinds = 64 };  // of calls in a loop

#define MOST_HELD_NS UINT64_C(1000000000)

typedef struct kind {
  gcap_doctor_repeat_t last;
  uint64_t first, since_ns;  // the number and the beginning of the first one that is counted
  uint64_t count;            // 0: none since the last line
} kind_t;

static struct {
  pthread_mutex_t lock;
  kind_t kinds[kMostKinds];
  size_t num_kinds;
} repeats = {.lock = PTHREAD_MUTEX_INITIALIZER};

// With the lock held.
static kind_t* find(const gcap_doctor_repeat_t* call) {
  for (size_t i = 0; i < repeats.num_kinds; ++i) {
    const gcap_doctor_repeat_t* last = &repeats.kinds[i].last;
    if (last->like == call->like && last->event == call->event && last->bytes == call->bytes) return &repeats.kinds[i];
  }
  return NULL;
}

// With the lock held.
static void write_counted(kind_t* kind, gcap_doctor_line_t* out) {
  const gcap_doctor_repeat_t* last = &kind->last;
  if (kind->count == 0) return;
  gcap_doctor_line_begin(out, "call");
  gcap_doctor_line_number(out, "n", last->number);
  gcap_doctor_line_number(out, "t", last->start_ns);
  gcap_doctor_line_number(out, "ns", last->end_ns - last->start_ns);
  gcap_doctor_line_number(out, "like", last->like);
  if (last->event != 0) gcap_doctor_line_number(out, "event", last->event);
  if (last->bytes != UINT64_MAX) gcap_doctor_line_number(out, "bytes", last->bytes);
  if (kind->count != 1) {
    gcap_doctor_line_number(out, "count", kind->count);
    gcap_doctor_line_number(out, "first", kind->first);
    gcap_doctor_line_number(out, "since", kind->since_ns);
  }
  gcap_doctor_line_end(out);
  kind->count = 0;
}

// With the lock held.
static void write_all(gcap_doctor_line_t* out) {
  for (size_t i = 0; i < repeats.num_kinds; ++i) write_counted(&repeats.kinds[i], out);
}

// With the lock held.
static void forget_all(gcap_doctor_line_t* out) {
  write_all(out);
  repeats.num_kinds = 0;
}

bool gcap_doctor_repeats_count(const gcap_doctor_repeat_t* call, gcap_doctor_line_t* out) {
  pthread_mutex_lock(&repeats.lock);
  kind_t* kind = find(call);
  if (kind != NULL) {
    if (kind->count++ == 0) {
      kind->first = call->number;
      kind->since_ns = call->start_ns;
    }
    kind->last = *call;
    if (call->end_ns - kind->since_ns > MOST_HELD_NS) write_all(out);
  }
  pthread_mutex_unlock(&repeats.lock);
  return kind != NULL;
}

void gcap_doctor_repeats_write(const gcap_doctor_repeat_t* call, gcap_doctor_line_t* out) {
  size_t num_answers = 0;
  pthread_mutex_lock(&repeats.lock);
  write_all(out);
  for (size_t i = 0; call->is_answer && i < repeats.num_kinds; ++i) {
    if (repeats.kinds[i].last.is_answer) repeats.kinds[num_answers++] = repeats.kinds[i];
  }
  if (call->is_answer) repeats.num_kinds = num_answers;
  pthread_mutex_unlock(&repeats.lock);
}

void gcap_doctor_repeats_remember(const gcap_doctor_repeat_t* call, gcap_doctor_line_t* out) {
  pthread_mutex_lock(&repeats.lock);
  if (repeats.num_kinds == kMostKinds) forget_all(out);
  repeats.kinds[repeats.num_kinds++] = (kind_t){.last = *call};
  pthread_mutex_unlock(&repeats.lock);
}

void gcap_doctor_repeats_forget(gcap_doctor_line_t* out) {
  pthread_mutex_lock(&repeats.lock);
  forget_all(out);
  pthread_mutex_unlock(&repeats.lock);
}

uint64_t gcap_doctor_repeats_forget_at_number(gcap_doctor_line_t* out, _Atomic uint64_t* last_number) {
  pthread_mutex_lock(&repeats.lock);
  forget_all(out);
  const uint64_t number = atomic_fetch_add_explicit(last_number, 1, memory_order_relaxed) + 1;
  pthread_mutex_unlock(&repeats.lock);
  return number;
}
