// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The findings as SARIF 2.1.0, which code hosts and editors show beside the lines.
//
// The idea: a run of the tool for the recording, a result for each finding, and of the table of rules those that the
// results name. A finding without a rule is under the name of its kind. A result's location is the line that the other
// reports name first: of Python, else of C, else the module and the offset. What the reader must know of the recording
// itself, its notes and its damage, are notifications. Locking: none.
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "doctor/report/json_text.h"
#include "doctor/report/names.h"
#include "doctor/report/report.h"

typedef struct writer {
  gcap_doctor_json_t json;
  const gcap_doctor_diagnosis_t* diagnosis;
  const gcap_doctor_recording_t* recording;
  gcap_doctor_heap_t* heap;
  const gcap_doctor_finding_t** rules;  // the first finding of each rule
  size_t num_rules;
} writer_t;

static const char* rule_id(const gcap_doctor_finding_t* finding) {
  return finding->rule != NULL ? finding->rule->id : gcap_doctor_finding_kind_name(finding->kind);
}

// {"text": "..."}
static void put_message(writer_t* writer, const char* key, const char* text) {
  gcap_doctor_json_open_flat(&writer->json, key, '{');
  gcap_doctor_json_text(&writer->json, "text", text);
  gcap_doctor_json_close(&writer->json, '{');
}

// --- Rules -----------------------------------------------------------------------------------------------------------

// The place of the finding's rule among those of the run, which the rule enters.
static size_t rule_index(writer_t* writer, const gcap_doctor_finding_t* finding) {
  size_t i = 0;
  while (i < writer->num_rules && strcmp(rule_id(writer->rules[i]), rule_id(finding)) != 0) ++i;
  if (i == writer->num_rules) writer->rules[writer->num_rules++] = finding;
  return i;
}

static void put_rule(writer_t* writer, const gcap_doctor_finding_t* finding) {
  gcap_doctor_json_t* json = &writer->json;
  const gcap_rule_t* rule = finding->rule;
  gcap_doctor_json_open(json, NULL, '{');
  gcap_doctor_json_text(json, "id", rule_id(finding));
  if (rule != NULL) {
    gcap_doctor_json_text(json, "name", rule->name);
    put_message(writer, "shortDescription", rule->situation);
    put_message(writer, "help",
                gcap_doctor_heap_print(writer->heap, "%s; the page is %s", rule->remedy,
                                       gcap_doctor_name_page(writer->heap, rule)));
  }
  gcap_doctor_json_close(json, '{');
}

static void put_tool(writer_t* writer) {
  gcap_doctor_json_t* json = &writer->json;
  const gcap_doctor_diagnosis_t* diagnosis = writer->diagnosis;
  writer->rules = gcap_doctor_heap_alloc(writer->heap, (diagnosis->num_findings + 1) * sizeof(*writer->rules));
  for (size_t i = 0; i < diagnosis->num_findings; ++i) rule_index(writer, &diagnosis->findings[i]);
  gcap_doctor_json_open(json, "tool", '{');
  gcap_doctor_json_open(json, "driver", '{');
  gcap_doctor_json_text(json, "name", "gcap-doctor");
  gcap_doctor_json_open(json, "rules", '[');
  for (size_t i = 0; i < writer->num_rules; ++i) put_rule(writer, writer->rules[i]);
  gcap_doctor_json_close(json, '[');
  gcap_doctor_json_close(json, '{');
  gcap_doctor_json_close(json, '{');
}

// --- Locations -------------------------------------------------------------------------------------------------------

// A path as a reference of a URI: all but the characters that stand for themselves is percent-encoded.
static const char* uri_of(gcap_doctor_heap_t* heap, const char* path) {
  static const char kScheme[] = "file://";
  char* uri = gcap_doctor_heap_alloc(heap, sizeof(kScheme) + 3 * strlen(path));
  char* end = uri;
  if (path[0] == '/') end = stpcpy(end, kScheme);
  for (; *path != '\0'; ++path) {
    const unsigned char byte = (unsigned char)*path;
    if (byte < 128 && (isalnum(byte) || strchr("/-._~", byte) != NULL)) {
      *end++ = (char)byte;
    } else {
      end += snprintf(end, 4, "%%%02X", byte);
    }
  }
  *end = '\0';
  return uri;
}

static void put_artifact(writer_t* writer, const char* path) {
  gcap_doctor_json_open_flat(&writer->json, "artifactLocation", '{');
  gcap_doctor_json_text(&writer->json, "uri", uri_of(writer->heap, path));
  gcap_doctor_json_close(&writer->json, '{');
}

// The members of a location. A frame of a file of source has its line, another one its module and offset.
static void put_place(writer_t* writer, uint32_t index) {
  gcap_doctor_json_t* json = &writer->json;
  const gcap_doctor_event_frame_t* frame = &writer->recording->frames[index];
  gcap_doctor_json_open(json, "physicalLocation", '{');
  put_artifact(writer, frame->file != NULL ? frame->file : frame->module);
  if (frame->file != NULL && frame->line != 0) {
    gcap_doctor_json_open_flat(json, "region", '{');
    gcap_doctor_json_number(json, "startLine", frame->line);
    gcap_doctor_json_close(json, '{');
  }
  if (frame->file == NULL && frame->offset <= INT64_MAX) {
    gcap_doctor_json_open_flat(json, "address", '{');
    gcap_doctor_json_number(json, "relativeAddress", frame->offset);
    gcap_doctor_json_close(json, '{');
  }
  gcap_doctor_json_close(json, '{');
  if (frame->function[0] == '\0') return;
  gcap_doctor_json_open(json, "logicalLocations", '[');
  gcap_doctor_json_open_flat(json, NULL, '{');
  gcap_doctor_json_text(json, "fullyQualifiedName", gcap_doctor_name_function(writer->heap, frame->function));
  gcap_doctor_json_text(json, "kind", "function");
  gcap_doctor_json_close(json, '{');
  gcap_doctor_json_close(json, '[');
}

// An address in no file, and the kernel's own code, are in no artifact.
static bool has_path(const gcap_doctor_event_frame_t* frame) {
  return frame->file != NULL || strchr(frame->module, '/') != NULL;
}

// The frame of a call's location; GCAP_DOCTOR_NONE where its place is not known.
static uint32_t frame_of(const writer_t* writer, uint32_t call) {
  const uint32_t frame = gcap_doctor_name_place(writer->recording, call);
  return frame != GCAP_DOCTOR_NONE && has_path(&writer->recording->frames[frame]) ? frame : GCAP_DOCTOR_NONE;
}

// An array of the one location of a call; nothing where its place is not known.
static void put_location(writer_t* writer, uint32_t call) {
  gcap_doctor_json_t* json = &writer->json;
  const uint32_t frame = frame_of(writer, call);
  if (frame == GCAP_DOCTOR_NONE) return;
  gcap_doctor_json_open(json, "locations", '[');
  gcap_doctor_json_open(json, NULL, '{');
  put_place(writer, frame);
  gcap_doctor_json_close(json, '{');
  gcap_doctor_json_close(json, '[');
}

// The locations beside it, with a message each. `count` is how many were put before.
static size_t put_related(writer_t* writer, size_t count, uint32_t call, const char* message) {
  gcap_doctor_json_t* json = &writer->json;
  const uint32_t frame = call < writer->recording->num_calls ? frame_of(writer, call) : GCAP_DOCTOR_NONE;
  if (frame == GCAP_DOCTOR_NONE) return count;
  if (count == 0) gcap_doctor_json_open(json, "relatedLocations", '[');
  gcap_doctor_json_open(json, NULL, '{');
  gcap_doctor_json_number(json, "id", count + 1);
  put_place(writer, frame);
  put_message(writer, "message",
              message != NULL ? message : gcap_doctor_name_call(writer->recording->calls[call].function));
  gcap_doctor_json_close(json, '{');
  return count + 1;
}

static void put_all_related(writer_t* writer, const gcap_doctor_finding_t* finding) {
  size_t count = 0;
  if (finding->num_places == 0) count = put_related(writer, count, finding->other, NULL);
  for (size_t i = 0; i < finding->num_places; ++i) {
    count = put_related(writer, count, finding->places[i].call, finding->places[i].what);
  }
  if (count != 0) gcap_doctor_json_close(&writer->json, '[');
}

// --- Results ---------------------------------------------------------------------------------------------------------

static void put_result(writer_t* writer, const gcap_doctor_finding_t* finding) {
  gcap_doctor_json_t* json = &writer->json;
  const char* remedy = gcap_doctor_name_remedy(finding);
  const char* text = remedy == NULL ? finding->sentence
                                    : gcap_doctor_heap_print(writer->heap, "%s Remedy: %s.", finding->sentence, remedy);
  gcap_doctor_json_open(json, NULL, '{');
  gcap_doctor_json_text(json, "ruleId", rule_id(finding));
  gcap_doctor_json_number(json, "ruleIndex", rule_index(writer, finding));
  gcap_doctor_json_text(json, "level", gcap_doctor_name_severity(finding->severity));
  put_message(writer, "message", text);
  gcap_doctor_json_number(json, "occurrenceCount", finding->count);
  put_location(writer, finding->call);
  put_all_related(writer, finding);
  gcap_doctor_json_open_flat(json, "properties", '{');
  gcap_doctor_json_text(json, "kind", gcap_doctor_finding_kind_name(finding->kind));
  gcap_doctor_json_flag(json, "certain", finding->is_certain);
  if (finding->capture != GCAP_DOCTOR_NONE) gcap_doctor_json_number(json, "capture", finding->capture + 1);
  gcap_doctor_json_close(json, '{');
  gcap_doctor_json_close(json, '{');
}

// --- The recording itself --------------------------------------------------------------------------------------------

static void put_notification(writer_t* writer, const char* level, const char* text) {
  gcap_doctor_json_open(&writer->json, NULL, '{');
  gcap_doctor_json_text(&writer->json, "level", level);
  put_message(writer, "message", text);
  gcap_doctor_json_close(&writer->json, '{');
}

static void put_invocation(writer_t* writer) {
  gcap_doctor_json_t* json = &writer->json;
  const gcap_doctor_recording_t* recording = writer->recording;
  gcap_doctor_json_open(json, "invocations", '[');
  gcap_doctor_json_open(json, NULL, '{');
  gcap_doctor_json_text(json, "commandLine", recording->program);
  gcap_doctor_json_flag(json, "executionSuccessful", gcap_doctor_name_unrecorded(recording) == NULL);
  gcap_doctor_json_open(json, "toolExecutionNotifications", '[');
  if (recording->damage.lines != 0) {
    put_notification(
        writer, "warning",
        gcap_doctor_heap_print(
            writer->heap, "%" PRIu64 " lines of the recording could not be read; the first is line %" PRIu64 ": %s",
            recording->damage.lines, recording->damage.first,
            recording->damage.reason != NULL ? recording->damage.reason : "no reason is known"));
  }
  for (size_t i = 0; i < recording->num_notes; ++i) put_notification(writer, "note", recording->notes[i]);
  gcap_doctor_json_close(json, '[');
  gcap_doctor_json_close(json, '{');
  gcap_doctor_json_close(json, '[');
}

void gcap_doctor_report_sarif(FILE* out, const gcap_doctor_diagnosis_t* diagnosis) {
  gcap_doctor_heap_t heap;
  gcap_doctor_heap_init(&heap);
  writer_t writer = {.diagnosis = diagnosis, .recording = diagnosis->recording, .heap = &heap};
  gcap_doctor_json_t* json = &writer.json;
  gcap_doctor_json_init(json, out);
  gcap_doctor_json_open(json, NULL, '{');
  gcap_doctor_json_text(json, "$schema",
                        "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json");
  gcap_doctor_json_text(json, "version", "2.1.0");
  gcap_doctor_json_open(json, "runs", '[');
  gcap_doctor_json_open(json, NULL, '{');
  put_tool(&writer);
  put_invocation(&writer);
  gcap_doctor_json_open(json, "results", '[');
  for (size_t i = 0; i < diagnosis->num_findings; ++i) put_result(&writer, &diagnosis->findings[i]);
  gcap_doctor_json_close(json, '[');
  gcap_doctor_json_close(json, '{');
  gcap_doctor_json_close(json, '[');
  gcap_doctor_json_close(json, '{');
  gcap_doctor_heap_deinit(&heap);
}
