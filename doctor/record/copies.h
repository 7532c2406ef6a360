// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// copies.h: what a call copies, or fills, and what the host's memory in it is.
#ifndef GCAP_DOCTOR_RECORD_COPIES_H_
#define GCAP_DOCTOR_RECORD_COPIES_H_

#include "doctor/record/driver_calls.h"
#include "doctor/record/thread.h"

#pragma GCC visibility push(hidden)

typedef struct gcap_doctor_copy {
  const char* kind;    // "htod"; NULL for no copy
  const void* host;    // memory of the host; NULL for none
  const void* any[2];  // memory that may be the host's; NULL for none
  uint64_t bytes;
  bool has_bytes;
} gcap_doctor_copy_t;

void gcap_doctor_copy_of_call(const gcap_doctor_driver_call_t* call, const void* arguments,
                              gcap_doctor_copy_t* out_copy);
// "pinned", "stack" or "pageable"; NULL where there is none or it is not known.
const char* gcap_doctor_copy_host(gcap_doctor_thread_t* thread, const gcap_doctor_copy_t* copy);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_COPIES_H_
