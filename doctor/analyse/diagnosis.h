// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// diagnosis.h: from a recording to what went wrong in it.
#ifndef GCAP_DOCTOR_ANALYSE_DIAGNOSIS_H_
#define GCAP_DOCTOR_ANALYSE_DIAGNOSIS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor/base/heap.h"
#include "doctor/events/recording.h"
#include "rules/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

// What became of a capture.
typedef enum gcap_doctor_capture_outcome {
  GCAP_DOCTOR_OUTCOME_OPEN = 0,  // the recording ends before the capture does
  GCAP_DOCTOR_OUTCOME_GRAPH,     // it ended in a graph
  GCAP_DOCTOR_OUTCOME_BROKEN,    // its end answered an error
} gcap_doctor_capture_outcome_t;

// A capture of the recording. Calls and streams are indices into the recording's arrays; GCAP_DOCTOR_NONE for none.
typedef struct gcap_doctor_captured {
  uint32_t begin, end;  // calls; `end` is GCAP_DOCTOR_NONE for an open one
  uint32_t stream;      // the origin
  uint32_t thread;
  gcap_doctor_event_mode_t mode;
  gcap_doctor_capture_outcome_t outcome;
  int result;      // of the end
  uint32_t graph;  // id; GCAP_DOCTOR_NONE without a graph
  uint32_t num_nodes;
  uint32_t exec;  // id of the last executable that was made of the graph; GCAP_DOCTOR_NONE
  uint64_t replays;
  uint32_t culprit;  // the call that broke it; GCAP_DOCTOR_NONE
} gcap_doctor_captured_t;

typedef enum gcap_doctor_severity {
  GCAP_DOCTOR_SEVERITY_ERROR = 0,  // a capture, an update or a launch failed, or a graph lacks work
  GCAP_DOCTOR_SEVERITY_WARNING,    // it works today, and will fail or cost
  GCAP_DOCTOR_SEVERITY_NOTE,
} gcap_doctor_severity_t;

typedef enum gcap_doctor_finding_kind {
  GCAP_DOCTOR_FINDING_CULPRIT = 0,      // the call that broke a capture
  GCAP_DOCTOR_FINDING_UNJOINED,         // a fork that never came back
  GCAP_DOCTOR_FINDING_ESCAPED,          // work that ran beside the capture
  GCAP_DOCTOR_FINDING_LOST_CALL,        // a call failed and the capture ended well without its work
  GCAP_DOCTOR_FINDING_EXCEPTION,        // an exception that left a capture
  GCAP_DOCTOR_FINDING_REFUSED,          // a framework asked whether the stream captures, and gave up
  GCAP_DOCTOR_FINDING_PAGEABLE,         // pageable memory or memory of a stack behind a copy of a graph
  GCAP_DOCTOR_FINDING_ALLOCATION_NODE,  // a graph has allocation nodes
  GCAP_DOCTOR_FINDING_EMPTY_GRAPH,
  GCAP_DOCTOR_FINDING_LEFT_OPEN,   // a capture that nobody ended
  GCAP_DOCTOR_FINDING_RECAPTURED,  // captured again and again from one place
  GCAP_DOCTOR_FINDING_UPDATE_REFUSED,
  GCAP_DOCTOR_FINDING_LAUNCH_FAILED,  // a launch that found no graph, or failed
  GCAP_DOCTOR_FINDING_NEVER_LAUNCHED,
  GCAP_DOCTOR_FINDING_MODE_KEPT,  // a thread's capture mode was not exchanged back
  GCAP_DOCTOR_FINDING_DIFFERS,    // a replay left something else than the work that its graph was captured from
  GCAP_DOCTOR_FINDING_STALE,      // a launch of a graph that points into memory which was freed
  GCAP_DOCTOR_FINDING_SHARED,     // two threads launch one executable at the same time
  GCAP_DOCTOR_FINDING_GROWTH,     // executables of one place that are made and not destroyed
} gcap_doctor_finding_kind_t;

// Another place that belongs to a finding.
typedef struct gcap_doctor_finding_place {
  const char* what;  // "allocated", "freed", "taken", "captured"
  uint32_t call;
} gcap_doctor_finding_place_t;

typedef struct gcap_doctor_finding {
  gcap_doctor_finding_kind_t kind;
  gcap_doctor_severity_t severity;
  const gcap_rule_t* rule;  // NULL for none
  uint32_t capture;         // index into `captures`; GCAP_DOCTOR_NONE
  uint32_t call;            // whose stack to show: the culprit, the fork, the copy; GCAP_DOCTOR_NONE
  uint32_t other;           // a second call whose stack helps: the begin, of another thread; GCAP_DOCTOR_NONE
  bool is_certain;          // false: the sentence says "probably"
  uint64_t count;           // how many times, at least 1
  uint64_t num_captures;    // how many captures it is about; 0 if `capture` is GCAP_DOCTOR_NONE
  const char* sentence;     // one or two sentences: what happened, with the names of the call, the threads, the streams
  const char* remedy;       // what to do instead
  const gcap_doctor_finding_place_t* places;
  size_t num_places;
} gcap_doctor_finding_t;

// Diagnosis: captures and findings of a recording, the worst finding first, then in the order of the calls.
// Lifetime: the caller's; it refers to the recording, which must outlive it.
typedef struct gcap_doctor_diagnosis {
  gcap_doctor_heap_t heap;
  const gcap_doctor_recording_t* recording;
  gcap_doctor_captured_t* captures;
  size_t num_captures, capture_capacity;
  gcap_doctor_finding_t* findings;
  size_t num_findings, finding_capacity;
  const uint32_t* capture_of;  // by call: what gcap_doctor_diagnosis_capture_of answers
} gcap_doctor_diagnosis_t;

gcap_doctor_diagnosis_t* gcap_doctor_diagnosis_create(const gcap_doctor_recording_t* recording);
void gcap_doctor_diagnosis_destroy(gcap_doctor_diagnosis_t* diagnosis);

// How sentences name a call's function, for a report that lists calls: "cudaMalloc (cuMemAlloc)". The text is the
// diagnosis's.
const char* gcap_doctor_diagnosis_call_name(gcap_doctor_diagnosis_t* diagnosis, uint32_t call);
// "thread 'main'", with its number where the name is not the only one of its kind. The text is the diagnosis's.
const char* gcap_doctor_diagnosis_thread_name(gcap_doctor_diagnosis_t* diagnosis, uint32_t thread);

// "culprit", "unjoined": the word that reports in JSON have.
const char* gcap_doctor_finding_kind_name(gcap_doctor_finding_kind_t kind);

// The capture in which the call was made, by its stream, its nodes or its thread: an index into `captures`;
// GCAP_DOCTOR_NONE.
uint32_t gcap_doctor_diagnosis_capture_of(const gcap_doctor_diagnosis_t* diagnosis, uint32_t call);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_ANALYSE_DIAGNOSIS_H_
