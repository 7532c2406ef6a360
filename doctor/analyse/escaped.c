// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Work beside the capture, and calls whose failure the capture survived: of both the graph lacks what somebody thinks
// is in it. Which they are the first pass has kept. Locking: none.
#include <stdlib.h>
#include <string.h>

#include "doctor/analyse/analysis.h"

static int compare_pairs(const void* left, const void* right) {
  const gcap_doctor_pair_t *a = left, *b = right;
  if (a->capture != b->capture) return a->capture < b->capture ? -1 : 1;
  return a->call < b->call ? -1 : a->call > b->call;
}

// Copies and replays on a stream that the program chose, and that has nothing to do with the capture, are meant so: a
// prefetch, the launch of another graph. The default stream is nobody's choice, kernels are what one captures, and
// nobody means a graph in which there is nothing.
static bool is_mistake(const gcap_doctor_analysis_t* analysis, const gcap_doctor_pair_t* escape) {
  const uint32_t stream = gcap_doctor_call_at(analysis, escape->call)->stream;
  const gcap_doctor_call_kind_t kind = gcap_doctor_kind_at(analysis, escape->call);
  if (stream == GCAP_DOCTOR_NONE || (kind != GCAP_DOCTOR_CALL_COPY && kind != GCAP_DOCTOR_CALL_GRAPH_LAUNCH))
    return true;
  const char* what = analysis->recording->streams[stream].what;
  if (strcmp(what, "legacy") == 0 || strcmp(what, "per_thread") == 0) return true;
  if (analysis->diagnosis->captures[escape->capture].num_nodes == 0 && analysis->states[escape->capture].works == 0) {
    return true;
  }
  const gcap_doctor_pair_t tie = {.capture = escape->capture, .call = stream};
  return analysis->ties.count != 0 && bsearch(&tie, analysis->ties.items, analysis->ties.count,
                                              sizeof(*analysis->ties.items), compare_pairs) != NULL;
}

void gcap_doctor_escaped_find(gcap_doctor_analysis_t* analysis) {
  if (analysis->ties.count != 0) {
    qsort(analysis->ties.items, analysis->ties.count, sizeof(*analysis->ties.items), compare_pairs);
  }
  for (size_t i = 0; i < analysis->escapes.count; ++i) {
    const gcap_doctor_pair_t* escape = &analysis->escapes.items[i];
    // A thread that exchanged its mode to relaxed means to do what is not for the graph. One whose exchange may be left
    // out may have done so.
    const uint8_t mode = analysis->modes[escape->call];
    const bool is_meant = (mode == GCAP_DOCTOR_MODE_RELAXED || mode == GCAP_DOCTOR_MODE_UNKNOWN) &&
                          analysis->diagnosis->captures[escape->capture].mode != GCAP_DOCTOR_MODE_RELAXED;
    gcap_doctor_finding_t* finding = gcap_doctor_finding_add(
        analysis, GCAP_DOCTOR_FINDING_ESCAPED,
        is_meant || !is_mistake(analysis, escape) ? GCAP_DOCTOR_SEVERITY_NOTE : GCAP_DOCTOR_SEVERITY_ERROR,
        escape->capture, escape->call);
    finding->other = analysis->diagnosis->captures[escape->capture].begin;
    finding->count = gcap_doctor_call_at(analysis, escape->call)->count;
    finding->rule = gcap_rule_by_id("R64");
  }
}

// --- Failures that the capture survived ------------------------------------------------------------------------------

bool gcap_doctor_call_was_tried_again(const gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t before) {
  enum { kTries = 64, kLookAhead = 4096 };  // calls of that thread, and of all, to look at
  const gcap_doctor_event_call_t* failed = gcap_doctor_call_at(analysis, call);
  const size_t left = analysis->recording->num_calls - call - 1;
  for (uint32_t i = 1, seen = 0; i <= left && i <= kLookAhead && seen < kTries && call + i < before; ++i) {
    const gcap_doctor_event_call_t* later = gcap_doctor_call_at(analysis, call + i);
    if (later->thread != failed->thread) continue;
    ++seen;
    if (later->result == 0 && strcmp(later->function, failed->function) == 0) return true;
  }
  return false;
}

static void find_lost(gcap_doctor_analysis_t* analysis, const gcap_doctor_pair_t* failure) {
  enum { kPeerAlreadyEnabled = 704, kHostAlreadyRegistered = 712 };
  const gcap_doctor_event_call_t* call = gcap_doctor_call_at(analysis, failure->call);
  const gcap_doctor_call_kind_t kind = gcap_doctor_kind_at(analysis, failure->call);
  if (analysis->outer[failure->call] != failure->call || gcap_doctor_call_is_question(call->function)) return;
  if (call->result == kPeerAlreadyEnabled || call->result == kHostAlreadyRegistered)
    return;  // what was asked for is so
  const bool is_work = gcap_doctor_call_is_work(kind) || kind == GCAP_DOCTOR_CALL_RECORD ||
                       kind == GCAP_DOCTOR_CALL_WAIT || kind == GCAP_DOCTOR_CALL_ALLOCATE_ASYNC ||
                       strstr(call->function, "BatchAsync") != NULL;
  // Of work each call is a node of its own; anything else is done when one of the tries is.
  if ((!is_work || kind == GCAP_DOCTOR_CALL_ALLOCATE_ASYNC) &&
      gcap_doctor_call_was_tried_again(analysis, failure->call, analysis->diagnosis->captures[failure->capture].end)) {
    return;
  }
  gcap_doctor_finding_t* finding = gcap_doctor_finding_add(
      analysis, GCAP_DOCTOR_FINDING_LOST_CALL, is_work ? GCAP_DOCTOR_SEVERITY_ERROR : GCAP_DOCTOR_SEVERITY_WARNING,
      failure->capture, failure->call);
  // After the end: a wait on an event that the capture took with it.
  const bool is_dead =
      kind == GCAP_DOCTOR_CALL_WAIT && failure->call > analysis->diagnosis->captures[failure->capture].end;
  finding->rule = is_dead ? gcap_rule_by_id("R19") : gcap_rule_of_call(call->function, call->result);
  if (finding->rule == NULL) finding->rule = gcap_rule_by_id("R9");
}

void gcap_doctor_lost_find(gcap_doctor_analysis_t* analysis) {
  for (size_t i = 0; i < analysis->failures.count; ++i) {
    const gcap_doctor_pair_t* failure = &analysis->failures.items[i];
    const gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[failure->capture];
    // Another thread's failure is its own affair, unless it was about this capture's streams.
    const bool is_own = gcap_doctor_call_at(analysis, failure->call)->thread == capture->thread ||
                        analysis->stream_capture[failure->call] == failure->capture;
    const bool is_late = capture->end != GCAP_DOCTOR_NONE && failure->call > capture->end;
    if (is_late || (capture->outcome == GCAP_DOCTOR_OUTCOME_GRAPH && is_own)) find_lost(analysis, failure);
  }
}
