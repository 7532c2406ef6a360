// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which failure a message of the driver's log belongs to: the simulator logs what an H200 does.
#include <string>
#include <thread>

#include "gcap/status.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

constexpr char kLog[] = "; the driver's log: ";

// What a status tells of the log; "" for nothing. Ends the status.
std::string LogOf(gcap_status_t status) {
  const std::string message = gcap_status_message(status);
  gcap_status_free(status);
  const size_t at = message.find(kLog);
  return at == std::string::npos ? "" : message.substr(at + sizeof(kLog) - 1);
}

class DriverLogOnSim : public ::testing::Test {
 protected:
  void SetUp() override {
    GCAP_ASSERT_OK(GCAP_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)));
    GCAP_ASSERT_OK(GCAP_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)));
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  }
  void TearDown() override {
    gcap_sim_clear_faults();
    cudaGraph_t graph = nullptr;
    (void)cudaStreamEndCapture(stream_, &graph);
    (void)cudaGetLastError();
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(cudaEventDestroy(event_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }
  // A failure that the log tells of, and no status.
  void FailUnreported() { ASSERT_EQ(cudaEventQuery(event_), cudaErrorCapturedEvent); }
  static gcap_status_t StatusOfQuery() {
    return gcap_status_from_cuda(cudaErrorCapturedEvent, "cudaEventQuery(event)", "there.c", 7);
  }
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
};

TEST_F(DriverLogOnSim, ARefusedCallsMessageEndsInTheReason) {
  gcap_status_t status = GCAP_CUDA(cudaEventQuery(event_));
  EXPECT_EQ(StatusInfo(status).cuda_error, cudaErrorCapturedEvent);
  EXPECT_EQ(LogOf(status), "Recorded event not allowed on stream");
}

TEST_F(DriverLogOnSim, ACallOfAnotherNameInTheDriverHasItsReason) {
  void* memory = nullptr;
  EXPECT_EQ(LogOf(GCAP_CUDA(cudaMalloc(&memory, 16))),
            "API call conflicts with a stream capture sequence initiated from the calling thread");
}

TEST_F(DriverLogOnSim, ARefusedCallWithoutAReasonHasNone) {
  gcap_status_t status = GCAP_CUDA(cudaStreamSynchronize(stream_));
  EXPECT_EQ(StatusInfo(status).cuda_error, cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(LogOf(status), "");
}

TEST_F(DriverLogOnSim, ALaterFailureHasItsOwnReasonAlone) {
  FailUnreported();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(LogOf(GCAP_CUDA(cudaStreamEndCapture(stream_, &graph))), "Capture was invalidated by a prior API call");
}

TEST_F(DriverLogOnSim, AReasonIsTakenOnce) {
  EXPECT_NE(LogOf(GCAP_CUDA(cudaEventQuery(event_))), "");
  EXPECT_EQ(LogOf(StatusOfQuery()), "");
}

TEST_F(DriverLogOnSim, AReasonFromBeforeASuccessIsDropped) {
  FailUnreported();
  int device = 0;
  GCAP_EXPECT_OK(GCAP_CUDA(cudaGetDevice(&device)));
  EXPECT_EQ(LogOf(StatusOfQuery()), "");
}

TEST_F(DriverLogOnSim, AReasonFromBeforeAnotherFailureIsDropped) {
  FailUnreported();
  EXPECT_EQ(LogOf(gcap_status_from_cuda(cudaErrorInvalidValue, "cudaFree(memory)", "there.c", 7)), "");
  EXPECT_EQ(LogOf(StatusOfQuery()), "");
}

TEST_F(DriverLogOnSim, AnotherFunctionsReasonIsDropped) {
  FailUnreported();
  gcap_sim_fail_nth("cudaStreamSynchronize", 1, cudaErrorCapturedEvent);
  EXPECT_EQ(LogOf(GCAP_CUDA(cudaStreamSynchronize(nullptr))), "");
}

TEST_F(DriverLogOnSim, AFunctionWhoseNameBeginsAlikeGetsNoReason) {
  FailUnreported();
  EXPECT_EQ(LogOf(gcap_status_from_cuda(cudaErrorCapturedEvent, "cudaEventQueryAll()", "there.c", 7)), "");
}

TEST_F(DriverLogOnSim, AnotherErrorsReasonIsDropped) {
  FailUnreported();
  gcap_sim_fail_nth("cudaEventQuery", 1, cudaErrorUnknown);
  EXPECT_EQ(LogOf(GCAP_CUDA(cudaEventQuery(event_))), "");
}

TEST_F(DriverLogOnSim, AReasonStaysWithItsThread) {
  FailUnreported();
  std::thread([] { EXPECT_EQ(LogOf(StatusOfQuery()), ""); }).join();
  EXPECT_EQ(LogOf(StatusOfQuery()), "Recorded event not allowed on stream");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
