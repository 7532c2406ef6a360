// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// report.h: a diagnosis for people and for programs.
#ifndef GCAP_DOCTOR_REPORT_REPORT_H_
#define GCAP_DOCTOR_REPORT_REPORT_H_

#include <stdbool.h>
#include <stdio.h>

#include "doctor/analyse/diagnosis.h"

#ifdef __cplusplus
extern "C" {
#endif

// At most twenty lines for the worst findings, the culprit first. `colour`: with the terminal's escape codes.
void gcap_doctor_report_text(FILE* out, const gcap_doctor_diagnosis_t* diagnosis, bool colour);
// All findings and captures, and each graph's nodes by place, as one JSON object; docs/doctor.md has its members.
void gcap_doctor_report_json(FILE* out, const gcap_doctor_diagnosis_t* diagnosis);
// One page that needs no other file and no network.
void gcap_doctor_report_html(FILE* out, const gcap_doctor_diagnosis_t* diagnosis);
// The graphs of the recording in Graphviz's language, a cluster each.
void gcap_doctor_report_dot(FILE* out, const gcap_doctor_diagnosis_t* diagnosis);
// The calls as slices by thread, and captures by stream, in the JSON that Perfetto and chrome://tracing read.
void gcap_doctor_report_trace(FILE* out, const gcap_doctor_diagnosis_t* diagnosis);

// A result for each finding, as SARIF 2.1.0.
void gcap_doctor_report_sarif(FILE* out, const gcap_doctor_diagnosis_t* diagnosis);
// A test case for each finding, as the XML of JUnit; an error is a failure. A recording without a finding has one case,
// which passes, or was skipped if no call was recorded.
void gcap_doctor_report_junit(FILE* out, const gcap_doctor_diagnosis_t* diagnosis);

// How the second recording differs from the first: captures, their nodes, kernels and device times, and findings, by
// the places and labels of captures. Nothing is written where they are alike. Returns whether they differ.
bool gcap_doctor_report_diff(FILE* out, const gcap_doctor_diagnosis_t* a, const gcap_doctor_diagnosis_t* b);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_REPORT_REPORT_H_
