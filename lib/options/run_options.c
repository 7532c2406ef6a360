// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Run options. Parsing works on a copy, so that a bad pair leaves the caller's options alone. Keys have no prefix: a
// host's run options are for all EPs. No locking: values only.

#include "lib/options/run_options.h"

#include "lib/internal/check_argument.h"
#include "lib/options/table.h"

GCAP_SIZED_OPTIONS(, gcap_run_options, .synchronize = true, .rerun_failed_capture = true);

gcap_status_t gcap_run_options_parse(gcap_run_options_t* options, const char* const* keys, const char* const* values,
                                     size_t count) {
  GCAP_RETURN_IF_NULL(options);
  if (count > 0) {
    GCAP_RETURN_IF_NULL(keys);
    GCAP_RETURN_IF_NULL(values);
  }
  gcap_run_options_t parsed;
  GCAP_RETURN_IF_ERROR(gcap_run_options_read(options, &parsed));
  const gcap_option_prefixes_t none = {.allowed = false};
  uint8_t given[GCAP_OPTION_MAX_ROWS];
  GCAP_RETURN_IF_ERROR(gcap_option_table_parse(&gcap_run_option_table, &none, &parsed, keys, values, count, given));
  gcap_sized_write(&gcap_run_options_type, &parsed, options);
  return NULL;
}
