// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// event_text.h: how a text is written as a value in a file of events (docs/doctor_events.md). A capture scope and
// gcap-doctor's recorder write such files, and neither links the other.
#ifndef GCAP_RULES_EVENT_TEXT_H_
#define GCAP_RULES_EVENT_TEXT_H_

#include <stddef.h>
#include <string.h>

// The bytes of the character of UTF-8 that `text` begins with; 0 if it begins with none. `length` is at least 1.
static inline size_t gcap_event_character_bytes(const char* text, size_t length) {
  const unsigned char* bytes = (const unsigned char*)text;
  const unsigned char first = bytes[0];
  if (first < 0x80) return 1;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || size > length) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((bytes[i] & 0xc0) != 0x80) return 0;
  }
  // Longer than needed, half of a pair, beyond the last.
  if ((first == 0xe0 && bytes[1] < 0xa0) || (first == 0xed && bytes[1] > 0x9f) || (first == 0xf0 && bytes[1] < 0x90) ||
      (first == 0xf4 && bytes[1] > 0x8f)) {
    return 0;
  }
  return size;
}

static inline const char* gcap_event_escape(char c) {
  switch (c) {
    case '\t': return "\\t";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\\': return "\\\\";
    default: return NULL;
  }
}

// Writes the `length` bytes at `text` by calls of `append`: escapes for what would end a field or a line, and U+FFFD
// for each byte that is no UTF-8.
static inline void gcap_event_write_text(const char* text, size_t length,
                                         void (*append)(void* user, const char* bytes, size_t size), void* user) {
  size_t plain = 0, at = 0;  // from `plain` on nothing needs a change
  while (at < length) {
    const size_t size = gcap_event_character_bytes(text + at, length - at);
    const char* instead = size == 0 ? "\xef\xbf\xbd" : gcap_event_escape(text[at]);
    if (instead != NULL) {
      append(user, text + plain, at - plain);
      append(user, instead, strlen(instead));
      plain = at + 1;
    }
    at += size != 0 ? size : 1;
  }
  append(user, text + plain, length - plain);
}

#endif  // GCAP_RULES_EVENT_TEXT_H_
