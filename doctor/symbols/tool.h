// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// tool.h: a program's answer within a time.
#ifndef GCAP_DOCTOR_SYMBOLS_TOOL_H_
#define GCAP_DOCTOR_SYMBOLS_TOOL_H_

#include <stdbool.h>
#include <stdint.h>

#include "doctor/base/heap.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gcap_doctor_tool_result {
  GCAP_DOCTOR_TOOL_ANSWERED = 0,
  GCAP_DOCTOR_TOOL_MISSING,  // no such program
  GCAP_DOCTOR_TOOL_FAILED,   // it ended with another code than 0, or did not end in time
} gcap_doctor_tool_result_t;

// Runs a program of PATH, whose arguments end with NULL, until `deadline_ns` of clock.h at most. *out_text is its
// standard output, also where it failed; "" for none.
gcap_doctor_tool_result_t gcap_doctor_tool_ask(gcap_doctor_heap_t* heap, char* const* arguments, uint64_t deadline_ns,
                                               char** out_text);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_SYMBOLS_TOOL_H_
