// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// json_text.h: writes JSON, and texts of unknown bytes as clean UTF-8, for all reports.
#ifndef GCAP_DOCTOR_REPORT_JSON_TEXT_H_
#define GCAP_DOCTOR_REPORT_JSON_TEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

// Takes the next character of a text: its code, or U+FFFD for a byte that is not UTF-8. 0 at the end, and stays there.
uint32_t gcap_doctor_utf8_next(const char** text);
// Is it a character that moves a terminal's cursor or colours it: a control character, or one that turns the direction?
bool gcap_doctor_utf8_is_control(uint32_t character);
void gcap_doctor_utf8_write(FILE* out, uint32_t character);
// A text for a line of a terminal: a newline is a space, another control character '?'; "..." after `most` characters.
void gcap_doctor_utf8_write_clean(FILE* out, const char* text, unsigned most);

// JSON: one document, written from the front to the back. A key is NULL in an array.
typedef struct gcap_doctor_json {
  FILE* out;
  unsigned depth;
  bool is_inside;  // something was written at this depth: a comma comes first
  unsigned flat;   // the depth from which on all is written on one line; 0 for none
} gcap_doctor_json_t;

void gcap_doctor_json_init(gcap_doctor_json_t* json, FILE* out);
// `bracket` is '{' or '['. gcap_doctor_json_open_flat's is a line until it is closed.
void gcap_doctor_json_open(gcap_doctor_json_t* json, const char* key, char bracket);
void gcap_doctor_json_open_flat(gcap_doctor_json_t* json, const char* key, char bracket);
void gcap_doctor_json_close(gcap_doctor_json_t* json, char bracket);
void gcap_doctor_json_text(gcap_doctor_json_t* json, const char* key, const char* text);  // NULL is null
void gcap_doctor_json_number(gcap_doctor_json_t* json, const char* key, uint64_t number);
void gcap_doctor_json_signed(gcap_doctor_json_t* json, const char* key, int64_t number);
void gcap_doctor_json_hex(gcap_doctor_json_t* json, const char* key, uint64_t number);  // a text: "0x1f"
void gcap_doctor_json_flag(gcap_doctor_json_t* json, const char* key, bool flag);
void gcap_doctor_json_null(gcap_doctor_json_t* json, const char* key);
// Microseconds with three digits, of nanoseconds.
void gcap_doctor_json_us(gcap_doctor_json_t* json, const char* key, uint64_t ns);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_REPORT_JSON_TEXT_H_
