// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// installed.h: what is installed with the command: the recorder's library, and the pages of rules.
#ifndef GCAP_DOCTOR_COMMAND_INSTALLED_H_
#define GCAP_DOCTOR_COMMAND_INSTALLED_H_

#include "doctor/base/heap.h"

#ifdef __cplusplus
extern "C" {
#endif

// The absolute path of libgcap_doctor.so: that of GCAP_DOCTOR_LIBRARY if it is set. NULL after a sentence.
const char* gcap_doctor_installed_library(gcap_doctor_heap_t* heap);

// The page of the rule "R11", in the folder that GCAP_DOCTOR_RULES names if it is set; NULL where no pages are.
const char* gcap_doctor_installed_rule_page(gcap_doctor_heap_t* heap, const char* rule);

// The folder of the Python package gcap_doctor that the command lies in; NULL where it lies in none.
const char* gcap_doctor_installed_package(gcap_doctor_heap_t* heap);
// The folder of what an audit has interpreters run; NULL if it is not installed. The text is the heap's or the
// environment's.
const char* gcap_doctor_installed_python(gcap_doctor_heap_t* heap);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_COMMAND_INSTALLED_H_
