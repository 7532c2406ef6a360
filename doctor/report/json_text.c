// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// JSON, and clean UTF-8.
//
// The idea: file names, thread names and symbols are bytes that a program chose. Every byte of them that is no UTF-8
// becomes U+FFFD here, so that what is written is valid whatever was recorded. Locking: none.
#include "doctor/report/json_text.h"

#include <inttypes.h>
#include <string.h>

// --- UTF-8 -----------------------------------------------------------------------------------------------------------

enum { kReplacement = 0xFFFD };

// How many bytes follow a first byte; 4 for a byte that is none.
static unsigned count_following(unsigned char first) {
  if (first < 0x80) return 0;
  if (first >= 0xC2 && first < 0xE0) return 1;
  if (first >= 0xE0 && first < 0xF0) return 2;
  return first >= 0xF0 && first < 0xF5 ? 3 : 4;
}

uint32_t gcap_doctor_utf8_next(const char** text) {
  static const uint32_t smallest[] = {0, 0x80, 0x800, 0x10000};
  const unsigned char* bytes = (const unsigned char*)*text;
  if (bytes[0] == '\0') return 0;
  ++*text;
  unsigned following = count_following(bytes[0]);
  if (following == 0) return bytes[0];
  if (following == 4) return kReplacement;
  uint32_t character = bytes[0] & (0x3Fu >> following);
  for (unsigned i = 1; i <= following; ++i) {
    if ((bytes[i] & 0xC0) != 0x80) return kReplacement;
    character = character << 6 | (bytes[i] & 0x3F);
  }
  // Too long a form, half of a pair of UTF-16, or beyond Unicode: a byte of it is replaced at a time.
  if (character < smallest[following] || (character >= 0xD800 && character < 0xE000) || character > 0x10FFFF) {
    return kReplacement;
  }
  *text += following;
  return character;
}

bool gcap_doctor_utf8_is_control(uint32_t character) {
  return character < 0x20 || (character >= 0x7F && character < 0xA0) || (character >= 0x200E && character <= 0x200F) ||
         (character >= 0x2028 && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069) ||
         character == 0xFEFF;
}

void gcap_doctor_utf8_write(FILE* out, uint32_t character) {
  if (character < 0x80) {
    fputc((int)character, out);
    return;
  }
  unsigned following = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  static const unsigned marks[] = {0, 0xC0, 0xE0, 0xF0};
  fputc((int)(marks[following] | character >> 6 * following), out);
  while (following-- != 0) fputc((int)(0x80 | (character >> 6 * following & 0x3F)), out);
}

void gcap_doctor_utf8_write_clean(FILE* out, const char* text, unsigned most) {
  uint32_t character;
  for (unsigned i = 0; (character = gcap_doctor_utf8_next(&text)) != 0; ++i) {
    if (i == most) {
      fputs("...", out);
      return;
    }
    if (character == '\n') character = ' ';
    gcap_doctor_utf8_write(out, gcap_doctor_utf8_is_control(character) ? '?' : character);
  }
}

// --- JSON ------------------------------------------------------------------------------------------------------------

static void write_text(FILE* out, const char* text) {
  fputc('"', out);
  uint32_t character;
  while ((character = gcap_doctor_utf8_next(&text)) != 0) {
    if (character == '"' || character == '\\') {
      fprintf(out, "\\%c", (char)character);
    } else if (character == '\n') {
      fputs("\\n", out);
    } else if (character == '\t') {
      fputs("\\t", out);
    } else if (gcap_doctor_utf8_is_control(character)) {
      fprintf(out, "\\u%04" PRIx32, character);
    } else {
      gcap_doctor_utf8_write(out, character);
    }
  }
  fputc('"', out);
}

// What comes before a value: a comma, a new line, the key.
static void begin(gcap_doctor_json_t* json, const char* key) {
  if (json->is_inside) fputc(',', json->out);
  if (json->flat != 0) {
    if (json->is_inside) fputc(' ', json->out);
  } else if (json->depth != 0) {
    fprintf(json->out, "\n%*s", (int)json->depth, "");
  }
  json->is_inside = true;
  if (key == NULL) return;
  write_text(json->out, key);
  fputs(": ", json->out);
}

void gcap_doctor_json_init(gcap_doctor_json_t* json, FILE* out) { *json = (gcap_doctor_json_t){.out = out}; }

void gcap_doctor_json_open(gcap_doctor_json_t* json, const char* key, char bracket) {
  begin(json, key);
  fputc(bracket, json->out);
  ++json->depth;
  json->is_inside = false;
}

void gcap_doctor_json_open_flat(gcap_doctor_json_t* json, const char* key, char bracket) {
  gcap_doctor_json_open(json, key, bracket);
  if (json->flat == 0) json->flat = json->depth;
}

void gcap_doctor_json_close(gcap_doctor_json_t* json, char bracket) {
  --json->depth;
  if (json->flat == 0 && json->is_inside) fprintf(json->out, "\n%*s", (int)json->depth, "");
  if (json->flat > json->depth) json->flat = 0;
  fputc(bracket == '{' ? '}' : ']', json->out);
  json->is_inside = true;
  if (json->depth == 0) fputc('\n', json->out);
}

void gcap_doctor_json_text(gcap_doctor_json_t* json, const char* key, const char* text) {
  if (text == NULL) {
    gcap_doctor_json_null(json, key);
    return;
  }
  begin(json, key);
  write_text(json->out, text);
}

void gcap_doctor_json_number(gcap_doctor_json_t* json, const char* key, uint64_t number) {
  begin(json, key);
  fprintf(json->out, "%" PRIu64, number);
}

void gcap_doctor_json_signed(gcap_doctor_json_t* json, const char* key, int64_t number) {
  begin(json, key);
  fprintf(json->out, "%" PRId64, number);
}

void gcap_doctor_json_hex(gcap_doctor_json_t* json, const char* key, uint64_t number) {
  begin(json, key);
  fprintf(json->out, "\"0x%" PRIx64 "\"", number);
}

void gcap_doctor_json_flag(gcap_doctor_json_t* json, const char* key, bool flag) {
  begin(json, key);
  fputs(flag ? "true" : "false", json->out);
}

void gcap_doctor_json_null(gcap_doctor_json_t* json, const char* key) {
  begin(json, key);
  fputs("null", json->out);
}

void gcap_doctor_json_us(gcap_doctor_json_t* json, const char* key, uint64_t ns) {
  begin(json, key);
  fprintf(json->out, "%" PRIu64 ".%03" PRIu64, ns / 1000, ns % 1000);
}
