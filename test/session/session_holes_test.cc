// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions under GCAP_GRAPH_ALLOW_HOLES: which nodes are in holes, what replays of such graphs make, and which models
// are refused all the same.

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gcap/kit/io_binding.h"
#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/session/holes_rig.h"
#include "test/support/device_test.h"
#include "test/support/log_catcher.h"
#include "test/support/session_info.h"

namespace gcap {
namespace testing {
namespace {

using SessionHoles = DeviceTest;

gcap_run_options_t Moving(gcap_bindings_t bindings, int graph_id = 0) {
  gcap_run_options_t options = RunOptions(graph_id, true);
  options.bindings = bindings;
  return options;
}

// --- What is in holes -----------------------------------------------------------------------------------------------

TEST_F(SessionHoles, ReplaysRunTheNodesThatNoGraphHolds) {
  HolesRig rig;
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 0; run < 6; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(10 * run));
  const gcap_graph_info_t info = rig.device->Info(0);
  EXPECT_EQ(info.captures, 1u);
  EXPECT_EQ(info.replays, 5u);
  EXPECT_EQ(info.failures, 0u);
  EXPECT_EQ(info.holes, 2u);
  EXPECT_EQ(rig.host.computes, 6) << "in each run, and not while the run is captured";
  EXPECT_EQ(rig.control.computes, 6);
}

TEST_F(SessionHoles, TheSessionAndTheLogTellThem) {
  LogCatcher log(GCAP_LOG_INFO);
  HolesRig rig;
  GCAP_ASSERT_OK(rig.Create());
  const gcap_session_info_t info = SessionInfo(rig.session);
  EXPECT_TRUE(info.captures);
  ASSERT_EQ(info.holes, 2u);
  ASSERT_NE(info.node_holes, nullptr);
  EXPECT_EQ(std::vector<int>(info.node_holes, info.node_holes + 5), std::vector<int>({-1, 0, -1, 1, -1}));
  EXPECT_NE(log.text().find("EP 'test' captures the model with 2 holes: 'negate' (Negate, a copy) 'negate' (Negate, on "
                            "the host) 'second' (Rotate, a copy); 'alloc' (Alloc, not capturable)"),
            std::string::npos)
      << log.text();
}

TEST_F(SessionHoles, AModelWithoutSuchNodesIsOneGraph) {
  ModelBuilder m;
  const int x = m.Value("x", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "rotate", {x}, {y});
  HolesRig rig(m);
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats in(CountedFrom(1)), out(Floats(6));
  for (int run = 0; run < 3; ++run) GCAP_ASSERT_OK(rig.Run(in.get(), out.get()));
  EXPECT_EQ(rig.device->Info(0).holes, 0u);
  EXPECT_EQ(SessionInfo(rig.session).holes, 0u);
  EXPECT_EQ(SessionInfo(rig.session).node_holes, nullptr);
}

// Nodes of the host are first and last, so the caller binds memory of the host, which each replay reads and writes.
TEST_F(SessionHoles, NodesOfTheHostMayBeFirstAndLast) {
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), b = m.Value("b", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Negate", "first", {x}, {a});
  m.Node("Rotate", "middle", {a}, {b});
  m.Node("Negate", "last", {b}, {y});
  HolesRig rig(m);
  GCAP_ASSERT_OK(rig.Create());
  EXPECT_EQ(gcap_session_input_memory(rig.session, 0).kind, GCAP_MEMORY_HOST);
  EXPECT_EQ(gcap_session_output_memory(rig.session, 0).kind, GCAP_MEMORY_HOST);
  Floats in(6), out(6);
  for (int run = 0; run < 6; ++run) {
    const Floats content = CountedFrom(static_cast<float>(run));
    std::copy(content.begin(), content.end(), in.begin());
    std::fill(out.begin(), out.end(), 77.0f);
    GCAP_ASSERT_OK(rig.Run(in.data(), out.data(), RunOptions(0, /*synchronize=*/run % 2 == 0)));
    EXPECT_EQ(out, Rotated(in));
  }
  EXPECT_EQ(rig.device->Info(0).holes, 2u);
  EXPECT_EQ(rig.device->Info(0).replays, 5u);
}

// Two nodes of the host that follow one another are one hole, and so is one of the EP behind them.
TEST_F(SessionHoles, StepsThatFollowOneAnotherAreOneHole) {
  NodeControl alloc;
  alloc.capturable = false;
  alloc.misbehave = When::kAlways;
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), b = m.Value("b", {6}), c = m.Value("c", {6});
  const int d = m.Value("d", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {d, y};
  m.Node("Rotate", "before", {x}, {a});
  m.Node("Negate", "host1", {a}, {b});
  m.Node("Negate", "host2", {b}, {c});
  m.Node("Alloc", "alloc", {c}, {d}, &alloc);
  m.Node("Rotate", "behind", {d}, {y});
  HolesRig rig(m);
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats in(Floats(6)), middle(Floats(6)), out(Floats(6));
  for (int run = 0; run < 4; ++run) {
    in.Set(CountedFrom(static_cast<float>(run)));
    const gcap_tensor_t input = Tensor(in.get(), {6});
    const gcap_tensor_t outputs[] = {Tensor(middle.get(), {6}), Tensor(out.get(), {6})};
    const gcap_run_options_t options = RunOptions(0, true);
    GCAP_ASSERT_OK(gcap_session_run(rig.session, &options, &input, outputs));
    EXPECT_EQ(middle.Get(), Rotated(CountedFrom(static_cast<float>(run)))) << "a hole writes an output of the model";
    EXPECT_EQ(out.Get(), Rotated(Rotated(CountedFrom(static_cast<float>(run)))));
  }
  EXPECT_EQ(rig.device->Info(0).holes, 1u);
}

// A kernel says it when it is made, so it may say so for some shapes alone.
TEST_F(SessionHoles, AKernelMaySaySoForSomeShapes) {
  NodeControl alloc;
  ModelBuilder m;
  const int64_t rows = m.Symbol("rows");
  const int x = m.Value("x", {rows}), a = m.Value("a", {rows}), y = m.Value("y", {rows});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "rotate", {x}, {a});
  m.Node("Alloc", "alloc", {a}, {y}, &alloc);
  HolesRig rig(m);
  GCAP_ASSERT_OK(rig.Create());
  EXPECT_TRUE(SessionInfo(rig.session).captures);
  EXPECT_EQ(SessionInfo(rig.session).holes, 0u) << "which they are follows from the shapes";
  DeviceFloats in(CountedFrom(1)), out(Floats(6));
  for (const int64_t count : {6, 4}) {
    alloc.capturable = count == 6;
    alloc.misbehave = count == 6 ? When::kNever : When::kAlways;
    for (int run = 0; run < 3; ++run) {
      const gcap_tensor_t input = Tensor(in.get(), {count}), output = Tensor(out.get(), {count});
      const gcap_run_options_t options = RunOptions(static_cast<int>(count), true);
      out.Set(Floats(6));
      GCAP_ASSERT_OK(gcap_session_run(rig.session, &options, &input, &output));
      EXPECT_EQ(out.Get(), count == 6 ? Floats({2, 3, 4, 5, 6, 1}) : Floats({2, 3, 4, 1, 0, 0}));
    }
    EXPECT_EQ(rig.device->Info(static_cast<int>(count)).holes, count == 6 ? 0u : 1u);
    EXPECT_EQ(rig.device->Info(static_cast<int>(count)).replays, 2u);
  }
  GCAP_EXPECT_OK(gcap_session_release_captured_graph(rig.session, 4));
}

// The application takes the EP as it is.
TEST_F(SessionHoles, AnOptionOfTheSessionAllowsThem) {
  HolesRig rig;
  rig.config.policy = GCAP_GRAPH_ALL_NODES_ON_EP;
  rig.allow_holes = true;
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 0; run < 3; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
  EXPECT_EQ(rig.device->Info(0).holes, 2u);
}

// --- Refusals -------------------------------------------------------------------------------------------------------

void ExpectRefusal(const Outcome& outcome, const std::string& reason) {
  EXPECT_STREQ(gcap_code_name(outcome.code), "FAILED_PRECONDITION");
  EXPECT_TRUE(outcome.Names("EP 'test' cannot capture the model")) << outcome.message;
  EXPECT_TRUE(outcome.Names(reason)) << outcome.message;
  EXPECT_TRUE(outcome.Names("run_eagerly_if_not_capturable")) << outcome.message;
}

TEST_F(SessionHoles, TheOtherPoliciesRefuseAKernelThatIsNotCapturable) {
  for (auto policy : {GCAP_GRAPH_ALL_NODES_ON_EP, GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES}) {
    NodeControl alloc;
    alloc.capturable = false;
    ModelBuilder m;
    const int x = m.Value("x", {6}), a = m.Value("a", {6}), y = m.Value("y", {6});
    m.inputs = {x};
    m.outputs = {y};
    m.Node("Rotate", "rotate", {x}, {a});
    m.Node("Alloc", "alloc", {a}, {y}, &alloc);
    HolesRig rig(m);
    rig.config.policy = policy;
    const Outcome refused(rig.Create());
    ExpectRefusal(refused, "node 'alloc' (Alloc) on EP 'test' has a kernel that says not_capturable");
    EXPECT_TRUE(refused.Names("set allow_holes, or give the EP the policy GCAP_GRAPH_ALLOW_HOLES")) << refused.message;
    EXPECT_EQ(rig.device->live_kernels(), 0);
    GCAP_ASSERT_OK(rig.Create(GraphOptions(1), /*eagerly=*/true));
    EXPECT_FALSE(SessionInfo(rig.session).captures);
    alloc.misbehave = When::kAlways;
    DeviceFloats in(CountedFrom(1)), out(Floats(6));
    for (int run = 0; run < 3; ++run) GCAP_ASSERT_OK(rig.Run(in.get(), out.get()));
    EXPECT_EQ(out.Get(), Rotated(CountedFrom(1)));
    EXPECT_EQ(rig.device->Info(0).captures, 0u);
  }
}

// Of a model with symbols, kernels are made when shapes are new.
TEST_F(SessionHoles, NewShapesWhoseKernelIsNotCapturableAreRefusedOrEager) {
  for (const bool eagerly : {false, true}) {
    NodeControl alloc;
    alloc.capturable = false;
    ModelBuilder m;
    const int64_t rows = m.Symbol("rows");
    const int x = m.Value("x", {rows}), a = m.Value("a", {rows}), y = m.Value("y", {rows});
    m.inputs = {x};
    m.outputs = {y};
    m.Node("Rotate", "rotate", {x}, {a});
    m.Node("Alloc", "alloc", {a}, {y}, &alloc);
    HolesRig rig(m);
    rig.config.policy = GCAP_GRAPH_ALL_NODES_ON_EP;
    GCAP_ASSERT_OK(rig.Create(GraphOptions(1), eagerly));
    DeviceFloats in(CountedFrom(1)), out(Floats(6));
    for (int run = 0; run < 3; ++run) {
      const Outcome outcome(rig.Run(in.get(), out.get()));
      EXPECT_EQ(outcome.ok(), eagerly) << outcome.message;
      if (!eagerly) ExpectRefusal(outcome, "node 'alloc' (Alloc) on EP 'test' has a kernel that says not_capturable");
    }
    EXPECT_EQ(rig.device->Info(0).captures, 0u);
    if (!eagerly) continue;
    EXPECT_EQ(out.Get(), Rotated(CountedFrom(1)));
    const gcap_tensor_t input = Tensor(in.get(), {6}), output = Tensor(out.get(), {6});
    gcap_run_options_t options = RunOptions(0, true);
    const gcap_warm_up_run_t run = {&options, &input, &output};
    GCAP_EXPECT_FAILS(gcap_session_warm_up(rig.session, &run, 1, nullptr, nullptr), GCAP_FAILED_PRECONDITION,
                      "there will be no graph");
    options.capture_only = true;
    GCAP_EXPECT_FAILS(rig.Run(in.get(), out.get(), options), GCAP_FAILED_PRECONDITION, "there will be no graph");
    options.capture_only = false;
    options.capture_in_run = true;
    GCAP_EXPECT_OK(rig.Run(in.get(), out.get(), options));
  }
}

// y = Reshape(x, s + {0, 0}): the host makes what the EP reads on the host. A capture comes before its holes.
ModelBuilder ShapeOfARun(NodeControl* reshape) {
  ModelBuilder m;
  const int x = m.Value("x", {2, 3}), a = m.Value("a", {2, 3}), s = m.Value("s", {2}, GCAP_DTYPE_I64);
  const int w = m.Integers("w", {0, 0}), t = m.Value("t", {2}, GCAP_DTYPE_I64), y = m.Value("y", {2, 3});
  m.inputs = {x, s};
  m.outputs = {y};
  m.Node("Rotate", "rotate", {x}, {a});
  m.Node("Add", "add", {s, w}, {t});
  m.Node("Reshape", "reshape", {a, t}, {y}, reshape);
  return m;
}

TEST_F(SessionHoles, ContentThatACapturedNodeReadsOnTheHostIsRefused) {
  NodeControl reshape;
  HolesRig rig(ShapeOfARun(&reshape));
  const Outcome refused(rig.Create());
  ExpectRefusal(refused, "node 'reshape' (Reshape) on EP 'test' reads the content of 't' on the host");
  EXPECT_TRUE(refused.Names("a kernel that says not_capturable is in a hole")) << refused.message;
  EXPECT_FALSE(refused.Names("give the EP the policy")) << refused.message;
}

TEST_F(SessionHoles, ContentThatANodeInAHoleReadsOnTheHostIsThatOfEachRun) {
  NodeControl reshape;
  reshape.capturable = false;
  HolesRig rig(ShapeOfARun(&reshape));
  static std::vector<int64_t> seen;
  GCAP_ASSERT_OK(rig.Create());
  seen.clear();
  rig.device->on_compute = [](const char* op, const gcap_kernel_context_t* context) {
    if (op == std::string("Reshape")) seen.push_back(static_cast<const int64_t*>(context->inputs[1].data)[0]);
  };
  DeviceFloats x(CountedFrom(1)), y(Floats(6));
  int64_t s[2] = {};
  for (int64_t run = 0; run < 4; ++run) {
    s[0] = run;
    const gcap_tensor_t inputs[] = {Tensor(x.get(), {2, 3}), Tensor(s, {2}, GCAP_DTYPE_I64)};
    const gcap_tensor_t output = Tensor(y.get(), {2, 3});
    const gcap_run_options_t options = RunOptions(0, true);
    GCAP_ASSERT_OK(gcap_session_run(rig.session, &options, inputs, &output));
  }
  EXPECT_EQ(seen, std::vector<int64_t>({0, 1, 2, 3}));
  EXPECT_EQ(rig.device->Info(0).replays, 3u);
  EXPECT_EQ(y.Get(), Rotated(CountedFrom(1)));
}

TEST_F(SessionHoles, AModelOfHolesAloneIsRefused) {
  NodeControl rotate;
  rotate.capturable = false;
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Negate", "negate", {x}, {a});
  m.Node("Rotate", "rotate", {a}, {y}, &rotate);
  HolesRig rig(m);
  ExpectRefusal(Outcome(rig.Create()), "each node would be in a hole");
  rotate.capturable = true;
  GCAP_ASSERT_OK(rig.Create());
}

TEST_F(SessionHoles, AModelOfTheHostAloneIsRefused) {
  ModelBuilder m;
  const int x = m.Value("x", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Negate", "negate", {x}, {y});
  HolesRig rig(m);
  ExpectRefusal(Outcome(rig.Create()), "no node of the model is on it");
}

TEST_F(SessionHoles, ANodeOnAnotherDeviceEpIsRefused) {
  HolesRig rig;
  rig.config.ops.erase("Alloc");
  GCAP_ASSERT_OK(TestEp::Create(GraphOptions(1), rig.config, &rig.device));
  TestEpConfig other;
  other.name = "other";
  std::unique_ptr<TestEp> second;
  gcap_options_t options = GraphOptions(1);
  options.enable_cuda_graph = false;
  GCAP_ASSERT_OK(TestEp::Create(options, other, &second));
  gcap_ep_t* const eps[] = {rig.device->get(), second->get(), rig.host.get()};
  const gcap_model_t model = rig.model.Model();
  const Outcome refused(gcap_session_create(&model, eps, 3, nullptr, &rig.session));
  ExpectRefusal(refused,
                "node 'alloc' (Alloc) on EP 'other' is on another device EP; its policy, GCAP_GRAPH_ALLOW_HOLES, "
                "allows nodes on the host");
}

TEST_F(SessionHoles, ACallersCaptureIsRefused) {
  HolesRig rig;
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 0; run < 2; ++run) rig.ExpectRightRun(&x, &y, 1);
  gcap_run_resources_t resources;
  GCAP_ASSERT_OK(gcap_runtime_get_resources(rig.device->runtime(), &resources));
  gcap_capture_t* capture = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(resources.cuda_stream, nullptr, &capture));
  GCAP_EXPECT_FAILS(rig.Run(x.get(), y.get()), GCAP_FAILED_PRECONDITION,
                    "node 'negate' (Negate) on EP 'host' reads 'a'");
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "'negate' (Negate)");
  rig.ExpectRightRun(&x, &y, 2);
}

// The EP of this session captures nothing, so nobody has asked for holes before.
TEST_F(SessionHoles, ACallersCaptureIsRefusedForAKernelThatIsNotCapturable) {
  NodeControl rotate;
  rotate.capturable = false;
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "first", {x}, {a});
  m.Node("Rotate", "second", {a}, {y}, &rotate);
  HolesRig rig(m);
  gcap_options_t options = GraphOptions(1);
  options.enable_cuda_graph = false;
  GCAP_ASSERT_OK(rig.Create(options));
  DeviceFloats in(CountedFrom(1)), out(Floats(6));
  GCAP_ASSERT_OK(rig.Run(in.get(), out.get()));
  gcap_run_resources_t resources;
  GCAP_ASSERT_OK(gcap_runtime_get_resources(rig.device->runtime(), &resources));
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(resources.cuda_stream, nullptr, &capture));
  GCAP_EXPECT_FAILS(rig.Run(in.get(), out.get()), GCAP_FAILED_PRECONDITION,
                    "node 'second' (Rotate) on EP 'test' has a");
  gcap_capture_abort(capture);
}

// --- Runs -----------------------------------------------------------------------------------------------------------

// Nobody waits between the replays, which share the memory on the host.
TEST_F(SessionHoles, RunsThatNobodyWaitsForAreRight) {
  HolesRig rig;
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats x(Floats(6)), y(Floats(6));
  rig.ExpectRightRun(&x, &y, 1);
  constexpr int kRuns = 6;
  const gcap_run_options_t options = [] {
    gcap_run_options_t moving = Moving(GCAP_BINDINGS_RELOCATE, 1);
    moving.synchronize = false;
    return moving;
  }();
  std::vector<std::unique_ptr<DeviceFloats>> in, out;
  for (int run = 0; run < kRuns; ++run) {
    in.push_back(std::make_unique<DeviceFloats>(CountedFrom(static_cast<float>(10 * run))));
    out.push_back(std::make_unique<DeviceFloats>(Floats(6)));
  }
  for (int run = 0; run < kRuns; ++run) GCAP_ASSERT_OK(rig.Run(in[run]->get(), out[run]->get(), options));
  GCAP_ASSERT_OK(gcap_runtime_synchronize(rig.device->runtime()));
  for (int run = 0; run < kRuns; ++run) {
    EXPECT_EQ(out[run]->Get(), Rotated(Rotated(Negated(Rotated(CountedFrom(static_cast<float>(10 * run)))))));
  }
  EXPECT_GE(rig.device->Info(1).replays, 3u);
}

// The first node is on the host and reads what the caller bound there: no copy makes it wait for the replay before,
// whose copy to the device reads the same memory.
TEST_F(SessionHoles, TheHostDoesNotOverwriteWhatAnEarlierReplayStillCopies) {
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Negate", "first", {x}, {a});
  m.Node("Rotate", "rotate", {a}, {y});
  HolesRig rig(std::move(m));
  rig.config.counts_runs = rig.config.copies_late = true;
  GCAP_ASSERT_OK(rig.Create());
  gcap_run_resources_t resources;
  GCAP_ASSERT_OK(gcap_runtime_get_resources(rig.device->runtime(), &resources));
  constexpr int kRuns = 8;
  Floats in(6);
  DeviceFloats out(Floats(6));
  std::vector<std::unique_ptr<DeviceFloats>> kept;
  for (int run = 0; run < kRuns; ++run) kept.push_back(std::make_unique<DeviceFloats>(Floats(6)));
  for (int run = 0; run < kRuns; ++run) {
    const Floats content = CountedFrom(static_cast<float>(10 * run));
    std::copy(content.begin(), content.end(), in.begin());
    GCAP_ASSERT_OK(rig.Run(in.data(), out.get(), RunOptions(0, /*synchronize=*/false)));
    ASSERT_EQ(
        cudaMemcpyAsync(kept[run]->get(), out.get(), out.Bytes(), cudaMemcpyDeviceToDevice, resources.cuda_stream),
        cudaSuccess);
  }
  GCAP_ASSERT_OK(gcap_runtime_synchronize(rig.device->runtime()));
  for (int run = 0; run < kRuns; ++run) {
    EXPECT_EQ(kept[run]->Get(), Rotated(Negated(CountedFrom(static_cast<float>(10 * run)))));
  }
  EXPECT_GE(rig.device->Info(0).replays, 6u);
}

TEST_F(SessionHoles, TensorsMayBeElsewhereAtEachReplay) {
  for (const gcap_bindings_t bindings : {GCAP_BINDINGS_COPY, GCAP_BINDINGS_RELOCATE}) {
    SCOPED_TRACE(bindings);
    HolesRig rig;
    GCAP_ASSERT_OK(rig.Create());
    DeviceFloats x1(Floats(6)), x2(Floats(6)), y1(Floats(6)), y2(Floats(6));
    for (int run = 0; run < 6; ++run) {
      const float seed = static_cast<float>(10 * run);
      rig.ExpectRightRun(run % 2 == 0 ? &x1 : &x2, run % 3 == 0 ? &y1 : &y2, seed, Moving(bindings));
    }
    EXPECT_EQ(rig.device->Info(0).captures, 1u);
    EXPECT_EQ(rig.device->Info(0).replays, 5u);
    EXPECT_EQ(rig.control.computes, 6) << "no rehearsal calls a hole";
  }
}

// Holes alone read the input and write the output: no node of a graph points to either.
TEST_F(SessionHoles, TensorsOfHolesAloneMayBeElsewhereToo) {
  NodeControl first, last;
  first.capturable = last.capturable = false;
  first.misbehave = last.misbehave = When::kAlways;
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), b = m.Value("b", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Alloc", "first", {x}, {a}, &first);
  m.Node("Rotate", "middle", {a}, {b});
  m.Node("Alloc", "last", {b}, {y}, &last);
  for (const gcap_bindings_t bindings : {GCAP_BINDINGS_COPY, GCAP_BINDINGS_RELOCATE}) {
    HolesRig rig(m);
    GCAP_ASSERT_OK(rig.Create());
    DeviceFloats in1(Floats(6)), in2(Floats(6)), out1(Floats(6)), out2(Floats(6));
    for (int run = 0; run < 6; ++run) {
      DeviceFloats* in = run % 2 == 0 ? &in1 : &in2;
      DeviceFloats* out = run % 3 == 0 ? &out1 : &out2;
      in->Set(CountedFrom(static_cast<float>(run)));
      out->Set(Floats(6));
      GCAP_ASSERT_OK(rig.Run(in->get(), out->get(), Moving(bindings)));
      EXPECT_EQ(out->Get(), Rotated(CountedFrom(static_cast<float>(run))));
    }
    EXPECT_EQ(rig.device->Info(0).replays, 5u);
  }
}

// Fill is given x, and does not use its address: whether the graph reads x from elsewhere cannot be told.
TEST_F(SessionHoles, ATensorThatACapturedKernelHidesCannotBeElsewhere) {
  NodeControl fill;
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), b = m.Value("b", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Fill", "fill", {x}, {a}, &fill);
  m.Node("Negate", "negate", {a}, {b});
  m.Node("Rotate", "rotate", {b}, {y});
  HolesRig rig(m);
  GCAP_ASSERT_OK(rig.Create());
  const LogCatcher log;
  std::deque<DeviceFloats> tensors;  // all live, so that each run has others
  for (int run = 0; run < 4; ++run) {
    const DeviceFloats& in = tensors.emplace_back(Floats(6));
    const DeviceFloats& out = tensors.emplace_back(Floats(6, 77.0f));
    GCAP_ASSERT_OK(rig.Run(in.get(), out.get(), Moving(GCAP_BINDINGS_RELOCATE)));
    EXPECT_EQ(out.Get(), Negated(Floats(6)));
  }
  EXPECT_NE(log.text().find("cannot be moved, so its runs on other buffers are eager"), std::string::npos)
      << log.text();
  EXPECT_NE(log.text().find("'x'"), std::string::npos) << log.text();
}

TEST_F(SessionHoles, ATensorOnTheHostCannotBeElsewhere) {
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "rotate", {x}, {a});
  m.Node("Negate", "negate", {a}, {y});
  HolesRig rig(m);
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats in(CountedFrom(1));
  Floats out(6);
  GCAP_EXPECT_FAILS(rig.Run(in.get(), out.data(), Moving(GCAP_BINDINGS_RELOCATE)), GCAP_FAILED_PRECONDITION,
                    "output 'y' is not in the memory of EP 'test'");
  ModelBuilder other;
  const int hx = other.Value("x", {6}), b = other.Value("a", {6}), dy = other.Value("y", {6});
  other.inputs = {hx};
  other.outputs = {dy};
  other.Node("Negate", "negate", {hx}, {b});
  other.Node("Rotate", "rotate", {b}, {dy});
  HolesRig from_host(other);
  GCAP_ASSERT_OK(from_host.Create());
  GCAP_EXPECT_FAILS(from_host.Run(out.data(), in.get(), Moving(GCAP_BINDINGS_RELOCATE)), GCAP_FAILED_PRECONDITION,
                    "input 'x' is not in the memory of EP 'test'");
}

TEST_F(SessionHoles, AUsersStreamIsOrderedWithTheHoles) {
  for (const bool has_two : {true, false}) {
    std::unique_ptr<HolesRig> rig = has_two ? std::make_unique<HolesRig>() : std::make_unique<HolesRig>(OneHole());
    GCAP_ASSERT_OK(rig->Create());
    DeviceFloats x(Floats(6)), y(Floats(6));
    cudaStream_t user = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&user, cudaStreamNonBlocking), cudaSuccess);
    gcap_run_options_t options = RunOptions(0, /*synchronize=*/false);
    options.user_stream = user;
    for (int run = 0; run < 5; ++run) {
      const Floats content = CountedFrom(static_cast<float>(run)), twice = Rotated(Negated(Rotated(content)));
      Floats result(6);
      ASSERT_EQ(cudaMemcpyAsync(x.get(), content.data(), x.Bytes(), cudaMemcpyHostToDevice, user), cudaSuccess);
      GCAP_ASSERT_OK(rig->Run(x.get(), y.get(), options));
      ASSERT_EQ(cudaMemcpyAsync(result.data(), y.get(), y.Bytes(), cudaMemcpyDeviceToHost, user), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(user), cudaSuccess);
      EXPECT_EQ(result, has_two ? Rotated(twice) : twice);
    }
    EXPECT_EQ(rig->device->Info(0).replays, 4u);
    EXPECT_EQ(cudaStreamDestroy(user), cudaSuccess);
  }
}

// The kernels' scratch and the session's copies are of the EP's stream.
TEST_F(SessionHoles, AReplayPastTheSessionOnAnotherStreamIsRefused) {
  HolesRig rig;
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 0; run < 2; ++run) rig.ExpectRightRun(&x, &y, 1);
  cudaStream_t other = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = 0;
  run.stream = other;
  GCAP_EXPECT_FAILS(gcap_runtime_replay(rig.device->runtime(), &run, nullptr), GCAP_FAILED_PRECONDITION,
                    "the hole of node 'negate' is called on stream");
  EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess) << "the first segment was launched";
  rig.ExpectRightRun(&x, &y, 2);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
}

TEST_F(SessionHoles, WarmUpPlanAndCaptureOnly) {
  HolesRig rig;
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats x(CountedFrom(1)), y(Floats(6));
  GCAP_ASSERT_OK(rig.Run(x.get(), y.get(), RunOptions(GCAP_GRAPH_ID_NONE, true)));
  const gcap_tensor_t input = Tensor(x.get(), {6}), output = Tensor(y.get(), {6});
  const gcap_run_options_t options = RunOptions(0, true);
  const gcap_warm_up_run_t warm_up = {&options, &input, &output};
  gcap_graph_plan_t plan;
  gcap_graph_plan_init(&plan);
  GCAP_ASSERT_OK(gcap_session_plan(rig.session, &warm_up, 1, &plan));
  EXPECT_EQ(rig.host.computes, 1) << "a plan calls no hole";
  GCAP_ASSERT_OK(gcap_session_warm_up(rig.session, &warm_up, 1, nullptr, nullptr));
  const gcap_graph_info_t info = rig.device->Info(0);
  EXPECT_EQ(info.holes, 2u);
  EXPECT_EQ(plan.nodes, info.nodes);
  EXPECT_EQ(plan.bytes, info.bytes);
  gcap_run_options_t only = RunOptions(1, true);
  only.capture_only = true;
  const int computes = rig.host.computes;
  GCAP_ASSERT_OK(rig.Run(x.get(), y.get(), only));
  EXPECT_EQ(rig.host.computes, computes);
  EXPECT_EQ(rig.device->Info(1).holes, 2u);
  rig.ExpectRightRun(&x, &y, 3, RunOptions(1, true));
  EXPECT_EQ(rig.device->Info(1).replays, 1u);
  gcap_run_options_t in_run = RunOptions(2, true);
  in_run.capture_in_run = true;
  rig.ExpectRightRun(&x, &y, 4, in_run);
  rig.ExpectRightRun(&x, &y, 5, in_run);
  EXPECT_EQ(rig.device->Info(2).captures, 1u);
}

TEST_F(SessionHoles, AnIoBindingStagesAroundThem) {
  HolesRig rig;
  GCAP_ASSERT_OK(rig.Create());
  gcap_io_binding_t* binding = nullptr;
  GCAP_ASSERT_OK(gcap_io_binding_create(rig.session, &binding));
  Floats in(6), out(6);
  const gcap_tensor_t x = Tensor(in.data(), {6}), y = Tensor(out.data(), {6});
  GCAP_ASSERT_OK(gcap_io_binding_bind_input(binding, "x", &x, {GCAP_MEMORY_HOST, 0}));
  GCAP_ASSERT_OK(gcap_io_binding_bind_output(binding, "y", &y, {GCAP_MEMORY_HOST, 0}));
  const gcap_run_options_t options = RunOptions(0, true);
  for (int run = 0; run < 5; ++run) {
    const Floats content = CountedFrom(static_cast<float>(run));
    std::copy(content.begin(), content.end(), in.begin());
    GCAP_ASSERT_OK(gcap_session_run_bound(rig.session, &options, binding));
    EXPECT_EQ(out, Rotated(Rotated(Negated(Rotated(in)))));
  }
  EXPECT_EQ(rig.device->Info(0).replays, 4u);
  GCAP_EXPECT_OK(gcap_io_binding_destroy(binding));
}

TEST_F(SessionHoles, InitializersAndAValueReadOnBothSides) {
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), b = m.Value("b", {6}), c = m.Value("c", {6});
  const int w = m.Constant("w", {6}, {1, 2, 3, 4, 5, 6}), v = m.Value("v", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "rotate", {x}, {a});
  m.Node("Negate", "negate", {a}, {b});    // a is read behind the hole, too
  m.Node("Negate", "constant", {w}, {v});  // known before any run
  m.Node("Join", "join", {a, b}, {c});
  m.Node("Join", "end", {c, v}, {y});  // what the host made of a constant is copied in a hole
  HolesRig rig(m);
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats in(Floats(6)), out(Floats(6));
  for (int run = 0; run < 4; ++run) {
    const float f = static_cast<float>(10 * run);
    in.Set(CountedFrom(f));
    GCAP_ASSERT_OK(rig.Run(in.get(), out.get()));
    EXPECT_EQ(out.Get(), Floats({f + 1, f + 2, f + 3, -4, -5, -6}));
  }
  EXPECT_EQ(rig.device->Info(0).replays, 3u);
  EXPECT_EQ(rig.host.computes, 1 + 4);
}

TEST_F(SessionHoles, ThreadsHaveHolesOfTheirOwn) {
  for (const gcap_graph_scope_t scope : {GCAP_GRAPH_SCOPE_THREAD, GCAP_GRAPH_SCOPE_SESSION}) {
    HolesRig rig;
    gcap_options_t options = GraphOptions(1);
    options.graph_scope = scope;
    GCAP_ASSERT_OK(rig.Create(options));
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&rig, t] {
        DeviceFloats x(Floats(6)), y(Floats(6));
        for (int run = 0; run < 8; ++run) {
          rig.ExpectRightRun(&x, &y, static_cast<float>(100 * t + run), RunOptions(t, true));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(rig.host.computes, 3 * 8);
  }
}

// --- Failures -------------------------------------------------------------------------------------------------------

TEST_F(SessionHoles, AFailureInAReplayIsTheRunsAndTheGraphStays) {
  HolesRig rig;
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 0; run < 3; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
  rig.host.fails = true;
  const int computes = rig.host.computes;
  GCAP_EXPECT_FAILS(rig.Run(x.get(), y.get()), GCAP_UNAVAILABLE,
                    "graph id 0, hole 'negate': node 'negate': the host's kernel was told to fail");
  EXPECT_EQ(rig.host.computes, computes + 1) << "what was begun is not run again";
  rig.host.fails = false;
  rig.ExpectRightRun(&x, &y, 5);
  EXPECT_EQ(rig.device->Info(0).captures, 1u);
  EXPECT_EQ(rig.device->Info(0).replays, 4u);
}

TEST_F(SessionHoles, AFailureInTheCapturedRunAndInAnEagerOne) {
  for (int runs_before : {0, 1}) {
    HolesRig rig;
    GCAP_ASSERT_OK(rig.Create());
    DeviceFloats x(Floats(6)), y(Floats(6));
    for (int run = 0; run < runs_before; ++run) rig.ExpectRightRun(&x, &y, 1);
    rig.host.fails = true;
    GCAP_EXPECT_FAILS(rig.Run(x.get(), y.get()), GCAP_UNAVAILABLE, "node 'negate': the host's kernel");
    rig.host.fails = false;
    for (int run = 0; run < 4; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(gcap_runtime_scratch(rig.device->runtime()), &stats);
    GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(rig.device->runtime())));
  }
}

struct Thrown {};
void Throw() { throw Thrown(); }

TEST_F(SessionHoles, AnExceptionPassesAndTheNextRunIsRight) {
  HolesRig rig;
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 0; run < 6; ++run) {  // an eager one, the captured one, replays
    rig.host.leave = Throw;
    EXPECT_THROW(gcap_status_free(rig.Run(x.get(), y.get())), Thrown);
    rig.host.leave = nullptr;
    if (run >= 2) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
  }
  EXPECT_FALSE(gcap_thread_is_capturing());
  EXPECT_GE(rig.device->Info(0).replays, 4u);
}

gcap_session_t* session_to_end = nullptr;
gcap_code_t answer = GCAP_OK;
void EndTheSession() {
  gcap_status_t status = gcap_session_destroy(session_to_end);
  answer = gcap_status_code(status);
  gcap_status_free(status);
}

TEST_F(SessionHoles, AHoleDoesNotEndTheSession) {
  HolesRig rig;
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats x(Floats(6)), y(Floats(6));
  session_to_end = rig.session;
  rig.host.leave = EndTheSession;
  for (int run = 0; run < 4; ++run) {
    answer = GCAP_OK;
    rig.ExpectRightRun(&x, &y, static_cast<float>(run));
    EXPECT_EQ(answer, GCAP_FAILED_PRECONDITION);
  }
}

// The graphs' memory on the host goes with them.
TEST_F(SessionHoles, AReleasedIdIsCapturedAgain) {
  HolesRig rig;
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int round = 0; round < 3; ++round) {
    for (int run = 0; run < 4; ++run) rig.ExpectRightRun(&x, &y, static_cast<float>(run));
    GCAP_EXPECT_OK(gcap_session_release_captured_graph(rig.session, 0));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
