// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a status tells of the driver's log, on any device: the reasons of its own failure, or nothing.
#include <string>

#include "gcap/status.h"
#include "gtest/gtest.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

constexpr char kLog[] = "; the driver's log: ";

std::string EndMessage(gcap_status_t status) {
  const std::string message = gcap_status_message(status);
  gcap_status_free(status);
  return message;
}

class DriverLog : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_ASSERT_OK(GCAP_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)));
    GCAP_ASSERT_OK(GCAP_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)));
  }
  void TearDown() override {
    if (stream_ == nullptr) return;
    cudaGraph_t graph = nullptr;
    (void)cudaStreamEndCapture(stream_, &graph);
    (void)cudaGetLastError();
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(cudaEventDestroy(event_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
};

TEST_F(DriverLog, AStatusHasTheReasonsOfItsOwnFailureOrNone) {
  // A failure that no status is made of: what the log says of it belongs to nobody.
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 16), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  (void)cudaGetLastError();
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  const std::string message = EndMessage(GCAP_CUDA(cudaEventQuery(event_)));
  EXPECT_NE(message.find("cudaErrorCapturedEvent (907)"), std::string::npos) << message;
  const size_t at = message.find(kLog);
  if (at != std::string::npos) {
    EXPECT_EQ(message.substr(at + sizeof(kLog) - 1), "Recorded event not allowed on stream");
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
