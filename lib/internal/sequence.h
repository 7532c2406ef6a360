// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// sequence.h: a number by which readers of several atomics tell, without a lock, whether what they read belongs
// together.
//
// One writer at a time makes it odd, changes the atomics, and makes it even again. A reader reads between two looks at
// it, and starts again when it was odd or has changed. All that is read this way is atomic, stored with release and
// loaded with acquire: whoever loads a changed value then sees the odd number, or a later one, in the second look, so
// no fence is needed.
#ifndef GCAP_LIB_INTERNAL_SEQUENCE_H_
#define GCAP_LIB_INTERNAL_SEQUENCE_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct gcap_sequence {
  atomic_uint_fast64_t number;  // odd while a writer is at work
} gcap_sequence_t;

// A writer is at work for some tens of instructions. A reader that met one this often met one that was put to sleep,
// and had better sleep too: on the mutex that writers hold.
enum { GCAP_SEQUENCE_PATIENCE = 64 };

static inline void gcap_sequence_begin_change(gcap_sequence_t* sequence) {
  uint_fast64_t number = atomic_load_explicit(&sequence->number, memory_order_relaxed);
  atomic_store_explicit(&sequence->number, number + 1, memory_order_relaxed);
}

static inline void gcap_sequence_end_change(gcap_sequence_t* sequence) {
  uint_fast64_t number = atomic_load_explicit(&sequence->number, memory_order_relaxed);
  atomic_store_explicit(&sequence->number, number + 1, memory_order_release);
}

// False while a writer is at work.
static inline bool gcap_sequence_begin_read(const gcap_sequence_t* sequence, uint64_t* out_number) {
  *out_number = atomic_load_explicit(&sequence->number, memory_order_acquire);
  return *out_number % 2 == 0;
}

// True when what was read since gcap_sequence_begin_read gave `number` belongs together.
static inline bool gcap_sequence_end_read(const gcap_sequence_t* sequence, uint64_t number) {
  return atomic_load_explicit(&sequence->number, memory_order_relaxed) == number;
}

#endif  // GCAP_LIB_INTERNAL_SEQUENCE_H_
