// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the caller of a run decides: whether a failed capture is run again, whether the tensors bound are compared with
// the graph's.

#include <string>

#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"
#include "test/support/log_catcher.h"

namespace {

using gcap::testing::ChainOf;
using gcap::testing::ChainRig;
using gcap::testing::DeviceFloats;
using gcap::testing::DeviceTest;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;
using gcap::testing::LogCatcher;
using gcap::testing::Outcome;
using gcap::testing::RunOptions;
using gcap::testing::Tensor;
using gcap::testing::When;

const Floats kContent = {1, 2, 3, 4, 5, 6};

class SessionOptions : public DeviceTest {
 protected:
  static gcap_status_t Run(const ChainRig& rig, const gcap_run_options_t& options, const DeviceFloats& x,
                           const DeviceFloats& y) {
    const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
    return gcap_session_run(rig.session, &options, &input, &output);
  }
  static gcap_run_options_t Checked(int graph_id = 0) {
    gcap_run_options_t options = RunOptions(graph_id, true);
    options.check_bindings = true;
    return options;
  }
};

TEST_F(SessionOptions, AFailedCaptureIsRunAgainUnlessTheCallerForbidsIt) {
  for (bool rerun : {true, false}) {
    SCOPED_TRACE(rerun);
    LogCatcher log;
    DeviceFloats x(kContent), y(Floats(6));
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
    rig.ExpectRightRun(&x, &y, 1.0f);
    rig.middle.misbehave = When::kInCapture;
    const int computes = rig.middle.computes, executions = rig.count.executions;
    gcap_run_options_t options = RunOptions(0, true);
    options.rerun_failed_capture = rerun;
    const Outcome outcome(Run(rig, options, x, y));
    EXPECT_STREQ(gcap_code_name(outcome.code), rerun ? "OK" : "CAPTURE_INVALIDATED");
    const std::string said = rerun ? log.text() : outcome.message;
    EXPECT_NE(said.find("node 'middle': the kernel was told to fail"), std::string::npos) << said;
    // The failure comes up from the kernel with the node's name before it, and is still the same one.
    EXPECT_EQ(said.find("first of"), std::string::npos) << said;
    EXPECT_EQ(rig.middle.computes - computes, rerun ? 2 : 1);
    EXPECT_EQ(rig.count.executions - executions, rerun ? 1 : 0) << "what the device did";
    EXPECT_EQ(rig.ep->Info(0).failures, 1u);
    rig.middle.misbehave = When::kNever;
    for (int run = 0; run < 4; ++run) rig.ExpectRightRun(&x, &y, 10.0f + static_cast<float>(run));
    EXPECT_EQ(rig.ep->Info(0).captures, 1u);
  }
}

TEST_F(SessionOptions, AReplayOnOtherTensorsIsRefusedByTheirNames) {
  DeviceFloats x(kContent), y(Floats(6)), other_x(kContent), other_y(Floats(6, 77.0f));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  for (int run = 0; run < 3; ++run) GCAP_ASSERT_OK(Run(rig, Checked(), x, y));
  EXPECT_EQ(rig.ep->Info(0).replays, 2u);
  const int executions = rig.count.executions;
  GCAP_EXPECT_FAILS(Run(rig, Checked(), other_x, y), GCAP_FAILED_PRECONDITION, "'x'");
  GCAP_EXPECT_FAILS(Run(rig, Checked(), x, other_y), GCAP_FAILED_PRECONDITION, "'y'");
  EXPECT_EQ(rig.count.executions, executions);
  EXPECT_EQ(other_y.Get(), Floats(6, 77.0f));
  GCAP_EXPECT_OK(Run(rig, Checked(1), other_x, other_y));
  EXPECT_EQ(other_y.Get(), ChainOf(kContent)) << "another id may be bound to them";
  GCAP_EXPECT_OK(Run(rig, Checked(), x, y));
  EXPECT_EQ(y.Get(), ChainOf(kContent));
}

TEST_F(SessionOptions, AGraphCapturedWithoutTheCheckCannotBeChecked) {
  DeviceFloats x(kContent), y(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  for (int run = 0; run < 2; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
  const Outcome outcome(Run(rig, Checked(), x, y));
  EXPECT_STREQ(gcap_code_name(outcome.code), "FAILED_PRECONDITION");
  EXPECT_TRUE(outcome.Names("graph id 0")) << outcome.message;
  // Was: only a function that a session's user cannot call.
  EXPECT_TRUE(outcome.Names("check_bindings")) << outcome.message;
  rig.ExpectRightRun(&x, &y, 7.0f);
}

TEST_F(SessionOptions, AWarmUpInVainQuotesTheLastFailure) {
  LogCatcher log;
  DeviceFloats x(kContent), y(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  rig.middle.misbehave = When::kInCapture;
  for (const int graph_id : {0, 3}) {
    GCAP_EXPECT_FAILS(rig.WarmUp(x, y, graph_id), GCAP_UNAVAILABLE, "told to fail");
  }
}

// --- Options of a run -----------------------------------------------------------------------------------------------

// Upstream's bounded attempts inside one run.
TEST_F(SessionOptions, ARunCapturesWithinItselfIfAsked) {
  DeviceFloats x(kContent), y(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(2)));
  gcap_run_options_t options = RunOptions(0, true);
  options.capture_in_run = true;
  GCAP_ASSERT_OK(Run(rig, options, x, y));
  EXPECT_EQ(y.Get(), ChainOf(kContent));
  EXPECT_TRUE(gcap_runtime_is_captured(rig.ep->runtime(), 0));
  EXPECT_EQ(rig.count.executions, 3) << "two eager runs, and the first launch";
  GCAP_ASSERT_OK(Run(rig, options, x, y));
  EXPECT_EQ(rig.count.executions, 4) << "a replay";
}

TEST_F(SessionOptions, ARunThatDoesNotCaptureWithinItselfSaysWhy) {
  DeviceFloats x(kContent), y(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(100)));
  gcap_run_options_t options = RunOptions(0, true);
  options.capture_in_run = true;
  GCAP_EXPECT_FAILS(Run(rig, options, x, y), GCAP_UNAVAILABLE, "graph id 0 warms up: 8 eager runs so far");
  EXPECT_EQ(rig.middle.computes, 8);
  options.graph_id = GCAP_GRAPH_ID_NONE;
  GCAP_EXPECT_OK(Run(rig, options, x, y));
  EXPECT_EQ(rig.middle.computes, 9) << "nothing to capture";
}

TEST_F(SessionOptions, ARunTrimsTheArenasOfTheDevicesNamed) {
  DeviceFloats x(kContent), y(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  gcap_run_options_t options = RunOptions(GCAP_GRAPH_ID_NONE, true);
  for (const uint64_t devices : {uint64_t{2}, uint64_t{1}}) {
    options.trimmed_devices = devices;
    GCAP_ASSERT_OK(Run(rig, options, x, y));
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(gcap_runtime_scratch(rig.ep->runtime()), &stats);
    EXPECT_EQ(stats.total_allocated_bytes == 0, devices == 1) << "the session is on device 0";
  }
}

// The input comes on the user's stream, and the result is read there, without any wait of the host between.
TEST_F(SessionOptions, ARunIsOrderedWithTheUsersStream) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    DeviceFloats x(Floats(6)), y(Floats(6));
    ChainRig rig;
    GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
    gcap_run_options_t options = RunOptions(0, /*synchronize=*/false);
    options.user_stream = stream;
    for (int run = 0; run < 5; ++run) {  // eager, captured, three replays
      Floats content(6, static_cast<float>(run)), result(6);
      EXPECT_EQ(cudaMemcpyAsync(x.get(), content.data(), x.Bytes(), cudaMemcpyHostToDevice, stream), cudaSuccess);
      GCAP_ASSERT_OK(Run(rig, options, x, y));
      EXPECT_EQ(cudaMemcpyAsync(result.data(), y.get(), y.Bytes(), cudaMemcpyDeviceToHost, stream), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(result, ChainOf(content));
    }
    EXPECT_EQ(rig.ep->Info(0).replays, 4u);
    GCAP_EXPECT_OK(gcap_runtime_synchronize(rig.ep->runtime()));
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(SessionOptions, AStreamThatNoRunCanFollowIsRefused) {
  DeviceFloats x(kContent), y(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  gcap_run_options_t options = RunOptions(0, /*synchronize=*/false);
  options.user_stream = cudaStreamLegacy;
  GCAP_EXPECT_FAILS(Run(rig, options, x, y), GCAP_INVALID_ARGUMENT, "the legacy default stream");

  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  options.user_stream = stream;
  GCAP_EXPECT_FAILS(Run(rig, options, x, y), GCAP_FAILED_PRECONDITION, "is capturing");
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess) << "and its capture is as it was";
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);

  if (cudaSetDevice(1) != cudaSuccess) GTEST_SKIP() << "needs two devices for the rest";
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  options.user_stream = stream;
  GCAP_EXPECT_FAILS(Run(rig, options, x, y), GCAP_INVALID_ARGUMENT, "of device 1; the run is on device 0");
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(rig.count.executions, 0);
}

TEST_F(SessionOptions, AGraphCountsTheScratchThatItKeeps) {
  DeviceFloats x(kContent), y(Floats(6));
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  rig.bounce.scratch_bytes = 100000;
  for (int run = 0; run < 2; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
  EXPECT_GE(rig.ep->Info(0).bytes, 100000u);
}

// The budget of the options: one graph a thread.
TEST_F(SessionOptions, TheLeastRecentlyUsedGraphGoesWhenThereAreTooMany) {
  DeviceFloats x(kContent), y(Floats(6));
  gcap_options_t options = GraphOptions(1);
  options.graph.max_graphs = 1;
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(options));
  for (int id : {0, 1}) {
    for (int run = 0; run < 2; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run), id);
  }
  EXPECT_FALSE(gcap_runtime_is_captured(rig.ep->runtime(), 0));
  EXPECT_TRUE(gcap_runtime_is_captured(rig.ep->runtime(), 1));
  EXPECT_EQ(rig.ep->Info(0).evictions, 1u);
  rig.ExpectRightRun(&x, &y, 5.0f, 0);
}

TEST_F(SessionOptions, APinnedGraphIsNotTakenByTheBudget) {
  DeviceFloats x(kContent), y(Floats(6));
  gcap_options_t options = GraphOptions(0);
  options.graph.max_graphs = 1;
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(options));
  rig.ExpectRightRun(&x, &y, 1.0f, GCAP_GRAPH_ID_NONE);  // finds scratch
  gcap_run_options_t pinned = RunOptions(0, true);
  pinned.pinned = true;
  GCAP_ASSERT_OK(Run(rig, pinned, x, y));
  GCAP_ASSERT_OK(Run(rig, RunOptions(1, true), x, y));
  EXPECT_TRUE(gcap_runtime_is_captured(rig.ep->runtime(), 0));
  EXPECT_TRUE(gcap_runtime_is_captured(rig.ep->runtime(), 1));
}

// Also by a warm-up within the run, and with bindings that move.
TEST_F(SessionOptions, ARunThatIsCapturedOnlyExecutesNothing) {
  for (const gcap_bindings_t bindings : {GCAP_BINDINGS_FIXED, GCAP_BINDINGS_COPY, GCAP_BINDINGS_RELOCATE}) {
    for (const bool in_run : {false, true}) {
      SCOPED_TRACE(::testing::Message() << bindings << in_run);
      DeviceFloats x(kContent), y(Floats(6));
      ChainRig rig;
      GCAP_ASSERT_OK(rig.Create(GraphOptions(2)));
      GCAP_ASSERT_OK(Run(rig, RunOptions(GCAP_GRAPH_ID_NONE, true), x, y));  // finds scratch
      y.Set(Floats(6));
      const int executions = rig.count.executions;
      gcap_run_options_t options = RunOptions(3, true);
      options.capture_only = true;
      options.capture_in_run = in_run;
      options.bindings = bindings;
      for (int i = 0; i < 2; ++i) GCAP_ASSERT_OK(Run(rig, options, x, y));
      EXPECT_EQ(rig.count.executions, executions);
      EXPECT_EQ(y.Get(), Floats(6));
      EXPECT_EQ(rig.ep->Info(3).captures, 1u);
      options.capture_only = false;
      GCAP_ASSERT_OK(Run(rig, options, x, y));
      EXPECT_EQ(y.Get(), ChainOf(kContent));
      EXPECT_EQ(rig.ep->Info(3).replays, 1u);
    }
  }
}

TEST_F(SessionOptions, ARunThatIsCapturedOnlyIsNeverEager) {
  DeviceFloats x(kContent), y(Floats(6));
  gcap_run_options_t options = RunOptions(0, true);
  options.capture_only = true;
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  GCAP_ASSERT_OK(Run(rig, RunOptions(GCAP_GRAPH_ID_NONE, true), x, y));  // finds scratch
  rig.middle.misbehave = When::kInCapture;
  GCAP_EXPECT_FAILS(Run(rig, options, x, y), GCAP_CAPTURE_INVALIDATED, "told to fail");
  options.graph_id = GCAP_GRAPH_ID_NONE;
  GCAP_EXPECT_FAILS(Run(rig, options, x, y), GCAP_FAILED_PRECONDITION, "the graph id is -1");
  EXPECT_EQ(rig.count.executions, 1);
  ChainRig eager;
  gcap_options_t no_graphs;
  gcap_options_init(&no_graphs);
  GCAP_ASSERT_OK(eager.Create(no_graphs));
  options.graph_id = 0;
  GCAP_EXPECT_FAILS(Run(eager, options, x, y), GCAP_FAILED_PRECONDITION, "enable_cuda_graph");
  EXPECT_EQ(eager.count.executions, 0);
}

TEST_F(SessionOptions, AStablePolicyCapturesWhenRunsAreAlike) {
  DeviceFloats x(kContent), y(Floats(6));
  gcap_options_t options = GraphOptions(1000);
  options.graph.policy = GCAP_GRAPH_POLICY_STABLE;
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(options));
  GCAP_EXPECT_OK(rig.WarmUp(x, y));
  EXPECT_TRUE(gcap_runtime_is_captured(rig.ep->runtime(), 0));
  EXPECT_GE(rig.ep->Info(0).eager_runs, 2u);
}

}  // namespace
