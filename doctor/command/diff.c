// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap-doctor diff: how two recordings differ. Its exit codes are those of diff(1).
#include <errno.h>
#include <string.h>

#include "doctor/command/cases.h"
#include "doctor/command/options.h"
#include "doctor/report/names.h"
#include "doctor/report/report.h"

// Whether a file can be compared: one of which nothing was recorded differs from all and from none. What is missing in
// one that can be is said.
static bool can_compare(const gcap_doctor_case_t* of) {
  const char* reason = gcap_doctor_name_unrecorded(of->recording);
  if (reason != NULL) {
    gcap_doctor_say("diff: no calls were recorded in %s: %s", of->name, reason);
    return false;
  }
  if (of->recording->damage.lines != 0) {
    gcap_doctor_say("diff: %llu lines of %s could not be read: differences may come of it",
                    (unsigned long long)of->recording->damage.lines, of->name);
  }
  if (of->recording->reached_limit) {
    gcap_doctor_say("diff: the recorder of %s reached its limit: differences may come of it", of->name);
  }
  return true;
}

int gcap_doctor_diff(const gcap_doctor_options_t* options) {
  if (options->num_rest != 2) {
    gcap_doctor_say("diff: %d files: expected two files of events; one may be '-' for standard input",
                    options->num_rest);
    return GCAP_DOCTOR_EXIT_MISUSE;
  }
  gcap_doctor_cases_t cases;
  gcap_doctor_cases_init(&cases);
  int code = GCAP_DOCTOR_EXIT_MISUSE;
  if (gcap_doctor_cases_add(&cases, options->rest[0]) && gcap_doctor_cases_add(&cases, options->rest[1]) &&
      can_compare(&cases.items[0]) && can_compare(&cases.items[1])) {
    // Without symbols: those of one build alone may be on this machine.
    const bool differs = gcap_doctor_report_diff(stdout, cases.items[0].diagnosis, cases.items[1].diagnosis);
    code = differs ? GCAP_DOCTOR_EXIT_FINDING : GCAP_DOCTOR_EXIT_HEALTHY;
  }
  if (fflush(stdout) != 0 || ferror(stdout)) {
    gcap_doctor_say("cannot write all of standard output: %s", strerror(errno));
    code = GCAP_DOCTOR_EXIT_MISUSE;
  }
  gcap_doctor_cases_deinit(&cases);
  return code;
}
