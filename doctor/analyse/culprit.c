// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The call that broke a capture.
//
// The driver says which captures a refused call breaks: that of its stream or of its event; else, by the modes, those
// of its thread and the global ones of all threads (the tables of docs/capture_rules.md). A first candidate is the
// earliest such call with a code that invalidates, made before any call found the capture broken; a second one is the
// last other failure on the capture's streams; a third one a call that succeeded, of a kind that breaks captures. A
// node that came into the capture later exonerates them all, and so does an answer that it is active. If none is left,
// all that is known is between which two calls it happened. The simulator and gcap's ledger know better, and say so:
// then nothing is concluded. Locking: none.
#include <string.h>

#include "doctor/analyse/analysis.h"

enum {
  kInvalidValue = 1,
  kUnsupported = 900,
  kInvalidated = 901,
  kMerge = 902,
  kUnmatched = 903,
  kUnjoined = 904,
  kIsolation = 905,
  kImplicit = 906,
  kCapturedEvent = 907,
  kWrongThread = 908,
};

// --- What a call says of an open capture -----------------------------------------------------------------------------

static bool is_open(const gcap_doctor_analysis_t* analysis, uint32_t capture) {
  return capture != GCAP_DOCTOR_NONE && analysis->states[capture].open_at != GCAP_DOCTOR_NONE;
}

static uint32_t stream_capture(const gcap_doctor_analysis_t* analysis, const gcap_doctor_event_call_t* call) {
  return call->stream != GCAP_DOCTOR_NONE ? analysis->streams[call->stream].capture : GCAP_DOCTOR_NONE;
}

static uint32_t event_capture(const gcap_doctor_analysis_t* analysis, const gcap_doctor_event_call_t* call) {
  const uint32_t place = gcap_doctor_ids_find(&analysis->events, call->event);
  const uint32_t capture = place != GCAP_DOCTOR_NONE ? analysis->event_states[place].capture : GCAP_DOCTOR_NONE;
  return is_open(analysis, capture) ? capture : GCAP_DOCTOR_NONE;
}

// Whether an unsafe call of that thread breaks the capture, by the capture's mode and by the thread's own one.
static bool is_reached_by_mode(const gcap_doctor_analysis_t* analysis, uint32_t call,
                               const gcap_doctor_captured_t* capture) {
  const gcap_doctor_event_mode_t own = (gcap_doctor_event_mode_t)analysis->modes[call];
  if (own == GCAP_DOCTOR_MODE_RELAXED || capture->mode == GCAP_DOCTOR_MODE_RELAXED) return false;
  if (gcap_doctor_call_at(analysis, call)->thread == capture->thread) return true;
  return capture->mode != GCAP_DOCTOR_MODE_THREAD_LOCAL && own != GCAP_DOCTOR_MODE_THREAD_LOCAL;
}

// A failed call, and the open captures of its stream and of its event.
typedef struct tie {
  uint32_t call, stream, event;
} tie_t;

// Such a call leaves captures as they are, whatever it answers.
static bool is_harmless(gcap_doctor_call_kind_t kind) {
  return kind == GCAP_DOCTOR_CALL_REFUSED || kind == GCAP_DOCTOR_CALL_ASK || kind == GCAP_DOCTOR_CALL_EXCHANGE;
}

// Whether the answer says that the call broke this capture.
static bool is_by_code(const gcap_doctor_analysis_t* analysis, const tie_t* tie, uint32_t index) {
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, tie->call);
  const gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[index];
  const bool is_tied = tie->stream == index || tie->event == index;
  const bool is_tied_to_any = tie->stream != GCAP_DOCTOR_NONE || tie->event != GCAP_DOCTOR_NONE;
  switch (of->result) {
    case kUnsupported:
      if (gcap_doctor_kind_at(analysis, tie->call) == GCAP_DOCTOR_CALL_DEVICE_SYNC) return true;
      if (is_tied_to_any) return is_tied;
      return is_reached_by_mode(analysis, tie->call, capture);
    case kImplicit:  // of the captures with a blocking stream; where none is known to have one, its thread's
      if (is_tied || analysis->states[index].num_blocking != 0) return true;
      return analysis->num_open_blocking == 0 && of->thread == capture->thread;
    case kCapturedEvent: return is_tied_to_any ? is_tied : of->thread == capture->thread;
    case kMerge:
    case kIsolation:
    case kUnmatched: return is_tied || (tie->stream == GCAP_DOCTOR_NONE && of->thread == capture->thread);
    default: return false;
  }
}

// Whether the call may have broken captures that are neither its stream's nor its event's.
static bool may_break_others(const gcap_doctor_analysis_t* analysis, const tie_t* tie) {
  const bool is_tied_to_any = tie->stream != GCAP_DOCTOR_NONE || tie->event != GCAP_DOCTOR_NONE;
  switch (gcap_doctor_call_at(analysis, tie->call)->result) {
    case kUnsupported:
      return !is_tied_to_any || gcap_doctor_kind_at(analysis, tie->call) == GCAP_DOCTOR_CALL_DEVICE_SYNC;
    case kImplicit: return true;
    case kCapturedEvent: return !is_tied_to_any;
    case kMerge:
    case kIsolation:
    case kUnmatched: return tie->stream == GCAP_DOCTOR_NONE;
    default: return false;
  }
}

static bool is_strong(const gcap_doctor_analysis_t* analysis, const tie_t* tie, uint32_t index) {
  if (is_by_code(analysis, tie, index)) return true;
  const gcap_doctor_call_kind_t kind = gcap_doctor_kind_at(analysis, tie->call);
  // A kernel that no device can run, and a wait on what is no event, break the capture without a code of its own.
  return tie->stream == index && (kind == GCAP_DOCTOR_CALL_KERNEL || kind == GCAP_DOCTOR_CALL_WAIT);
}

// Of two threads' calls that ran at once, the one that returned first has done it.
static bool returned_before(const gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t other) {
  const gcap_doctor_event_call_t *a = gcap_doctor_call_at(analysis, call), *b = gcap_doctor_call_at(analysis, other);
  return a->thread != b->thread && a->end_ns != 0 && a->end_ns < b->end_ns;
}

static uint32_t later(uint32_t call, uint32_t other) {
  if (call == GCAP_DOCTOR_NONE || other == GCAP_DOCTOR_NONE) return call == GCAP_DOCTOR_NONE ? other : call;
  return call > other ? call : other;
}

void gcap_doctor_culprit_enter(gcap_doctor_analysis_t* analysis, uint32_t capture) {
  if (analysis->states[capture].unsettled_at != GCAP_DOCTOR_NONE) return;
  analysis->unsettled = gcap_doctor_heap_grow(analysis->unsettled, analysis->num_unsettled,
                                              &analysis->unsettled_capacity, sizeof(*analysis->unsettled));
  analysis->states[capture].unsettled_at = (uint32_t)analysis->num_unsettled;
  analysis->unsettled[analysis->num_unsettled++] = capture;
}

void gcap_doctor_culprit_leave(gcap_doctor_analysis_t* analysis, uint32_t capture) {
  gcap_doctor_capture_state_t* state = &analysis->states[capture];
  if (state->unsettled_at == GCAP_DOCTOR_NONE) return;
  const uint32_t last = analysis->unsettled[--analysis->num_unsettled];
  analysis->unsettled[state->unsettled_at] = last;
  analysis->states[last].unsettled_at = state->unsettled_at;
  state->unsettled_at = GCAP_DOCTOR_NONE;
}

// Whether the capture was alive after the call. Another thread's call may have done its harm as late as it returned.
static bool is_exonerated(const gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t alive) {
  if (alive == GCAP_DOCTOR_NONE || call > alive) return false;
  const gcap_doctor_event_call_t *a = gcap_doctor_call_at(analysis, call), *b = gcap_doctor_call_at(analysis, alive);
  return a->thread == b->thread || a->end_ns <= b->start_ns;
}

void gcap_doctor_culprit_note_alive(gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t capture) {
  gcap_doctor_capture_state_t* state = &analysis->states[capture];
  if (state->first_901 != GCAP_DOCTOR_NONE) return;
  state->alive = call;
  if (state->strong == GCAP_DOCTOR_NONE || !is_exonerated(analysis, state->strong, call)) return;
  state->strong = GCAP_DOCTOR_NONE;
  gcap_doctor_culprit_enter(analysis, capture);
}

void gcap_doctor_culprit_find_broken(gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t index) {
  gcap_doctor_capture_state_t* state = &analysis->states[index];
  const gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[index];
  if (state->first_901 != GCAP_DOCTOR_NONE) return;
  state->first_901 = call;
  uint32_t silent = analysis->silent_anywhere;
  if (capture->mode != GCAP_DOCTOR_MODE_RELAXED) silent = later(silent, analysis->threads[capture->thread].silent);
  if (capture->mode == GCAP_DOCTOR_MODE_GLOBAL || capture->mode == GCAP_DOCTOR_MODE_UNKNOWN) {
    silent = later(silent, analysis->silent_global);
  }
  if (silent == GCAP_DOCTOR_NONE || is_exonerated(analysis, silent, state->alive)) return;
  if (silent > capture->begin) state->silent = silent;
}

// Whether no later call can have broken the capture before: the known one returned before this one began.
static bool is_settled(const gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t capture) {
  const gcap_doctor_capture_state_t* state = &analysis->states[capture];
  if (state->first_901 != GCAP_DOCTOR_NONE) return true;
  if (state->strong == GCAP_DOCTOR_NONE) return false;
  return gcap_doctor_call_at(analysis, state->strong)->end_ns <= gcap_doctor_call_at(analysis, call)->start_ns;
}

static void look_at(gcap_doctor_analysis_t* analysis, const tie_t* tie, uint32_t capture) {
  gcap_doctor_capture_state_t* state = &analysis->states[capture];
  if (state->first_901 != GCAP_DOCTOR_NONE) return;
  if (state->strong != GCAP_DOCTOR_NONE && !returned_before(analysis, tie->call, state->strong)) return;
  if (is_strong(analysis, tie, capture)) state->strong = tie->call;
}

void gcap_doctor_culprit_look(gcap_doctor_analysis_t* analysis, uint32_t call) {
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  if (of->result == kInvalidated) {
    if (analysis->capture_of[call] != GCAP_DOCTOR_NONE)
      gcap_doctor_culprit_find_broken(analysis, call, analysis->capture_of[call]);
    return;
  }
  const tie_t tie = {.call = call, .stream = stream_capture(analysis, of), .event = event_capture(analysis, of)};
  if (is_harmless(gcap_doctor_kind_at(analysis, call))) return;
  if (tie.stream != GCAP_DOCTOR_NONE) look_at(analysis, &tie, tie.stream);
  if (tie.event != GCAP_DOCTOR_NONE && tie.event != tie.stream) look_at(analysis, &tie, tie.event);
  if (!may_break_others(analysis, &tie)) return;
  for (size_t i = analysis->num_unsettled; i-- > 0;) {  // backwards: one that leaves is replaced by the last
    const uint32_t capture = analysis->unsettled[i];
    if (is_settled(analysis, call, capture)) {
      gcap_doctor_culprit_leave(analysis, capture);
    } else {
      look_at(analysis, &tie, capture);
    }
  }
}

// Where a word of a source and a number stand in what it says of captures; NULL if they do not.
static const char* find_said(const char* says, const char* word, const char** out_end) {
  const char* found = says != NULL ? strstr(says, word) : NULL;
  if (found == NULL) return NULL;
  const char* number = found + strlen(word);
  *out_end = number + strspn(number, "0123456789");
  return *out_end != number ? number : NULL;
}

void gcap_doctor_culprit_look_said(gcap_doctor_analysis_t* analysis, uint32_t call) {
  const char* end = NULL;
  const char* says = gcap_doctor_call_at(analysis, call)->says;
  for (const char* broken; (broken = find_said(says, "invalidates capture ", &end)) != NULL; says = end) {
    for (size_t i = 0; i < analysis->num_open; ++i) {
      const uint32_t begin = analysis->diagnosis->captures[analysis->open[i]].begin;
      const char* begun_end = NULL;
      const char* begun = find_said(gcap_doctor_call_at(analysis, begin)->says, "begins capture ", &begun_end);
      if (begun == NULL || begun_end - begun != end - broken) continue;
      if (strncmp(begun, broken, (size_t)(end - broken)) == 0) analysis->states[analysis->open[i]].strong = call;
    }
  }
}

void gcap_doctor_culprit_look_silent(gcap_doctor_analysis_t* analysis, uint32_t call) {
  const gcap_doctor_call_kind_t kind = gcap_doctor_kind_at(analysis, call);
  const gcap_doctor_event_mode_t own = (gcap_doctor_event_mode_t)analysis->modes[call];
  if (kind == GCAP_DOCTOR_CALL_DEVICE_SYNC) analysis->silent_anywhere = call;
  if ((kind != GCAP_DOCTOR_CALL_UNSAFE && kind != GCAP_DOCTOR_CALL_ALLOCATE) || own == GCAP_DOCTOR_MODE_RELAXED) return;
  analysis->threads[gcap_doctor_call_at(analysis, call)->thread].silent = call;
  if (own != GCAP_DOCTOR_MODE_THREAD_LOCAL) analysis->silent_global = call;
}

// --- Findings --------------------------------------------------------------------------------------------------------

// The rule where the function alone would tell another one.
static const gcap_rule_t* rule_by_place(const gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t capture) {
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  if (capture == GCAP_DOCTOR_NONE) return NULL;
  switch (gcap_doctor_kind_at(analysis, call)) {
    case GCAP_DOCTOR_CALL_EVENT_QUERY:  // of an event recorded before: 907 is that of a captured one
      if (of->result == kUnsupported) return gcap_rule_by_id("R14");
      break;
    case GCAP_DOCTOR_CALL_STREAM_SYNC:  // of a stream that does not capture; a ledger may not know the stream
      if (of->result == kUnsupported && of->stream != GCAP_DOCTOR_NONE &&
          analysis->stream_capture[call] == GCAP_DOCTOR_NONE) {
        return gcap_rule_by_id("R26");
      }
      break;
    case GCAP_DOCTOR_CALL_WAIT:  // with an event of a capture that is over; with bad flags it breaks nothing
      if (of->result == kInvalidValue) return gcap_rule_by_id("R19");
      break;
    default: break;
  }
  return NULL;
}

static const gcap_rule_t* rule_of(const gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t capture) {
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  const char* library = gcap_doctor_library_function(analysis->recording, call);
  const gcap_rule_t* rule = library != NULL ? gcap_doctor_library_rule(library) : NULL;
  // A product of cuBLAS waits for its stream only to give a result to the host.
  const bool is_waiting = gcap_doctor_kind_at(analysis, call) == GCAP_DOCTOR_CALL_STREAM_SYNC;
  if (rule == NULL && library != NULL && strncmp(library, "cublas", strlen("cublas")) == 0 && is_waiting) {
    rule = gcap_rule_by_id("R45");
  }
  if (rule == NULL) rule = rule_by_place(analysis, call, capture);
  if (rule == NULL) rule = gcap_rule_of_call(of->function, of->result);
  return rule != NULL ? rule : gcap_rule_of_code(of->result);
}

static void find_culprit(gcap_doctor_analysis_t* analysis, uint32_t index, uint32_t call, bool is_certain) {
  gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[index];
  gcap_doctor_finding_t* finding =
      gcap_doctor_finding_add(analysis, GCAP_DOCTOR_FINDING_CULPRIT, GCAP_DOCTOR_SEVERITY_ERROR, index, call);
  finding->rule = rule_of(analysis, call, index);
  finding->is_certain = is_certain;
  capture->culprit = call;
  if (gcap_doctor_call_at(analysis, call)->thread != capture->thread) finding->other = capture->begin;
  if (analysis->outer[call] != call) finding->other = analysis->outer[call];
}

enum { kLookBack = 4096 };  // calls; a bound for recordings of many broken captures

// The first call of the capture that may have broken it, as far as its calls after `alive` are looked at.
static uint32_t first_suspect(const gcap_doctor_analysis_t* analysis, uint32_t index, uint32_t before) {
  const uint32_t alive = analysis->states[index].alive;
  const uint32_t first = alive != GCAP_DOCTOR_NONE ? alive + 1 : analysis->diagnosis->captures[index].begin + 1;
  return before > kLookBack && first < before - kLookBack ? before - kLookBack : first;
}

// A failure whose answer does not say that it broke the capture.
static bool may_have_broken(const gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t index) {
  enum { kNotReady = 600 };
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  const gcap_doctor_call_kind_t kind = gcap_doctor_kind_at(analysis, call);
  if (of->result == 0 || of->result == kNotReady || of->result == kInvalidated) return false;
  if (is_harmless(kind) || kind == GCAP_DOCTOR_CALL_BEGIN || kind == GCAP_DOCTOR_CALL_END) return false;
  const uint32_t of_call = analysis->capture_of[call];
  if (of_call != GCAP_DOCTOR_NONE && analysis->diagnosis->captures[of_call].end < call)
    return false;  // about an ended one
  const bool is_own = of->thread == analysis->diagnosis->captures[index].thread;
  return (is_own || analysis->stream_capture[call] == index) && !gcap_doctor_call_is_question(of->function);
}

static uint32_t find_failure(const gcap_doctor_analysis_t* analysis, uint32_t index, uint32_t before) {
  enum { kCandidates = 64 };
  const uint32_t first = first_suspect(analysis, index, before);
  for (uint32_t call = before, seen = 0; call-- > first && seen < kCandidates;) {
    if (!may_have_broken(analysis, call, index)) continue;
    ++seen;
    if (!gcap_doctor_call_was_tried_again(analysis, call, before)) return call;
  }
  return GCAP_DOCTOR_NONE;
}

static bool is_breaking_library(gcap_doctor_analysis_t* analysis, uint32_t call) {
  const gcap_doctor_event_call_t* of = gcap_doctor_call_at(analysis, call);
  const bool has_stack = of->stack < analysis->recording->num_stacks && !gcap_doctor_library_of(of->function);
  uint8_t* known = has_stack ? &analysis->library_of_stack[of->stack] : NULL;
  if (known != NULL && *known != 0) return *known == 2;
  const char* function = gcap_doctor_library_function(analysis->recording, call);
  const bool is_breaking = function != NULL && gcap_doctor_library_rule(function) != NULL;
  if (known != NULL) *known = is_breaking ? 2 : 1;
  return is_breaking;
}

// What a library does may show in no answer: then the stack tells that the call was its.
static uint32_t find_library_call(gcap_doctor_analysis_t* analysis, uint32_t index, uint32_t before) {
  const gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[index];
  const uint32_t first = first_suspect(analysis, index, before);
  for (uint32_t call = before; call-- > first;) {
    if (gcap_doctor_call_at(analysis, call)->thread != capture->thread) continue;
    if (is_breaking_library(analysis, call)) return call;
  }
  return GCAP_DOCTOR_NONE;
}

static void find_between(gcap_doctor_analysis_t* analysis, uint32_t index) {
  const gcap_doctor_capture_state_t* state = &analysis->states[index];
  const gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[index];
  gcap_doctor_finding_t* finding = gcap_doctor_finding_add(analysis, GCAP_DOCTOR_FINDING_CULPRIT,
                                                           GCAP_DOCTOR_SEVERITY_ERROR, index, state->first_901);
  finding->is_certain = false;
  finding->other = state->last_good != GCAP_DOCTOR_NONE ? state->last_good : capture->begin;
  finding->rule = gcap_rule_of_code(kInvalidated);
}

// Whether the call is part of the program's end, which meets the capture that was left open: it comes from an exit
// handler, or from an interpreter that runs nothing any more.
static bool is_at_exit(const gcap_doctor_recording_t* recording, const gcap_doctor_captured_t* capture, uint32_t call) {
  static const char* const names[] = {"exit", "__cxa_finalize", "Py_FinalizeEx", "Py_Finalize"};
  const uint32_t stack = recording->calls[call].stack;
  if (stack >= recording->num_stacks || recording->stacks[stack].num_python != 0) return false;
  const uint32_t begin = recording->calls[capture->begin].stack;
  const bool had_python = begin < recording->num_stacks && recording->stacks[begin].num_python != 0;
  if (had_python && recording->calls[call].thread == capture->thread) return true;
  for (uint32_t i = 0; i < recording->stacks[stack].num_c; ++i) {
    const char* function = recording->frames[recording->stacks[stack].c[i]].function;
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); ++k) {
      if (strcmp(function, names[k]) == 0) return true;
    }
  }
  return false;
}

static void find_in(gcap_doctor_analysis_t* analysis, uint32_t index) {
  const gcap_doctor_capture_state_t* state = &analysis->states[index];
  const gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[index];
  if (capture->outcome == GCAP_DOCTOR_OUTCOME_OPEN) {  // the program stopped at the error
    if (state->strong != GCAP_DOCTOR_NONE && !is_at_exit(analysis->recording, capture, state->strong)) {
      find_culprit(analysis, index, state->strong, true);
    }
    return;
  }
  if (capture->result == kUnjoined) return;  // forks.c tells
  if (capture->result != kInvalidated) {     // the end's own answer
    find_culprit(analysis, index, state->strong != GCAP_DOCTOR_NONE ? state->strong : capture->end, true);
  } else if (state->strong != GCAP_DOCTOR_NONE) {
    find_culprit(analysis, index, state->strong, true);
  } else {
    uint32_t probable = find_failure(analysis, index, state->first_901);
    if (probable == GCAP_DOCTOR_NONE) probable = find_library_call(analysis, index, state->first_901);
    if (probable == GCAP_DOCTOR_NONE) probable = state->silent;
    if (probable != GCAP_DOCTOR_NONE) {
      find_culprit(analysis, index, probable, false);
    } else {
      find_between(analysis, index);
    }
  }
}

// A begin or an end that began or ended nothing.
static void find_refused(gcap_doctor_analysis_t* analysis, const gcap_doctor_pair_t* refused) {
  const gcap_doctor_event_call_t* call = gcap_doctor_call_at(analysis, refused->call);
  gcap_doctor_finding_t* finding = gcap_doctor_finding_add(analysis, GCAP_DOCTOR_FINDING_CULPRIT,
                                                           GCAP_DOCTOR_SEVERITY_ERROR, refused->capture, refused->call);
  const bool is_begin = gcap_doctor_kind_at(analysis, refused->call) == GCAP_DOCTOR_CALL_BEGIN;
  if (is_begin && call->result == kUnsupported) finding->rule = gcap_rule_by_id("R1");
  if (is_begin && refused->capture != GCAP_DOCTOR_NONE) finding->rule = gcap_rule_by_id("R2");
  if (!is_begin) finding->rule = gcap_rule_of_code(call->result);
}

void gcap_doctor_culprit_find(gcap_doctor_analysis_t* analysis) {
  for (uint32_t i = 0; i < analysis->diagnosis->num_captures; ++i) {
    if (analysis->diagnosis->captures[i].outcome != GCAP_DOCTOR_OUTCOME_GRAPH) find_in(analysis, i);
  }
  for (size_t i = 0; i < analysis->refused.count; ++i) find_refused(analysis, &analysis->refused.items[i]);
}
