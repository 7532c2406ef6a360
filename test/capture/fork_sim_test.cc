// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Forks when CUDA calls fail: what only the simulator can stage.

#include <vector>

#include "gcap/capture.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/base/heap_failure.h"
#include "test/capture/diamond.h"
#include "test/capture/scope_test.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"

namespace gcap {
namespace testing {
namespace {

class CaptureForkSim : public ScopeTest {
 protected:
  // The next capture, of the same streams, is right.
  static void ExpectAsBefore(const Diamond& diamond) {
    EXPECT_FALSE(gcap_thread_is_capturing());
    gcap_capture_t* capture = Begin(diamond.origin());
    diamond.Capture(capture);
    const Outcome outcome = End(capture);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    int device = -1;
    GCAP_EXPECT_CUDA(cudaGetDevice(&device));
    EXPECT_EQ(device, 0);
  }
};

TEST_F(CaptureForkSim, FaultsOfForkFailTheCaptureAndLeaveNothing) {
  const Diamond diamond({1, 0});
  const std::vector<cudaStream_t> streams = diamond.streams();
  Functions functions;
  for (const bool again : {false, true}) {  // streams that are idle, and that are in the capture already
    const Walked walked = WalkFaults([&](Fault& fault) {
      gcap_capture_t* capture = Begin(diamond.origin(), 0);
      GCAP_EXPECT_CUDA(diamond.Upload());
      if (again) GCAP_EXPECT_OK(gcap_capture_fork(capture, streams.data(), streams.size()));
      const Outcome outcome = fault.During([&] { return gcap_capture_fork(capture, streams.data(), streams.size()); });
      EXPECT_EQ(outcome.ok(), !fault.hit());
      EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
      const Outcome end = End(capture);
      EXPECT_EQ(end.ok(), !fault.hit());
      EXPECT_TRUE(end.ok() || fault.Explains(end)) << end.message;
      ExpectAsBefore(diamond);
    });
    functions.insert(walked.functions.begin(), walked.functions.end());
  }
  EXPECT_EQ(functions, (Functions{"cudaEventCreateWithFlags", "cudaEventDestroy", "cudaEventRecord", "cudaGetDevice",
                                  "cudaStreamGetCaptureInfo", "cudaStreamGetDevice", "cudaStreamWaitEvent"}));
}

TEST_F(CaptureForkSim, FaultsOfJoinFailTheCaptureAndLeaveNothing) {
  const Diamond diamond({1, 0});
  const std::vector<cudaStream_t> streams = diamond.streams();
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_capture_t* capture = Begin(diamond.origin(), 0);
    GCAP_EXPECT_CUDA(diamond.Upload());
    GCAP_EXPECT_OK(gcap_capture_fork(capture, streams.data(), streams.size()));
    for (size_t i = 0; i < streams.size(); ++i) GCAP_EXPECT_CUDA(diamond.Spread(i));
    const Outcome outcome = fault.During([&] { return gcap_capture_join(capture, streams.data(), streams.size()); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    const Outcome end = End(capture);
    EXPECT_EQ(end.ok(), !fault.hit());
    EXPECT_TRUE(end.ok() || fault.Explains(end)) << end.message;
    ExpectAsBefore(diamond);
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaEventCreateWithFlags", "cudaEventDestroy", "cudaEventRecord",
                                         "cudaGetDevice", "cudaSetDevice", "cudaStreamWaitEvent"}));
}

TEST_F(CaptureForkSim, FaultsOfTheLookForUnjoinedWorkFailTheCapture) {
  const Diamond diamond({0, 0});
  const std::vector<cudaStream_t> streams = diamond.streams();
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_capture_t* capture = Begin(diamond.origin());
    GCAP_EXPECT_CUDA(diamond.Upload());
    GCAP_EXPECT_OK(gcap_capture_fork(capture, streams.data(), streams.size()));
    for (size_t i = 0; i < streams.size(); ++i) GCAP_EXPECT_CUDA(diamond.Spread(i));
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_capture_end(capture, &graph, &retained); });
    EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
    EXPECT_TRUE(!fault.hit() || outcome.Names(fault.function())) << outcome.message;
    ExpectAsBefore(diamond);
  });
  // The question for the state is the one after a failed end; what ends a scope is not in its ledger.
  EXPECT_EQ(walked.functions, (Functions{"cudaGraphGetEdges", "cudaStreamEndCapture", "cudaStreamGetCaptureInfo",
                                         "cudaStreamIsCapturing"}));
}

TEST_F(CaptureForkSim, EndOfAJoinedForkAsksForTheOriginAlone) {
  const Diamond diamond({0, 0});
  gcap_capture_t* capture = Begin(diamond.origin());
  diamond.Capture(capture);
  const uint64_t edges = gcap_sim_calls("cudaGraphGetEdges"), infos = gcap_sim_calls("cudaStreamGetCaptureInfo");
  EXPECT_TRUE(End(capture).ok());
  EXPECT_EQ(gcap_sim_calls("cudaGraphGetEdges"), edges);
  EXPECT_EQ(gcap_sim_calls("cudaStreamGetCaptureInfo"), infos + 1) << "of the origin";
}

// A stream that is forked again is the same member, so the second join is seen.
TEST_F(CaptureForkSim, EndOfAForkThatWasJoinedTwiceAsksForTheOriginAlone) {
  const Diamond diamond({0, 0});
  gcap_capture_t* capture = Begin(diamond.origin());
  for (int i = 0; i < 2; ++i) diamond.Capture(capture);
  const uint64_t edges = gcap_sim_calls("cudaGraphGetEdges"), infos = gcap_sim_calls("cudaStreamGetCaptureInfo");
  EXPECT_TRUE(End(capture).ok());
  EXPECT_EQ(gcap_sim_calls("cudaGraphGetEdges"), edges);
  EXPECT_EQ(gcap_sim_calls("cudaStreamGetCaptureInfo"), infos + 1) << "of the origin";
}

// Streams that were joined behind the scope's back are looked at; what could not be found out fails a capture that the
// driver ends well.
TEST_F(CaptureForkSim, FaultsOfTheLookFailACaptureWhoseStreamsAreJoined) {
  const Diamond diamond({0});
  const std::vector<cudaStream_t> streams = diamond.streams();
  cudaEvent_t event = nullptr;
  GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const Walked walked = WalkFaults([&](Fault& fault) {
    gcap_capture_t* capture = Begin(diamond.origin());
    GCAP_EXPECT_CUDA(diamond.Upload());
    GCAP_EXPECT_OK(gcap_capture_fork(capture, streams.data(), streams.size()));
    GCAP_EXPECT_CUDA(diamond.Spread(0));
    GCAP_EXPECT_CUDA(cudaEventRecord(event, streams[0]));
    GCAP_EXPECT_CUDA(cudaStreamWaitEvent(diamond.origin(), event, 0));
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_capture_end(capture, &graph, &retained); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    if (graph != nullptr) {
      GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    }
    gcap_retained_release(retained);
    ExpectAsBefore(diamond);
  });
  EXPECT_EQ(walked.functions.count("cudaStreamGetCaptureInfo"), 1u);
  GCAP_EXPECT_CUDA(cudaEventDestroy(event));
}

TEST_F(CaptureForkSim, WithoutMemoryAForkIsRefusedAndTheCaptureFails) {
  const Diamond diamond({0});
  const std::vector<cudaStream_t> streams = diamond.streams();
  gcap_capture_t* capture = Begin(diamond.origin());
  {
    const HeapFailure no_memory;
    GCAP_EXPECT_FAILS(gcap_capture_fork(capture, streams.data(), 1), GCAP_RESOURCE_EXHAUSTED, "memory");
    EXPECT_EQ(no_memory.hits(), 1);
  }
  EXPECT_TRUE(End(capture).Names("memory"));
  ExpectAsBefore(diamond);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
