// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reads a file of events, line by line.
//
// The idea: a table says for each kind of line which function reads it; a line that its function refuses is counted,
// and the reading goes on: half a recording still has findings.
//
// A file that reached its limit has a ring behind its beginning, whose segments are read in the order of their numbers.
// Locking: none.
#include <stdlib.h>
#include <string.h>

#include "doctor/events/grow.h"
#include "doctor/events/lines.h"
#include "doctor/events/reader.h"
#include "doctor/events/sim_log.h"

static void read_first(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  gcap_doctor_recording_t* recording = reader->recording;
  const uint64_t version = gcap_doctor_fields_needed_number(fields, "version");
  if (version < 1 || version > 3) {
    fields->reason = "the version of the format is none of 1, 2 and 3";
    return;
  }
  reader->version = version;
  recording->pid = gcap_doctor_fields_number(fields, "pid", 0);
  recording->unix_seconds = gcap_doctor_fields_number(fields, "time", 0);
  recording->program = gcap_doctor_reader_keep_or_empty(reader, gcap_doctor_fields_text(fields, "program"));
}

static void read_system(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  reader->recording->driver = gcap_doctor_fields_number(fields, "driver", reader->recording->driver);
  reader->recording->cupti = gcap_doctor_fields_number(fields, "cupti", reader->recording->cupti);
  const char* folder = gcap_doctor_fields_text(fields, "folder");
  if (folder != NULL) reader->recording->folder = gcap_doctor_reader_keep(reader, folder);
}

static void read_note(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  static const char kStopped[] = "the recording stopped";  // what came after that is left out
  gcap_doctor_recording_t* recording = reader->recording;
  const char* text = gcap_doctor_fields_needed_text(fields, "text");
  if (fields->reason != NULL) return;
  GCAP_DOCTOR_GROW(recording, notes, num_notes, note_capacity);
  recording->notes[recording->num_notes++] = gcap_doctor_reader_keep(reader, text);
  // Notes of version 2 have words of frameworks, too, such as that of a limit.
  const bool is_cut = strncmp(text, kStopped, strlen(kStopped)) == 0;
  if (is_cut || (reader->version == 1 && strstr(text, "limit") != NULL)) recording->reached_limit = true;
}

static void read_end(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields) {
  (void)fields;
  reader->recording->ended = true;
}

static const struct {
  const char* kind;
  void (*read)(gcap_doctor_reader_t* reader, gcap_doctor_fields_t* fields);
} kinds[] = {
    {"call", gcap_doctor_read_call},
    {"like", gcap_doctor_read_like},
    {"node", gcap_doctor_read_node},
    {"edge", gcap_doctor_read_edge},
    {"frame", gcap_doctor_read_frame},
    {"stack", gcap_doctor_read_stack},
    {"clone", gcap_doctor_read_clone},
    {"time", gcap_doctor_read_time},
    {"pyframe", gcap_doctor_read_python_frame},
    {"stream", gcap_doctor_read_stream},
    {"exec", gcap_doctor_read_exec},
    {"replays", gcap_doctor_read_replays},
    {"whole", gcap_doctor_read_whole},
    {"thread", gcap_doctor_read_thread},
    {"note", read_note},
    {"system", read_system},
    {"gcap-events", read_first},
    {"end", read_end},
    {"module", gcap_doctor_read_module},
    {"difference", gcap_doctor_read_difference},
    {"stale", gcap_doctor_read_stale},
    {"shared", gcap_doctor_read_shared},
    {"execs", gcap_doctor_read_execs},
    {"raise", gcap_doctor_read_raise},
    {"range", gcap_doctor_read_range},
    {"log", gcap_doctor_read_log_of_driver},
    {"ring", gcap_doctor_read_ring},
    {"segment", gcap_doctor_read_segment},
};

// --- The file --------------------------------------------------------------------------------------------------------

static void damage(gcap_doctor_recording_t* recording, uint32_t line, const char* reason) {
  if (recording->damage.lines++ != 0) return;
  recording->damage.first = line;
  recording->damage.reason = reason;
}

static void read_line(gcap_doctor_reader_t* reader, char* line) {
  gcap_doctor_fields_t fields;
  gcap_doctor_fields_split(&fields, line);
  for (size_t i = 0; fields.reason == NULL && i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
    if (strcmp(fields.kind, kinds[i].kind) != 0) continue;
    kinds[i].read(reader, &fields);
    break;
  }
  if (fields.reason != NULL) damage(reader->recording, reader->line, fields.reason);
}

// Reads to the end, or to where the ring begins; but where `may_be_log`, only to the first line of a simulator's log,
// which is then in `lines`.
static bool read_events(gcap_doctor_reader_t* reader, gcap_doctor_lines_t* lines, bool may_be_log) {
  do {
    if (may_be_log && gcap_doctor_sim_log_is(lines->line)) return true;
    ++reader->line;
    lines->line[strcspn(lines->line, "\n")] = '\0';
    if (lines->line[0] != '\0') read_line(reader, lines->line);
    if (reader->ring_at != 0 && !reader->is_in_ring) lines->end = reader->ring_at;
  } while (gcap_doctor_lines_next(lines));
  return false;
}

static void read_ring_of(gcap_doctor_reader_t* reader, FILE* file) {
  gcap_doctor_segment_t segments[GCAP_DOCTOR_MOST_SEGMENTS];
  size_t count;
  char* bytes = gcap_doctor_ring_read(reader, file, segments, &count);
  for (size_t i = 0; i < count; ++i) {
    gcap_doctor_lines_t lines = {.bytes = segments[i].bytes, .end = segments[i].size};
    if (gcap_doctor_lines_next(&lines)) read_events(reader, &lines, false);
    free(lines.line);
  }
  free(bytes);
}

// A simulator's log is read by its own reader.
static gcap_doctor_recording_t* read_log(gcap_doctor_reader_t* reader, gcap_doctor_lines_t* lines) {
  gcap_doctor_recording_destroy(reader->recording);
  gcap_doctor_recording_t* recording =
      gcap_doctor_sim_log_read(lines->file, reader->line, &lines->line, &lines->capacity);
  gcap_doctor_recording_finish(recording);
  return recording;
}

static gcap_doctor_recording_t* read_file(gcap_doctor_lines_t* lines) {
  static const char kFirst[] = "gcap-events\t";
  gcap_doctor_recording_t* recording = gcap_doctor_recording_create("events");
  if (!gcap_doctor_lines_next(lines)) {
    damage(recording, 1, "the file is empty");
    return recording;
  }
  gcap_doctor_reader_t reader = {.recording = recording};
  const bool is_events = strncmp(lines->line, kFirst, strlen(kFirst)) == 0;
  if (!is_events) damage(recording, 1, "the first line is not that of a file of events");
  // A program's own words may stand before a log.
  const bool is_log = read_events(&reader, lines, !is_events);
  if (!is_log && reader.ring_at != 0 && lines->at == reader.ring_at) read_ring_of(&reader, lines->file);
  if (reader.ring_at != 0 && lines->at > reader.ring_at) damage(recording, reader.line, "a ring before its own line");
  gcap_doctor_reader_deinit(&reader);
  if (is_log) return read_log(&reader, lines);
  gcap_doctor_recording_finish(recording);
  gcap_doctor_ring_find_gap(&reader, recording);
  return recording;
}

gcap_doctor_recording_t* gcap_doctor_recording_read(FILE* file, const char* name) {
  gcap_doctor_lines_t lines = {.file = file, .end = UINT64_MAX};
  gcap_doctor_recording_t* recording = read_file(&lines);
  free(lines.line);
  if (recording->program[0] == '\0') recording->program = gcap_doctor_heap_copy(&recording->heap, name, strlen(name));
  return recording;
}
