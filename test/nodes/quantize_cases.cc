// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear and DequantizeLinear: one scale, one for each index on an axis, one for each block. A scale that is
// made of what is quantized, and products of integers.

#include <algorithm>
#include <cmath>

#include "test/nodes/cases.h"

namespace gcap {
namespace testing {
namespace {

constexpr gcap_dtype_t kI8 = GCAP_DTYPE_I8, kU8 = GCAP_DTYPE_U8, kI32 = GCAP_DTYPE_I32;

// Scales are powers of two, so that quotients are exact, and so are ties.
struct Scales {
  std::string name;
  Shape shape;
  Values values;
  int64_t axis = 1, block = 0;
  bool has_zero_point = true;
};

// Where the scale of an element is.
Shape ScaleIndex(const Scales& s, const Shape& index) {
  if (s.shape.empty()) return {};
  if (s.values.size() == 1 && s.block == 0) return {0};
  const size_t axis = s.axis < 0 ? index.size() + static_cast<size_t>(s.axis) : static_cast<size_t>(s.axis);
  if (s.block == 0) return {index[axis]};
  Shape at = index;
  at[axis] /= s.block;
  return at;
}

NodeCase Base(const std::string& op, const Scales& s, gcap_dtype_t integers, gcap_dtype_t scale_type) {
  NodeCase c;
  c.op_type = op;
  c.name = op + s.name + gcap_dtype_name(integers);
  c.attributes = [=](Attributes* a) {
    a->Int("axis", s.axis);
    if (s.block != 0) a->Int("block_size", s.block);
  };
  c.inputs = {{kTyped, {}}, {scale_type, s.shape, 0, 0, s.values}};
  if (s.has_zero_point) {
    Values zero_points;
    for (size_t i = 0; i < s.values.size(); ++i) {
      zero_points.push_back(static_cast<double>(i % 5) + (integers == kU8 ? 100 : -2));
    }
    c.inputs.push_back({integers, s.shape, 0, 0, zero_points});
  }
  return c;
}

double ZeroPoint(const Scales& s, const Ins& in, const Shape& index) {
  return s.has_zero_point ? At(in[2], ScaleIndex(s, index)) : 0;
}

NodeCase Quantize(const Scales& s, gcap_dtype_t to, const Shape& shape) {
  NodeCase c = Base("QuantizeLinear", s, to, kTyped);
  c.inputs[0] = {kTyped, shape, -20, 20};
  c.outputs = {{to, shape}};
  const double low = to == kI8 ? -128 : 0, high = low + 255;
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape, [&](const Shape& i) {
      const double steps = std::nearbyint(At(in[0], i) / At(in[1], ScaleIndex(s, i)));
      return std::min(std::max(steps + ZeroPoint(s, in, i), low), high);
    })};
  };
  return c;
}

NodeCase Dequantize(const Scales& s, gcap_dtype_t from, const Shape& shape) {
  NodeCase c = Base("DequantizeLinear", s, from, kTyped);
  c.inputs[0] = {from, shape, -100, 200};
  c.outputs = {{kTyped, shape}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape,
                 [&](const Shape& i) { return (At(in[0], i) - ZeroPoint(s, in, i)) * At(in[1], ScaleIndex(s, i)); })};
  };
  return c;
}

// A scale that is not exact, so that the type of the quotient decides which integer is nearest. ONNX: the scale's, or
// the one that `precision` names; its reference rounds x and the scale to that type, and then the quotient.
NodeCase QuantizeIn(gcap_dtype_t x, gcap_dtype_t scale, gcap_dtype_t precision, int64_t onnx_precision) {
  const Shape shape = {4000};
  NodeCase c;
  c.op_type = "QuantizeLinear";
  c.name = c.op_type + "Of" + gcap_dtype_name(x) + "By" + gcap_dtype_name(scale) + "In" + gcap_dtype_name(precision);
  c.attributes = [=](Attributes* a) {
    if (onnx_precision != 0) a->Int("precision", onnx_precision);
  };
  c.inputs = {{x, shape, -40, 40}, {scale, {}, 0, 0, {0.37}}, {kI8, {}, 0, 0, {3}}};
  c.outputs = {{kI8, shape}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape, [&](const Shape& i) {
      const double quotient = Round(precision, At(in[0], i)) / Round(precision, in[1].at[0]);
      return std::min(std::max(std::nearbyint(Round(precision, quotient)) + 3, -128.0), 127.0);
    })};
  };
  return c;
}

// As the kernel has no other: the quotients by a scale that is not exact, in f32 as ONNX computes them.
NodeCase DynamicQuantize(const std::string& name, const Shape& shape, double low, double high) {
  NodeCase c;
  c.op_type = "DynamicQuantizeLinear";
  c.name = c.op_type + name;
  c.inputs = {{GCAP_DTYPE_F32, shape, low, high}};
  c.outputs = {{kU8, shape}, {GCAP_DTYPE_F32, {}}, {kU8, {}}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    float most = 0, least = 0;
    for (double x : in[0].at)
      most = std::max(most, static_cast<float>(x)), least = std::min(least, static_cast<float>(x));
    const float scale = most == least ? 1.0f : (most - least) / 255.0f;
    const double zero_point = std::min(std::max(std::nearbyint(-least / scale), 0.0f), 255.0f);
    const Values y = Make(shape, [&](const Shape& i) {
      const double steps = std::nearbyint(static_cast<float>(At(in[0], i)) / scale);
      return std::min(std::max(steps + zero_point, 0.0), 255.0);
    });
    return {y, {scale}, {zero_point}};
  };
  return c;
}

struct Integers {
  std::string name;
  Shape a, b, y;
  int64_t of_a = 0, of_b = 0;  // how many zero points; 0: the input is not there
  gcap_dtype_t a_type = GCAP_DTYPE_U8, b_type = GCAP_DTYPE_I8;
};

NodeCase MatMulInteger(const Integers& m) {
  NodeCase c;
  c.op_type = "MatMulInteger";
  c.name = c.op_type + m.name;
  c.inputs = {{m.a_type, m.a, -128, 255}, {m.b_type, m.b, -128, 255}};
  const auto shape_of = [](int64_t count) { return count == 1 ? Shape{} : Shape{count}; };
  if (m.of_a > 0) c.inputs.push_back({m.a_type, shape_of(m.of_a), 0, 100});
  if (m.of_b > 0) c.inputs.push_back({m.b_type, shape_of(m.of_b), 0, 100});
  c.outputs = {{kI32, m.y}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    const auto zero = [&](size_t input, int64_t count, int64_t at) {
      return count == 0 ? 0.0 : in[input].at[static_cast<size_t>(count == 1 ? 0 : at)];
    };
    return {Make(m.y, [&](const Shape& i) {
      Shape at_a = i, at_b = i;
      const int64_t row = m.a.size() > 1 ? i[i.size() - (m.b.size() > 1 ? 2 : 1)] : 0;
      const int64_t column = m.b.size() > 1 ? i.back() : 0;
      if (m.b.size() == 1) at_a.push_back(0), at_b = {0};
      if (m.a.size() == 1) at_a = {0}, at_b.insert(at_b.end() - 1, 0);
      double sum = 0;
      for (int64_t k = 0; k < m.a.back(); ++k) {
        at_a.back() = k;
        at_b[m.b.size() > 1 ? at_b.size() - 2 : 0] = k;
        sum += (BroadcastAt(in[0], at_a) - zero(2, m.of_a, row)) * (BroadcastAt(in[1], at_b) - zero(3, m.of_b, column));
      }
      return sum;
    })};
  };
  return c;
}

// Scales are powers of two, so that all but the last rounding is exact; b has one for each column.
NodeCase QLinearMatMul(const std::string& name, gcap_dtype_t type, const Shape& a, const Shape& b, const Shape& y,
                       const Values& b_scales) {
  const bool is_signed = type == kI8;
  NodeCase c;
  c.op_type = "QLinearMatMul";
  c.name = c.op_type + name + gcap_dtype_name(type);
  const bool are_vectors = a.size() == 1;  // whose numbers are lists of one
  const Shape of_a = are_vectors ? Shape{1} : Shape{};
  const Shape of_b = b_scales.size() == 1 ? of_a : Shape{static_cast<int64_t>(b_scales.size())};
  c.inputs = {{type, a, -128, 255},
              {GCAP_DTYPE_F32, of_a, 0, 0, {0.25}},
              {type, of_a, 0, 0, {is_signed ? -3.0 : 120.0}},
              {type, b, -128, 255},
              {GCAP_DTYPE_F32, of_b, 0, 0, b_scales},
              {type, of_b, 0, 0, Values(b_scales.size(), is_signed ? 5.0 : 131.0)},
              {GCAP_DTYPE_F32, {}, 0, 0, {64}},
              {type, {}, 0, 0, {is_signed ? 2.0 : 100.0}}};
  c.outputs = {{type, y}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(y, [&](const Shape& i) {
      Shape at_a = are_vectors ? Shape{0} : i, at_b = at_a;
      double sum = 0;
      for (int64_t k = 0; k < a.back(); ++k) {
        at_a.back() = k;
        at_b[are_vectors ? 0 : at_b.size() - 2] = k;
        sum += (BroadcastAt(in[0], at_a) - in[2].at[0]) * (BroadcastAt(in[3], at_b) - in[5].at[0]);
      }
      const double scale = b_scales[b_scales.size() == 1 ? 0 : static_cast<size_t>(i.back())];
      const double steps = std::nearbyint(sum * 0.25 * scale / 64) + in[7].at[0];
      return std::min(std::max(steps, is_signed ? -128.0 : 0.0), is_signed ? 127.0 : 255.0);
    })};
  };
  return c;
}

// As ONNX Runtime's quantizer writes them: the kernels refused such nodes.
NodeCase DequantizeByAScalarZeroPoint(const Scales& one_of_a_list, const Shape& shape) {
  NodeCase c = Dequantize(one_of_a_list, kI8, shape);
  c.name += "AndAScalarZeroPoint";
  c.inputs[2].shape = {};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape, [&](const Shape& i) { return (At(in[0], i) - in[2].at[0]) * in[1].at[0]; })};
  };
  return c;
}

}  // namespace

std::vector<NodeCase> QuantizeCases() {
  const Shape shape = {3, 5, 4};
  const Scales one = {"ByOneScale", {}, {0.125}};
  const Scales one_of_a_list = {"ByAListOfOne", {1}, {0.25}};
  const Scales no_zero_point = {"WithoutZeroPoint", {}, {0.5}, 1, 0, false};
  const Scales axis = {"OnAnAxis", {5}, {0.125, 0.25, 0.5, 1, 2}};
  const Scales last = {"OnTheLastAxis", {4}, {0.125, 0.25, 0.5, 1}, -1};
  const Scales first = {"OnTheFirstAxis", {3}, {0.125, 0.5, 1}, 0};
  Scales blocks = {"InBlocks", {3, 3, 4}, {}, 1, 2};
  for (int i = 0; i < 36; ++i) blocks.values.push_back(std::ldexp(1.0, i % 4 - 3));
  std::vector<NodeCase> all;
  for (const Scales& s : {one, one_of_a_list, no_zero_point, axis, last, first, blocks}) {
    for (gcap_dtype_t type : {kI8, kU8}) {
      all.push_back(Quantize(s, type, shape));
      all.push_back(Dequantize(s, type, shape));
    }
  }
  all.push_back(DequantizeByAScalarZeroPoint(one_of_a_list, shape));
  all.push_back(Dequantize(no_zero_point, kI32, shape));
  all.push_back(Dequantize(axis, kI32, shape));
  all.push_back(Quantize({"OfNothing", {}, {0.5}}, kU8, {0, 3}));
  all.push_back(Quantize({"OfAVectorByOneScale", {}, {0.5}}, kU8, {7}));  // which has no axis 1
  constexpr gcap_dtype_t f32 = GCAP_DTYPE_F32, f16 = GCAP_DTYPE_F16, bf16 = GCAP_DTYPE_BF16;
  all.push_back(QuantizeIn(f32, f32, f32, 0));
  all.push_back(QuantizeIn(f16, f16, f16, 0));
  all.push_back(QuantizeIn(bf16, bf16, bf16, 0));
  all.push_back(QuantizeIn(f32, f16, f16, 0));
  all.push_back(QuantizeIn(f16, f32, f32, 0));
  all.push_back(QuantizeIn(f16, f16, f32, 1));
  all.push_back(QuantizeIn(f32, f32, bf16, 16));
  all.push_back(DynamicQuantize("", {3, 5, 7}, -2, 5));
  all.push_back(DynamicQuantize("OfPositives", {40}, 1, 3));
  all.push_back(DynamicQuantize("OfNegatives", {40}, -3, -1));
  all.push_back(DynamicQuantize("OfZeros", {4}, 0, 0));
  for (const gcap_dtype_t type : {kI8, kU8}) {
    all.push_back(QLinearMatMul("", type, {3, 6}, {6, 5}, {3, 5}, {0.5}));
    all.push_back(QLinearMatMul("OfVectors", type, {6}, {6}, {}, {0.5}));
    all.push_back(QLinearMatMul("OfABatchWithScalesOfColumns", type, {2, 3, 6}, {6, 4}, {2, 3, 4}, {0.5, 1, 2, 0.25}));
  }
  for (const Integers& m : std::vector<Integers>{
           {"", {3, 4}, {4, 5}, {3, 5}},
           {"WithZeroPoints", {3, 4}, {4, 5}, {3, 5}, 1, 1},
           {"WithZeroPointsOfRowsAndColumns", {2, 3, 4}, {2, 4, 5}, {2, 3, 5}, 3, 5, kI8, kU8},
           {"OfABatch", {2, 1, 3, 4}, {3, 4, 5}, {2, 3, 3, 5}, 1, 0, kU8, kU8},
           {"OfAVectorAndAMatrix", {4}, {2, 4, 5}, {2, 5}, 1, 5, kI8, kI8},
           {"OfAMatrixAndAVector", {2, 3, 4}, {4}, {2, 3}, 3, 1},
           {"OfNothing", {3, 0}, {0, 5}, {3, 5}},
       }) {
    all.push_back(MatMulInteger(m));
  }
  return all;
}

}  // namespace testing
}  // namespace gcap
