// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lines of the file of events. Nothing here prints with printf: this runs in each call of a program's captures.
#include "doctor/record/line.h"

#include <stdlib.h>
#include <string.h>

static bool reserve(gcap_line_t* line, size_t more) {
  if (line->failed) return false;
  if (line->capacity - line->size >= more) return true;
  size_t capacity = line->capacity != 0 ? line->capacity : 512;
  while (capacity - line->size < more) capacity *= 2;
  char* data = realloc(line->data, capacity);
  if (data == NULL) {
    line->failed = true;
    return false;
  }
  line->data = data;
  line->capacity = capacity;
  return true;
}

void gcap_line_append(gcap_line_t* line, const char* bytes, size_t size) {
  if (size == 0 || !reserve(line, size)) return;
  memcpy(line->data + line->size, bytes, size);
  line->size += size;
}

void gcap_line_begin(gcap_line_t* line, const char* kind) { gcap_line_append(line, kind, strlen(kind)); }

void gcap_line_end(gcap_line_t* line) { gcap_line_append(line, "\n", 1); }

static void begin_field(gcap_line_t* line, const char* key) {
  gcap_line_append(line, "\t", 1);
  gcap_line_append(line, key, strlen(key));
  gcap_line_append(line, "=", 1);
}

static void append_number(gcap_line_t* line, uint64_t value, unsigned base) {
  char digits[24];
  size_t at = sizeof(digits);
  do {
    digits[--at] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  gcap_line_append(line, digits + at, sizeof(digits) - at);
}

void gcap_line_number(gcap_line_t* line, const char* key, uint64_t value) {
  begin_field(line, key);
  append_number(line, value, 10);
}

void gcap_line_hex(gcap_line_t* line, const char* key, uint64_t value) {
  begin_field(line, key);
  gcap_line_append(line, "0x", 2);
  append_number(line, value, 16);
}

void gcap_line_ids(gcap_line_t* line, const char* key, const uint32_t* ids, size_t count) {
  if (count == 0) return;
  begin_field(line, key);
  for (size_t i = 0; i < count; ++i) {
    if (i != 0) gcap_line_append(line, ",", 1);
    append_number(line, ids[i], 10);
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

void gcap_line_field(gcap_line_t* line, const char* key, const char* value) {
  begin_field(line, key);
  const char* plain = value;  // from here on nothing needs a change
  const char* at = value;
  while (*at != '\0') {
    const size_t size = character((const unsigned char*)at);
    const char* instead = size == 0 ? "\xef\xbf\xbd" : escape(*at);
    if (instead != NULL) {
      gcap_line_append(line, plain, (size_t)(at - plain));
      gcap_line_append(line, instead, strlen(instead));
      plain = at + 1;
    }
    at += size != 0 ? size : 1;
  }
  gcap_line_append(line, plain, (size_t)(at - plain));
}

void gcap_line_clear(gcap_line_t* line) {
  line->size = 0;
  line->failed = false;
}

void gcap_line_free(gcap_line_t* line) {
  free(line->data);
  memset(line, 0, sizeof(*line));
}
