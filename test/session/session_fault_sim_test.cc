// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions under faults: each CUDA call of each step fails once. The outcome is a status or a right result, never a
// wrong one; what was begun is undone, the next run is right, and nothing is left in the end.

#include <cstdint>
#include <functional>
#include <string>

#include "gcap/graph_verify.h"
#include "gcap/kit/session.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "lib/internal/capture_gate.h"
#include "test/session/host_ep.h"
#include "test/session/session_test.h"
#include "test/support/faults.h"

namespace {

using gcap::testing::ChainOf;
using gcap::testing::ChainRig;
using gcap::testing::DeviceFloats;
using gcap::testing::Fault;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;
using gcap::testing::HostEp;
using gcap::testing::ModelBuilder;
using gcap::testing::Outcome;
using gcap::testing::RunOptions;
using gcap::testing::Tensor;
using gcap::testing::TestEp;
using gcap::testing::Walked;
using gcap::testing::WalkFaults;

const Floats kContent = {1, 2, 3, 4, 5, 6};

// Expects that the call left nothing with its thread, and a failure that names the call.
void ExpectCleanThread(const Fault& fault, const Outcome& outcome) {
  EXPECT_FALSE(gcap_thread_is_capturing());
  EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
  EXPECT_TRUE(outcome.ok() || outcome.Names(fault.function())) << fault.function() << ": " << outcome.message;
}

// Walks over the calls of one run, made after `runs_before` others with graphs captured after `min_runs`.
uint64_t WalkRun(unsigned min_runs, int runs_before, bool synchronize) {
  DeviceFloats x(kContent), y(Floats(6));
  const Walked walked = WalkFaults([&](Fault& fault) {
    ChainRig rig;
    GCAP_EXPECT_OK(rig.Create(GraphOptions(min_runs)));
    for (int run = 0; run < runs_before; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(10 * run));
    x.Set(kContent);
    y.Set(Floats(6, 77.0f));
    const int executions = rig.count.executions;
    const Outcome outcome = fault.During([&] { return rig.Run(x, y, 0, synchronize); });
    ExpectCleanThread(fault, outcome);
    GCAP_EXPECT_OK(gcap_runtime_synchronize(rig.ep->runtime()));
    if (outcome.ok()) {
      EXPECT_EQ(y.Get(), ChainOf(kContent));
      EXPECT_EQ(rig.count.executions, executions + 1) << "done once, however it was done";
    } else {
      EXPECT_TRUE(fault.hit());
      EXPECT_EQ(outcome.cuda_error, cudaErrorUnknown) << outcome.message;
      EXPECT_LE(rig.count.executions, executions + 1);
    }
    GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(rig.ep->runtime())));
    for (int run = 0; run < 6; ++run) rig.ExpectRightRun(&x, &y, 100.0f + static_cast<float>(run));
    EXPECT_EQ(rig.ep->Info(0).captures, min_runs < 100 ? 1u : 0u);
  });
  return walked.calls;
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

// Its outcome is not that of the work which it is compared with.
TEST(SessionFault, AReplayThatIsToBeVerifiedAndIsNotLaunchedFailsTheRun) {
  DeviceFloats x(kContent), y(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  gcap_graph_verify_t verify;
  gcap_graph_verify_init(&verify);
  verify.each = 1;
  const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
  gcap_run_options_t options = RunOptions(0, /*synchronize=*/true);
  options.verify = &verify;
  for (int run = 0; run < 3; ++run) GCAP_ASSERT_OK(gcap_session_run(rig.session, &options, &input, &output));
  gcap_sim_fail_nth("cudaGraphLaunch", 1, cudaErrorUnknown);
  GCAP_EXPECT_FAILS(gcap_session_run(rig.session, &options, &input, &output), GCAP_CUDA_ERROR, "cudaGraphLaunch");
  gcap_sim_clear_faults();
  rig.ExpectRightRun(&x, &y, 2.0f);
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
  const Walked walked = WalkFaults([&](Fault& fault) {
    ChainRig rig;
    GCAP_EXPECT_OK(gcap::testing::TestEp::Create(GraphOptions(1), {}, &rig.ep));
    const Outcome outcome = fault.During([&] { return rig.CreateSession(); });
    EXPECT_EQ(outcome.ok(), !fault.hit()) << outcome.message;
    EXPECT_EQ(outcome.cuda_error, fault.hit() ? cudaErrorUnknown : cudaSuccess) << outcome.message;
    ExpectCleanThread(fault, outcome);
    EXPECT_EQ(rig.session == nullptr, fault.hit());
    EXPECT_EQ(rig.ep->live_kernels(), fault.hit() ? 0 : 5);
    if (fault.hit()) GCAP_EXPECT_OK(rig.CreateSession());
    rig.ExpectRightRun(&x, &y, 1.0f);
  });
  EXPECT_GE(walked.calls, 8u);
}

TEST(SessionFault, WarmUp) {
  DeviceFloats x(kContent), y(Floats(6));
  WalkFaults([&](Fault& fault) {
    ChainRig rig;
    GCAP_EXPECT_OK(rig.Create(GraphOptions(2)));
    const Outcome outcome = fault.During([&] { return rig.WarmUp(x, y); });
    EXPECT_TRUE(outcome.ok() || fault.hit()) << outcome.message;
    EXPECT_TRUE(!outcome.ok() || gcap_runtime_is_captured(rig.ep->runtime(), 0));
    ExpectCleanThread(fault, outcome);
    GCAP_EXPECT_OK(rig.WarmUp(x, y));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // a run whose wait failed may still go on
    rig.ExpectRightRun(&x, &y, 1.0f);
  });
}

// Values that cross to the host and back: each call of a run fails once, and the next run is right.
TEST(SessionFault, RunOnSeveralEps) {
  for (const bool synchronize : {true, false}) {
    DeviceFloats x(kContent), y(Floats(6));
    const Walked walked = WalkFaults([&](Fault& fault) {
      std::unique_ptr<TestEp> device;
      gcap_options_t options = GraphOptions();
      options.enable_cuda_graph = false;
      GCAP_EXPECT_OK(TestEp::Create(options, {}, &device));
      HostEp host({"Negate"});
      ModelBuilder m;
      const int in = m.Value("in", {6}), a = m.Value("a", {6}), b = m.Value("b", {6}), out = m.Value("out", {6});
      m.inputs = {in};
      m.outputs = {out};
      m.Node("Rotate", "there", {in}, {a});
      m.Node("Negate", "negate", {a}, {b});
      m.Node("Rotate", "back", {b}, {out});
      const gcap_model_t model = m.Model();
      gcap_ep_t* const eps[] = {device->get(), host.get()};
      gcap_session_t* session = nullptr;
      GCAP_EXPECT_OK(gcap_session_create(&model, eps, 2, nullptr, &session));
      const gcap_tensor_t input = Tensor(x.get(), {6}), output = Tensor(y.get(), {6});
      const gcap_run_options_t run = RunOptions(0, synchronize);
      const Outcome outcome = fault.During([&] { return gcap_session_run(session, &run, &input, &output); });
      EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      y.Set(Floats(6));
      GCAP_EXPECT_OK(gcap_session_run(session, nullptr, &input, &output));
      EXPECT_EQ(y.Get(), Floats({-3, -4, -5, -6, -1, -2}));
      GCAP_EXPECT_OK(gcap_session_destroy(session));
    });
    EXPECT_GE(walked.functions.count("cudaMemcpyAsync"), 1u);
    EXPECT_GE(walked.calls, 10u);
  }
}

// A model of the host needs no device, not even one that works.
TEST(SessionFault, RunOnTheHostAlone) {
  HostEp host;
  ModelBuilder m;
  m.inputs = {m.Value("x", {3})};
  m.outputs = {m.Value("y", {3})};
  m.Node("Negate", "negate", m.inputs, m.outputs);
  const gcap_model_t model = m.Model();
  gcap_ep_t* const eps[] = {host.get()};
  gcap_session_t* session = nullptr;
  GCAP_ASSERT_OK(gcap_session_create(&model, eps, 1, nullptr, &session));
  Floats in = {1, 2, 3}, out(3);
  const gcap_tensor_t input = Tensor(in.data(), {3}), output = Tensor(out.data(), {3});
  const Walked walked = WalkFaults([&](Fault& fault) {
    const Outcome outcome = fault.During([&] { return gcap_session_run(session, nullptr, &input, &output); });
    EXPECT_TRUE(outcome.ok()) << outcome.message;
  });
  EXPECT_EQ(walked.functions, gcap::testing::Functions());
  EXPECT_EQ(out, Floats({-1, -2, -3}));
  GCAP_EXPECT_OK(gcap_session_destroy(session));
}

// It may be of another device.
TEST(SessionFault, AUsersStreamWhoseDeviceIsNotToldIsRefused) {
  DeviceFloats x(kContent), y(Floats(6));
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    ChainRig rig;
    GCAP_EXPECT_OK(rig.Create(GraphOptions(1)));
    const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
    gcap_run_options_t options = RunOptions(0, /*synchronize=*/true);
    options.user_stream = stream;
    gcap_sim_fail_nth("cudaStreamGetDevice", 1, cudaErrorUnknown);
    GCAP_EXPECT_FAILS(gcap_session_run(rig.session, &options, &input, &output), GCAP_CUDA_ERROR, "cudaStreamGetDevice");
    EXPECT_EQ(rig.count.executions, 0);
    gcap_sim_clear_faults();
    GCAP_EXPECT_OK(gcap_session_run(rig.session, &options, &input, &output));
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// A run in order with its caller's stream: eager, captured, replayed.
TEST(SessionFault, RunOnTheUsersStream) {
  for (int runs_before = 0; runs_before < 3; ++runs_before) {
    DeviceFloats x(kContent), y(Floats(6));
    WalkFaults([&](Fault& fault) {
      cudaStream_t stream = nullptr;
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
      {
        ChainRig rig;
        GCAP_EXPECT_OK(rig.Create(GraphOptions(1)));
        const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
        gcap_run_options_t options = RunOptions(0, /*synchronize=*/false);
        options.user_stream = stream;
        const auto run = [&] { return gcap_session_run(rig.session, &options, &input, &output); };
        for (int i = 0; i < runs_before; ++i) GCAP_EXPECT_OK(run());
        const Outcome outcome = fault.During(run);
        ExpectCleanThread(fault, outcome);
        const bool may_be_rerun = runs_before == 1;  // the capture failed
        EXPECT_TRUE(outcome.ok() == !fault.hit() || may_be_rerun) << fault.function();
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        for (int i = 0; i < 4; ++i) {
          GCAP_EXPECT_OK(run());
          EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
          EXPECT_EQ(y.Get(), ChainOf(kContent));
        }
        GCAP_EXPECT_OK(gcap_runtime_synchronize(rig.ep->runtime()));
      }
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    });
  }
}

TEST(SessionFault, ADestroyThatCannotWaitKeepsTheConstantsAndSaysWhy) {
  DeviceFloats x(kContent), y(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  GCAP_ASSERT_OK(rig.Run(x, y, 0, /*synchronize=*/false));
  gcap_sim_fail_nth("cudaStreamSynchronize", 1, cudaErrorUnknown);
  GCAP_EXPECT_FAILS(gcap_session_destroy(rig.session), GCAP_LEAKED, "the device may still read the constants");
  gcap_sim_fail_nth(nullptr, 0, cudaSuccess);
  rig.session = nullptr;
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
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
    const Walked walked = WalkFaults([&](Fault& fault) {
      ChainRig rig;
      GCAP_EXPECT_OK(rig.Create(GraphOptions(1)));
      for (int run = 0; run < 3; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
      const Outcome outcome = fault.During([&] { return step.act(&rig); });
      if (!outcome.ok()) fault.AllowKept();
      EXPECT_TRUE(fault.hit() || outcome.ok()) << outcome.message;
      EXPECT_EQ(outcome.cuda_error, outcome.ok() ? cudaSuccess : cudaErrorUnknown) << outcome.message;
      ExpectCleanThread(fault, outcome);
      gcap_status_t status = gcap_session_destroy(rig.session);
      rig.session = nullptr;
      const Outcome ended(gcap_status_join(status, rig.ep->End()));
      EXPECT_TRUE(ended.ok() || !outcome.ok()) << ended.message;
    });
    EXPECT_GE(walked.calls, step.least_calls);
  }
}

}  // namespace
