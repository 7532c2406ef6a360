// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// MatMul and Gemm.

#include <algorithm>

#include "test/nodes/cases.h"

namespace gcap {
namespace testing {
namespace {

constexpr double kError = 2e-6;  // of sums of up to 8 terms up to 2, in f32

// As NumPy's matmul: a vector is a row on the left and a column on the right, and its axis is not in the output.
NodeCase MatMul(const std::string& name, const Shape& a, const Shape& b, const Shape& shape) {
  NodeCase c;
  c.name = "MatMul" + name;
  c.op_type = "MatMul";
  c.inputs = {{kTyped, a}, {kTyped, b}};
  c.outputs = {{kTyped, shape}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    Elements left = in[0], right = in[1];
    Shape matrices = shape;
    if (b.size() == 1) {
      right.shape = {b[0], 1};
      matrices.push_back(1);
    }
    if (a.size() == 1) {
      left.shape = {1, a[0]};
      matrices.insert(matrices.end() - 1, 1);
    }
    const int64_t depth = a.back();
    return {Make(matrices, [&](const Shape& index) {
      Shape at_left = index, at_right = index;
      double sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        at_left.back() = at_right[at_right.size() - 2] = k;
        sum += BroadcastAt(left, at_left) * BroadcastAt(right, at_right);
      }
      return sum;
    })};
  };
  c.error = kError;
  return c;
}

// The last two axes, swapped; a vector stays.
Elements Transposed(const Elements& matrices) {
  if (matrices.shape.size() < 2) return matrices;
  Elements swapped = matrices;
  std::swap(swapped.shape.back(), swapped.shape[swapped.shape.size() - 2]);
  swapped.at = Make(swapped.shape, [&](Shape index) {
    std::swap(index.back(), index[index.size() - 2]);
    return At(matrices, index);
  });
  return swapped;
}

NodeCase FusedMatMul(const std::string& name, bool trans_a, bool trans_b, const Shape& a, const Shape& b,
                     const Shape& shape) {
  const Shape of_a = trans_a ? Transposed({a, Values(static_cast<size_t>(Count(a)))}).shape : a;
  const Shape of_b = trans_b ? Transposed({b, Values(static_cast<size_t>(Count(b)))}).shape : b;
  NodeCase c = MatMul(name, of_a, of_b, shape);
  const auto product = c.reference;
  c.name = "Fused" + c.name;
  c.op_type = "com.microsoft.FusedMatMul";
  c.attributes = [=](Attributes* at) { at->Int("transA", trans_a).Int("transB", trans_b).Float("alpha", 0.5f); };
  c.inputs = {{kTyped, a}, {kTyped, b}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    std::vector<Values> made = product({trans_a ? Transposed(in[0]) : in[0], trans_b ? Transposed(in[1]) : in[1]});
    for (double& value : made[0]) value *= 0.5;
    return made;
  };
  return c;
}

struct GemmSetup {
  bool trans_a = false, trans_b = false, relu = false, has_c = true;
  float alpha = 1, beta = 1;
  Shape c = {5};
};

// [3,4] x [4,5].
NodeCase Gemm(const std::string& name, const GemmSetup& s) {
  NodeCase c;
  c.name = "Gemm" + name;
  c.op_type = "Gemm";
  c.attributes = [=](Attributes* a) {
    a->Int("transA", s.trans_a).Int("transB", s.trans_b).Float("alpha", s.alpha).Float("beta", s.beta);
    if (s.relu) a->String("activation", "Relu");
  };
  c.inputs = {{kTyped, s.trans_a ? Shape{4, 3} : Shape{3, 4}}, {kTyped, s.trans_b ? Shape{5, 4} : Shape{4, 5}}};
  if (s.has_c) c.inputs.push_back({kTyped, s.c});
  c.outputs = {{kTyped, {3, 5}}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make({3, 5}, [&](const Shape& i) {
      double sum = 0;
      for (int64_t k = 0; k < 4; ++k) {
        sum += At(in[0], s.trans_a ? Shape{k, i[0]} : Shape{i[0], k}) *
               At(in[1], s.trans_b ? Shape{i[1], k} : Shape{k, i[1]});
      }
      const double y =
          static_cast<double>(s.alpha) * sum + (s.has_c ? static_cast<double>(s.beta) * BroadcastAt(in[2], i) : 0.0);
      return s.relu ? std::max(y, 0.0) : y;
    })};
  };
  c.error = kError;
  c.roundings = 1;  // before the addend, of up to 8
  c.magnitude = 8;
  return c;
}

GemmSetup WithC(const Shape& c, float beta) {
  GemmSetup setup;
  setup.c = c;
  setup.beta = beta;
  return setup;
}

}  // namespace

std::vector<NodeCase> ProductCases() {
  GemmSetup transposed, no_c, relu;
  transposed.trans_a = transposed.trans_b = true;
  transposed.alpha = 0.5f;
  no_c.has_c = false;
  no_c.alpha = 2;
  relu.trans_b = relu.relu = true;
  GemmSetup addend_and_relu = WithC({3, 5}, 0.5f);
  addend_and_relu.relu = true;
  return {
      MatMul("", {3, 4}, {4, 5}, {3, 5}),
      MatMul("OfABatch", {2, 3, 4}, {2, 4, 5}, {2, 3, 5}),
      MatMul("WithOneRight", {2, 2, 3, 4}, {4, 5}, {2, 2, 3, 5}),
      MatMul("WithOneLeft", {3, 4}, {2, 4, 5}, {2, 3, 5}),
      MatMul("WithOneRightForEachOfABatch", {2, 3, 2, 4}, {2, 1, 4, 5}, {2, 3, 2, 5}),
      MatMul("OfEachWithEach", {2, 1, 2, 4}, {3, 4, 5}, {2, 3, 2, 5}),
      MatMul("OfEachWithEachTheOtherWay", {3, 2, 4}, {2, 1, 4, 5}, {2, 3, 2, 5}),
      MatMul("OfVectors", {4}, {4}, {}),
      MatMul("OfAVectorAndAMatrix", {4}, {2, 4, 5}, {2, 5}),
      MatMul("OfAMatrixAndAVector", {2, 3, 4}, {4}, {2, 3}),
      MatMul("OfNothing", {3, 0}, {0, 5}, {3, 5}),
      FusedMatMul("", false, false, {2, 3, 4}, {4, 5}, {2, 3, 5}),
      FusedMatMul("Transposed", true, true, {2, 4, 3}, {2, 5, 4}, {2, 3, 5}),
      FusedMatMul("WithOneRight", true, false, {2, 4, 3}, {4, 5}, {2, 3, 5}),
      FusedMatMul("WithOneLeft", false, true, {3, 4}, {2, 5, 4}, {2, 3, 5}),
      FusedMatMul("OfEachWithEach", true, true, {2, 1, 4, 2}, {3, 5, 4}, {2, 3, 2, 5}),
      FusedMatMul("OfAVector", true, true, {4}, {5, 4}, {5}),
      Gemm("", GemmSetup()),
      Gemm("Transposed", transposed),
      Gemm("WithoutC", no_c),
      Gemm("WithRelu", relu),
      Gemm("WithAMatrix", WithC({3, 5}, 0.5f)),
      Gemm("WithAMatrixAndRelu", addend_and_relu),
      Gemm("WithARow", WithC({1, 5}, 0.5f)),
      Gemm("WithAColumn", WithC({3, 1}, 1)),
      Gemm("WithANumber", WithC({}, 2)),
      Gemm("WithAnAddendTimes0", WithC({3, 5}, 0)),
  };
}

}  // namespace testing
}  // namespace gcap
