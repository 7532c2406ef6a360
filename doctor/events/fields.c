// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lines of fields. What is wrong with a line is kept as a reason, the first one; the reader of the file decides.
#include "doctor/events/fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void refuse(gcap_doctor_fields_t* fields, const char* reason) {
  if (fields->reason == NULL) fields->reason = reason;
}

// Takes the escapes of a value back, in place.
static void unescape(gcap_doctor_fields_t* fields, char* value) {
  char* to = value;
  for (const char* from = value; *from != '\0'; ++from) {
    if (*from != '\\') {
      *to++ = *from;
      continue;
    }
    switch (*++from) {
      case 't': *to++ = '\t'; break;
      case 'n': *to++ = '\n'; break;
      case 'r': *to++ = '\r'; break;
      case '\\': *to++ = '\\'; break;
      default:
        refuse(fields, "a backslash before something else than t, n, r or a backslash");
        *to = '\0';
        return;
    }
  }
  *to = '\0';
}

void gcap_doctor_fields_split(gcap_doctor_fields_t* fields, char* line) {
  memset(fields, 0, sizeof(*fields));
  char* rest = line;
  fields->kind = strsep(&rest, "\t");
  if (fields->kind[0] == '\0') refuse(fields, "a line without a kind");
  while (rest != NULL) {
    char* field = strsep(&rest, "\t");
    char* equals = strchr(field, '=');
    if (equals == NULL) {
      refuse(fields, "a field without '='");
      return;
    }
    if (fields->count == GCAP_DOCTOR_MAX_FIELDS) {
      refuse(fields, "more than 40 fields");
      return;
    }
    *equals = '\0';
    unescape(fields, equals + 1);
    fields->keys[fields->count] = field;
    fields->values[fields->count++] = equals + 1;
  }
}

const char* gcap_doctor_fields_text(const gcap_doctor_fields_t* fields, const char* key) {
  for (size_t i = 0; i < fields->count; ++i) {
    if (strcmp(fields->keys[i], key) == 0) return fields->values[i];
  }
  return NULL;
}

uint64_t gcap_doctor_fields_number(gcap_doctor_fields_t* fields, const char* key, uint64_t fallback) {
  const char* text = gcap_doctor_fields_text(fields, key);
  if (text == NULL) return fallback;
  const bool is_hex = text[0] == '0' && text[1] == 'x';
  const char* digits = is_hex ? text + 2 : text;
  char* end = NULL;
  errno = 0;
  unsigned long long number = strtoull(digits, &end, is_hex ? 16 : 10);
  // strtoull would take a sign and spaces too.
  const char first = digits[0] >= 'A' && digits[0] <= 'F' ? 'a' : digits[0];
  if (!((first >= '0' && first <= '9') || (is_hex && first >= 'a' && first <= 'f')) || *end != '\0' || errno != 0) {
    refuse(fields, "a number that is none");
    return fallback;
  }
  return number;
}

uint32_t gcap_doctor_fields_id(gcap_doctor_fields_t* fields, const char* key) {
  uint64_t number = gcap_doctor_fields_number(fields, key, UINT32_MAX);
  if (number > UINT32_MAX || (number == UINT32_MAX && gcap_doctor_fields_text(fields, key) != NULL)) {
    refuse(fields, "an id beyond 32 bits");
    return UINT32_MAX;
  }
  return (uint32_t)number;
}

const char* gcap_doctor_fields_needed_text(gcap_doctor_fields_t* fields, const char* key) {
  const char* text = gcap_doctor_fields_text(fields, key);
  if (text == NULL) refuse(fields, "a field is missing");
  return text != NULL ? text : "";
}

uint64_t gcap_doctor_fields_needed_number(gcap_doctor_fields_t* fields, const char* key) {
  gcap_doctor_fields_needed_text(fields, key);
  return gcap_doctor_fields_number(fields, key, 0);
}

uint32_t gcap_doctor_fields_needed_id(gcap_doctor_fields_t* fields, const char* key) {
  gcap_doctor_fields_needed_text(fields, key);
  return gcap_doctor_fields_id(fields, key);
}
