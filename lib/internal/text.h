// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// text.h: builds a text in a buffer of the caller's, without the heap and without ever writing beyond the buffer.
#ifndef GCAP_LIB_INTERNAL_TEXT_H_
#define GCAP_LIB_INTERNAL_TEXT_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Thread: one at a time.
typedef struct gcap_text {
  char* chars;      // the caller's buffer; ends in '\0' from gcap_text_init on
  size_t capacity;  // bytes of the buffer; with 0 nothing is written
  size_t length;    // that the whole text would have had, without its '\0'
} gcap_text_t;

// Begins an empty text. `chars` may be NULL when `capacity` is 0.
void gcap_text_init(gcap_text_t* text, char* chars, size_t capacity);

// Adds to the text, printf-style. A text that does not fit ends in "...", and nothing added later changes it any more
// but for the length.
void gcap_text_add(gcap_text_t* text, const char* format, ...) __attribute__((format(printf, 2, 3)));

static inline bool gcap_text_is_cut(const gcap_text_t* text) { return text->length >= text->capacity; }

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_INTERNAL_TEXT_H_
