// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The verdict: the sentence that a failed capture ends in. The sentence joins three witnesses: the latch, which has the
// first status; the ledger, which has the call after which the capture was no longer active; the driver, which answered
// the end. The rule is found by the name of the call, or, if no row of the table has that function, by the error code.
// Locking: none, since the scope is closed to all other threads by now.

#include <string.h>

#include "lib/capture/capture_internal.h"
#include "lib/capture/rules.h"
#include "lib/internal/text.h"

enum { kTextBytes = 1024 };  // a few sentences

static void add_rule(gcap_text_t* text, const gcap_capture_rule_t* rule) {
  if (rule != NULL) gcap_text_add(text, " (rule %s: %s; remedy: %s)", rule->id, rule->situation, rule->remedy);
}

// What the call answered, as far as the latch kept it; cudaSuccess otherwise.
static cudaError_t answer_of(const gcap_capture_call_record_t* call, gcap_status_t cause) {
  const char* cause_call = gcap_status_cuda_call(cause);
  size_t kept = sizeof(call->operation) - 1;
  return strncmp(call->operation, cause_call, kept) == 0 ? gcap_status_cuda_error(cause) : cudaSuccess;
}

// A break that no noted call explains.
static void add_unseen(gcap_text_t* text, const gcap_capture_t* capture) {
  if (capture->mode == GCAP_CAPTURE_GLOBAL) gcap_text_add(text, ", or a call of another thread: the mode is GLOBAL");
}

// What the ledger saw: the call after which the capture was broken. It is to blame if it is known to break captures, or
// if it says so itself; else something between it and the call before it did.
static void add_break(gcap_text_t* text, const gcap_capture_t* capture, gcap_status_t cause) {
  const gcap_capture_calls_t* calls = &capture->calls;
  const gcap_capture_call_record_t* culprit = &calls->culprit;
  cudaError_t answer = answer_of(culprit, cause);
  const gcap_capture_rule_t* rule = gcap_capture_rule_of_call(culprit->operation, answer);
  if (rule == NULL && answer != cudaErrorStreamCaptureInvalidated) rule = gcap_capture_rule_of_code(answer);
  if (rule != NULL) {
    gcap_text_add(text, "; %s at %s:%d broke it", culprit->operation, culprit->file, culprit->line);
    add_rule(text, rule);
    return;
  }
  gcap_text_add(text, "; it was no longer active after %s at %s:%d", culprit->operation, culprit->file, culprit->line);
  if (calls->innocent.operation[0] != '\0') {
    gcap_text_add(text, ", and still so after %s at %s:%d", calls->innocent.operation, calls->innocent.file,
                  calls->innocent.line);
  }
  gcap_text_add(text, ": that call broke it, or one before it that was not noted (see GCAP_CAPTURE_NOTE)");
  add_unseen(text, capture);
}

// What the first failure's code tells, when the ledger is off or saw the capture go on.
static void add_cause(gcap_text_t* text, const gcap_capture_t* capture, gcap_status_t first) {
  const gcap_capture_calls_t* calls = &capture->calls;
  cudaError_t code = gcap_status_cuda_error(first);
  if (code == cudaErrorStreamCaptureInvalidated) {
    gcap_text_add(
        text, "; a call that was not noted broke it%s",
        calls->capacity == 0 ? ": wrap calls in GCAP_CUDA, and turn the ledger on" : " (see GCAP_CAPTURE_NOTE)");
    if (calls->noted > 0) {
      const gcap_capture_call_record_t* last = &calls->ring[(calls->noted - 1) % calls->capacity];
      gcap_text_add(text, ", after %s at %s:%d", last->operation, last->file, last->line);
    }
    add_unseen(text, capture);
    return;
  }
  const gcap_capture_rule_t* rule = gcap_capture_rule_of_call(gcap_status_cuda_call(first), code);
  if (code == cudaSuccess) rule = NULL;  // not a CUDA call's failure
  add_rule(text, rule != NULL ? rule : gcap_capture_rule_of_code(code));
}

// What the driver only calls unjoined.
static void add_unjoined(gcap_text_t* text, const gcap_capture_members_t* members) {
  const char* separator = "; never joined: ";
  for (size_t i = 0; i < members->count; ++i) {
    if (!members->items[i].unjoined) continue;
    gcap_text_add(text, "%sstream %p", separator, (void*)members->items[i].stream);
    separator = ", ";
  }
}

gcap_status_t gcap_capture_verdict(gcap_capture_t* capture, gcap_status_t end_status) {
  gcap_status_t cause = capture->cause;
  capture->cause = NULL;
  bool broken = gcap_capture_calls_saw_break(&capture->calls);
  if (cause == NULL && end_status == NULL) {
    if (!broken) return NULL;
    cause = GCAP_STATUS(GCAP_CAPTURE_INVALIDATED, "the driver ended a capture well that was not the scope's any more");
  }
  char chars[kTextBytes];
  gcap_text_t text;
  gcap_text_init(&text, chars, sizeof(chars));
  if (gcap_status_cuda_error(end_status) == cudaErrorStreamCaptureUnjoined) add_unjoined(&text, &capture->members);
  if (broken) {
    add_break(&text, capture, cause);
  } else {
    add_cause(&text, capture, cause != NULL ? cause : end_status);
  }
  if (cause != NULL && capture->later_failures > 0) {
    cause = gcap_status_annotate(cause, gcap_status_code(cause), "first of %llu failures",
                                 (unsigned long long)(capture->later_failures + 1));
  }
  return gcap_status_annotate(gcap_status_join(cause, end_status), GCAP_CAPTURE_INVALIDATED,
                              "the capture of stream %p failed and was undone%s", (void*)capture->stream, chars);
}
