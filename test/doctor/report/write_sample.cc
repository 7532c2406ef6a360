// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// write_sample SAMPLE text|colour|json|html|dot|trace|sarif|junit: writes a report of a sample on standard output.
#include <stdio.h>
#include <string.h>

#include <memory>

#include "doctor/report/report.h"
#include "test/doctor/report/sample.h"

int main(int argc, char** argv) {
  std::unique_ptr<gcap_test::Sample> sample(argc == 3 ? gcap_test::MakeByName(argv[1]) : nullptr);
  if (sample == nullptr) {
    fprintf(stderr,
            "usage: write_sample broken|healthy|labelled|hostile|many|large|small|empty "
            "text|colour|json|html|dot|trace|sarif|junit\n");
    return 2;
  }
  if (strcmp(argv[2], "text") == 0) gcap_doctor_report_text(stdout, sample->diagnosis(), false);
  if (strcmp(argv[2], "colour") == 0) gcap_doctor_report_text(stdout, sample->diagnosis(), true);
  if (strcmp(argv[2], "json") == 0) gcap_doctor_report_json(stdout, sample->diagnosis());
  if (strcmp(argv[2], "html") == 0) gcap_doctor_report_html(stdout, sample->diagnosis());
  if (strcmp(argv[2], "dot") == 0) gcap_doctor_report_dot(stdout, sample->diagnosis());
  if (strcmp(argv[2], "trace") == 0) gcap_doctor_report_trace(stdout, sample->diagnosis());
  if (strcmp(argv[2], "sarif") == 0) gcap_doctor_report_sarif(stdout, sample->diagnosis());
  if (strcmp(argv[2], "junit") == 0) gcap_doctor_report_junit(stdout, sample->diagnosis());
  return 0;
}
