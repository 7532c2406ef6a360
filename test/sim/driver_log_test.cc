// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The driver's log of errors: what an H200 logs of refused calls, and nothing of what is not known.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

using Lines = std::vector<std::string>;

void Append(void* lines, cudaLogLevel level, char* message, size_t length) {
  EXPECT_EQ(level, cudaLogLevelError);
  static_cast<Lines*>(lines)->emplace_back(message, length);
}

class DriverLog : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaEventCreate(&event_));
    ASSERT_EQ(cudaSuccess, cudaLogsRegisterCallback(Append, &lines_, &handle_));
  }
  void TearDown() override {
    gcap_sim_clear_faults();
    if (handle_ != nullptr) {
      EXPECT_EQ(cudaSuccess, cudaLogsUnregisterCallback(handle_));
    }
    EXPECT_EQ(cudaSuccess, cudaEventDestroy(event_));
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream_));
    cudaGetLastError();
  }
  void Begin() { ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal)); }
  cudaError_t End() {
    cudaGraph_t graph = nullptr;
    return cudaStreamEndCapture(stream_, &graph);
  }
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
  cudaLogsCallbackHandle handle_ = nullptr;
  Lines lines_;
};

TEST_F(DriverLog, ARefusedCallIsLoggedWithItsReasonFirst) {
  Begin();
  ASSERT_EQ(cudaSuccess, cudaEventRecord(event_, stream_));
  EXPECT_EQ(cudaErrorCapturedEvent, cudaEventQuery(event_));
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, End());
  EXPECT_EQ(lines_, (Lines{"Recorded event not allowed on stream",
                           "Returning 907 (CUDA_ERROR_CAPTURED_EVENT) from cuEventQuery",
                           "Capture was invalidated by a prior API call",
                           "Returning 901 (CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) from cuStreamEndCapture"}));
}

TEST_F(DriverLog, ACallThatIsUnsafeInItsThreadsCaptureIsLogged) {
  Begin();
  void* memory = nullptr;
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaMalloc(&memory, 16));
  EXPECT_EQ(lines_, (Lines{"API call conflicts with a stream capture sequence initiated from the calling thread",
                           "Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) from cuMemAlloc_v2"}));
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, End());
}

TEST_F(DriverLog, AForkThatWasNotJoinedIsLogged) {
  cudaStream_t fork = nullptr;
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&fork, cudaStreamNonBlocking));
  void* memory = nullptr;
  ASSERT_EQ(cudaSuccess, cudaMalloc(&memory, 16));
  Begin();
  ASSERT_EQ(cudaSuccess, cudaEventRecord(event_, stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(fork, event_, 0));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory, 0, 16, fork));
  EXPECT_EQ(cudaErrorStreamCaptureUnjoined, End());
  EXPECT_EQ(lines_, (Lines{"Capture sequence contains a fork that was not joined to the primary stream",
                           "Returning 904 (CUDA_ERROR_STREAM_CAPTURE_UNJOINED) from cuStreamEndCapture"}));
  EXPECT_EQ(cudaSuccess, cudaFree(memory));
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(fork));
}

TEST_F(DriverLog, WhatIsNotKnownIsNotLogged) {
  Begin();
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream_));
  EXPECT_EQ(lines_, (Lines{"Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) from cuStreamSynchronize"}));
  lines_.clear();
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
  EXPECT_EQ(lines_, Lines{});
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, End());
  lines_.clear();
  gcap_sim_fail_nth("cudaMalloc", 1, cudaErrorStreamCaptureInvalidated);  // the error of the last refusal
  void* memory = nullptr;
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaMalloc(&memory, 16));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMalloc(nullptr, 16));
  EXPECT_EQ(lines_, Lines{});
}

TEST_F(DriverLog, EveryListenerIsToldUntilItUnregisters) {
  Lines others;
  cudaLogsCallbackHandle other = nullptr;
  ASSERT_EQ(cudaSuccess, cudaLogsRegisterCallback(Append, &others, &other));
  Begin();
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream_));
  EXPECT_EQ(lines_.size(), 1u);
  EXPECT_EQ(others, lines_);
  EXPECT_EQ(cudaSuccess, cudaLogsUnregisterCallback(handle_));
  EXPECT_EQ(cudaErrorInvalidValue, cudaLogsUnregisterCallback(handle_));
  handle_ = nullptr;
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, End());
  EXPECT_EQ(lines_.size(), 1u);
  EXPECT_EQ(others.size(), 3u);
  EXPECT_EQ(cudaSuccess, cudaLogsUnregisterCallback(other));
}

TEST_F(DriverLog, NoCallbackAndNoHandleAreRefused) {
  EXPECT_EQ(cudaErrorInvalidValue, cudaLogsRegisterCallback(nullptr, nullptr, nullptr));
  EXPECT_EQ(cudaErrorInvalidValue, cudaLogsUnregisterCallback(nullptr));
}

}  // namespace
