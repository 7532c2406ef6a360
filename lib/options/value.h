// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// value.h: the values of options: which texts are allowed, and the fields that they are read into and printed from.
#ifndef GCAP_LIB_OPTIONS_VALUE_H_
#define GCAP_LIB_OPTIONS_VALUE_H_

#include <stdbool.h>

#include "lib/internal/text.h"

// What a key's value is, and so the type of its field.
typedef enum gcap_option_kind {
  GCAP_OPTION_BOOL,         // bool
  GCAP_OPTION_FLAG,         // bool, as ONNX Runtime's run options spell it
  GCAP_OPTION_NOT,          // bool that is true where the option is 0
  GCAP_OPTION_DEVICE,       // int
  GCAP_OPTION_GRAPH_ID,     // int
  GCAP_OPTION_COUNT,        // uint32_t
  GCAP_OPTION_CALLS,        // uint32_t, up to the largest ledger
  GCAP_OPTION_NUMBER,       // size_t
  GCAP_OPTION_BYTES,        // size_t
  GCAP_OPTION_BYTES_64,     // uint64_t
  GCAP_OPTION_ADDRESS,      // a pointer to an object or a function, which are alike wherever CUDA runs
  GCAP_OPTION_PATH,         // char[GCAP_OPTIONS_MAX_PATH_BYTES]
  GCAP_OPTION_ARENAS,       // uint64_t, bit i: the arena of device i
  GCAP_OPTION_STRATEGY,     // bool
  GCAP_OPTION_POLICY,       // gcap_graph_policy_t
  GCAP_OPTION_SCOPE,        // gcap_graph_scope_t
  GCAP_OPTION_AUDIT,        // gcap_graph_audit_level_t
  GCAP_OPTION_CONV_SEARCH,  // gcap_conv_search_t
  GCAP_OPTION_BINDINGS,     // gcap_bindings_t of the kit
  GCAP_OPTION_TEXT,         // none: any text
} gcap_option_kind_t;

// Reads a value into a field of the kind; false, with nothing changed, when it is not allowed.
bool gcap_option_value_read(gcap_option_kind_t kind, const char* text, void* field);
// Adds the field's value, as gcap_option_value_read reads it. Of an option of runs alone it adds nothing.
void gcap_option_value_print(gcap_option_kind_t kind, const void* field, gcap_text_t* text);
// Says which values are allowed, as a part of a sentence.
const char* gcap_option_value_allowed(gcap_option_kind_t kind);

#endif  // GCAP_LIB_OPTIONS_VALUE_H_
