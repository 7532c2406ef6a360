// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The tables of //rules, looked up when a capture has failed. Constant data, no locking.

#include "lib/capture/rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum {
#define CAPTURE_RULE(id, name, code, situation, remedy) RULE_##id,
#define CAPTURE_GATE CAPTURE_RULE
#include "rules/capture_rules.inc"
#undef CAPTURE_GATE
#undef CAPTURE_RULE
};

static const gcap_capture_rule_t rules[] = {
#define CAPTURE_RULE(id, name, code, situation, remedy) {#id, code, situation, remedy},
#define CAPTURE_GATE CAPTURE_RULE
#include "rules/capture_rules.inc"
#undef CAPTURE_GATE
#undef CAPTURE_RULE
};

static const struct {
  const char* function;
  int rule;
} calls[] = {
#define CAPTURE_CALL(function, rule_id) {#function, RULE_##rule_id},
#include "rules/capture_calls.inc"
#undef CAPTURE_CALL
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static bool calls_function(const char* call, const char* function) {
  size_t length = strlen(function);
  return strncmp(call, function, length) == 0 && (call[length] == '(' || call[length] == '\0');
}

const gcap_capture_rule_t* gcap_capture_rule_of_call(const char* call, cudaError_t code) {
  for (size_t i = 0; i < LENGTH(calls); ++i) {
    const gcap_capture_rule_t* rule = &rules[calls[i].rule];
    if (calls_function(call, calls[i].function) && (code == cudaSuccess || code == rule->code)) return rule;
  }
  return NULL;
}

const gcap_capture_rule_t* gcap_capture_rule_of_code(cudaError_t code) {
  switch ((int)code) {
    case cudaErrorStreamCaptureUnsupported: return &rules[RULE_R26];
    case cudaErrorStreamCaptureInvalidated: return &rules[RULE_R5];
    case cudaErrorStreamCaptureMerge: return &rules[RULE_R16];
    case cudaErrorStreamCaptureUnmatched: return &rules[RULE_R3];
    case cudaErrorStreamCaptureUnjoined: return &rules[RULE_R6];
    case cudaErrorStreamCaptureIsolation: return &rules[RULE_R17];
    case cudaErrorStreamCaptureImplicit: return &rules[RULE_R15];
    case cudaErrorCapturedEvent: return &rules[RULE_R13];
    case cudaErrorStreamCaptureWrongThread: return &rules[RULE_R4];
    default: return NULL;
  }
}
