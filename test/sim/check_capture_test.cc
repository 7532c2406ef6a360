// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Broken captures: a report names the call that broke it and the one that began it, for those who ask.
#include "test/sim/check_test.h"

namespace {

using gcap_test::Reports;

#define OK(call) EXPECT_EQ(cudaSuccess, call)

class CheckCapture : public gcap_test::Check {
 protected:
  void SetUp() override {
    Check::SetUp();
    gcap_sim_set_action(GCAP_SIM_CHECK_CAPTURE, GCAP_SIM_ACTION_RECORD);
  }
  void TearDown() override {
    gcap_sim_set_action(GCAP_SIM_CHECK_CAPTURE, GCAP_SIM_ACTION_OFF);
    Check::TearDown();
  }

  // Not inlined, so that they are in the stacks.
  __attribute__((noinline)) void BeginHere() { OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeGlobal)); }
  __attribute__((noinline)) void AllocateThere() {
    void* memory = nullptr;
    EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaMalloc(&memory, 16));
  }
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

TEST_F(CheckCapture, AForkThatIsNotJoinedIsToldAtTheEnd) {
  ExpectOne({"broken capture", "broken by cudaStreamEndCapture", "begun by cudaStreamBeginCapture"}, [&] {
    BeginHere();
    OK(Order(a_, b_, e1_));
    OK(Fill(x_, b_));
    EndInvalid(cudaErrorStreamCaptureUnjoined);
  });
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

// A program that captures where it can and runs eagerly where it cannot is right.
TEST_F(CheckCapture, IsOffUnlessAskedForByName) {
  gcap_sim_set_action(GCAP_SIM_CHECK_CAPTURE, GCAP_SIM_ACTION_OFF);
  gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_RECORD);
  ExpectNone([&] {
    BeginHere();
    AllocateThere();
    EndInvalid(cudaErrorStreamCaptureInvalidated);
  });
}

}  // namespace
