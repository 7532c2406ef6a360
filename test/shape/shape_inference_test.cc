// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Shapes by operator. Expected ones are those of the examples in ONNX's operator documentation (onnx.ai/onnx/operators)
// where a case names one, and else worked out by hand from its text.

#include "gcap/kit/shape_inference.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/shape/onnx_node.h"
#include "test/support/expect_status.h"

namespace {

using gcap::testing::Host;
using gcap::testing::OnnxNode;
using gcap::testing::Outcome;
using gcap::testing::Sizes;

constexpr int64_t kOpen = GCAP_DIM_INFERRED;

Host F(const Sizes& shape) { return Host(GCAP_DTYPE_F32, shape); }
Host N(const std::vector<int64_t>& numbers) { return Host::Numbers(numbers); }
Host Unknown(int64_t count) { return Host(GCAP_DTYPE_I64, Sizes{count}); }

gcap_status_t Infer(OnnxNode& op, const std::vector<Host>& inputs, std::vector<gcap_tensor_t>* outputs) {
  std::vector<gcap_tensor_t> tensors;
  for (const Host& input : inputs) tensors.push_back(input.Tensor());
  const gcap_node_t node = op.Node(static_cast<int>(inputs.size()), static_cast<int>(outputs->size()));
  return gcap_infer_shapes(&node, tensors.data(), outputs->data());
}

Sizes ShapeOf(const gcap_tensor_t& tensor) { return Sizes(tensor.shape, tensor.shape + tensor.rank); }

// The inputs give `expected`: to an output of open sizes, and to one that has them already.
void ExpectShape(OnnxNode&& op, const std::vector<Host>& inputs, const Sizes& expected) {
  SCOPED_TRACE(op.op_type());
  std::vector<gcap_tensor_t> outputs = {F(Sizes(expected.size(), kOpen)).Tensor()};
  GCAP_ASSERT_OK(Infer(op, inputs, &outputs));
  EXPECT_EQ(ShapeOf(outputs[0]), expected);
  outputs = {F(expected).Tensor()};
  GCAP_EXPECT_OK(Infer(op, inputs, &outputs));
  EXPECT_EQ(ShapeOf(outputs[0]), expected);
}

// The refusal says `message` behind the node's name and op, and the output is as before.
void ExpectRefused(OnnxNode&& op, const std::vector<Host>& inputs, int rank, const std::string& message) {
  SCOPED_TRACE(op.op_type());
  const Sizes open(static_cast<size_t>(rank), kOpen);
  std::vector<gcap_tensor_t> outputs = {F(open).Tensor()};
  const Outcome outcome(Infer(op, inputs, &outputs));
  EXPECT_STREQ(gcap_code_name(outcome.code), "INVALID_ARGUMENT");
  EXPECT_EQ(outcome.message, "node 'n' (" + op.op_type() + "): " + message);
  EXPECT_EQ(ShapeOf(outputs[0]), open);
}

// --- What holds for all ---------------------------------------------------------------------------------------------

TEST(ShapeInference, AnOperatorThatItDoesNotKnowIsUnimplemented) {
  for (const std::string other : {"", "conv", "NonZero", "Loop"}) {
    OnnxNode op(other);
    std::vector<gcap_tensor_t> outputs = {F({kOpen}).Tensor()};
    const Outcome outcome(Infer(op, {F({2})}, &outputs));
    EXPECT_EQ(outcome.code, GCAP_UNIMPLEMENTED);
    EXPECT_EQ(outcome.message, "node 'n': the shapes of op '" + other + "' cannot be inferred");
  }
}

TEST(ShapeInference, RefusesCountsRanksAndSizes) {
  ExpectRefused(OnnxNode("Add"), {F({2})}, 1, "it has 1 inputs, allowed is 2..2");
  ExpectRefused(OnnxNode("Max"), {}, 1, "it has 0 inputs, allowed is 1 or more");
  ExpectRefused(OnnxNode("Relu"), {F({2, -1})}, 2, "dimension 1 of input 0 is -1, allowed is 0 or more");
  ExpectRefused(OnnxNode("Relu"), {F(Sizes(9, 1))}, 8, "input 0 has rank 9, allowed is 0..8");
  ExpectRefused(OnnxNode("Relu"), {F({INT64_C(1) << 61, 0, 2})}, 3,
                "input 0 has more than PTRDIFF_MAX (9223372036854775807) bytes");
  ExpectRefused(OnnxNode("Relu"), {F({2, 3})}, 1, "output 0 has rank 1, its inputs give 2");
}

TEST(ShapeInference, AnOutputsSizeMustBeTheOneThatInputsGive) {
  OnnxNode op("Relu");
  std::vector<gcap_tensor_t> outputs = {F({kOpen, 4}).Tensor()};
  const Outcome outcome(Infer(op, {F({2, 3})}, &outputs));
  EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
  EXPECT_EQ(outcome.message, "node 'n' (Relu): dimension 1 of output 0 is 4, its inputs give 3");
  EXPECT_EQ(ShapeOf(outputs[0]), (Sizes{kOpen, 4}));
}

TEST(ShapeInference, SizesThatDependOnAnUnknownContentStayOpen) {
  ExpectShape(OnnxNode("Reshape"), {F({2, 3}), Unknown(3)}, {kOpen, kOpen, kOpen});
  ExpectShape(OnnxNode("Expand"), {F({2, 3}), Unknown(1)}, {kOpen, kOpen});
  ExpectShape(OnnxNode("ConstantOfShape"), {Unknown(2)}, {kOpen, kOpen});
  ExpectShape(OnnxNode("Slice"), {F({2, 3}), N({0}), Unknown(1)}, {kOpen, kOpen});
  ExpectShape(OnnxNode("ReduceSum"), {F({2, 3}), Unknown(1)}, {kOpen, kOpen});
  ExpectShape(OnnxNode("Unsqueeze"), {F({2, 3}), Unknown(1)}, {kOpen, kOpen, kOpen});
  ExpectShape(OnnxNode("Squeeze"), {F({2, 1}), Unknown(1)}, {kOpen});
  ExpectShape(OnnxNode("Squeeze"), {F({1, 1}), Unknown(2)}, {});
  const Host scalar(GCAP_DTYPE_I64, Sizes{});
  ExpectShape(OnnxNode("Range"), {scalar, scalar, scalar}, {kOpen});
}

// How many axes there are says the rank, whatever they are.
TEST(ShapeInference, UnknownAxesOfASqueezeHaveACount) {
  ExpectRefused(OnnxNode("Squeeze"), {F({2, 1}), Unknown(1)}, 2, "output 0 has rank 2, its inputs give 1");
  ExpectRefused(OnnxNode("Squeeze"), {F({1, 1}), Unknown(3)}, 0, "it has 3 axes, input 0 has 2 dimensions");
}

TEST(ShapeInference, RefusesRanksOfOutputs) {
  for (const int rank : {-1, GCAP_MAX_RANK + 1}) {
    for (const char* op_type : {"Squeeze", "ReduceSum", "Split", "Relu"}) {
      OnnxNode op(op_type);
      std::vector<gcap_tensor_t> outputs = {F({}).Tensor()};
      outputs[0].rank = rank;
      const std::vector<Host> one = {F({1})}, two = {F({1}), Unknown(1)};
      const Outcome outcome(Infer(op, op_type == std::string("Relu") ? one : two, &outputs));
      EXPECT_EQ(outcome.code, GCAP_INVALID_ARGUMENT);
      EXPECT_EQ(outcome.message,
                "node 'n' (" + op.op_type() + "): output 0 has rank " + std::to_string(rank) + ", allowed is 0..8");
    }
  }
}

// --- Element by element ---------------------------------------------------------------------------------------------

// The examples of onnx's docs/Broadcasting.md.
TEST(ShapeInference, Broadcasts) {
  ExpectShape(OnnxNode("Add"), {F({2, 3, 4, 5}), F({})}, {2, 3, 4, 5});
  ExpectShape(OnnxNode("Add"), {F({2, 3, 4, 5}), F({5})}, {2, 3, 4, 5});
  ExpectShape(OnnxNode("Add"), {F({4, 5}), F({2, 3, 4, 5})}, {2, 3, 4, 5});
  ExpectShape(OnnxNode("Add"), {F({1, 4, 5}), F({2, 3, 1, 1})}, {2, 3, 4, 5});
  ExpectShape(OnnxNode("Add"), {F({3, 4, 5}), F({2, 1, 1, 1})}, {2, 3, 4, 5});
  ExpectShape(OnnxNode("Where"), {F({0, 1}), F({1, 7}), F({})}, {0, 7});
  ExpectShape(OnnxNode("Max"), {F({3}), F({2, 1}), F({4, 1, 1})}, {4, 2, 3});
  ExpectShape(OnnxNode("BitShift"), {F({3, 1}), F({4})}, {3, 4});
  ExpectRefused(OnnxNode("Add"), {F({2, 3}), F({2})}, 2,
                "dimension 0 of input 1 is 2, allowed is 1 or 3, as the inputs before have");
  ExpectRefused(OnnxNode("Add"), {F({0}), F({2})}, 1,
                "dimension 0 of input 1 is 2, allowed is 1 or 0, as the inputs before have");
}

// The examples of onnx's PRelu: a slope of the shape, and one that is broadcast to it. A bias is as a slope.
TEST(ShapeInference, TheSlopeOfAPReluIsBroadcastToTheOtherInputAlone) {
  ExpectShape(OnnxNode("com.microsoft.BiasGelu"), {F({3, 4}), F({4})}, {3, 4});
  ExpectShape(OnnxNode("com.microsoft.FastGelu"), {F({3, 4}), F({4})}, {3, 4});
  ExpectShape(OnnxNode("com.microsoft.FastGelu"), {F({3, 4})}, {3, 4});
  ExpectShape(OnnxNode("PRelu"), {F({3, 4, 5}), F({3, 4, 5})}, {3, 4, 5});
  ExpectShape(OnnxNode("PRelu"), {F({3, 4, 5}), F({5})}, {3, 4, 5});
  ExpectShape(OnnxNode("PRelu"), {F({3, 4, 5}), F({4, 1})}, {3, 4, 5});
  ExpectShape(OnnxNode("PRelu"), {F({0, 5}), F({})}, {0, 5});
  ExpectRefused(OnnxNode("PRelu"), {F({3, 1}), F({4})}, 2, "dimension 0 of input 1 is 4, allowed is 1, as input 0 has");
  ExpectRefused(OnnxNode("PRelu"), {F({3, 1}), F({0})}, 2, "dimension 0 of input 1 is 0, allowed is 1, as input 0 has");
  ExpectRefused(OnnxNode("PRelu"), {F({5}), F({1, 5})}, 1, "input 1 has rank 2, allowed is 0..1, the rank of input 0");
  ExpectRefused(OnnxNode("PRelu"), {F({5}), F({3})}, 1,
                "dimension 0 of input 1 is 3, allowed is 1 or 5, as the inputs before have");
}

TEST(ShapeInference, FunctionsOfOneInputKeepItsShape) {
  for (const char* op : {"Acos",
                         "Acosh",
                         "Asin",
                         "Asinh",
                         "Atan",
                         "Atanh",
                         "Celu",
                         "Cosh",
                         "IsInf",
                         "Mish",
                         "Selu",
                         "Shrink",
                         "Sinh",
                         "Softsign",
                         "Swish",
                         "Tan",
                         "ThresholdedRelu",
                         "BitwiseNot",
                         "com.microsoft.Gelu",
                         "com.microsoft.QuickGelu"}) {
    ExpectShape(OnnxNode(op), {F({2, 0, 3})}, {2, 0, 3});
    ExpectRefused(OnnxNode(op), {F({2}), F({2})}, 1, "it has 2 inputs, allowed is 1..1");
  }
}

TEST(ShapeInference, ABroadcastThatOverflowsIsRefused) {
  ExpectRefused(OnnxNode("Add"), {F({INT64_C(1) << 40, 1}), F({INT64_C(1) << 40})}, 2,
                "output 0 would have more than PTRDIFF_MAX (9223372036854775807) bytes");
}

TEST(ShapeInference, ChecksTheAxisOfASoftmax) {
  ExpectShape(std::move(OnnxNode("Softmax").Int("axis", -2)), {F({2, 3})}, {2, 3});
  ExpectRefused(std::move(OnnxNode("Softmax").Int("axis", 2)), {F({2, 3})}, 2, "axis is 2, allowed is -2..1");
  ExpectRefused(OnnxNode("Softmax"), {F({})}, 0, "axis is -1, but there is no dimension");
}

TEST(ShapeInference, TheStatisticsOfALayerNormalizationAreOfItsRows) {
  OnnxNode op("LayerNormalization");
  op.Int("axis", -2);
  std::vector<gcap_tensor_t> outputs(3, F({kOpen, kOpen, kOpen}).Tensor());
  GCAP_ASSERT_OK(Infer(op, {F({2, 3, 4}), F({3, 4})}, &outputs));
  EXPECT_EQ(ShapeOf(outputs[0]), (Sizes{2, 3, 4}));
  EXPECT_EQ(ShapeOf(outputs[1]), (Sizes{2, 1, 1}));
  EXPECT_EQ(ShapeOf(outputs[2]), (Sizes{2, 1, 1}));
  ExpectRefused(std::move(OnnxNode("LayerNormalization").Int("axis", 2)), {F({2, 3}), F({3})}, 2,
                "axis is 2, allowed is -2..1");
}

// --- Recurrent networks -----------------------------------------------------------------------------------------------

// Of 5 steps, 2 sequences, 4 features and 3 units.
std::vector<Host> RecurrentInputs(int64_t gates, int64_t directions) {
  return {F({5, 2, 4}), F({directions, gates * 3, 4}), F({directions, gates * 3, 3})};
}

// The outputs have the shapes of ONNX's documentation; {0} is one that the node leaves out.
void ExpectRecurrent(OnnxNode& op, const std::vector<Host>& inputs, const std::vector<Sizes>& expected) {
  std::vector<gcap_tensor_t> outputs;
  for (const Sizes& shape : expected) {
    outputs.push_back(F(shape == Sizes{0} ? shape : Sizes(shape.size(), kOpen)).Tensor());
  }
  GCAP_ASSERT_OK(Infer(op, inputs, &outputs));
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(ShapeOf(outputs[i]), expected[i]) << i;
}

TEST(ShapeInference, OfAnLstm) {
  OnnxNode one("LSTM"), both("LSTM");
  both.String("direction", "bidirectional");
  const Host none = F({0}), lengths(GCAP_DTYPE_I32, Sizes{2});
  std::vector<Host> all = RecurrentInputs(4, 2);
  all.insert(all.end(), {F({2, 24}), lengths, F({2, 2, 3}), F({2, 2, 3}), F({2, 9})});
  ExpectRecurrent(one, RecurrentInputs(4, 1), {{5, 1, 2, 3}, {1, 2, 3}, {1, 2, 3}});
  ExpectRecurrent(both, all, {{5, 2, 2, 3}, {2, 2, 3}, {2, 2, 3}});
  ExpectRecurrent(both, all, {{0}, {2, 2, 3}});
  ExpectRecurrent(both, all, {{5, 2, 2, 3}, {0}, {2, 2, 3}});
  // Was: any output of rank 1 before others was taken for one that is left out.
  for (const Sizes& other : {Sizes{kOpen}, Sizes{5}}) {
    std::vector<gcap_tensor_t> outputs = {F(other).Tensor(), F({kOpen, kOpen, kOpen}).Tensor()};
    const Outcome outcome(Infer(both, all, &outputs));
    EXPECT_EQ(outcome.message, "node 'n' (LSTM): output 0 has rank 1, its inputs give 4");
  }
  ExpectRefused(std::move(both), all, 1, "output 0 has rank 1, its inputs give 4");
  std::vector<Host> batch_first = all;
  batch_first[3] = none;
  batch_first[0] = F({2, 5, 4});
  ExpectRecurrent(both.Int("layout", 1), batch_first, {{2, 5, 2, 3}, {2, 2, 3}});
}

TEST(ShapeInference, OfAGruAndAnRnn) {
  OnnxNode gru("GRU"), rnn("RNN");
  ExpectRecurrent(gru, RecurrentInputs(3, 1), {{5, 1, 2, 3}, {1, 2, 3}});
  ExpectRecurrent(rnn.String("direction", "bidirectional"), RecurrentInputs(1, 2), {{5, 2, 2, 3}, {2, 2, 3}});
  std::vector<gcap_tensor_t> outputs(3, F({kOpen, kOpen, kOpen}).Tensor());
  const Outcome outcome(Infer(gru, RecurrentInputs(3, 1), &outputs));
  EXPECT_EQ(outcome.message, "node 'n' (GRU): it has 3 outputs, allowed is 1..2");
}

TEST(ShapeInference, RefusesAnLstmWhoseSizesDisagree) {
  const auto refused = [](size_t input, const Host& with, const std::string& message) {
    std::vector<Host> inputs = RecurrentInputs(4, 1);
    inputs.insert(inputs.end(), {F({1, 24}), Host(GCAP_DTYPE_I32, Sizes{2}), F({1, 2, 3})});
    inputs[input] = with;
    ExpectRefused(OnnxNode("LSTM"), inputs, 4, message);
  };
  const std::string give = ", the other inputs and attributes give ";
  refused(0, F({5, 2}), "input 0 has rank 2, allowed is 3");
  refused(0, F({5, 2, 6}), "dimension 2 of input 1 is 4" + give + "6");
  refused(1, F({2, 12, 4}), "dimension 0 of input 1 is 2" + give + "1");
  refused(1, F({1, 9, 4}), "dimension 1 of input 1 is 9" + give + "12");
  refused(2, F({1, 12}), "input 2 has rank 2, allowed is 3");
  refused(2, F({0, 12, INT64_C(1) << 31}), "dimension 2 of input 2 is 2147483648, allowed is 0..2147483647");
  refused(3, F({1, 12}), "dimension 1 of input 3 is 12" + give + "24");
  refused(4, F({3}), "dimension 0 of input 4 is 3" + give + "2");
  refused(4, F({2, 1}), "input 4 has rank 2, allowed is 1");
  refused(5, F({2, 1, 3}), "dimension 0 of input 5 is 2" + give + "1");
  const std::vector<Host> inputs = RecurrentInputs(4, 1);
  ExpectRefused(std::move(OnnxNode("LSTM").String("direction", "backward")), inputs, 4,
                "direction is backward, allowed is forward, reverse or bidirectional");
  ExpectRefused(std::move(OnnxNode("LSTM").Int("layout", 2)), inputs, 4, "layout is 2, allowed is 0 or 1");
  ExpectRefused(std::move(OnnxNode("LSTM").Int("hidden_size", 4)), inputs, 4,
                "hidden_size is 4, dimension 2 of input 2 is 3");
}

// --- Shapes -----------------------------------------------------------------------------------------------------------

// The examples of Shape's documentation, for a tensor of 2 x 3 x 4 (start -1, end -1, both, …).
TEST(ShapeInference, OfShapeAndSize) {
  const Host x = F({2, 3, 4});
  ExpectShape(OnnxNode("Shape"), {x}, {3});
  ExpectShape(std::move(OnnxNode("Shape").Int("start", -1)), {x}, {1});
  ExpectShape(std::move(OnnxNode("Shape").Int("end", -1)), {x}, {2});
  ExpectShape(std::move(OnnxNode("Shape").Int("start", 1).Int("end", 2)), {x}, {1});
  ExpectShape(std::move(OnnxNode("Shape").Int("start", 2).Int("end", 1)), {x}, {0});
  ExpectShape(std::move(OnnxNode("Shape").Int("start", -9).Int("end", 9)), {x}, {3});
  ExpectShape(OnnxNode("Size"), {x}, {});
}

TEST(ShapeInference, OfConstants) {
  ExpectShape(OnnxNode("ConstantOfShape"), {N({4, 0, 2})}, {4, 0, 2});
  ExpectShape(OnnxNode("ConstantOfShape"), {N({})}, {});
  ExpectRefused(OnnxNode("ConstantOfShape"), {N({4, -2})}, 2, "number 1 of input 0 is -2, allowed is 0 or more");
  ExpectRefused(OnnxNode("ConstantOfShape"), {N({INT64_C(1) << 40, INT64_C(1) << 40})}, 2,
                "output 0 would have more than PTRDIFF_MAX (9223372036854775807) bytes");
  ExpectRefused(OnnxNode("ConstantOfShape"), {N(Sizes(9, 1))}, 8, "input 0 has 9 numbers, allowed is 0..8");
  ExpectRefused(OnnxNode("ConstantOfShape"), {F({2})}, 2, "input 0 is of type f32, allowed is i64 or i32");
  ExpectRefused(OnnxNode("ConstantOfShape"), {Host(GCAP_DTYPE_I64, Sizes{1, 2})}, 2,
                "input 0 has rank 2, allowed is 1");
}

template <typename T>
std::vector<Host> RangeOf(T start, T limit, T delta) {
  return {Host(Sizes{}, std::vector<T>{start}), Host(Sizes{}, std::vector<T>{limit}),
          Host(Sizes{}, std::vector<T>{delta})};
}

TEST(ShapeInference, OfRanges) {
  ExpectShape(OnnxNode("Range"), RangeOf<float>(1, 5, 2), {2});      // the documentation's float example
  ExpectShape(OnnxNode("Range"), RangeOf<int32_t>(10, 6, -3), {2});  // its int32 example, with a negative delta
  ExpectShape(OnnxNode("Range"), RangeOf<int64_t>(3, 3, 1), {0});
  ExpectShape(OnnxNode("Range"), RangeOf<int64_t>(3, 9, -1), {0});
  ExpectShape(OnnxNode("Range"), RangeOf<int64_t>(0, 9, 3), {3});
  ExpectShape(OnnxNode("Range"), RangeOf<int64_t>(INT64_MIN, INT64_MAX, INT64_MAX), {3});
  ExpectShape(OnnxNode("Range"), RangeOf<int64_t>(INT64_MAX, INT64_MIN, INT64_MIN), {2});
  ExpectShape(OnnxNode("Range"), RangeOf<float>(0, 1, 0.3f), {4});
  ExpectShape(OnnxNode("Range"), RangeOf<float>(0, -1, 1), {0});
}

TEST(ShapeInference, RefusesRanges) {
  const std::string zero = "input 2 (delta) is 0, allowed is any other number";
  ExpectRefused(OnnxNode("Range"), RangeOf<int64_t>(0, 9, 0), 1, zero);
  ExpectRefused(OnnxNode("Range"), RangeOf<float>(0, 9, 0), 1, zero);
  ExpectRefused(OnnxNode("Range"), RangeOf<float>(0, HUGE_VALF, 1), 1,
                "input 1 (limit) is inf, allowed is a finite number");
  const std::string too_long = "output 0 would have more than 9223372036854775807 elements";
  ExpectRefused(OnnxNode("Range"), RangeOf<int64_t>(INT64_MIN, INT64_MAX, 1), 1, too_long);
  ExpectRefused(OnnxNode("Range"), RangeOf<float>(0, 1e38f, 1e-38f), 1, too_long);
  ExpectRefused(OnnxNode("Range"), RangeOf<int64_t>(0, INT64_MAX, 1), 1,
                "output 0 would have more than PTRDIFF_MAX (9223372036854775807) bytes");
  std::vector<Host> mixed = RangeOf<int64_t>(0, 9, 1);
  mixed[1] = Host(Sizes{}, std::vector<int32_t>{9});
  ExpectRefused(OnnxNode("Range"), mixed, 1, "input 1 is of type i32, input 0 of type i64");
  mixed[1] = N({9, 9});
  ExpectRefused(OnnxNode("Range"), mixed, 1, "input 1 (limit) has rank 1, allowed is 0, or 1 with one number");
}

// The examples of Reshape's documentation, for a tensor of 2 x 3 x 4.
TEST(ShapeInference, OfReshape) {
  const Host x = F({2, 3, 4});
  ExpectShape(OnnxNode("Reshape"), {x, N({4, 2, 3})}, {4, 2, 3});
  ExpectShape(OnnxNode("Reshape"), {x, N({2, 12})}, {2, 12});
  ExpectShape(OnnxNode("Reshape"), {x, N({2, 3, 2, 2})}, {2, 3, 2, 2});
  ExpectShape(OnnxNode("Reshape"), {x, N({24})}, {24});
  ExpectShape(OnnxNode("Reshape"), {x, N({2, -1, 2})}, {2, 6, 2});
  ExpectShape(OnnxNode("Reshape"), {x, N({-1, 2, 3, 4})}, {1, 2, 3, 4});
  ExpectShape(OnnxNode("Reshape"), {x, N({2, 0, 4, 1})}, {2, 3, 4, 1});
  ExpectShape(OnnxNode("Reshape"), {x, N({2, 0, 1, -1})}, {2, 3, 1, 4});
  ExpectShape(std::move(OnnxNode("Reshape").Int("allowzero", 1)), {F({0, 3, 4}), N({3, 4, 0})}, {3, 4, 0});
  ExpectShape(OnnxNode("Reshape"), {F({1, 1}), N({})}, {});
  ExpectShape(OnnxNode("Reshape"), {F({0, 3}), N({0, 5})}, {0, 5});
}

TEST(ShapeInference, RefusesReshapes) {
  const Host x = F({2, 3, 4});
  ExpectRefused(OnnxNode("Reshape"), {x, N({5, -1})}, 2, "input 0 has 24 elements, input 1 asks for a multiple of 5");
  ExpectRefused(OnnxNode("Reshape"), {x, N({5, 5})}, 2, "input 0 has 24 elements, input 1 asks for 25");
  ExpectRefused(OnnxNode("Reshape"), {x, N({-1, 2, -1})}, 3, "numbers 0 and 2 of input 1 are -1");
  ExpectRefused(OnnxNode("Reshape"), {x, N({-2, 12})}, 2, "number 0 of input 1 is -2, allowed is -1 or more");
  ExpectRefused(OnnxNode("Reshape"), {x, N({1, 2, 3, 0})}, 4,
                "number 3 of input 1 is 0, but input 0 has no dimension 3");
  ExpectRefused(OnnxNode("Reshape"), {F({0, 3}), N({0, -1})}, 2,
                "input 1 has a -1 beside a dimension of 0, which may have any size");
  ExpectRefused(OnnxNode("Reshape"), {x, N({INT64_C(1) << 40, INT64_C(1) << 40})}, 2,
                "input 1 asks for more than 9223372036854775807 elements");
}

// The examples of Flatten's documentation: every axis of a tensor of 2 x 3 x 4 x 5.
TEST(ShapeInference, OfFlatten) {
  const Host x = F({2, 3, 4, 5});
  const Sizes expected[] = {{1, 120}, {2, 60}, {6, 20}, {24, 5}, {120, 1}};
  for (int axis = 0; axis <= 4; ++axis) {
    ExpectShape(std::move(OnnxNode("Flatten").Int("axis", axis)), {x}, expected[axis]);
    if (axis < 4) ExpectShape(std::move(OnnxNode("Flatten").Int("axis", axis - 4)), {x}, expected[axis]);
  }
  ExpectShape(OnnxNode("Flatten"), {x}, {2, 60});
  ExpectRefused(std::move(OnnxNode("Flatten").Int("axis", 5)), {x}, 2, "axis is 5, allowed is -4..4");
}

TEST(ShapeInference, OfSqueezeAndUnsqueeze) {
  ExpectShape(OnnxNode("Squeeze"), {F({1, 3, 1, 5}), N({0})}, {3, 1, 5});
  ExpectShape(OnnxNode("Squeeze"), {F({1, 3, 1, 5}), N({-2})}, {1, 3, 5});
  ExpectShape(OnnxNode("Squeeze"), {F({1, 3, 1, 5})}, {3, 5});
  ExpectShape(std::move(OnnxNode("Squeeze").Ints("axes", {0, 2})), {F({1, 3, 1, 5})}, {3, 5});
  ExpectShape(OnnxNode("Unsqueeze"), {F({3, 4}), N({-2})}, {3, 1, 4});
  ExpectShape(OnnxNode("Unsqueeze"), {F({3, 4, 5}), N({4, 2, 5})}, {3, 4, 1, 5, 1, 1});  // "unsorted axes"
  const Host one(Sizes{}, std::vector<int64_t>{1});  // not a list, as in what ONNX itself makes of AffineGrid
  ExpectShape(OnnxNode("Unsqueeze"), {F({3, 4}), one}, {3, 1, 4});
  ExpectShape(OnnxNode("Squeeze"), {F({3, 1}), one}, {3});
  ExpectRefused(OnnxNode("Squeeze"), {F({1, 3}), N({1})}, 1,
                "dimension 1 of input 0 is 3, allowed is 1 where it is squeezed");
  ExpectRefused(OnnxNode("Squeeze"), {F({1, 3}), N({0, -2})}, 1, "axes[1] is -2, an axis that is there already");
  ExpectRefused(OnnxNode("Unsqueeze"), {F({3, 4}), N({3})}, 3, "axes[0] is 3, allowed is -3..2");
  ExpectRefused(OnnxNode("Unsqueeze"), {F({3, 4})}, 3, "it has neither an input 1 nor an attribute axes");
  ExpectRefused(OnnxNode("Unsqueeze"), {F(Sizes(8, 1)), N({0})}, 8,
                "its output would have 9 dimensions, allowed is 0..8");
  ExpectRefused(std::move(OnnxNode("Unsqueeze").Ints("axes", {0})), {F({3}), N({0})}, 2,
                "it has both an input 1 and an attribute axes");
  ExpectRefused(std::move(OnnxNode("Unsqueeze").Ints("axes", Sizes(9, 0))), {F({3})}, 2,
                "attribute axes has 9 numbers, allowed is 0..8");
}

TEST(ShapeInference, OfExpandAndTranspose) {
  ExpectShape(OnnxNode("Expand"), {F({3, 1}), N({2, 1, 6})}, {2, 3, 6});  // the documentation's "dim_changed"
  ExpectShape(OnnxNode("Expand"), {F({3, 1}), N({3, 4})}, {3, 4});        // its "dim_unchanged"
  ExpectRefused(OnnxNode("Expand"), {F({3}), N({2})}, 1,
                "dimension 0 of input 0 is 3, allowed is 1 or 2, as the inputs before have");
  ExpectRefused(OnnxNode("Expand"), {F({3}), N({-1})}, 1, "number 0 of input 1 is -1, allowed is 0 or more");
  ExpectShape(OnnxNode("Transpose"), {F({2, 3, 4})}, {4, 3, 2});
  ExpectShape(std::move(OnnxNode("Transpose").Ints("perm", {1, 2, 0})), {F({2, 3, 4})}, {3, 4, 2});
  ExpectRefused(std::move(OnnxNode("Transpose").Ints("perm", {1, 1})), {F({2, 3})}, 2,
                "perm[1] is 1, allowed is each of 0..1 once");
  ExpectRefused(std::move(OnnxNode("Transpose").Ints("perm", {0})), {F({2, 3})}, 2,
                "perm has 1 numbers, allowed is 2, the rank of input 0");
}

// --- Parts --------------------------------------------------------------------------------------------------------------

TEST(ShapeInference, OfConcatAndGather) {
  ExpectShape(std::move(OnnxNode("Concat").Int("axis", 1)), {F({2, 3}), F({2, 0}), F({2, 4})}, {2, 7});
  ExpectShape(std::move(OnnxNode("Concat").Int("axis", -2)), {F({2, 3}), F({5, 3})}, {7, 3});
  ExpectRefused(OnnxNode("Concat"), {F({2})}, 1, "it has no attribute axis, which is required");
  ExpectRefused(std::move(OnnxNode("Concat").Int("axis", 0)), {F({2, 3}), F({2, 4})}, 2,
                "dimension 1 of input 1 is 4, of input 0 it is 3");
  ExpectRefused(std::move(OnnxNode("Concat").Int("axis", 0)), {F({2, 3}), F({2})}, 2,
                "input 1 has rank 1, input 0 has 2");
  const Host large = Host(GCAP_DTYPE_BOOL, Sizes{INT64_MAX});
  ExpectRefused(std::move(OnnxNode("Concat").Int("axis", 0)), {large, large}, 1,
                "dimension 0 of output 0 would be more than 9223372036854775807");
  ExpectShape(OnnxNode("Gather"), {F({5, 4, 3, 2}), Host(GCAP_DTYPE_I64, Sizes{3})}, {3, 4, 3, 2});
  ExpectShape(std::move(OnnxNode("Gather").Int("axis", 1)), {F({3, 3}), Host(GCAP_DTYPE_I64, Sizes{1, 2})}, {3, 1, 2});
  ExpectShape(OnnxNode("Gather"), {F({3}), Host(GCAP_DTYPE_I64, Sizes{})}, {});
  ExpectRefused(OnnxNode("Gather"), {F({}), N({0})}, 0, "axis is 0, but there is no dimension");
  ExpectRefused(OnnxNode("Gather"), {F(Sizes(5, 1)), Host(GCAP_DTYPE_I64, Sizes(5, 1))}, 8,
                "its output would have more than 8 dimensions");
}

// The examples of the operators' documentation.
TEST(ShapeInference, OfGathersAndScattersByIndices) {
  const auto i64 = [](const Sizes& shape) { return Host(GCAP_DTYPE_I64, shape); };
  ExpectShape(OnnxNode("GatherElements"), {F({3, 3}), i64({2, 3})}, {2, 3});
  ExpectShape(std::move(OnnxNode("GatherElements").Int("axis", -1)), {F({2, 2}), i64({1, 7})}, {1, 7});
  ExpectShape(OnnxNode("ScatterElements"), {F({3, 3}), i64({2, 3}), F({2, 3})}, {3, 3});
  ExpectShape(std::move(OnnxNode("Scatter").Int("axis", 1)), {F({1, 5}), i64({1, 2}), F({1, 2})}, {1, 5});
  ExpectShape(OnnxNode("GatherND"), {F({2, 2}), i64({2, 2})}, {2});
  ExpectShape(OnnxNode("GatherND"), {F({2, 2, 2}), i64({2, 1, 2})}, {2, 1, 2});
  ExpectShape(std::move(OnnxNode("GatherND").Int("batch_dims", 1)), {F({2, 2, 3}), i64({2, 1})}, {2, 3});
  ExpectShape(OnnxNode("ScatterND"), {F({4, 4, 4}), i64({2, 1}), F({2, 4, 4})}, {4, 4, 4});
  ExpectShape(OnnxNode("ScatterND"), {F({8}), i64({0, 1}), F({0})}, {8});
}

TEST(ShapeInference, RefusesGathersAndScattersByIndices) {
  const auto i64 = [](const Sizes& shape) { return Host(GCAP_DTYPE_I64, shape); };
  ExpectRefused(OnnxNode("GatherElements"), {F({}), i64({})}, 0, "axis is 0, but there is no dimension");
  ExpectRefused(OnnxNode("GatherElements"), {F({2, 3}), i64({2})}, 1, "input 1 has rank 1, input 0 has 2");
  ExpectRefused(OnnxNode("GatherElements"), {F({2, 3}), i64({5, 4})}, 2,
                "dimension 1 of input 1 is 4, allowed is up to 3, that of input 0");
  ExpectRefused(OnnxNode("ScatterElements"), {F({2, 3}), i64({2, 3}), F({6})}, 2,
                "input 2 has rank 1, inputs 0 and 1 give 2");
  ExpectRefused(OnnxNode("ScatterElements"), {F({2, 3}), i64({1, 3}), F({2, 3})}, 2,
                "dimension 0 of input 2 is 2, inputs 0 and 1 give 1");
  ExpectRefused(OnnxNode("GatherND"), {F({}), i64({1})}, 0, "input 0 has rank 0, allowed is 1..8");
  ExpectRefused(OnnxNode("GatherND"), {F({2}), i64({})}, 0, "input 1 has rank 0, allowed is 1..8");
  ExpectRefused(OnnxNode("GatherND"), {F({2, 2}), i64({3})}, 0, "the last dimension of input 1 is 3, allowed is 1..2");
  ExpectRefused(OnnxNode("ScatterND"), {F({2, 2}), i64({3, 0}), F({3, 2, 2})}, 2,
                "the last dimension of input 1 is 0, allowed is 1..2");
  ExpectRefused(std::move(OnnxNode("GatherND").Int("batch_dims", 2)), {F({2, 2, 2}), i64({2, 1})}, 1,
                "batch_dims is 2, allowed is 0..1");
  ExpectRefused(std::move(OnnxNode("GatherND").Int("batch_dims", -1)), {F({2, 2, 2}), i64({2, 1})}, 1,
                "batch_dims is -1, allowed is 0..1");
  ExpectRefused(std::move(OnnxNode("GatherND").Int("batch_dims", 1)), {F({2, 2, 2}), i64({3, 1})}, 2,
                "dimension 0 of input 1 is 3, of input 0 it is 2");
  ExpectRefused(OnnxNode("GatherND"), {F({2, 1, 1, 1, 1}), i64({1, 1, 1, 1, 1, 1})}, 8,
                "its output would have more than 8 dimensions");
  ExpectRefused(OnnxNode("ScatterND"), {F({4, 4}), i64({2, 1}), F({2, 3})}, 2,
                "dimension 1 of input 2 is 3, inputs 0 and 1 give 4");
}

TEST(ShapeInference, OfIndicesThatAreMade) {
  ExpectShape(OnnxNode("ArgMax"), {F({2, 3})}, {1, 3});
  ExpectShape(std::move(OnnxNode("ArgMin").Int("axis", -1).Int("keepdims", 0)), {F({2, 3})}, {2});
  ExpectShape(std::move(OnnxNode("ArgMax").Int("axis", 1)), {F({0, 3})}, {0, 1});
  ExpectShape(OnnxNode("TopK"), {F({3, 4}), N({3})}, {3, 3});
  ExpectShape(std::move(OnnxNode("TopK").Int("axis", 0)), {F({3, 4}), N({0})}, {0, 4});
  ExpectShape(std::move(OnnxNode("TopK").Int("k", 2)), {F({3, 4})}, {3, 2});
  ExpectShape(OnnxNode("TopK"), {F({3, 4}), Host(GCAP_DTYPE_I64, Sizes{1})}, {3, GCAP_DIM_INFERRED});
}

TEST(ShapeInference, OfTensorScatter) {
  const Host cache = F({2, 3, 8, 4});
  ExpectShape(OnnxNode("TensorScatter"), {cache, F({2, 3, 1, 4})}, {2, 3, 8, 4});
  ExpectShape(std::move(OnnxNode("TensorScatter").Int("axis", 1)), {cache, F({2, 1, 8, 4}), N({0, 1})}, {2, 3, 8, 4});
  ExpectRefused(OnnxNode("TensorScatter"), {F({8, 4}), F({1, 4})}, 2, "axis is dimension 0 of 2, which is the batch's");
  ExpectRefused(OnnxNode("TensorScatter"), {cache, F({3, 1, 4})}, 4, "input 1 has rank 3, input 0 has 4");
  ExpectRefused(OnnxNode("TensorScatter"), {cache, F({2, 3, 9, 4})}, 4,
                "dimension 2 of input 1 is 9, of input 0 it is 8");
  ExpectRefused(OnnxNode("TensorScatter"), {cache, F({2, 1, 1, 4})}, 4,
                "dimension 1 of input 1 is 1, of input 0 it is 3");
  ExpectRefused(OnnxNode("TensorScatter"), {cache, F({2, 3, 1, 4}), N({1})}, 4,
                "input 2 is no list of 2 numbers, one for each of the batch");
}

TEST(ShapeInference, RefusesIndicesThatAreMade) {
  ExpectRefused(OnnxNode("ArgMax"), {F({})}, 0, "axis is 0, but there is no dimension");
  ExpectRefused(std::move(OnnxNode("ArgMin").Int("axis", 2)), {F({2, 3})}, 2, "axis is 2, allowed is -2..1");
  ExpectRefused(OnnxNode("ArgMax"), {F({0, 3})}, 2,
                "dimension 0 of input 0 is 0, allowed is 1 or more: nothing has no extremum");
  ExpectRefused(OnnxNode("TopK"), {F({3})}, 1, "it has neither an input 1 nor an attribute k");
  ExpectRefused(OnnxNode("TopK"), {F({3}), N({1, 1})}, 1, "input 1 has 2 numbers, allowed is 1");
  ExpectRefused(OnnxNode("TopK"), {F({3}), N({4})}, 1, "k is 4, allowed is 0..3, dimension 0 of input 0");
  ExpectRefused(OnnxNode("TopK"), {F({3}), N({-1})}, 1, "k is -1, allowed is 0..3, dimension 0 of input 0");
  ExpectRefused(std::move(OnnxNode("TopK").Int("k", INT64_MIN)), {F({3})}, 1,
                "k is -9223372036854775808, allowed is 0..3, dimension 0 of input 0");
}

// The examples of Slice's documentation, for a tensor of 20 x 10 x 5, and its text on clamping.
TEST(ShapeInference, OfSlice) {
  const Host x = F({20, 10, 5});
  ExpectShape(OnnxNode("Slice"), {x, N({0, 0}), N({3, 10}), N({0, 1}), N({1, 1})}, {3, 10, 5});
  ExpectShape(OnnxNode("Slice"), {x, N({0, 0, 3}), N({20, 10, 4})}, {20, 10, 1});
  ExpectShape(OnnxNode("Slice"), {x, N({1}), N({1000}), N({1}), N({1})}, {20, 9, 5});
  ExpectShape(OnnxNode("Slice"), {x, N({0}), N({-1}), N({1})}, {20, 9, 5});
  ExpectShape(OnnxNode("Slice"), {x, N({20, 10, 4}), N({0, 0, 1}), N({0, 1, 2}), N({-1, -3, -2})}, {19, 3, 2});
  ExpectShape(OnnxNode("Slice"), {x, N({1000}), N({1000}), N({1})}, {20, 0, 5});
  ExpectShape(OnnxNode("Slice"), {x, N({-1}), N({INT64_MIN}), N({-1}), N({INT64_MIN})}, {20, 10, 1});
  for (int64_t start : {-5, -1, 0, 5}) {
    for (int64_t step : {-1, 1}) {
      ExpectShape(OnnxNode("Slice"), {F({0}), N({start}), N({-5}), N({0}), N({step})}, {0});
    }
  }
}

TEST(ShapeInference, RefusesSlices) {
  const Host x = F({20, 10});
  ExpectRefused(OnnxNode("Slice"), {x, N({0}), N({1}), N({0}), N({0})}, 2,
                "the step of axis 0 is 0, allowed is any other number");
  ExpectRefused(OnnxNode("Slice"), {x, N({0}), N({1, 2})}, 2, "input 2 has 2 numbers, input 1 has 1");
  ExpectRefused(OnnxNode("Slice"), {x, N({0}), N({1}), N({2})}, 2, "axes[0] is 2, allowed is -2..1");
  ExpectRefused(OnnxNode("Slice"), {x, N({0, 0, 0}), N({1, 1, 1})}, 2, "axes[2] is 2, allowed is -2..1");
  ExpectRefused(OnnxNode("Slice"), {x, N({0, 0}), N({1, 1}), N({1, -1})}, 2,
                "axes[1] is -1, an axis that is there already");
}

void ExpectParts(OnnxNode&& op, const std::vector<Host>& inputs, const std::vector<Sizes>& expected) {
  std::vector<gcap_tensor_t> outputs;
  for (const Sizes& each : expected) outputs.push_back(F(Sizes(each.size(), kOpen)).Tensor());
  GCAP_ASSERT_OK(Infer(op, inputs, &outputs));
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(ShapeOf(outputs[i]), expected[i]) << i;
}

// Before opset 10: the documentation's example of attributes, and its default for the axes.
TEST(ShapeInference, OfASliceByAttributes) {
  ExpectShape(std::move(OnnxNode("Slice").Ints("axes", {0, 1}).Ints("starts", {1, 0}).Ints("ends", {2, 3})),
              {F({2, 4})}, {1, 3});
  ExpectShape(std::move(OnnxNode("Slice").Ints("starts", {0, 1}).Ints("ends", {-1, 1000})), {F({2, 4})}, {1, 3});
  ExpectRefused(std::move(OnnxNode("Slice").Ints("starts", {0})), {F({2})}, 1,
                "it has neither an input 2 nor an attribute ends");
  ExpectRefused(std::move(OnnxNode("Slice").Ints("starts", {0}).Ints("ends", {1, 2})), {F({2})}, 1,
                "attribute ends has 2 numbers, starts has 1");
  ExpectRefused(OnnxNode("Slice"), {F({2}), N({0})}, 1, "it has 2 inputs, allowed is 1 or 3..5");
}

// The examples of Pad's documentation, for a tensor of 3 x 2, and its text on axes.
TEST(ShapeInference, OfPad) {
  const Host x = F({3, 2}), value(GCAP_DTYPE_F32, Sizes{});
  for (const char* mode : {"constant", "edge", "wrap"}) {
    ExpectShape(std::move(OnnxNode("Pad").String("mode", mode)), {x, N({0, 2, 0, 0})}, {3, 4});
  }
  ExpectShape(std::move(OnnxNode("Pad").Ints("pads", {0, 2, 1, 0})), {x}, {4, 4});
  ExpectShape(OnnxNode("Pad"), {x, N({-1, 1, -1, 0}), value}, {1, 3});
  ExpectShape(OnnxNode("Pad"), {x, N({5, -1}), value, N({-2})}, {7, 2});
  ExpectShape(OnnxNode("Pad"), {x, N({}), value, N({})}, {3, 2});
  ExpectShape(OnnxNode("Pad"), {x, Unknown(4)}, {kOpen, kOpen});
  ExpectShape(OnnxNode("Pad"), {x, N({5, -1}), value, Unknown(1)}, {kOpen, kOpen});
  ExpectShape(std::move(OnnxNode("Pad").String("mode", "reflect")), {x, N({2, 1, 2, 1})}, {7, 4});
  ExpectShape(std::move(OnnxNode("Pad").String("mode", "edge")), {F({0, 2}), N({0, 1, 0, 1})}, {0, 4});
}

TEST(ShapeInference, RefusesPads) {
  const Host x = F({3, 2}), value(GCAP_DTYPE_F32, Sizes{});
  ExpectRefused(OnnxNode("Pad"), {x}, 2, "it has neither an input 1 nor an attribute pads");
  ExpectRefused(std::move(OnnxNode("Pad").Ints("pads", {1})), {x}, 2,
                "attribute pads has 1 numbers, allowed is 4, two for each axis");
  ExpectRefused(std::move(OnnxNode("Pad").Ints("pads", {1, 1, 1, 1})), {x, N({1, 1, 1, 1})}, 2,
                "it has both an input 1 and an attribute pads");
  ExpectRefused(OnnxNode("Pad"), {x, N({1})}, 2, "input 1 has 1 numbers, allowed is 4, two for each axis");
  ExpectRefused(OnnxNode("Pad"), {x, F({4})}, 2, "input 1 is of type f32, allowed is i64");
  ExpectRefused(OnnxNode("Pad"), {x, Host(GCAP_DTYPE_I64, Sizes{4, 1})}, 2, "input 1 has rank 2, allowed is 1");
  ExpectRefused(OnnxNode("Pad"), {x, N({0, 0}), value, N({2})}, 2, "axes[0] is 2, allowed is -2..1");
  ExpectRefused(OnnxNode("Pad"), {x, N({0, 0, 0, 0}), value, N({1, -1})}, 2,
                "axes[1] is -1, an axis that is there already");
  ExpectRefused(OnnxNode("Pad"), {x, N({-2, 0, -2, 0})}, 2,
                "dimension 0 of output 0 would be -1, allowed is 0 or more");
  ExpectRefused(OnnxNode("Pad"), {x, N({INT64_MIN, 0, 0, 0})}, 2,
                "pads[0] is -9223372036854775808, allowed is -2305843009213693951..2305843009213693951");
  ExpectRefused(OnnxNode("Pad"), {F({INT64_C(1) << 60}), N({INT64_MAX / 4, INT64_MAX / 4})}, 1,
                "output 0 would have more than PTRDIFF_MAX (9223372036854775807) bytes");
  ExpectRefused(std::move(OnnxNode("Pad").String("mode", "mirror")), {x, N({0, 0, 0, 0})}, 2,
                "mode is mirror, allowed is constant, reflect, edge or wrap");
  ExpectRefused(std::move(OnnxNode("Pad").String("mode", "edge")), {x, N({-3, 0, 1, 0})}, 2,
                "nothing is left of the 3 elements of axis 0 for mode edge");
  ExpectRefused(std::move(OnnxNode("Pad").String("mode", "reflect")), {x, N({0, 0, 0, 2})}, 2,
                "it adds 2 elements to axis 1, allowed is 1 for mode reflect");
}

// The sizes of the documentation's examples.
TEST(ShapeInference, OfSpaceToDepthAndDepthToSpace) {
  ExpectShape(std::move(OnnxNode("SpaceToDepth").Int("blocksize", 2)), {F({1, 1, 4, 6})}, {1, 4, 2, 3});
  ExpectShape(std::move(OnnxNode("DepthToSpace").Int("blocksize", 2)), {F({1, 8, 2, 3})}, {1, 2, 4, 6});
  ExpectShape(std::move(OnnxNode("DepthToSpace").Int("blocksize", 3).String("mode", "CRD")), {F({1, 9, 2, 0})},
              {1, 1, 6, 0});
  ExpectRefused(OnnxNode("SpaceToDepth"), {F({1, 1, 4, 6})}, 4, "blocksize is 0, allowed is 1..2147483647");
  ExpectRefused(std::move(OnnxNode("SpaceToDepth").Int("blocksize", 4)), {F({1, 1, 4, 6})}, 4,
                "dimension 3 of input 0 is 6, allowed is a multiple of 4");
  ExpectRefused(std::move(OnnxNode("SpaceToDepth").Int("blocksize", 2)), {F({4, 6})}, 2,
                "input 0 has rank 2, allowed is 4");
  ExpectRefused(std::move(OnnxNode("SpaceToDepth").Int("blocksize", 4)), {F({0, INT64_C(1) << 58, 0, 0})}, 4,
                "output 0 would have more than PTRDIFF_MAX (9223372036854775807) bytes");
  ExpectRefused(std::move(OnnxNode("SpaceToDepth").Int("blocksize", INT32_MAX)), {F({0, 4, 0, 0})}, 4,
                "a dimension of output 0 would be more than 9223372036854775807");
  ExpectRefused(std::move(OnnxNode("DepthToSpace").Int("blocksize", 2)), {F({1, 6, 2, 3})}, 4,
                "dimension 1 of input 0 is 6, allowed is a multiple of 4");
  ExpectRefused(std::move(OnnxNode("DepthToSpace").Int("blocksize", 2).String("mode", "RCD")), {F({1, 8, 2, 3})}, 4,
                "mode is RCD, allowed is DCR or CRD");
}

TEST(ShapeInference, OfTile) {
  ExpectShape(OnnxNode("Tile"), {F({2, 3}), N({2, 0})}, {4, 0});
  ExpectShape(OnnxNode("Tile"), {F({2, 3}), Unknown(2)}, {kOpen, kOpen});
  ExpectRefused(OnnxNode("Tile"), {F({2, 3}), N({2})}, 2, "input 1 has 1 numbers, input 0 has 2 dimensions");
  ExpectRefused(OnnxNode("Tile"), {F({2}), N({-1})}, 1, "number 0 of input 1 is -1, allowed is 0 or more");
  ExpectRefused(OnnxNode("Tile"), {F({4}), N({INT64_MAX / 2})}, 1,
                "dimension 0 of output 0 would be more than 9223372036854775807");
}

TEST(ShapeInference, OfTriangles) {
  ExpectShape(OnnxNode("Trilu"), {F({2, 3, 4}), N({1})}, {2, 3, 4});
  ExpectShape(OnnxNode("EyeLike"), {F({3, 4})}, {3, 4});
  ExpectRefused(OnnxNode("Trilu"), {F({2})}, 1, "input 0 has rank 1, allowed is 2..8");
  ExpectRefused(OnnxNode("Trilu"), {F({2, 3}), N({1, 2})}, 2,
                "input 1 (k) has rank 1, allowed is 0, or 1 with one number");
  ExpectRefused(OnnxNode("EyeLike"), {F({3, 4, 5})}, 3, "input 0 has rank 3, allowed is 2");
}

TEST(ShapeInference, OfOneHot) {
  const Host depth(Sizes{}, std::vector<int32_t>{4}), none(Sizes{}, std::vector<float>{0.5f});
  const Host wild(Sizes{}, std::vector<float>{HUGE_VALF}), open(GCAP_DTYPE_F32, Sizes{});
  ExpectShape(OnnxNode("OneHot"), {Unknown(3), depth, F({2})}, {3, 4});
  ExpectShape(OnnxNode("OneHot"), {Unknown(3), open, F({2})}, {3, kOpen});
  ExpectShape(std::move(OnnxNode("OneHot").Int("axis", 0)), {F({2, 3}), N({4}), F({2})}, {4, 2, 3});
  ExpectRefused(std::move(OnnxNode("OneHot").Int("axis", 2)), {Unknown(3), depth, F({2})}, 2,
                "axis is 2, allowed is -2..1");
  ExpectRefused(OnnxNode("OneHot"), {Unknown(3), none, F({2})}, 2, "input 1 (depth) is 0, allowed is 1 or more");
  ExpectRefused(OnnxNode("OneHot"), {Unknown(3), wild, F({2})}, 2,
                "input 1 (depth) is inf, allowed is a number of an integer's size");
  ExpectRefused(OnnxNode("OneHot"), {Unknown(3), Host(GCAP_DTYPE_F16, Sizes{}), F({2})}, 2,
                "input 1 (depth) is of type f16, allowed is i64, i32 or f32");
  ExpectRefused(OnnxNode("OneHot"), {Unknown(3), depth, F({3})}, 2,
                "input 2 (values) has rank 1 and 3 elements, allowed is 1 and 2");
  ExpectRefused(OnnxNode("OneHot"), {F(Sizes(8, 1)), depth, F({2})}, 8, "its output would have more than 8 dimensions");
}

TEST(ShapeInference, OfCumSumAndReverseSequence) {
  ExpectShape(OnnxNode("CumSum"), {F({2, 3}), N({-1})}, {2, 3});
  ExpectShape(OnnxNode("CumSum"), {F({2, 3}), Host(GCAP_DTYPE_I32, Sizes{})}, {2, 3});
  ExpectRefused(OnnxNode("CumSum"), {F({2, 3}), N({2})}, 2, "axis is 2, allowed is -2..1");
  ExpectShape(OnnxNode("ReverseSequence"), {F({4, 3, 2}), Unknown(3)}, {4, 3, 2});
  ExpectRefused(OnnxNode("ReverseSequence"), {F({4}), Unknown(4)}, 1, "input 0 has rank 1, allowed is 2..8");
  ExpectRefused(OnnxNode("ReverseSequence"), {F({4, 3}), Unknown(4)}, 2,
                "input 1 has rank 1 and 4 elements, allowed is 1 and 3, the batch of input 0");
  ExpectRefused(std::move(OnnxNode("ReverseSequence").Int("time_axis", 1)), {F({4, 3}), Unknown(3)}, 2,
                "batch_axis and time_axis are 1 and 1, allowed are 0 and 1, or 1 and 0");
}

TEST(ShapeInference, OfSplit) {
  ExpectParts(OnnxNode("Split"), {F({6})}, {{2}, {2}, {2}});
  ExpectParts(std::move(OnnxNode("Split").Int("axis", 1)), {F({2, 6}), N({2, 4})}, {{2, 2}, {2, 4}});
  ExpectParts(std::move(OnnxNode("Split").Int("num_outputs", 4)), {F({7})}, {{2}, {2}, {2}, {1}});
  ExpectRefused(OnnxNode("Split"), {F({6}), N({2, 4})}, 1, "split has 2 numbers, it has 1 outputs");
  ExpectRefused(OnnxNode("Split"), {F({6}), N({7})}, 1,
                "split[0] is 7, allowed is 0..6, what is left of the dimension");
  ExpectRefused(OnnxNode("Split"), {F({6}), N({5})}, 1, "split leaves 1 of a dimension of 6");
  ExpectRefused(std::move(OnnxNode("Split").Int("num_outputs", 2)), {F({6})}, 1,
                "num_outputs is 2, but it has 1 outputs");
}

TEST(ShapeInference, APartThatIsRefusedChangesNoOutput) {
  OnnxNode op("Split");
  std::vector<gcap_tensor_t> outputs = {F({kOpen}).Tensor(), F({9}).Tensor()};
  const Outcome outcome(Infer(op, {F({6})}, &outputs));
  EXPECT_EQ(outcome.message, "node 'n' (Split): dimension 0 of output 1 is 9, its inputs give 3");
  EXPECT_EQ(ShapeOf(outputs[0]), (Sizes{kOpen}));
  outputs = std::vector<gcap_tensor_t>(4, F({kOpen}).Tensor());
  EXPECT_EQ(Outcome(Infer(op, {F({6})}, &outputs)).message,
            "node 'n' (Split): a dimension of 6 does not split into 4 equal parts");
}

// --- Sums over axes -----------------------------------------------------------------------------------------------------

TEST(ShapeInference, OfReductions) {
  const Host x = F({3, 2, 2});
  ExpectShape(OnnxNode("ReduceSum"), {x, N({1})}, {3, 1, 2});
  ExpectShape(std::move(OnnxNode("ReduceSum").Int("keepdims", 0)), {x, N({-2})}, {3, 2});
  ExpectShape(std::move(OnnxNode("ReduceMax").Int("keepdims", 0)), {x}, {});
  ExpectShape(OnnxNode("ReduceProd"), {x}, {1, 1, 1});
  ExpectShape(OnnxNode("ReduceSum"), {x, N({})}, {1, 1, 1});
  ExpectShape(std::move(OnnxNode("ReduceSum").Int("noop_with_empty_axes", 1)), {x, N({})}, {3, 2, 2});
  ExpectShape(std::move(OnnxNode("ReduceMax").Ints("axes", {0, 2})), {x}, {1, 2, 1});
  ExpectRefused(std::move(OnnxNode("ReduceMax").Ints("axes", {3})), {x}, 3, "axes[0] is 3, allowed is -3..2");
}

OnnxNode& Transposing(OnnxNode&& node) { return node.Int("transA", 1).Int("transB", 1); }

TEST(ShapeInference, OfFusedMatMul) {
  const char* op = "com.microsoft.FusedMatMul";
  ExpectShape(std::move(Transposing(OnnxNode(op))), {F({2, 4, 3}), F({5, 4})}, {2, 3, 5});
  ExpectShape(std::move(Transposing(OnnxNode(op))), {F({4}), F({5, 4})}, {5});
  ExpectRefused(std::move(Transposing(OnnxNode(op))), {F({2, 3, 4}), F({5, 4})}, 3,
                "input 0 has 3 columns, input 1 has 4 rows");
}

OnnxNode&& Einsum(OnnxNode&& node, const char* equation) { return std::move(node.String("equation", equation)); }

// The examples of onnx's Einsum, and of numpy's.
TEST(ShapeInference, OfEinsum) {
  ExpectShape(Einsum(OnnxNode("Einsum"), "ij->ji"), {F({3, 4})}, {4, 3});
  ExpectShape(Einsum(OnnxNode("Einsum"), "...ii ->...i"), {F({3, 5, 5})}, {3, 5});
  ExpectShape(Einsum(OnnxNode("Einsum"), "bij, bjk -> bik"), {F({5, 2, 3}), F({5, 3, 4})}, {5, 2, 4});
  ExpectShape(Einsum(OnnxNode("Einsum"), "i,i"), {F({5}), F({5})}, {});
  ExpectShape(Einsum(OnnxNode("Einsum"), "ki,...k->i..."), {F({3, 4}), F({6, 5, 3})}, {4, 6, 5});
  ExpectShape(Einsum(OnnxNode("Einsum"), "...,..."), {F({2, 1, 3}), F({5, 1})}, {2, 5, 3});
  ExpectShape(Einsum(OnnxNode("Einsum"), "ij,jk->ik"), {F({2, 1}), F({7, 3})}, {2, 3});
  const std::string eight = "abcdefgh";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"i->i", "has another number of letters than an input has axes"},
      {"ijk->i", "has another number of letters than an input has axes"},
      {"ij,jk->ik", "has another number of operands than there are inputs"},
      {"i1->i", "has a sign that is no letter, no ellipsis, no comma and no arrow"},
      {"i.j->i", "has a sign that is no letter, no ellipsis, no comma and no arrow"},
      {"......->...", "has two ellipses for one tensor"},
      {"ij-ij", "has a hyphen that is no arrow"},
      {"ij->i,j", "has something behind the output"},
      {"...j->j", "has an ellipsis, and none in the output"},
      {"ij->k", "has a letter in the output that no input has"},
      {"ij->ii", "has a letter twice in the output"},
      {"ij->" + eight + "i", "has more than 8 letters for one tensor"},
      {"...->" + eight + "...", "gives a tensor more than 8 dimensions"},
  };
  for (const auto& w : wrong) {
    ExpectRefused(Einsum(OnnxNode("Einsum"), w.first.c_str()), {F({2, 3})}, 1,
                  "the equation '" + w.first + "' " + w.second);
  }
  ExpectRefused(Einsum(OnnxNode("Einsum"), "abcde,fghij"), {F({1, 1, 1, 1, 1}), F({1, 1, 1, 1, 1})}, 1,
                "the equation 'abcde,fghij' gives a tensor more than 8 dimensions");
  ExpectRefused(Einsum(OnnxNode("Einsum"), "ij,jk->ik"), {F({2, 3}), F({4, 5})}, 2,
                "dimension 0 of input 1 is 4, another one of its letter in 'ij,jk->ik' is not");
  ExpectRefused(Einsum(OnnxNode("Einsum"), "ii->i"), {F({1, 3})}, 1,
                "dimension 1 of input 0 is 3, another one of its letter in 'ii->i' is not");
  ExpectRefused(OnnxNode("Einsum"), std::vector<Host>(9, F({})), 0, "it has 9 inputs, allowed is 1..8");
}

TEST(ShapeInference, OfMultiHeadAttention) {
  const auto attention = [](OnnxNode&& node) -> OnnxNode&& { return std::move(node.Int("num_heads", 2)); };
  const char* op = "com.microsoft.MultiHeadAttention";
  const Host q = F({5, 3, 8}), k = F({5, 4, 8}), v = F({5, 4, 6}), none = F({0});
  const Host heads_of_k = F({5, 2, 4, 4}), heads_of_v = F({5, 2, 4, 3});
  ExpectShape(attention(OnnxNode(op)), {q, k, v}, {5, 3, 6});
  ExpectShape(attention(OnnxNode(op)), {q, k, v, F({22}), F({5, 4}), F({5, 2, 3, 4})}, {5, 3, 6});
  ExpectShape(attention(OnnxNode(op)), {q, k, v, none, F({5, 3, 4}), F({1, 1, 3, 4})}, {5, 3, 6});
  ExpectShape(attention(OnnxNode(op)), {q, heads_of_k, heads_of_v, none, F({5})}, {5, 3, 6});
  OnnxNode with_past(op);
  with_past.Int("num_heads", 2);
  std::vector<gcap_tensor_t> outputs(3, F({kOpen, kOpen, kOpen, kOpen}).Tensor());
  outputs[0].rank = 3;
  const std::vector<Host> past = {q, k, v, none, F({5, 11}), none, F({5, 2, 7, 4}), F({5, 2, 7, 3})};
  GCAP_ASSERT_OK(Infer(with_past, past, &outputs));
  EXPECT_EQ(ShapeOf(outputs[0]), (Sizes{5, 3, 6}));
  EXPECT_EQ(ShapeOf(outputs[1]), (Sizes{5, 2, 11, 4}));
  EXPECT_EQ(ShapeOf(outputs[2]), (Sizes{5, 2, 11, 3}));
  ExpectRefused(OnnxNode(op), {q, k, v}, 3, "num_heads is 0, allowed is a divisor of 8, dimension 2 of input 0");
  ExpectRefused(attention(OnnxNode(op)), {q, k, F({5, 2, 4, 3})}, 3, "inputs 0, 1 and 2 have ranks 3, 3 and 4");
  ExpectRefused(attention(OnnxNode(op)), {q, k, v, F({24})}, 3, "dimension 0 of input 3 is 24, allowed is 22");
  ExpectRefused(attention(OnnxNode(op)), {q, k, v, F({1, 22})}, 3, "input 3 has rank 2, allowed is 1");
  ExpectRefused(attention(OnnxNode(op)), {q, heads_of_k, heads_of_v, F({22})}, 3,
                "input 1 has rank 4, and it has input 3");
  ExpectRefused(attention(OnnxNode(op)), {q, k, v, none, F({17})}, 3, "dimension 0 of input 4 is 17, allowed is 5");
  ExpectRefused(attention(OnnxNode(op)), {q, k, v, none, F({5, 3})}, 3, "dimension 1 of input 4 is 3, allowed is 4");
  ExpectRefused(attention(OnnxNode(op)), {q, k, v, none, F({})}, 3, "input 4 has rank 0, allowed is 1 to 3");
  ExpectRefused(attention(OnnxNode(op)), {q, k, v, none, none, F({4})}, 3, "input 5 has rank 1, allowed is 2 to 4");
  ExpectRefused(attention(OnnxNode(op)), {q, k, v, none, none, none, F({5, 2, 7, 4})}, 3,
                "it has input 6 without the other past");
  ExpectRefused(std::move(attention(OnnxNode(op)).Int("unidirectional", 1)), {q, k, v}, 3,
                "it is unidirectional, with 3 queries and 4 new keys");
}

TEST(ShapeInference, OfSkipLayerNormalization) {
  const char* op = "com.microsoft.SkipLayerNormalization";
  ExpectShape(OnnxNode(op), {F({2, 3, 4}), F({2, 3, 4}), F({4})}, {2, 3, 4});
  ExpectShape(OnnxNode(op), {F({2, 3, 4}), F({1, 3, 4}), F({4}), F({4}), F({4})}, {2, 3, 4});
  ExpectShape(OnnxNode(op), {F({2, 3, 4}), F({3, 4}), F({4}), F({0}), F({4})}, {2, 3, 4});  // beta is left out
  ExpectShape(OnnxNode(op), {F({3, 4}), F({3, 4}), F({4})}, {3, 4});
  ExpectRefused(OnnxNode(op), {F({4}), F({4}), F({4})}, 1, "input 0 has rank 1, allowed is 2 or 3");
  ExpectRefused(OnnxNode(op), {F({3, 4}), F({4}), F({4})}, 2, "input 1 has rank 1, allowed is 2 or 3");
  ExpectRefused(OnnxNode(op), {F({2, 3, 4}), F({3, 3, 4}), F({4})}, 3, "dimension 0 of input 1 is 3, allowed is 2");
  ExpectRefused(OnnxNode(op), {F({2, 3, 4}), F({1, 4}), F({4})}, 3, "dimension 0 of input 1 is 1, allowed is 3");
  ExpectRefused(OnnxNode(op), {F({3, 4}), F({2, 3, 4}), F({4})}, 2, "dimension 0 of input 1 is 2, allowed is 1");
  ExpectRefused(OnnxNode(op), {F({3, 4}), F({3, 4}), F({3})}, 2, "input 2 has rank 1, allowed is rank 1 with 4");
  ExpectRefused(OnnxNode(op), {F({3, 4}), F({3, 4}), F({4}), F({4}), F({1, 4})}, 2,
                "input 4 has rank 2, allowed is rank 1 with 4");
  OnnxNode all("com.microsoft.SkipSimplifiedLayerNormalization");
  std::vector<gcap_tensor_t> outputs(4, F({kOpen, kOpen, kOpen}).Tensor());
  outputs[1].rank = 1, outputs[1].shape[0] = 0;
  GCAP_ASSERT_OK(Infer(all, {F({2, 3, 4}), F({2, 3, 4}), F({4})}, &outputs));
  EXPECT_EQ(ShapeOf(outputs[1]), (Sizes{0})) << "left out";
  EXPECT_EQ(ShapeOf(outputs[2]), (Sizes{2, 3, 1}));
  EXPECT_EQ(ShapeOf(outputs[3]), (Sizes{2, 3, 4}));
}

TEST(ShapeInference, OfQuantizeLinear) {
  const auto blocked = [](OnnxNode&& node) -> OnnxNode&& {
    return std::move(node.Int("axis", 1).Int("block_size", 2));
  };
  for (const char* op : {"QuantizeLinear", "DequantizeLinear"}) {
    ExpectShape(OnnxNode(op), {F({2, 3}), F({})}, {2, 3});
    ExpectShape(OnnxNode(op), {F({3}), F({1}), F({1})}, {3});
    ExpectShape(OnnxNode(op), {F({3}), F({1}), F({})}, {3});  // as ONNX Runtime's quantizer writes them
    ExpectShape(OnnxNode(op), {F({3}), F({}), F({1})}, {3});
    ExpectShape(OnnxNode(op), {F({2, 3}), F({3}), F({3})}, {2, 3});
    ExpectShape(std::move(OnnxNode(op).Int("axis", -2)), {F({2, 3}), F({2})}, {2, 3});
    ExpectShape(blocked(OnnxNode(op)), {F({2, 5, 4}), F({2, 3, 4})}, {2, 5, 4});
    ExpectRefused(OnnxNode(op), {F({2, 3}), F({2})}, 2, "dimension 0 of input 1 is 2, allowed is 3");
    ExpectRefused(OnnxNode(op), {F({2, 3}), F({2, 3})}, 2, "input 1 has rank 2, allowed is 1, or 1 element");
    ExpectRefused(OnnxNode(op), {F({2, 3}), F({3}), F({1})}, 2,
                  "input 2 has another shape than input 1, from dimension 0 on");
    ExpectRefused(OnnxNode(op), {F({2, 3}), F({}), F({1, 1})}, 2,
                  "input 2 has another shape than input 1, from dimension 0 on");
    ExpectRefused(std::move(OnnxNode(op).Int("axis", 2)), {F({2, 3}), F({3})}, 2, "axis is 2, allowed is -2..1");
    ExpectRefused(blocked(OnnxNode(op)), {F({2, 5, 4}), F({2, 2, 4})}, 3, "dimension 1 of input 1 is 2, allowed is 3");
    ExpectRefused(blocked(OnnxNode(op)), {F({2, 5, 4}), F({5})}, 3, "input 1 has rank 1, allowed is 3");
    ExpectRefused(std::move(OnnxNode(op).Int("block_size", -1)), {F({2, 3}), F({3})}, 2,
                  "block_size is -1, allowed is 0 or more");
  }
}

TEST(ShapeInference, OfMatMulInteger) {
  ExpectShape(OnnxNode("MatMulInteger"), {F({2, 3, 4}), F({4, 5})}, {2, 3, 5});
  ExpectShape(OnnxNode("MatMulInteger"), {F({3, 4}), F({4, 5}), F({3}), F({5})}, {3, 5});
  ExpectShape(OnnxNode("MatMulInteger"), {F({4}), F({4}), F({}), F({1})}, {});
  ExpectRefused(OnnxNode("MatMulInteger"), {F({3, 4}), F({4, 5}), F({4})}, 2,
                "input 2 has rank 1, allowed is 1 element, or rank 1 with 3");
  ExpectRefused(OnnxNode("MatMulInteger"), {F({3, 4}), F({4, 5}), F({}), F({5, 1})}, 2,
                "input 3 has rank 2, allowed is 1 element, or rank 1 with 5");
}

TEST(ShapeInference, OfQLinearMatMul) {
  const Host one = F({});
  ExpectShape(OnnxNode("QLinearMatMul"), {F({2, 3, 4}), one, one, F({4, 5}), F({5}), F({5}), one, F({1})}, {2, 3, 5});
  ExpectRefused(OnnxNode("QLinearMatMul"), {F({3, 4}), one, one, F({3, 5}), one, one, one, one}, 8,
                "input 0 has 4 columns, input 3 has 3 rows");
  ExpectRefused(OnnxNode("QLinearMatMul"), {F({3, 4}), F({3}), one, F({4, 5}), one, one, one, one}, 8,
                "input 1 has rank 1, allowed is 1 element");
  ExpectRefused(OnnxNode("QLinearMatMul"), {F({3, 4}), one, one, F({4, 5}), one, F({4}), one, one}, 8,
                "input 5 has rank 1, allowed is 1 element, or rank 1 with 5");
}

TEST(ShapeInference, OfGridSample) {
  ExpectShape(OnnxNode("GridSample"), {F({2, 3, 4, 5}), F({2, 6, 7, 2})}, {2, 3, 6, 7});
  ExpectRefused(OnnxNode("GridSample"), {F({2, 3}), F({2, 2})}, 2, "input 0 has rank 2, allowed is 3..8");
  ExpectRefused(OnnxNode("GridSample"), {F({2, 3, 4, 5}), F({2, 6, 2})}, 4, "input 1 has rank 3, input 0 has 4");
  ExpectRefused(OnnxNode("GridSample"), {F({2, 3, 4, 5}), F({2, 6, 7, 3})}, 4,
                "dimension 3 of input 1 is 3, allowed is 2");
  ExpectRefused(OnnxNode("GridSample"), {F({2, 3, 4, 5}), F({1, 6, 7, 2})}, 4,
                "inputs 0 and 1 have batches of 2 and 1");
}

TEST(ShapeInference, OfLpPoolAndHardmax) {
  ExpectShape(std::move(OnnxNode("LpPool").Ints("kernel_shape", {3, 2})), {F({1, 2, 5, 6})}, {1, 2, 3, 5});
  ExpectRefused(OnnxNode("LpPool"), {F({1, 2, 5, 6})}, 4, "it has no attribute kernel_shape");
  ExpectShape(OnnxNode("Hardmax"), {F({2, 3})}, {2, 3});
  ExpectRefused(std::move(OnnxNode("Hardmax").Int("axis", 2)), {F({2, 3})}, 2, "axis is 2, allowed is -2..1");
}

TEST(ShapeInference, OfAttention) {
  const auto with = [](OnnxNode&& node, int64_t q, int64_t kv) -> OnnxNode&& {
    return std::move(node.Int("q_num_heads", q).Int("kv_num_heads", kv));
  };
  const Host q = F({2, 4, 3, 8}), k = F({2, 2, 5, 8}), v = F({2, 2, 5, 6});
  ExpectShape(OnnxNode("Attention"), {q, k, v}, {2, 4, 3, 6});
  ExpectShape(OnnxNode("Attention"), {q, k, v, F({3, 5})}, {2, 4, 3, 6});
  ExpectShape(OnnxNode("Attention"), {q, k, v, F({1, 1, 3, 7}), F({2, 2, 2, 8}), F({2, 2, 2, 6})}, {2, 4, 3, 6});
  ExpectShape(with(OnnxNode("Attention"), 4, 2), {F({2, 3, 32}), F({2, 5, 16}), F({2, 5, 12})}, {2, 3, 24});
  ExpectRefused(with(OnnxNode("Attention"), 4, 0), {F({2, 3, 32}), F({2, 5, 16}), F({2, 5, 12})}, 3,
                "kv_num_heads is 0, allowed is a divisor of 16, dimension 2 of input 1");
  ExpectRefused(with(OnnxNode("Attention"), 5, 2), {F({2, 3, 32}), F({2, 5, 16}), F({2, 5, 12})}, 3,
                "q_num_heads is 5, allowed is a divisor of 32, dimension 2 of input 0");
  ExpectRefused(with(OnnxNode("Attention"), 3, 2), {q, k, v}, 4, "input 0 has 4 heads, q_num_heads is 3");
  ExpectRefused(OnnxNode("Attention"), {F({2, 3, 3, 8}), k, v}, 4, "inputs 0, 1 and 2 have 3, 2 and 2 heads");
  ExpectRefused(OnnxNode("Attention"), {F({1, 4, 3, 8}), k, v}, 4, "inputs 0, 1 and 2 have batches of 1, 2 and 2");
  ExpectRefused(OnnxNode("Attention"), {q, F({2, 0, 5, 8}), v}, 4, "input 1 has 0 heads, kv_num_heads is 0");
  ExpectRefused(OnnxNode("Attention"), {q, F({2, 2, 5, 9}), v}, 4,
                "heads of inputs 0 and 1 have sizes 8 and 9, inputs 1 and 2 lengths 5 and 5");
  ExpectRefused(OnnxNode("Attention"), {q, F({2, 5}), v}, 4, "input 1 has rank 2, allowed is 3 or 4");
  ExpectRefused(with(OnnxNode("Attention"), 4, 2), {q, F({2, 5, 16}), v}, 4, "inputs 0, 1 and 2 have ranks 4, 3 and 4");
  ExpectRefused(OnnxNode("Attention"), {q, k, v, F({3, 4})}, 4, "dimension 1 of input 3 is 4, allowed is 5");
  ExpectRefused(OnnxNode("Attention"), {q, k, v, F({5})}, 4, "input 3 has rank 1, allowed is 2 to 4");
  ExpectRefused(OnnxNode("Attention"), {q, k, v, F({3, 5}), F({2, 2, 2, 8})}, 4,
                "it has input 4 without the other past");
  ExpectRefused(OnnxNode("Attention"), {q, k, v, F({3, 7}), F({2, 2, 2, 8}), F({2, 2, 1, 6})}, 4,
                "dimension 2 of input 5 is 1, allowed is 2");
}

TEST(ShapeInference, OfMatMul) {
  ExpectShape(OnnxNode("MatMul"), {F({3, 4}), F({4, 3})}, {3, 3});
  ExpectShape(OnnxNode("MatMul"), {F({1, 2, 3, 4}), F({5, 1, 4, 3})}, {5, 2, 3, 3});
  ExpectShape(OnnxNode("MatMul"), {F({4}), F({4})}, {});
  ExpectShape(OnnxNode("MatMul"), {F({4}), F({2, 4, 3})}, {2, 3});
  ExpectShape(OnnxNode("MatMul"), {F({2, 3, 4}), F({4})}, {2, 3});
  ExpectShape(OnnxNode("MatMul"), {F({3, 0}), F({0, 5})}, {3, 5});
  ExpectRefused(OnnxNode("MatMul"), {F({3, 4}), F({3, 4})}, 2, "input 0 has 4 columns, input 1 has 3 rows");
  ExpectRefused(OnnxNode("MatMul"), {F({}), F({4})}, 0, "input 0 has rank 0, allowed is 1..8");
  ExpectRefused(OnnxNode("MatMul"), {F({2, 1, 4}), F({3, 4, 1})}, 3,
                "dimension 0 of input 1 is 3, allowed is 1 or 2, as the inputs before have");
}

TEST(ShapeInference, OfGemm) {
  ExpectShape(OnnxNode("Gemm"), {F({3, 5}), F({5, 4}), F({1, 4})}, {3, 4});
  ExpectShape(std::move(OnnxNode("Gemm").Int("transA", 1)), {F({6, 3}), F({6, 4}), F({})}, {3, 4});
  ExpectShape(std::move(OnnxNode("Gemm").Int("transB", 1)), {F({3, 6}), F({4, 6})}, {3, 4});
  ExpectRefused(OnnxNode("Gemm"), {F({3, 5}), F({4, 5})}, 2, "input 0 has 5 columns, input 1 has 4 rows");
  ExpectRefused(OnnxNode("Gemm"), {F({3, 5, 1}), F({4, 5})}, 2, "input 0 has rank 3, allowed is 2");
  ExpectRefused(OnnxNode("Gemm"), {F({1, 5}), F({5, 4}), F({3, 4})}, 2,
                "dimension 0 of input 2 is 3, allowed is 1 or 1");
}

// --- Windows ------------------------------------------------------------------------------------------------------------

// The examples of Conv's documentation: a 3 x 3 window on 5 x 5 and 7 x 5.
TEST(ShapeInference, OfConv) {
  const Host w = F({1, 1, 3, 3}), tall = F({1, 1, 7, 5});
  ExpectShape(std::move(OnnxNode("Conv").Ints("kernel_shape", {3, 3}).Ints("pads", {1, 1, 1, 1})), {F({1, 1, 5, 5}), w},
              {1, 1, 5, 5});
  ExpectShape(OnnxNode("Conv"), {F({1, 1, 5, 5}), w}, {1, 1, 3, 3});
  ExpectShape(std::move(OnnxNode("Conv").Ints("strides", {2, 2}).Ints("pads", {1, 1, 1, 1})), {tall, w}, {1, 1, 4, 3});
  ExpectShape(std::move(OnnxNode("Conv").Ints("strides", {2, 2})), {tall, w}, {1, 1, 3, 2});
  ExpectShape(std::move(OnnxNode("Conv").Ints("strides", {2, 2}).Ints("pads", {1, 0, 1, 0})), {tall, w}, {1, 1, 4, 2});
  ExpectShape(std::move(OnnxNode("Conv").Ints("strides", {2, 2}).String("auto_pad", "SAME_LOWER")),
              {F({1, 1, 5, 5}), w}, {1, 1, 3, 3});
  ExpectShape(std::move(OnnxNode("Conv").Ints("dilations", {2, 2})), {F({1, 1, 5, 5}), w}, {1, 1, 1, 1});
  ExpectShape(std::move(OnnxNode("Conv").Int("group", 2)), {F({2, 4, 9}), F({6, 2, 3}), F({6})}, {2, 6, 7});
}

TEST(ShapeInference, RefusesConvs) {
  const Host x = F({1, 4, 9});
  ExpectRefused(OnnxNode("Conv"), {x, F({6, 3, 3})}, 3, "input 0 has 4 channels, input 1 has 3 in each of 1 groups");
  ExpectRefused(std::move(OnnxNode("Conv").Int("group", 4)), {x, F({6, 1, 3})}, 3,
                "input 1 makes 6 channels, allowed is a multiple of group 4");
  ExpectRefused(std::move(OnnxNode("Conv").Int("group", 0)), {x, F({6, 1, 3})}, 3, "group is 0, allowed is 1 or more");
  ExpectRefused(OnnxNode("Conv"), {x, F({6, 4, 3}), F({5})}, 3, "input 2 has 5 elements, input 1 makes 6 channels");
  ExpectRefused(OnnxNode("Conv"), {x, F({6, 4, 10})}, 3,
                "the window reaches over 10 elements of axis 2, which has 9 with its padding");
  ExpectRefused(std::move(OnnxNode("Conv").Ints("strides", {0})), {x, F({6, 4, 3})}, 3,
                "strides[0] is 0, allowed is 1 or more");
  ExpectRefused(std::move(OnnxNode("Conv").Ints("pads", {1})), {x, F({6, 4, 3})}, 3,
                "pads has 1 numbers, allowed is 2, for input 0 of rank 3");
  ExpectRefused(std::move(OnnxNode("Conv").Ints("dilations", {INT64_MAX})), {x, F({6, 4, 3})}, 3,
                "the window or the padded input is larger than 9223372036854775807 on axis 2");
  ExpectRefused(std::move(OnnxNode("Conv").Ints("kernel_shape", {2})), {x, F({6, 4, 3})}, 3,
                "kernel_shape[0] is 2, dimension 2 of input 1 is 3");
  ExpectRefused(OnnxNode("Conv"), {F({1, 4}), F({6, 4})}, 2, "input 0 has rank 2, allowed is 3..8");
  ExpectRefused(std::move(OnnxNode("Conv").String("auto_pad", "MOST")), {x, F({6, 4, 3})}, 3,
                "auto_pad is MOST, allowed is NOTSET, SAME_UPPER, SAME_LOWER or VALID");
}

// The examples of ConvTranspose's documentation, and what it says of pads.
TEST(ShapeInference, OfConvTranspose) {
  const Host x = F({1, 1, 3, 3}), w = F({1, 2, 3, 3});
  const auto node = [] { return std::make_unique<OnnxNode>("ConvTranspose"); };
  ExpectShape(OnnxNode("ConvTranspose"), {x, w}, {1, 2, 5, 5});
  ExpectShape(std::move(node()->Ints("strides", {3, 2})), {x, w}, {1, 2, 9, 7});
  ExpectShape(std::move(node()->Ints("strides", {3, 2}).Ints("output_padding", {1, 1})), {x, w}, {1, 2, 10, 8});
  ExpectShape(std::move(node()->Ints("strides", {3, 2}).Ints("output_shape", {10, 8})), {x, w}, {1, 2, 10, 8});
  ExpectShape(std::move(node()->Ints("output_shape", {1, 2, 4, 8})), {x, w}, {1, 2, 4, 8});
  ExpectShape(std::move(node()->Ints("strides", {3, 2}).Ints("pads", {1, 2, 1, 2})), {x, w}, {1, 2, 7, 3});
  ExpectShape(std::move(node()->Ints("strides", {2, 2}).String("auto_pad", "SAME_LOWER")), {x, w}, {1, 2, 6, 6});
  ExpectShape(std::move(node()->Ints("pads", {1, 1, 1, 1}).String("auto_pad", "VALID")), {x, w}, {1, 2, 5, 5});
  ExpectShape(std::move(node()->Int("group", 2).Ints("dilations", {2, 2})), {F({1, 4, 3, 3}), F({4, 3, 2, 2})},
              {1, 6, 5, 5});
  ExpectRefused(OnnxNode("ConvTranspose"), {x, F({2, 2, 3, 3})}, 4,
                "input 0 has 1 channels, input 1 has 2 in 1 groups");
  ExpectRefused(std::move(node()->Int("group", 0)), {x, w}, 4, "group is 0, allowed is 1 or more");
  ExpectRefused(OnnxNode("ConvTranspose"), {x, w, F({1})}, 4, "input 2 has 1 elements, input 1 makes 2 channels");
  ExpectRefused(std::move(node()->Ints("pads", {3, 0, 2, 0})), {x, w}, 4,
                "the pads of axis 2, 3 and 2, leave nothing of 5 elements");
  ExpectRefused(std::move(node()->Ints("output_shape", {3})), {x, w}, 4,
                "output_shape has 1 numbers, allowed is 2 or 4, for input 0 of rank 4");
  ExpectRefused(std::move(node()->Ints("output_shape", {3, 0})), {x, w}, 4,
                "output_shape[1] is 0, allowed is 1 or more");
  ExpectRefused(std::move(node()->Ints("output_padding", {-1, 0})), {x, w}, 4,
                "output_padding[0] is -1, allowed is 0 or more");
  ExpectRefused(std::move(node()->Ints("strides", {INT64_MAX, 1})), {x, w}, 4,
                "the window or the padded input is larger than 9223372036854775807 on axis 2");
  ExpectRefused(OnnxNode("ConvTranspose"), {F({1, 1, 0, 3}), w}, 4,
                "dimension 2 of input 0 is 0, allowed is 1 or more");
}

// The examples of MaxPool's and AveragePool's documentation.
TEST(ShapeInference, OfPools) {
  ExpectShape(std::move(OnnxNode("MaxPool").Ints("kernel_shape", {2})), {F({1, 3, 32})}, {1, 3, 31});
  ExpectShape(std::move(OnnxNode("MaxPool").Ints("kernel_shape", {5, 5}).Ints("strides", {3, 3})), {F({1, 3, 32, 32})},
              {1, 3, 10, 10});
  ExpectShape(std::move(OnnxNode("MaxPool").Ints("kernel_shape", {3, 3}).Ints("strides", {2, 2}).Int("ceil_mode", 1)),
              {F({1, 1, 4, 4})}, {1, 1, 2, 2});
  ExpectShape(std::move(OnnxNode("MaxPool").Ints("kernel_shape", {2, 2}).String("auto_pad", "SAME_UPPER")),
              {F({1, 3, 32, 32})}, {1, 3, 32, 32});
  // "output_size_reduce_by_one": the third window would begin in the padding at the end.
  ExpectShape(std::move(OnnxNode("MaxPool").Ints("kernel_shape", {1, 1}).Ints("strides", {2, 2}).Int("ceil_mode", 1)),
              {F({1, 1, 2, 2})}, {1, 1, 1, 1});
  // Windows that end at the input's end leave nothing for a further one.
  ExpectShape(std::move(OnnxNode("MaxPool").Ints("kernel_shape", {3}).Int("ceil_mode", 1)), {F({1, 1, 4})}, {1, 1, 2});
  ExpectShape(OnnxNode("GlobalAveragePool"), {F({1, 3, 5, 5})}, {1, 3, 1, 1});
  ExpectRefused(OnnxNode("MaxPool"), {F({1, 3, 32})}, 3, "it has no attribute kernel_shape");
}

// Sizes are cut to whole elements; in f32, in which 3 * 0.333... is 1.
TEST(ShapeInference, OfResizes) {
  const auto scales = [](const std::vector<float>& s) { return Host({static_cast<int64_t>(s.size())}, s); };
  const Host x = F({1, 2, 3, 4}), none = scales({}), roi = F({8});
  ExpectShape(OnnxNode("Resize"), {x, scales({1, 1, 2.5f, 0.6f})}, {1, 2, 7, 2});
  ExpectShape(OnnxNode("Upsample"), {x, scales({1, 1, 2, 3})}, {1, 2, 6, 12});
  ExpectShape(OnnxNode("Resize"), {x, roi, scales({1, 1, 1.0f / 3, 2})}, {1, 2, 1, 8});
  ExpectShape(OnnxNode("Resize"), {x, none, none, N({1, 2, 7, 3})}, {1, 2, 7, 3});
  ExpectShape(std::move(OnnxNode("Resize").Ints("axes", {3, -2})), {x, roi, scales({2, 3})}, {1, 2, 9, 8});
  const auto keeps = [](const char* policy) {
    auto op = std::make_unique<OnnxNode>("Resize");
    op->Ints("axes", {2, 3}).String("keep_aspect_ratio_policy", policy);
    return op;
  };
  ExpectShape(std::move(*keeps("not_larger")), {x, roi, none, N({7, 7})}, {1, 2, 5, 7});  // 3 * 7 / 4 is 5.25
  ExpectShape(std::move(*keeps("not_smaller")), {x, roi, none, N({7, 7})}, {1, 2, 7, 9});
  ExpectShape(OnnxNode("Resize"), {F({0, 2}), roi, scales({2, 2})}, {0, 4});
  ExpectShape(OnnxNode("Resize"), {F({0, 2}), roi, none, N({0, 3})}, {0, 3});
  ExpectRefused(std::move(*keeps("wide")), {x, roi, none, N({7, 7})}, 4,
                "keep_aspect_ratio_policy is wide, allowed is stretch, not_larger or not_smaller");
  ExpectRefused(OnnxNode("Resize"), {x, roi, scales({1, 2})}, 4,
                "input 2 (scales) has 2 numbers, allowed is 4, one for each axis");
  ExpectRefused(OnnxNode("Resize"), {x, roi, scales({1, 1, 0, 2})}, 4,
                "scales[2] is 0, allowed is a finite number above 0");
  ExpectRefused(OnnxNode("Resize"), {x, roi, scales({1, 1, INFINITY, 2})}, 4,
                "scales[2] is inf, allowed is a finite number above 0");
  ExpectRefused(OnnxNode("Resize"), {x, roi, scales({1, 1, 1e30f, 2})}, 4, "dimension 2 of output 0 would be 3e+30");
  ExpectRefused(OnnxNode("Resize"), {x, roi, N({1, 1, 2, 2})}, 4, "input 2 (scales) is of type i64, allowed is f32");
  ExpectRefused(OnnxNode("Resize"), {x, roi, none, N({1, 2, 0, 3})}, 4,
                "sizes[2] is 0, allowed is 1 or more, or 0 where input 0 has 0; it has 3");
  ExpectRefused(OnnxNode("Resize"), {F({0, 2}), roi, none, N({1, 2})}, 2,
                "sizes[0] is 1, allowed is 1 or more, or 0 where input 0 has 0; it has 0");
  ExpectRefused(OnnxNode("Resize"), {x, roi, scales({1, 1, 2, 2}), N({1, 2, 6, 8})}, 4, "it has both scales and sizes");
  ExpectRefused(OnnxNode("Resize"), {x, roi, none}, 4, "it has neither scales nor sizes");
  ExpectRefused(std::move(OnnxNode("Resize").Ints("axes", {4})), {x, roi, scales({2})}, 4,
                "axes[0] is 4, allowed is -4..3");
  ExpectRefused(std::move(OnnxNode("Resize").Ints("axes", {0, 1, 2, 3, 0})), {x, roi, scales({2})}, 4,
                "axes has 5 numbers, input 0 has rank 4");
}

TEST(ShapeInference, ResolvesPaddingForKernels) {
  OnnxNode op("Conv");
  op.String("auto_pad", "SAME_LOWER").Ints("strides", {2});
  const gcap_node_t node = op.Node(2);
  const gcap_tensor_t inputs[] = {F({1, 1, 6}).Tensor(), F({1, 1, 3}).Tensor()};
  gcap_window_t window;
  GCAP_ASSERT_OK(gcap_infer_window(&node, inputs, &window));
  // Three outputs reach over 2 * 2 + 3 = 7 elements: one of padding, which SAME_LOWER puts first.
  EXPECT_EQ(window.rank, 1);
  EXPECT_EQ(window.size[0], 3);
  EXPECT_EQ(window.stride[0], 2);
  EXPECT_EQ(window.pad_begin[0], 1);
  EXPECT_EQ(window.pad_end[0], 0);
  EXPECT_EQ(window.count[0], 3);
}

TEST(ShapeInference, ResolvesASliceForKernels) {
  OnnxNode op("Slice");
  const gcap_node_t node = op.Node(5);
  const Host data = F({4, 7}), starts = N({-1}), ends = N({-100}), axes = N({1}), steps = N({-3});
  const gcap_tensor_t inputs[] = {data.Tensor(), starts.Tensor(), ends.Tensor(), axes.Tensor(), steps.Tensor()};
  gcap_slice_t slice;
  GCAP_ASSERT_OK(gcap_infer_slice(&node, inputs, &slice));
  EXPECT_TRUE(slice.known);
  EXPECT_EQ(Sizes(slice.start, slice.start + 2), (Sizes{0, 6}));
  EXPECT_EQ(Sizes(slice.step, slice.step + 2), (Sizes{1, -3}));
  EXPECT_EQ(Sizes(slice.count, slice.count + 2), (Sizes{4, 3}));
}

}  // namespace
