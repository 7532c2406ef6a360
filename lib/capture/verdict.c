// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The verdict: the sentence that a failed capture ends in. The sentence joins three witnesses: the latch, which has the
// first status; the ledger, which has the call after which the capture was no longer active; the driver, which answered
// the end. A call that is known to have failed is named alone, and gcap's own calls never are. The rule is found by the
// name of the call, or, if no row of the table has that function, by the error code. Locking: none, since the scope is
// closed to all other threads by now.

#include <string.h>

#include "lib/capture/capture_internal.h"
#include "lib/internal/text.h"
#include "rules/rules.h"

enum {
  kTextBytes = 2048,  // a few sentences
  kRuleBytes = 512,   // one
};

// The rules have numbers of their own for CUDA's codes.
#define CAPTURE_CODE(name, number) _Static_assert((int)(name) == (number), #name " has another number");
#include "rules/capture_codes.inc"
#undef CAPTURE_CODE

static void add_rule(gcap_text_t* text, const gcap_rule_t* rule) {
  if (rule == NULL) return;
  char words[kRuleBytes];
  (void)gcap_rule_print(words, sizeof(words), rule);
  gcap_text_add(text, " (%s)", words);
}

// A break that no noted call explains.
static void add_unseen(gcap_text_t* text, const gcap_capture_t* capture) {
  if (capture->mode == GCAP_CAPTURE_GLOBAL) gcap_text_add(text, ", or a call of another thread: the mode is GLOBAL");
}

static void add_call(gcap_text_t* text, const char* relation, const gcap_capture_call_record_t* call) {
  if (call == NULL || call->operation[0] == '\0') return;
  gcap_text_add(text, "%s%s", relation, call->operation);
  gcap_labels_add(text, call->label);
  gcap_text_add(text, " at %s:%d", call->file, call->line);
}

static gcap_status_info_t info_of(gcap_status_t status) {
  gcap_status_info_t info;
  gcap_status_get_info(status, &info);
  return info;
}

static bool is_not_reported(gcap_status_t status) {
  return strcmp(info_of(status).cuda_call, GCAP_CAPTURE_UNREPORTED) == 0;
}

// A call that was not noted broke the capture, between the two that were. `cause` may be its failure.
static void add_break_between(gcap_text_t* text, const gcap_capture_t* capture, gcap_status_t cause) {
  const gcap_capture_calls_t* calls = &capture->calls;
  gcap_text_add(text, "; a call that was not noted (see GCAP_CAPTURE_NOTE) broke it");
  add_call(text, ", after ", &calls->innocent);
  add_call(text, calls->innocent.operation[0] != '\0' ? " and before " : ", before ", &calls->culprit);
  add_unseen(text, capture);
  if (is_not_reported(cause)) add_rule(text, gcap_rule_of_code((int)info_of(cause).cuda_error));
}

// What the ledger saw: the call after which the capture was broken. It is to blame if it is known to break captures, or
// if it says so itself, and then nothing else is said. If it only met the break, or a call is known to have failed
// unreported, another one is to blame.
static void add_break(gcap_text_t* text, const gcap_capture_t* capture, gcap_status_t cause) {
  const gcap_capture_call_record_t* culprit = &capture->calls.culprit;
  const cudaError_t answer = culprit->answer;
  const bool is_known = culprit->operation[0] != '\0' && answer != cudaErrorStreamCaptureInvalidated;
  if (!is_known || (answer == cudaSuccess && is_not_reported(cause))) {
    add_break_between(text, capture, cause);
    return;
  }
  const gcap_rule_t* rule = gcap_rule_of_call(culprit->operation, (int)answer);
  if (rule == NULL) rule = gcap_rule_of_code((int)answer);
  if (rule != NULL || answer != cudaSuccess) {
    add_call(text, "; ", culprit);
    gcap_text_add(text, " broke it");
    add_rule(text, rule);
    return;
  }
  const bool has_innocent = capture->calls.innocent.operation[0] != '\0';
  add_call(text, "; it was active after ", &capture->calls.innocent);
  add_call(text, has_innocent ? ", and no longer after " : "; it was no longer active after ", culprit);
  gcap_text_add(text, ": that call broke it, or one before it that was not noted (see GCAP_CAPTURE_NOTE)");
  add_unseen(text, capture);
}

// What the first failure's code tells, when the ledger is off or saw the capture go on.
static void add_cause(gcap_text_t* text, const gcap_capture_t* capture, gcap_status_t first) {
  const gcap_capture_calls_t* calls = &capture->calls;
  const cudaError_t code = info_of(first).cuda_error;
  if (code == cudaErrorStreamCaptureInvalidated) {
    gcap_text_add(
        text, "; a call that was not noted broke it%s",
        calls->capacity == 0 ? ": wrap calls in GCAP_CUDA, and turn the ledger on" : " (see GCAP_CAPTURE_NOTE)");
    add_call(text, ", after ", gcap_capture_calls_newest(calls));
    add_unseen(text, capture);
    return;
  }
  if (is_not_reported(first)) {
    gcap_text_add(text, "; the call is not known: wrap calls in GCAP_CUDA");
    add_call(text, "; the last one that was noted is ", gcap_capture_calls_newest(calls));
  }
  const gcap_rule_t* rule = gcap_rule_of_call(info_of(first).cuda_call, (int)code);
  if (code == cudaSuccess) rule = NULL;  // not a CUDA call's failure
  add_rule(text, rule != NULL ? rule : gcap_rule_of_code((int)code));
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
  if (info_of(end_status).cuda_error == cudaErrorStreamCaptureUnjoined) add_unjoined(&text, &capture->members);
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
