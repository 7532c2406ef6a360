// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Captures that come again and again from one place, each of which is launched once at most: capturing costs more than
// the graph saves.
//
// A place is the innermost Python frame that belongs to the program, not to an installed package; without Python it is
// the innermost C frame that is not CUDA's. Programs that capture all their shapes beforehand launch none before the
// last one is captured: at least half of the graphs must have been launched before the next capture began. Locking:
// none.
#include <stdlib.h>
#include <string.h>

#include "doctor/analyse/analysis.h"

enum { kOften = 8 };  // captures from one place

typedef struct place {
  const char* file;  // or the module
  uint64_t at;       // the line, or the offset
  uint32_t capture;
} place_t;

static place_t place_of(const gcap_doctor_recording_t* recording, uint32_t stack) {
  if (stack >= recording->num_stacks) return (place_t){.file = NULL};
  const gcap_doctor_event_stack_t* of = &recording->stacks[stack];
  for (uint32_t i = 0; i < of->num_python; ++i) {
    const gcap_doctor_event_frame_t* frame = &recording->frames[of->python[i]];
    if (!gcap_doctor_is_of_package(frame->file)) return (place_t){.file = frame->file, .at = frame->line};
  }
  const uint32_t c = gcap_doctor_recording_c_frame(recording, stack);
  if (c == GCAP_DOCTOR_NONE) return (place_t){.file = NULL};
  return (place_t){.file = recording->frames[c].module, .at = recording->frames[c].offset};
}

static int compare_places(const place_t* a, const place_t* b) {
  const int order = strcmp(a->file, b->file);
  if (order != 0) return order;
  return a->at < b->at ? -1 : a->at > b->at;
}

static int compare(const void* left, const void* right) {
  const place_t *a = left, *b = right;
  const int order = compare_places(a, b);
  return order != 0 ? order : a->capture < b->capture ? -1 : a->capture > b->capture;
}

// Whether a graph of the capture was launched before the next capture of its place began.
static bool is_launched_before(const gcap_doctor_analysis_t* analysis, const gcap_doctor_captured_t* capture,
                               const gcap_doctor_captured_t* next) {
  const uint32_t place = gcap_doctor_ids_find(&analysis->execs, capture->exec);
  if (place == GCAP_DOCTOR_NONE) return false;
  const uint32_t line = analysis->recording->execs[analysis->exec_at[place]].first_launch_line;
  return line != 0 && line < gcap_doctor_call_at(analysis, next->begin)->line;
}

static void look_at_group(gcap_doctor_analysis_t* analysis, const place_t* places, size_t count) {
  const gcap_doctor_captured_t* captures = analysis->diagnosis->captures;
  size_t in_turn = 0;
  for (size_t i = 0; i < count; ++i) {
    const gcap_doctor_captured_t* capture = &captures[places[i].capture];
    if (capture->replays > 1) return;
    if (i + 1 < count) in_turn += is_launched_before(analysis, capture, &captures[places[i + 1].capture]);
  }
  if (count < kOften || 2 * in_turn < count) return;
  gcap_doctor_finding_t* finding =
      gcap_doctor_finding_add(analysis, GCAP_DOCTOR_FINDING_RECAPTURED, GCAP_DOCTOR_SEVERITY_WARNING,
                              places[count - 1].capture, captures[places[count - 1].capture].begin);
  finding->other = captures[places[0].capture].begin;
  finding->count = count;
}

void gcap_doctor_repeats_find(gcap_doctor_analysis_t* analysis) {
  const gcap_doctor_diagnosis_t* diagnosis = analysis->diagnosis;
  place_t* places = gcap_doctor_heap_alloc(&analysis->heap, (diagnosis->num_captures + 1) * sizeof(*places));
  size_t count = 0;
  for (uint32_t i = 0; i < diagnosis->num_captures; ++i) {
    if (diagnosis->captures[i].outcome != GCAP_DOCTOR_OUTCOME_GRAPH) continue;
    if (gcap_doctor_is_before_gap(analysis, diagnosis->captures[i].begin)) continue;  // its launches may be left out
    const gcap_doctor_event_call_t* begin = gcap_doctor_call_at(analysis, diagnosis->captures[i].begin);
    places[count] = place_of(analysis->recording, begin->stack);
    places[count].capture = i;
    if (places[count].file != NULL) ++count;
  }
  if (count != 0) qsort(places, count, sizeof(*places), compare);
  for (size_t first = 0, i = 1; i <= count; ++i) {
    if (i < count && compare_places(&places[first], &places[i]) == 0) continue;
    look_at_group(analysis, &places[first], i - first);
    first = i;
  }
}
