// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The tables of this folder, looked up when a capture has failed, and the one sentence that names a rule. The driver's
// functions go by the runtime's names, so one table of calls serves who hears of the one or the other. Constant data,
// no locking.
#include "rules/rules.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/rule_words.h"

enum {
#define CAPTURE_CODE(name, number) CODE_##name = (number),
#include "rules/capture_codes.inc"
#undef CAPTURE_CODE
};

enum {
#define CAPTURE_RULE(id, name, code, situation, remedy) RULE_##id,
#define CAPTURE_GATE CAPTURE_RULE
#include "rules/capture_rules.inc"
#undef CAPTURE_GATE
#undef CAPTURE_RULE
};

static const gcap_rule_t rules[] = {
#define CAPTURE_RULE(id, name, code, situation, remedy) {#id, #name, #code, CODE_##code, false, situation, remedy},
#define CAPTURE_GATE(id, name, code, situation, remedy) {#id, #name, #code, CODE_##code, true, situation, remedy},
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

typedef struct driver_call {
  const char* function;
  const char* runtime_name;
} driver_call_t;

static const driver_call_t driver_calls[] = {
#define DRIVER_CALL(driver_function, runtime_function) {#driver_function, #runtime_function},
#include "rules/driver_calls.inc"
#undef DRIVER_CALL
};

enum { kMaxFunctionBytes = 128 };  // of the driver's names, the longest of which has 50

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

const gcap_rule_t* gcap_rules(size_t* out_count) {
  *out_count = LENGTH(rules);
  return rules;
}

const gcap_rule_t* gcap_rule_by_id(const char* id) {
  if (id == NULL) return NULL;
  for (size_t i = 0; i < LENGTH(rules); ++i) {
    if (strcmp(rules[i].id, id) == 0) return &rules[i];
  }
  return NULL;
}

// --- The driver's names ----------------------------------------------------------------------------------------------

static bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t name_length(const char* text) {
  size_t length = 0;
  while (is_of_name(text[length])) ++length;
  return length;
}

// The length without the last "_v2", "_ptsz" or "_ptds"; the same length if the name ends otherwise.
static size_t without_suffix(const char* name, size_t length) {
  if (length > 5 && (memcmp(name + length - 5, "_ptsz", 5) == 0 || memcmp(name + length - 5, "_ptds", 5) == 0)) {
    return length - 5;
  }
  size_t digits = length;
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  if (digits == length || digits < 2 || name[digits - 1] != 'v' || name[digits - 2] != '_') return length;
  return digits - 2;
}

static int by_function(const void* key, const void* row) {
  return strcmp((const char*)key, ((const driver_call_t*)row)->function);
}

static const char* runtime_name(const char* function, size_t length) {
  char name[kMaxFunctionBytes];
  for (size_t longer = SIZE_MAX; longer != length;) {
    longer = length;
    length = without_suffix(function, length);
  }
  if (length >= sizeof(name)) return NULL;
  memcpy(name, function, length);
  name[length] = '\0';
  const driver_call_t* row = bsearch(name, driver_calls, LENGTH(driver_calls), sizeof(driver_calls[0]), by_function);
  return row != NULL ? row->runtime_name : NULL;
}

const char* gcap_rule_runtime_name(const char* driver_function) {
  if (driver_function == NULL) return NULL;
  return runtime_name(driver_function, strlen(driver_function));
}

// --- Which rule ------------------------------------------------------------------------------------------------------

const gcap_rule_t* gcap_rule_of_call(const char* call, int code) {
  if (call == NULL) return NULL;
  size_t length = name_length(call);
  if (call[length] != '(' && call[length] != '\0') return NULL;
  const char* name = runtime_name(call, length);
  if (name == NULL) name = call;
  if (name != call) length = strlen(name);
  for (size_t i = 0; i < LENGTH(calls); ++i) {
    if (strlen(calls[i].function) != length || memcmp(calls[i].function, name, length) != 0) continue;
    const gcap_rule_t* rule = &rules[calls[i].rule];
    if (code == CODE_cudaSuccess || code == rule->code) return rule;
  }
  return NULL;
}

const gcap_rule_t* gcap_rule_of_code(int code) {
  switch (code) {
    case CODE_cudaErrorStreamCaptureUnsupported: return &rules[RULE_R26];
    case CODE_cudaErrorStreamCaptureInvalidated: return &rules[RULE_R5];
    case CODE_cudaErrorStreamCaptureMerge: return &rules[RULE_R16];
    case CODE_cudaErrorStreamCaptureUnmatched: return &rules[RULE_R3];
    case CODE_cudaErrorStreamCaptureUnjoined: return &rules[RULE_R6];
    case CODE_cudaErrorStreamCaptureIsolation: return &rules[RULE_R17];
    case CODE_cudaErrorStreamCaptureImplicit: return &rules[RULE_R15];
    case CODE_cudaErrorCapturedEvent: return &rules[RULE_R13];
    case CODE_cudaErrorStreamCaptureWrongThread: return &rules[RULE_R4];
    default: return NULL;
  }
}

// --- Words -----------------------------------------------------------------------------------------------------------

const char* gcap_rule_code_name(int code) {
  switch (code) {
#define CAPTURE_CODE(name, number) \
  case number:                     \
    return #name;
#include "rules/capture_codes.inc"
#undef CAPTURE_CODE
    default: return NULL;
  }
}

int gcap_rule_print(char* text, size_t bytes, const gcap_rule_t* rule) {
  return snprintf(text, bytes, GCAP_RULE_WORDS, rule->id, rule->situation, rule->remedy, rule->id + 1);
}
