// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs, captures and replays by a real ONNX Runtime.

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "test/ort/onnx_model.h"
#include "test/ort/runtime.h"

namespace gcap {
namespace testing {
namespace {

const Options kGraphs = {{"enable_cuda_graph", "1"}};

Options Id(const std::string& id) { return {{"gpu_graph_id", id}}; }

// c = a * b, matrices of any sizes; exact for small whole numbers.
std::string MatMul(const Shape& a, const Shape& b, const Shape& c) {
  return OnnxModel().Node("MatMul", "matmul", {"a", "b"}, {"c"}).Input("a", a).Input("b", b).Output("c", c).Bytes();
}

// c = relu(a + b) + b.
std::string Sums() {
  return OnnxModel()
      .Node("Add", "inner", {"a", "b"}, {"s"})
      .Node("Relu", "relu", {"s"}, {"r"})
      .Node("Add", "outer", {"r", "b"}, {"c"})
      .Input("a", {4})
      .Input("b", {4})
      .Output("c", {4})
      .Bytes();
}

// A tensor of floats in host memory.
class HostTensor {
 public:
  HostTensor(const Ort* ort, const Shape& shape, const Floats& values) : ort_(ort), values_(values) {
    gcap_ort_memory_info_t* info = nullptr;
    EXPECT_EQ(ort->Take(ort->api().CreateCpuMemoryInfo(GCAP_ORT_DEVICE_ALLOCATOR, GCAP_ORT_MEM_DEFAULT, &info)), "");
    EXPECT_EQ(ort->Take(ort->api().CreateTensorWithDataAsOrtValue(info, values_.data(), values_.size() * sizeof(float),
                                                                  shape.data(), shape.size(), GCAP_ORT_FLOAT, &value_)),
              "");
    ort->api().ReleaseMemoryInfo(info);
  }
  HostTensor(const HostTensor&) = delete;
  HostTensor& operator=(const HostTensor&) = delete;
  ~HostTensor() { ort_->api().ReleaseValue(value_); }
  gcap_ort_value_t* value() const { return value_; }

 private:
  const Ort* ort_;
  Floats values_;
  gcap_ort_value_t* value_ = nullptr;
};

class GraphTest : public OrtTest {
 protected:
  DeviceTensor Tensor(const Shape& shape, const Floats& values) {
    return DeviceTensor(ort_, env(), device(), shape, values);
  }

  // A session of Sums() with its tensors bound in device memory; b is 1, 2, 3, 4.
  struct SumsRun {
    SumsRun(GraphTest* test, const Floats& of_a, const Options& options = kGraphs,
            const gcap_ort_ep_device_t* second = nullptr)
        : session(test->ort_, test->env(), test->device(), Sums(), options, second),
          a(test->Tensor({4}, of_a)),
          b(test->Tensor({4}, {1, 2, 3, 4})),
          c(test->Tensor({4}, {0, 0, 0, 0})) {
      if (!session.error().empty()) return;
      session.BindInput("a", a);
      session.BindInput("b", b);
      session.BindOutput("c", c);
    }

    OrtSession session;
    DeviceTensor a, b, c;
  };
};

TEST_F(GraphTest, EagerRun) {
  OrtSession session(ort_, env(), device(), MatMul({2, 2}, {2, 2}, {2, 2}), {});
  ASSERT_EQ(session.error(), "");
  Floats c;
  EXPECT_EQ(session.RunOnHost({"a", "b"}, {{2, 2}, {2, 2}}, {{1, 2, 3, 4}, {5, 6, 7, 8}}, "c", &c), "");
  EXPECT_EQ(c, (Floats{19, 22, 43, 50}));
  EXPECT_EQ(plugin().computes, 1);
}

// Another domain has operators of the same names, so the EP is told which it is.
TEST_F(GraphTest, AnOperatorOfAnotherDomain) {
  const std::string model = OnnxModel()
                                .Int("transB", 1)
                                .Node("FusedMatMul", "product", {"a", "b"}, {"c"}, "com.microsoft")
                                .Input("a", {2, 2})
                                .Input("b", {2, 2})
                                .Output("c", {2, 2})
                                .Bytes();
  OrtSession session(ort_, env(), device(), model, {});
  ASSERT_EQ(session.error(), "");
  Floats c;
  EXPECT_EQ(session.RunOnHost({"a", "b"}, {{2, 2}, {2, 2}}, {{1, 2, 3, 4}, {5, 6, 7, 8}}, "c", &c), "");
  EXPECT_EQ(c, (Floats{17, 23, 39, 53}));
  EXPECT_EQ(plugin().computes, 1);
}

TEST_F(GraphTest, CaptureAndReplayWithUpdatedInput) {
  OrtSession session(ort_, env(), device(), MatMul({2, 2}, {2, 2}, {2, 2}), kGraphs);
  ASSERT_EQ(session.error(), "");
  DeviceTensor a = Tensor({2, 2}, {1, 2, 3, 4}), b = Tensor({2, 2}, {5, 6, 7, 8}), c = Tensor({2, 2}, {});
  session.BindInput("a", a);
  session.BindInput("b", b);
  session.BindOutput("c", c);
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(c.Get(), (Floats{19, 22, 43, 50}));
  EXPECT_EQ(plugin().captured_computes, 1) << "one call of the application warms up, captures and launches";
  const int computes = plugin().computes;
  a.Set({1, 0, 0, 1});
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(c.Get(), (Floats{5, 6, 7, 8}));
  EXPECT_EQ(plugin().computes, computes) << "a replay calls no kernel";
}

TEST_F(GraphTest, IntermediateValuesAreTheGraphs) {
  SumsRun sums(this, {1, -9, 3, 4});
  ASSERT_EQ(sums.session.error(), "");
  EXPECT_EQ(sums.session.Run(), "");
  EXPECT_EQ(sums.c.Get(), (Floats{3, 2, 9, 12}));
  // Eager runs of the same session allocate in between, and overwrite nothing of the graph.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sums.session.Run(Id("-1")), "");
  sums.a.Set({0, 0, 0, 0});
  EXPECT_EQ(sums.session.Run(), "");
  EXPECT_EQ(sums.c.Get(), (Floats{2, 4, 6, 8}));
}

// Upstream's Sync waits for the device, in each replay. Here each call waits for the thread's stream, once at most.
TEST_F(GraphTest, NothingWaitsForTheDevice) {
  SumsRun sums(this, {1, -9, 3, 4});
  ASSERT_EQ(sums.session.error(), "");
  const auto calls = Find<uint64_t (*)(const char*)>("gcap_sim_calls");
  const uint64_t device_waits = calls("cudaDeviceSynchronize");
  EXPECT_EQ(sums.session.Run(), "");
  const uint64_t waits = calls("cudaStreamSynchronize"), launches = calls("cudaGraphLaunch");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sums.session.Run(), "");
  EXPECT_EQ(calls("cudaStreamSynchronize") - waits, 5u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sums.session.Run({{"disable_synchronize_execution_providers", "1"}}), "");
  EXPECT_EQ(calls("cudaGraphLaunch") - launches, 10u);
  // 1.26 does not say whether a replay is to wait.
  EXPECT_EQ(calls("cudaStreamSynchronize") - waits, ort_->version() < 27 ? 10u : 5u);
  EXPECT_EQ(calls("cudaDeviceSynchronize"), device_waits);
}

TEST_F(GraphTest, IdsStandForShapes) {
  OrtSession session(ort_, env(), device(), MatMul({kAnySize, kAnySize}, {kAnySize, kAnySize}, {kAnySize, kAnySize}),
                     kGraphs);
  ASSERT_EQ(session.error(), "");
  DeviceTensor a1 = Tensor({1, 2}, {1, 2}), b1 = Tensor({2, 1}, {3, 4}), c1 = Tensor({1, 1}, {});
  DeviceTensor a2 = Tensor({2, 1}, {1, 2}), b2 = Tensor({1, 2}, {3, 4}), c2 = Tensor({2, 2}, {});
  const auto run1 = [&] {
    session.BindInput("a", a1);
    session.BindInput("b", b1);
    session.BindOutput("c", c1);
    return session.Run(Id("1"));
  };
  const auto run2 = [&] {
    session.BindInput("a", a2);
    session.BindInput("b", b2);
    session.BindOutput("c", c2);
    return session.Run(Id("2"));
  };
  EXPECT_EQ(run1(), "");
  EXPECT_EQ(run2(), "");
  EXPECT_EQ(c1.Get(), (Floats{11}));
  EXPECT_EQ(c2.Get(), (Floats{3, 4, 6, 8}));
  const int computes = plugin().computes;
  a1.Set({2, 2});
  a2.Set({0, 1});
  EXPECT_EQ(run2(), "");
  EXPECT_EQ(run1(), "");
  EXPECT_EQ(c1.Get(), (Floats{14}));
  EXPECT_EQ(c2.Get(), (Floats{0, 0, 3, 4}));
  EXPECT_EQ(plugin().computes, computes);
}

TEST_F(GraphTest, MinusOneIsNeverCaptured) {
  SumsRun sums(this, {1, 1, 1, 1});
  ASSERT_EQ(sums.session.error(), "");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sums.session.Run(Id("-1")), "");
  EXPECT_EQ(plugin().computes, 15);
  EXPECT_EQ(plugin().captured_computes, 0);
}

TEST_F(GraphTest, IdThatIsNoNumberIsRefused) {
  OrtSession session(ort_, env(), device(), Sums(), kGraphs);
  ASSERT_EQ(session.error(), "");
  Floats c;
  const std::string error = session.RunOnHost({"a", "b"}, {{4}, {4}}, {{1, 2, 3, 4}, {1, 2, 3, 4}}, "c", &c, Id("abc"));
  EXPECT_NE(error.find("abc"), std::string::npos) << error;
}

// --- Options of a run -----------------------------------------------------------------------------------------------

// ONNX Runtime asks for a replay without naming the run's tensors. So an option that needs them is refused before there
// is a graph. Was: nobody read them, and a run on other tensors had its outputs nowhere.
TEST_F(GraphTest, OptionsOfARunThatNoReplayCanKeepAreRefusedByName) {
  const struct {
    const char *key, *value, *told;
  } rows[] = {{"check_bindings", "1", "check_bindings is '1'"},
              {"bindings", "copy", "bindings is 'copy'"},
              {"bindings", "relocate", "bindings is 'relocate'"},
              {"bindings", "elsewhere", "elsewhere"},
              {"rerun_failed_capture", "maybe", "maybe"},
              {"capture_in_run", "2", "capture_in_run"},
              {"user_compute_stream", "4096", "user_compute_stream is 0x1000"},
              {"capture_only", "1", "capture_only is '1'"},
              {"verify", "4096", "verify is 0x1000"},
              {"external_device_graph_capture", "1", "external_device_graph_capture"}};
  for (const auto& row : rows) {
    SumsRun sums(this, {1, 1, 1, 1});
    ASSERT_EQ(sums.session.error(), "");
    for (int i = 0; i < 2; ++i) {
      const std::string error = sums.session.Run({{row.key, row.value}});
      EXPECT_NE(error.find(row.told), std::string::npos) << error;
    }
    EXPECT_EQ(plugin().computes, 0) << row.key;
    EXPECT_EQ(sums.session.Run(), "");
    EXPECT_EQ(sums.c.Get(), (Floats{3, 5, 7, 9}));
    plugin().computes = 0;
  }
}

TEST_F(GraphTest, PinnedGraphIsNotTakenByTheBudget) {
  for (const std::string pinned : {"0", "1"}) {
    SumsRun sums(this, {1, 1, 1, 1}, {{"enable_cuda_graph", "1"}, {"graph.max_graphs", "1"}});
    ASSERT_EQ(sums.session.error(), "");
    EXPECT_EQ(sums.session.Run({{"gpu_graph_id", "1"}, {"pinned", pinned}}), "");
    EXPECT_EQ(sums.session.Run(Id("2")), "");
    const int computes = plugin().computes;
    EXPECT_EQ(sums.session.Run(Id("1")), "");
    EXPECT_EQ(plugin().computes == computes, pinned == "1") << "a replay";
  }
}

TEST_F(GraphTest, RunWithoutAGraphIsOnItsOwnTensorsWhateverTheBindings) {
  SumsRun sums(this, {1, 1, 1, 1});
  ASSERT_EQ(sums.session.error(), "");
  for (const Options& options :
       {Options{{"check_bindings", "1"}}, {{"bindings", "copy"}}, {{"bindings", "relocate"}}}) {
    Options eager = options;
    eager.push_back({"gpu_graph_id", "-1"});
    DeviceTensor c = Tensor({4}, {0, 0, 0, 0});
    sums.session.BindOutput("c", c);
    EXPECT_EQ(sums.session.Run(eager), "");
    EXPECT_EQ(c.Get(), (Floats{3, 5, 7, 9}));
    sums.session.BindOutput("c", sums.c);
  }
  SumsRun without(this, {1, 1, 1, 1}, {});
  EXPECT_EQ(without.session.Run({{"check_bindings", "1"}}), "") << "graphs are off";
}

// What a kernel reads in host memory is read at the capture, and ONNX Runtime asks for a replay without naming the
// run's tensors. Was: each replay used what the input held in the captured run, and answered OK.
TEST_F(GraphTest, ContentThatAKernelReadsOnTheHostIsRefusedForGraphsByName) {
  OnnxModel clip, reshape, with_default;
  clip.Node("Clip", "clip", {"a", "low"}, {"c"}).Input("a", {4}).Input("low", {}).Output("c", {4});
  with_default = clip;
  with_default.Constant("low", {}, Floats{0});  // a run may bring another one
  for (const OnnxModel& model : {clip, with_default}) {
    OrtSession session(ort_, env(), device(), model.Bytes(), kGraphs);
    ASSERT_EQ(session.error(), "");
    DeviceTensor a = Tensor({4}, {1, 2, 3, 4}), c = Tensor({4}, {});
    for (const float low : {2.f, 3.f}) {
      OrtBinding binding(ort_, session.get());
      binding.BindInput("a", a);
      binding.BindOutput("c", c);
      const HostTensor bound(ort_, {}, {low});
      Ok(api().BindInput(binding.get(), "low", bound.value()));
      for (int i = 0; i < 2; ++i) {
        const std::string error = binding.Run(Id("7"));
        EXPECT_NE(error.find("graph id 7: node 'clip' (Clip) reads 'low' on the host"), std::string::npos) << error;
        EXPECT_NE(error.find("make 'low' a constant of the model, or run with gpu_graph_id -1"), std::string::npos);
      }
      EXPECT_EQ(binding.Run(Id("-1")), "");
      EXPECT_EQ(c.Get(), (Floats{std::max(1.f, low), std::max(2.f, low), 3, 4}));
    }
  }
  EXPECT_EQ(plugin().captured_computes, 0);
}

TEST_F(GraphTest, ContentOnTheHostThatIsOneInEachRunIsNoObstacle) {
  const std::vector<int64_t> none;
  const struct {
    OnnxModel model;
    Shape of_c;
  } rows[] = {{OnnxModel().Node("Clip", "clip", {"a", "low"}, {"c"}).Constant("low", {}, Floats{-100}), {1}},
              {OnnxModel().Node("Reshape", "reshape", {"a", "none"}, {"c"}).Constant("none", {0}, none), {}},
              {OnnxModel().Node("Shape", "shape", {"a"}, {"s"}).Node("Reshape", "reshape", {"a", "s"}, {"c"}), {1}}};
  for (const auto& row : rows) {
    const std::string model = OnnxModel(row.model).Input("a", {kAnySize}).Output("c", row.of_c).Bytes();
    OrtSession session(ort_, env(), device(), model, kGraphs);
    ASSERT_EQ(session.error(), "");
    DeviceTensor a = Tensor({1}, {1}), c = Tensor(row.of_c, {});
    session.BindInput("a", a);
    session.BindOutput("c", c);
    plugin().computes = plugin().captured_computes = 0;
    ASSERT_EQ(session.Run(), "");
    EXPECT_EQ(plugin().captured_computes, 1);
    const int computes = plugin().computes;
    a.Set({5});
    EXPECT_EQ(session.Run(), "");
    EXPECT_EQ(c.Get(), (Floats{5}));
    EXPECT_EQ(plugin().computes, computes) << "a replay";
  }
}

// A model that changes its inputs in place is not run three times in a call.
TEST_F(GraphTest, CallIsOneRunIfAskedFor) {
  SumsRun sums(this, {1, 1, 1, 1});
  ASSERT_EQ(sums.session.error(), "");
  const Options once = {{"capture_in_run", "0"}};
  for (int i = 0; i < 2; ++i) EXPECT_EQ(sums.session.Run(once), "");
  EXPECT_EQ(plugin().computes, 6);
  EXPECT_EQ(plugin().captured_computes, 0);
  EXPECT_EQ(sums.session.Run(once), "");
  EXPECT_EQ(plugin().captured_computes, 3);
  EXPECT_EQ(sums.session.Run(once), "");
  EXPECT_EQ(plugin().computes, 9) << "a replay";
  EXPECT_EQ(sums.c.Get(), (Floats{3, 5, 7, 9}));
}

TEST_F(GraphTest, FailedCaptureIsToldIfTheRunSaysSo) {
  SumsRun sums(this, {1, 1, 1, 1});
  ASSERT_EQ(sums.session.error(), "");
  plugin().fails = TEST_PLUGIN_IN_CAPTURE;
  plugin().failing_node = "relu";
  const std::string error = sums.session.Run({{"rerun_failed_capture", "0"}});
  EXPECT_NE(error.find("the test makes the kernel of 'relu' fail"), std::string::npos) << error;
  EXPECT_EQ(sums.session.Run(), "");
  EXPECT_EQ(sums.c.Get(), (Floats{3, 5, 7, 9}));
}

// What docs/ort.md tells of ONNX Runtime: a replay is on the tensors of the capture, whatever is bound, and has no
// outputs for a call that binds none.
TEST_F(GraphTest, ReplayIsOnTheTensorsOfTheCapture) {
  SumsRun sums(this, {1, 1, 1, 1});
  ASSERT_EQ(sums.session.error(), "");
  EXPECT_EQ(sums.session.Run(), "");
  DeviceTensor a = Tensor({4}, {5, 5, 5, 5}), c = Tensor({4}, {99, 99, 99, 99});
  sums.session.BindInput("a", a);
  sums.session.BindOutput("c", c);
  sums.a.Set({2, 2, 2, 2});
  EXPECT_EQ(sums.session.Run(), "");
  EXPECT_EQ(c.Get(), (Floats{99, 99, 99, 99}));
  EXPECT_EQ(sums.c.Get(), (Floats{4, 6, 8, 10}));
  Floats of_call;
  EXPECT_EQ(sums.session.RunOnHost({"a", "b"}, {{4}, {4}}, {{1, 1, 1, 1}, {1, 2, 3, 4}}, "c", &of_call), "");
  EXPECT_TRUE(of_call.empty());
}

// --- Failures -------------------------------------------------------------------------------------------------------

TEST_F(GraphTest, KernelThatFailsInTheCaptureLeavesNoPartOfAGraph) {
  SumsRun sums(this, {1, 1, 1, 1});
  ASSERT_EQ(sums.session.error(), "");
  plugin().fails = TEST_PLUGIN_IN_CAPTURE;
  plugin().failing_node = "relu";
  // Each run gives what it should, whether or not it tries a capture.
  for (int i = 0; i < 20; ++i) {
    const float x = static_cast<float>(i);
    sums.a.Set({x, x, x, x});
    EXPECT_EQ(sums.session.Run(), "");
    EXPECT_EQ(sums.c.Get(), (Floats{x + 2, x + 4, x + 6, x + 8}));
  }
  EXPECT_GT(plugin().captured_computes, 0);
  plugin().fails = TEST_PLUGIN_NEVER;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sums.session.Run(), "");
  const int computes = plugin().computes;
  sums.a.Set({0, 0, 0, 0});
  EXPECT_EQ(sums.session.Run(), "");
  EXPECT_EQ(sums.c.Get(), (Floats{2, 4, 6, 8}));
  EXPECT_EQ(plugin().computes, computes) << "once nothing fails there is a graph";
}

// ONNX Runtime's runs have no holes: such a session runs, and has no graph.
TEST_F(GraphTest, KernelThatIsNotCapturableIsInNoGraph) {
  plugin().not_capturable = true;
  plugin().failing_node = "relu";
  SumsRun sums(this, {1, 1, 1, 1});
  ASSERT_EQ(sums.session.error(), "");
  for (int i = 0; i < 20; ++i) {
    const float x = static_cast<float>(i);
    sums.a.Set({x, x, x, x});
    const int computes = plugin().computes;
    EXPECT_EQ(sums.session.Run(), "");
    EXPECT_EQ(sums.c.Get(), (Floats{x + 2, x + 4, x + 6, x + 8}));
    EXPECT_GE(plugin().computes, computes + 3) << "no replay";
  }
  EXPECT_GT(plugin().captured_computes, 0) << "of the node before";
  std::string error;
  for (int i = 0; i < 20 && error.empty(); ++i) error = sums.session.Run({{"rerun_failed_capture", "0"}});
  EXPECT_NE(error.find("node 'relu': the kernel is not_capturable"), std::string::npos) << error;
}

TEST_F(GraphTest, FailedCaptureIsToldIfNotRerun) {
  SumsRun sums(this, {1, 1, 1, 1}, {{"enable_cuda_graph", "1"}, {"graph.rerun_failed_capture", "0"}});
  ASSERT_EQ(sums.session.error(), "");
  plugin().fails = TEST_PLUGIN_IN_CAPTURE;
  plugin().failing_node = "relu";
  const std::string error = sums.session.Run();
  EXPECT_NE(error.find("the test makes the kernel of 'relu' fail"), std::string::npos) << error;
  plugin().fails = TEST_PLUGIN_NEVER;
  EXPECT_EQ(sums.session.Run(), "");
  EXPECT_EQ(sums.c.Get(), (Floats{3, 5, 7, 9}));
}

TEST_F(GraphTest, KernelThatFailsEagerlyFailsTheRunWithItsMessage) {
  SumsRun sums(this, {1, 1, 1, 1});
  ASSERT_EQ(sums.session.error(), "");
  plugin().fails = TEST_PLUGIN_EAGERLY;
  plugin().failing_node = "outer";
  const std::string error = sums.session.Run();
  EXPECT_NE(error.find("the test makes the kernel of 'outer' fail"), std::string::npos) << error;
  plugin().fails = TEST_PLUGIN_NEVER;
  EXPECT_EQ(sums.session.Run(), "");
  EXPECT_EQ(sums.c.Get(), (Floats{3, 5, 7, 9}));
}

TEST_F(GraphTest, FeedsOnTheHostAreRefusedNotDropped) {
  OrtSession session(ort_, env(), device(), Sums(), kGraphs);
  ASSERT_EQ(session.error(), "");
  for (int i = 0; i < 4; ++i) {
    Floats c;
    const std::string error = session.RunOnHost({"a", "b"}, {{4}, {4}}, {{1, 1, 1, 1}, {1, 2, 3, 4}}, "c", &c);
    EXPECT_NE(error.find("bind inputs and outputs to device memory"), std::string::npos) << error;
    EXPECT_EQ(session.RunOnHost({"a", "b"}, {{4}, {4}}, {{1, 1, 1, 1}, {1, 2, 3, 4}}, "c", &c, Id("-1")), "");
    EXPECT_EQ(c, (Floats{3, 5, 7, 9}));
  }
}

// A session whose second EP does not begin a run in which the first one captures: ONNX Runtime ends the first one's run
// as if nothing had happened, and no node was captured.
TEST_F(GraphTest, RunThatAnotherEpDoesNotBeginLeavesNoGraph) {
  SumsRun sums(this, {1, 1, 1, 1}, kGraphs, other_device());
  ASSERT_EQ(sums.session.error(), "");
  plugin().other_fails = true;
  const std::string error = sums.session.Run();
  EXPECT_NE(error.find("the test lets no run begin"), std::string::npos) << error;
  plugin().other_fails = false;
  sums.a.Set({2, 2, 2, 2});
  EXPECT_EQ(sums.session.Run(), "");
  EXPECT_EQ(sums.c.Get(), (Floats{4, 6, 8, 10}));
}

// With a stream of another device, ONNX Runtime 1.26 begins a run and does not end it; later ones end it.
class UnendedRunTest : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(num_devices(), 2u);
    Ok(api().CreateSyncStreamForEpDevice(device(1), nullptr, &stream_));
    a_.reset(new DeviceTensor(ort_, env(), device(), {4}, {1, 1, 1, 1}));
    b_.reset(new DeviceTensor(ort_, env(), device(), {4}, {1, 2, 3, 4}));
    c_.reset(new DeviceTensor(ort_, env(), device(), {4}, {0, 0, 0, 0}));
  }
  void TearDown() override {
    a_.reset();
    b_.reset();
    c_.reset();
    if (stream_ != nullptr) api().ReleaseSyncStream(stream_);
    GraphTest::TearDown();
  }
  void Bind(OrtSession* session) {
    ASSERT_EQ(session->error(), "");
    session->BindInput("a", *a_);
    session->BindInput("b", *b_);
    session->BindOutput("c", *c_);
  }
  // A run that is to be captured, and is not ended.
  void LeaveRun(OrtSession* session) {
    EXPECT_EQ(session->Run(Id("-1")), "") << "warms up";
    EXPECT_NE(session->Run({}, stream_), "");
  }

  gcap_ort_sync_stream_t* stream_ = nullptr;
  std::unique_ptr<DeviceTensor> a_, b_, c_;
};

TEST_F(UnendedRunTest, LeavesNoStreamCapturing) {
  OrtSession session(ort_, env(), device(), Sums(),
                     {{"enable_cuda_graph", "1"}, {"min_num_runs_before_cuda_graph_capture", "0"}});
  Bind(&session);
  LeaveRun(&session);
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(c_->Get(), (Floats{3, 5, 7, 9}));
}

TEST_F(UnendedRunTest, LetsTheSessionEnd) {
  OrtSession session(ort_, env(), device(), Sums(),
                     {{"enable_cuda_graph", "1"}, {"min_num_runs_before_cuda_graph_capture", "0"}});
  Bind(&session);
  LeaveRun(&session);
}

TEST_F(UnendedRunTest, OfASharedStreamIsTold) {
  OrtSession session(
      ort_, env(), device(), Sums(),
      {{"enable_cuda_graph", "1"}, {"min_num_runs_before_cuda_graph_capture", "0"}, {"graph.scope", "session"}});
  Bind(&session);
  LeaveRun(&session);
  std::string error;
  std::thread([&] { error = session.Run(); }).join();
  if (ort_->version() == 26) {  // later runtimes end such a run
    EXPECT_NE(error.find("another thread"), std::string::npos) << error;
  }
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(c_->Get(), (Floats{3, 5, 7, 9}));
}

TEST_F(UnendedRunTest, EndsWithItsThread) {
  OrtSession session(
      ort_, env(), device(), Sums(),
      {{"enable_cuda_graph", "1"}, {"min_num_runs_before_cuda_graph_capture", "0"}, {"graph.scope", "session"}});
  Bind(&session);
  std::thread([&] { LeaveRun(&session); }).join();
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(c_->Get(), (Floats{3, 5, 7, 9}));
}

// --- Threads --------------------------------------------------------------------------------------------------------

TEST_F(GraphTest, ThreadsHaveGraphsOfTheirOwn) {
  OrtSession session(ort_, env(), device(), Sums(), kGraphs);
  ASSERT_EQ(session.error(), "");
  std::vector<std::thread> threads;
  std::vector<std::string> errors(3);
  for (size_t t = 0; t < errors.size(); ++t) {
    threads.emplace_back([&, t] {
      const float x = static_cast<float>(t);
      DeviceTensor a = Tensor({4}, {x, x, x, x}), b = Tensor({4}, {1, 2, 3, 4}), c = Tensor({4}, {});
      OrtBinding binding(ort_, session.get());
      binding.BindInput("a", a);
      binding.BindInput("b", b);
      binding.BindOutput("c", c);
      for (int i = 0; i < 5; ++i) errors[t] += binding.Run();
      EXPECT_EQ(c.Get(), (Floats{x + 2, x + 4, x + 6, x + 8}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST_F(GraphTest, ReleaseReachesTheGraphsOfOtherThreads) {
  if (ort_->version() < 27) GTEST_SKIP() << "SessionReleaseCapturedGraph came with 1.27";
  OrtSession session(ort_, env(), device(), Sums(), kGraphs);
  ASSERT_EQ(session.error(), "");
  DeviceTensor a = Tensor({4}, {1, 1, 1, 1}), b = Tensor({4}, {1, 2, 3, 4}), c = Tensor({4}, {});
  DeviceTensor other_a = Tensor({4}, {7, 7, 7, 7});
  session.BindInput("a", a);
  session.BindInput("b", b);
  session.BindOutput("c", c);
  EXPECT_EQ(session.Run(Id("5")), "");
  EXPECT_EQ(plugin().captured_computes, 3);
  std::thread([&] { Ok(api().SessionReleaseCapturedGraph(session.get(), 5)); }).join();
  session.BindInput("a", other_a);
  EXPECT_EQ(session.Run(Id("5")), "");
  EXPECT_EQ(plugin().captured_computes, 6) << "captured again, with the new address";
  EXPECT_EQ(c.Get(), (Floats{9, 11, 13, 15}));
  EXPECT_EQ(session.Run(Id("5")), "");
  EXPECT_EQ(plugin().captured_computes, 6) << "one release ends one graph";
}

TEST_F(GraphTest, ReleaseOfAGraphThatThreadsShare) {
  if (ort_->version() < 27) GTEST_SKIP() << "SessionReleaseCapturedGraph came with 1.27";
  SumsRun sums(this, {1, 1, 1, 1}, {{"enable_cuda_graph", "1"}, {"graph.scope", "session"}});
  ASSERT_EQ(sums.session.error(), "");
  EXPECT_EQ(sums.session.Run(Id("5")), "");
  std::thread([&] { EXPECT_EQ(sums.session.Run(Id("5")), ""); }).join();
  EXPECT_EQ(plugin().captured_computes, 3);
  std::thread([&] { Ok(api().SessionReleaseCapturedGraph(sums.session.get(), 5)); }).join();
  EXPECT_EQ(sums.session.Run(Id("5")), "");
  EXPECT_EQ(plugin().captured_computes, 6);
  std::thread([&] { EXPECT_EQ(sums.session.Run(Id("5")), ""); }).join();
  EXPECT_EQ(plugin().captured_computes, 6);
}

TEST_F(GraphTest, ThreadsThatReplayOneGraphAtOnce) {
  SumsRun sums(this, {1, 1, 1, 1}, {{"enable_cuda_graph", "1"}, {"graph.scope", "session"}});
  ASSERT_EQ(sums.session.error(), "");
  EXPECT_EQ(sums.session.Run(), "");
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      OrtBinding binding(ort_, sums.session.get());
      binding.BindInput("a", sums.a);
      binding.BindInput("b", sums.b);
      binding.BindOutput("c", sums.c);
      for (int i = 0; i < 20; ++i) EXPECT_EQ(binding.Run(), "");
    });
  }
  // Eager runs of the same stream in between.
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sums.session.Run(Id("-1")), "");
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums.c.Get(), (Floats{3, 5, 7, 9}));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
