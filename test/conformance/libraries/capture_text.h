// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// capture_text.h: a call in a capture, and what came of it as a text: the statuses of the calls, then A, I or N for the
// capturing stream after them (active, invalidated, none), ">" and the code of the end, and "n" with the nodes where
// there is a graph: 0A>0n1.
#ifndef GCAP_TEST_CONFORMANCE_LIBRARIES_CAPTURE_TEXT_H_
#define GCAP_TEST_CONFORMANCE_LIBRARIES_CAPTURE_TEXT_H_

#include <functional>
#include <sstream>
#include <string>
#include <thread>

#include "cuda_runtime_api.h"
#include "gtest/gtest.h"

namespace conformance {

// The statuses of calls, with commas between.
template <typename... Statuses>
std::string Text(Statuses... statuses) {
  std::ostringstream text;
  const int all[] = {static_cast<int>(statuses)...};
  for (size_t i = 0; i < sizeof...(statuses); ++i) text << (i == 0 ? "" : ",") << all[i];
  return text.str();
}

// What a test wants to know of the graph, beside the number of its nodes. The graph is destroyed afterwards.
using DescribeGraph = std::function<std::string(cudaGraph_t)>;

// Captures `stream` in a mode (a cudaStreamCaptureMode) while this thread, or `other`, makes the call.
inline std::string ObserveCapture(cudaStream_t stream, int mode, bool other, const std::function<std::string()>& call,
                                  const DescribeGraph& describe = nullptr) {
  std::string statuses;
  cudaError_t last_error = cudaSuccess;
  const auto observed = [&] {
    statuses = call();
    last_error = cudaGetLastError();
  };
  EXPECT_EQ(cudaSuccess, cudaStreamBeginCapture(stream, static_cast<cudaStreamCaptureMode>(mode)));
  if (other) {
    std::thread(observed).join();
  } else {
    observed();
  }
  EXPECT_EQ(cudaSuccess, last_error) << "the libraries keep their errors to themselves";
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_EQ(cudaSuccess, cudaStreamIsCapturing(stream, &status));
  cudaGraph_t graph = nullptr;
  const cudaError_t end = cudaStreamEndCapture(stream, &graph);
  EXPECT_EQ(end, cudaGetLastError());
  std::ostringstream text;
  text << statuses << "NAI"[status] << ">" << end;
  if (graph != nullptr) {
    size_t nodes = 0;
    EXPECT_EQ(cudaSuccess, cudaGraphGetNodes(graph, nullptr, &nodes));
    text << "n" << nodes << (describe ? describe(graph) : "");
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  }
  return text.str();
}

}  // namespace conformance

#endif  // GCAP_TEST_CONFORMANCE_LIBRARIES_CAPTURE_TEXT_H_
