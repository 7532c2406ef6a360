// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sequences of capture calls: how captures begin and end, across threads, forks and failures. test/conformance asks for
// the answers of single calls within a capture.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>

#include "cuda_runtime.h"

namespace {

constexpr cudaStreamCaptureMode kModes[] = {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                                            cudaStreamCaptureModeRelaxed};

cudaStreamCaptureStatus Status(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_EQ(cudaSuccess, cudaStreamIsCapturing(stream, &status));
  return status;
}

size_t Nodes(cudaGraph_t graph) {
  size_t nodes = 0;
  EXPECT_EQ(cudaSuccess, cudaGraphGetNodes(graph, nullptr, &nodes));
  return nodes;
}

cudaError_t OnThread(const std::function<cudaError_t()>& call) {
  cudaError_t code = cudaSuccess;
  std::thread([&] { code = call(); }).join();
  return code;
}

cudaError_t End(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaError_t code = cudaStreamEndCapture(stream, &graph);
  EXPECT_EQ(code == cudaSuccess, graph != nullptr);
  if (graph) {
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  }
  return code;
}

class Capture : public testing::Test {
 protected:
  void SetUp() override {
    for (cudaStream_t* s : {&origin_, &fork_}) {
      ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    }
    for (cudaEvent_t* e : {&forked_, &joined_}) {
      ASSERT_EQ(cudaSuccess, cudaEventCreateWithFlags(e, cudaEventDisableTiming));
    }
    ASSERT_EQ(cudaSuccess, cudaMalloc(&memory_, kBytes));
  }

  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaFree(memory_));
    for (cudaEvent_t e : {forked_, joined_}) EXPECT_EQ(cudaSuccess, cudaEventDestroy(e));
    for (cudaStream_t s : {origin_, fork_}) {
      if (s) {
        EXPECT_EQ(cudaSuccess, cudaStreamDestroy(s));
      }
    }
    cudaGetLastError();
  }

  void Begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(origin_, mode));
    ASSERT_EQ(cudaSuccess, Work(origin_));
  }

  void Fork() {
    ASSERT_EQ(cudaSuccess, cudaEventRecord(forked_, origin_));
    ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(fork_, forked_));
  }

  void Join() {
    ASSERT_EQ(cudaSuccess, cudaEventRecord(joined_, fork_));
    ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(origin_, joined_));
  }

  cudaError_t Work(cudaStream_t stream) { return cudaMemsetAsync(memory_, 1, kBytes, stream); }

  void Invalidate() { ASSERT_EQ(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(origin_)); }

  static constexpr size_t kBytes = 256;
  cudaStream_t origin_ = nullptr, fork_ = nullptr;
  cudaEvent_t forked_ = nullptr, joined_ = nullptr;
  void* memory_ = nullptr;
};

TEST_F(Capture, ForkAndJoinIsADiamond) {
  Begin();
  Fork();
  ASSERT_EQ(cudaSuccess, Work(fork_));
  ASSERT_EQ(cudaSuccess, Work(origin_));
  Join();
  ASSERT_EQ(cudaSuccess, Work(origin_));
  cudaGraph_t graph;
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(origin_, &graph));
  EXPECT_EQ(4u, Nodes(graph));
  size_t edges = 0;
  ASSERT_EQ(cudaSuccess, cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(4u, edges);
  size_t roots = 0;
  ASSERT_EQ(cudaSuccess, cudaGraphGetRootNodes(graph, nullptr, &roots));
  EXPECT_EQ(1u, roots);
  EXPECT_EQ(cudaStreamCaptureStatusNone, Status(fork_));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

TEST_F(Capture, UnjoinedWorkFailsTheEnd) {
  Begin();
  Fork();
  ASSERT_EQ(cudaSuccess, Work(fork_));
  EXPECT_EQ(cudaErrorStreamCaptureUnjoined, End(origin_));
  EXPECT_EQ(cudaStreamCaptureStatusNone, Status(origin_));
  EXPECT_EQ(cudaStreamCaptureStatusNone, Status(fork_));
}

TEST_F(Capture, UnjoinedForkWithoutWorkIsFine) {
  Begin();
  Fork();
  EXPECT_EQ(cudaSuccess, End(origin_));
}

TEST_F(Capture, DestroyedForkMustHaveBeenJoined) {
  for (bool joined : {false, true}) {
    SCOPED_TRACE(joined);
    cudaStream_t fork;
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&fork, cudaStreamNonBlocking));
    std::swap(fork_, fork);
    Begin();
    Fork();
    ASSERT_EQ(cudaSuccess, Work(fork_));
    if (joined) Join();
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(fork_));
    std::swap(fork_, fork);
    EXPECT_EQ(joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined, End(origin_));
  }
}

TEST_F(Capture, DestroyingTheOriginEndsItSilently) {
  Begin();
  Fork();
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(origin_));
  origin_ = nullptr;
  EXPECT_EQ(cudaStreamCaptureStatusNone, Status(fork_));
  EXPECT_EQ(cudaErrorIllegalState, End(fork_));
  EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
}

TEST_F(Capture, EndOnAnotherThreadLosesTheGraphUnlessRelaxed) {
  for (cudaStreamCaptureMode mode : kModes) {
    SCOPED_TRACE(mode);
    bool relaxed = mode == cudaStreamCaptureModeRelaxed;
    Begin(mode);
    EXPECT_EQ(relaxed ? cudaSuccess : cudaErrorStreamCaptureWrongThread, OnThread([&] { return End(origin_); }));
    EXPECT_EQ(cudaStreamCaptureStatusNone, Status(origin_));
    EXPECT_EQ(cudaErrorIllegalState, End(origin_));
  }
}

TEST_F(Capture, OutlivesItsThread) {
  EXPECT_EQ(cudaSuccess, OnThread([&] { return cudaStreamBeginCapture(origin_, cudaStreamCaptureModeGlobal); }));
  EXPECT_EQ(cudaStreamCaptureStatusActive, Status(origin_));
  EXPECT_EQ(cudaSuccess, Work(origin_));
  void* p = nullptr;
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaMalloc(&p, 16));
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, End(origin_));
}

TEST_F(Capture, OtherThreadsMaySubmitWork) {
  Begin();
  EXPECT_EQ(cudaSuccess, OnThread([&] { return Work(origin_); }));
  cudaGraph_t graph;
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(origin_, &graph));
  EXPECT_EQ(2u, Nodes(graph));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

TEST_F(Capture, AfterInvalidationEverythingIsRefusedUntilTheEnd) {
  Begin();
  Fork();
  Invalidate();
  EXPECT_EQ(cudaStreamCaptureStatusInvalidated, Status(fork_));
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, Work(origin_));
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, Work(fork_));
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaEventRecord(joined_, origin_));
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamWaitEvent(origin_, forked_));
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaLaunchHostFunc(
                                                   origin_, [](void*) {}, nullptr));
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(origin_));
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaStreamQuery(origin_));
  EXPECT_EQ(cudaErrorIllegalState, cudaStreamBeginCapture(origin_, cudaStreamCaptureModeGlobal));
  void* p;
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaMalloc(&p, 16));
  unsigned long long id = 77;
  cudaStreamCaptureStatus status;
  EXPECT_EQ(cudaSuccess, cudaStreamGetCaptureInfo(origin_, &status, &id));
  EXPECT_EQ(cudaStreamCaptureStatusInvalidated, status);
  EXPECT_EQ(77u, id);
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, End(origin_));
  EXPECT_EQ(cudaErrorIllegalState, End(origin_));
  EXPECT_EQ(cudaSuccess, Work(origin_));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(origin_));
}

TEST_F(Capture, EventsOfAClosedCaptureAreDead) {
  for (bool failed : {false, true}) {
    SCOPED_TRACE(failed);
    Begin();
    ASSERT_EQ(cudaSuccess, cudaEventRecord(forked_, origin_));
    if (failed) Invalidate();
    EXPECT_EQ(failed ? cudaErrorStreamCaptureInvalidated : cudaSuccess, End(origin_));
    EXPECT_EQ(cudaErrorInvalidValue, cudaEventQuery(forked_));
    EXPECT_EQ(cudaErrorInvalidValue, cudaEventSynchronize(forked_));
    EXPECT_EQ(cudaErrorInvalidValue, cudaStreamWaitEvent(fork_, forked_));
    EXPECT_EQ(cudaStreamCaptureStatusNone, Status(fork_));
    Begin();
    EXPECT_EQ(cudaErrorInvalidValue, cudaStreamWaitEvent(origin_, forked_));
    EXPECT_EQ(cudaErrorStreamCaptureInvalidated, End(origin_));
    EXPECT_EQ(cudaSuccess, cudaEventRecord(forked_, fork_));
    EXPECT_EQ(cudaSuccess, cudaEventSynchronize(forked_));
  }
}

TEST_F(Capture, MergeInvalidatesBoth) {
  Begin();
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(fork_, cudaStreamCaptureModeGlobal));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(joined_, fork_));
  EXPECT_EQ(cudaErrorStreamCaptureMerge, cudaStreamWaitEvent(origin_, joined_));
  EXPECT_EQ(cudaStreamCaptureStatusInvalidated, Status(fork_));
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, End(origin_));
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, End(fork_));
}

TEST_F(Capture, IdsGrowByOneAndJoinedStreamsShareThem) {
  unsigned long long first = 0, forked = 0, second = 0;
  cudaStreamCaptureStatus status;
  Begin();
  Fork();
  EXPECT_EQ(cudaSuccess, cudaStreamGetCaptureInfo(origin_, &status, &first));
  EXPECT_EQ(cudaSuccess, cudaStreamGetCaptureInfo(fork_, &status, &forked));
  EXPECT_EQ(first, forked);
  EXPECT_EQ(cudaSuccess, End(origin_));
  Begin();
  EXPECT_EQ(cudaSuccess, cudaStreamGetCaptureInfo(origin_, &status, &second));
  EXPECT_EQ(first + 1, second);
  EXPECT_EQ(cudaSuccess, End(origin_));
}

TEST_F(Capture, InfoListsTheDependenciesOfTheNextNode) {
  Begin();
  cudaStreamCaptureStatus status;
  cudaGraph_t graph;
  const cudaGraphNode_t* deps;
  const cudaGraphEdgeData* edges;
  size_t count = 0;
  ASSERT_EQ(cudaSuccess, cudaStreamGetCaptureInfo(origin_, &status, nullptr, &graph, &deps, &edges, &count));
  ASSERT_EQ(1u, count);
  cudaGraphNode_t node;
  size_t room = 1;
  ASSERT_EQ(cudaSuccess, cudaGraphGetNodes(graph, &node, &room));
  EXPECT_EQ(node, deps[0]);
  EXPECT_EQ(0, edges[0].type);
  EXPECT_EQ(cudaSuccess, End(origin_));
}

TEST_F(Capture, SetDependenciesCutsTheChain) {
  Begin();
  ASSERT_EQ(cudaSuccess, cudaStreamUpdateCaptureDependencies(origin_, nullptr, nullptr, 0, 1));
  ASSERT_EQ(cudaSuccess, Work(origin_));
  cudaGraph_t graph;
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(origin_, &graph));
  size_t edges = 99;
  ASSERT_EQ(cudaSuccess, cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(0u, edges);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

TEST_F(Capture, PerThreadStreamCanCapture) {
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeThreadLocal));
  ASSERT_EQ(cudaSuccess, Work(cudaStreamPerThread));
  EXPECT_EQ(cudaSuccess, End(cudaStreamPerThread));
}

TEST_F(Capture, BeginRefusesUnknownModes) {
  for (int mode : {3}) {
    EXPECT_EQ(cudaErrorInvalidValue, cudaStreamBeginCapture(origin_, static_cast<cudaStreamCaptureMode>(mode)));
  }
  EXPECT_EQ(cudaStreamCaptureStatusNone, Status(origin_));
}

TEST_F(Capture, LeavesEagerWorkAlone) {
  unsigned char host = 0;
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(memory_, 5, kBytes, origin_));
  Begin();
  EXPECT_EQ(cudaSuccess, End(origin_));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(origin_));
  ASSERT_EQ(cudaSuccess, cudaMemcpy(&host, memory_, 1, cudaMemcpyDeviceToHost));
  EXPECT_EQ(5, host);
}

// Is cudaMalloc of a thread whose exchanged mode is `thread` refused while `capture` is open, and does it then break
// it? Rows: mode of the capture; columns: mode of the thread. Measured on a GPU.
constexpr bool kOtherRefused[3][3] = {{true, false, false}, {false, false, false}, {false, false, false}};
constexpr bool kOwnRefused[3][3] = {{true, true, false}, {true, true, false}, {false, false, false}};

cudaError_t MallocIn(cudaStreamCaptureMode mode) {
  EXPECT_EQ(cudaSuccess, cudaThreadExchangeStreamCaptureMode(&mode));
  void* p = nullptr;
  cudaError_t code = cudaMalloc(&p, 16);
  EXPECT_EQ(cudaSuccess, cudaThreadExchangeStreamCaptureMode(&mode));
  return code;
}

TEST_F(Capture, ModesDecideWhoIsRefused) {
  for (int capture = 0; capture < 3; ++capture) {
    for (int thread = 0; thread < 3; ++thread) {
      for (bool own : {false, true}) {
        SCOPED_TRACE(std::to_string(capture) + " " + std::to_string(thread) + (own ? " own" : " other"));
        bool refused = own ? kOwnRefused[capture][thread] : kOtherRefused[capture][thread];
        Begin(kModes[capture]);
        auto call = [&] { return MallocIn(kModes[thread]); };
        EXPECT_EQ(refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess, own ? call() : OnThread(call));
        EXPECT_EQ(refused ? cudaErrorStreamCaptureInvalidated : cudaSuccess, End(origin_));
      }
    }
  }
}

TEST_F(Capture, UnsafeCallBreaksOnlyTheCapturesThatForbidIt) {
  // Another thread captures in relaxed mode while this one captures globally: its malloc breaks this capture alone.
  Begin(cudaStreamCaptureModeGlobal);
  std::thread([&] {
    ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(fork_, cudaStreamCaptureModeRelaxed));
    void* p;
    EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaMalloc(&p, 16));
    EXPECT_EQ(cudaStreamCaptureStatusActive, Status(fork_));
    EXPECT_EQ(cudaSuccess, End(fork_));
  }).join();
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, End(origin_));
}

TEST_F(Capture, FailedBeginOrEndLeavesNothing) {
  EXPECT_EQ(cudaErrorIllegalState, End(origin_));
  EXPECT_EQ(cudaErrorIllegalState, cudaStreamEndCapture(nullptr, nullptr));
  EXPECT_EQ(cudaErrorIllegalState, cudaStreamEndCapture(cudaStreamPerThread, nullptr));
  Begin();
  EXPECT_EQ(cudaSuccess, End(origin_));
}

}  // namespace
