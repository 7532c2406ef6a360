// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pack.h: the corpus of a target in one file of text. Git compares and merges lines, so an input is a line: its name, a
// colon, its bytes in hex. Lines are sorted by name, and the last line is `end`: a pack that was cut off is not taken
// for a smaller one.
#ifndef GCAP_TEST_FUZZ_PACK_H_
#define GCAP_TEST_FUZZ_PACK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The first line.
#define FUZZ_PACK_HEADING \
  "# The inputs of a fuzz target, for tools/fuzz and //test/fuzz: a name, a colon, bytes in hex.\n"
#define FUZZ_PACK_END "end\n"

#define FUZZ_PACK_NAME_RULE "a letter or digit, and at most 63 more of these, '_', '-' and '.'"

// Of a file that is read.
#define FUZZ_PACK_MAX_BYTES ((size_t)1 << 20)

#define FUZZ_PACK_ERROR_BYTES 512

// Takes an input: `data` is on the heap in its own size, so that a sanitizer sees a read past its end.
typedef void (*fuzz_pack_take_t)(void* context, const char* name, const uint8_t* data, size_t bytes);

// By FUZZ_PACK_NAME_RULE.
bool fuzz_pack_name_is_good(const char* name);

// Gives each input of the pack to `take`. False: `error` is a sentence that names the file and the line, and the inputs
// before that line were given.
bool fuzz_pack_read(const char* path, fuzz_pack_take_t take, void* context, char error[FUZZ_PACK_ERROR_BYTES]);

// The bytes of a file, on the heap in their own size, for the caller to free. NULL: `error` is a sentence.
char* fuzz_pack_read_file(const char* path, size_t* bytes, char error[FUZZ_PACK_ERROR_BYTES]);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_TEST_FUZZ_PACK_H_
