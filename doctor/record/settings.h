// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// settings.h: what the environment asks of the recorder. README.md lists the variables.
#ifndef GCAP_DOCTOR_RECORD_SETTINGS_H_
#define GCAP_DOCTOR_RECORD_SETTINGS_H_

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

typedef struct gcap_doctor_settings {
  const char* events;  // the beginning of the file's path
  const char* run;     // which run of the command's this is; NULL for none
  const char* cupti;   // NULL to search
  bool time;
  bool audit;
  uint64_t limit_bytes;
} gcap_doctor_settings_t;

// A variable with a bad value is said on stderr, and has its default.
void gcap_doctor_settings_read(gcap_doctor_settings_t* out_settings);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_SETTINGS_H_
