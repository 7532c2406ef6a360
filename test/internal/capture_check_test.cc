// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The question whether a stream is capturing, and the refusal. What a thread's scope refuses is in //test/capture.

#include "lib/internal/capture_check.h"

#include <cstdio>
#include <string>

#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

class CaptureCheck : public DeviceTest {
 protected:
  static bool IsCapturing(const RawStream& stream) {
    bool capturing = false;
    GCAP_EXPECT_OK(gcap_is_stream_capturing(stream.get(), &capturing));
    return capturing;
  }

  static std::string Sentence(const RawStream& stream, const std::string& who, const std::string& which) {
    char address[32];
    std::snprintf(address, sizeof(address), "%p", static_cast<void*>(stream.get()));
    return who + ": stream " + address + " is capturing" + which + "; end the capture first";
  }

  // Ends the capture, well or not.
  static cudaError_t End(const RawStream& stream) {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(stream.get(), &graph);
    if (graph != nullptr) {
      GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    }
    (void)cudaGetLastError();
    return error;
  }
};

TEST_F(CaptureCheck, AStreamIsCapturingUntilItsCaptureEnds) {
  const RawStream stream;
  EXPECT_FALSE(IsCapturing(stream));
  GCAP_EXPECT_OK(gcap_check_stream_not_capturing(stream.get(), "nothing"));
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  EXPECT_TRUE(IsCapturing(stream));
  GCAP_EXPECT_FAILS(gcap_check_stream_not_capturing(stream.get(), "graph id %d", 7), GCAP_FAILED_PRECONDITION,
                    Sentence(stream, "graph id 7", ""));
  EXPECT_EQ(End(stream), cudaSuccess) << "the questions broke nothing";
  EXPECT_FALSE(IsCapturing(stream));
}

TEST_F(CaptureCheck, AnInvalidatedCaptureIsInTheWayToo) {
  const RawStream stream;
  const RawStream other;
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  EXPECT_NE(cudaStreamQuery(stream.get()), cudaSuccess) << "a question that a capture forbids";
  (void)cudaGetLastError();
  ASSERT_EQ(stream.CaptureStatus(), cudaStreamCaptureStatusInvalidated);
  EXPECT_TRUE(IsCapturing(stream));
  EXPECT_FALSE(IsCapturing(other));
  GCAP_EXPECT_FAILS(gcap_check_stream_not_capturing(stream.get(), "who"), GCAP_FAILED_PRECONDITION,
                    Sentence(stream, "who", " (its capture is invalidated but not ended)"));
  EXPECT_EQ(End(stream), cudaErrorStreamCaptureInvalidated);
}

TEST_F(CaptureCheck, ALongNameIsCut) {
  const RawStream stream;
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  const std::string name(1000, 'x');
  GCAP_EXPECT_FAILS(gcap_check_stream_not_capturing(stream.get(), "%s", name.c_str()), GCAP_FAILED_PRECONDITION,
                    "xxx: stream ");
  EXPECT_EQ(End(stream), cudaSuccess);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
