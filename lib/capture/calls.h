// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// calls.h: the ledger of a scope: its newest calls, and the one after which the capture was no longer active.
#ifndef GCAP_LIB_CAPTURE_CALLS_H_
#define GCAP_LIB_CAPTURE_CALLS_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "gcap/capture.h"
#include "lib/capture/label.h"

// A call's text beyond this is cut off, and ends in "...": enough for a function and its first arguments.
#define GCAP_CAPTURE_CALL_TEXT_BYTES 104
// The text of a call that has none.
#define GCAP_CAPTURE_UNNAMED "an unnamed call"

typedef struct gcap_capture_call_record {
  char operation[GCAP_CAPTURE_CALL_TEXT_BYTES];
  const char* file;
  cudaStream_t stream;
  int line;
  cudaError_t answer;  // cudaSuccess also if it is not known
  enum cudaStreamCaptureStatus before, after;
  char label[GCAP_LABELS_BYTES];
} gcap_capture_call_record_t;

typedef struct gcap_capture_calls {
  gcap_capture_call_record_t* ring;  // `capacity` records, not owned
  uint32_t capacity;                 // 0: no ledger
  uint32_t next;                     // the record to write
  uint64_t noted;
  enum cudaStreamCaptureStatus state;   // as the last question found it; once it is not Active nobody asks again
  bool asks;                            // false while the question itself is reported, and for good once it failed
  gcap_capture_call_record_t culprit;   // after which the state was not Active any more; "" if that was none
  gcap_capture_call_record_t innocent;  // the one before it; its operation is "" when there was none
} gcap_capture_calls_t;

// The capture has just begun.
void gcap_capture_calls_init(gcap_capture_calls_t* calls, gcap_capture_call_record_t* ring, uint32_t capacity);

// Notes a call and asks the state of the origin stream, which is the capture's. A question that fails sets the latch.
void gcap_capture_calls_add(gcap_capture_calls_t* calls, cudaStream_t origin, const char* operation, cudaError_t answer,
                            cudaStream_t stream, const char* file, int line);

// Asks the state once more, after a call that was not noted.
void gcap_capture_calls_look(gcap_capture_calls_t* calls, cudaStream_t origin);

// gcap_capture_read_calls.
size_t gcap_capture_calls_copy(const gcap_capture_calls_t* calls, gcap_capture_call_t* out_calls, size_t capacity,
                               size_t call_bytes);

// The call that was noted last; NULL if there is none.
const gcap_capture_call_record_t* gcap_capture_calls_newest(const gcap_capture_calls_t* calls);

static inline bool gcap_capture_calls_saw_break(const gcap_capture_calls_t* calls) {
  return calls->capacity != 0 && calls->state != cudaStreamCaptureStatusActive;
}

#endif  // GCAP_LIB_CAPTURE_CALLS_H_
