// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Normalizations of instances, groups, roots of mean squares, norms and variances: the elements that ONNX's
// documentation normalizes together are searched in the whole tensor.

#include <algorithm>
#include <cmath>
#include <deque>

#include "test/nodes/cases.h"

namespace gcap {
namespace testing {
namespace {

constexpr double kError = 6e-5;  // a deviation divides the error of a mean

using Together = std::function<bool(const Shape&, const Shape&)>;

// What elements that are normalized together have.
struct Row {
  Shape first;
  double count = 0, sum = 0, magnitudes = 0, squares = 0;

  double Mean() const { return sum / count; }
  double Variance() const { return squares / count - Mean() * Mean(); }
};

// The row of an element; a new one if there is none.
Row* Find(std::deque<Row>* rows, const Shape& index, const Together& together) {
  for (Row& row : *rows) {
    if (together(row.first, index)) return &row;
  }
  rows->emplace_back();
  rows->back().first = index;
  return &rows->back();
}

std::deque<Row> RowsOf(const Elements& x, const Together& together) {
  std::deque<Row> rows;
  for (int64_t i = 0; i < Count(x.shape); ++i) {
    Row* row = Find(&rows, Unravel(i, x.shape), together);
    const double value = x.at[static_cast<size_t>(i)];
    row->count += 1;
    row->sum += value;
    row->magnitudes += std::fabs(value);
    row->squares += value * value;
  }
  return rows;
}

using Element = std::function<double(double, const Row&, const Ins&, const Shape&)>;

NodeCase Normalize(const std::string& op, const std::string& name, const Shape& x, const Together& together,
                   const Element& element, const std::function<void(Attributes*)>& attributes) {
  NodeCase c;
  c.name = op + name;
  c.op_type = op;
  c.attributes = attributes;
  c.inputs = {{kTyped, x, -3, 3}};
  c.outputs = {{kTyped, x}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    std::deque<Row> rows = RowsOf(in[0], together);
    return {Make(x, [&](const Shape& i) { return element(At(in[0], i), *Find(&rows, i, together), in, i); })};
  };
  c.error = kError;
  return c;
}

// Channels in groups of `in_group`, each with its own scale and bias.
NodeCase OfChannels(const std::string& op, const std::string& name, const Shape& x, int64_t in_group) {
  const auto together = [=](const Shape& a, const Shape& b) {
    return a[0] == b[0] && a[1] / in_group == b[1] / in_group;
  };
  const auto element = [](double value, const Row& row, const Ins& in, const Shape& i) {
    const size_t channel = static_cast<size_t>(i[1]);
    return (value - row.Mean()) / std::sqrt(row.Variance() + 0.125) * in[1].at[channel] + in[2].at[channel];
  };
  NodeCase c = Normalize(op, name, x, together, element, [=](Attributes* a) {
    a->Float("epsilon", 0.125f);
    if (op == "GroupNormalization") a->Int("num_groups", x[1] / in_group);
  });
  c.inputs.insert(c.inputs.end(), 2, {kTyped, {x[1]}});
  return c;
}

NodeCase OfRootsOfMeanSquares(const std::string& op, const std::string& name, int axis, const Shape& x, size_t first) {
  const auto together = [=](const Shape& a, const Shape& b) {
    return std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(first), b.begin());
  };
  const auto element = [](double value, const Row& row, const Ins& in, const Shape& i) {
    return value / std::sqrt(row.squares / row.count + 0.125) * BroadcastAt(in[1], i);
  };
  NodeCase c =
      Normalize(op, name, x, together, element, [=](Attributes* a) { a->Int("axis", axis).Float("epsilon", 0.125f); });
  c.inputs.push_back({kTyped, Shape(x.begin() + static_cast<std::ptrdiff_t>(first), x.end())});
  return c;
}

NodeCase OfANorm(const std::string& name, int axis, size_t along, int64_t p, const Shape& x) {
  const auto together = [=](const Shape& a, const Shape& b) {
    Shape moved = a;
    moved[along] = b[along];
    return moved == b;
  };
  const auto element = [=](double value, const Row& row, const Ins&, const Shape&) {
    const double norm = p == 1 ? row.magnitudes : std::sqrt(row.squares);
    return norm == 0 ? 0 : value / norm;
  };
  return Normalize("LpNormalization", name, x, together, element,
                   [=](Attributes* a) { a->Int("axis", axis).Int("p", p); });
}

NodeCase OfMeanAndVariance(const std::string& name, const Shape& x, const std::vector<bool>& kept, const Shape& axes) {
  const auto together = [=](const Shape& a, const Shape& b) {
    bool same = true;
    for (size_t i = 0; i < a.size(); ++i) same = same && (!kept[i] || a[i] == b[i]);
    return same;
  };
  const auto element = [](double value, const Row& row, const Ins&, const Shape&) {
    return (value - row.Mean()) / (std::sqrt(row.Variance()) + 1e-9);
  };
  return Normalize("MeanVarianceNormalization", name, x, together, element, [=](Attributes* a) {
    if (!axes.empty()) a->Ints("axes", axes);
  });
}

struct Skip {
  std::string name;
  Shape x, skip;
  bool simplified = false, has_beta = false, has_bias = false, has_sum = false;
};

// By the documentation of ONNX Runtime: rows of input + skip + bias, each with its own statistics.
NodeCase OfASum(const Skip& s) {
  NodeCase c;
  c.op_type = s.simplified ? "com.microsoft.SkipSimplifiedLayerNormalization" : "com.microsoft.SkipLayerNormalization";
  c.name = (s.simplified ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization") + s.name;
  c.attributes = [](Attributes* a) { a->Float("epsilon", 0.125f); };
  const Shape row = {s.x.back()};
  c.inputs = {{kTyped, s.x, -3, 3}, {kTyped, s.skip, -3, 3}, {kTyped, row}};
  if (!s.simplified && (s.has_beta || s.has_bias)) c.inputs.push_back({kTyped, s.has_beta ? row : kLeftOut});
  if (s.has_bias) c.inputs.push_back({kTyped, row});
  c.outputs = {{kTyped, s.x}};
  if (s.has_sum)
    c.outputs.insert(c.outputs.end(), {{GCAP_DTYPE_F32, kLeftOut}, {GCAP_DTYPE_F32, kLeftOut}, {kTyped, s.x}});
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    const Values sum = Make(s.x, [&](const Shape& i) {
      return At(in[0], i) + BroadcastAt(in[1], i) + (s.has_bias ? BroadcastAt(in.back(), i) : 0);
    });
    const auto together = [](const Shape& a, const Shape& b) { return std::equal(a.begin(), a.end() - 1, b.begin()); };
    const Elements sums = {s.x, sum};
    std::deque<Row> rows = RowsOf(sums, together);
    std::vector<Values> made = {Make(s.x, [&](const Shape& i) {
      const Row& r = *Find(&rows, i, together);
      const double divisor = std::sqrt((s.simplified ? r.squares / r.count : r.Variance()) + 0.125);
      const double shift = s.has_beta ? BroadcastAt(in[3], i) : 0;
      return (At(sums, i) - (s.simplified ? 0 : r.Mean())) / divisor * BroadcastAt(in[2], i) + shift;
    })};
    if (s.has_sum) made.push_back(sum);
    return made;
  };
  c.error = kError;
  c.roundings = 2;  // of the sum, which is up to 7: what it moves is divided by the deviation, which moves too
  c.magnitude = 7;
  return c;
}

// The sum is named, and left out.
NodeCase OfASumThatIsLeftOut() {
  NodeCase c = OfASum({"WithoutTheSum", {2, 3, 40}, {2, 3, 40}});
  c.outputs.insert(c.outputs.end(), {{GCAP_DTYPE_F32, kLeftOut}, {GCAP_DTYPE_F32, kLeftOut}, {kTyped, kLeftOut}});
  return c;
}

// All elements are 0, and stay so.
NodeCase OfZeros() {
  NodeCase c = OfANorm("OfZeros", -1, 1, 2, {2, 3});
  c.inputs[0].low = c.inputs[0].high = 0;
  return c;
}

}  // namespace

std::vector<NodeCase> NormalizeCases() {
  return {
      OfChannels("InstanceNormalization", "", {2, 3, 4, 5}, 1),
      OfChannels("InstanceNormalization", "OfOneAxis", {2, 3, 7}, 1),
      OfChannels("GroupNormalization", "", {2, 6, 3, 2}, 3),
      OfChannels("GroupNormalization", "OfManyElements", {1, 4, 30, 19}, 2),
      OfRootsOfMeanSquares("RMSNormalization", "", -1, {2, 3, 4}, 2),
      OfRootsOfMeanSquares("RMSNormalization", "OfTwoAxes", 1, {2, 3, 4}, 1),
      OfRootsOfMeanSquares("SimplifiedLayerNormalization", "", -1, {3, 9}, 1),
      OfASum({"", {2, 3, 40}, {2, 3, 40}}),
      OfASum({"WithAll", {2, 3, 40}, {2, 3, 40}, false, true, true, true}),
      OfASum({"WithABiasAlone", {2, 3, 5}, {3, 5}, false, false, true}),
      OfASum({"WithBetaAndSum", {3, 2, 5}, {1, 2, 5}, false, true, false, true}),
      OfASum({"OfRank2", {4, 300}, {4, 300}, false, true}),
      OfASumThatIsLeftOut(),
      OfASum({"", {2, 3, 40}, {2, 3, 40}, true}),
      OfASum({"WithAll", {2, 3, 40}, {2, 3, 40}, true, false, true, true}),
      OfASum({"OfOneBatch", {3, 2, 5}, {1, 2, 5}, true, false, false, true}),
      OfASum({"OfRank2", {4, 300}, {4, 300}, true, false, true}),
      OfANorm("", -1, 2, 2, {2, 3, 4}),
      OfANorm("OfAxis1", 1, 1, 1, {2, 3, 4}),
      OfANorm("OfAxis0", -3, 0, 2, {3, 2, 4}),
      OfZeros(),
      OfMeanAndVariance("", {2, 3, 4, 2}, {false, true, false, false}, {}),
      OfMeanAndVariance("OfTheLastAxes", {2, 3, 4}, {true, false, false}, {1, -1}),
      OfMeanAndVariance("OfTheFirstAxis", {5, 2, 3}, {false, true, true}, {0}),
  };
}

}  // namespace testing
}  // namespace gcap
