// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// printable.h: texts of the caller (keys, names, paths) as messages and log lines show them.
#ifndef GCAP_LIB_BASE_PRINTABLE_H_
#define GCAP_LIB_BASE_PRINTABLE_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Copies `from`, with each control character as \x and its two hexadecimal digits: so a line stays one line, and a
// terminal gets no orders. UTF-8 stays as it is, but for its control characters (U+0080 to U+009F). As snprintf:
// returns the length of the whole copy, and writes at most `capacity` bytes, of which the last is 0. No character is
// cut in two. `to` may be NULL if `capacity` is 0.
size_t gcap_printable(const char* from, char* to, size_t capacity);

// The most bytes of `text`, up to `limit`, that end between two characters of UTF-8.
size_t gcap_printable_cut(const char* text, size_t limit);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_BASE_PRINTABLE_H_
