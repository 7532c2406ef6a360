// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Work that the capturing thread gives to a stream outside of the capture. It runs at once, the graph lacks it, and the
// driver ends the capture well: such captures ended in a graph. The ledger tells what it saw of them.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <string>
#include <vector>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/capture/scope_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

class CaptureEscaped : public ScopeTest {
 protected:
  static std::string Named(cudaStream_t stream) {
    char text[64];
    std::snprintf(text, sizeof(text), "to stream %p,", static_cast<void*>(stream));
    return text;
  }
};

TEST_F(CaptureEscaped, NotedWorkOfAStreamOutsideFailsTheCaptureAndIsNamed) {
  const RawStream origin, outside;
  const CopyJob job;
  CopyJob beside;
  beside.set_input(5);
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_CUDA(job.Issue(origin.get()));
  GCAP_CAPTURE_NOTE("inside<<<1, 32>>>", origin.get());
  GCAP_EXPECT_CUDA(beside.Issue(outside.get()));
  const int line = __LINE__ + 1;
  GCAP_CAPTURE_NOTE("outside<<<1, 32>>>", outside.get());
  GCAP_CAPTURE_NOTE("later<<<1, 32>>>", outside.get());
  const Outcome outcome = End(capture);
  EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
  EXPECT_TRUE(outcome.Names("outside<<<1, 32>>> at " __FILE__ ":" + std::to_string(line))) << outcome.message;
  EXPECT_TRUE(outcome.Names(Named(outside.get()))) << outcome.message;
  EXPECT_TRUE(outcome.Names("gcap_capture_fork")) << outcome.message;
  EXPECT_FALSE(outcome.Names("later")) << "the first one is enough: " << outcome.message;
  outside.Synchronize();
  EXPECT_EQ(beside.output(), 5) << "it ran, and is in no graph";
}

TEST_F(CaptureEscaped, TheStreamOfAnotherCaptureIsOutside) {
  const RawStream origin, other;
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(other.get(), cudaStreamCaptureModeRelaxed));
  GCAP_CAPTURE_NOTE("elsewhere", other.get());
  EXPECT_TRUE(End(capture).Names(Named(other.get())));
  cudaGraph_t graph = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(other.get(), &graph));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(CaptureEscaped, TheLegacyStreamIsOutside) {
  const RawStream origin;
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_CAPTURE_NOTE("on stream 0", cudaStreamLegacy);
  EXPECT_TRUE(End(capture).Names("gave work to the legacy default stream, which")) << "it was (nil) as well";
}

// All that the runtime has, also those copies between arrays that it keeps for old programs only.
TEST_F(CaptureEscaped, CopiesAndFillsWithoutAStreamWorkOnTheLegacyStream) {
  const RawStream origin;
  for (const char* function :
       {"cudaMemcpy", "cudaMemcpy2D", "cudaMemcpy3D", "cudaMemcpyPeer", "cudaMemcpy3DPeer", "cudaMemcpyToSymbol",
        "cudaMemcpyFromSymbol", "cudaMemcpy2DToArray", "cudaMemcpy2DFromArray", "cudaMemcpy2DArrayToArray",
        "cudaMemcpyToArray", "cudaMemcpyFromArray", "cudaMemcpyArrayToArray", "cudaMemset", "cudaMemset2D",
        "cudaMemset3D"}) {
    const std::string call = std::string(function) + "(a)";
    gcap_capture_t* capture = Begin(origin.get());
    GCAP_CAPTURE_NOTE(call.c_str(), nullptr);
    const Outcome outcome = End(capture);
    EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED") << call;
    EXPECT_TRUE(outcome.Names(call + " at ")) << outcome.message;
  }
}

TEST_F(CaptureEscaped, OtherTextsAreNoCopyWithoutAStream) {
  const RawStream origin;
  for (const char* call :
       {"", "cudaMem", "cudaMemcpy", "cudaMemset of (all)", "cudaMemcpyAsync(a)", "cudaMemcpy2DAsync(a)",
        "cudaMemcpy3DPeerAsync(a)", "cudaMemcpyToSymbolAsync(a)", "cudaMemset2DAsync(a)", "cudaMemcpyBatchAsync(a)",
        "cudaMemGetInfo(a)", "my_cudaMemcpy(a)", "cudaLaunchKernel(cudaMemcpy(a))"}) {
    gcap_capture_t* capture = Begin(origin.get());
    GCAP_CAPTURE_NOTE(call, nullptr);
    const Outcome outcome = End(capture);
    EXPECT_TRUE(outcome.ok()) << call << ": " << outcome.message;
  }
}

TEST_F(CaptureEscaped, StreamsOfTheCaptureAreInside) {
  const RawStream origin, fork;
  const cudaStream_t streams[] = {fork.get()};
  const CopyJob job;
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_OK(gcap_capture_fork(capture, streams, 1));
  GCAP_EXPECT_CUDA(job.Issue(fork.get()));
  GCAP_CAPTURE_NOTE("inside", fork.get());
  GCAP_CAPTURE_NOTE("says nothing", nullptr);
  GCAP_EXPECT_OK(gcap_capture_join(capture, streams, 1));
  const Outcome outcome = End(capture);
  EXPECT_TRUE(outcome.ok()) << outcome.message;
}

// A copy without a stream argument: cudaMemcpy and its kin work on the default stream.
TEST_F(CaptureEscaped, ACopyOnTheDefaultStreamFailsTheCaptureAndIsNamed) {
  const RawStream origin;
  void *device = nullptr, *pinned = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(&device, 64));
  GCAP_EXPECT_CUDA(cudaMallocHost(&pinned, 64));
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_OK(GCAP_CUDA(cudaMemcpy(device, pinned, 64, cudaMemcpyHostToDevice)));
  Outcome outcome = End(capture);
  EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
  EXPECT_TRUE(outcome.Names("cudaMemcpy(device, pinned, 64, cudaMemcpyHostToDevice) at " __FILE__)) << outcome.message;
  EXPECT_TRUE(outcome.Names("default stream")) << outcome.message;
  capture = Begin(origin.get());
  GCAP_EXPECT_OK(GCAP_CUDA(cudaMemset(device, 0, 64)));
  EXPECT_TRUE(End(capture).Names("cudaMemset(device, 0, 64)"));
  capture = Begin(origin.get());
  GCAP_EXPECT_OK(GCAP_CUDA(cudaMemcpyAsync(device, pinned, 64, cudaMemcpyHostToDevice, origin.get())));
  outcome = End(capture);
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  GCAP_EXPECT_CUDA(cudaFreeHost(pinned));
  GCAP_EXPECT_CUDA(cudaFree(device));
}

TEST_F(CaptureEscaped, AnEarlierFailureIsTheCause) {
  const RawStream origin, outside;
  gcap_capture_t* capture = Begin(origin.get());
  gcap_status_ignore(GCAP_STATUS(GCAP_LIBRARY_ERROR, "the root cause"));
  GCAP_CAPTURE_NOTE("outside", outside.get());
  const Outcome outcome = End(capture);
  EXPECT_TRUE(outcome.Names("the root cause")) << outcome.message;
  EXPECT_FALSE(outcome.Names("first of 2 failures")) << outcome.message;
}

TEST_F(CaptureEscaped, WithoutALedgerNothingIsSeen) {
  const RawStream origin, outside;
  gcap_capture_t* capture = Begin(origin.get(), /*ledger_calls=*/0);
  GCAP_CAPTURE_NOTE("outside", outside.get());
  EXPECT_TRUE(End(capture).ok());
}

}  // namespace
}  // namespace testing
}  // namespace gcap
