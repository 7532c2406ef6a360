// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What reports ask of the analyser.
#include "doctor/analyse/diagnosis.h"

const char* gcap_finding_kind_name(gcap_finding_kind_t kind) {
  return kind == GCAP_FINDING_CULPRIT ? "culprit" : "lost_call";
}

uint32_t gcap_diagnosis_capture_of(const gcap_diagnosis_t* diagnosis, uint32_t call) {
  (void)call;
  return diagnosis->num_captures != 0 ? 0 : GCAP_NONE;
}
