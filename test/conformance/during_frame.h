// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// during_frame.h: one call during a capture, with everything it may want at hand. The frame captures a fill, has an
// actor make the call, captures another fill and ends: two nodes of the graph are its own.
#ifndef GCAP_TEST_CONFORMANCE_DURING_FRAME_H_
#define GCAP_TEST_CONFORMANCE_DURING_FRAME_H_

#include <vector>

#include "test/conformance/rig.h"

namespace conformance {

struct DuringFrame {
  DuringFrame(Observer& observer, bool blocking);
  ~DuringFrame();
  DuringFrame(const DuringFrame&) = delete;
  DuringFrame& operator=(const DuringFrame&) = delete;

  Observer& o;
  Rig r;
  cudaStream_t s = nullptr;     // captures; r.s2 does not
  cudaGraph_t other = nullptr;  // a memset and a kernel
  cudaGraphNode_t fill = nullptr;
  cudaGraphNode_t kernel = nullptr;
  cudaGraphExec_t exec = nullptr;  // of it
  cudaMemPool_t pool = nullptr;    // not the device's own
  cudaEvent_t before = nullptr;    // both recorded ahead of the capture
  cudaEvent_t before2 = nullptr;
  cudaUserObject_t object = nullptr;

  // What the call gives; what it made is destroyed.
  struct {
    int number = 0;
    int number2 = 0;
    unsigned int word = 0;
    unsigned long long wide = 0;
    unsigned long long zero = 0;
    size_t size = 0;
    size_t size2 = 0;
    float ms = 0;
    char text[32] = {};
    void* device = nullptr;
    void* host = nullptr;
    void* registered = nullptr;
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t node = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaMemPool_t pool = nullptr;
    cudaUserObject_t object = nullptr;
    cudaDeviceProp properties;
    cudaPointerAttributes pointer;
    cudaFuncAttributes function;
    cudaStreamAttrValue attribute;
    cudaStreamCaptureStatus status;
    cudaGraphExecUpdateResultInfo update;
  } out;

  // The graph of the open capture.
  cudaGraph_t capturing() const;
};

inline void CUDART_CB NoCallback(cudaStream_t, cudaError_t, void*) {}

struct DuringRow {
  enum Kind {
    kAnywhere,
    kLegacy,   // uses the legacy stream: also beside a capture on a blocking stream
    kProcess,  // changes the process, and has one of its own
  };

  const char* name;
  cudaError_t (*call)(DuringFrame& f);
  Kind kind = kAnywhere;
};

// Makes a case of each row. For objects of static life.
struct DuringCases {
  explicit DuringCases(const std::vector<DuringRow>& rows);
};

}  // namespace conformance

#endif  // GCAP_TEST_CONFORMANCE_DURING_FRAME_H_
