// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lines of the file of events. Nothing here prints with printf: this runs in each call of a program's captures.
#include "doctor/record/text.h"

#include <stdlib.h>
#include <string.h>

static bool reserve(gcap_text_t* text, size_t more) {
  if (text->failed) return false;
  if (text->capacity - text->size >= more) return true;
  size_t capacity = text->capacity != 0 ? text->capacity : 512;
  while (capacity - text->size < more) capacity *= 2;
  char* data = realloc(text->data, capacity);
  if (data == NULL) {
    text->failed = true;
    return false;
  }
  text->data = data;
  text->capacity = capacity;
  return true;
}

void gcap_text_append(gcap_text_t* text, const char* bytes, size_t size) {
  if (size == 0 || !reserve(text, size)) return;
  memcpy(text->data + text->size, bytes, size);
  text->size += size;
}

void gcap_text_line(gcap_text_t* text, const char* kind) { gcap_text_append(text, kind, strlen(kind)); }

void gcap_text_end(gcap_text_t* text) { gcap_text_append(text, "\n", 1); }

static void begin_field(gcap_text_t* text, const char* key) {
  gcap_text_append(text, "\t", 1);
  gcap_text_append(text, key, strlen(key));
  gcap_text_append(text, "=", 1);
}

static void append_number(gcap_text_t* text, uint64_t value, unsigned base) {
  char digits[24];
  size_t at = sizeof(digits);
  do {
    digits[--at] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  gcap_text_append(text, digits + at, sizeof(digits) - at);
}

void gcap_text_number(gcap_text_t* text, const char* key, uint64_t value) {
  begin_field(text, key);
  append_number(text, value, 10);
}

void gcap_text_hex(gcap_text_t* text, const char* key, uint64_t value) {
  begin_field(text, key);
  gcap_text_append(text, "0x", 2);
  append_number(text, value, 16);
}

void gcap_text_ids(gcap_text_t* text, const char* key, const uint32_t* ids, size_t count) {
  if (count == 0) return;
  begin_field(text, key);
  for (size_t i = 0; i < count; ++i) {
    if (i != 0) gcap_text_append(text, ",", 1);
    append_number(text, ids[i], 10);
  }
}

// The bytes of the character at `value`; 0 if it is no UTF-8.
static size_t character(const unsigned char* value) {
  const unsigned char first = value[0];
  if (first < 0x80) return 1;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((value[i] & 0xc0) != 0x80) return 0;
  }
  // Longer than needed, half of a pair, beyond the last.
  if ((first == 0xe0 && value[1] < 0xa0) || (first == 0xed && value[1] > 0x9f) || (first == 0xf0 && value[1] < 0x90) ||
      (first == 0xf4 && value[1] > 0x8f)) {
    return 0;
  }
  return size;
}

static const char* escape(char c) {
  switch (c) {
    case '\t': return "\\t";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\\': return "\\\\";
    default: return NULL;
  }
}

void gcap_text_field(gcap_text_t* text, const char* key, const char* value) {
  begin_field(text, key);
  const char* plain = value;  // from here on nothing needs a change
  const char* at = value;
  while (*at != '\0') {
    const size_t size = character((const unsigned char*)at);
    const char* instead = size == 0 ? "\xef\xbf\xbd" : escape(*at);
    if (instead != NULL) {
      gcap_text_append(text, plain, (size_t)(at - plain));
      gcap_text_append(text, instead, strlen(instead));
      plain = at + 1;
    }
    at += size != 0 ? size : 1;
  }
  gcap_text_append(text, plain, (size_t)(at - plain));
}

void gcap_text_clear(gcap_text_t* text) {
  text->size = 0;
  text->failed = false;
}

void gcap_text_free(gcap_text_t* text) {
  free(text->data);
  memset(text, 0, sizeof(*text));
}
