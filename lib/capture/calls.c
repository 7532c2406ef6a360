// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The ledger: a ring of fixed records, made with the scope, so that a note is one query of the driver and one copy of a
// text, without the heap.
//
// The query bypasses GCAP_CUDA, which would note the query itself. It is repeated until the capture is found broken.
// The call noted then and the one before are copied aside, since the ring continues to be overwritten. Locking: none, a
// scope belongs to its thread.

#include "lib/capture/calls.h"

#include <string.h>

#include "lib/internal/text.h"

void gcap_capture_calls_init(gcap_capture_calls_t* calls, gcap_capture_call_record_t* ring, uint32_t capacity) {
  *calls =
      (gcap_capture_calls_t){.ring = ring, .capacity = capacity, .state = cudaStreamCaptureStatusActive, .asks = true};
}

static void ask(gcap_capture_calls_t* calls, cudaStream_t origin) {
  enum cudaStreamCaptureStatus state = calls->state;
  cudaError_t error = cudaStreamIsCapturing(origin, &state);
  if (error == cudaSuccess) {
    calls->state = state;
    return;
  }
  calls->asks = false;
  // Making the status sets the latch: of a capture whose state is not known nothing is promised.
  gcap_status_ignore(gcap_status_from_cuda(error, "cudaStreamIsCapturing(origin, &state)", __FILE__, __LINE__));
}

// A text that fits, as most do, needs no printf, which would take a third of a note's instructions.
static void copy_text(char* to, const char* from) {
  const size_t length = strnlen(from, GCAP_CAPTURE_CALL_TEXT_BYTES);
  if (length < GCAP_CAPTURE_CALL_TEXT_BYTES) {
    memcpy(to, from, length + 1);
    return;
  }
  gcap_text_t text;
  gcap_text_init(&text, to, GCAP_CAPTURE_CALL_TEXT_BYTES);
  gcap_text_add(&text, "%s", from);
}

const gcap_capture_call_record_t* gcap_capture_calls_newest(const gcap_capture_calls_t* calls) {
  return calls->noted == 0 ? NULL : &calls->ring[(calls->noted - 1) % calls->capacity];
}

// Asks while the answer may change. True if this question finds the capture broken; the newest call is then innocent.
static bool finds_break(gcap_capture_calls_t* calls, cudaStream_t origin) {
  if (calls->state != cudaStreamCaptureStatusActive || !calls->asks) return false;
  ask(calls, origin);
  if (calls->state == cudaStreamCaptureStatusActive) return false;
  const gcap_capture_call_record_t* newest = gcap_capture_calls_newest(calls);
  if (newest != NULL) calls->innocent = *newest;
  return true;
}

void gcap_capture_calls_look(gcap_capture_calls_t* calls, cudaStream_t origin) {
  if (calls->capacity != 0) (void)finds_break(calls, origin);
}

void gcap_capture_calls_add(gcap_capture_calls_t* calls, cudaStream_t origin, const char* operation, cudaError_t answer,
                            cudaStream_t stream, const char* file, int line) {
  enum cudaStreamCaptureStatus before = calls->state;
  const bool broke = finds_break(calls, origin);
  gcap_capture_call_record_t* record = &calls->ring[calls->next++];
  if (calls->next == calls->capacity) calls->next = 0;
  ++calls->noted;
  copy_text(record->operation, operation != NULL ? operation : GCAP_CAPTURE_UNNAMED);
  record->file = file;
  record->stream = stream;
  record->line = line;
  record->answer = answer;
  record->before = before;
  record->after = calls->state;
  strcpy(record->label, gcap_labels_open());
  if (broke) calls->culprit = *record;
}

static gcap_capture_call_t to_public(const gcap_capture_call_record_t* record) {
  return (gcap_capture_call_t){.operation = record->operation,
                               .file = record->file,
                               .line = record->line,
                               .stream = record->stream,
                               .before = record->before,
                               .after = record->after,
                               .label = record->label};
}

// Writes a call into the caller's element, which is of another version if it is not as large as the library's.
static void write_call(const gcap_capture_call_record_t* record, char* out_call, size_t call_bytes) {
  const gcap_capture_call_t call = to_public(record);
  const size_t known_bytes = call_bytes < sizeof(call) ? call_bytes : sizeof(call);
  memcpy(out_call, &call, known_bytes);
  memset(out_call + known_bytes, 0, call_bytes - known_bytes);
}

size_t gcap_capture_calls_copy(const gcap_capture_calls_t* calls, gcap_capture_call_t* out_calls, size_t capacity,
                               size_t call_bytes) {
  uint64_t kept = calls->noted < calls->capacity ? calls->noted : calls->capacity;
  if (out_calls == NULL) kept = 0;
  if (kept > capacity) kept = capacity;
  for (uint64_t i = 0; i < kept; ++i) {
    const gcap_capture_call_record_t* record = &calls->ring[(calls->noted - kept + i) % calls->capacity];
    write_call(record, (char*)out_calls + i * call_bytes, call_bytes);
  }
  return (size_t)calls->noted;
}
