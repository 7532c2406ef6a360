// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ranges.h: the NVTX ranges that a thread of the program has open.
#ifndef GCAP_DOCTOR_RECORD_RANGES_H_
#define GCAP_DOCTOR_RECORD_RANGES_H_

#include "doctor/record/thread.h"

#pragma GCC visibility push(hidden)

// The id of the calling thread's innermost range, whose line and those of the ranges around it, if they are new, go
// with the thread's next write. 0 for no range, and without memory.
uint32_t gcap_doctor_range_record(gcap_doctor_thread_t* thread);
// Of a thread that ends.
void gcap_doctor_ranges_free(gcap_doctor_thread_t* thread);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_RANGES_H_
