// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// line.h: lines of the file of events, put together in memory. docs/doctor_events.md is the format.
#ifndef GCAP_DOCTOR_RECORD_LINE_H_
#define GCAP_DOCTOR_RECORD_LINE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

// Lines, the last of them perhaps without its end. Zeroed is empty. Where memory was short, `failed` says so, and the
// lines are not to be written.
// Thread: one at a time
typedef struct gcap_doctor_line {
  char* data;
  size_t size, capacity;
  bool failed;
} gcap_doctor_line_t;

void gcap_doctor_line_append(gcap_doctor_line_t* line, const char* bytes, size_t size);
// A line is its kind, fields, and its end.
void gcap_doctor_line_begin(gcap_doctor_line_t* line, const char* kind);
void gcap_doctor_line_number(gcap_doctor_line_t* line, const char* key, uint64_t value);
void gcap_doctor_line_hex(gcap_doctor_line_t* line, const char* key, uint64_t value);
// `value` is written as UTF-8: what is none in it becomes U+FFFD.
void gcap_doctor_line_field(gcap_doctor_line_t* line, const char* key, const char* value);
// The length of a text that is to have `most` bytes at most: a longer one is cut where a character begins.
size_t gcap_doctor_line_cut(const char* text, size_t length, size_t most);
void gcap_doctor_line_end(gcap_doctor_line_t* line);
// Ids, separated by commas; no field if there are none.
void gcap_doctor_line_ids(gcap_doctor_line_t* line, const char* key, const uint32_t* ids, size_t count);
void gcap_doctor_line_clear(gcap_doctor_line_t* line);
void gcap_doctor_line_free(gcap_doctor_line_t* line);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_LINE_H_
