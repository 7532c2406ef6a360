// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Managed memory under the checks, and beside budgets. What the calls answer is recorded in test/conformance.
#include "test/sim/check_test.h"

namespace {

using gcap_test::Check;
using gcap_test::Step;

#define OK(call) EXPECT_EQ(cudaSuccess, call)

class Managed : public Check {
 protected:
  void SetUp() override {
    Check::SetUp();
    OK(cudaMallocManaged(reinterpret_cast<void**>(&m_), kBytes));
  }
  void TearDown() override {
    OK(cudaFree(m_));
    Check::TearDown();
  }
  unsigned char* m_;
};

TEST_F(Managed, HostAndDeviceShareOneAddress) {
  m_[0] = 41;
  OK(Step(x_, m_, kBytes, a_));
  OK(Step(m_, x_, kBytes, a_));
  OK(cudaStreamSynchronize(a_));
  EXPECT_EQ(43, m_[0]);
}

TEST_F(Managed, WhatTheHostWritesIsNotSeenSoAReadIsNoMistake) {
  ExpectNone([&] { OK(Step(x_, m_, kBytes, a_)); });
}

TEST_F(Managed, UnorderedKernelsAreARace) {
  ExpectOne({"race on 256 bytes of managed memory", "cudaMallocManaged,"}, [&] {
    OK(Fill(m_, a_));
    OK(Step(x_, m_, kBytes, b_));
  });
}

TEST_F(Managed, TheHostCanTellOfItsAccesses) {
  ExpectOne({"race on 1 bytes of managed memory"}, [&] {
    OK(Fill(m_, a_));
    gcap_sim_host_access(m_, 1, 0);
  });
}

TEST_F(Managed, IsCountedAndLeaksAsItself) {
  EXPECT_EQ(1u, gcap_sim_live("managed memory"));
  gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_RECORD);
  std::string reports;
  const size_t count = gcap_sim_check();  // of all that the fixture has made
  for (size_t i = 0; i < count; ++i) reports += gcap_sim_report(i);
  gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_OFF);
  EXPECT_NE(std::string::npos, reports.find("leak of 1 of the kind \"managed memory\", 256 bytes")) << reports;
}

// A GPU gives out more than it has.
TEST_F(Managed, DoesNotCountAsTheDevicesMemory) {
  size_t before = 0, after = 0, total = 0;
  void* more = nullptr;
  OK(cudaMemGetInfo(&before, &total));
  OK(cudaMallocManaged(&more, 2 * total));
  OK(cudaMemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
  OK(cudaFree(more));
}

TEST_F(Managed, AGraphThatOutlivesItIsTold) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  void* short_lived;
  ExpectOne({"managed memory"}, [&] {
    OK(cudaMallocManaged(&short_lived, kBytes));
    OK(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
    OK(Fill(short_lived, a_));
    OK(cudaStreamEndCapture(a_, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaFree(short_lived));
    OK(cudaGraphLaunch(exec, a_));
    OK(cudaStreamSynchronize(a_));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
  });
}

}  // namespace
