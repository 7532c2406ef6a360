// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The monotonic clock. Locking: none.
#include "doctor/base/clock.h"

#include <time.h>

uint64_t gcap_doctor_clock_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
