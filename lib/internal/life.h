// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// life.h: a small counted token that outlives what it stands for (a thread, a stream) and says whether that still
// lives. Who must not touch a thing that somebody else may end keeps its life instead of its address.
#ifndef GCAP_LIB_INTERNAL_LIFE_H_
#define GCAP_LIB_INTERNAL_LIFE_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Both are atomics, in the words that C and C++ have in common.
typedef struct gcap_life {
  unsigned references;
  bool over;
} gcap_life_t;

// A life with one reference; NULL when there is no memory.
gcap_life_t* gcap_life_create(void);
gcap_life_t* gcap_life_retain(gcap_life_t* life);  // NULL stays NULL
void gcap_life_release(gcap_life_t* life);         // NULL is fine
// Says from now on that it is over, and releases the owner's reference. NULL is fine.
void gcap_life_end(gcap_life_t* life);
// One load. True for NULL: nobody keeps a life of it, so nobody knows. Inline: every replay asks.
static inline bool gcap_life_goes_on(const gcap_life_t* life) {
  return life == NULL || !__atomic_load_n(&life->over, __ATOMIC_ACQUIRE);
}

// The calling thread's life, borrowed; ended when the thread exits. Unlike a pthread_t it is never used twice. NULL
// when there is no memory.
gcap_life_t* gcap_thread_life(void);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_INTERNAL_LIFE_H_
