// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions under faults: each CUDA call of each step fails once. The outcome is a status or a right result, never a
// wrong one; what was begun is undone, the next run is right, and nothing is left in the end.

#include <cstdint>
#include <functional>
#include <string>

#include "gcap/session.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "lib/internal/capture_gate.h"
#include "test/session/session_test.h"
#include "test/support/fault_walk.h"

namespace {

using gcap::testing::ArmedFault;
using gcap::testing::ChainOf;
using gcap::testing::ChainRig;
using gcap::testing::DeviceFloats;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;
using gcap::testing::Outcome;
using gcap::testing::WalkFaults;

const Floats kContent = {1, 2, 3, 4, 5, 6};

// Expects that the call left nothing with its thread. Only where the very call that gives the thread's capture mode
// back has failed, the mode may be another one; it is set right here.
void ExpectCleanThread(const Outcome& outcome, bool hit) {
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  EXPECT_FALSE(gcap_thread_is_capturing());
  EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  const bool may_differ = hit && (outcome.ok() || outcome.Names("cudaThreadExchangeStreamCaptureMode"));
  EXPECT_TRUE(mode == cudaStreamCaptureModeGlobal || may_differ) << outcome.message;
}

// Walks over the calls of one run, made after `runs_before` others with graphs captured after `min_runs`.
uint64_t WalkRun(unsigned min_runs, int runs_before, bool synchronize) {
  DeviceFloats x(kContent), y(Floats(6));
  const uint64_t failed = WalkFaults([&](uint64_t n) {
    const size_t before = gcap_sim_live(nullptr);
    bool hit = false, destroy_failed = false;
    {
      ChainRig rig;
      GCAP_EXPECT_OK(rig.Create(GraphOptions(min_runs)));
      for (int run = 0; run < runs_before; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(10 * run));
      x.Set(kContent);
      y.Set(Floats(6, 77.0f));
      const int executions = rig.count.executions;
      ArmedFault fault(n);
      const Outcome outcome(rig.Run(x, y, 0, synchronize));
      hit = fault.Disarm();
      destroy_failed = outcome.cuda_call.find("Destroy") != std::string::npos;
      ExpectCleanThread(outcome, hit);
      GCAP_EXPECT_OK(gcap_ep_synchronize(rig.ep->get()));
      if (outcome.ok()) {
        EXPECT_EQ(y.Get(), ChainOf(kContent));
        EXPECT_EQ(rig.count.executions, executions + 1) << "done once, however it was done";
      } else {
        EXPECT_TRUE(hit);
        EXPECT_EQ(outcome.cuda_error, cudaErrorUnknown) << outcome.message;
        EXPECT_LE(rig.count.executions, executions + 1);
      }
      GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(rig.ep->runtime())));
      for (int run = 0; run < 6; ++run) rig.ExpectRightRun(&x, &y, 100.0f + static_cast<float>(run));
      EXPECT_EQ(rig.ep->Info(0).captures, min_runs < 100 ? 1u : 0u);
    }
    EXPECT_TRUE(destroy_failed || gcap_sim_live(nullptr) == before);
    return hit;
  });
  return failed;
}

TEST(SessionFault, EagerRun) {
  EXPECT_GE(WalkRun(/*min_runs=*/1000, /*runs_before=*/0, true), 10u);  // with its first memory
  EXPECT_GE(WalkRun(/*min_runs=*/1000, /*runs_before=*/2, true), 10u);
  EXPECT_GE(WalkRun(/*min_runs=*/1000, /*runs_before=*/2, false), 9u);
}

TEST(SessionFault, CapturedRun) {
  EXPECT_GE(WalkRun(/*min_runs=*/1, /*runs_before=*/1, true), 15u);
  EXPECT_GE(WalkRun(/*min_runs=*/1, /*runs_before=*/1, false), 14u);
}

TEST(SessionFault, Replay) {
  EXPECT_EQ(WalkRun(/*min_runs=*/1, /*runs_before=*/3, true), 5u);
  EXPECT_EQ(WalkRun(/*min_runs=*/1, /*runs_before=*/3, false), 1u);
}

// A capture that fails is no failure of the run: it is done eagerly.
TEST(SessionFault, CaptureThatTheDriverRefusesIsNoFailureOfTheRun) {
  for (const char* function :
       {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiateWithParams", "cudaGraphLaunch"}) {
    SCOPED_TRACE(function);
    DeviceFloats x(Floats(6)), y(Floats(6));
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
    rig.ExpectRightRun(&x, &y, 1.0f);
    gcap_sim_fail_nth(function, 1, cudaErrorUnknown);
    rig.ExpectRightRun(&x, &y, 2.0f);
    gcap_sim_fail_nth(nullptr, 0, cudaSuccess);
    EXPECT_EQ(rig.ep->Info(0).failures, 1u) << "the fault hit";
    EXPECT_EQ(rig.count.executions, 2);
    for (int run = 3; run <= 6; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
    EXPECT_EQ(rig.ep->Info(0).captures, 1u);
  }
}

TEST(SessionFault, Create) {
  DeviceFloats x(kContent), y(Floats(6));
  const size_t before = gcap_sim_live(nullptr);
  const uint64_t failed = WalkFaults([&](uint64_t n) {
    ChainRig rig;
    GCAP_EXPECT_OK(gcap::testing::TestEp::Create(GraphOptions(1), {}, &rig.ep));
    bool hit = false;
    {
      ArmedFault fault(n);
      const Outcome outcome(rig.CreateSession());
      hit = fault.Disarm();
      EXPECT_EQ(outcome.ok(), !hit) << outcome.message;
      EXPECT_EQ(outcome.cuda_error, hit ? cudaErrorUnknown : cudaSuccess) << outcome.message;
      ExpectCleanThread(outcome, hit);
    }
    EXPECT_EQ(rig.session == nullptr, hit);
    EXPECT_EQ(rig.ep->live_kernels(), hit ? 0 : 5);
    if (hit) GCAP_EXPECT_OK(rig.CreateSession());
    rig.ExpectRightRun(&x, &y, 1.0f);
    return hit;
  });
  EXPECT_GE(failed, 8u);
  EXPECT_EQ(gcap_sim_live(nullptr), before);
}

TEST(SessionFault, WarmUp) {
  DeviceFloats x(kContent), y(Floats(6));
  WalkFaults([&](uint64_t n) {
    ChainRig rig;
    GCAP_EXPECT_OK(rig.Create(GraphOptions(2)));
    ArmedFault fault(n);
    const Outcome outcome(rig.WarmUp(x, y));
    const bool hit = fault.Disarm();
    EXPECT_TRUE(outcome.ok() || hit) << outcome.message;
    EXPECT_TRUE(!outcome.ok() || gcap_ep_is_graph_captured(rig.ep->get(), 0));
    ExpectCleanThread(outcome, hit);
    GCAP_EXPECT_OK(rig.WarmUp(x, y));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // a run whose wait failed may still go on
    rig.ExpectRightRun(&x, &y, 1.0f);
    return hit;
  });
}

// What cannot be ended is kept, and the status says so; the session and the EP themselves are gone. A fault after the
// memory was given back is only logged.
TEST(SessionFault, ReleaseAndEnd) {
  struct Step {
    const char* name;
    std::function<gcap_status_t(ChainRig*)> act;
    uint64_t least_calls;
  };
  const Step steps[] = {
      {"release", [](ChainRig* rig) { return gcap_session_release_captured_graph(rig->session, 0); }, 5},
      {"session destroy",
       [](ChainRig* rig) {
         gcap_status_t status = gcap_session_destroy(rig->session);
         rig->session = nullptr;
         return status;
       },
       1},
      {"EP destroy",
       [](ChainRig* rig) {
         gcap_status_t status = gcap_session_destroy(rig->session);
         rig->session = nullptr;
         return gcap_status_join(status, rig->ep->End());
       },
       8},
  };
  DeviceFloats x(kContent), y(Floats(6));
  for (const Step& step : steps) {
    SCOPED_TRACE(step.name);
    const uint64_t failed = WalkFaults([&](uint64_t n) {
      const size_t before = gcap_sim_live(nullptr);
      bool hit = false, failed = false;
      {
        ChainRig rig;
        GCAP_EXPECT_OK(rig.Create(GraphOptions(1)));
        for (int run = 0; run < 3; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
        ArmedFault fault(n);
        const Outcome outcome(step.act(&rig));
        hit = fault.Disarm();
        failed = !outcome.ok();
        EXPECT_TRUE(hit || !failed) << outcome.message;
        EXPECT_EQ(outcome.cuda_error, failed ? cudaErrorUnknown : cudaSuccess) << outcome.message;
        ExpectCleanThread(outcome, hit);
        gcap_status_t status = gcap_session_destroy(rig.session);
        rig.session = nullptr;
        const Outcome ended(gcap_status_join(status, rig.ep->End()));
        EXPECT_TRUE(ended.ok() || failed) << ended.message;
      }
      EXPECT_TRUE(failed || gcap_sim_live(nullptr) == before);
      return hit;
    });
    EXPECT_GE(failed, step.least_calls);
  }
}

}  // namespace
