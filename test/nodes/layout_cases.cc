// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that move elements.

#include "test/nodes/cases.h"

namespace gcap {
namespace testing {
namespace {

Input Integers(const Shape& numbers, gcap_dtype_t type = GCAP_DTYPE_I64) {
  return {type, {static_cast<int64_t>(numbers.size())}, 0, 0, Values(numbers.begin(), numbers.end())};
}

// One input of [2,3,4], then what decides the shape. `from`: the index in the input of each element of the output.
NodeCase Move(const std::string& name, const std::string& op, const std::function<void(Attributes*)>& attributes,
              const std::vector<Input>& others, const Shape& shape, const std::function<Shape(const Shape&)>& from) {
  NodeCase c;
  c.name = name;
  c.op_type = op;
  c.attributes = attributes;
  c.inputs = {{kTyped, {2, 3, 4}}};
  c.inputs.insert(c.inputs.end(), others.begin(), others.end());
  c.outputs = {{kTyped, shape}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape, [&](const Shape& index) { return At(in[0], from(index)); })};
  };
  return c;
}

// The shape alone changes.
NodeCase Reshape(const std::string& name, const std::string& op, const std::function<void(Attributes*)>& attributes,
                 const std::vector<Input>& others, const Shape& before, const Shape& after) {
  NodeCase c = Move(name, op, attributes, others, after, nullptr);
  c.inputs[0].shape = before;
  c.reference = [](const Ins& in) -> std::vector<Values> { return {in[0].at}; };
  return c;
}

NodeCase Concat() {
  NodeCase c;
  c.name = c.op_type = "Concat";
  c.attributes = [](Attributes* a) { a->Int("axis", -2); };
  c.inputs = {{kTyped, {2, 1, 3}}, {kTyped, {2, 3, 3}}, {kTyped, {2, 2, 3}}};
  c.outputs = {{kTyped, {2, 6, 3}}};
  c.reference = [](const Ins& in) -> std::vector<Values> {
    return {Make({2, 6, 3}, [&](const Shape& i) {
      if (i[1] < 1) return At(in[0], i);
      return i[1] < 4 ? At(in[1], {i[0], i[1] - 1, i[2]}) : At(in[2], {i[0], i[1] - 4, i[2]});
    })};
  };
  return c;
}

NodeCase Split(const std::string& name, const Shape& parts, bool are_given) {
  NodeCase c;
  c.name = name;
  c.op_type = "Split";
  c.attributes = [](Attributes* a) { a->Int("axis", 1); };
  c.inputs = {{kTyped, {2, 6, 3}}};
  if (are_given) c.inputs.push_back(Integers(parts));
  for (int64_t part : parts) c.outputs.push_back({kTyped, {2, part, 3}});
  c.reference = [=](const Ins& in) {
    std::vector<Values> made;
    int64_t before = 0;
    for (int64_t part : parts) {
      made.push_back(Make({2, part, 3}, [&](const Shape& i) { return At(in[0], {i[0], i[1] + before, i[2]}); }));
      before += part;
    }
    return made;
  };
  return c;
}

NodeCase Dropout(bool has_mask) {
  NodeCase c;
  c.name = has_mask ? "DropoutWithMask" : "Dropout";
  c.op_type = "Dropout";
  c.inputs = {{kTyped, {2, 3}}, {kTyped, {}, 0, 0, {0.5}}, {GCAP_DTYPE_BOOL, {}, 0, 0, {0}}};
  c.outputs = {{kTyped, {2, 3}}};
  if (has_mask) c.outputs.push_back({GCAP_DTYPE_BOOL, {2, 3}});
  c.reference = [=](const Ins& in) {
    std::vector<Values> made = {in[0].at};
    if (has_mask) made.push_back(Values(6, 1.0));
    return made;
  };
  return c;
}

NodeCase Gather(const std::string& name, gcap_dtype_t type) {
  const auto attributes = [](Attributes* a) { a->Int("axis", 1); };
  NodeCase c = Move(name, "Gather", attributes, {{type, {2, 2}, 0, 0, {2, 0, -1, 1}}}, {2, 2, 2, 4}, nullptr);
  c.reference = [](const Ins& in) -> std::vector<Values> {
    return {Make({2, 2, 2, 4}, [&](const Shape& i) {
      const int64_t row = static_cast<int64_t>(At(in[1], {i[1], i[2]}));
      return At(in[0], {i[0], row < 0 ? row + 3 : row, i[3]});
    })};
  };
  return c;
}

}  // namespace

std::vector<NodeCase> LayoutCases() {
  const auto perm = [](Attributes* a) { a->Ints("perm", {1, 2, 0}); };
  return {
      Move("Transpose", "Transpose", nullptr, {}, {4, 3, 2},
           [](const Shape& i) -> Shape {
             return {i[2], i[1], i[0]};
           }),
      Move("TransposeByPerm", "Transpose", perm, {}, {3, 4, 2},
           [](const Shape& i) -> Shape {
             return {i[2], i[0], i[1]};
           }),
      Move("Slice", "Slice", nullptr, {Integers({1, 0}), Integers({2, 100}), Integers({0, 2}), Integers({1, 2})},
           {1, 3, 2},
           [](const Shape& i) -> Shape {
             return {1, i[1], 2 * i[2]};
           }),
      Move("SliceBackwards", "Slice", nullptr,
           {Integers({-1}, GCAP_DTYPE_I32), Integers({-100}, GCAP_DTYPE_I32), Integers({1}, GCAP_DTYPE_I32),
            Integers({-1}, GCAP_DTYPE_I32)},
           {2, 3, 4},
           [](const Shape& i) -> Shape {
             return {i[0], 2 - i[1], i[2]};
           }),
      Move("SliceOfNothing", "Slice", nullptr, {Integers({5}), Integers({9}), Integers({1})}, {2, 0, 4},
           [](const Shape& i) { return i; }),
      Gather("GatherByi64", GCAP_DTYPE_I64),
      Gather("GatherByi32", GCAP_DTYPE_I32),
      Concat(),
      Split("SplitIntoEqualParts", {3, 3}, false),
      Split("SplitByInput", {1, 3, 2}, true),
      Reshape("Reshape", "Reshape", nullptr, {Integers({0, -1})}, {2, 3, 4}, {2, 12}),
      Reshape("Flatten", "Flatten", [](Attributes* a) { a->Int("axis", 2); }, {}, {2, 3, 4}, {6, 4}),
      Reshape("Squeeze", "Squeeze", nullptr, {Integers({-2})}, {2, 1, 3}, {2, 3}),
      Reshape("Unsqueeze", "Unsqueeze", nullptr, {Integers({0, 2})}, {2, 3}, {1, 2, 1, 3}),
      Dropout(false),
      Dropout(true),
  };
}

}  // namespace testing
}  // namespace gcap
