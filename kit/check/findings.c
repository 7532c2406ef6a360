// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Findings: each kind has a name and a remedy, and each finding is also written as events. Locking: none.

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "kit/check/checking.h"
#include "lib/capture/events_file.h"

typedef struct kind {
  const char *name, *remedy;
} kind_t;

static const kind_t kinds[] = {
    [GCAP_CHECK_FAILS] = {"fails", "mend the operation, or what it is given: it does not run eagerly either"},
    [GCAP_CHECK_NOT_REPEATABLE] = {"not_repeatable",
                                   "keep what changes from run to run in device memory, and list it as an output that "
                                   "is in_place; name the tolerance of sums without a fixed order"},
    [GCAP_CHECK_READS_OUTPUT] = {"reads_output",
                                 "write every byte of the output before it is read, or list the output as in_place"},
    [GCAP_CHECK_READS_SCRATCH] = {"reads_scratch", "write scratch in the run before it is read"},
    [GCAP_CHECK_WRITES_INPUT] = {"writes_input", "list the memory among the outputs, as in_place"},
    [GCAP_CHECK_LEAKS_SCRATCH] = {"leaks_scratch", "keep scratch once, for all runs, and free what a run replaces"},
    [GCAP_CHECK_SEES_NO_INPUT] = {"sees_no_input",
                                  "give the inputs a `fill` whose two fills lead to different outputs"},
    [GCAP_CHECK_NOT_CAPTURED] = {"not_captured", "the sentence names the call, the rule that it broke, and the remedy"},
    [GCAP_CHECK_ESCAPES] = {"escapes", "issue all work to the stream of the run, or to one that was forked from it"},
    [GCAP_CHECK_PAGEABLE] = {"pageable",
                             "copy from pinned memory that lives as long as the graph, or copy before the run"},
    [GCAP_CHECK_STALE_POINTER] =
        {"stale_pointer",
         "take temporary memory from the scratch of the run, or keep the memory of the capture "
         "as long as the graph"},
    [GCAP_CHECK_DIFFERS] = {"differs", "issue the same work in a capture as eagerly, ordered by events"},
    [GCAP_CHECK_FROZEN] = {"frozen",
                           "read what decides the work on the device, or capture anew when it changes: put it into the "
                           "key, state it as a guard or as a value of the run"},
    [GCAP_CHECK_NOT_TWICE] = {"not_twice", "reset counters and sums by work of the operation, in its stream"},
    [GCAP_CHECK_OTHER_STREAM] = {"other_stream",
                                 "keep no stream, event or memory of an earlier run: take those of this run"},
    [GCAP_CHECK_BORROWED] =
        {"borrowed", "work on memory alone that is the graph's: its scratch, or what lives as long as the graph"},
};

// --- Adding -----------------------------------------------------------------------------------------------------------

static gcap_check_finding_t* next(gcap_checking_t* checking, gcap_check_kind_t kind) {
  gcap_check_report_t* report = &checking->report;
  if (report->num_findings == GCAP_CHECK_MAX_FINDINGS) return NULL;
  gcap_check_finding_t* finding = &report->findings[report->num_findings++];
  finding->kind = kind;
  finding->name = kinds[kind].name;
  finding->remedy = kinds[kind].remedy;
  return finding;
}

void gcap_checking_add(gcap_checking_t* checking, gcap_check_kind_t kind, const char* format, ...) {
  char sentence[GCAP_CHECK_SENTENCE_BYTES + 1];  // one that is cut below says so
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof(sentence), format, arguments);
  va_end(arguments);
  gcap_check_finding_t* finding = next(checking, kind);
  if (finding == NULL) return;
  gcap_text_t text;
  gcap_text_init(&text, finding->sentence, sizeof(finding->sentence));
  gcap_text_add(&text, "%s", sentence);
}

void gcap_checking_add_failure(gcap_checking_t* checking, gcap_check_kind_t kind, const char* situation,
                               gcap_status_t failure) {
  gcap_checking_add(checking, kind, "%s: %s", situation, gcap_status_message(failure));
  gcap_status_free(failure);
}

// --- Events -----------------------------------------------------------------------------------------------------------

// A call of the operation, at its place.
static void write_call(FILE* file, const gcap_check_t* check, uint32_t number) {
  const bool has_place = gcap_events_file_write_place(file, number, check->file, check->line);
  fprintf(file, "call\tn=%" PRIu32 "\tthread=1", number);
  gcap_events_file_write_string(file, "function", check->name != NULL ? check->name : "operation");
  fputs("\tresult=0", file);
  if (has_place) fprintf(file, "\tstack=%" PRIu32, number);
  fputs("\n", file);
}

static void write_finding(FILE* file, const gcap_check_finding_t* finding, uint32_t call) {
  fprintf(file, "difference\tcall=%" PRIu32 "\tfault=%s", call, finding->name);
  gcap_events_file_write_string(file, "text", finding->sentence);
  gcap_events_file_write_string(file, "remedy", finding->remedy);
  fputs("\n", file);
}

// Each finding is a difference behind a call of its own.
static gcap_status_t write_file(const gcap_checking_t* checking) {
  const gcap_check_report_t* report = &checking->report;
  FILE* file = NULL;
  GCAP_RETURN_IF_ERROR(gcap_events_file_open(checking->check.events, &file));
  for (uint32_t call = 1; call <= report->num_findings; ++call) {
    write_call(file, &checking->check, call);
    write_finding(file, &report->findings[call - 1], call);
  }
  fputs("end\tt=0\n", file);
  return gcap_events_file_close(file, checking->check.events);
}

gcap_status_t gcap_checking_write_events(const gcap_checking_t* checking) {
  if (checking->check.events == NULL) return NULL;
  int cancel_state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  gcap_status_t status = write_file(checking);
  pthread_setcancelstate(cancel_state, NULL);
  return status;
}
