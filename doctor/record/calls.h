// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// calls.h: the driver's calls, as callbacks at their beginning and their end.
#ifndef GCAP_DOCTOR_RECORD_CALLS_H_
#define GCAP_DOCTOR_RECORD_CALLS_H_

#include "doctor/record/cupti_abi.h"
#include "doctor/record/thread.h"

#pragma GCC visibility push(hidden)

void gcap_doctor_call_entered(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data);
void gcap_doctor_call_left(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data);
// The innermost call of the thread that is being recorded; NULL if there is none.
gcap_doctor_open_call_t* gcap_doctor_call_open(gcap_doctor_thread_t* thread);
// The number of the call that makes what is made now; 0 if none is recorded.
uint64_t gcap_doctor_call_number(gcap_doctor_thread_t* thread);
// The number of a call that begins now, and the field of its name, for lines of calls that calls.c does not write.
uint64_t gcap_doctor_call_new_number(void);
void gcap_doctor_call_write_name(gcap_doctor_line_t* out, const char* function);
// Whether the thread is making an executable of a graph.
bool gcap_doctor_call_makes_exec(const gcap_doctor_thread_t* thread);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_CALLS_H_
