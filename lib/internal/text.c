// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Texts. A text is full once its length reaches the capacity of the buffer; the length goes on counting, so that the
// caller learns how large a buffer would have done. No locking: a text belongs to one thread at a time.

#include "lib/internal/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gcap_text_init(gcap_text_t* text, char* chars, size_t capacity) {
  *text = (gcap_text_t){.chars = chars, .capacity = capacity};
  if (capacity > 0) chars[0] = '\0';
}

static bool continues_a_character(char byte) { return ((unsigned char)byte & 0xC0u) == 0x80u; }  // of UTF-8

// Lets the full buffer end in "...", or in as many dots as there is room for. A character of several bytes goes whole.
static void mark_cut(gcap_text_t* text) {
  static const char dots[] = "...";
  if (text->capacity == 0) return;
  size_t room = text->capacity - 1;
  size_t num_dots = room < strlen(dots) ? room : strlen(dots);
  size_t end = room - num_dots;
  while (end > 0 && continues_a_character(text->chars[end])) --end;
  memcpy(text->chars + end, dots, num_dots);
  text->chars[end + num_dots] = '\0';
}

void gcap_text_add(gcap_text_t* text, const char* format, ...) {
  const bool was_cut = gcap_text_is_cut(text);
  va_list args;
  va_start(args, format);
  const int length =
      vsnprintf(was_cut ? NULL : text->chars + text->length, was_cut ? 0 : text->capacity - text->length, format, args);
  va_end(args);
  if (length <= 0) return;
  text->length += (size_t)length;
  if (!was_cut && gcap_text_is_cut(text)) mark_cut(text);
}
