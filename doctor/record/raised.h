// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// raised.h: the Python exceptions that meet a capture.
#ifndef GCAP_DOCTOR_RECORD_RAISED_H_
#define GCAP_DOCTOR_RECORD_RAISED_H_

#include "doctor/record/thread.h"

#pragma GCC visibility push(hidden)

struct link_map;

// The interpreter of a loaded file. Once.
void gcap_doctor_raised_start(const struct link_map* module);
// A call of the program returned, and its line is written: has the interpreter look which exception the program is
// handling, where a capture is open or was just ended. Legal in a callback.
void gcap_doctor_raised_ask(const gcap_doctor_thread_t* thread, uint8_t role, int result, uint64_t call);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_RAISED_H_
