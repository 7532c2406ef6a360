// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The findings as the XML of JUnit, which CI systems show as tests.
//
// The idea: a suite for the recording and a case for each finding; an error is a failure, and the words of a warning or
// a note are the output of a case that passes, since the format has nothing between. A recording without a finding has
// one case, which passes; one of which nothing was recorded has one that was skipped, with the reason: nothing was
// judged. What XML cannot hold of the program's texts becomes U+FFFD. Locking: none.
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "doctor/report/json_text.h"
#include "doctor/report/names.h"
#include "doctor/report/report.h"

typedef struct writer {
  FILE* out;
  const gcap_doctor_diagnosis_t* diagnosis;
  const gcap_doctor_recording_t* recording;
  gcap_doctor_heap_t* heap;
} writer_t;

static bool is_xml(uint32_t character) {
  if (character < 0x20) return character == '\t' || character == '\n' || character == '\r';
  return character != 0xfffe && character != 0xffff;
}

static void put_text(writer_t* writer, const char* text) {
  uint32_t character;
  while ((character = gcap_doctor_utf8_next(&text)) != 0) {
    if (strchr("&<>\"\t\n\r", (int)character) != NULL && character < 128) {
      fprintf(writer->out, "&#%" PRIu32 ";", character);
    } else {
      gcap_doctor_utf8_write(writer->out, is_xml(character) ? character : 0xfffd);
    }
  }
}

static void put_attribute(writer_t* writer, const char* name, const char* value) {
  fprintf(writer->out, " %s=\"", name);
  put_text(writer, value);
  fputc('"', writer->out);
}

static void put_count(writer_t* writer, const char* name, uint64_t count) {
  fprintf(writer->out, " %s=\"%" PRIu64 "\"", name, count);
}

// --- Cases -----------------------------------------------------------------------------------------------------------

static void put_line(writer_t* writer, const char* label, const char* text) {
  if (text == NULL || text[0] == '\0') return;
  fprintf(writer->out, "%s: ", label);
  put_text(writer, text);
  fputc('\n', writer->out);
}

static void put_details(writer_t* writer, const gcap_doctor_finding_t* finding, uint32_t frame) {
  put_line(writer, "what", finding->sentence);
  if (finding->count > 1) put_line(writer, "times", gcap_doctor_heap_print(writer->heap, "%" PRIu64, finding->count));
  put_line(writer, "at", gcap_doctor_name_frame(writer->heap, writer->recording, frame));
  for (size_t i = 0; i < finding->num_places; ++i) {
    const uint32_t place = gcap_doctor_name_place(writer->recording, finding->places[i].call);
    put_line(writer, finding->places[i].what, gcap_doctor_name_frame(writer->heap, writer->recording, place));
  }
  if (finding->rule != NULL) {
    put_line(writer, "rule",
             gcap_doctor_heap_print(writer->heap, "%s: %s", finding->rule->id, finding->rule->situation));
  }
  put_line(writer, "remedy", gcap_doctor_name_remedy(finding));
}

static void begin_case(writer_t* writer, const char* name) {
  fputs("    <testcase", writer->out);
  put_attribute(writer, "classname", "gcap-doctor");
  put_attribute(writer, "name", name);
  fputs(" time=\"0\"", writer->out);
}

static void put_finding(writer_t* writer, const gcap_doctor_finding_t* finding) {
  const uint32_t frame = gcap_doctor_name_place(writer->recording, finding->call);
  const char* place = gcap_doctor_name_frame(writer->heap, writer->recording, frame);
  const char* capture = "";
  if (finding->capture != GCAP_DOCTOR_NONE) {
    capture = gcap_doctor_heap_print(writer->heap, ", capture %" PRIu32, finding->capture + 1);
  }
  const char* kind = gcap_doctor_finding_kind_name(finding->kind);
  begin_case(writer,
             gcap_doctor_heap_print(writer->heap, "%s%s%s%s", kind, capture, place[0] != '\0' ? ", " : "", place));
  if (frame != GCAP_DOCTOR_NONE && writer->recording->frames[frame].file != NULL) {
    put_attribute(writer, "file", writer->recording->frames[frame].file);
    const uint32_t line = writer->recording->frames[frame].line;
    if (line != 0) put_count(writer, "line", line);
  }
  const bool is_error = finding->severity == GCAP_DOCTOR_SEVERITY_ERROR;
  fputs(is_error ? ">\n      <failure" : ">\n      <system-out>", writer->out);
  if (is_error) {
    put_attribute(writer, "type", finding->rule != NULL ? finding->rule->id : kind);
    put_attribute(writer, "message", finding->sentence);
    fputs(">", writer->out);
  } else {
    put_line(writer, "level", gcap_doctor_name_severity(finding->severity));
  }
  put_details(writer, finding, frame);
  fputs(is_error ? "</failure>\n    </testcase>\n" : "</system-out>\n    </testcase>\n", writer->out);
}

// --- The suite -------------------------------------------------------------------------------------------------------

static void put_counts(writer_t* writer, const char* unrecorded) {
  const gcap_doctor_diagnosis_t* diagnosis = writer->diagnosis;
  size_t failures = 0;
  for (size_t i = 0; i < diagnosis->num_findings; ++i) {
    failures += diagnosis->findings[i].severity == GCAP_DOCTOR_SEVERITY_ERROR;
  }
  put_count(writer, "tests", diagnosis->num_findings != 0 ? diagnosis->num_findings : 1);
  put_count(writer, "failures", failures);
  put_count(writer, "errors", 0);
  put_count(writer, "skipped", diagnosis->num_findings == 0 && unrecorded != NULL);
  fputs(" time=\"0\"", writer->out);
}

static void put_suite(writer_t* writer, const char* unrecorded) {
  const gcap_doctor_diagnosis_t* diagnosis = writer->diagnosis;
  fputs("  <testsuite", writer->out);
  put_attribute(writer, "name", writer->recording->program);
  put_counts(writer, unrecorded);
  const time_t seconds = (time_t)writer->recording->unix_seconds;
  struct tm day;
  char timestamp[32];
  if (seconds != 0 && gmtime_r(&seconds, &day) != NULL &&
      strftime(timestamp, sizeof(timestamp), "%Y-%m-%dT%H:%M:%S", &day) != 0) {
    put_attribute(writer, "timestamp", timestamp);
  }
  fputs(">\n", writer->out);
  for (size_t i = 0; i < diagnosis->num_findings; ++i) put_finding(writer, &diagnosis->findings[i]);
  if (diagnosis->num_findings == 0) {
    begin_case(writer, "no finding");
    if (unrecorded != NULL) {
      fputs(">\n      <skipped", writer->out);
      put_attribute(writer, "message", unrecorded);
      fputs("/>\n    </testcase>\n", writer->out);
    } else {
      fputs("/>\n", writer->out);
    }
  }
  fputs("    <system-out>", writer->out);
  for (size_t i = 0; i < writer->recording->num_notes; ++i) put_line(writer, "note", writer->recording->notes[i]);
  fputs("</system-out>\n  </testsuite>\n", writer->out);
}

void gcap_doctor_report_junit(FILE* out, const gcap_doctor_diagnosis_t* diagnosis) {
  gcap_doctor_heap_t heap;
  gcap_doctor_heap_init(&heap);
  writer_t writer = {.out = out, .diagnosis = diagnosis, .recording = diagnosis->recording, .heap = &heap};
  const char* unrecorded = gcap_doctor_name_unrecorded(diagnosis->recording);
  fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gcap-doctor\"", out);
  put_counts(&writer, unrecorded);
  fputs(">\n", out);
  put_suite(&writer, unrecorded);
  fputs("</testsuites>\n", out);
  gcap_doctor_heap_deinit(&heap);
}
