// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Work outside of the capture. The driver is asked once for each stream that a note names: what it finds in the capture
// stays there until the capture ends. The questions bypass GCAP_CUDA, which would note them.
//
// A call that GCAP_CUDA was given is known by its text alone. The text does not tell the stream; but the copies and
// fills without "Async" in their names have no stream argument: they work on the default stream. Locking: none, a scope
// belongs to its thread.

#include "lib/capture/escaped.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// The id of the capture that the stream is in; 0 when it is in none.
static cudaError_t ask_capture_id(cudaStream_t stream, unsigned long long* out_id) {
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  cudaError_t error = cudaStreamGetCaptureInfo(stream, &state, out_id, NULL, NULL, NULL, NULL);
  if (error != cudaSuccess || state != cudaStreamCaptureStatusActive) *out_id = 0;
  return error;
}

// Whether the stream is in the capture. Where the driver does not say, the failure sets the latch.
static bool is_inside(const gcap_capture_t* capture, cudaStream_t stream) {
  if (stream == cudaStreamLegacy) return false;  // it is in no capture, and the question may be an error
  unsigned long long id = 0, own_id = 0;
  cudaError_t error = ask_capture_id(stream, &id);
  if (error == cudaSuccess) error = ask_capture_id(capture->stream, &own_id);
  if (error == cudaSuccess) return id == own_id;
  gcap_status_ignore(gcap_status_from_cuda(error, "cudaStreamGetCaptureInfo(stream, &state, &id)", __FILE__, __LINE__));
  return true;
}

// Whether the call is of a function that has no stream argument and works on the default stream: cudaMemcpy(,
// cudaMemset2D(, cudaMemcpy2DToArray(. Each note asks, and most are of other functions, which their first letters tell.
static bool is_on_default_stream(const char* operation) {
  static const char async[] = "Async";
  const size_t mem = strlen("cudaMem"), kind = strlen("cpy"), suffix = strlen(async);
  if (operation == NULL || strncmp(operation, "cudaMem", mem) != 0) return false;
  if (strncmp(operation + mem, "cpy", kind) != 0 && strncmp(operation + mem, "set", kind) != 0) return false;
  const char* end = operation + mem + kind;
  while (isalnum((unsigned char)*end)) ++end;
  return *end == '(' && memcmp(end - suffix, async, suffix) != 0;
}

static void remember(gcap_capture_t* capture, cudaStream_t stream) {
  if (capture->escaped.operation[0] != '\0') return;
  const gcap_capture_calls_t* calls = &capture->calls;
  capture->escaped = calls->ring[(calls->noted - 1) % calls->capacity];
  capture->escaped.stream = stream;
}

void gcap_capture_look_for_escape(gcap_capture_t* capture, const char* operation, cudaStream_t stream) {
  if (stream == capture->stream) return;
  if (stream == NULL) {
    // Compiled with a default stream for each thread, that may be the stream that captures.
    if (capture->stream != cudaStreamPerThread && is_on_default_stream(operation)) remember(capture, cudaStreamLegacy);
    return;
  }
  gcap_capture_member_t* member = gcap_capture_members_find(&capture->members, stream);
  if (member == NULL) {
    if (!is_inside(capture, stream)) {
      remember(capture, stream);
      return;
    }
    member = gcap_capture_members_add(&capture->members, stream);
  }
  if (member != NULL) member->joined = false;  // without memory the stream is only missing from a message
}

gcap_status_t gcap_capture_escape_status(const gcap_capture_t* capture) {
  const gcap_capture_call_record_t* call = &capture->escaped;
  if (call->operation[0] == '\0') return NULL;
  char stream[32] = "the legacy default stream";
  if (call->stream != cudaStreamLegacy) snprintf(stream, sizeof(stream), "stream %p", (void*)call->stream);
  char chars[GCAP_LABELS_BYTES + 16];
  gcap_text_t label;
  gcap_text_init(&label, chars, sizeof(chars));
  gcap_labels_add(&label, call->label);
  return GCAP_STATUS(
      GCAP_CAPTURE_INVALIDATED,
      "%s%s at %s:%d gave work to %s, which is not in the capture: the work ran at once, and the graph "
      "would lack it (rule R64); remedy: give it to a stream of the capture (gcap_capture_fork takes streams in), or "
      "do it outside of the capture; see docs/rules/r64.md",
      call->operation, chars, call->file, call->line, stream);
}
