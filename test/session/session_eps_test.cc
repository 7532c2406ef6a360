// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions on several EPs: which node is where, what is copied, and which EP may capture. The policies are those of
// ONNX Runtime's OrtGraphCaptureNodeAssignmentPolicy.

#include <memory>
#include <string>
#include <vector>

#include "gcap/kit/session.h"
#include "gtest/gtest.h"
#include "test/session/host_ep.h"
#include "test/session/session_test.h"
#include "test/support/device_test.h"
#include "test/support/log_catcher.h"
#include "test/support/session_info.h"

namespace gcap {
namespace testing {
namespace {

class SessionEps : public DeviceTest {
 protected:
  TestEp* Device(const std::string& name, const std::set<std::string>& ops, bool captures,
                 gcap_graph_node_policy_t policy = GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES) {
    TestEpConfig config;
    config.name = name;
    config.ops = ops;
    config.policy = policy;
    gcap_options_t options = GraphOptions(1);
    options.enable_cuda_graph = captures;
    std::unique_ptr<TestEp> ep;
    GCAP_EXPECT_OK(TestEp::Create(options, config, &ep));
    devices_.push_back(std::move(ep));
    eps_.push_back(devices_.back()->get());
    return devices_.back().get();
  }
  HostEp* Host(const std::set<std::string>& ops = {"Shape", "Add", "Negate"}) {
    hosts_.push_back(std::make_unique<HostEp>(ops));
    eps_.push_back(hosts_.back()->get());
    return hosts_.back().get();
  }
  Outcome Create(const ModelBuilder& m, bool eagerly = false) {
    const gcap_model_t model = m.Model();
    gcap_session_options_t options;
    gcap_session_options_init(&options);
    options.run_eagerly_if_not_capturable = eagerly;
    return Outcome(gcap_session_create(&model, eps_.data(), eps_.size(), &options, &session_));
  }
  gcap_status_t Run(void* x, const std::vector<int64_t>& x_shape, void* y, const std::vector<int64_t>& y_shape,
                    int graph_id = 0, bool synchronize = true) {
    const gcap_tensor_t input = Tensor(x, x_shape), output = Tensor(y, y_shape);
    const gcap_run_options_t options = RunOptions(graph_id, synchronize);
    return gcap_session_run(session_, &options, &input, &output);
  }
  std::string EpOf(int node) const { return gcap_session_node_ep_name(session_, node); }

  void TearDown() override { GCAP_EXPECT_OK(gcap_session_destroy(session_)); }

  std::vector<std::unique_ptr<TestEp>> devices_;
  std::vector<std::unique_ptr<HostEp>> hosts_;
  std::vector<gcap_ep_t*> eps_;
  gcap_session_t* session_ = nullptr;
};

// y = Reshape(Rotate(x), Shape(x) + {1, -1}): of x [2, 3], y is [3, 2].
ModelBuilder ShapeModel() {
  ModelBuilder m;
  const int x = m.Value("x", {2, 3}), a = m.Value("a", {2, 3});
  const int s = m.Value("s", {2}, GCAP_DTYPE_I64), t = m.Value("t", {2}, GCAP_DTYPE_I64);
  const int w = m.Integers("w", {1, -1}), y = m.Value("y", {GCAP_DIM_INFERRED, GCAP_DIM_INFERRED});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "rotate", {x}, {a});
  m.Node("Shape", "shape", {x}, {s});
  m.Node("Add", "add", {s, w}, {t});
  m.Node("Reshape", "reshape", {a, t}, {y});
  return m;
}

const std::set<std::string> kShapeOps = {"Rotate", "Shape", "Reshape"};

TEST_F(SessionEps, ShapeNodesAreMovedToTheHostAndComputedOnce) {
  Device("device", kShapeOps, /*captures=*/false);
  HostEp* host = Host();
  const Outcome created = Create(ShapeModel());
  ASSERT_TRUE(created.ok()) << created.message;
  EXPECT_EQ(EpOf(0) + " " + EpOf(1) + " " + EpOf(2) + " " + EpOf(3), "device host host device");
  EXPECT_STREQ(SessionInfo(session_).ep_name, "device");
  DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
  for (int run = 0; run < 3; ++run) GCAP_ASSERT_OK(Run(x.get(), {2, 3}, y.get(), {3, 2}));
  EXPECT_EQ(y.Get(), Floats({2, 3, 4, 5, 6, 1}));
  EXPECT_EQ(host->computes, 2) << "once for the shapes, not for each run";
  GCAP_EXPECT_FAILS(Run(x.get(), {2, 3}, y.get(), {2, 3}), GCAP_INVALID_ARGUMENT, "output 'y': dimension 0 is 2");
}

// What a node makes for device memory stays there, also if the host could make it.
TEST_F(SessionEps, ShapeNodeWhoseResultADeviceReadsStays) {
  Device("device", {"Shape", "Bounce"}, /*captures=*/false);
  HostEp* host = Host();
  NodeControl control;
  ModelBuilder m;
  const int x = m.Value("x", {2, 3}), s = m.Value("s", {2}, GCAP_DTYPE_I64), y = m.Value("y", {2}, GCAP_DTYPE_I64);
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Shape", "shape", {x}, {s});
  m.Node("Bounce", "bounce", {s}, {y}, &control);
  ASSERT_TRUE(Create(m).ok());
  EXPECT_EQ(EpOf(0), "device");
  DeviceFloats in(Floats(6)), out(Floats(4));
  const gcap_tensor_t input = Tensor(in.get(), {2, 3}), output = Tensor(out.get(), {2}, GCAP_DTYPE_I64);
  GCAP_ASSERT_OK(gcap_session_run(session_, nullptr, &input, &output));
  int64_t sizes[2] = {};
  EXPECT_EQ(cudaMemcpy(sizes, out.get(), sizeof(sizes), cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(sizes[0], 2);
  EXPECT_EQ(sizes[1], 3);
  EXPECT_EQ(host->computes, 0);
}

// ONNX Runtime's cuda_graph_with_shape_nodes.
TEST_F(SessionEps, GraphWithShapeNodesIsCapturedIfThePolicyAllows) {
  TestEp* device = Device("device", kShapeOps, /*captures=*/true);
  HostEp* host = Host();
  const Outcome created = Create(ShapeModel());
  ASSERT_TRUE(created.ok()) << created.message;
  EXPECT_TRUE(SessionInfo(session_).captures);
  DeviceFloats x(Floats(6)), y(Floats(6));
  for (int run = 0; run < 5; ++run) {
    const float f = static_cast<float>(10 * run);
    x.Set({f, f + 1, f + 2, f + 3, f + 4, f + 5});
    GCAP_ASSERT_OK(Run(x.get(), {2, 3}, y.get(), {3, 2}));
    EXPECT_EQ(y.Get(), Floats({f + 1, f + 2, f + 3, f + 4, f + 5, f}));
  }
  EXPECT_EQ(device->Info(0).captures, 1u);
  EXPECT_EQ(device->Info(0).replays, 4u);
  EXPECT_EQ(host->computes, 2);
}

// --- Refusals at creation -------------------------------------------------------------------------------------------

// The refusal names the node, its EP, why, and what to change; run eagerly, the model is right.
void ExpectNotCapturable(const Outcome& outcome, const std::string& node, const std::string& reason) {
  EXPECT_STREQ(gcap_code_name(outcome.code), "FAILED_PRECONDITION");
  EXPECT_TRUE(outcome.Names("cannot capture the model: node " + node)) << outcome.message;
  EXPECT_TRUE(outcome.Names(reason)) << outcome.message;
  EXPECT_TRUE(outcome.Names("run_eagerly_if_not_capturable")) << outcome.message;
}

TEST_F(SessionEps, UnderTheStrictPolicyEveryNodeIsOnTheEp) {
  Device("device", kShapeOps, /*captures=*/true, GCAP_GRAPH_ALL_NODES_ON_EP);
  Host();
  const Outcome outcome = Create(ShapeModel());
  ExpectNotCapturable(outcome, "'shape' (Shape) on EP 'host'",
                      "is not on it, and its policy is GCAP_GRAPH_ALL_NODES_ON_EP. To run the model: ");
  EXPECT_TRUE(outcome.Names("GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES, which allows this model")) << outcome.message;
  EXPECT_TRUE(outcome.Names("set allow_holes, or give the EP the policy GCAP_GRAPH_ALLOW_HOLES, under which nodes"))
      << outcome.message;
  EXPECT_EQ(session_, nullptr);
}

TEST_F(SessionEps, NodeOnAnotherDeviceEpIsRefusedUnderBothPolicies) {
  for (auto policy : {GCAP_GRAPH_ALL_NODES_ON_EP, GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES}) {
    eps_.clear();
    Device("first", {"Rotate"}, /*captures=*/true, policy);
    Device("second", {"Reshape"}, /*captures=*/false);
    Host();
    const Outcome outcome = Create(ShapeModel());
    ExpectNotCapturable(outcome, policy == GCAP_GRAPH_ALL_NODES_ON_EP ? "'shape'" : "'reshape'",
                        policy == GCAP_GRAPH_ALL_NODES_ON_EP ? "is not on it" : "is on another device EP");
    EXPECT_FALSE(outcome.Names("which allows this model")) << "the other policy would refuse the model, too";
  }
}

// x -> Rotate -> a -> Negate -> b -> Rotate -> y, with the middle on the host.
ModelBuilder ThereAndBack() {
  ModelBuilder m;
  const int x = m.Value("x", {6}), a = m.Value("a", {6}), b = m.Value("b", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "there", {x}, {a});
  m.Node("Negate", "negate", {a}, {b});
  m.Node("Rotate", "back", {b}, {y});
  return m;
}

TEST_F(SessionEps, CopyBetweenEpsIsRefused) {
  Device("device", {"Rotate"}, /*captures=*/true);
  Host();
  ExpectNotCapturable(Create(ThereAndBack()), "'negate' (Negate) on EP 'host'",
                      "reads 'a' in host memory, and the value is in device");
}

// An EP that captures nothing itself is asked when a caller captures.
TEST_F(SessionEps, ARunInTheCallersCaptureIsRefusedWhereAHostNodeWouldBeMissing) {
  TestEp* device = Device("device", {"Rotate"}, /*captures=*/false);
  HostEp* host = Host();
  ASSERT_TRUE(Create(ThereAndBack()).ok());
  DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
  GCAP_ASSERT_OK(Run(x.get(), {6}, y.get(), {6}));
  const int computes = host->computes;
  gcap_run_resources_t resources;
  GCAP_ASSERT_OK(gcap_runtime_get_resources(device->runtime(), &resources));
  gcap_capture_t* capture = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(resources.stream), nullptr, &capture));
  GCAP_EXPECT_FAILS(Run(x.get(), {6}, y.get(), {6}), GCAP_FAILED_PRECONDITION,
                    "node 'negate' (Negate) on EP 'host' reads 'a' in host memory");
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "'negate' (Negate)");
  EXPECT_EQ(host->computes, computes);
}

TEST_F(SessionEps, EpWithoutANodeIsRefused) {
  Host();
  Device("device", {"Rotate"}, /*captures=*/true);
  ModelBuilder m;
  const int s = m.Value("s", {2}, GCAP_DTYPE_I64), t = m.Value("t", {1}, GCAP_DTYPE_I64), x = m.Value("x", {2, 3});
  m.inputs = {x};
  m.Node("Shape", "shape", {x}, {s});
  m.Node("Shape", "shape_of_shape", {s}, {t});
  const Outcome outcome = Create(m);
  EXPECT_STREQ(gcap_code_name(outcome.code), "FAILED_PRECONDITION");
  EXPECT_TRUE(outcome.Names("no node of the model is on it")) << outcome.message;
}

TEST_F(SessionEps, OutputThatTheHostMakesIsRefused) {
  Device("device", {"Rotate"}, /*captures=*/true);
  Host();
  ModelBuilder m;
  const int x = m.Value("x", {6}), y = m.Value("y", {6}), s = m.Value("s", {1}, GCAP_DTYPE_I64);
  m.inputs = {x};
  m.outputs = {y, s};
  m.Node("Rotate", "rotate", {x}, {y});
  m.Node("Shape", "shape", {x}, {s});
  ExpectNotCapturable(Create(m), "'shape' (Shape) on EP 'host'", "makes the model's output 's' on the host");
}

// The first EP that captures is asked, also where a later one has all the nodes.
TEST_F(SessionEps, FirstEpThatCapturesIsChosen) {
  Device("eager", {"Rotate"}, /*captures=*/false);
  Device("idle", {}, /*captures=*/true);
  Device("whole", {"Rotate", "Bounce"}, /*captures=*/true);
  ModelBuilder m;
  const int x = m.Value("x", {6}), y = m.Value("y", {6});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Rotate", "rotate", {x}, {y});
  const Outcome outcome = Create(m);
  ExpectNotCapturable(outcome, "'rotate' (Rotate) on EP 'eager'", "is on another device EP");
  EXPECT_TRUE(outcome.Names("EP 'idle' cannot capture")) << outcome.message;
}

// --- Copies ---------------------------------------------------------------------------------------------------------

TEST_F(SessionEps, RunsEagerlyIfAskedWithOneWarning) {
  LogCatcher log;
  TestEp* device = Device("device", {"Rotate"}, /*captures=*/true);
  Host();
  ASSERT_TRUE(Create(ThereAndBack(), /*eagerly=*/true).ok());
  EXPECT_FALSE(SessionInfo(session_).captures);
  DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
  for (int run = 0; run < 4; ++run) {
    y.Set(Floats(6));
    GCAP_ASSERT_OK(Run(x.get(), {6}, y.get(), {6}));
    EXPECT_EQ(y.Get(), Floats({-3, -4, -5, -6, -1, -2}));
  }
  EXPECT_EQ(device->Info(0).captures, 0u);
  const size_t first = log.text().find("a session runs eagerly");
  EXPECT_NE(first, std::string::npos) << log.text();
  EXPECT_EQ(log.text().find("a session runs eagerly", first + 1), std::string::npos) << log.text();
}

TEST_F(SessionEps, ValuesCrossToTheHostAndBack) {
  Device("device", {"Rotate"}, /*captures=*/false);
  HostEp* host = Host();
  ASSERT_TRUE(Create(ThereAndBack()).ok());
  constexpr int kRuns = 6;
  std::vector<std::unique_ptr<DeviceFloats>> x, y;
  for (int run = 0; run < kRuns; ++run) {
    const float f = static_cast<float>(run);
    x.push_back(std::make_unique<DeviceFloats>(Floats({f, f + 1, f + 2, f + 3, f + 4, f + 5})));
    y.push_back(std::make_unique<DeviceFloats>(Floats(6)));
  }
  // Nobody waits between the runs, whose copies to the device may read the host's memory after the run returned.
  for (int run = 0; run < kRuns; ++run) {
    GCAP_ASSERT_OK(Run(x[run]->get(), {6}, y[run]->get(), {6}, 0, /*synchronize=*/false));
  }
  GCAP_ASSERT_OK(gcap_runtime_synchronize(gcap_ep_runtime(devices_[0]->get())));
  for (int run = 0; run < kRuns; ++run) {
    const float f = static_cast<float>(run);
    EXPECT_EQ(y[run]->Get(), Floats({-f - 2, -f - 3, -f - 4, -f - 5, -f, -f - 1}));
  }
  EXPECT_EQ(host->computes, kRuns);
}

TEST_F(SessionEps, FailureOfAHostNodeNamesItAndTheNextRunIsRight) {
  Device("device", {"Rotate"}, /*captures=*/false);
  HostEp* host = Host();
  ASSERT_TRUE(Create(ThereAndBack()).ok());
  DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
  host->fails = true;
  GCAP_EXPECT_FAILS(Run(x.get(), {6}, y.get(), {6}), GCAP_UNAVAILABLE, "node 'negate': the host's kernel was told");
  host->fails = false;
  GCAP_ASSERT_OK(Run(x.get(), {6}, y.get(), {6}));
  EXPECT_EQ(y.Get(), Floats({-3, -4, -5, -6, -1, -2}));
}

// An input that the device and the host read is bound on the device; one that only the host reads, on the host; one of
// which only the shape is read, on the device. What the host makes is bound there.
TEST_F(SessionEps, InputsAndOutputsAreBoundWhereTheyAreReadAndMade) {
  Device("device", {"Rotate"}, /*captures=*/false);
  Host();
  ModelBuilder m;
  const int both = m.Value("both", {3}), only = m.Value("only", {3});
  const int shape_only = m.Value("shape_only", {3}), s = m.Value("s", {1}, GCAP_DTYPE_I64);
  const int a = m.Value("a", {3}), b = m.Value("b", {3}), c = m.Value("c", {3});
  m.inputs = {both, only, shape_only};
  m.outputs = {a, b, c};
  m.Node("Negate", "first", {both}, {a});
  m.Node("Rotate", "second", {both}, {b});
  m.Node("Negate", "third", {only}, {c});
  m.Node("Shape", "fourth", {shape_only}, {s});
  ASSERT_TRUE(Create(m).ok());
  EXPECT_EQ(gcap_session_input_memory(session_, 0).kind, GCAP_MEMORY_DEVICE);
  EXPECT_EQ(gcap_session_input_memory(session_, 1).kind, GCAP_MEMORY_HOST);
  EXPECT_EQ(gcap_session_input_memory(session_, 2).kind, GCAP_MEMORY_DEVICE);
  EXPECT_EQ(gcap_session_output_memory(session_, 0).kind, GCAP_MEMORY_HOST);
  EXPECT_EQ(gcap_session_output_memory(session_, 1).kind, GCAP_MEMORY_DEVICE);
  EXPECT_EQ(gcap_session_output_memory(session_, 2).kind, GCAP_MEMORY_HOST);
  DeviceFloats x({1, 2, 3}), y(Floats(3));
  Floats host_x = {4, 5, 6}, host_a(3), host_c(3);
  const gcap_tensor_t inputs[] = {Tensor(x.get(), {3}), Tensor(host_x.data(), {3}), Tensor(x.get(), {3})};
  const gcap_tensor_t outputs[] = {Tensor(host_a.data(), {3}), Tensor(y.get(), {3}), Tensor(host_c.data(), {3})};
  for (int run = 0; run < 3; ++run) {
    host_x[0] = static_cast<float>(run);
    GCAP_ASSERT_OK(gcap_session_run(session_, nullptr, inputs, outputs));
    EXPECT_EQ(host_a, Floats({-1, -2, -3}));
    EXPECT_EQ(y.Get(), Floats({2, 3, 1}));
    EXPECT_EQ(host_c, Floats({-static_cast<float>(run), -5, -6}));
  }
}

// A graph would keep the content of the captured run, so such a model is not captured; eager runs read it anew.
TEST_F(SessionEps, ContentThatARunBindsOnTheHostIsNotCaptured) {
  Device("device", {"Reshape"}, /*captures=*/true);
  ModelBuilder m;
  const int x = m.Value("x", {2, 3}), s = m.Value("s", {2}, GCAP_DTYPE_I64), y = m.Value("y", {3, 2});
  m.inputs = {x, s};
  m.outputs = {y};
  m.Node("Reshape", "reshape", {x, s}, {y});
  ExpectNotCapturable(Create(m), "'reshape' (Reshape) on EP 'device'", "reads the content of 's' on the host");
  ASSERT_TRUE(Create(m, /*eagerly=*/true).ok());
  EXPECT_EQ(gcap_session_input_memory(session_, 1).kind, GCAP_MEMORY_HOST);
  DeviceFloats in({1, 2, 3, 4, 5, 6}), out(Floats(6));
  int64_t sizes[] = {3, 2};
  const gcap_tensor_t inputs[] = {Tensor(in.get(), {2, 3}), Tensor(sizes, {2}, GCAP_DTYPE_I64)};
  const gcap_tensor_t output = Tensor(out.get(), {3, 2});
  for (int run = 0; run < 3; ++run) GCAP_ASSERT_OK(gcap_session_run(session_, nullptr, inputs, &output));
  EXPECT_EQ(out.Get(), Floats({1, 2, 3, 4, 5, 6}));
}

// --- Callbacks that do not return -----------------------------------------------------------------------------------

struct Thrown {};
void Throw() { throw Thrown(); }

TEST_F(SessionEps, ExceptionOfAHostNodePassesAndLeavesNothingBehind) {
  TestEp* device = Device("device", {"Rotate"}, /*captures=*/false);
  HostEp* host = Host();
  ASSERT_TRUE(Create(ThereAndBack()).ok());
  DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
  host->leave = Throw;
  EXPECT_THROW(gcap_status_free(Run(x.get(), {6}, y.get(), {6})), Thrown);
  host->leave = nullptr;
  gcap_allocator_stats_t stats;
  gcap_scratch_get_stats(gcap_runtime_scratch(device->runtime()), &stats);
  EXPECT_EQ(stats.requested_in_use_bytes, 0u);
  GCAP_ASSERT_OK(Run(x.get(), {6}, y.get(), {6}));
  EXPECT_EQ(y.Get(), Floats({-3, -4, -5, -6, -1, -2}));
}

TEST_F(SessionEps, ExceptionOfAShapeNodeLeavesNoSessionAndNoPlan) {
  TestEp* device = Device("device", kShapeOps, /*captures=*/false);
  HostEp* host = Host();
  ModelBuilder m = ShapeModel();
  host->leave = Throw;
  EXPECT_THROW(Create(m), Thrown);
  EXPECT_EQ(session_, nullptr);
  EXPECT_EQ(device->live_kernels() + host->live_kernels, 0);
  m.values[0].shape[0] = m.values[1].shape[0] = m.Symbol("rows");  // then the first run computes it
  ASSERT_TRUE(Create(m).ok());
  DeviceFloats x({1, 2, 3, 4, 5, 6}), y(Floats(6));
  EXPECT_THROW(gcap_status_free(Run(x.get(), {2, 3}, y.get(), {3, 2})), Thrown);
  EXPECT_EQ(device->live_kernels() + host->live_kernels, 0);
  host->leave = nullptr;
  GCAP_ASSERT_OK(Run(x.get(), {2, 3}, y.get(), {3, 2}));
  EXPECT_EQ(y.Get(), Floats({2, 3, 4, 5, 6, 1}));
}

TEST_F(SessionEps, ModelOfTheHostAloneRuns) {
  HostEp* host = Host();
  ModelBuilder m;
  const int x = m.Value("x", {3}), a = m.Value("a", {3}), y = m.Value("y", {3});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Negate", "first", {x}, {a});
  m.Node("Negate", "second", {a}, {y});
  ASSERT_TRUE(Create(m).ok());
  EXPECT_STREQ(SessionInfo(session_).ep_name, "host");
  Floats in = {1, 2, 3}, out(3);
  GCAP_ASSERT_OK(Run(in.data(), {3}, out.data(), {3}));
  EXPECT_EQ(out, in);
  EXPECT_EQ(host->computes, 2);
  GCAP_EXPECT_FAILS(gcap_session_release_captured_graph(session_, 3), GCAP_FAILED_PRECONDITION,
                    "EP 'host' cannot release graph id 3");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
