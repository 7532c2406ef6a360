// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The function of a library that a program called: the outermost frame of the C stack that lies in such a library, for
// the program can only have entered it by a function that the library exports. Locking: none.
#include <string.h>

#include "doctor/analyse/analysis.h"
#include "doctor/base/path.h"

static bool begins_with(const char* text, const char* beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool is_library(const char* module) {
  static const char* const names[] = {"libcublas", "libcudnn", "libcusolver", "libcusparse",
                                      "libcufft",  "libnccl",  "libcurand",   "libnvinfer"};
  const char* base = gcap_doctor_base_name(module);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (begins_with(base, names[i])) return true;
  }
  return false;
}

bool gcap_doctor_library_of(const char* function) {
  static const char* const names[] = {"cublas", "cudnn", "cusolver", "cusparse", "cufft", "nccl", "curand"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (begins_with(function, names[i])) return true;
  }
  return false;
}

const gcap_rule_t* gcap_doctor_library_rule(const char* function) {
  const gcap_rule_t* rule = gcap_rule_of_call(function, 0);
  if (rule != NULL) return rule;
  if (begins_with(function, "cudnnFind")) return gcap_rule_by_id("R46");
  return begins_with(function, "nccl") ? gcap_rule_by_id("R50") : NULL;
}

const char* gcap_doctor_library_function(const gcap_doctor_recording_t* recording, uint32_t call) {
  const uint32_t stack = recording->calls[call].stack;
  if (gcap_doctor_library_of(recording->calls[call].function)) return recording->calls[call].function;
  if (stack >= recording->num_stacks) return NULL;
  const gcap_doctor_event_stack_t* of = &recording->stacks[stack];
  for (uint32_t i = of->num_c; i-- > 0;) {
    const gcap_doctor_event_frame_t* frame = &recording->frames[of->c[i]];
    if (is_library(frame->module) && frame->function[0] != '\0') return frame->function;
  }
  return NULL;
}
