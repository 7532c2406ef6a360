// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// text.h: lines of the file of events, put together in memory. docs/doctor_events.md is the format.
#ifndef GCAP_DOCTOR_RECORD_TEXT_H_
#define GCAP_DOCTOR_RECORD_TEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

// Zeroed is empty. A text that could not grow says so in `failed`, and is then not to be written.
// Thread: one at a time
typedef struct gcap_text {
  char* data;
  size_t size, capacity;
  bool failed;
} gcap_text_t;

void gcap_text_append(gcap_text_t* text, const char* bytes, size_t size);
// A line is its kind, fields, and its end.
void gcap_text_line(gcap_text_t* text, const char* kind);
void gcap_text_number(gcap_text_t* text, const char* key, uint64_t value);
void gcap_text_hex(gcap_text_t* text, const char* key, uint64_t value);
// `value` is written as UTF-8: what is none in it becomes U+FFFD.
void gcap_text_field(gcap_text_t* text, const char* key, const char* value);
void gcap_text_end(gcap_text_t* text);
// Ids, separated by commas; no field if there are none.
void gcap_text_ids(gcap_text_t* text, const char* key, const uint32_t* ids, size_t count);
void gcap_text_clear(gcap_text_t* text);
void gcap_text_free(gcap_text_t* text);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_TEXT_H_
