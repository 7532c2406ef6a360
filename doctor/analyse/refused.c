// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a framework refuses by itself. PyTorch asks whether the stream captures and throws; its capture then ends well,
// the graph lacks all that would have come, and nobody launches it. CuPy throws too, and leaves the end of the capture
// to its caller. No call of the driver fails.
//
// Where the recording has the exception, that says more, and the questions only say which rule it was about (raised.c).
// Else the sign is a question, made from a place that is not that of the begin or end, after which nothing came into
// the graph. Only a stack with Python or PyTorch in it counts: a library that asks after each of its calls means
// nothing by it. Locking: none.
#include <ctype.h>
#include <string.h>

#include "doctor/analyse/analysis.h"
#include "doctor/base/path.h"

static bool same_text(const char* a, const char* b) { return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0); }

// Whether both stacks have the same innermost Python frame: in a package whatever its line. Without Python no stack is
// like another.
static bool is_same_place(const gcap_doctor_recording_t* recording, uint32_t stack, uint32_t other) {
  const uint32_t a = gcap_doctor_recording_python_frame(recording, stack);
  const uint32_t b = gcap_doctor_recording_python_frame(recording, other);
  if (a == GCAP_DOCTOR_NONE || b == GCAP_DOCTOR_NONE) return false;
  const gcap_doctor_event_frame_t *one = &recording->frames[a], *two = &recording->frames[b];
  return same_text(one->file, two->file) && same_text(one->function, two->function) &&
         (one->line == two->line || gcap_doctor_is_of_package(one->file));
}

// Whether the question is a framework's.
static bool is_frameworks(const gcap_doctor_recording_t* recording, uint32_t stack) {
  if (stack >= recording->num_stacks) return false;
  const gcap_doctor_event_stack_t* of = &recording->stacks[stack];
  if (of->num_python != 0) return true;
  for (uint32_t i = 0; i < of->num_c; ++i) {
    const char* module = gcap_doctor_base_name(recording->frames[of->c[i]].module);
    if (strncmp(module, "libtorch", strlen("libtorch")) == 0 || strncmp(module, "libc10", strlen("libc10")) == 0) {
      return true;
    }
  }
  return false;
}

void gcap_doctor_refused_note(gcap_doctor_analysis_t* analysis, uint32_t call, uint32_t capture) {
  const gcap_doctor_recording_t* recording = analysis->recording;
  const uint32_t stack = gcap_doctor_call_at(analysis, call)->stack;
  const uint32_t begin = gcap_doctor_call_at(analysis, analysis->diagnosis->captures[capture].begin)->stack;
  if (!is_frameworks(recording, stack) || stack == begin || is_same_place(recording, stack, begin)) return;
  analysis->states[capture].last_ask = call;
}

static bool is_of_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

// "at::Tensor::copy_": also where it is mangled, "5copy_".
static bool is_tensors_copy(const char* function) {
  static const char name[] = "copy_";
  for (const char* at = function; (at = strstr(at, name)) != NULL; ++at) {
    const char* end = at + strlen(name);
    if (at == function || !is_of_name(at[-1])) {
      if (!is_of_name(*end)) return true;
    } else if (at[-1] == '5' && (at - 1 == function || !isdigit((unsigned char)at[-2]))) {
      return true;
    }
  }
  return false;
}

// "at::native::copy_kernel_cuda": mangled, "_ZN2at6nativeL16copy_kernel_cuda".
static bool is_natives_copy(const char* function) {
  static const char scope[] = "2at6native";
  if (strstr(function, "at::native::copy") != NULL) return true;
  const char* at = strstr(function, scope);
  if (at == NULL) return false;
  at += strlen(scope);
  at += *at == 'L';  // of one file alone
  const size_t digits = strspn(at, "0123456789");
  return digits != 0 && strncmp(at + digits, "copy", strlen("copy")) == 0;
}

// PyTorch's copies among the frames of a stack. Other functions have "copy" in their names too.
static bool is_in_copy(const gcap_doctor_recording_t* recording, uint32_t stack) {
  if (stack >= recording->num_stacks) return false;
  const gcap_doctor_event_stack_t* of = &recording->stacks[stack];
  for (uint32_t i = 0; i < of->num_c; ++i) {
    const char* function = recording->frames[of->c[i]].function;
    if (is_tensors_copy(function) || is_natives_copy(function)) return true;
  }
  return false;
}

const gcap_rule_t* gcap_doctor_refused_rule(const gcap_doctor_analysis_t* analysis, uint32_t capture) {
  const gcap_doctor_capture_state_t* state = &analysis->states[capture];
  if (state->last_ask == GCAP_DOCTOR_NONE) return NULL;
  const bool is_copy = state->last_pointer != GCAP_DOCTOR_NONE ||
                       is_in_copy(analysis->recording, gcap_doctor_call_at(analysis, state->last_ask)->stack);
  return is_copy ? gcap_rule_by_id("R38") : NULL;
}

static void find_in(gcap_doctor_analysis_t* analysis, uint32_t index) {
  const gcap_doctor_captured_t* capture = &analysis->diagnosis->captures[index];
  gcap_doctor_capture_state_t* state = &analysis->states[index];
  const uint32_t ask = state->last_ask;
  if (state->refused) return;
  if (ask == GCAP_DOCTOR_NONE || capture->outcome == GCAP_DOCTOR_OUTCOME_BROKEN || capture->replays != 0) return;
  const uint32_t stack = gcap_doctor_call_at(analysis, ask)->stack;
  if (gcap_doctor_is_before_gap(analysis, capture->begin)) return;  // its launches may be left out
  const bool is_open = capture->outcome == GCAP_DOCTOR_OUTCOME_OPEN;
  if (is_open && !analysis->recording->ended) return;  // it may go on
  const uint32_t end = is_open ? GCAP_DOCTOR_NONE : gcap_doctor_call_at(analysis, capture->end)->stack;
  if (!is_open && (stack == end || is_same_place(analysis->recording, stack, end))) return;
  // A program that was killed may have been about to launch it. A first launch is written at once, so one that had gone
  // on would have shown it. The last call of depth 0 is what `outermost` is after all calls.
  const bool went_on = analysis->recording->ended || analysis->threads[capture->thread].outermost > capture->end;
  const gcap_doctor_severity_t severity = went_on ? GCAP_DOCTOR_SEVERITY_ERROR : GCAP_DOCTOR_SEVERITY_NOTE;
  gcap_doctor_finding_t* finding = gcap_doctor_finding_add(analysis, GCAP_DOCTOR_FINDING_REFUSED, severity, index, ask);
  finding->is_certain = false;
  state->refused = true;
  finding->rule = gcap_doctor_refused_rule(analysis, index);
}

void gcap_doctor_refused_find(gcap_doctor_analysis_t* analysis) {
  for (uint32_t i = 0; i < analysis->diagnosis->num_captures; ++i) find_in(analysis, i);
}
