// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rows.h: how the rows of a table of options (lib/options/inner.h) are written down. The source with the table defines
// OPTIONS, the struct whose fields the rows set. For sources, and for no header.
#ifndef GCAP_LIB_OPTIONS_ROWS_H_
#define GCAP_LIB_OPTIONS_ROWS_H_

#include <stdbool.h>
#include <stddef.h>

#define ORT true
#define OWN false

// A row: key, ONNX Runtime's or gcap's own, who uses it, kind, field, meaning; and with aliases behind.
#define ROW_ALSO(name, origin, user, kind_of_value, field, said, ...)                                \
  {                                                                                                  \
    .key = name, .aliases = {__VA_ARGS__}, .of_onnx_runtime = origin, .use = GCAP_OPTION_USE_##user, \
    .kind = GCAP_OPTION_##kind_of_value, .offset = offsetof(OPTIONS, field), .meaning = said         \
  }
#define ROW(name, origin, user, kind_of_value, field, said) \
  ROW_ALSO(name, origin, user, kind_of_value, field, said, NULL)
// A row of ONNX Runtime's that is refused or ignored, and why.
#define NO_FIELD(name, user, kind_of_value, said) ROW(name, ORT, user, kind_of_value, struct_size, said)

#define GCAP_NUM_OPTION_ROWS(rows) (sizeof(rows) / sizeof((rows)[0]))

#endif  // GCAP_LIB_OPTIONS_ROWS_H_
