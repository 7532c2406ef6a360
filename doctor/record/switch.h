// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// switch.h: which of the program's captures are open, and so which callbacks are enabled.
#ifndef GCAP_DOCTOR_RECORD_SWITCH_H_
#define GCAP_DOCTOR_RECORD_SWITCH_H_

#include <stdbool.h>
#include <stdint.h>

#include "doctor/record/cupti_find.h"

#pragma GCC visibility push(hidden)

// Enables the callbacks that are always needed, and, if it `audits`, those of memory_calls.inc. Once. CUPTI's error if
// it refuses.
int gcap_doctor_switch_start(const gcap_doctor_cupti_t* cupti, gcap_doctor_cupti_subscriber_t* subscriber, bool audits);

// A capture of the stream with this id began, or ended. The first one enables all of the driver's callbacks, the end of
// the last one disables them. Thread-safe, and legal in a callback.
void gcap_doctor_switch_began(uint32_t stream);
void gcap_doctor_switch_ended(uint32_t stream);
// The memory that cuMemFree frees is the driver's and the host's from now on.
void gcap_doctor_switch_watch_frees(void);

// Disables all callbacks, for ever. Thread-safe, and legal in a callback.
void gcap_doctor_switch_stop(void);

// Whether a capture is open anywhere in the process. Thread-safe.
bool gcap_doctor_switch_is_capturing(void);
// Whether the calls that make and end memory are followed. From the start on.
bool gcap_doctor_switch_audits(void);
// Grows by one each time the driver's callbacks are disabled: calls that began before have no exit.
uint32_t gcap_doctor_switch_epoch(void);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_SWITCH_H_
