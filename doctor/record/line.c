// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lines of the file of events. Nothing here prints with printf: this runs in each call of a program's captures.
#include "doctor/record/line.h"

#include <stdlib.h>
#include <string.h>

#include "doctor/base/grow.h"
#include "rules/event_text.h"

enum { kLineBytes = 512 };

static bool reserve(gcap_doctor_line_t* line, size_t more) {
  if (line->failed) return false;
  if (line->capacity - line->size >= more) return true;
  // A line has some hundred bytes: the first step is one for all of it.
  const size_t need = line->size + more;
  line->failed = !gcap_doctor_grow(&line->data, &line->capacity, need > kLineBytes ? need : kLineBytes, 1);
  return !line->failed;
}

void gcap_doctor_line_append(gcap_doctor_line_t* line, const char* bytes, size_t size) {
  if (size == 0 || !reserve(line, size)) return;
  memcpy(line->data + line->size, bytes, size);
  line->size += size;
}

void gcap_doctor_line_begin(gcap_doctor_line_t* line, const char* kind) {
  gcap_doctor_line_append(line, kind, strlen(kind));
}

size_t gcap_doctor_line_cut(const char* text, size_t length, size_t most) {
  if (length <= most) return length;
  length = most;
  while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) --length;
  return length;
}

void gcap_doctor_line_end(gcap_doctor_line_t* line) { gcap_doctor_line_append(line, "\n", 1); }

static void begin_field(gcap_doctor_line_t* line, const char* key) {
  gcap_doctor_line_append(line, "\t", 1);
  gcap_doctor_line_append(line, key, strlen(key));
  gcap_doctor_line_append(line, "=", 1);
}

static void append_number(gcap_doctor_line_t* line, uint64_t value, unsigned base) {
  char digits[24];
  size_t at = sizeof(digits);
  do {
    digits[--at] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  gcap_doctor_line_append(line, digits + at, sizeof(digits) - at);
}

void gcap_doctor_line_number(gcap_doctor_line_t* line, const char* key, uint64_t value) {
  begin_field(line, key);
  append_number(line, value, 10);
}

void gcap_doctor_line_hex(gcap_doctor_line_t* line, const char* key, uint64_t value) {
  begin_field(line, key);
  gcap_doctor_line_append(line, "0x", 2);
  append_number(line, value, 16);
}

void gcap_doctor_line_ids(gcap_doctor_line_t* line, const char* key, const uint32_t* ids, size_t count) {
  if (count == 0) return;
  begin_field(line, key);
  for (size_t i = 0; i < count; ++i) {
    if (i != 0) gcap_doctor_line_append(line, ",", 1);
    append_number(line, ids[i], 10);
  }
}

static void append_text(void* line, const char* bytes, size_t size) { gcap_doctor_line_append(line, bytes, size); }

void gcap_doctor_line_field(gcap_doctor_line_t* line, const char* key, const char* value) {
  begin_field(line, key);
  gcap_event_write_text(value, strlen(value), append_text, line);
}

void gcap_doctor_line_clear(gcap_doctor_line_t* line) {
  line->size = 0;
  line->failed = false;
}

void gcap_doctor_line_free(gcap_doctor_line_t* line) {
  free(line->data);
  memset(line, 0, sizeof(*line));
}
