// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// clock.h: the monotonic clock. In a file of its own, so that a test has another one.
#ifndef GCAP_DOCTOR_BASE_CLOCK_H_
#define GCAP_DOCTOR_BASE_CLOCK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

uint64_t gcap_doctor_clock_now_ns(void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_BASE_CLOCK_H_
