// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// times.h: the device time of the nodes of executables, out of CUPTI's records of activity.
#ifndef GCAP_DOCTOR_RECORD_TIMES_H_
#define GCAP_DOCTOR_RECORD_TIMES_H_

#include "doctor/record/cupti_find.h"
#include "doctor/record/line.h"

#pragma GCC visibility push(hidden)

// Asks CUPTI for records. Once. False, after a note, if it refuses.
bool gcap_doctor_times_start(const gcap_doctor_cupti_t* cupti);
// Appends the sums since the last time, with all records that CUPTI still has. Not in a callback.
void gcap_doctor_times_finish(gcap_doctor_line_t* out);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_TIMES_H_
