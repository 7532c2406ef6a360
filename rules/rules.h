// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rules.h: the tables of this folder as data, and the words in which gcap, the simulator and gcap-doctor name a rule.
// No CUDA header is needed: codes are numbers here.
#ifndef GCAP_RULES_RULES_H_
#define GCAP_RULES_RULES_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_rule {
  const char* id;         // "R11"
  const char* name;       // "CAPTURING_STREAM"
  const char* code_name;  // "cudaErrorStreamCaptureUnsupported"
  int code;               // 900
  bool is_gate;           // see capture_rules.inc
  const char* situation;
  const char* remedy;
} gcap_rule_t;

// All rules, in the order of the table.
const gcap_rule_t* gcap_rules(size_t* out_count);

// By "R11"; NULL for none.
const gcap_rule_t* gcap_rule_by_id(const char* id);

// By the function that `call`, the text of a call, begins with, and by the code that it answered; 0 where the code is
// not known, or tells nothing. The function is the runtime's or the driver's: cuMemAlloc_v2 is cudaMalloc. NULL when no
// row fits.
const gcap_rule_t* gcap_rule_of_call(const char* call, int code);

// By the code alone: the rule that it most often stands for. NULL for a code that is not about captures.
const gcap_rule_t* gcap_rule_of_code(int code);

// The runtime's function for a driver's function, in a text that lives for ever: "cudaMalloc" for "cuMemAlloc_v2". NULL
// for a function that has no other name.
const char* gcap_rule_runtime_name(const char* driver_function);

// The name of a code: "cudaErrorStreamCaptureUnsupported" for 900; NULL for a code that no rule has.
const char* gcap_rule_code_name(int code);

// The words in which a rule is named after a call that broke a capture, as snprintf writes them:
// "rule R11: a call that ...; remedy: ...; see docs/rules/r11.md".
int gcap_rule_print(char* text, size_t bytes, const gcap_rule_t* rule);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_RULES_RULES_H_
