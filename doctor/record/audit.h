// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// audit.h: which memory the program's executable graphs point into, and whether it is still there at a launch.
#ifndef GCAP_DOCTOR_RECORD_AUDIT_H_
#define GCAP_DOCTOR_RECORD_AUDIT_H_

#include <stdbool.h>

#include "doctor/record/cupti_abi.h"
#include "doctor/record/cupti_find.h"
#include "doctor/record/thread.h"

#pragma GCC visibility push(hidden)

// Once, before there are callbacks. Nothing else is called where the answer is false.
bool gcap_doctor_audit_start(const gcap_doctor_cupti_t* cupti);

// Whether the audit wants this call of the driver.
bool gcap_doctor_audit_wants(uint32_t callback);
// A call begins, and ends. Before calls.c gets the end.
void gcap_doctor_audit_entered(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data);
void gcap_doctor_audit_left(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data);
// An executable is destroyed.
void gcap_doctor_audit_exec_gone(const void* exec);
// What is told at the end of all.
void gcap_doctor_audit_finish(gcap_doctor_line_t* out);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_AUDIT_H_
