// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs of one id on other tensors each time: with bindings=relocate and bindings=copy a replay works on the tensors of
// its own run; with bindings=fixed, on those of the capture.

#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"
#include "test/support/log_catcher.h"

namespace {

using gcap::testing::ChainOf;
using gcap::testing::ChainRig;
using gcap::testing::DeviceFloats;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;
using gcap::testing::LogCatcher;
using gcap::testing::ModelBuilder;
using gcap::testing::Outcome;
using gcap::testing::RunOptions;
using gcap::testing::Tensor;
using gcap::testing::TestEp;
using gcap::testing::When;

class SessionBindings : public gcap::testing::DeviceTest {
 protected:
  gcap_status_t Run(ChainRig* rig, const DeviceFloats& x, const DeviceFloats& y, gcap_bindings_t bindings) {
    const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
    gcap_run_options_t options = RunOptions(0, true);
    options.bindings = bindings;
    return gcap_session_run(rig->session, &options, &input, &output);
  }

  // Runs on new tensors each time, which all stay alive, so that no two are at one address.
  void ExpectMoves(gcap_bindings_t bindings) {
    ChainRig rig;
    rig.count.counts = bindings == GCAP_BINDINGS_COPY;  // where kernels have the tensors, a host function is in the way
    GCAP_ASSERT_OK(rig.Create(GraphOptions(2)));
    std::vector<std::unique_ptr<DeviceFloats>> tensors;
    for (int run = 1; run <= 8; ++run) {
      Floats content(6);
      for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<float>(10 * run + static_cast<int>(i));
      tensors.push_back(std::make_unique<DeviceFloats>(content));
      const DeviceFloats& x = *tensors.back();
      tensors.push_back(std::make_unique<DeviceFloats>(Floats(6, 77.0f)));
      const DeviceFloats& y = *tensors.back();
      GCAP_ASSERT_OK(Run(&rig, x, y, bindings));
      EXPECT_EQ(y.Get(), ChainOf(content)) << "run " << run;
      EXPECT_EQ(x.Get(), content) << "run " << run;
      EXPECT_EQ(rig.count.executions, rig.count.counts ? run : 0) << "each run executes once";
    }
    const gcap_graph_info_t info = rig.ep->Info(0);
    EXPECT_EQ(info.captures, 1u);
    EXPECT_EQ(info.failures, 0u);
    EXPECT_EQ(info.replays, 6u);
    for (size_t run = 0; run < 8; ++run) {
      Floats content(6);
      for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<float>(10 * (run + 1) + i);
      EXPECT_EQ(tensors[2 * run + 1]->Get(), ChainOf(content)) << "a later run wrote to run " << run + 1;
    }
  }
};

TEST_F(SessionBindings, RelocatedReplaysWorkOnTheTensorsOfTheirRun) { ExpectMoves(GCAP_BINDINGS_RELOCATE); }

// The output elsewhere or in place of the input: a graph for each. A warm-up of the id has nothing to do then.
TEST_F(SessionBindings, AWarmUpOfAnIdThatHasAGraphForEachWayIsDone) {
  ChainRig rig;
  rig.count.counts = false;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  const DeviceFloats x(Floats(6)), y(Floats(6));
  for (const DeviceFloats* const output : {&y, &x}) {
    for (int run = 0; run < 2; ++run) GCAP_ASSERT_OK(Run(&rig, x, *output, GCAP_BINDINGS_RELOCATE));
  }
  ASSERT_EQ(rig.ep->Info(0).graphs, 2u);
  const uint64_t replays = rig.ep->Info(0).replays;
  const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
  gcap_run_options_t options = RunOptions(0, true);
  options.bindings = GCAP_BINDINGS_RELOCATE;
  const gcap_warm_up_run_t run = {&options, &input, &output};
  GCAP_EXPECT_OK(gcap_session_warm_up(rig.session, &run, 1, nullptr, nullptr));
  EXPECT_EQ(rig.ep->Info(0).replays, replays);
}

TEST_F(SessionBindings, CopiedReplaysWorkOnTheTensorsOfTheirRun) { ExpectMoves(GCAP_BINDINGS_COPY); }

// What a host function of a kernel reads may have the tensors' addresses.
TEST_F(SessionBindings, AHostFunctionFixesARelocatedGraph) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  const LogCatcher log;
  std::deque<DeviceFloats> tensors;  // all live, so that each run has others
  for (int run = 1; run <= 4; ++run) {
    const DeviceFloats& x = tensors.emplace_back(Floats(6, static_cast<float>(run)));
    DeviceFloats& y = tensors.emplace_back(Floats(6));
    GCAP_ASSERT_OK(Run(&rig, x, y, GCAP_BINDINGS_RELOCATE));
    EXPECT_EQ(y.Get(), ChainOf(Floats(6, static_cast<float>(run))));
    EXPECT_EQ(rig.count.executions, run) << "each run executes once";
  }
  EXPECT_NE(log.text().find("cannot be moved, so its runs on other buffers are eager"), std::string::npos)
      << log.text();
}

// Tensors that lie otherwise to one another than in the capture: the run is captured as another graph of the id, and
// computes what an eager run does.
TEST_F(SessionBindings, TensorsThatOverlapLaterHaveAGraphOfTheirOwn) {
  for (const gcap_bindings_t bindings : {GCAP_BINDINGS_RELOCATE, GCAP_BINDINGS_COPY}) {
    for (const int shift : {0, 1, 6}) {  // on the input, over a part of it, right behind it
      SCOPED_TRACE(shift);
      ChainRig rig;
      rig.count.counts = false;
      GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
      const Floats content = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
      DeviceFloats x(content), y(Floats(12, 77.0f));
      for (int run = 0; run < 3; ++run) GCAP_ASSERT_OK(Run(&rig, x, y, bindings));
      const uint64_t captures = rig.ep->Info(0).captures;
      const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(x.get() + shift, {2, 3});
      gcap_run_options_t options = RunOptions(0, true);
      options.bindings = bindings;
      GCAP_ASSERT_OK(gcap_session_run(rig.session, &options, &input, &output));
      const Floats all = x.Get(), result(all.begin() + shift, all.begin() + shift + 6);
      EXPECT_EQ(result, ChainOf(Floats(content.begin(), content.begin() + 6)));
      EXPECT_EQ(rig.ep->Info(0).captures, captures + 1);
      GCAP_ASSERT_OK(Run(&rig, x, y, bindings));
      EXPECT_EQ(rig.ep->Info(0).captures, captures + 1) << "both are there";
    }
  }
}

TEST_F(SessionBindings, FixedReplaysWorkOnTheTensorsOfTheCapture) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  DeviceFloats x(Floats(6, 1.0f)), y(Floats(6)), other(Floats(6, 2.0f)), untouched(Floats(6, 77.0f));
  for (int run = 0; run < 2; ++run) GCAP_ASSERT_OK(Run(&rig, x, y, GCAP_BINDINGS_FIXED));
  GCAP_ASSERT_OK(Run(&rig, other, untouched, GCAP_BINDINGS_FIXED));
  EXPECT_EQ(untouched.Get(), Floats(6, 77.0f));
}

// The copies of bindings=copy are nodes of the graph: an input's, an output's.
TEST_F(SessionBindings, CopiesAreNodes) {
  ChainRig moved, copied;
  DeviceFloats x(Floats(6, 1.0f)), y(Floats(6));
  GCAP_ASSERT_OK(moved.Create(GraphOptions(1)));
  GCAP_ASSERT_OK(copied.Create(GraphOptions(1)));
  for (int run = 0; run < 2; ++run) {
    GCAP_ASSERT_OK(Run(&moved, x, y, GCAP_BINDINGS_RELOCATE));
    GCAP_ASSERT_OK(Run(&copied, x, y, GCAP_BINDINGS_COPY));
  }
  EXPECT_EQ(copied.ep->Info(0).nodes, moved.ep->Info(0).nodes + 2);
}

TEST_F(SessionBindings, ACaptureThatFailsIsDoneAgainEagerlyOnTheRunsOwnTensors) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  rig.middle.misbehave = When::kInCapture;
  for (const gcap_bindings_t bindings : {GCAP_BINDINGS_RELOCATE, GCAP_BINDINGS_COPY}) {
    for (int run = 0; run < 3; ++run) {
      const Floats content(6, static_cast<float>(run + 1));
      DeviceFloats x(content), y(Floats(6, 77.0f));
      const LogCatcher log;
      GCAP_ASSERT_OK(Run(&rig, x, y, bindings));
      EXPECT_EQ(y.Get(), ChainOf(content));
    }
  }
  EXPECT_EQ(rig.ep->Info(0).captures, 0u);
  EXPECT_GT(rig.ep->Info(0).failures, 0u);
}

// Tensors may lie anywhere: where a graph cannot be moved to one, the run is eager.
TEST_F(SessionBindings, TensorsMayBeLessAlignedThanTheCaptured) {
  for (const gcap_bindings_t bindings : {GCAP_BINDINGS_RELOCATE, GCAP_BINDINGS_COPY}) {
    ChainRig rig;
    rig.count.counts = false;
    GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
    DeviceFloats x(Floats(6, 1.0f)), y(Floats(6)), more(Floats(64, 2.0f));
    for (int run = 0; run < 2; ++run) GCAP_ASSERT_OK(Run(&rig, x, y, bindings));
    const gcap_tensor_t input = Tensor(more.get() + 1, {2, 3}), output = Tensor(y.get(), {2, 3});
    gcap_run_options_t options = RunOptions(0, true);
    options.bindings = bindings;
    const LogCatcher log;
    GCAP_ASSERT_OK(gcap_session_run(rig.session, &options, &input, &output));
    EXPECT_EQ(y.Get(), ChainOf(Floats(6, 2.0f)));
    EXPECT_EQ(rig.ep->Info(0).captures, 1u);
    EXPECT_EQ(rig.ep->Info(0).replays, bindings == GCAP_BINDINGS_COPY ? 2u : 1u);
    EXPECT_EQ(log.text().find("less aligned") != std::string::npos, bindings == GCAP_BINDINGS_RELOCATE) << log.text();
  }
}

// More tensors than a run has room for without the heap.
TEST_F(SessionBindings, ManyTensorsAreCheckedAndMoved) {
  constexpr int kMany = 20;
  for (const gcap_bindings_t bindings : {GCAP_BINDINGS_FIXED, GCAP_BINDINGS_RELOCATE, GCAP_BINDINGS_COPY}) {
    SCOPED_TRACE(bindings);
    std::unique_ptr<TestEp> ep;
    GCAP_ASSERT_OK(TestEp::Create(GraphOptions(1), {}, &ep));
    ModelBuilder m;
    std::list<std::string> names;  // which outlive the model
    const auto name = [&](const char* prefix, int i) { return names.emplace_back(prefix + std::to_string(i)).c_str(); };
    std::vector<std::unique_ptr<DeviceFloats>> x, y;
    std::vector<gcap_tensor_t> inputs, outputs;
    for (int i = 0; i < kMany; ++i) {
      m.inputs.push_back(m.Value(name("x", i), {3}));
      m.outputs.push_back(m.Value(name("y", i), {3}));
      m.Node("Rotate", name("rotate", i), {m.inputs.back()}, {m.outputs.back()});
      x.push_back(std::make_unique<DeviceFloats>(Floats(3)));
      y.push_back(std::make_unique<DeviceFloats>(Floats(3)));
      inputs.push_back(Tensor(x.back()->get(), {3}));
      outputs.push_back(Tensor(y.back()->get(), {3}));
    }
    const gcap_model_t model = m.Model();
    gcap_ep_t* const eps[] = {ep->get()};
    gcap_session_t* session = nullptr;
    GCAP_ASSERT_OK(gcap_session_create(&model, eps, 1, nullptr, &session));
    gcap_run_options_t options = RunOptions(0, true);
    options.bindings = bindings;
    options.check_bindings = bindings == GCAP_BINDINGS_FIXED;
    for (int run = 0; run < 3; ++run) {
      const float f = static_cast<float>(run + 1);
      for (int i = 0; i < kMany; ++i) x[i]->Set({f, f + 1, static_cast<float>(i)});
      GCAP_ASSERT_OK(gcap_session_run(session, &options, inputs.data(), outputs.data()));
      for (int i = 0; i < kMany; ++i) EXPECT_EQ(y[i]->Get(), Floats({f + 1, static_cast<float>(i), f})) << i;
    }
    EXPECT_EQ(ep->Info(0).captures, 1u);
    const DeviceFloats other(Floats(3, 77.0f));
    outputs[kMany - 1] = Tensor(other.get(), {3});
    const Outcome moved(gcap_session_run(session, &options, inputs.data(), outputs.data()));
    EXPECT_EQ(moved.ok(), bindings != GCAP_BINDINGS_FIXED) << moved.message;
    EXPECT_EQ(moved.Names("'y19'"), bindings == GCAP_BINDINGS_FIXED) << moved.message;
    EXPECT_EQ(other.Get(), moved.ok() ? y[kMany - 1]->Get() : Floats(3, 77.0f));
    GCAP_EXPECT_OK(gcap_session_destroy(session));
  }
}

TEST_F(SessionBindings, CannotBeCheckedAsWell) {
  ChainRig rig;
  GCAP_ASSERT_OK(rig.Create(GraphOptions(1)));
  DeviceFloats x(Floats(6)), y(Floats(6));
  const gcap_tensor_t input = Tensor(x.get(), {2, 3}), output = Tensor(y.get(), {2, 3});
  gcap_run_options_t options = RunOptions(0, true);
  options.bindings = GCAP_BINDINGS_COPY;
  options.check_bindings = true;
  GCAP_EXPECT_FAILS(gcap_session_run(rig.session, &options, &input, &output), GCAP_INVALID_ARGUMENT, "check_bindings");
  options.check_bindings = false;
  options.bindings = static_cast<gcap_bindings_t>(7);
  GCAP_EXPECT_FAILS(gcap_session_run(rig.session, &options, &input, &output), GCAP_INVALID_ARGUMENT, "bindings is 7");
}

}  // namespace
