// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// capture_frame.h: one call during a capture. The frame captures a fill, has an actor make the call, captures another
// fill, ends, and looks at what is left: two nodes of the graph are its own.
#ifndef GCAP_TEST_CONFORMANCE_CAPTURE_FRAME_H_
#define GCAP_TEST_CONFORMANCE_CAPTURE_FRAME_H_

#include <functional>
#include <string>
#include <vector>

#include "test/conformance/frame.h"

namespace conformance {

// What a call may use.
struct CaptureFrame {
  explicit CaptureFrame(Observer& observer);
  ~CaptureFrame();
  CaptureFrame(const CaptureFrame&) = delete;
  CaptureFrame& operator=(const CaptureFrame&) = delete;

  Observer& o;
  const cudaStreamCaptureMode mode;
  cudaStream_t s = nullptr;   // captures
  cudaStream_t s2 = nullptr;  // non-blocking and idle, as sb is, which is a blocking one
  cudaStream_t sb = nullptr;
  cudaEvent_t captured = nullptr;  // recorded in the capture, behind the first fill
  cudaEvent_t before = nullptr;    // recorded ahead of the capture
  cudaEvent_t never = nullptr;     // not recorded
  char* memory = nullptr;          // of the two fills, kBytes as all of it
  char* device = nullptr;
  char* device2 = nullptr;
  char* pooled = nullptr;  // by cudaMallocAsync
  char* pinned = nullptr;
  char* pageable = nullptr;
  cudaMemPool_t pool = nullptr;  // not the device's own
  cudaGraph_t graph = nullptr;   // one empty node
  cudaGraphExec_t exec = nullptr;

  // Undone at the end, on the main thread.
  std::vector<std::function<void()>> cleanup;
  // Observed between the end and what is left after it.
  std::function<void()> after_end;

  // Makes s2 part of the capture, without work.
  void Fork();
};

using CaptureCall = std::function<cudaError_t(CaptureFrame&)>;

struct CaptureRow {
  const char* name;
  CaptureCall call;
  bool blocking = false;  // also beside a capture on a blocking stream
};

// Runs the call in the block's way.
void ObserveCaptureCall(Observer& o, const CaptureCall& call);

// Makes a case of each row, called `prefix` and its name. For objects of static life.
struct CaptureCases {
  CaptureCases(const std::string& prefix, const std::vector<CaptureRow>& rows);
};

}  // namespace conformance

#endif  // GCAP_TEST_CONFORMANCE_CAPTURE_FRAME_H_
