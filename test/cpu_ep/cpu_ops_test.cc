// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Each operator by hand: the examples of ONNX's operator documentation (onnx.ai/onnx/operators) where a case names one,
// and what that text leaves open as gcap/kit/cpu_ep.h says it.

#include <cmath>
#include <limits>

#include "test/cpu_ep/cpu_node.h"

namespace {

using gcap::testing::CpuEp;
using gcap::testing::Host;
using gcap::testing::OnnxNode;
using gcap::testing::Scalar;
using gcap::testing::Sizes;
using gcap::testing::Vector;
using I64 = std::vector<int64_t>;
using I32 = std::vector<int32_t>;
using F32 = std::vector<float>;
using F16 = std::vector<uint16_t>;
using Bool = std::vector<uint8_t>;

constexpr int64_t kMin = INT64_MIN, kMax = INT64_MAX;
const float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

Host N(const I64& numbers) { return Vector(numbers); }

// --- Shapes -----------------------------------------------------------------------------------------------------------

TEST_F(CpuEp, ShapeAndSizeReadNoContent) {
  const Host x(GCAP_DTYPE_BF16, Sizes{2, 3, 4});  // without memory
  Expect<int64_t>(OnnxNode("Shape"), {x}, {3}, {2, 3, 4});
  Expect<int64_t>(std::move(OnnxNode("Shape").Int("start", 1).Int("end", -1)), {x}, {1}, {3});
  Expect<int64_t>(std::move(OnnxNode("Shape").Int("start", -7)), {x}, {3}, {2, 3, 4});
  Expect<int64_t>(std::move(OnnxNode("Shape").Int("start", 9)), {x}, {0}, {});
  Expect<int64_t>(OnnxNode("Size"), {x}, {}, {24});
  Expect<int64_t>(OnnxNode("Size"), {Host(GCAP_DTYPE_F32, Sizes{3, 0})}, {}, {0});
}

TEST_F(CpuEp, ShapesAreMadeIntoTensors) {
  Expect<int32_t>(std::move(OnnxNode("ConstantOfShape").Int("value", -7)), {N({2, 2})}, {2, 2}, {-7, -7, -7, -7});
  Expect<float>(std::move(OnnxNode("ConstantOfShape").Float("value", 1.5f)), {N({2})}, {2}, {1.5f, 1.5f});
  Expect<float>(OnnxNode("ConstantOfShape"), {N({1})}, {1}, {0.0f});
  Expect<uint8_t>(std::move(OnnxNode("ConstantOfShape").Int("value", 3)), {N({2})}, {2}, {1, 1});
  Expect<int64_t>(std::move(OnnxNode("ConstantOfShape").Int("value", kMin)), {N({})}, {}, {kMin});
  Expect<int64_t>(OnnxNode("ConstantOfShape"), {N({0, 3})}, {0, 3}, {});
}

TEST_F(CpuEp, Range) {
  Expect<float>(OnnxNode("Range"), {Scalar(1.0f), Scalar(5.0f), Scalar(2.0f)}, {2}, {1, 3});
  Expect<int32_t>(OnnxNode("Range"), {Scalar(10), Scalar(6), Scalar(-3)}, {2}, {10, 7});
  Expect<int64_t>(OnnxNode("Range"), {Scalar<int64_t>(kMin), Scalar<int64_t>(kMax), Scalar<int64_t>(kMax)}, {3},
                  {kMin, -1, kMax - 1});
  Expect<int64_t>(OnnxNode("Range"), {Scalar<int64_t>(5), Scalar<int64_t>(5), Scalar<int64_t>(1)}, {0}, {});
  Expect<float>(OnnxNode("Range"), {Scalar(0.0f), Scalar(0.4f), Scalar(0.1f)}, {4}, {0, 0.1f, 0.2f, 0.3f});
}

// --- Element by element -------------------------------------------------------------------------------------------------

TEST_F(CpuEp, IntegersWrap) {
  Expect<int64_t>(OnnxNode("Add"), {N({kMax, 1}), N({1, 2})}, {2}, {kMin, 3});
  Expect<int64_t>(OnnxNode("Sub"), {N({kMin, 1}), N({1, 2})}, {2}, {kMax, -1});
  Expect<int64_t>(OnnxNode("Mul"), {N({kMax, -3}), N({2, 4})}, {2}, {-2, -12});
  Expect<int32_t>(OnnxNode("Mul"), {Vector<int32_t>({65536, 46341}), Vector<int32_t>({65536, 46341})}, {2},
                  {0, -2147479015});  // 46341^2 - 2^32
  Expect<int64_t>(OnnxNode("Neg"), {N({kMin, 5})}, {2}, {kMin, -5});
  Expect<int32_t>(OnnxNode("Abs"), {Vector<int32_t>({INT32_MIN, -5, 5})}, {3}, {INT32_MIN, 5, 5});
}

TEST_F(CpuEp, DivisionGoesTowardZero) {
  Expect<int64_t>(OnnxNode("Div"), {N({7, -7, 7, -7, kMin}), N({2, 2, -2, -2, -1})}, {5}, {3, -3, -3, 3, kMin});
  Expect<int32_t>(OnnxNode("Div"), {Vector<int32_t>({INT32_MIN, -9}), Scalar(-1)}, {2}, {INT32_MIN, 9});
  Expect<float>(OnnxNode("Div"), {Vector<float>({1, -1}), Scalar(0.0f)}, {2}, {kInf, -kInf});
}

// The examples of Mod's documentation: "mod_mixed_sign_int64" and "mod_int64_fmod".
TEST_F(CpuEp, Mod) {
  const Host x = N({-4, 7, 5, 4, -7, 8}), y = N({2, -3, 8, -2, 3, 5});
  Expect<int64_t>(OnnxNode("Mod"), {x, y}, {6}, {0, -2, 5, 0, 2, 3});
  Expect<int64_t>(std::move(OnnxNode("Mod").Int("fmod", 1)), {x, y}, {6}, {0, 1, 5, 0, -1, 3});
  Expect<int32_t>(OnnxNode("Mod"), {Scalar(INT32_MIN), Scalar(-1)}, {}, {0});
  Expect<int64_t>(std::move(OnnxNode("Mod").Int("fmod", 1)), {N({kMin}), N({-1})}, {1}, {0});
  Expect<float>(std::move(OnnxNode("Mod").Int("fmod", 1)), {Vector<float>({-4.5f, 7.5f}), Vector<float>({2, -3})}, {2},
                {-0.5f, 1.5f});
}

TEST_F(CpuEp, DivisionByZeroIsRefused) {
  const std::string zero = "element 1 of input 1 is 0, by which an integer is divided";
  ExpectRefused(OnnxNode("Div"), {N({1, 2}), N({1, 0})}, GCAP_DTYPE_I64, 1, zero);
  ExpectRefused(OnnxNode("Mod"), {N({1, 2}), N({1, 0})}, GCAP_DTYPE_I64, 1, zero);
  const Host a = Vector<int32_t>({1, 2}), b = Vector<int32_t>({1, 0});
  ExpectRefused(OnnxNode("Div"), {a, b}, GCAP_DTYPE_I32, 1, zero);
  ExpectRefused(OnnxNode("Mod"), {a, b}, GCAP_DTYPE_I32, 1, zero);
  ExpectRefused(std::move(OnnxNode("Mod").Int("fmod", 1)), {a, b}, GCAP_DTYPE_I32, 1, zero);
}

TEST_F(CpuEp, MinAndMax) {
  Expect<int64_t>(OnnxNode("Max"), {N({3, 2, 1}), N({1, 4, 4}), N({2, 5, 3})}, {3}, {3, 5, 4});  // the documentation's
  Expect<int64_t>(OnnxNode("Min"), {N({3, 2, 1}), N({1, 4, 4}), N({2, 5, 0})}, {3}, {1, 2, 0});  // examples
  Expect<int32_t>(OnnxNode("Max"), {Vector<int32_t>({-1, 7})}, {2}, {-1, 7});
  Expect<float>(OnnxNode("Min"), {Vector<float>({1, 5}), Host(Sizes{2, 1}, F32{2, 3}), Scalar(4.0f)}, {2, 2},
                {1, 2, 1, 3});
  for (const char* op : {"Min", "Max"}) {
    const Host result = Run(OnnxNode(op), {Vector<float>({kNan, 1}), Vector<float>({1, kNan})}, GCAP_DTYPE_F32, 1);
    for (float each : result.As<float>()) EXPECT_TRUE(std::isnan(each)) << op;
  }
}

TEST_F(CpuEp, ComparisonsAndLogic) {
  const Host a = N({1, 2, 3}), b = N({3, 2, 1});
  Expect<uint8_t>(OnnxNode("Less"), {a, b}, {3}, {1, 0, 0});
  Expect<uint8_t>(OnnxNode("Greater"), {a, b}, {3}, {0, 0, 1});
  Expect<uint8_t>(OnnxNode("Equal"), {a, b}, {3}, {0, 1, 0});
  for (const char* op : {"Less", "Greater", "Equal"}) {
    Expect<uint8_t>(OnnxNode(op), {Scalar(kNan), Scalar(kNan)}, {}, {0});
  }
  const Host p = Vector<uint8_t>({0, 0, 1, 1}), q = Vector<uint8_t>({0, 1, 0, 1});
  Expect<uint8_t>(OnnxNode("And"), {p, q}, {4}, {0, 0, 0, 1});
  Expect<uint8_t>(OnnxNode("Or"), {p, q}, {4}, {0, 1, 1, 1});
  Expect<uint8_t>(OnnxNode("Equal"), {p, q}, {4}, {1, 0, 0, 1});
  Expect<uint8_t>(OnnxNode("Equal"), {Vector<int8_t>({-1, 2}), Vector<int8_t>({-1, -2})}, {2}, {1, 0});
  Expect<uint8_t>(OnnxNode("Not"), {p}, {4}, {1, 1, 0, 0});
}

TEST_F(CpuEp, ReluNegAbs) {
  Expect<float>(OnnxNode("Relu"), {Vector<float>({-1, 0, 2})}, {3}, {0, 0, 2});
  Expect<int32_t>(OnnxNode("Relu"), {Vector<int32_t>({INT32_MIN, 3})}, {2}, {0, 3});
  Expect<float>(OnnxNode("Neg"), {Vector<float>({-4, 2})}, {2}, {4, -2});
  Expect<float>(OnnxNode("Abs"), {Vector<float>({-4, 2})}, {2}, {4, 2});
  Expect<int64_t>(OnnxNode("Abs"), {N({-4, 2})}, {2}, {4, 2});
}

TEST_F(CpuEp, WhereCopiesBytesOfAnyType) {
  const Host condition(Sizes{2, 2}, Bool{1, 0, 1, 1});  // the documentation's example
  Expect<float>(OnnxNode("Where"), {condition, Host(Sizes{2, 2}, F32{1, 2, 3, 4}), Host(Sizes{2, 2}, F32{9, 8, 7, 6})},
                {2, 2}, {1, 8, 3, 4});
  Expect<uint16_t>(OnnxNode("Where"), {Vector<uint8_t>({1, 0}), Scalar<uint16_t>(0x3c00), Vector<uint16_t>({5, 6})},
                   {2}, {0x3c00, 6});
}

TEST_F(CpuEp, CastIsTheSameEverywhere) {
  Expect<int64_t>(std::move(OnnxNode("Cast").Int("to", 7)), {Vector<float>({-1.9f, 1.9f, kNan, 1e30f, -1e30f})}, {5},
                  {-1, 1, 0, kMax, kMin});
  Expect<int32_t>(OnnxNode("Cast"), {Vector<float>({-1.9f, 2147483648.0f, -2147483648.0f, kInf})}, {4},
                  {-1, INT32_MAX, INT32_MIN, INT32_MAX});
  Expect<uint8_t>(OnnxNode("Cast"), {Vector<float>({0, -0.0f, 0.5f, kNan})}, {4}, {0, 0, 1, 1});
  Expect<float>(OnnxNode("Cast"), {N({-3, INT64_C(1) << 40})}, {2}, {-3, 1099511627776.0f});
  Expect<int32_t>(OnnxNode("Cast"), {N({(INT64_C(7) << 32) + 5, -2})}, {2}, {5, -2});
  Expect<int64_t>(OnnxNode("Cast"), {Vector<uint8_t>({0, 1})}, {2}, {0, 1});
  Expect<uint8_t>(OnnxNode("Cast"), {N({INT64_C(1) << 40, 0})}, {2}, {1, 0});
  Expect<int64_t>(OnnxNode("Cast"), {Vector<int32_t>({-5})}, {1}, {-5});
  Expect<int8_t>(OnnxNode("Cast"), {Vector<float>({-200, 200, -1.5f})}, {3}, {-128, 127, -1});
  Expect<int8_t>(std::move(OnnxNode("Cast").Int("to", 3)), {N({200, 257})}, {2}, {-56, 1});
  Expect<float>(OnnxNode("Cast"), {Vector<int8_t>({-5, 127})}, {2}, {-5, 127});
}

// --- Layout -------------------------------------------------------------------------------------------------------------

TEST_F(CpuEp, GatherCountsFromTheEndToo) {
  const Host x(Sizes{3, 3}, F32{1.0f, 1.2f, 1.9f, 2.3f, 3.4f, 3.9f, 4.5f, 5.7f, 5.9f});
  Expect<float>(std::move(OnnxNode("Gather").Int("axis", 1)), {x, Host(Sizes{1, 2}, I64{0, 2})}, {3, 1, 2},
                {1.0f, 1.9f, 2.3f, 3.9f, 4.5f, 5.9f});  // the documentation's example for axis 1
  Expect<int64_t>(OnnxNode("Gather"), {N({0, 10, 20, 30}), Vector<int32_t>({-1, -4, 2})}, {3}, {30, 0, 20});
  Expect<uint16_t>(OnnxNode("Gather"), {Vector<uint16_t>({7, 8}), Scalar<int64_t>(1)}, {}, {8});
  Expect<int64_t>(OnnxNode("Gather"), {N({}), N({})}, {0}, {});
  ExpectRefused(OnnxNode("Gather"), {N({1, 2}), N({0, 2})}, GCAP_DTYPE_I64, 1,
                "element 1 of input 1 is 2, allowed is -2..1");
  ExpectRefused(OnnxNode("Gather"), {N({1, 2}), N({-3})}, GCAP_DTYPE_I64, 1,
                "element 0 of input 1 is -3, allowed is -2..1");
  ExpectRefused(OnnxNode("Gather"), {Host(Sizes{2, 0}, I64{}), N({5})}, GCAP_DTYPE_I64, 2,
                "element 0 of input 1 is 5, allowed is -2..1");
}

TEST_F(CpuEp, ConcatTakesEmptyInputs) {
  const Host a(Sizes{2, 2}, I64{1, 2, 3, 4}), none(Sizes{2, 0}, I64{}), b(Sizes{2, 1}, I64{5, 6});
  Expect<int64_t>(std::move(OnnxNode("Concat").Int("axis", 1)), {a, none, b}, {2, 3}, {1, 2, 5, 3, 4, 6});
  Expect<uint8_t>(std::move(OnnxNode("Concat").Int("axis", 0)), {Vector<uint8_t>({1}), Vector<uint8_t>({0, 1})}, {3},
                  {1, 0, 1});
}

TEST_F(CpuEp, SliceStepsBothWays) {
  const Host x = N({0, 1, 2, 3, 4, 5});
  Expect<int64_t>(OnnxNode("Slice"), {x, N({-1}), N({kMin}), N({0}), N({-2})}, {3}, {5, 3, 1});
  Expect<int64_t>(OnnxNode("Slice"), {x, N({1}), N({kMax}), N({0}), N({3})}, {2}, {1, 4});
  Expect<int64_t>(OnnxNode("Slice"), {x, N({4}), N({kMin}), N({0}), N({kMin})}, {1}, {4});
  Expect<int64_t>(OnnxNode("Slice"), {x, N({1}), N({kMax}), N({0}), N({kMax})}, {1}, {1});
  Expect<int64_t>(OnnxNode("Slice"), {x, N({4}), N({2})}, {0}, {});
  const Host y(Sizes{2, 4}, F32{1, 2, 3, 4, 5, 6, 7, 8});  // the documentation's two examples
  Expect<float>(OnnxNode("Slice"), {y, N({1, 0}), N({2, 3}), N({0, 1}), N({1, 2})}, {1, 2}, {5, 7});
  Expect<float>(OnnxNode("Slice"), {y, N({0, 1}), N({-1, 1000})}, {1, 3}, {2, 3, 4});
  Expect<float>(OnnxNode("Slice"), {y, Vector<int32_t>({1}), Vector<int32_t>({2})}, {1, 4}, {5, 6, 7, 8});
}

TEST_F(CpuEp, ReshapesKeepTheOrder) {
  const Host x(Sizes{2, 3}, I32{1, 2, 3, 4, 5, 6});
  const I32 same = {1, 2, 3, 4, 5, 6};
  Expect<int32_t>(OnnxNode("Reshape"), {x, N({-1, 2})}, {3, 2}, same);
  Expect<int32_t>(OnnxNode("Flatten"), {x}, {2, 3}, same);
  Expect<int32_t>(OnnxNode("Unsqueeze"), {x, N({0, -1})}, {1, 2, 3, 1}, same);
  Expect<int32_t>(std::move(OnnxNode("Unsqueeze").Ints("axes", {1})), {x}, {2, 1, 3}, same);
  Expect<int32_t>(OnnxNode("Squeeze"), {Host(Sizes{1, 2, 1, 3}, same), N({0})}, {2, 1, 3}, same);
  Expect<int32_t>(OnnxNode("Identity"), {x}, {2, 3}, same);
  Expect<int32_t>(OnnxNode("Identity"), {Host(Sizes{0}, I32{})}, {0}, {});
}

TEST_F(CpuEp, ExpandAndTranspose) {
  const Host column(Sizes{3, 1}, F32{1, 2, 3});  // the documentation's examples
  Expect<float>(OnnxNode("Expand"), {column, N({2, 1, 2})}, {2, 3, 2}, {1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3});
  Expect<float>(OnnxNode("Expand"), {Scalar(7.0f), N({2})}, {2}, {7, 7});
  Expect<float>(OnnxNode("Expand"), {Scalar(7.0f), N({0, 2})}, {0, 2}, {});
  const Host x(Sizes{2, 3}, F16{1, 2, 3, 4, 5, 6});
  Expect<uint16_t>(OnnxNode("Transpose"), {x}, {3, 2}, {1, 4, 2, 5, 3, 6});
  Expect<uint16_t>(std::move(OnnxNode("Transpose").Ints("perm", {0, 1})), {x}, {2, 3}, {1, 2, 3, 4, 5, 6});
}

// --- Reductions and products --------------------------------------------------------------------------------------------

// The data of the documentation's examples, 3 x 2 x 2.
TEST_F(CpuEp, Reductions) {
  const Host x(Sizes{3, 2, 2}, F32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  Expect<float>(std::move(OnnxNode("ReduceSum").Int("keepdims", 0)), {x, N({1})}, {3, 2}, {4, 6, 12, 14, 20, 22});
  Expect<float>(OnnxNode("ReduceSum"), {x}, {1, 1, 1}, {78});
  Expect<float>(std::move(OnnxNode("ReduceSum").Int("noop_with_empty_axes", 1)), {x, N({})}, {3, 2, 2}, x.As<float>());
  Expect<float>(std::move(OnnxNode("ReduceMax").Ints("axes", {-1})), {x}, {3, 2, 1}, {2, 4, 6, 8, 10, 12});
  Expect<float>(std::move(OnnxNode("ReduceProd").Ints("axes", {0}).Int("keepdims", 0)), {x}, {2, 2},
                {45, 120, 231, 384});
  Expect<int64_t>(std::move(OnnxNode("ReduceProd").Int("keepdims", 0)), {N({kMax, 2})}, {}, {-2});
}

TEST_F(CpuEp, ReductionsOfNothing) {
  const Host none(Sizes{2, 0}, F32{}), no_numbers(Sizes{0}, I64{}), no_ints(Sizes{0}, I32{});
  Expect<float>(OnnxNode("ReduceSum"), {none, N({1})}, {2, 1}, {0, 0});
  Expect<float>(OnnxNode("ReduceProd"), {none, N({1})}, {2, 1}, {1, 1});
  Expect<float>(OnnxNode("ReduceMax"), {none, N({1})}, {2, 1}, {-kInf, -kInf});
  Expect<int64_t>(OnnxNode("ReduceMax"), {no_numbers}, {1}, {kMin});
  Expect<int64_t>(OnnxNode("ReduceProd"), {no_numbers}, {1}, {1});
  Expect<int32_t>(OnnxNode("ReduceMax"), {no_ints}, {1}, {INT32_MIN});
  Expect<float>(std::move(OnnxNode("ReduceMax").Int("keepdims", 0)), {none, N({0})}, {0}, {});
}

TEST_F(CpuEp, MatMul) {
  const Host a(Sizes{2, 3}, F32{1, 2, 3, 4, 5, 6}), b(Sizes{3, 2}, F32{1, 0, 0, 1, 2, 2});
  Expect<float>(OnnxNode("MatMul"), {a, b}, {2, 2}, {7, 8, 16, 17});
  Expect<float>(OnnxNode("MatMul"), {Vector<float>({1, 2, 3}), b}, {2}, {7, 8});
  Expect<float>(OnnxNode("MatMul"), {a, Vector<float>({1, 1, 1})}, {2}, {6, 15});
  Expect<float>(OnnxNode("MatMul"), {Vector<float>({1, 2}), Vector<float>({3, 4})}, {}, {11});
  Expect<float>(OnnxNode("MatMul"), {Host(Sizes{2, 0}, F32{}), Host(Sizes{0, 2}, F32{})}, {2, 2}, {0, 0, 0, 0});
  Expect<float>(OnnxNode("MatMul"), {Host(Sizes{2, 1, 1}, F32{2, 3}), Host(Sizes{1, 2}, F32{1, 10})}, {2, 1, 2},
                {2, 20, 3, 30});
}

}  // namespace
