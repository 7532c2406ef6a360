// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reads files of events and writes what was found in them.
//
// The idea: symbols cost a process for each module, so a recording is diagnosed once to learn which stacks a report
// will show, then those get their symbols, and it is diagnosed anew, so that its sentences have them too. Locking:
// none.
#include "doctor/command/cases.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/base/path.h"
#include "doctor/report/report.h"
#include "doctor/symbols/symbols.h"

void gcap_doctor_cases_init(gcap_doctor_cases_t* cases) {
  *cases = (gcap_doctor_cases_t){0};
  gcap_doctor_heap_init(&cases->heap);
}

static void destroy(gcap_doctor_case_t* of) {
  gcap_doctor_diagnosis_destroy(of->diagnosis);
  gcap_doctor_recording_destroy(of->recording);
}

void gcap_doctor_cases_deinit(gcap_doctor_cases_t* cases) {
  for (size_t i = 0; i < cases->count; ++i) destroy(&cases->items[i]);
  free(cases->items);
  gcap_doctor_heap_deinit(&cases->heap);
}

// --- Reading ---------------------------------------------------------------------------------------------------------

// NULL after a sentence.
static FILE* open_events(const char* path) {
  if (strcmp(path, "-") == 0) return stdin;
  FILE* file = fopen(path, "re");
  struct stat about;
  if (file != NULL && fstat(fileno(file), &about) == 0 && S_ISDIR(about.st_mode)) {
    gcap_doctor_say("%s is a folder: expected a file of events", path);
    fclose(file);
    return NULL;
  }
  if (file == NULL) gcap_doctor_say("cannot read %s: %s", path, strerror(errno));
  return file;
}

// Whether there is anything in the file to speak of. Of damage beside good lines the reports speak.
static bool is_readable(const gcap_doctor_recording_t* recording, const char* name) {
  const gcap_doctor_event_damage_t* damage = &recording->damage;
  if (damage->lines == 0 || recording->num_calls != 0 || recording->num_threads != 0 || recording->num_notes != 0) {
    return true;
  }
  gcap_doctor_say("%s has no events: line %llu: %s; expected a file of events or a simulator's log", name,
                  (unsigned long long)damage->first, damage->reason != NULL ? damage->reason : "no reason is known");
  return false;
}

static void append(gcap_doctor_cases_t* cases, const char* name, gcap_doctor_recording_t* recording) {
  cases->items = gcap_doctor_heap_grow(cases->items, cases->count, &cases->capacity, sizeof(*cases->items));
  cases->items[cases->count++] = (gcap_doctor_case_t){gcap_doctor_heap_copy(&cases->heap, name, strlen(name)),
                                                      recording, gcap_doctor_diagnosis_create(recording)};
}

bool gcap_doctor_cases_add_file(gcap_doctor_cases_t* cases, const char* name, FILE* file) {
  gcap_doctor_recording_t* recording = gcap_doctor_recording_read(file, name);
  int error = ferror(file) ? errno : 0;
  if (file != stdin) fclose(file);
  if (error != 0) gcap_doctor_say("cannot read all of %s: %s", name, strerror(error));
  if (!is_readable(recording, name)) {
    gcap_doctor_recording_destroy(recording);
    return false;
  }
  append(cases, name, recording);
  return true;
}

bool gcap_doctor_cases_add(gcap_doctor_cases_t* cases, const char* path) {
  FILE* file = open_events(path);
  return file != NULL && gcap_doctor_cases_add_file(cases, file == stdin ? "standard input" : path, file);
}

void gcap_doctor_cases_add_empty(gcap_doctor_cases_t* cases, const char* program, bool ended, const char* note) {
  gcap_doctor_recording_t* recording = gcap_doctor_recording_create("events");
  recording->program = gcap_doctor_heap_copy(&recording->heap, program, strlen(program));
  recording->ended = ended;
  recording->notes = gcap_doctor_heap_grow(NULL, 0, &recording->note_capacity, sizeof(*recording->notes));
  recording->notes[recording->num_notes++] = gcap_doctor_heap_copy(&recording->heap, note, strlen(note));
  gcap_doctor_recording_finish(recording);
  append(cases, program, recording);
}

bool gcap_doctor_case_is_recorded(const gcap_doctor_case_t* of) {
  return of->recording->num_calls != 0 || of->recording->ended || of->recording->num_notes == 0;
}

// --- Order -----------------------------------------------------------------------------------------------------------

static bool has_error(const gcap_doctor_case_t* of) {
  for (size_t i = 0; i < of->diagnosis->num_findings; ++i) {
    if (of->diagnosis->findings[i].severity == GCAP_DOCTOR_SEVERITY_ERROR) return true;
  }
  return false;
}

static int badness(const gcap_doctor_case_t* of) { return has_error(of) ? 2 : of->diagnosis->num_captures != 0; }

static void sort(gcap_doctor_cases_t* cases) {
  // They are few, and the order of equals stays.
  for (size_t i = 1; i < cases->count; ++i) {
    gcap_doctor_case_t moved = cases->items[i];
    size_t at = i;
    for (; at > 0 && badness(&cases->items[at - 1]) < badness(&moved); --at) cases->items[at] = cases->items[at - 1];
    cases->items[at] = moved;
  }
}

size_t gcap_doctor_cases_drop_idle(gcap_doctor_cases_t* cases) {
  size_t kept = 0, idle = 0;
  for (size_t i = 0; i < cases->count; ++i) idle += badness(&cases->items[i]) == 0;
  // The first one stays where all are idle.
  bool keeps_one = idle == cases->count;
  for (size_t i = 0; i < cases->count; ++i) {
    if (badness(&cases->items[i]) != 0 || keeps_one) {
      cases->items[kept++] = cases->items[i];
      keeps_one = false;
    } else {
      destroy(&cases->items[i]);
    }
  }
  size_t dropped = cases->count - kept;
  cases->count = kept;
  return dropped;
}

// --- Symbols ---------------------------------------------------------------------------------------------------------

static void want_call(const gcap_doctor_recording_t* recording, uint32_t call, bool* wanted) {
  if (call < recording->num_calls && recording->calls[call].stack < recording->num_stacks) {
    wanted[recording->calls[call].stack] = true;
  }
}

// Gives symbols to what reports show: the stacks of findings and captures, and of the calls that made nodes.
static void add_symbols(gcap_doctor_case_t* of, uint64_t deadline_ns) {
  gcap_doctor_recording_t* recording = of->recording;
  const gcap_doctor_diagnosis_t* diagnosis = of->diagnosis;
  if (recording->num_stacks == 0) return;
  gcap_doctor_symbols_find_installed(recording);
  bool* wanted = calloc(recording->num_stacks, sizeof(*wanted));
  if (wanted == NULL) return;
  for (size_t i = 0; i < diagnosis->num_findings; ++i) {
    want_call(recording, diagnosis->findings[i].call, wanted);
    want_call(recording, diagnosis->findings[i].other, wanted);
    for (size_t k = 0; k < diagnosis->findings[i].num_places; ++k) {
      want_call(recording, diagnosis->findings[i].places[k].call, wanted);
    }
  }
  for (size_t i = 0; i < diagnosis->num_captures; ++i) {
    want_call(recording, diagnosis->captures[i].begin, wanted);
    want_call(recording, diagnosis->captures[i].end, wanted);
  }
  for (size_t i = 0; i < recording->num_nodes; ++i) want_call(recording, recording->nodes[i].call, wanted);
  gcap_doctor_symbols_resolve(recording, wanted, deadline_ns);
  free(wanted);
  // Its sentences have the symbols now.
  gcap_doctor_diagnosis_destroy(of->diagnosis);
  of->diagnosis = gcap_doctor_diagnosis_create(recording);
}

void gcap_doctor_cases_finish(gcap_doctor_cases_t* cases) {
  const uint64_t deadline_ns = gcap_doctor_symbols_deadline();
  sort(cases);
  for (size_t i = 0; i < cases->count; ++i) add_symbols(&cases->items[i], deadline_ns);
}

int gcap_doctor_cases_exit_code(const gcap_doctor_cases_t* cases) {
  for (size_t i = 0; i < cases->count; ++i) {
    if (has_error(&cases->items[i])) return GCAP_DOCTOR_EXIT_FINDING;
  }
  return GCAP_DOCTOR_EXIT_HEALTHY;
}

// --- Writing ---------------------------------------------------------------------------------------------------------

static bool is_colourful(FILE* out, gcap_doctor_colour_t colour) {
  if (colour != GCAP_DOCTOR_COLOUR_AUTO) return colour == GCAP_DOCTOR_COLOUR_ALWAYS;
  const char* no_colour = getenv("NO_COLOR");
  const char* term = getenv("TERM");
  if (no_colour != NULL && no_colour[0] != '\0') return false;
  return isatty(fileno(out)) && term != NULL && strcmp(term, "dumb") != 0;
}

void gcap_doctor_cases_print(FILE* out, const gcap_doctor_cases_t* cases, gcap_doctor_colour_t colour) {
  for (size_t i = 0; i < cases->count; ++i) {
    if (cases->count > 1) fprintf(out, "%s%s:\n", i != 0 ? "\n" : "", cases->items[i].name);
    gcap_doctor_report_text(out, cases->items[i].diagnosis, is_colourful(out, colour));
  }
}

void gcap_doctor_cases_print_json(FILE* out, const gcap_doctor_cases_t* cases) {
  if (cases->count != 1) fputs("[\n", out);
  for (size_t i = 0; i < cases->count; ++i) {
    if (i != 0) fputs(",\n", out);
    gcap_doctor_report_json(out, cases->items[i].diagnosis);
  }
  if (cases->count != 1) fputs("]\n", out);
}

static void (*const kWriters[GCAP_DOCTOR_NUM_OUTPUTS])(FILE* out, const gcap_doctor_diagnosis_t* diagnosis) = {
    gcap_doctor_report_html,  gcap_doctor_report_json,  gcap_doctor_report_dot,
    gcap_doctor_report_trace, gcap_doctor_report_sarif, gcap_doctor_report_junit,
};

// page.html for 0, page.2.html for 1.
static const char* numbered(gcap_doctor_heap_t* heap, const char* path, size_t index) {
  if (index == 0) return path;
  const char* dot = strrchr(path, '.');
  const char* name = gcap_doctor_base_name(path);
  size_t length = dot != NULL && dot > name ? (size_t)(dot - path) : strlen(path);
  return gcap_doctor_heap_print(heap, "%.*s.%zu%s", (int)length, path, index + 1, path + length);
}

static bool write_one(int output, const char* path, const gcap_doctor_diagnosis_t* diagnosis) {
  FILE* file = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
  if (file == NULL) {
    gcap_doctor_say("cannot write %s: %s", path, strerror(errno));
    return false;
  }
  kWriters[output](file, diagnosis);
  bool failed = fflush(file) != 0 || ferror(file);
  int error = errno;
  if (file != stdout && fclose(file) != 0) failed = true;
  if (failed) gcap_doctor_say("cannot write all of %s: %s", path, strerror(error));
  return !failed;
}

bool gcap_doctor_cases_write(const gcap_doctor_cases_t* cases, const gcap_doctor_options_t* options) {
  gcap_doctor_heap_t heap;
  gcap_doctor_heap_init(&heap);
  bool written = true;
  for (int i = 0; i < GCAP_DOCTOR_NUM_OUTPUTS && written; ++i) {
    const char* first = options->outputs[i];
    for (size_t j = 0; j < cases->count && first != NULL && written; ++j) {
      // Standard output takes all, one after the other.
      const char* path = strcmp(first, "-") == 0 ? "-" : numbered(&heap, first, j);
      written = write_one(i, path, cases->items[j].diagnosis);
      if (written && path != first && strcmp(path, "-") != 0) {
        gcap_doctor_say("%s is the report of %s", path, cases->items[j].name);
      }
    }
  }
  gcap_doctor_heap_deinit(&heap);
  return written;
}

// Whether the file can be opened for writing; false with the reason in errno. What is no regular file is not opened: a
// pipe's reader would take the closing for the end of the report.
static bool can_open(const char* path) {
  struct stat about;
  if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) {
    if (!S_ISDIR(about.st_mode)) return access(path, W_OK) == 0;
    errno = EISDIR;
    return false;
  }
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd >= 0) {
    unlink(path);
  } else if (errno == EEXIST) {
    fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  }
  return fd >= 0 && close(fd) == 0;
}

bool gcap_doctor_can_write(const gcap_doctor_options_t* options) {
  for (int i = 0; i < GCAP_DOCTOR_NUM_OUTPUTS; ++i) {
    const char* path = options->outputs[i];
    if (path == NULL || can_open(path)) continue;
    gcap_doctor_say("run: cannot write %s, the value of %s: %s", path, gcap_doctor_output_options[i], strerror(errno));
    return false;
  }
  return true;
}
