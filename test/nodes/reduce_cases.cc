// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reductions, softmax, layer normalization, local response normalization.

#include <algorithm>
#include <cmath>

#include "test/nodes/cases.h"

namespace gcap {
namespace testing {
namespace {

const Shape kShape = {2, 3, 4};
constexpr double kError = 4e-6;  // of sums of up to 24 terms below 2, in f32

// Where the axes of a reduction come from.
enum class Axes { kInput, kAttribute, kNone };

NodeCase Reduce(const std::string& op, const std::string& name, Axes from, const Shape& axes, bool keep, double first,
                const std::function<double(double, double)>& f, const std::function<double(double)>& end = nullptr) {
  std::vector<bool> reduced(kShape.size(), from == Axes::kNone);
  for (int64_t axis : axes) reduced[static_cast<size_t>(axis < 0 ? axis + 3 : axis)] = true;
  Shape kept = kShape, shape;
  for (size_t i = 0; i < kept.size(); ++i) {
    kept[i] = reduced[i] ? 1 : kept[i];
    if (!reduced[i] || keep) shape.push_back(kept[i]);
  }
  NodeCase c;
  c.name = op + name;
  c.op_type = op;
  c.attributes = [=](Attributes* a) {
    if (from == Axes::kAttribute) a->Ints("axes", axes);
    a->Int("keepdims", keep);
  };
  c.inputs = {{kTyped, kShape, 0.5, 1.5}};
  if (from == Axes::kInput) {
    c.inputs.push_back({GCAP_DTYPE_I64, {static_cast<int64_t>(axes.size())}, 0, 0, Values(axes.begin(), axes.end())});
  }
  c.outputs = {{kTyped, shape}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    Values made(static_cast<size_t>(Count(kept)), first);
    for (int64_t i = 0; i < Count(kShape); ++i) {
      Shape index = Unravel(i, kShape);
      for (size_t j = 0; j < index.size(); ++j) index[j] = reduced[j] ? 0 : index[j];
      double& out = made[static_cast<size_t>(Ravel(index, kept))];
      out = f(out, in[0].at[static_cast<size_t>(i)]);
    }
    for (double& value : made) value = end ? end(value) : value;
    return {made};
  };
  c.error = kError * 8;  // a product of 24 numbers below 1.5 may be large
  return c;
}

// All along the axis of `index`.
Values Along(const Elements& x, Shape index, size_t axis) {
  Values values;
  for (index[axis] = 0; index[axis] < x.shape[axis]; ++index[axis]) values.push_back(At(x, index));
  return values;
}

NodeCase Softmax(const std::string& op, const std::string& name, int axis) {
  NodeCase c;
  c.name = op + name;
  c.op_type = op;
  if (axis != -1) c.attributes = [=](Attributes* a) { a->Int("axis", axis); };
  c.inputs = {{kTyped, kShape, -3, 3}};
  c.outputs = {{kTyped, kShape}};
  const size_t at = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
  const bool is_log = op == "LogSoftmax";
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(kShape, [&](const Shape& index) {
      double sum = 0;
      for (double x : Along(in[0], index, at)) sum += std::exp(x);
      return is_log ? At(in[0], index) - std::log(sum) : std::exp(At(in[0], index)) / sum;
    })};
  };
  c.error = kError;
  return c;
}

// Before opset 13: of all elements from `axis` on, of [2,3,4].
NodeCase SoftmaxInRows(const std::string& op, int axis, bool says_axis, size_t count) {
  NodeCase c = Softmax(op, "", axis);
  c.name = op.substr(0, op.find('-')) + "InRowsOf" + std::to_string(count) + (says_axis ? "" : "ByDefault");
  if (!says_axis) c.attributes = nullptr;
  const bool is_log = op == "LogSoftmax-1";
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    Values made;
    for (size_t i = 0; i < in[0].at.size(); ++i) {
      double sum = 0;
      for (size_t j = i / count * count; j < (i / count + 1) * count; ++j) sum += std::exp(in[0].at[j]);
      made.push_back(is_log ? in[0].at[i] - std::log(sum) : std::exp(in[0].at[i]) / sum);
    }
    return {made};
  };
  return c;
}

// From `axis` to the last one of [2,3,4].
NodeCase LayerNorm(const std::string& name, int axis, const Shape& behind, bool has_bias, float epsilon,
                   bool has_statistics = false) {
  NodeCase c;
  c.name = "LayerNormalization" + name;
  c.op_type = "LayerNormalization";
  c.attributes = [=](Attributes* a) { a->Int("axis", axis).Float("epsilon", epsilon); };
  c.inputs = {{kTyped, kShape}, {kTyped, behind}};
  if (has_bias) c.inputs.push_back({kTyped, behind});
  c.outputs = {{kTyped, kShape}};
  Shape rows = kShape;
  for (size_t i = rows.size() - behind.size(); i < rows.size(); ++i) rows[i] = 1;
  if (has_statistics) c.outputs.insert(c.outputs.end(), 2, {GCAP_DTYPE_F32, rows});
  const size_t count = static_cast<size_t>(Count(behind));
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    Values made, means, inverses;
    for (size_t i = 0; i < in[0].at.size(); ++i) {
      const size_t row = i / count * count;
      double mean = 0, variance = 0;
      for (size_t j = 0; j < count; ++j) mean += in[0].at[row + j] / static_cast<double>(count);
      for (size_t j = 0; j < count; ++j) variance += std::pow(in[0].at[row + j] - mean, 2) / static_cast<double>(count);
      const double inverse = 1 / std::sqrt(variance + static_cast<double>(epsilon));
      if (i == row) means.push_back(mean);
      if (i == row) inverses.push_back(inverse);
      const double norm = (in[0].at[i] - mean) * inverse;
      made.push_back(norm * in[1].at[i - row] + (has_bias ? in[2].at[i - row] : 0));
    }
    if (!has_statistics) return {made};
    return {made, means, inverses};
  };
  c.error = 16 * kError;  // the deviation divides the error of the mean
  return c;
}

// Over the channels, axis 1, of [2,3,4]: from `before` before an element's own to `after` behind it. Without
// attributes, ONNX's defaults are meant.
NodeCase LocalResponseNorm(const std::string& name, int64_t size, int64_t before, int64_t after, bool defaults) {
  const double alpha = defaults ? 1e-4 : 2.0, beta = defaults ? 0.75 : 0.5, bias = defaults ? 1.0 : 0.25;
  NodeCase c;
  c.name = "LRN" + name;
  c.op_type = "LRN";
  c.attributes = [=](Attributes* a) {
    a->Int("size", size);
    if (!defaults) a->Float("alpha", 2.0f).Float("beta", 0.5f).Float("bias", 0.25f);
  };
  c.inputs = {{kTyped, kShape, -3, 3}};
  c.outputs = {{kTyped, kShape}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(kShape, [&](const Shape& index) {
      double squares = 0;
      for (int64_t k = index[1] - before; k <= index[1] + after; ++k) {
        if (k >= 0 && k < kShape[1]) squares += std::pow(At(in[0], {index[0], k, index[2]}), 2);
      }
      return At(in[0], index) / std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
    })};
  };
  c.error = kError;
  return c;
}

}  // namespace

std::vector<NodeCase> ReduceCases() {
  const auto add = [](double a, double b) { return a + b; };
  const auto multiply = [](double a, double b) { return a * b; };
  const auto most = [](double a, double b) { return std::max(a, b); };
  const auto least = [](double a, double b) { return std::min(a, b); };
  const auto magnitudes = [](double a, double b) { return a + std::fabs(b); };
  const auto squares = [](double a, double b) { return a + b * b; };
  const auto root = [](double a) { return std::sqrt(a); };
  const auto logarithm = [](double a) { return std::log(a); };
  const auto eighth = [](double a) { return a / 8; };
  return {
      Reduce("ReduceSum", "ByInput", Axes::kInput, {1}, false, 0, add),
      Reduce("ReduceSum", "OfAll", Axes::kNone, {}, true, 0, add),
      Reduce("ReduceMean", "ByAttribute", Axes::kAttribute, {0, -1}, true, 0, add, eighth),
      Reduce("ReduceMax", "ByInput", Axes::kInput, {-1}, true, -1e9, most),
      Reduce("ReduceMin", "ByAttribute", Axes::kAttribute, {0}, false, 1e9, least),
      Reduce("ReduceProd", "ByInput", Axes::kInput, {2, 0}, false, 1, multiply),
      Reduce("ReduceL1", "ByInput", Axes::kInput, {1}, false, 0, magnitudes),
      Reduce("ReduceL2", "ByAttribute", Axes::kAttribute, {-1}, true, 0, squares, root),
      Reduce("ReduceSumSquare", "OfAll", Axes::kNone, {}, true, 0, squares),
      Reduce("ReduceLogSum", "ByInput", Axes::kInput, {0, 1}, false, 0, add, logarithm),
      Softmax("Softmax", "OfTheLastAxis", -1),
      Softmax("Softmax", "OfAxis1", 1),
      Softmax("LogSoftmax", "OfTheLastAxis", -1),
      Softmax("LogSoftmax", "OfAxis0", 0),
      SoftmaxInRows("Softmax-1", 1, false, 12),
      SoftmaxInRows("Softmax-1", -2, true, 12),
      SoftmaxInRows("Softmax-1", 2, true, 4),
      SoftmaxInRows("LogSoftmax-1", 0, true, 24),
      SoftmaxInRows("LogSoftmax-1", 1, false, 12),
      LayerNorm("OfTheLastAxis", -1, {4}, true, 1e-3f),
      LayerNorm("OfTwoAxes", 1, {3, 4}, false, 1e-5f),
      LayerNorm("WithMeanAndInvStdDev", -2, {3, 4}, true, 1e-2f, /*has_statistics=*/true),
      LocalResponseNorm("", 3, 1, 1, /*defaults=*/true),
      LocalResponseNorm("OfAnEvenSize", 2, 0, 1, /*defaults=*/false),
      LocalResponseNorm("OfMoreThanAllChannels", 9, 4, 4, /*defaults=*/false),
  };
}

}  // namespace testing
}  // namespace gcap
