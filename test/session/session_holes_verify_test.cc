// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Replays of a session whose model has holes, compared with its nodes: taps on both sides of a hole come first, and a
// planted fault is found by the call that a node made, or by the hole that the node is in. On a machine with one device
// the case of device 1 is skipped.

#include <cstring>
#include <string>

#include "gcap/graph_taps.h"
#include "gcap/graph_verify.h"
#include "gtest/gtest.h"
#include "test/session/holes_rig.h"
#include "test/support/device_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// x -> Rotate -> a -> Negate -> b -> Bounce -> c -> Alloc -> d -> Join with f -> y. Negate is on the host and Alloc is
// not capturable, so there are two holes. f = Fill(x), of which every byte is the control's, is first.
ModelBuilder Tapped(NodeControl* alloc, NodeControl* bounce, NodeControl* fill) {
  alloc->capturable = false;
  alloc->misbehave = When::kAlways;
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), b = m.Value("b", {6}), c = m.Value("c", {6});
  const int d = m.Value("d", {6}), f = m.Value("f", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Fill", "fill", {x}, {f}, fill);
  m.Node("Rotate", "rotate", {x}, {a});
  m.Node("Negate", "negate", {a}, {b});
  m.Node("Bounce", "bounce", {b}, {c}, bounce);
  m.Node("Alloc", "alloc", {c}, {d}, alloc);
  m.Node("Join", "join", {d, f}, {y});
  return m;
}

float FilledWith(unsigned char byte) {
  float value = 0;
  std::memset(&value, byte, sizeof(value));
  return value;
}

class SessionHolesVerify : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    gcap_graph_verify_init(&verify_);
    verify_.each = 1;
    verify_.bisect = true;
    verify_.report = &report_;
    gcap_graph_verify_report_init(&report_);
    fill_.fill = 3;
    GCAP_ASSERT_OK(rig_.Create());
    rig_.device->on_compute = TapInput;
  }
  // Taps what a hole made, as a kernel of a provider may that is captured.
  static void TapInput(const char* op, const gcap_kernel_context_t* context) {
    const std::string name = op;
    if (name != "Bounce" && name != "Join") return;
    const gcap_tensor_t& input = context->inputs[0];
    GCAP_EXPECT_OK(gcap_graph_tap_issue(context->resources.cuda_stream, name == "Bounce" ? "b" : "d", input.data,
                                        gcap_tensor_bytes(&input)));
  }

  gcap_status_t Run(const DeviceFloats& x, const DeviceFloats& y, gcap_bindings_t bindings = GCAP_BINDINGS_FIXED,
                    int graph_id = 0) {
    b_ = d_ = Floats(6);
    gcap_graph_tap_t taps[] = {{"b", b_.data(), 6 * sizeof(float), 0}, {"d", d_.data(), 6 * sizeof(float), 0}};
    gcap_run_options_t options = RunOptions(graph_id, true);
    options.bindings = bindings;
    options.verify = &verify_;
    options.taps = taps;
    options.num_taps = 2;
    return rig_.Run(x.get(), y.get(), options);
  }
  Floats ExpectedY(const Floats& x) const {
    const Floats d = Negated(Rotated(x));
    const float f = FilledWith(fill_.fill);
    return {d[0], d[1], d[2], f, f, f};
  }
  void ExpectRight(DeviceFloats* x, DeviceFloats* y, float seed, bool is_verified,
                   gcap_bindings_t bindings = GCAP_BINDINGS_FIXED, int graph_id = 0) {
    x->Set(CountedFrom(seed));
    y->Set(Floats(6, 77.0f));
    GCAP_ASSERT_OK(Run(*x, *y, bindings, graph_id));
    EXPECT_EQ(y->Get(), ExpectedY(CountedFrom(seed)));
    EXPECT_EQ(b_, Negated(Rotated(CountedFrom(seed))));
    EXPECT_EQ(d_, b_);
    EXPECT_EQ(report_.is_verified, is_verified);
    EXPECT_EQ(report_.different, 0u);
    EXPECT_EQ(report_.tap, SIZE_MAX);
  }
  // A graph that was verified once.
  void Capture(DeviceFloats* x, DeviceFloats* y) {
    for (int run = 0; run < 3; ++run) ExpectRight(x, y, 10.0f * static_cast<float>(run), run == 2);
    EXPECT_EQ(rig_.device->Info(0).holes, 2u);
  }

  NodeControl alloc_, bounce_, fill_;
  HolesRig rig_{Tapped(&alloc_, &bounce_, &fill_)};
  Floats b_, d_;  // as the run's taps have them
  gcap_graph_verify_t verify_;
  gcap_graph_verify_report_t report_;
};

TEST_F(SessionHolesVerify, ReplaysAreComparedWithTheNodesAndTheTaps) {
  const LogCatcher log;
  int graph_id = 0;
  for (const gcap_bindings_t bindings : {GCAP_BINDINGS_FIXED, GCAP_BINDINGS_COPY, GCAP_BINDINGS_RELOCATE}) {
    SCOPED_TRACE(bindings);
    DeviceFloats x(Floats(6)), y(Floats(6)), other_x(Floats(6)), other_y(Floats(6));
    for (int run = 0; run < 2; ++run) ExpectRight(&x, &y, static_cast<float>(run), false, bindings, graph_id);
    for (int run = 0; run < 4; ++run) {
      const bool moves = bindings != GCAP_BINDINGS_FIXED && run % 2 == 1;
      const int computes = rig_.host.computes;
      ExpectRight(moves ? &other_x : &x, moves ? &other_y : &y, 5.0f * static_cast<float>(run), true, bindings,
                  graph_id);
      EXPECT_EQ(rig_.host.computes, computes + 2) << "by the replay and by the work";
    }
    EXPECT_EQ(rig_.device->Info(graph_id).captures, 1u);
    ++graph_id;
  }
}

// The graph reads the tensor of its capture. What it makes of that comes through the hole to the first tap.
TEST_F(SessionHolesVerify, AStaleInputShowsInTheFirstTap) {
  DeviceFloats x(Floats(6)), y(Floats(6)), other(CountedFrom(100));
  Capture(&x, &y);
  const LogCatcher log;
  const Outcome run(Run(other, y));
  EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << run.message;
  EXPECT_EQ(report_.tap, 0u) << run.message;
  EXPECT_EQ(report_.buffer, SIZE_MAX) << "taps come before the buffers";
  // A tap that is not listed is compared by bytes: -21 is 0xc1a80000, and -101 0xc2ca0000.
  EXPECT_EQ(report_.element, 2u);
  EXPECT_EQ(report_.replayed, 0xa8);
  EXPECT_EQ(report_.eager, 0xca);
  EXPECT_EQ(report_.fault, GCAP_GRAPH_FAULT_STALE_POINTER) << run.message;
  EXPECT_TRUE(run.Names("stale pointer: node ")) << run.message;
  EXPECT_TRUE(run.Names("tap 'b'")) << run.message;
  EXPECT_EQ(report_.step_buffer, SIZE_MAX) << "a tap: " << run.message;
  EXPECT_EQ(b_, Negated(Rotated(CountedFrom(100)))) << "what the work tapped";
  EXPECT_EQ(y.Get(), ExpectedY(CountedFrom(100))) << "what the work left";
  for (int i = 0; i < 3; ++i) ExpectRight(&other, &y, static_cast<float>(i), i == 2);
}

// Behind both holes: the taps are right, and the tensor is not.
TEST_F(SessionHolesVerify, AStaleOutputBehindTheHolesIsFoundInTheLastSegment) {
  DeviceFloats x(Floats(6)), y(Floats(6)), other(Floats(6));
  Capture(&x, &y);
  const size_t nodes = rig_.device->Info(0).nodes;
  const LogCatcher log;
  const Outcome run(Run(x, other));
  EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << run.message;
  EXPECT_EQ(report_.tap, SIZE_MAX) << run.message;
  EXPECT_EQ(report_.buffer, 1u);
  EXPECT_TRUE(run.Names("buffer 1 'y'")) << run.message;
  EXPECT_EQ(report_.fault, GCAP_GRAPH_FAULT_STALE_POINTER) << run.message;
  EXPECT_EQ(report_.node, nodes - 2) << "the first of the two copies of Join: " << run.message;
  EXPECT_EQ(other.Get(), ExpectedY(CountedFrom(20))) << "what the work left";
}

TEST_F(SessionHolesVerify, AFrozenByteIsFoundThoughItShowsBehindTheHoles) {
  DeviceFloats x(Floats(6)), y(Floats(6));
  Capture(&x, &y);
  fill_.fill = 5;
  const LogCatcher log;
  const Outcome run(Run(x, y));
  EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << run.message;
  EXPECT_EQ(report_.tap, SIZE_MAX) << run.message;
  EXPECT_EQ(report_.fault, GCAP_GRAPH_FAULT_FROZEN_VALUE) << run.message;
  EXPECT_EQ(report_.node, 0u) << "of Fill: " << run.message;
  EXPECT_EQ(y.Get(), ExpectedY(CountedFrom(20))) << "what the work left";
}

// What a node in a hole makes lies in memory that nobody named, and shows where a captured node reads that.
TEST_F(SessionHolesVerify, OfANodeThatDoesSomethingElseEachTimeTheHoleIsNamed) {
  static NodeControl changing;
  changing.capturable = false;
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), f = m.Value("f", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "rotate", {x}, {a});
  m.Node("Fill", "changing", {a}, {f}, &changing);
  m.Node("Join", "join", {a, f}, {y});
  HolesRig rig(m);
  GCAP_ASSERT_OK(rig.Create());
  DeviceFloats in(CountedFrom(1)), out(Floats(6));
  gcap_run_options_t options = RunOptions(0, true);
  options.verify = &verify_;
  for (int run = 0; run < 3; ++run) GCAP_ASSERT_OK(rig.Run(in.get(), out.get(), options));
  EXPECT_TRUE(report_.is_verified);
  rig.device->on_compute = [](const char* op, const gcap_kernel_context_t*) {
    changing.fill = static_cast<unsigned char>(changing.fill + (std::string(op) == "Fill"));
  };
  const LogCatcher log;
  const Outcome run(rig.Run(in.get(), out.get(), options));
  EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << run.message;
  EXPECT_EQ(report_.buffer, 1u) << run.message;
  EXPECT_EQ(report_.element, 3u) << run.message;
  EXPECT_EQ(report_.fault, GCAP_GRAPH_FAULT_UNINITIALIZED) << run.message;
  EXPECT_TRUE(run.Names("or the function of hole 'changing', which comes before, writes there")) << run.message;
}

// The EP's device is not the thread's, also where a hole waits, copies and allocates.
TEST_F(SessionHolesVerify, OnAnotherDeviceThanTheThreadsAFaultIsFoundAsWell) {
  int devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  if (devices < 2) GTEST_SKIP() << "needs two devices, this machine has " << devices;
  HolesRig rig(Tapped(&alloc_, &bounce_, &fill_));
  gcap_options_t of_device = GraphOptions(1);
  of_device.device_id = 1;
  GCAP_ASSERT_OK(rig.Create(of_device));
  rig.device->on_compute = TapInput;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  DeviceFloats x(CountedFrom(1)), y(Floats(6)), other(Floats(6));
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  Floats d(6);
  gcap_graph_tap_t tap = {"d", d.data(), 6 * sizeof(float), 0};
  gcap_run_options_t options = RunOptions(0, true);
  options.verify = &verify_;
  options.taps = &tap;
  options.num_taps = 1;
  for (int run = 0; run < 4; ++run) {
    x.Set(CountedFrom(static_cast<float>(run)));
    GCAP_ASSERT_OK(rig.Run(x.get(), y.get(), options));
    EXPECT_EQ(report_.is_verified, run >= 2);
    EXPECT_EQ(y.Get(), ExpectedY(CountedFrom(static_cast<float>(run))));
    EXPECT_EQ(d, Negated(Rotated(CountedFrom(static_cast<float>(run)))));
  }
  const LogCatcher log;
  const Outcome run(rig.Run(x.get(), other.get(), options));
  EXPECT_STREQ(gcap_code_name(run.code), "REPLAY_DIFFERS") << run.message;
  EXPECT_EQ(report_.buffer, 1u);
  EXPECT_EQ(report_.fault, GCAP_GRAPH_FAULT_STALE_POINTER) << run.message;
  EXPECT_EQ(other.Get(), ExpectedY(CountedFrom(3))) << "what the work left";
  int current = -1;
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 0);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
