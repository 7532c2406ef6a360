// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Attempts: a part of the work that a capture may refuse. All that can make the scope fail is looked at before the part
// and behind it, so that the part is blamed for its own failures alone. The driver is asked itself, since the ledger
// may be off. The part may close the scope: then the scope says so to the attempt, and is not looked at any more.
// Locking: none, a scope belongs to its thread.

#include <stdio.h>

#include "lib/capture/capture_internal.h"
#include "lib/capture/escaped.h"
#include "lib/capture/unjoined.h"

// Not by GCAP_CUDA, which would note the question.
static gcap_status_t check_active(const gcap_capture_t* capture) {
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusActive;
  const cudaError_t error = cudaStreamIsCapturing(capture->stream, &state);
  if (error != cudaSuccess) {
    return gcap_status_from_cuda(error, "cudaStreamIsCapturing(stream, &state)", __FILE__, __LINE__);
  }
  if (state == cudaStreamCaptureStatusActive) return NULL;
  return GCAP_STATUS(GCAP_CAPTURE_INVALIDATED, "the capture is broken");
}

gcap_status_t gcap_capture_attempt_begin(gcap_capture_t* capture, const char* name, gcap_capture_attempt_t* attempt) {
  GCAP_RETURN_IF_ERROR(gcap_capture_check_intact(capture, name));
  GCAP_RETURN_IF_ERROR(check_active(capture));
  GCAP_RETURN_IF_ERROR(gcap_capture_escape_status(capture));
  GCAP_RETURN_IF_ERROR(gcap_capture_find_unjoined(&capture->members, capture->stream));
  for (size_t i = 0; i < capture->members.count; ++i) {
    capture->members.items[i].was_unjoined = capture->members.items[i].unjoined;
  }
  *attempt = (gcap_capture_attempt_t){.capture = capture, .steps = capture->work_steps};
  capture->work_steps = NULL;
  capture->attempt = attempt;
  return NULL;
}

// Of a capture that is broken the steps take no more.
static void note_step(const gcap_capture_t* capture, const char* name) {
  if (capture->work_steps == NULL) return;
  char operation[GCAP_CAPTURE_STEP_TEXT_BYTES];
  snprintf(operation, sizeof(operation), GCAP_CAPTURE_HOLE_STEP, name);
  gcap_capture_steps_add(capture->work_steps, capture->stream, operation, capture->stream, "", 0);
}

gcap_status_t gcap_capture_attempt_end(gcap_capture_attempt_t* attempt, const char* name) {
  if (attempt->is_over) return GCAP_STATUS(GCAP_CAPTURE_INVALIDATED, "the function closed the capture of the run");
  gcap_capture_t* capture = attempt->capture;
  capture->attempt = NULL;
  capture->work_steps = attempt->steps;
  note_step(capture, name);
  gcap_status_t latched = gcap_capture_check_intact(capture, name);
  gcap_status_t broken = check_active(capture);
  // What broke the capture was latched before the break was seen, if a call said so.
  if (gcap_status_code(broken) == GCAP_CAPTURE_INVALIDATED && latched != NULL) {
    gcap_status_free(broken);
    return gcap_status_annotate(latched, GCAP_CAPTURE_INVALIDATED, "the capture is broken");
  }
  gcap_status_t status = gcap_status_join(latched, broken);
  if (status == NULL) status = gcap_capture_escape_status(capture);
  if (status != NULL) return status;
  return gcap_capture_check_joined(capture, /*only_new=*/true, "the function left work of other streams unjoined", "");
}
