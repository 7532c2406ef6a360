// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// inner.h: what other modules use of the options module, and users do not see: a runtime's options in the library's
// layout, and tables of options. A table has a row each, and what goes over the rows: parsing, and the names in
// messages. The provider options are such a table; the kit has another one, of run options (rows.h says how rows are
// written down). docs/options.md is printed from the same rows.
#ifndef GCAP_LIB_OPTIONS_INNER_H_
#define GCAP_LIB_OPTIONS_INNER_H_

#include <stddef.h>
#include <stdint.h>

#include "gcap/options.h"
#include "gcap/status.h"
#include "lib/options/value.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- The library's layout -------------------------------------------------------------------------------------------

// The caller's options in the library's layout; of NULL the defaults.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_options_read(const gcap_options_t* given, gcap_options_t* out_options) GCAP_NODISCARD;

// Checks that the options fit together, as gcap_runtime_create says; for it, and for tests that need no device.
//   INVALID_ARGUMENT  of gcap_runtime_create, what the options are refused for
gcap_status_t gcap_options_check(const gcap_options_t* options) GCAP_NODISCARD;

// Sets what follows from other options: has_user_stream, use_unified_stream, graph_scope. They are in the library's
// layout.
void gcap_options_derive(gcap_options_t* options);

// --- Tables ---------------------------------------------------------------------------------------------------------

enum { GCAP_OPTION_MAX_ROWS = 80, GCAP_OPTION_MAX_ALIASES = 2 };

typedef enum gcap_option_use {
  GCAP_OPTION_USE_GCAP,     // gcap acts on it
  GCAP_OPTION_USE_KERNELS,  // the EP's kernels read it (gcap_kernel_options_t)
  GCAP_OPTION_USE_REFUSED,  // no value but 0 is allowed, which is the default; it has no field
  GCAP_OPTION_USE_IGNORED,  // any value is allowed, and has no effect; it has no field
} gcap_option_use_t;

typedef struct gcap_option {
  const char* key;
  const char* aliases[GCAP_OPTION_MAX_ALIASES];  // other names for it; NULL: no more
  bool of_onnx_runtime;                          // ONNX Runtime has the key, with this meaning
  gcap_option_use_t use;
  gcap_option_kind_t kind;
  size_t offset;        // of its field
  const char* meaning;  // for the page; of a refused or ignored one the reason why
} gcap_option_t;

typedef struct gcap_option_table {
  const char* noun;      // "option"
  const char* function;  // that parses it
  const gcap_option_t* rows;
  size_t num_rows;
} gcap_option_table_t;

extern const gcap_option_table_t gcap_provider_option_table;  // of gcap_options_t

static inline bool gcap_option_has_field(const gcap_option_t* row) { return row->use <= GCAP_OPTION_USE_KERNELS; }

// Which prefixes keys may have.
typedef struct gcap_option_prefixes {
  bool allowed;         // "ep.cuda." is
  const char* ep_name;  // "ep.<name>." is too, and those of other EPs are ignored; NULL: there is no EP
} gcap_option_prefixes_t;

// Sets the fields of `fields` by their keys. `out_given`, of GCAP_OPTION_MAX_ROWS: not 0 for the rows that were given.
//   INVALID_ARGUMENT  an unknown key, or a value that is not allowed; some fields are set
gcap_status_t gcap_option_table_parse(const gcap_option_table_t* table, const gcap_option_prefixes_t* prefixes,
                                      void* fields, const char* const* keys, const char* const* values, size_t count,
                                      uint8_t* out_given) GCAP_NODISCARD;

// The row of a key, or of a further name for it.
//   INVALID_ARGUMENT  an unknown key
gcap_status_t gcap_option_table_find(const gcap_option_table_t* table, const gcap_option_prefixes_t* prefixes,
                                     const char* key, const gcap_option_t** out_row) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_OPTIONS_INNER_H_
