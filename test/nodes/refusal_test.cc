// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the kernels for nodes refuse: nodes that are not supported, whatever sizes a run brings; sizes that do not fit
// each other; tensors that a kernel was not made for.

#include <string>
#include <vector>

#include "gcap/kit/ops/nodes.h"
#include "gcap/runtime.h"
#include "gtest/gtest.h"
#include "test/nodes/node_rig.h"
#include "test/support/device_test.h"

namespace gcap {
namespace testing {
namespace {

constexpr int64_t kOpen = -1;  // as the size of a dimension: a symbol of its own
const gcap_dtype_t f32 = GCAP_DTYPE_F32, f16 = GCAP_DTYPE_F16, i64 = GCAP_DTYPE_I64, boolean = GCAP_DTYPE_BOOL,
                   i8 = GCAP_DTYPE_I8, u8 = GCAP_DTYPE_U8;

// A node without memory: types and shapes alone. A value of the shape kLeftOut is one that the node leaves out.
struct Question {
  std::string op_type;
  std::vector<std::pair<gcap_dtype_t, Shape>> inputs, outputs;
  std::function<void(Attributes*)> attributes = nullptr;
};

class NodeRefusals : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const gcap_options_t options = NodeOptions();
    GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtime_));
    GCAP_ASSERT_OK(gcap_node_kernels_create(0, &options.kernels, &kernels_));
    GCAP_ASSERT_OK(gcap_runtime_get_resources(runtime_, &resources_));
  }
  void TearDown() override {
    GCAP_EXPECT_OK(gcap_runtime_destroy(runtime_));
    GCAP_EXPECT_OK(gcap_node_kernels_destroy(kernels_));
  }

  // Calls `ask` with a model of the node.
  template <typename Ask>
  auto With(const Question& question, const Ask& ask) {
    Attributes attributes;
    if (question.attributes) question.attributes(&attributes);
    ModelBuilder m;
    std::deque<std::string> names;
    std::vector<int> inputs, outputs;
    const auto add = [&](const std::pair<gcap_dtype_t, Shape>& value) {
      Shape shape = value.second;
      for (int64_t& size : shape) {
        names.push_back("s" + std::to_string(names.size()));
        if (size == kOpen) size = m.Symbol(names.back().c_str());
      }
      return value.second == kLeftOut ? m.Value("", {0}, value.first) : m.Value("v", shape, value.first);
    };
    for (const auto& value : question.inputs) inputs.push_back(add(value));
    for (const auto& value : question.outputs) outputs.push_back(add(value));
    m.Node(question.op_type.c_str(), "n", inputs, outputs, attributes.get());
    const gcap_model_t model = m.Model();
    return ask(model);
  }
  bool Supports(const Question& question) {
    return With(question, [&](const gcap_model_t& model) {
      return gcap_node_kernels_supports(kernels_, &model, &model.nodes[0]);
    });
  }
  gcap_status_t Create(const Question& question, gcap_kernel_t* out_kernel) {
    return With(question, [&](const gcap_model_t& model) {
      return gcap_node_kernels_create_kernel(kernels_, &resources_, &model, &model.nodes[0], out_kernel);
    });
  }
  void ExpectRefused(const Question& question, gcap_code_t code, const std::string& message) {
    gcap_kernel_t kernel = {};
    GCAP_EXPECT_FAILS(Create(question, &kernel), code, message.c_str());
    EXPECT_EQ(kernel.compute, nullptr);
  }

  gcap_runtime_t* runtime_ = nullptr;
  gcap_node_kernels_t* kernels_ = nullptr;
  gcap_run_resources_t resources_ = {};
};

TEST_F(NodeRefusals, OpenSizesAreSupported) {
  EXPECT_TRUE(Supports({"MatMul", {{f32, {kOpen, 2, kOpen}}, {f32, {kOpen, 3}}}, {{f32, {kOpen, 2, 3}}}}));
  EXPECT_TRUE(
      Supports({"Conv", {{f16, {kOpen, 3, kOpen, kOpen}}, {f16, {8, 3, 3, 3}}}, {{f16, {kOpen, 8, kOpen, kOpen}}}}));
  EXPECT_TRUE(Supports({"Add", {{i64, {kOpen}}, {i64, {1}}}, {{i64, {kOpen}}}}));
}

TEST_F(NodeRefusals, NodesThatAreNotInTheTableAreNotSupported) {
  const Question questions[] = {
      {"Loop", {{f32, {2}}}, {{f32, {2}}}},                          // no such operator
      {"Add", {{f32, {2}}, {f16, {2}}}, {{f32, {2}}}},               // two types
      {"Add", {{f32, {2}}}, {{f32, {2}}}},                           // an input is missing
      {"Max", {{f32, {2}}, {f32, {2}}, {i64, {2}}}, {{f32, {2}}}},   // two types
      {"Less", {{f32, {2}}, {f32, {2}}}, {{f32, {2}}}},              // gives bool
      {"MatMul", {{i64, {2, 2}}, {i64, {2, 2}}}, {{i64, {2, 2}}}},   // integers
      {"Exp", {{i64, {2}}}, {{i64, {2}}}},                           // integers
      {"Gemm", {{f32, {2, 2, 2}}, {f32, {2, 2}}}, {{f32, {2, 2}}}},  // not a matrix
      {"Conv", {{f32, {1, 1, 4, 4, 4, 4}}, {f32, {1, 1, 1, 1, 1, 1}}}, {{f32, {1, 1, 4, 4, 4, 4}}}},  // four axes
      {"ConvTranspose", {{f32, {1, 1}}, {f32, {1, 1}}}, {{f32, {1, 1}}}},                             // no axis
      {"Split", {{f32, {9}}}, std::vector<decltype(Question::outputs)::value_type>(9, {f32, {1}})},   // more than 8
      {"Attention",  // a mask of fewer keys
       {{f32, {1, 2, 4, 8}}, {f32, {1, 2, 6, 8}}, {f32, {1, 2, 6, 8}}, {f32, {4, 3}}},
       {{f32, {1, 2, 4, 8}}}},
      {"ConvTranspose", {{f32, {1, 1, 4}}, {f32, {1, 1, 4, 1}}}, {{f32, {1, 1, 4}}}},       // weights of more axes
      {"LayerNormalization", {{f32, {2, 3}}, {f32, {3}}}, {{f32, {2, 3}}, {i64, {2, 1}}}},  // Mean is f32
      {"LayerNormalization", {{f32, {2, 3}}, {f32, {2, 3}}}, {{f32, {2, 3}}}},              // scale of more axes
      {"LRN", {{f32, {2, 3}}}, {{f32, {2, 3}}}},                                            // no size
      {"LRN", {{f32, {2, 3}}}, {{f32, {2, 3}}}, [](Attributes* a) { a->Int("size", 0); }},
      {"LRN", {{f32, {3}}}, {{f32, {3}}}, [](Attributes* a) { a->Int("size", 3); }},           // no channels
      {"InstanceNormalization", {{f32, {2, 3}}, {f32, {3, 1}}, {f32, {3}}}, {{f32, {2, 3}}}},  // scale of two axes
      {"GroupNormalization",
       {{f32, {2, 4}}, {f32, {4}}, {f32, {4}}},
       {{f32, {2, 4}}},
       [](Attributes* a) { a->Int("num_groups", 0); }},
      {"RMSNormalization", {{f32, {2, 3}}, {f32, {2}}}, {{f32, {2, 3}}}},  // scale of another size
      {"RMSNormalization", {{f32, {2, 3}}, {f32, {3}}}, {{f32, {2, 3}}}, [](Attributes* a) { a->Int("axis", 2); }},
      {"com.microsoft.SkipLayerNormalization",  // of training
       {{f32, {2, 3}}, {f32, {2, 3}}, {f32, {3}}},
       {{f32, {2, 3}}, {f32, {2, 1}}}},
      {"com.microsoft.SkipSimplifiedLayerNormalization",
       {{f32, {2, 3}}, {f32, {2, 3}}, {f32, {3}}},
       {{f32, {2, 3}}, {f32, kLeftOut}, {f32, {2, 1}}}},
      {"com.microsoft.SkipLayerNormalization", {{f32, {2}}, {f32, {2}}, {f32, {2}}}, {{f32, {2}}}},  // no rows
      {"LpNormalization", {{f32, {2, 3}}}, {{f32, {2, 3}}}, [](Attributes* a) { a->Int("p", 3); }},
      {"LpNormalization", {{f32, {2, 3}}}, {{f32, {2, 3}}}, [](Attributes* a) { a->Int("axis", -3); }},
      {"MeanVarianceNormalization", {{f32, {2, 3}}}, {{f32, {2, 3}}}},  // no axis 2
      {"MeanVarianceNormalization",
       {{f32, {2, 3, 4}}},
       {{f32, {2, 3, 4}}},
       [](Attributes* a) {
         a->Ints("axes", {1});  // neither first nor last
       }},
      {"ScatterND",
       {{f32, {2}}, {i64, {1, 1}}, {f32, {1}}},
       {{f32, {2}}},
       [](Attributes* a) { a->String("reduction", "xor"); }},
      {"TensorScatter",
       {{f32, {1, 4, 1}}, {f32, {1, 1, 1}}},
       {{f32, {1, 4, 1}}},
       [](Attributes* a) { a->String("mode", "reflect"); }},
      {"ScatterElements",
       {{boolean, {2}}, {i64, {1}}, {boolean, {1}}},
       {{boolean, {2}}},
       [](Attributes* a) { a->String("reduction", "add"); }},
      {"BatchNormalization", {{f16, {2, 3}}, {f16, {3}}, {f16, {3}}, {f16, {3}}, {f16, {3}}}, {{f16, {2, 3}}}},
      {"Dropout", {{f32, {2}}, {f32, {}}, {boolean, {}}}, {{f32, {2}}}},  // training_mode is no constant
      {"Cast", {{f32, {2}}}, {{i64, {2}}}, [](Attributes* a) { a->Int("to", 1); }},
      {"com.microsoft.FusedMatMul",
       {{f32, {2, 2, 2}}, {f32, {2, 2, 2}}},
       {{f32, {2, 2, 2}}},
       [](Attributes* a) { a->Int("transBatchA", 1); }},
      {"FusedMatMul", {{f32, {2, 2}}, {f32, {2, 2}}}, {{f32, {2, 2}}}},    // of another domain
      {"QuantizeLinear", {{f32, {2}}, {f32, {}}}, {{boolean, {2}}}},       // no integers
      {"QuantizeLinear", {{i8, {2}}, {f32, {}}}, {{i8, {2}}}},             // no numbers
      {"QuantizeLinear", {{f32, {2}}, {f32, {}}, {u8, {}}}, {{i8, {2}}}},  // two types of integers
      {"QuantizeLinear", {{f32, {2}}, {f32, {}}}, {{i8, {2}}}, [](Attributes* a) { a->Int("output_dtype", 2); }},
      {"QuantizeLinear", {{f32, {2}}, {f32, {}}}, {{i8, {2}}}, [](Attributes* a) { a->Int("precision", 11); }},
      {"QuantizeLinear", {{f32, {2}}, {f32, {}}}, {{i8, {2}}}, [](Attributes* a) { a->Int("block_size", -1); }},
      {"DequantizeLinear", {{f32, {2}}, {f32, {}}}, {{f32, {2}}}},
      {"DequantizeLinear", {{i8, {2}}, {f32, {}}, {u8, {}}}, {{f32, {2}}}},
      {"DequantizeLinear", {{i8, {2}}, {f32, {}}}, {{i8, {2}}}},
      {"Mod", {{f32, {2}}, {f32, {2}}}, {{f32, {2}}}},                                  // floats without fmod
      {"Neg", {{u8, {2}}}, {{u8, {2}}}},                                                // no signs
      {"Pow", {{i8, {2}}, {i8, {2}}}, {{i8, {2}}}},                                     // as ONNX has it
      {"BitCast", {{f32, {2}}}, {{i64, {2}}}, [](Attributes* a) { a->Int("to", 7); }},  // other sizes
      {"BitCast", {{f32, {2}}}, {{GCAP_DTYPE_I32, {2}}}, [](Attributes* a) { a->Int("to", 1); }},  // another type
      {"GridSample", {{f32, {1, 1, 2, 2}}, {f16, {1, 2, 2, 2}}}, {{f32, {1, 1, 2, 2}}}},  // a grid of another type
      {"GridSample",
       {{f32, {1, 1, 2, 2}}, {f32, {1, 2, 2, 2}}},
       {{f32, {1, 1, 2, 2}}},
       [](Attributes* a) { a->String("padding_mode", "wrap"); }},
      {"LpPool", {{f32, {1, 1, 4}}}, {{f32, {1, 1, 3}}}, [](Attributes* a) { a->Int("p", 0); }},  // no norm
      {"QLinearMatMul",
       {{i8, {2, 2}}, {f32, {}}, {u8, {}}, {i8, {2, 2}}, {f32, {}}, {i8, {}}, {f32, {}}, {i8, {}}},
       {{i8, {2, 2}}}},  // a zero point of another type
      {"QLinearMatMul",
       {{i8, {2, 2}}, {f32, {}}, {i8, {}}, {i8, {2, 2}}, {f32, {2, 1}}, {i8, {}}, {f32, {}}, {i8, {}}},
       {{i8, {2, 2}}}},                                    // scales of rank 2
      {"Mean", {{i64, {2}}, {i64, {2}}}, {{i64, {2}}}},    // integers
      {"IsNaN", {{f32, {2}}}, {{f32, {2}}}},               // gives bool
      {"Resize", {{f32, {2}}, {i64, {1}}}, {{f32, {4}}}},  // scales are f32
      {"Resize", {{f32, {2}}, {f32, {2}}, {f32, {1}}}, {{f32, {4}}}, [](Attributes* a) { a->String("mode", "area"); }},
      {"Resize", {{i64, {2}}, {f32, {1}}}, {{i64, {4}}}, [](Attributes* a) { a->String("mode", "linear"); }},
      {"Resize", {{f32, {2}}, {f32, {2}}, {f32, {1}}}, {{f32, {4}}}, [](Attributes* a) { a->Int("antialias", 1); }},
      {"Resize",
       {{f32, {2}}, {f32, {2}}, {f32, {1}}},
       {{f32, {4}}},
       [](Attributes* a) { a->String("coordinate_transformation_mode", "tf_crop_and_resize"); }},
      {"Resize",
       {{f32, {2}}, {f32, {2}}, {f32, {1}}},
       {{f32, {4}}},
       [](Attributes* a) { a->String("nearest_mode", "simple"); }},
      {"Attention", {{f32, {2, 3}}, {f32, {2, 3}}, {f32, {2, 3}}}, {{f32, {2, 3}}}},  // no heads
      {"Attention",
       {{boolean, {1, 1, 1, 1}}, {boolean, {1, 1, 1, 1}}, {boolean, {1, 1, 1, 1}}},
       {{boolean, {1, 1, 1, 1}}}},
      {"Attention",
       {{f32, {1, 1, 1, 1}}, {f32, {1, 1, 1, 1}}, {f32, {1, 1, 1, 1}}, {f16, {1, 1}}},
       {{f32, {1, 1, 1, 1}}}},
      {"Attention", {{f32, {1, 1, 1, 1}}, {f32, {1, 1, 1, 1}}, {f32, {1, 1, 1, 1}}, {f32, {1}}}, {{f32, {1, 1, 1, 1}}}},
      {"Attention",
       {{f32, {1, 1, 1, 1}}, {f32, {1, 1, 1, 1}}, {f32, {1, 1, 1, 1}}},
       {{f32, {1, 1, 1, 1}}},
       [](Attributes* a) { a->Int("qk_matmul_output_mode", 1); }},
      {"Attention",
       {{f32, {1, 1, 1, 1}}, {f32, {1, 1, 1, 1}}, {f32, {1, 1, 1, 1}}},
       {{f32, {1, 1, 1, 1}}},
       [](Attributes* a) { a->Int("softmax_precision", 11); }},
      {"com.microsoft.MultiHeadAttention",  // packed
       {{f32, {1, 2, 2, 3, 4}}},
       {{f32, {1, 2, 8}}},
       [](Attributes* a) { a->Int("num_heads", 2); }},
      {"com.microsoft.MultiHeadAttention",
       {{f32, {1, 2, 8}}, {f32, {1, 2, 2, 2, 4}}, {f32, kLeftOut}},
       {{f32, {1, 2, 8}}},
       [](Attributes* a) { a->Int("num_heads", 2); }},
      {"com.microsoft.MultiHeadAttention",  // no heads
       {{f32, {1, 2, 8}}, {f32, {1, 2, 8}}, {f32, {1, 2, 8}}},
       {{f32, {1, 2, 8}}}},
      {"com.microsoft.MultiHeadAttention",  // offsets of packed batches
       {{f32, {1, 2, 8}}, {f32, {1, 2, 8}}, {f32, {1, 2, 8}}, {f32, kLeftOut}, {GCAP_DTYPE_I32, {5}}},
       {{f32, {1, 2, 8}}},
       [](Attributes* a) { a->Int("num_heads", 2); }},
      {"com.microsoft.MultiHeadAttention",  // a mask without the past
       {{f32, {1, 1, 8}},
        {f32, {1, 1, 8}},
        {f32, {1, 1, 8}},
        {f32, kLeftOut},
        {GCAP_DTYPE_I32, {1, 1}},
        {f32, kLeftOut},
        {f32, {1, 2, 3, 4}},
        {f32, {1, 2, 3, 4}}},
       {{f32, {1, 1, 8}}, {f32, {1, 2, 4, 4}}, {f32, {1, 2, 4, 4}}},
       [](Attributes* a) { a->Int("num_heads", 2); }},
      {"com.microsoft.MultiHeadAttention",  // a past without a present
       {{f32, {1, 1, 8}},
        {f32, {1, 1, 8}},
        {f32, {1, 1, 8}},
        {f32, kLeftOut},
        {f32, kLeftOut},
        {f32, kLeftOut},
        {f32, {1, 2, 3, 4}},
        {f32, {1, 2, 3, 4}}},
       {{f32, {1, 1, 8}}},
       [](Attributes* a) { a->Int("num_heads", 2); }},
      {"com.microsoft.MultiHeadAttention",
       {{f32, {1, 2, 8}}, {f32, {1, 3, 8}}, {f32, {1, 3, 8}}},
       {{f32, {1, 2, 8}}},
       [](Attributes* a) { a->Int("num_heads", 2).Int("unidirectional", 1); }},
      {"BitShift", {{u8, {2}}, {u8, {2}}}, {{u8, {2}}}},  // no direction
      {"BitShift", {{i8, {2}}, {i8, {2}}}, {{i8, {2}}}, [](Attributes* a) { a->String("direction", "LEFT"); }},
      {"Einsum", {{f32, {2, 2}}}, {{f32, {2, 2}}}},  // no equation
      {"Einsum", {{f32, {2, 2}}}, {{f32, {2}}}, [](Attributes* a) { a->String("equation", "i->i"); }},
      {"Einsum",  // ten axes on the way
       {{f32, {2, 2, 2, 2, 2}}, {f32, {2, 2, 2, 2, 2}}, {f32, {2, 2, 2, 2, 2}}},
       {{f32, {2, 2, 2, 2, 2}}},
       [](Attributes* a) { a->String("equation", "abcde,fghij,fghij->abcde"); }},
      {"RotaryEmbedding", {{f32, {4, 4}}, {f32, {4, 2}}, {f32, {4, 2}}, {i64, {1, 4}}}, {{f32, {4, 4}}}},
      {"com.microsoft.RotaryEmbedding",
       {{f32, {1, 4, 4}}, {i64, {1}}, {f32, {4, 2}}, {f32, {4, 2}}},
       {{f32, {1, 4, 4}}},
       [](Attributes* a) { a->Float("scale", 0.5f); }},
      {"DynamicQuantizeLinear", {{f16, {2}}}, {{u8, {2}}, {f32, {}}, {u8, {}}}},
      {"MatMulInteger", {{i8, {2, 2}}, {i8, {2, 2}}}, {{i64, {2, 2}}}},
      {"MatMulInteger", {{i8, {2, 2}}, {u8, {2, 2}}, {u8, {}}}, {{GCAP_DTYPE_I32, {2, 2}}}},
      {"MatMulInteger", {{i8, {2, 2}}, {u8, {2, 2}}, {i8, {2, 1}}}, {{GCAP_DTYPE_I32, {2, 2}}}},
      {"Gelu", {{f32, {2}}}, {{f32, {2}}}, [](Attributes* a) { a->String("approximate", "cubic"); }},
      {"Gemm", {{f32, {2, 2}}, {f32, {2, 2}}}, {{f32, {2, 2}}}, [](Attributes* a) { a->String("activation", "Elu"); }},
      {"Slice", {{f32, {2}}, {i64, {1}}}, {{f32, {2}}}},  // starts without ends
      {"Pad", {{i64, {2}}}, {{i64, {2}}}, [](Attributes* a) { a->Ints("pads", {0, 0}).Float("value", 1); }},
      {"Pad", {{f32, {2}}, {i64, {2}}, {i64, {}}}, {{f32, {2}}}},                                       // two types
      {"OneHot", {{boolean, {2}}, {i64, {}}, {f32, {2}}}, {{f32, {2, 3}}}},                             // no index
      {"OneHot", {{i64, {2}}, {f16, {}}, {f32, {2}}}, {{f32, {2, 3}}}},                                 // no depth
      {"EyeLike", {{f32, {2, 2}}}, {{i64, {2, 2}}}},                                                    // no dtype
      {"EyeLike", {{f32, {2, 2}}}, {{i64, {2, 2}}}, [](Attributes* a) { a->Int("dtype", 6); }},         // another one
      {"ReverseSequence", {{f32, {2, 2}}, {f32, {2}}}, {{f32, {2, 2}}}},                                // no lengths
      {"Range", {{f16, {}}, {f16, {}}, {f16, {}}}, {{f16, {2}}}},                                       // no f16
      {"ConstantOfShape", {{i64, {1}}}, {{i64, {2}}}, [](Attributes* a) { a->Float("value", 1.5f); }},  // a float
      {"Clip", {{f32, kLeftOut}}, {{f32, kLeftOut}}},  // what is required
      {"Resize", {{f32, kLeftOut}, {f32, kLeftOut}, {f32, {1}}}, {{f32, {kOpen}}}},
      {"Dropout", {{f32, {2}}, {f32, kLeftOut}}, {{f32, {2}}}},  // not with this operator
  };
  for (const Question& question : questions) {
    SCOPED_TRACE(question.op_type);
    EXPECT_FALSE(Supports(question));
    ExpectRefused(question, GCAP_INVALID_ARGUMENT, "node 'n' (" + question.op_type + ") is not supported");
  }
}

// Where a network keeps to the defaults, whatever ranks ONNX Runtime knows.
TEST_F(NodeRefusals, RecurrentNetworksAreSupportedWithDefaultActivationsAlone) {
  const auto supports = [&](const std::function<void(Attributes*)>& more, gcap_dtype_t lengths = GCAP_DTYPE_I32) {
    return Supports({"LSTM",
                     {{f32, {4, kOpen, 5}}, {f32, {1, 12, 5}}, {f32, {1, 12, 3}}, {f32, kLeftOut}, {lengths, {kOpen}}},
                     {{f32, kLeftOut}, {f32, {1, kOpen, 3}}},
                     more});
  };
  EXPECT_TRUE(supports([](Attributes*) {}));
  EXPECT_TRUE(supports([](Attributes* a) { a->String("activations", "Sigmoid,Tanh,Tanh"); }));
  EXPECT_TRUE(supports([](Attributes* a) { a->String("activations", "sigmoid,tanh,tanh,Sigmoid,Tanh,Tanh"); }));
  EXPECT_TRUE(supports([](Attributes* a) { a->Int("input_forget", 0); }));
  EXPECT_FALSE(supports([](Attributes* a) { a->String("activations", "Sigmoid,Tanh,Relu"); }));
  EXPECT_FALSE(supports([](Attributes* a) { a->String("activations", "Sigmoid,Tanh,TanhSigmoid"); }));
  EXPECT_FALSE(supports([](Attributes* a) { a->Int("input_forget", 1); }));
  EXPECT_FALSE(supports([](Attributes* a) { a->Float("clip", 1.0f); }));
  EXPECT_FALSE(supports([](Attributes*) {}, i64)) << "lengths are i32";
  EXPECT_TRUE(Supports({"LSTM", {{f32, {4}}, {f32, {1}}, {f32, {1, 12, 3}}}, {{f32, {4}}}})) << "sizes are for the run";
  const auto supports_gru = [&](const char* activations) {
    return Supports(
        {"GRU", {{f32, {4, 2, 5}}, {f32, {1, 9, 5}}, {f32, {1, 9, 3}}}, {{f32, {4, 1, 2, 3}}}, [=](Attributes* a) {
           a->String("activations", activations);
         }});
  };
  EXPECT_TRUE(supports_gru("Sigmoid,Tanh"));
  EXPECT_FALSE(supports_gru("Sigmoid,Tanh,Tanh"));
  EXPECT_FALSE(supports_gru("Tanh"));
}

TEST_F(NodeRefusals, PoolsAreSupportedIfTheirPadsAreSmallerThanTheWindowReaches) {
  const auto supports = [&](const std::function<void(Attributes*)>& more) {
    return Supports({"MaxPool",
                     {{f32, {kOpen, 3, kOpen, kOpen}}},
                     {{f32, {kOpen, 3, GCAP_DIM_INFERRED, GCAP_DIM_INFERRED}}},
                     [&](Attributes* a) {
                       more(&a->Ints("kernel_shape", {3, 3}).Ints("strides", {2, 2}));
                     }});
  };
  EXPECT_TRUE(supports([](Attributes*) {}));
  EXPECT_TRUE(supports([](Attributes* a) { a->Ints("pads", {0, 0, 2, 1}); }));
  EXPECT_TRUE(supports([](Attributes* a) { a->Int("ceil_mode", 1); }));
  EXPECT_TRUE(supports([](Attributes* a) { a->String("auto_pad", "SAME_UPPER"); }));
  EXPECT_TRUE(supports([](Attributes* a) { a->Ints("dilations", {2, 2}).Ints("pads", {4, 0, 0, 4}); }));
  EXPECT_FALSE(supports([](Attributes* a) { a->Ints("pads", {3, 0, 0, 0}); }));
  EXPECT_FALSE(supports([](Attributes* a) { a->Ints("pads", {0, 0, 0, 3}); }));
  EXPECT_FALSE(supports([](Attributes* a) { a->Ints("dilations", {2, 2}).Ints("pads", {0, 5, 0, 0}); }));
  EXPECT_FALSE(Supports({"MaxPool",
                         {{f32, {1, 1, 4}}},
                         {{f32, {1, 1, 2}}, {i64, {1, 1, 2}}},
                         [](Attributes* a) { a->Ints("kernel_shape", {3}); }}))
      << "Indices";
}

TEST_F(NodeRefusals, ShapesThatDoNotFitAreNamedWhereTheKernelIsMade) {
  ExpectRefused({"PRelu", {{f32, {3, 1}}, {f32, {4}}}, {{f32, {3, 4}}}}, GCAP_INVALID_ARGUMENT,
                "node 'n' (PRelu): dimension 0 of input 1 is 4, allowed is 1, as input 0 has");
  ExpectRefused({"MatMul", {{f32, {2, 3}}, {f32, {4, 5}}}, {{f32, {2, 5}}}}, GCAP_INVALID_ARGUMENT,
                "node 'n' (MatMul): ");
  ExpectRefused({"Conv", {{f32, {1, 3, 4, 4}}, {f32, {2, 4, 3, 3}}}, {{f32, {1, 2, 2, 2}}}}, GCAP_INVALID_ARGUMENT,
                "node 'n' (Conv): input 0 has 3 channels, input 1 has 4");
  ExpectRefused({"Conv",
                 {{f32, {1, 1, 0, 4, 4}}, {f32, {1, 1, 2, 3, 3}}},
                 {{f32, {1, 1, 1, 2, 2}}},
                 [](Attributes* a) {
                   a->Ints("pads", {1, 0, 0, 1, 0, 0});
                 }},
                GCAP_INVALID_ARGUMENT, "node 'n' (Conv): axis 2 of input 0 is 0, allowed is 1 or more");
  ExpectRefused({"Add", {{f32, {2}}, {f32, {3}}}, {{f32, {3}}}}, GCAP_INVALID_ARGUMENT, "node 'n' (Add): ");
  const std::pair<gcap_dtype_t, Shape> long_vector = {f32, {int64_t{1} << 32}};  // 2^64 products of two
  ExpectRefused({"Einsum",
                 {long_vector, long_vector, long_vector, long_vector},
                 {{f32, {}}},
                 [](Attributes* a) { a->String("equation", "j,k,j,k->"); }},
                GCAP_INVALID_ARGUMENT,
                "node 'n' (Einsum): what is made on the way would have more than 230584300921369395");
  ExpectRefused({"Relu", {{f32, {2}}}, {{f32, {GCAP_DIM_INFERRED}}}}, GCAP_INVALID_ARGUMENT,
                "node 'n' (Relu): dimension 0 of value 1 is -9223372036854775808, allowed is 0 or more");
  ExpectRefused(
      {"BatchNormalization", {{f32, {2, 3}}, {f32, {3}}, {f32, {3}}, {f32, {4}}, {f32, {3}}}, {{f32, {2, 3}}}},
      GCAP_INVALID_ARGUMENT, "node 'n' (BatchNormalization): input 3 has 4 elements, input 0 has 3 channels");
  ExpectRefused({"QuantizeLinear", {{f32, {2, 3}}, {f32, {2}}}, {{u8, {2, 3}}}}, GCAP_INVALID_ARGUMENT,
                "node 'n' (QuantizeLinear): dimension 0 of input 1 is 2, allowed is 3");
  ExpectRefused({"GlobalAveragePool", {{f32, {int64_t{1} << 31, 1, 1, 1}}}, {{f32, {int64_t{1} << 31, 1, 1, 1}}}},
                GCAP_INVALID_ARGUMENT,
                "node 'n' (GlobalAveragePool): an axis of input 0 is 2147483648, allowed is up to 2147483647");
  ExpectRefused({"GlobalMaxPool", {{f32, {1, 1, 1 << 16, 1 << 16, 1}}}, {{f32, {1, 1, 1, 1, 1}}}},
                GCAP_INVALID_ARGUMENT,
                "node 'n' (GlobalMaxPool): an axis of input 0 is 4294967296, allowed is up to 2147483647");
  const int64_t many = int64_t{1} << 30;
  ExpectRefused(
      {"LSTM",
       {{f32, {many, many, 0}}, {f32, {1, 4, 0}}, {f32, {1, 4, 1}}},
       {{f32, kLeftOut}, {f32, {1, many, 1}}, {f32, {1, many, 1}}}},
      GCAP_INVALID_ARGUMENT,
      "node 'n' (LSTM): the number of steps times the batch is 1152921504606846976, allowed is up to 2147483647");
}

TEST_F(NodeRefusals, KernelsRefuseTensorsThatTheyWereNotMadeFor) {
  gcap_kernel_t kernel = {};
  GCAP_ASSERT_OK(Create({"Relu", {{f32, {2, 3}}}, {{f32, {2, 3}}}}, &kernel));
  DeviceTensor x(f32, {2, 3}), y(f32, {2, 3}), half(f16, {2, 3});
  const auto compute = [&](const gcap_tensor_t& in, gcap_tensor_t out) {
    gcap_kernel_context_t context = {};
    context.resources = resources_;
    context.inputs = &in;
    context.outputs = &out;
    return kernel.compute(kernel.self, &context);
  };
  GCAP_EXPECT_OK(compute(x.view(), y.view()));
  GCAP_EXPECT_FAILS(compute(half.view(), y.view()), GCAP_INVALID_ARGUMENT, "node 'n' (Relu): input 0 is of type f16");
  GCAP_EXPECT_FAILS(compute(View(f32, {6}, x.view().data), y.view()), GCAP_INVALID_ARGUMENT,
                    "input 0 has rank 1, the kernel was made for 2");
  GCAP_EXPECT_FAILS(compute(x.view(), View(f32, {2, 4}, y.view().data)), GCAP_INVALID_ARGUMENT,
                    "dimension 1 of output 0 is 4, the kernel was made for 3");
  GCAP_EXPECT_OK(gcap_stream_synchronize(resources_.stream));
  kernel.destroy(kernel.self);
}

// Sizes that only a run knows are compared when the work is issued.
TEST_F(NodeRefusals, SizesOfScalesThatDoNotFitAreNamed) {
  const DeviceTensor x(f32, {2, 4}), y(f32, {2, 4}), scale(f32, {4}), three(f32, {3});
  const auto compute = [&](const Question& question, const std::vector<gcap_tensor_t>& inputs) {
    gcap_kernel_t kernel = {};
    GCAP_EXPECT_OK(Create(question, &kernel));
    gcap_tensor_t output = y.view();
    gcap_kernel_context_t context = {};
    context.resources = resources_;
    context.inputs = inputs.data();
    context.outputs = &output;
    gcap_status_t status = kernel.compute(kernel.self, &context);
    GCAP_EXPECT_OK(gcap_stream_synchronize(resources_.stream));
    kernel.destroy(kernel.self);
    return status;
  };
  const auto groups = [](Attributes* a) { a->Int("num_groups", 3); };
  GCAP_EXPECT_FAILS(compute({"InstanceNormalization", {{f32, {2, 4}}, {f32, {4}}, {f32, {3}}}, {{f32, {2, 4}}}},
                            {x.view(), scale.view(), three.view()}),
                    GCAP_INVALID_ARGUMENT,
                    "node 'n' (InstanceNormalization): input 2 has 3 elements, input 0 has 4 channels");
  GCAP_EXPECT_FAILS(compute({"GroupNormalization", {{f32, {2, 4}}, {f32, {4}}, {f32, {4}}}, {{f32, {2, 4}}}, groups},
                            {x.view(), scale.view(), scale.view()}),
                    GCAP_INVALID_ARGUMENT, "num_groups is 3, input 0 has 4 channels");
}

// What a run brings in host memory must give the shapes that the kernel was made for, as it must on the CPU EP.
TEST_F(NodeRefusals, ContentsOfARunThatDoNotFitAreNamed) {
  DeviceTensor x(f32, {2, 1, 3}), y(f32, {2, 3});
  std::vector<int64_t> numbers;
  const auto compute = [&](const Question& question) {
    gcap_kernel_t kernel = {};
    GCAP_EXPECT_OK(Create(question, &kernel));
    const gcap_tensor_t inputs[] = {View(f32, question.inputs[0].second, x.view().data),
                                    View(i64, question.inputs[1].second, numbers.data())};
    const gcap_tensor_t output = View(f32, question.outputs[0].second, y.view().data);
    gcap_kernel_context_t context = {};
    context.resources = resources_;
    context.inputs = inputs;
    gcap_tensor_t outputs[] = {output, View(i64, question.outputs.back().second, y.view().data)};
    context.outputs = outputs;
    gcap_status_t status = kernel.compute(kernel.self, &context);
    GCAP_EXPECT_OK(gcap_stream_synchronize(resources_.stream));
    kernel.destroy(kernel.self);
    return status;
  };
  const Question squeeze = {"Squeeze", {{f32, {2, 1, 3}}, {i64, {1}}}, {{f32, {2, 3}}}};
  numbers = {-2};
  GCAP_EXPECT_OK(compute(squeeze));
  numbers = {7};
  GCAP_EXPECT_FAILS(compute(squeeze), GCAP_INVALID_ARGUMENT, "node 'n' (Squeeze): axes[0] is 7, allowed is -3..2");
  numbers = {0};
  GCAP_EXPECT_FAILS(compute(squeeze), GCAP_INVALID_ARGUMENT, "dimension 0 of input 0 is 2, allowed is 1");
  const Question reshape = {"Reshape", {{f32, {2, 1, 3}}, {i64, {2}}}, {{f32, {2, 3}}}};
  numbers = {2, -1};
  GCAP_EXPECT_OK(compute(reshape));
  numbers = {3, -1};
  GCAP_EXPECT_FAILS(compute(reshape), GCAP_INVALID_ARGUMENT, "dimension 0 of output 0 is 2, its inputs give 3");
  const Question top = {"TopK", {{f32, {2, 1, 3}}, {i64, {1}}}, {{f32, {2, 1, 2}}, {i64, {2, 1, 2}}}};
  numbers = {4};
  GCAP_EXPECT_FAILS(compute(top), GCAP_INVALID_ARGUMENT, "node 'n' (TopK): k is 4, allowed is 0..3");
  numbers = {1};
  GCAP_EXPECT_FAILS(compute(top), GCAP_INVALID_ARGUMENT, "dimension 2 of output 0 is 2, its inputs give 1");
  const Question sum = {"ReduceSum", {{f32, {2, 1, 3}}, {i64, {1}}}, {{f32, {2, 1, 1}}}};
  numbers = {2};
  GCAP_EXPECT_OK(compute(sum));
  numbers = {0};
  GCAP_EXPECT_FAILS(compute(sum), GCAP_INVALID_ARGUMENT, "dimension 0 of output 0 is 2, its inputs give 1");
}

// The value of a Pad decides no shape, and is read when the work is issued.
TEST_F(NodeRefusals, TheValueOfAPadIsOneElement) {
  DeviceTensor x(f32, {2}), y(f32, {3});
  const int64_t pads[] = {1, 0};
  const float values[] = {0.5f, 1.5f};
  const auto compute = [&](const Shape& shape, const float* value) {
    gcap_kernel_t kernel = {};
    GCAP_EXPECT_OK(Create({"Pad", {{f32, {2}}, {i64, {2}}, {f32, shape}}, {{f32, {3}}}}, &kernel));
    const gcap_tensor_t inputs[] = {x.view(), View(i64, {2}, const_cast<int64_t*>(pads)),
                                    View(f32, shape, const_cast<float*>(value))};
    gcap_tensor_t outputs[] = {y.view()};
    gcap_kernel_context_t context = {};
    context.resources = resources_;
    context.inputs = inputs;
    context.outputs = outputs;
    gcap_status_t status = kernel.compute(kernel.self, &context);
    GCAP_EXPECT_OK(gcap_stream_synchronize(resources_.stream));
    kernel.destroy(kernel.self);
    return status;
  };
  x.Set({4, 5});
  GCAP_EXPECT_OK(compute({1}, values));
  EXPECT_EQ(y.Get(), Values({0.5, 4, 5}));
  GCAP_EXPECT_OK(compute({}, values + 1));
  EXPECT_EQ(y.Get(), Values({1.5, 4, 5}));
  GCAP_EXPECT_FAILS(compute({2}, values), GCAP_INVALID_ARGUMENT,
                    "node 'n' (Pad): input 2 (constant_value) has 2 elements, allowed is 1");
  GCAP_EXPECT_FAILS(compute({}, nullptr), GCAP_INVALID_ARGUMENT, "node 'n' (Pad): input 2 has an element at NULL");
}

TEST_F(NodeRefusals, WhatTheHostReadsIsSaid) {
  const auto place = [&](const Question& question, int input) {
    return With(question, [&](const gcap_model_t& model) {
      return gcap_node_kernels_input_place(kernels_, &model, &model.nodes[0], input);
    });
  };
  const Question reshape = {"Reshape", {{f32, {2, 3}}, {i64, {1}}}, {{f32, {6}}}};
  EXPECT_EQ(place(reshape, 0), GCAP_INPUT_IN_EP_MEMORY);
  EXPECT_EQ(place(reshape, 1), GCAP_INPUT_IN_HOST_MEMORY);
  const Question slice = {"Slice", {{f32, {4}}, {i64, {1}}, {i64, {1}}, {i64, {1}}, {i64, {1}}}, {{f32, {kOpen}}}};
  for (int input = 1; input < 5; ++input) EXPECT_EQ(place(slice, input), GCAP_INPUT_IN_HOST_MEMORY);
  EXPECT_EQ(place({"Gather", {{f32, {4}}, {i64, {1}}}, {{f32, {1}}}}, 1), GCAP_INPUT_IN_EP_MEMORY);
  EXPECT_EQ(place({"Concat", {{f32, {4}}, {f32, {1}}, {f32, {1}}}, {{f32, {6}}}}, 2), GCAP_INPUT_IN_EP_MEMORY);
}

// --- Options --------------------------------------------------------------------------------------------------------

TEST_F(NodeRefusals, WithoutCudnnItsOperatorsAreNotSupported) {
  gcap_kernel_options_t options;
  gcap_kernel_options_init(&options);
  options.use_cudnn = false;
  GCAP_EXPECT_OK(gcap_node_kernels_destroy(kernels_));
  GCAP_ASSERT_OK(gcap_node_kernels_create(0, &options, &kernels_));
  EXPECT_FALSE(Supports({"Conv", {{f32, {1, 1, 4, 4}}, {f32, {1, 1, 1, 1}}}, {{f32, {1, 1, 4, 4}}}}));
  EXPECT_FALSE(Supports({"GlobalAveragePool", {{f32, {1, 1, 4, 4}}}, {{f32, {1, 1, 1, 1}}}}));
  EXPECT_TRUE(Supports({"MatMul", {{f32, {2, 2}}, {f32, {2, 2}}}, {{f32, {2, 2}}}}));
}

TEST_F(NodeRefusals, ArgumentsThatAreWrongAreNamed) {
  gcap_node_kernels_t* kernels = nullptr;
  GCAP_EXPECT_FAILS(gcap_node_kernels_create(0, nullptr, nullptr), GCAP_INVALID_ARGUMENT, "out_kernels is NULL");
  gcap_kernel_options_t options = {};
  GCAP_EXPECT_FAILS(gcap_node_kernels_create(0, &options, &kernels), GCAP_INVALID_ARGUMENT, "gcap_kernel_options_init");
  GCAP_EXPECT_FAILS(gcap_node_kernels_create(999, nullptr, &kernels), GCAP_INVALID_ARGUMENT, "999");
  gcap_kernel_options_init(&options);
  options.prefer_nhwc = true;
  GCAP_EXPECT_FAILS(gcap_node_kernels_create(0, &options, &kernels), GCAP_INVALID_ARGUMENT,
                    "prefer_nhwc is 1, allowed is 0: tensors of a model are NCHW");
  EXPECT_EQ(kernels, nullptr);
  GCAP_EXPECT_OK(gcap_node_kernels_destroy(nullptr));
  With({"Relu", {{f32, {2}}}, {{f32, {2}}}}, [&](const gcap_model_t& model) {
    gcap_kernel_t kernel;
    const gcap_node_t* node = &model.nodes[0];
    const auto create = gcap_node_kernels_create_kernel;
    GCAP_EXPECT_FAILS(create(nullptr, &resources_, &model, node, &kernel), GCAP_INVALID_ARGUMENT, "kernels is NULL");
    GCAP_EXPECT_FAILS(create(kernels_, nullptr, &model, node, &kernel), GCAP_INVALID_ARGUMENT, "resources is NULL");
    GCAP_EXPECT_FAILS(create(kernels_, &resources_, nullptr, node, &kernel), GCAP_INVALID_ARGUMENT, "model is NULL");
    GCAP_EXPECT_FAILS(create(kernels_, &resources_, &model, nullptr, &kernel), GCAP_INVALID_ARGUMENT, "node is NULL");
    GCAP_EXPECT_FAILS(create(kernels_, &resources_, &model, node, nullptr), GCAP_INVALID_ARGUMENT,
                      "out_kernel is NULL");
    return 0;
  });
}

}  // namespace
}  // namespace testing
}  // namespace gcap
