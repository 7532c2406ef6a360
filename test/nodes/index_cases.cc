// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators with indices on the device. Indices are drawn from beyond both ends of the axis, too. Where updates replace
// elements, no two indices are the same place.

#include <algorithm>

#include "test/nodes/cases.h"

namespace gcap {
namespace testing {
namespace {

// The place of an index on an axis; negative if it is out of range.
int64_t Inside(double index, int64_t size) {
  const int64_t from_end = static_cast<int64_t>(index);
  const int64_t at = from_end < 0 ? from_end + size : from_end;
  return at < size ? at : -1;
}

NodeCase Case(const std::string& name, const std::string& op, const std::function<void(Attributes*)>& attributes,
              const std::vector<Input>& inputs, const Shape& output) {
  NodeCase c;
  c.name = name;
  c.op_type = op;
  c.attributes = attributes;
  c.inputs = inputs;
  c.outputs = {{kTyped, output}};
  return c;
}

// --- Gathers --------------------------------------------------------------------------------------------------------

NodeCase GatherElements(const std::string& name, gcap_dtype_t type) {
  const Shape shape = {1, 6, 4};
  NodeCase c = Case(
      name, "GatherElements", [](Attributes* a) { a->Int("axis", -2); }, {{kTyped, {2, 3, 4}}, {type, shape, -5, 4}},
      shape);
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape, [&](Shape i) {
      i[1] = Inside(At(in[1], i), 3);
      return i[1] < 0 ? 0.0 : At(in[0], i);
    })};
  };
  return c;
}

// The first two axes are indexed.
NodeCase GatherND() {
  NodeCase c = Case("GatherND", "GatherND", nullptr, {{kTyped, {3, 2, 4}}, {GCAP_DTYPE_I64, {5, 2}, -4, 3}}, {5, 4});
  c.reference = [](const Ins& in) -> std::vector<Values> {
    return {Make({5, 4}, [&](const Shape& i) {
      const int64_t row = Inside(At(in[1], {i[0], 0}), 3), column = Inside(At(in[1], {i[0], 1}), 2);
      return row < 0 || column < 0 ? 0.0 : At(in[0], {row, column, i[1]});
    })};
  };
  return c;
}

// The axis behind that of the batch is.
NodeCase GatherNDInBatches() {
  NodeCase c = Case("GatherNDInBatches", "GatherND", [](Attributes* a) { a->Int("batch_dims", 1); },
                    {{kTyped, {2, 3, 4}}, {GCAP_DTYPE_I64, {2, 5, 1}, -4, 3}}, {2, 5, 4});
  c.reference = [](const Ins& in) -> std::vector<Values> {
    return {Make({2, 5, 4}, [&](const Shape& i) {
      const int64_t row = Inside(At(in[1], {i[0], i[1], 0}), 3);
      return row < 0 ? 0.0 : At(in[0], {i[0], row, i[2]});
    })};
  };
  return c;
}

// --- Scatters -------------------------------------------------------------------------------------------------------

double Combined(const std::string& reduction, double a, double b) {
  if (reduction == "add") return a + b;
  if (reduction == "mul") return a * b;
  if (reduction == "min") return std::min(a, b);
  if (reduction == "max") return std::max(a, b);
  return b;
}

// At most `updates` fall on one element, all of them below one: each is rounded.
void Reduce(NodeCase* c, const std::string& reduction, int updates) {
  const auto attributes = c->attributes;
  c->attributes = [=](Attributes* a) {
    if (attributes) attributes(a);
    a->String("reduction", reduction.c_str());
  };
  c->roundings = updates;
  c->magnitude = updates + 1;
}

std::vector<Values> ScatteredElements(const std::string& reduction, const Ins& in) {
  Values y = in[0].at;
  for (int64_t i = 0; i < Count(in[1].shape); ++i) {
    Shape at = Unravel(i, in[1].shape);
    at[0] = Inside(At(in[1], at), in[0].shape[0]);
    if (at[0] < 0) continue;
    double& element = y[static_cast<size_t>(Ravel(at, in[0].shape))];
    element = Combined(reduction, element, in[2].at[static_cast<size_t>(i)]);
  }
  return {y};
}

// Along axis 0 of [3,5], with indices of [4,4].
NodeCase ScatterElements(const std::string& reduction, gcap_dtype_t type) {
  NodeCase c = Case("ScatterElementsBy" + reduction, "ScatterElements", nullptr,
                    {{kTyped, {3, 5}}, {type, {4, 4}, -5, 4}, {kTyped, {4, 4}}}, {3, 5});
  Reduce(&c, reduction, 4);
  c.reference = [=](const Ins& in) { return ScatteredElements(reduction, in); };
  return c;
}

NodeCase ScatterElementsOnce(const std::string& op) {
  NodeCase c =
      Case(op, op, nullptr,
           {{kTyped, {3, 5}}, {GCAP_DTYPE_I64, {2, 4}, 0, 0, {0, -1, 1, 7, -2, 0, -3, 2}}, {kTyped, {2, 4}}}, {3, 5});
  c.reference = [](const Ins& in) { return ScatteredElements("none", in); };
  return c;
}

// An index that is out of range is the nearest that is not.
std::vector<Values> ScatteredSlices(const std::string& reduction, const Ins& in) {
  Values y = in[0].at;
  const int64_t rows = in[0].shape[0], inner = in[0].shape[1];
  for (int64_t i = 0; i < in[1].shape[0]; ++i) {
    const int64_t index = static_cast<int64_t>(At(in[1], {i, 0}));
    const int64_t clamped = std::min(std::max(index, -rows), rows - 1);
    const int64_t row = clamped < 0 ? clamped + rows : clamped;
    for (int64_t k = 0; k < inner; ++k) {
      double& element = y[static_cast<size_t>(Ravel({row, k}, in[0].shape))];
      element = Combined(reduction, element, At(in[2], {i, k}));
    }
  }
  return {y};
}

NodeCase ScatterND(const std::string& reduction) {
  NodeCase c = Case("ScatterNDBy" + reduction, "ScatterND", nullptr,
                    {{kTyped, {4, 3}}, {GCAP_DTYPE_I64, {5, 1}, -6, 5}, {kTyped, {5, 3}}}, {4, 3});
  Reduce(&c, reduction, 5);
  c.reference = [=](const Ins& in) { return ScatteredSlices(reduction, in); };
  return c;
}

NodeCase ScatterNDOnce(const std::string& name, const Values& indices) {
  const int64_t count = static_cast<int64_t>(indices.size());
  NodeCase c = Case(name, "ScatterND", nullptr,
                    {{kTyped, {4, 8}}, {GCAP_DTYPE_I64, {count, 1}, 0, 0, indices}, {kTyped, {count, 8}}}, {4, 8});
  c.reference = [](const Ins& in) { return ScatteredSlices("none", in); };
  return c;
}

// Two rows to a cache of [2,3,5,4]: from row -7 to 6 on, by drawn starts, or from the first one on.
NodeCase TensorScatter(const std::string& name, bool circular, bool has_starts) {
  const Shape shape = {2, 3, 5, 4};
  NodeCase c = Case(name, "TensorScatter", nullptr, {{kTyped, shape}, {kTyped, {2, 3, 2, 4}}}, shape);
  if (circular) c.attributes = [](Attributes* a) { a->String("mode", "circular"); };
  if (has_starts) c.inputs.push_back({GCAP_DTYPE_I64, {2}, -7, 6});
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape, [&](Shape i) {
      const int64_t start = has_starts ? static_cast<int64_t>(At(in[2], {i[0]})) : 0;
      int64_t row = i[2] - start;
      if (circular) row = (row + 20) % 5;
      if (row < 0 || row > 1) return At(in[0], i);
      i[2] = row;
      return At(in[1], i);
    })};
  };
  return c;
}

// --- Indices that are made ------------------------------------------------------------------------------------------

Values RowOf(const Elements& x, size_t axis, Shape index) {
  Values row;
  for (index[axis] = 0; index[axis] < x.shape[axis]; ++index[axis]) row.push_back(At(x, index));
  return row;
}

// Of integers, of which many are equal, along axis 1 of [3,9,2].
NodeCase Arg(const std::string& op, bool keeps, bool last) {
  const Shape kept = {3, 1, 2}, dropped = {3, 2};
  NodeCase c = Case(op + (keeps ? "" : "WithoutItsAxis") + (last ? "OfTheLast" : ""), op,
                    [=](Attributes* a) { a->Int("axis", -2).Int("keepdims", keeps).Int("select_last_index", last); },
                    {{GCAP_DTYPE_I32, {3, 9, 2}, -2, 2}}, {});
  c.outputs = {{GCAP_DTYPE_I64, keeps ? kept : dropped}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(kept, [&](const Shape& i) {
      const Values row = RowOf(in[0], 1, i);
      size_t found = 0;
      for (size_t k = 1; k < row.size(); ++k) {
        const double gain = op == "ArgMax" ? row[k] - row[found] : row[found] - row[k];
        if (gain > 0 || (last && gain == 0)) found = k;
      }
      return static_cast<double>(found);
    })};
  };
  return c;
}

// Three elements along axis 1 of [2,9,3].
NodeCase TopK(const std::string& name, bool smallest, bool sorted, bool is_attribute) {
  const Shape shape = {2, 3, 3};
  NodeCase c = Case(
      name, "TopK",
      [=](Attributes* a) {
        a->Int("axis", 1).Int("largest", !smallest).Int("sorted", sorted);
        if (is_attribute) a->Int("k", 3);
      },
      {{kTyped, {2, 9, 3}}}, shape);
  if (!is_attribute) c.inputs.push_back({GCAP_DTYPE_I64, {1}, 0, 0, {3}});
  c.outputs.push_back({GCAP_DTYPE_I64, shape});
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    const auto chosen = [&](const Shape& i) {
      const Values row = RowOf(in[0], 1, i);
      std::vector<int> order(row.size());
      for (size_t k = 0; k < row.size(); ++k) order[k] = static_cast<int>(k);
      std::stable_sort(order.begin(), order.end(),
                       [&](int a, int b) { return smallest ? row[a] < row[b] : row[a] > row[b]; });
      if (!sorted) std::sort(order.begin(), order.begin() + 3);
      return order[static_cast<size_t>(i[1])];
    };
    return {Make(shape,
                 [&](const Shape& i) {
                   return At(in[0], {i[0], chosen(i), i[2]});
                 }),
            Make(shape, [&](const Shape& i) { return static_cast<double>(chosen(i)); })};
  };
  return c;
}

}  // namespace

std::vector<NodeCase> IndexCases() {
  std::vector<NodeCase> cases = {
      GatherElements("GatherElementsByi64", GCAP_DTYPE_I64),
      GatherElements("GatherElementsByi32", GCAP_DTYPE_I32),
      GatherND(),
      GatherNDInBatches(),
      ScatterElementsOnce("Scatter"),
      ScatterElementsOnce("ScatterElements"),
      ScatterNDOnce("ScatterND", {2, -4}),
      ScatterNDOnce("ScatterNDBeyondTheEnds", {100, -100, -2}),
  };
  cases.push_back(TensorScatter("TensorScatter", /*circular=*/false, /*has_starts=*/true));
  cases.push_back(TensorScatter("TensorScatterAround", /*circular=*/true, /*has_starts=*/true));
  cases.push_back(TensorScatter("TensorScatterToTheBegin", /*circular=*/false, /*has_starts=*/false));
  for (const bool keeps : {false, true}) {
    for (const bool last : {false, true}) {
      cases.push_back(Arg("ArgMax", keeps, last));
      cases.push_back(Arg("ArgMin", keeps, last));
    }
  }
  cases.push_back(TopK("TopK", /*smallest=*/false, /*sorted=*/true, /*is_attribute=*/false));
  cases.push_back(TopK("TopKOfTheSmallest", /*smallest=*/true, /*sorted=*/true, /*is_attribute=*/false));
  cases.push_back(TopK("TopKByIndex", /*smallest=*/false, /*sorted=*/false, /*is_attribute=*/false));
  cases.push_back(TopK("TopKByAttribute", /*smallest=*/false, /*sorted=*/true, /*is_attribute=*/true));
  for (const char* reduction : {"add", "mul", "min", "max"}) {
    cases.push_back(ScatterElements(reduction, GCAP_DTYPE_I32));
    cases.push_back(ScatterND(reduction));
  }
  return cases;
}

}  // namespace testing
}  // namespace gcap
