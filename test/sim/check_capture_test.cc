// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Broken captures: a report names the call that broke it and the one that began it.
#include <string>
#include <thread>
#include <vector>

#include "test/sim/check_test.h"

namespace {

using gcap_test::Reports;

#define OK(call) EXPECT_EQ(cudaSuccess, call)

class CheckCapture : public gcap_test::Check {
 protected:
  // Not inlined, so that they are in the stacks.
  __attribute__((noinline)) void BeginHere() { OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeGlobal)); }
  __attribute__((noinline)) void AllocateThere() {
    void* memory = nullptr;
    EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaMalloc(&memory, 16));
  }
  __attribute__((noinline)) void ForkThere(cudaStream_t stream) { OK(Order(a_, stream, e1_)); }
  void EndInvalid(cudaError_t code) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(code, cudaStreamEndCapture(a_, &graph));
    EXPECT_EQ(nullptr, graph);
    EXPECT_EQ(code, cudaGetLastError());
  }
};

TEST_F(CheckCapture, AnUnsafeCallIsToldWithTheBeginOfTheCapture) {
  ExpectOne({"broken capture", "R26", "broken by cudaMalloc", "AllocateThere", "begun by cudaStreamBeginCapture",
             "BeginHere", "Remedy: "},
            [&] {
              BeginHere();
              AllocateThere();
              AllocateThere();  // breaks nothing any more
              EndInvalid(cudaErrorStreamCaptureInvalidated);
            });
}

// Neither the stream nor the fork was named.
TEST_F(CheckCapture, AForkThatIsNotJoinedIsToldAtTheEnd) {
  ExpectOne({"broken capture", "R6", "broken by cudaStreamEndCapture", "begun by cudaStreamBeginCapture",
             "fork to stream ", " by cudaStreamWaitEvent", "ForkThere", "last work of stream ", " by cudaMemsetAsync"},
            [&] {
              BeginHere();
              ForkThere(b_);
              OK(Fill(x_, b_));
              EndInvalid(cudaErrorStreamCaptureUnjoined);
            });
}

// The one that was joined is not named; a fork whose stream is gone is.
TEST_F(CheckCapture, OfTwoForksTheOneThatIsNotJoinedIsNamed) {
  testing::internal::CaptureStderr();
  cudaStream_t gone;
  OK(cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking));
  BeginHere();
  ForkThere(b_);
  OK(Fill(x_, b_));
  ForkThere(gone);
  OK(cudaMemcpyAsync(y_, z_, kBytes, cudaMemcpyDeviceToDevice, gone));
  OK(Order(b_, a_, e2_));
  OK(cudaStreamDestroy(gone));
  EndInvalid(cudaErrorStreamCaptureUnjoined);
  const std::vector<std::string> reports = Reports();
  testing::internal::GetCapturedStderr();
  ASSERT_EQ(1u, reports.size());
  EXPECT_EQ(reports[0].find("fork to"), reports[0].rfind("fork to")) << reports[0];
  EXPECT_NE(std::string::npos, reports[0].find("by cudaMemcpyAsync")) << reports[0];
  EXPECT_EQ(std::string::npos, reports[0].find("cudaMemsetAsync")) << reports[0];
}

TEST_F(CheckCapture, EachCaptureThatACallBreaksIsTold) {
  OK(cudaStreamBeginCapture(b_, cudaStreamCaptureModeGlobal));
  BeginHere();
  testing::internal::CaptureStderr();
  AllocateThere();
  EXPECT_EQ(2u, Reports().size());
  testing::internal::GetCapturedStderr();
  EndInvalid(cudaErrorStreamCaptureInvalidated);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(b_, &graph));
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaGetLastError());
}

TEST_F(CheckCapture, ACaptureThatSucceedsSaysNothing) {
  ExpectNone([&] {
    cudaGraph_t graph = nullptr;
    BeginHere();
    OK(Fill(x_, a_));
    OK(cudaStreamEndCapture(a_, &graph));
    OK(cudaGraphDestroy(graph));
  });
}

// --- Work that the graph lacks --------------------------------------------------------------------------------------

// The capture ended well, the graph lacked the work, and nothing was said but what followed from it.
class CheckEscape : public CheckCapture {
 protected:
  template <typename Work>
  void ExpectEscape(const std::vector<std::string>& texts, Work work) {
    std::vector<std::string> all = {"escaped work: ", "begun by cudaStreamBeginCapture", "BeginHere", "Remedy: "};
    all.insert(all.end(), texts.begin(), texts.end());
    ExpectOne(all, [&] { Capture(work); });
  }
  template <typename Work>
  void Capture(Work work) {
    cudaGraph_t graph = nullptr;
    BeginHere();
    OK(Fill(x_, a_));
    work();
    OK(cudaStreamEndCapture(a_, &graph));
    OK(cudaGraphDestroy(graph));
  }
};

TEST_F(CheckEscape, WorkOnTheLegacyStreamIsTold) {
  ExpectEscape({"memset on stream 0 (legacy stream)", "issued by cudaMemsetAsync"}, [&] { OK(Fill(y_, nullptr)); });
  ExpectEscape({"memcpy on stream 0 (legacy stream)", "issued by cudaMemcpy,"},
               [&] { OK(cudaMemcpy(y_, pinned_, kBytes, cudaMemcpyHostToDevice)); });
  ExpectEscape({"memset on stream 0 (legacy stream)", "issued by cudaMemset,"}, [&] { OK(cudaMemset(y_, 0, kBytes)); });
}

TEST_F(CheckEscape, WorkOnAnotherStreamIsTold) {
  ExpectEscape({"step on stream ", "issued by cudaLaunchKernel"}, [&] { OK(gcap_test::Step(y_, z_, kBytes, b_)); });
  ExpectEscape({"host function on stream ", "issued by cudaLaunchHostFunc"}, [&] {
    OK(cudaLaunchHostFunc(
        b_, [](void*) {}, nullptr));
  });
  ExpectEscape({"memset on the per-thread stream of thread "}, [&] { OK(Fill(y_, cudaStreamPerThread)); });
  // Joined too late: what came before is not in the graph.
  ExpectEscape({"memset on stream "}, [&] {
    OK(Fill(y_, b_));
    OK(Order(a_, b_, e1_));
    OK(Fill(z_, b_));
    OK(Order(b_, a_, e2_));
  });
}

TEST_F(CheckEscape, ALaunchOfAnotherGraphIsTold) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  ExpectEscape({"graph launch on stream ", "issued by cudaGraphLaunch"}, [&] { OK(cudaGraphLaunch(exec, b_)); });
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

TEST_F(CheckEscape, WhatIsInTheGraphOrNotMeantForItSaysNothing) {
  ExpectNone([&] {
    Capture([&] {  // a fork and its join
      OK(Order(a_, b_, e1_));
      OK(Fill(y_, b_));
      OK(Order(b_, a_, e2_));
    });
    Capture([&] { OK(cudaEventRecord(e1_, b_)); });  // which is no node in a capture either
    Capture([&] {                                    // another thread's work
      std::thread([&] { OK(Fill(y_, b_)); }).join();
    });
    Capture([&] {  // the thread says that it is no work of the graph
      cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
      OK(cudaThreadExchangeStreamCaptureMode(&mode));
      OK(Fill(z_, b_));
      OK(cudaThreadExchangeStreamCaptureMode(&mode));
    });
    OK(Fill(y_, b_));  // after the end
    OK(cudaDeviceSynchronize());
  });
}

TEST_F(CheckEscape, WarnsByDefault) {
  gcap_sim_set_action(GCAP_SIM_CHECK_ESCAPED_WORK, GCAP_SIM_ACTION_DEFAULT);
  testing::internal::CaptureStderr();
  Capture([&] { OK(Fill(y_, nullptr)); });
  EXPECT_EQ(0u, Reports().size());
  EXPECT_NE(std::string::npos, testing::internal::GetCapturedStderr().find("escaped work: "));
  gcap_sim_set_action(GCAP_SIM_CHECK_ESCAPED_WORK, GCAP_SIM_ACTION_RECORD);
}

// A program that captures where it can and runs eagerly where it cannot is right: it is told, once, and goes on. It was
// told nothing, and then stopped by what followed from the work that had not run.
TEST_F(CheckCapture, WarnsByDefaultWithoutAReportThatCounts) {
  gcap_sim_set_action(GCAP_SIM_CHECK_CAPTURE, GCAP_SIM_ACTION_DEFAULT);
  auto breaks = [&] {
    BeginHere();
    AllocateThere();
    EndInvalid(cudaErrorStreamCaptureInvalidated);
  };
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    breaks();
    EXPECT_EQ(0u, Reports().size());
  }
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_NE(std::string::npos, printed.find("broken capture")) << printed;
  EXPECT_EQ(printed.find("broken capture"), printed.rfind("broken capture")) << printed;
  gcap_sim_set_action(GCAP_SIM_CHECK_CAPTURE, GCAP_SIM_ACTION_RECORD);
}

}  // namespace
