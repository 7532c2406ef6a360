// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// clock.h: the time that has passed, for durations.
#ifndef GCAP_LIB_INTERNAL_CLOCK_H_
#define GCAP_LIB_INTERNAL_CLOCK_H_

#include <stdint.h>
#include <time.h>

// Nanoseconds of a clock that is never set back. Only differences mean something.
static inline uint64_t gcap_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

#endif  // GCAP_LIB_INTERNAL_CLOCK_H_
