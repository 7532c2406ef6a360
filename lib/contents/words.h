// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// words.h: the words of a node's arguments that are, or may be, pointers.
#ifndef GCAP_LIB_CONTENTS_WORDS_H_
#define GCAP_LIB_CONTENTS_WORDS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/contents/inner.h"

typedef struct gcap_contents_word {
  size_t part, offset;  // the offset from the node's first byte
  uintptr_t address;
  bool is_pointer;           // of a copy or a fill; a kernel's word may be a number
  size_t bytes;              // that the node works on from there; 0: a kernel's, which nobody knows
  bool is_read, is_written;  // of a kernel both, which nobody knows either
} gcap_contents_word_t;

// Calls `visit` for each such word, but those that no address can be, until a call fails.
//   errors of `visit`
gcap_status_t gcap_contents_each_word(const gcap_contents_t* contents, size_t node,
                                      gcap_status_t (*visit)(void* user, const gcap_contents_word_t* word),
                                      void* user) GCAP_NODISCARD;

#endif  // GCAP_LIB_CONTENTS_WORDS_H_
