// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// When calls and captures began and ended.
#include "doctor/report/timeline.h"

// Where there are no times: from a call to the next, and of a call.
enum { kNsApart = 1000, kNsOfCall = 800 };

gcap_doctor_timeline_t gcap_doctor_timeline_of(const gcap_doctor_recording_t* recording) {
  gcap_doctor_timeline_t timeline = {.recording = recording};
  for (size_t i = 0; i < recording->num_calls; ++i) {
    if (recording->calls[i].end_ns > timeline.last_ns) timeline.last_ns = recording->calls[i].end_ns;
  }
  timeline.has_times = timeline.last_ns != 0;
  if (!timeline.has_times) timeline.last_ns = recording->num_calls * kNsApart;
  return timeline;
}

gcap_doctor_span_t gcap_doctor_timeline_call(const gcap_doctor_timeline_t* timeline, uint32_t call) {
  if (!timeline->has_times)
    return (gcap_doctor_span_t){(uint64_t)call * kNsApart, (uint64_t)call * kNsApart + kNsOfCall};
  const gcap_doctor_event_call_t* of = &timeline->recording->calls[call];
  return (gcap_doctor_span_t){of->start_ns, of->end_ns > of->start_ns ? of->end_ns : of->start_ns};
}

gcap_doctor_span_t gcap_doctor_timeline_capture(const gcap_doctor_timeline_t* timeline,
                                                const gcap_doctor_captured_t* capture) {
  size_t count = timeline->recording->num_calls;
  gcap_doctor_span_t span = {0, timeline->last_ns};
  if (capture->begin < count) span.start_ns = gcap_doctor_timeline_call(timeline, capture->begin).start_ns;
  if (capture->end < count) span.end_ns = gcap_doctor_timeline_call(timeline, capture->end).end_ns;
  if (span.end_ns < span.start_ns) span.end_ns = span.start_ns;  // a damaged file
  return span;
}
