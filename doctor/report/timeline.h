// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// timeline.h: when calls and captures began and ended, also where the source has no times.
#ifndef GCAP_DOCTOR_REPORT_TIMELINE_H_
#define GCAP_DOCTOR_REPORT_TIMELINE_H_

#include "doctor/analyse/diagnosis.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_doctor_timeline {
  const gcap_doctor_recording_t* recording;
  bool has_times;    // false: a simulator's log or a ledger, where calls are a microsecond apart here
  uint64_t last_ns;  // the latest end
} gcap_doctor_timeline_t;

typedef struct gcap_doctor_span {
  uint64_t start_ns, end_ns;
} gcap_doctor_span_t;

gcap_doctor_timeline_t gcap_doctor_timeline_of(const gcap_doctor_recording_t* recording);
// `call` is an index.
gcap_doctor_span_t gcap_doctor_timeline_call(const gcap_doctor_timeline_t* timeline, uint32_t call);
// From the begin to the end of a capture, or of the recording.
gcap_doctor_span_t gcap_doctor_timeline_capture(const gcap_doctor_timeline_t* timeline,
                                                const gcap_doctor_captured_t* capture);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_REPORT_TIMELINE_H_
