// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// audit_tell.h: what an audit found, as lines of the file and as sentences on stderr.
#ifndef GCAP_DOCTOR_RECORD_AUDIT_TELL_H_
#define GCAP_DOCTOR_RECORD_AUDIT_TELL_H_

#include "doctor/record/audit_read.h"
#include "doctor/record/memory.h"
#include "doctor/record/thread.h"

#pragma GCC visibility push(hidden)

// What is told of one executable and one piece of memory.
typedef struct gcap_doctor_audit_stale {
  gcap_doctor_audit_word_t word;  // the first pointer
  gcap_doctor_audit_node_t node;
  uint64_t num_pointers;
  uint64_t bytes;  // 0 for memory of the host whose size is not known
  uint8_t what;
  gcap_doctor_memory_place_t made, freed, taken;
  uint64_t taken_bytes;
} gcap_doctor_audit_stale_t;

// Executables that were made at one place.
typedef struct gcap_doctor_audit_group {
  gcap_doctor_memory_place_t last;  // where the last one was made
  uint64_t made;
  uint64_t live, idle, nodes, bytes, memory;  // at the end; see docs/doctor_events.md
} gcap_doctor_audit_group_t;

// Where the call is made. Of a call that is being recorded anyway, the line is that of calls.c.
gcap_doctor_memory_place_t gcap_doctor_audit_place(gcap_doctor_thread_t* thread, uint32_t callback,
                                                   const gcap_doctor_cupti_call_t* data);
// The line of a launch, unless it is written elsewhere; first of all that is told of the launch.
void gcap_doctor_audit_tell_launch(gcap_doctor_thread_t* thread, const gcap_doctor_memory_place_t* place,
                                   uint32_t exec);
// The launch of that number is of an executable that points into memory which is gone.
void gcap_doctor_audit_tell_stale(gcap_doctor_thread_t* thread, const gcap_doctor_audit_stale_t* stale, uint32_t exec,
                                  uint64_t launch);
// Another thread is in a launch of the executable.
void gcap_doctor_audit_tell_shared(gcap_doctor_thread_t* thread, uint32_t other, uint32_t exec, uint64_t launch);
void gcap_doctor_audit_tell_group(gcap_doctor_line_t* out, const gcap_doctor_audit_group_t* group);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_AUDIT_TELL_H_
