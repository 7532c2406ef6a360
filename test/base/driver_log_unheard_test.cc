// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A runtime that does not hand over the driver's log. The first call of the process decides, so there is one test.
#include <string>

#include "gcap/status.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

TEST(DriverLogUnheard, AFailureHasItsAnswerAlone) {
  gcap_sim_fail_nth("cudaLogsRegisterCallback", 1, cudaErrorNotSupported);
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  GCAP_ASSERT_OK(GCAP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  GCAP_ASSERT_OK(GCAP_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)));
  EXPECT_EQ(gcap_sim_calls("cudaLogsRegisterCallback"), 1u);
  GCAP_ASSERT_OK(GCAP_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)));
  GCAP_ASSERT_OK(GCAP_CUDA(cudaEventRecord(event, stream)));
  gcap_status_t status = GCAP_CUDA(cudaEventQuery(event));
  EXPECT_EQ(StatusInfo(status).cuda_error, cudaErrorCapturedEvent);
  EXPECT_EQ(std::string(gcap_status_message(status)).find("the driver's log"), std::string::npos)
      << gcap_status_message(status);
  gcap_status_free(status);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  (void)cudaGetLastError();
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
