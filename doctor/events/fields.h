// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// fields.h: the fields of one line of a file of events.
#ifndef GCAP_DOCTOR_EVENTS_FIELDS_H_
#define GCAP_DOCTOR_EVENTS_FIELDS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GCAP_DOCTOR_MAX_FIELDS = 40 };  // of a line; a call has the most, about 20

// Views into the line, which is cut up in place.
typedef struct gcap_doctor_fields {
  const char* kind;
  size_t count;
  const char* keys[GCAP_DOCTOR_MAX_FIELDS];
  const char* values[GCAP_DOCTOR_MAX_FIELDS];
  const char* reason;  // the first thing that was wrong; NULL for none
} gcap_doctor_fields_t;

// Cuts a line, without its newline, into fields and takes escapes back.
void gcap_doctor_fields_split(gcap_doctor_fields_t* fields, char* line);

// The value of a key; NULL if it is missing.
const char* gcap_doctor_fields_text(const gcap_doctor_fields_t* fields, const char* key);
// A decimal number, or a hexadecimal one with 0x. A missing one is `fallback`; one that is no number sets `reason`.
uint64_t gcap_doctor_fields_number(gcap_doctor_fields_t* fields, const char* key, uint64_t fallback);
// The same for an id: below 2^32 - 1, GCAP_DOCTOR_NONE if it is missing.
uint32_t gcap_doctor_fields_id(gcap_doctor_fields_t* fields, const char* key);
// A field that must be there.
const char* gcap_doctor_fields_needed_text(gcap_doctor_fields_t* fields, const char* key);
uint64_t gcap_doctor_fields_needed_number(gcap_doctor_fields_t* fields, const char* key);
uint32_t gcap_doctor_fields_needed_id(gcap_doctor_fields_t* fields, const char* key);

#endif  // GCAP_DOCTOR_EVENTS_FIELDS_H_
