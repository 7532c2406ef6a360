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

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_REPORT_REPORT_H_
