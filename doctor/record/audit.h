// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// audit.h: which memory the program's executable graphs point into, and whether it is still there at a launch.
#ifndef GCAP_DOCTOR_RECORD_AUDIT_H_
#define GCAP_DOCTOR_RECORD_AUDIT_H_

#include <stdbool.h>

#include "doctor/record/cupti_abi.h"
#include "doctor/record/cupti_find.h"
#include "doctor/record/memory.h"
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

// Blocks of frameworks' allocators, as audit_blocks.c is told of them. `place` may be NULL.
bool gcap_doctor_audit_is_on(void);
void gcap_doctor_audit_followed(gcap_doctor_memory_what_t what);
void gcap_doctor_audit_block_made(uint64_t address, uint64_t bytes, gcap_doctor_memory_what_t what,
                                  const gcap_doctor_memory_place_t* place);
void gcap_doctor_audit_block_freed(uint64_t address, const gcap_doctor_memory_place_t* place);
// Whether just this block is known to be handed out, and whether an executable points into the block at the address.
bool gcap_doctor_audit_block_lives(uint64_t address, uint64_t bytes);
bool gcap_doctor_audit_block_is_used(uint64_t address);

// What is told at the end of all.
void gcap_doctor_audit_finish(gcap_doctor_line_t* out);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_AUDIT_H_
