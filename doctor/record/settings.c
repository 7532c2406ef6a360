// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reads the environment, once, before there are callbacks.
#include "doctor/record/settings.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/record/writer.h"

enum {
  kDefaultLimitMb = 256,
  kMaxLimitMb = 1 << 20,
};

static const char* text_of(const char* name) {
  const char* value = getenv(name);
  return value != NULL && value[0] != '\0' ? value : NULL;
}

static uint64_t limit_mb(void) {
  const char* value = text_of("GCAP_DOCTOR_LIMIT_MB");
  if (value == NULL) return kDefaultLimitMb;
  char* end = NULL;
  errno = 0;
  const unsigned long long number = strtoull(value, &end, 10);
  if (value[0] >= '0' && value[0] <= '9' && *end == '\0' && errno == 0 && number >= 1 && number <= kMaxLimitMb) {
    return number;
  }
  gcap_doctor_writer_say("GCAP_DOCTOR_LIMIT_MB is '%s', expected a number from 1 to %d: %d is used.", value,
                         kMaxLimitMb, kDefaultLimitMb);
  return kDefaultLimitMb;
}

static bool is_wanted(const char* name) {
  const char* value = text_of(name);
  if (value == NULL || strcmp(value, "0") == 0) return false;
  if (strcmp(value, "1") == 0) return true;
  gcap_doctor_writer_say("%s is '%s', expected 0 or 1: 0 is used.", name, value);
  return false;
}

void gcap_doctor_settings_read(gcap_doctor_settings_t* out_settings) {
  const char* events = text_of("GCAP_DOCTOR_EVENTS");
  out_settings->events = events != NULL ? events : "./gcap-doctor";
  out_settings->run = text_of("GCAP_DOCTOR_RUN");
  out_settings->cupti = text_of("GCAP_DOCTOR_CUPTI");
  out_settings->time = is_wanted("GCAP_DOCTOR_TIME");
  out_settings->audit = is_wanted("GCAP_DOCTOR_AUDIT");
  out_settings->limit_bytes = limit_mb() << 20;
}
