// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Sessions: options, what is refused, which nodes the EP takes, memory, streams, versions.

#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "test/ort/onnx_model.h"
#include "test/ort/runtime.h"

namespace gcap {
namespace testing {
namespace {

using Names = OnnxModel::Names;

std::string Add() {
  return OnnxModel().Node("Add", "add", {"a", "b"}, {"c"}).Input("a", {4}).Input("b", {4}).Output("c", {4}).Bytes();
}

class SessionTest : public OrtTest {
 protected:
  // The message of the refusal; empty if there is none.
  std::string Create(const std::string& model, const Options& options) {
    return OrtSession(ort_, env(), device(), model, options).error();
  }
};

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// --- Options --------------------------------------------------------------------------------------------------------

TEST_F(SessionTest, OptionsThatDoNotParseAreRefusedWithOurMessage) {
  EXPECT_TRUE(Has(Create(Add(), {{"enable_cuda_graph", "maybe"}}), "maybe"));
  EXPECT_TRUE(Has(Create(Add(), {{"enable_cuda_grap", "1"}}), "enable_cuda_graph")) << "the nearest name is told";
  EXPECT_TRUE(Has(Create(Add(), {{"arena.max_mem", "-3"}}), "-3"));
  EXPECT_TRUE(Has(Create(Add(), {{"gpu_external_alloc", "0x1234"}}), "gpu_external_free"));
}

// CUDA follows the pointer, so the process ended.
TEST_F(SessionTest, StreamOfTheUsersThatIsNoAddressIsRefused) {
  EXPECT_TRUE(Has(Create(Add(), {{"user_compute_stream", "12345"}}), "user_compute_stream is 12345"));
  EXPECT_TRUE(Has(Create(Add(), {{"user_compute_stream", "0x7"}, {"enable_cuda_graph", "1"}}), "(0x7)"));
}

TEST_F(SessionTest, DeviceIsThatOfTheEpDevice) {
  const char* id = api().GetKeyValue(api().EpDevice_EpMetadata(device()), "cuda_device_id");
  ASSERT_NE(id, nullptr);
  EXPECT_EQ(Create(Add(), {{"device_id", id}}), "");
  EXPECT_TRUE(Has(Create(Add(), {{"device_id", "99"}}), "99"));
}

// OrtApi's slot 428, EpDevice_GetMemoryCapacity, calls a member of the factory that came with 1.32.
TEST_F(SessionTest, WhatANewerFactoryWouldAnswerIsNotImplemented) {
  if (ort_->version() < 32) GTEST_SKIP() << "EpDevice_GetMemoryCapacity came with 1.32";
  using GetCapacity = gcap_ort_status_t* (*)(const gcap_ort_ep_device_t*, gcap_ort_device_memory_t, size_t*, size_t*);
  GetCapacity get_capacity = nullptr;
  std::memcpy(&get_capacity, reinterpret_cast<const char*>(&api()) + 428 * sizeof(void*), sizeof(get_capacity));
  size_t total = 0, available = 0;
  gcap_ort_status_t* status = get_capacity(device(), GCAP_ORT_MEMORY_DEFAULT, &total, &available);
  ASSERT_NE(status, nullptr);
  EXPECT_EQ(api().GetErrorCode(status), GCAP_ORT_NOT_IMPLEMENTED) << api().GetErrorMessage(status);
  api().ReleaseStatus(status);
}

TEST_F(SessionTest, OptionsOfTheSessionThatAreNotOursAreLeftAlone) {
  EXPECT_EQ(Create(Add(), {{"min_num_runs_before_cuda_graph_capture", "1"}, {"arena.extend_strategy", "1"}}), "");
}

// ONNX Runtime fails a call whose 8th run gives no graph. Ours is right without a graph, and has one later.
TEST_F(SessionTest, LongWarmUpIsSpreadOverCalls) {
  OrtSession session(ort_, env(), device(), Add(),
                     {{"enable_cuda_graph", "1"}, {"min_num_runs_before_cuda_graph_capture", "20"}});
  ASSERT_EQ(session.error(), "");
  DeviceTensor a(ort_, env(), device(), {4}, {1, 2, 3, 4}), b(ort_, env(), device(), {4}, {1, 1, 1, 1}),
      c(ort_, env(), device(), {4}, {});
  session.BindInput("a", a);
  session.BindInput("b", b);
  session.BindOutput("c", c);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(plugin().captured_computes, 1);
  EXPECT_EQ(c.Get(), (Floats{2, 3, 4, 5}));
}

// --- Nodes ----------------------------------------------------------------------------------------------------------

TEST_F(SessionTest, NodesThatWeLackRunOnTheCpu) {
  const std::string model = OnnxModel()
                                .Node("Add", "add", {"a", "b"}, {"s"})
                                .Int("to", kOnnxInt16)
                                .Node("Cast", "to_i16", {"s"}, {"i"})
                                .Int("to", kOnnxFloat)
                                .Node("Cast", "to_f32", {"i"}, {"f"})
                                .Node("Mul", "mul", {"f", "b"}, {"c"})
                                .Input("a", {2})
                                .Input("b", {2})
                                .Output("c", {2})
                                .Bytes();
  OrtSession session(ort_, env(), device(), model, {});
  ASSERT_EQ(session.error(), "");
  Floats c;
  EXPECT_EQ(session.RunOnHost({"a", "b"}, {{2}, {2}}, {{1, -2}, {-1, 3}}, "c", &c), "");
  EXPECT_EQ(c, (Floats{0, 3}));
  EXPECT_EQ(plugin().computes, 2);
  EXPECT_TRUE(Has(Create(model, {{"enable_cuda_graph", "1"}}), "GcapTest")) << "a capture wants all nodes";
}

// Those of com.microsoft that exporters write.
TEST_F(SessionTest, GelusOfAnotherDomainAreCaptured) {
  const std::string model = OnnxModel()
                                .Node("BiasGelu", "bias_gelu", {"a", "b"}, {"s"}, "com.microsoft")
                                .Node("FastGelu", "fast_gelu", {"s", "b"}, {"f"}, "com.microsoft")
                                .Node("QuickGelu", "quick_gelu", {"f"}, {"c"}, "com.microsoft")
                                .Input("a", {2, 2})
                                .Input("b", {2})
                                .Output("c", {2, 2})
                                .Bytes();
  OrtSession session(ort_, env(), device(), model, {{"enable_cuda_graph", "1"}});
  ASSERT_EQ(session.error(), "");
  const Floats bias = {0.5f, -1};
  DeviceTensor a(ort_, env(), device(), {2, 2}, {1, 2, -1, 0}), b(ort_, env(), device(), {2}, bias),
      c(ort_, env(), device(), {2, 2}, {});
  session.BindInput("a", a);
  session.BindInput("b", b);
  session.BindOutput("c", c);
  EXPECT_EQ(session.Run(), "");
  const Floats in = {-0.5f, 3, 0.25f, 1};
  a.Set(in);
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(plugin().captured_computes, 3);
  const Floats made = c.Get();
  for (size_t i = 0; i < in.size(); ++i) {
    const double x = in[i] + bias[i % 2], gelu = x / 2 * (1 + std::erf(x / std::sqrt(2.0))), z = gelu + bias[i % 2];
    const double fast = z / 2 * (1 + std::tanh(0.7978845608 * (z + 0.044715 * z * z * z)));
    EXPECT_NEAR(made[i], fast / (1 + std::exp(-1.702 * fast)), 1e-6) << i;
  }
}

TEST_F(SessionTest, ConstantsAreOnTheDevice) {
  const std::string model = OnnxModel()
                                .Node("Gemm", "gemm", {"a", "w", "bias"}, {"c"})
                                .Constant("w", {2, 2}, std::vector<float>{1, 2, 3, 4})
                                .Constant("bias", {2}, std::vector<float>{10, 20})
                                .Input("a", {1, 2})
                                .Output("c", {1, 2})
                                .Bytes();
  OrtSession session(ort_, env(), device(), model, {{"enable_cuda_graph", "1"}});
  ASSERT_EQ(session.error(), "");
  DeviceTensor a(ort_, env(), device(), {1, 2}, {1, 1}), c(ort_, env(), device(), {1, 2}, {});
  session.BindInput("a", a);
  session.BindOutput("c", c);
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(c.Get(), (Floats{14, 26}));
  a.Set({2, 0});
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(c.Get(), (Floats{12, 24}));
}

TEST_F(SessionTest, InputsOnTheHostDecideShapes) {
  const std::string model = OnnxModel()
                                .Int("allowzero", 0)
                                .Node("Reshape", "reshape", {"a", "shape"}, {"r"})
                                .Node("Add", "add", {"r", "b"}, {"c"})
                                .Constant("shape", {2}, std::vector<int64_t>{2, -1})
                                .Input("a", {4})
                                .Input("b", {2, 2})
                                .Output("c", {2, 2})
                                .Bytes();
  OrtSession session(ort_, env(), device(), model, {{"enable_cuda_graph", "1"}});
  ASSERT_EQ(session.error(), "");
  DeviceTensor a(ort_, env(), device(), {4}, {1, 2, 3, 4}), b(ort_, env(), device(), {2, 2}, {1, 1, 1, 1}),
      c(ort_, env(), device(), {2, 2}, {});
  session.BindInput("a", a);
  session.BindInput("b", b);
  session.BindOutput("c", c);
  EXPECT_EQ(session.Run(), "");
  a.Set({0, 0, 0, 9});
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(c.Get(), (Floats{1, 1, 1, 10}));
}

// A table that puts an input elsewhere than the EP reads it would crash a kernel. The node goes to the CPU instead.
TEST_F(SessionTest, TableThatContradictsTheEpLosesTheNode) {
  const std::string model = OnnxModel()
                                .Node("Reshape", "reshape", {"a", "shape"}, {"r"})
                                .Node("Add", "add", {"r", "r"}, {"c"})
                                .Constant("shape", {2}, std::vector<int64_t>{2, -1})
                                .Input("a", {4})
                                .Output("c", {2, 2})
                                .Bytes();
  for (const bool forgets : {false, true}) {
    plugin().forgets_input_place = forgets;
    plugin().computes = 0;
    OrtSession session(ort_, env(), device(), model, {});
    ASSERT_EQ(session.error(), "");
    Floats c;
    EXPECT_EQ(session.RunOnHost({"a"}, {{4}}, {{1, 2, 3, 4}}, "c", &c), "");
    EXPECT_EQ(c, (Floats{2, 4, 6, 8}));
    EXPECT_EQ(plugin().computes, forgets ? 1 : 2);
  }
}

TEST_F(SessionTest, ShapesAreComputedOnTheCpuAndTheRestIsCaptured) {
  // c = reshape(a, (first size of b, -1)) + 1, where the sizes are the CPU's to compute.
  const std::string model = OnnxModel()
                                .Node("Shape", "shape", {"b"}, {"sizes"})
                                .Int("axis", 0)
                                .Node("Gather", "first", {"sizes", "zero"}, {"one_size"})
                                .Int("axis", 0)
                                .Node("Concat", "both", {"one_size", "rest"}, {"two_sizes"})
                                .Node("Reshape", "reshape", {"a", "two_sizes"}, {"r"})
                                .Node("Add", "add", {"r", "one"}, {"c"})
                                .Constant("zero", {1}, std::vector<int64_t>{0})
                                .Constant("rest", {1}, std::vector<int64_t>{-1})
                                .Constant("one", {1}, std::vector<float>{1})
                                .Input("a", {4})
                                .Input("b", {kAnySize, 3})
                                .Output("c", {kAnySize, kAnySize})
                                .Bytes();
  OrtSession session(ort_, env(), device(), model, {{"enable_cuda_graph", "1"}});
  ASSERT_EQ(session.error(), "");
  DeviceTensor a(ort_, env(), device(), {4}, {1, 2, 3, 4}), b(ort_, env(), device(), {2, 3}, {0, 0, 0, 0, 0, 0}),
      c(ort_, env(), device(), {2, 2}, {});
  session.BindInput("a", a);
  session.BindInput("b", b);
  session.BindOutput("c", c);
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(plugin().captured_computes, 2);
  a.Set({5, 6, 7, 8});
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(c.Get(), (Floats{6, 7, 8, 9}));
  EXPECT_EQ(plugin().captured_computes, 2);
}

TEST_F(SessionTest, ControlFlowIsRefusedByTheRuntimeWithoutHarm) {
  EXPECT_TRUE(
      Has(Create(OnnxModel().Node("RandomUniformLike", "random", {"a"}, {"c"}).Input("a", {2}).Output("c", {2}).Bytes(),
                 {{"enable_cuda_graph", "1"}}),
          "graph capture"));
}

// Catches what gcap logs, until its end.
class PluginLog {
 public:
  explicit PluginLog(test_plugin_set_sink_t set) : set_(set) {
    set_([](void* user, const char* line) { static_cast<PluginLog*>(user)->lines_.push_back(line); }, this);
  }
  PluginLog(const PluginLog&) = delete;
  PluginLog& operator=(const PluginLog&) = delete;
  ~PluginLog() { set_(nullptr, nullptr); }
  std::string text() const {
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return text;
  }
  size_t count() const { return lines_.size(); }

 private:
  test_plugin_set_sink_t set_;
  std::vector<std::string> lines_;
};

// ONNX Runtime refuses a session for graphs if nodes are left to other EPs, and names none of them. Was: nobody did.
TEST_F(SessionTest, NodesThatAreLeftAreNamedWithTheReasonIfGraphsAreOn) {
  const std::string model = OnnxModel()
                                .Node("RandomUniformLike", "random1", {"a"}, {"s1"})
                                .Node("RandomUniformLike", "random2", {"s1"}, {"s2"})
                                .Int("to", kOnnxDouble)
                                .Node("Cast", "to_double", {"s2"}, {"d"})
                                .Int("to", kOnnxFloat)
                                .Node("Cast", "to_float", {"d"}, {"f"})
                                .Node("Conv", "conv", {"any", "any"}, {"r"})
                                .Node("MatMul", "product", {"i", "i"}, {"p"})
                                .Node("Neg", "neg", {"f"}, {"c"})
                                .Input("a", {2})
                                .InputOfAnyRank("any")
                                .Input("i", {2, 2}, kOnnxInt64)
                                .Output("c", {2})
                                .OutputOfAnyRank("r")
                                .Output("p", {2, 2}, kOnnxInt64)
                                .Bytes();
  const auto set_sink = Find<test_plugin_set_sink_t>("test_plugin_set_sink");
  for (const std::string graphs : {"0", "1"}) {
    PluginLog log(set_sink);
    const std::string error = Create(model, {{"enable_cuda_graph", graphs}});
    if (graphs == "0") {
      EXPECT_EQ(error, "");
      EXPECT_EQ(log.text(), "");
      continue;
    }
    EXPECT_TRUE(Has(error, "GcapTest"));
    EXPECT_EQ(log.count(), 1u) << log.text();
    for (const char* part :
         {"'GcapTest' leaves 6 of 7 nodes", ": 2 RandomUniformLike (no kernel)", ", 2 Cast (a value of type double)",
          ", 1 Conv (a value of unknown rank, and no kernel for rank 6)", ", 1 MatMul (none of the kernels",
          "inputs of i64 i64)"}) {
      EXPECT_TRUE(Has(log.text(), part)) << part << "\n" << log.text();
    }
  }
}

// Was: rank 0 was the reason, as if a kernel of another rank took the node.
TEST_F(SessionTest, NodesOfUnknownRankThatNoKernelTakesAreLeftForTheirTypes) {
  OnnxModel model;
  model.Int("antialias", 1).Node("Resize", "resize", {"any", "", "scales"}, {"r"});
  model.Constant("scales", {4}, std::vector<float>{1, 1, 2, 2}).InputOfAnyRank("any").OutputOfAnyRank("r");
  PluginLog log(Find<test_plugin_set_sink_t>("test_plugin_set_sink"));
  EXPECT_NE(Create(model.Bytes(18), {{"enable_cuda_graph", "1"}}), "");
  EXPECT_TRUE(Has(log.text(), "1 Resize (a value of unknown rank, and no kernel for any: inputs of f32")) << log.text();
}

// ONNX Runtime's own rule lets nodes run on the CPU if no tensor passes between EPs. Was: the session was captured,
// with a warning that it is not, and each replay left `v` as the capture had it.
TEST_F(SessionTest, NodesThatShareNoTensorWithTheEpAreRefusedForGraphsToo) {
  const std::string model = OnnxModel()
                                .Node("Neg", "neg", {"a"}, {"c"})
                                .Node("RandomUniformLike", "random", {"u"}, {"v"})
                                .Input("a", {2})
                                .Input("u", {2})
                                .Output("c", {2})
                                .Output("v", {2})
                                .Bytes();
  PluginLog log(Find<test_plugin_set_sink_t>("test_plugin_set_sink"));
  EXPECT_EQ(Create(model, {}), "");
  EXPECT_EQ(log.text(), "");
  EXPECT_TRUE(Has(Create(model, {{"enable_cuda_graph", "1"}}), "GcapTest"));
  EXPECT_EQ(log.count(), 1u);
  EXPECT_TRUE(Has(log.text(), "1 of 2 nodes") && Has(log.text(), ": 1 RandomUniformLike (no kernel)")) << log.text();
}

TEST_F(SessionTest, NodesThatComputeShapesForTheApplicationAreNoObstacle) {
  const std::string model = OnnxModel()
                                .Node("Neg", "neg", {"a"}, {"c"})
                                .Node("Shape", "shape", {"a"}, {"sizes"})
                                .Int("to", kOnnxDouble)
                                .Node("Cast", "to_double", {"sizes"}, {"reals"})
                                .Int("to", kOnnxInt64)
                                .Node("Cast", "to_int", {"reals"}, {"same"})
                                .Input("a", {kAnySize})
                                .Output("c", {kAnySize})
                                .Output("same", {1}, kOnnxInt64)
                                .Bytes();
  PluginLog log(Find<test_plugin_set_sink_t>("test_plugin_set_sink"));
  EXPECT_EQ(Create(model, {{"enable_cuda_graph", "1"}}), "");
  EXPECT_EQ(log.text(), "");
}

TEST_F(SessionTest, OperatorOfAnOlderOpsetIsLeftForItsOpset) {
  const std::string model = OnnxModel()
                                .Node("Max", "max", {"a", "a"}, {"m"})
                                .Node("Neg", "neg", {"m"}, {"c"})
                                .Input("a", {2})
                                .Output("c", {2})
                                .Bytes(7);
  PluginLog log(Find<test_plugin_set_sink_t>("test_plugin_set_sink"));
  EXPECT_TRUE(Has(Create(model, {{"enable_cuda_graph", "1"}}), "GcapTest"));
  EXPECT_EQ(log.count(), 1u);
  EXPECT_TRUE(Has(log.text(), "1 of 2 nodes")) << log.text();
  EXPECT_TRUE(Has(log.text(), "1 Max (of opset 6, the kernels are of opset 8 and later)")) << log.text();
}

// What is computed of shapes is no obstacle on the CPU; what the device then reads of it is.
TEST_F(SessionTest, NodesThatComputeShapesAreNamedIfTheDeviceReadsTheirValues) {
  const auto model = [](bool reads) {
    OnnxModel model;
    model.Node("Shape", "shape", {"a"}, {"sizes"});
    model.Int("to", kOnnxDouble).Node("Cast", "to_double", {"sizes"}, {"reals"});
    model.Int("to", kOnnxInt64).Node("Cast", "to_int", {"reals"}, {"same"});
    if (reads) model.Int("to", kOnnxFloat).Node("Cast", "cast", {"same"}, {"f"}).Node("Add", "add", {"a", "f"}, {"c"});
    if (!reads) model.Node("Reshape", "reshape", {"a", "same"}, {"c"});
    return model.Input("a", {kAnySize}).Output("c", {kAnySize}).Bytes();
  };
  PluginLog log(Find<test_plugin_set_sink_t>("test_plugin_set_sink"));
  EXPECT_EQ(Create(model(false), {{"enable_cuda_graph", "1"}}), "");
  EXPECT_EQ(log.text(), "");
  EXPECT_TRUE(Has(Create(model(true), {{"enable_cuda_graph", "1"}}), "GcapTest"));
  EXPECT_EQ(log.count(), 1u);
  EXPECT_TRUE(Has(log.text(), "1 Cast (on the CPU, of shapes, and Cast reads it on the device)")) << log.text();
}

// The number of a ConstantOfShape is a tensor of one element. Its shape is computed of that of `a`, on the host.
TEST_F(SessionTest, AttributeThatIsATensorOfOneElement) {
  const std::string model = OnnxModel()
                                .Node("Shape", "shape", {"a"}, {"sizes"})
                                .Tensor("value", std::vector<float>{1.5f})
                                .Node("ConstantOfShape", "halves", {"sizes"}, {"h"})
                                .Tensor("value", std::vector<int64_t>{-3})
                                .Node("ConstantOfShape", "threes", {"sizes"}, {"i"})
                                .Int("to", kOnnxFloat)
                                .Node("Cast", "cast", {"i"}, {"t"})
                                .Node("Sum", "sum", {"a", "h", "t"}, {"c"})
                                .Input("a", {kAnySize, 2})
                                .Output("c", {kAnySize, 2})
                                .Bytes();
  OrtSession session(ort_, env(), device(), model, {{"enable_cuda_graph", "1"}});
  ASSERT_EQ(session.error(), "");
  DeviceTensor a(ort_, env(), device(), {1, 2}, {10, 20}), c(ort_, env(), device(), {1, 2}, {});
  session.BindInput("a", a);
  session.BindOutput("c", c);
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(plugin().captured_computes, 4);
  a.Set({30, 40});
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(c.Get(), (Floats{28.5, 38.5}));
}

// ONNX says one element; a model of two says nothing that a kernel could do.
TEST_F(SessionTest, AttributeThatIsAnotherTensorLeavesTheNode) {
  const std::string model = OnnxModel()
                                .Node("Shape", "shape", {"a"}, {"sizes"})
                                .Tensor("value", std::vector<float>{1, 2})
                                .Node("ConstantOfShape", "two", {"sizes"}, {"h"})
                                .Node("Add", "add", {"a", "h"}, {"c"})
                                .Input("a", {kAnySize})
                                .Output("c", {kAnySize})
                                .Bytes();
  PluginLog log(Find<test_plugin_set_sink_t>("test_plugin_set_sink"));
  EXPECT_NE(Create(model, {{"enable_cuda_graph", "1"}}), "");
  EXPECT_EQ(plugin().computes, 0);
}

// A kernel of Range would take numbers from the host to the device. Where a kernel reads them on the host, here the
// axes of a sum, they stay there, and so does the shape of what is there; where one reads them on the device, they go
// there.
TEST_F(SessionTest, NodesOfNumbersOnTheHostAreWhereTheirResultIsRead) {
  OnnxModel on_host, on_device;
  on_host.Node("Shape", "shape", {"a"}, {"sizes"})
      .Node("Shape", "shape_of_shape", {"sizes"}, {"ranks"})
      .Node("Gather", "first", {"ranks", "zero"}, {"rank"})
      .Node("Range", "range", {"zero", "rank", "one"}, {"axes"})
      .Node("ReduceSum", "sum", {"a", "axes"}, {"c"})
      .InputOfAnyRank("a")
      .OutputOfAnyRank("c");
  on_device.Node("Shape", "shape", {"a"}, {"sizes"})
      .Node("Gather", "second", {"sizes", "one"}, {"columns"})
      .Node("Range", "range", {"zero", "columns", "one"}, {"r"})
      .Int("to", kOnnxFloat)
      .Node("Cast", "cast", {"r"}, {"f"})
      .Node("Add", "add", {"a", "f"}, {"c"})
      .Input("a", {kAnySize, kAnySize})
      .Output("c", {kAnySize, kAnySize});
  for (OnnxModel* model : {&on_host, &on_device}) {
    SCOPED_TRACE(model == &on_host ? "on the host" : "on the device");
    const std::string bytes =
        model->Constant("zero", {}, std::vector<int64_t>{0}).Constant("one", {}, std::vector<int64_t>{1}).Bytes();
    PluginLog log(Find<test_plugin_set_sink_t>("test_plugin_set_sink"));
    OrtSession session(ort_, env(), device(), bytes, {{"enable_cuda_graph", "1"}});
    ASSERT_EQ(session.error(), "") << log.text();
    DeviceTensor a(ort_, env(), device(), {1, 2}, {1, 2});
    DeviceTensor c(ort_, env(), device(), {1, model == &on_host ? 1 : 2}, {});
    const int before = plugin().captured_computes;
    session.BindInput("a", a);
    session.BindOutput("c", c);
    EXPECT_EQ(session.Run(), "");
    EXPECT_EQ(plugin().captured_computes - before, model == &on_host ? 1 : 3);
    a.Set({10, 20});
    EXPECT_EQ(session.Run(), "");
    EXPECT_EQ(c.Get(), model == &on_host ? (Floats{30}) : (Floats{10, 21}));
  }
}

// ONNX Runtime infers no rank of a Reshape to a computed shape before opset 13, of a Squeeze without axes, nor of what
// follows. Was: such nodes were left to the CPU EP, whatever their kernels take.
OnnxModel OfAnyRank() {
  return OnnxModel()
      .Node("Squeeze", "squeeze", {"a"}, {"s"})
      .Node("Relu", "relu", {"s"}, {"r"})
      .Node("MatMul", "product", {"r", "w"}, {"c"})
      .Constant("w", {2, 2}, std::vector<float>{1, 10, 100, 1000})
      .Input("a", {kAnySize, kAnySize, 2})
      .OutputOfAnyRank("c");
}

TEST_F(SessionTest, NodesOfUnknownRankRunAtTheRankOfTheRun) {
  OrtSession session(ort_, env(), device(), OfAnyRank().Bytes(), {});
  ASSERT_EQ(session.error(), "");
  Floats c;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(session.RunOnHost({"a"}, {{1, 1, 2}}, {{1, 2}}, "c", &c), "");
    EXPECT_EQ(c, (Floats{201, 2010}));
    EXPECT_EQ(session.RunOnHost({"a"}, {{1, 2, 2}}, {{1, 2, -1, 3}}, "c", &c), "");
    EXPECT_EQ(c, (Floats{201, 2010, 300, 3000}));
    EXPECT_EQ(session.RunOnHost({"a"}, {{2, 2, 2}}, {{1, 0, 0, 1, 2, 0, 0, 2}}, "c", &c), "");
    EXPECT_EQ(c, (Floats{1, 10, 100, 1000, 2, 20, 200, 2000}));
  }
  EXPECT_EQ(plugin().computes, 2 * 3 * 3);
}

TEST_F(SessionTest, NodesOfUnknownRankAreCaptured) {
  OrtSession session(ort_, env(), device(), OfAnyRank().Bytes(), {{"enable_cuda_graph", "1"}});
  ASSERT_EQ(session.error(), "");
  DeviceTensor a(ort_, env(), device(), {1, 2, 2}, {1, 2, -1, 3}), c(ort_, env(), device(), {2, 2}, {});
  session.BindInput("a", a);
  session.BindOutput("c", c);
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(plugin().captured_computes, 3);
  a.Set({1, 0, 0, 1});
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(c.Get(), (Floats{1, 10, 100, 1000}));
  EXPECT_EQ(plugin().captured_computes, 3) << "a replay";
}

// Was: a Gemm was left to the CPU EP, since it has no kernel for rank 0, which a Gemm cannot have.
TEST_F(SessionTest, NodesOfUnknownRankAreTheEpsIfItHasKernelsForTheRanksThatTheyCanHave) {
  const std::string model = OnnxModel()
                                .Node("Squeeze", "squeeze", {"a"}, {"s"})
                                .Node("Gemm", "gemm", {"s", "w"}, {"c"})
                                .Constant("w", {2, 2}, std::vector<float>{1, 10, 100, 1000})
                                .Input("a", {kAnySize, kAnySize, 2})
                                .OutputOfAnyRank("c")
                                .Bytes();
  OrtSession session(ort_, env(), device(), model, {{"enable_cuda_graph", "1"}});
  ASSERT_EQ(session.error(), "");
  DeviceTensor a(ort_, env(), device(), {1, 2, 2}, {1, 2, -1, 3}), c(ort_, env(), device(), {2, 2}, {});
  session.BindInput("a", a);
  session.BindOutput("c", c);
  EXPECT_EQ(session.Run(), "");
  a.Set({1, 0, 0, 1});
  EXPECT_EQ(session.Run(), "");
  EXPECT_EQ(c.Get(), (Floats{1, 10, 100, 1000}));
  EXPECT_EQ(plugin().captured_computes, 2) << "a replay";

  OrtSession eager(ort_, env(), device(), model, {});
  Floats on_host;
  const std::string error = eager.RunOnHost({"a"}, {{2, 2, 2}}, {Floats(8, 1)}, "c", &on_host);
  EXPECT_TRUE(Has(error, "'gemm'") && Has(error, "rank 3")) << error;
}

// Was: each output was tried with one rank for all of them, so the run failed.
TEST_F(SessionTest, OutputsOfUnknownRankHaveOthersBeside) {
  OrtSession session(ort_, env(), device(),
                     OnnxModel()
                         .Node("Squeeze", "squeeze", {"a"}, {"s"})
                         .Node("DynamicQuantizeLinear", "quantize", {"s"}, {"y", "scale", "zero"})
                         .Input("a", {kAnySize, kAnySize, 2})
                         .Output("scale", {})
                         .Bytes(),
                     {});
  ASSERT_EQ(session.error(), "");
  Floats scale;
  EXPECT_EQ(session.RunOnHost({"a"}, {{1, 2, 2}}, {{0, 510, 3, 51}}, "scale", &scale), "");
  EXPECT_EQ(scale, Floats{2});
}

// Was: outputs of unknown ranks were tried with one rank for all of them, so a run with a cache of another rank failed.
TEST_F(SessionTest, OutputsOfUnknownRanksHaveDifferentOnes) {
  OnnxModel model;
  for (const char* name : {"q", "k", "v", "past_k", "past_v"}) model.InputOfAnyRank(name);
  const Names inputs = {"q", "k", "v", "", "past_k", "past_v"}, outputs = {"y", "present_k", "present_v"};
  model.Int("q_num_heads", 1).Int("kv_num_heads", 1).Node("Attention", "attention", inputs, outputs);
  for (const auto& name : outputs) model.OutputOfAnyRank(name);
  OrtSession session(ort_, env(), device(), model.Bytes(23), {});
  ASSERT_EQ(session.error(), "");
  Floats y;
  EXPECT_EQ(session.RunOnHost({"q", "k", "v", "past_k", "past_v"},
                              {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}, {{0}, {1}, {4}, {1}, {2}},
                              "y", &y),
            "");
  EXPECT_EQ(y, Floats{3}) << "the mean of both values, since all scores are 0";
}

// Before opset 13 a Softmax is of all axes from `axis` on, whatever the rank is. Was: it was left to the CPU EP unless
// ONNX Runtime knew that these axes are one.
TEST_F(SessionTest, SoftmaxBeforeOpset13IsOfAllAxesFromItsAxisOn) {
  OrtSession session(ort_, env(), device(),
                     OnnxModel()
                         .Node("Squeeze", "squeeze", {"a"}, {"s"})
                         .Node("Softmax", "softmax", {"s"}, {"c"})
                         .Input("a", {kAnySize, kAnySize, kAnySize, 2})
                         .OutputOfAnyRank("c")
                         .Bytes(12),
                     {});
  ASSERT_EQ(session.error(), "");
  Floats c;
  EXPECT_EQ(session.RunOnHost({"a"}, {{1, 2, 2, 2}}, {Floats(8, 1)}, "c", &c), "");
  EXPECT_EQ(c, Floats(8, 0.25f));
  EXPECT_EQ(session.RunOnHost({"a"}, {{2, 2, 2, 2}}, {Floats(16, 1)}, "c", &c), "");
  EXPECT_EQ(c, Floats(16, 0.125f));
  EXPECT_EQ(plugin().computes, 4);
}

// A guess would give the output less memory than the kernel writes.
TEST_F(SessionTest, EpThatInfersSeveralRanksGetsNone) {
  plugin().infers_any_rank = true;
  OrtSession session(ort_, env(), device(), OfAnyRank().Bytes(), {});
  ASSERT_EQ(session.error(), "");
  Floats c;
  const std::string error = session.RunOnHost({"a"}, {{1, 1, 2}}, {{1, 2}}, "c", &c);
  EXPECT_TRUE(Has(error, "'squeeze'") && Has(error, "the EP infers 0 and 1")) << error;
  EXPECT_EQ(plugin().computes, 0);
}

TEST_F(SessionTest, FailureAtAnUnknownRankIsThatOfTheInputs) {
  OrtSession session(ort_, env(), device(),
                     OnnxModel()
                         .Node("Squeeze", "squeeze", {"a"}, {"s"})
                         .Node("MatMul", "product", {"s", "s"}, {"c"})
                         .Input("a", {kAnySize, kAnySize, kAnySize})
                         .OutputOfAnyRank("c")
                         .Bytes(),
                     {});
  ASSERT_EQ(session.error(), "");
  Floats c;
  const std::string error = session.RunOnHost({"a"}, {{1, 2, 3}}, {{1, 2, 3, 4, 5, 6}}, "c", &c);
  EXPECT_TRUE(Has(error, "input 0 has 3 columns, input 1 has 2 rows")) << error;
}

// Tools that write what they infer into a model write wrong ranks, and ONNX Runtime's CPU EP runs such models. The run
// failed.
TEST_F(SessionTest, WrongRankBetweenNodesIsNoFailure) {
  const auto model = [](const OnnxModel::Shape& declared) {
    return OnnxModel()
        .Node("Squeeze", "squeeze", {"a"}, {"s"})
        .Node("Relu", "relu", {"s"}, {"r"})
        .Node("Add", "add", {"r", "r"}, {"c"})
        .Input("a", {kAnySize, 3, kAnySize})
        .Info("s", declared)
        .OutputOfAnyRank("c")
        .Bytes();
  };
  for (const OnnxModel::Shape& declared : {OnnxModel::Shape{kAnySize}, {kAnySize, 3}, {1, 3, 1}}) {
    OrtSession session(ort_, env(), device(), model(declared), {});
    ASSERT_EQ(session.error(), "");
    plugin().computes = 0;
    for (int i = 0; i < 2; ++i) {
      Floats c;
      EXPECT_EQ(session.RunOnHost({"a"}, {{1, 3, 1}}, {{1, -2, 3}}, "c", &c), "");
      EXPECT_EQ(c, (Floats{2, 0, 6}));
    }
    EXPECT_EQ(plugin().computes, 6);
  }
}

// --- Memory ---------------------------------------------------------------------------------------------------------

TEST_F(SessionTest, AllocatorHasStatistics) {
  OrtSession session(ort_, env(), device(), Add(), {});
  ASSERT_EQ(session.error(), "");
  const gcap_ort_memory_info_t* info = api().EpDevice_MemoryInfo(device(), GCAP_ORT_MEMORY_DEFAULT);
  gcap_ort_allocator_t* allocator = nullptr;
  Ok(api().CreateAllocator(session.get(), info, &allocator));
  EXPECT_EQ(allocator->Alloc(allocator, 0), nullptr);
  allocator->Free(allocator, nullptr);
  void* block = allocator->Alloc(allocator, 1000);
  ASSERT_NE(block, nullptr);
  EXPECT_GE(Counter(allocator, "InUse"), 1000);
  if (ort_->version() > 27) {  // older ones drop what they do not know
    EXPECT_EQ(Counter(allocator, "RequestedInUse"), 1000);
  }
  EXPECT_GE(Counter(allocator, "NumAllocs"), 1);
  EXPECT_GE(Counter(allocator, "MaxAllocSize"), 1000);
  allocator->Free(allocator, block);
  EXPECT_EQ(Counter(allocator, "InUse"), 0);
  for (const char* key : {"Limit", "TotalAllocated", "MaxInUse", "NumReserves", "NumArenaExtensions"}) {
    EXPECT_GE(Counter(allocator, key), 0) << key;
  }
  api().ReleaseAllocator(allocator);
}

TEST_F(SessionTest, LimitOfMemoryIsAFailedRunNotACrash) {
  OrtSession session(ort_, env(), device(), Add(), {{"arena.max_mem", "1048576"}});
  ASSERT_EQ(session.error(), "");
  const gcap_ort_memory_info_t* info = api().EpDevice_MemoryInfo(device(), GCAP_ORT_MEMORY_DEFAULT);
  gcap_ort_allocator_t* allocator = nullptr;
  Ok(api().CreateAllocator(session.get(), info, &allocator));
  EXPECT_EQ(allocator->Alloc(allocator, 2 << 20), nullptr);
  api().ReleaseAllocator(allocator);
}

TEST_F(SessionTest, TensorOutlivesItsSession) {
  gcap_ort_value_t* value = nullptr;
  gcap_ort_allocator_t* allocator = nullptr;
  {
    OrtSession session(ort_, env(), device(), Add(), {});
    ASSERT_EQ(session.error(), "");
    const gcap_ort_memory_info_t* info = api().EpDevice_MemoryInfo(device(), GCAP_ORT_MEMORY_DEFAULT);
    Ok(api().CreateAllocator(session.get(), info, &allocator));
    const int64_t shape[] = {100};
    Ok(api().CreateTensorAsOrtValue(allocator, shape, 1, GCAP_ORT_FLOAT, &value));
  }
  api().ReleaseValue(value);
  api().ReleaseAllocator(allocator);
}

// A thread runs, hands its output to another thread, and ends. Was: its stream was kept until the process ended.
TEST_F(SessionTest, TensorOutlivesItsThread) {
  OrtSession session(ort_, env(), device(), Add(), {});
  ASSERT_EQ(session.error(), "");
  const auto live = Find<size_t (*)(const char*)>("gcap_sim_live");
  const gcap_ort_memory_info_t* info = api().EpDevice_MemoryInfo(device(), GCAP_ORT_MEMORY_DEFAULT);
  DeviceTensor a(ort_, env(), device(), {4}, {1, 2, 3, 4}), b(ort_, env(), device(), {4}, {1, 1, 1, 1});
  gcap_ort_allocator_t* host = nullptr;
  Ok(api().GetAllocatorWithDefaultOptions(&host));
  const size_t streams = live("stream");
  for (int i = 0; i < 3; ++i) {
    gcap_ort_value_t* made = nullptr;
    std::thread([&] {
      OrtBinding binding(ort_, session.get());
      binding.BindInput("a", a);
      binding.BindInput("b", b);
      Ok(api().BindOutputToDevice(binding.get(), "c", info));
      EXPECT_EQ(binding.Run(), "");
      gcap_ort_value_t** values = nullptr;
      size_t count = 0;
      Ok(api().GetBoundOutputValues(binding.get(), host, &values, &count));
      ASSERT_EQ(count, 1u);
      made = values[0];
      host->Free(host, values);
    }).join();
    EXPECT_EQ(live("stream"), streams) << "before the tensor ends";
    DeviceTensor c(ort_, env(), device(), {4}, {});
    gcap_ort_value_t* to = c.value();
    Ok(api().CopyTensors(env(), &made, &to, nullptr, 1));
    EXPECT_EQ(c.Get(), (Floats{2, 3, 4, 5}));
    api().ReleaseValue(made);
  }
}

TEST_F(SessionTest, WaitsForItsRunsBeforeItsKernelsEnd) {
  const auto calls = Find<uint64_t (*)(const char*)>("gcap_sim_calls");
  uint64_t waits = 0;
  DeviceTensor a(ort_, env(), device(), {4}, {1, 2, 3, 4}), b(ort_, env(), device(), {4}, {1, 1, 1, 1}),
      c(ort_, env(), device(), {4}, {});
  for (const std::string id : {"-1", "0"}) {
    OrtSession session(ort_, env(), device(), Add(), {{"enable_cuda_graph", "1"}});
    ASSERT_EQ(session.error(), "");
    session.BindInput("a", a);
    session.BindInput("b", b);
    session.BindOutput("c", c);
    const Options run = {{"gpu_graph_id", id}, {"disable_synchronize_execution_providers", "1"}};
    for (int i = 0; i < 10; ++i) EXPECT_EQ(session.Run(run), "");
    waits = calls("cudaStreamSynchronize");
  }
  EXPECT_GT(plugin().waits_at_end, waits);
  EXPECT_EQ(c.Get(), (Floats{2, 3, 4, 5}));
}

TEST_F(SessionTest, PinnedMemory) {
  const gcap_ort_memory_info_t* info = api().EpDevice_MemoryInfo(device(), GCAP_ORT_MEMORY_HOST_ACCESSIBLE);
  ASSERT_NE(info, nullptr);
  gcap_ort_allocator_t* allocator = nullptr;
  Ok(api().GetSharedAllocator(env(), info, &allocator));
  const int64_t shape[] = {4};
  gcap_ort_value_t* value = nullptr;
  Ok(api().CreateTensorAsOrtValue(allocator, shape, 1, GCAP_ORT_FLOAT, &value));
  DeviceTensor tensor(ort_, env(), device(), {4}, {1, 2, 3, 4});
  gcap_ort_value_t* from = tensor.value();
  Ok(api().CopyTensors(env(), &from, &value, nullptr, 1));
  void* data = nullptr;
  Ok(api().GetTensorMutableData(value, &data));
  EXPECT_EQ(std::memcmp(data, Floats({1, 2, 3, 4}).data(), 16), 0);
  api().ReleaseValue(value);
}

// --- Streams --------------------------------------------------------------------------------------------------------

TEST_F(SessionTest, StreamOfTheApplicationCopies) {
  gcap_ort_sync_stream_t* stream = nullptr;
  Ok(api().CreateSyncStreamForEpDevice(device(), nullptr, &stream));
  EXPECT_NE(api().SyncStream_GetHandle(stream), nullptr);
  DeviceTensor from(ort_, env(), device(), {4}, {1, 2, 3, 4}), to(ort_, env(), device(), {4}, {0, 0, 0, 0});
  gcap_ort_value_t *src = from.value(), *dst = to.value();
  Ok(api().CopyTensors(env(), &src, &dst, stream, 1));
  api().ReleaseSyncStream(stream);
  EXPECT_EQ(to.Get(), (Floats{1, 2, 3, 4}));
}

// --- Graphs ---------------------------------------------------------------------------------------------------------

TEST_F(SessionTest, ReleasedGraphIsCapturedAgain) {
  if (ort_->version() < 27) GTEST_SKIP() << "SessionReleaseCapturedGraph came with 1.27";
  OrtSession session(ort_, env(), device(), Add(), {{"enable_cuda_graph", "1"}});
  ASSERT_EQ(session.error(), "");
  DeviceTensor a(ort_, env(), device(), {4}, {1, 2, 3, 4}), b(ort_, env(), device(), {4}, {1, 1, 1, 1}),
      c(ort_, env(), device(), {4}, {});
  session.BindInput("a", a);
  session.BindInput("b", b);
  session.BindOutput("c", c);
  EXPECT_EQ(session.Run({{"gpu_graph_id", "1"}}), "");
  EXPECT_EQ(session.Run({{"gpu_graph_id", "2"}}), "");
  EXPECT_EQ(plugin().captured_computes, 2);
  Ok(api().SessionReleaseCapturedGraph(session.get(), 1));
  EXPECT_EQ(session.Run({{"gpu_graph_id", "2"}}), "");
  EXPECT_EQ(plugin().captured_computes, 2);
  EXPECT_EQ(session.Run({{"gpu_graph_id", "1"}}), "");
  EXPECT_EQ(plugin().captured_computes, 3);
  Ok(api().SessionReleaseCapturedGraph(session.get(), 1));
  Ok(api().SessionReleaseCapturedGraph(session.get(), 2));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
