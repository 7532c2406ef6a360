// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Operators that move elements.

#include <algorithm>

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

// --- Pad and Expand -------------------------------------------------------------------------------------------------

// Where index `i` of a padded axis of `size` elements comes from, by NumPy's words for its modes; -1: the constant.
// What is cropped is cropped first.
int64_t PaddedFrom(const std::string& mode, int64_t size, int64_t begin, int64_t end, int64_t i) {
  const int64_t first = std::max<int64_t>(0, -begin), left = size - first - std::max<int64_t>(0, -end);
  i -= std::max<int64_t>(0, begin);
  if (i >= 0 && i < left) return first + i;
  if (mode == "edge") return first + (i < 0 ? 0 : left - 1);
  if (mode == "reflect") return first + (i < 0 ? -i : 2 * (left - 1) - i);
  return mode == "wrap" ? first + ((i % left) + left) % left : -1;
}

// `pads` as ONNX has them: before each axis, then behind each. `others`: the inputs behind the first; none: attributes.
NodeCase Pad(const std::string& name, const std::string& mode, const Shape& shape, const Shape& pads, double value,
             const std::vector<Input>& others) {
  NodeCase c;
  c.name = name;
  c.op_type = "Pad";
  c.attributes = [=](Attributes* a) {
    a->String("mode", mode.c_str());
    if (others.empty()) a->Ints("pads", pads).Float("value", static_cast<float>(value));
  };
  c.inputs = {{kTyped, shape}};
  c.inputs.insert(c.inputs.end(), others.begin(), others.end());
  Shape padded = shape;
  const size_t rank = shape.size();
  for (size_t i = 0; i < rank; ++i) padded[i] += pads[i] + pads[rank + i];
  c.outputs = {{kTyped, padded}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(padded, [&](Shape index) {
      for (size_t i = 0; i < rank; ++i) {
        index[i] = PaddedFrom(mode, shape[i], pads[i], pads[rank + i], index[i]);
        if (index[i] < 0) return value;
      }
      return At(in[0], index);
    })};
  };
  return c;
}

NodeCase Expand(const std::string& name, const Shape& from, const Shape& request, const Shape& to) {
  NodeCase c = Move(name, "Expand", nullptr, {Integers(request)}, to, nullptr);
  c.inputs[0].shape = from;
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(to, [&](const Shape& index) { return BroadcastAt(in[0], index); })};
  };
  return c;
}

// --- Sources --------------------------------------------------------------------------------------------------------

NodeCase ConstantOfShape(const std::string& name, gcap_dtype_t type, const Shape& shape, double value, bool is_float) {
  NodeCase c;
  c.name = name;
  c.op_type = "ConstantOfShape";
  c.attributes = [=](Attributes* a) {
    if (is_float) a->Float("value", static_cast<float>(value));
    if (!is_float && value != 0) a->Int("value", static_cast<int64_t>(value));
  };
  c.inputs = {Integers(shape)};
  c.outputs = {{type, shape}};
  c.reference = [=](const Ins&) -> std::vector<Values> { return {Make(shape, [=](const Shape&) { return value; })}; };
  return c;
}

NodeCase Range(const std::string& name, gcap_dtype_t type, double start, double limit, double delta, int64_t count,
               const Shape& shape = {}) {
  NodeCase c;
  c.name = name;
  c.op_type = "Range";
  c.inputs = {{type, shape, 0, 0, {start}}, {type, shape, 0, 0, {limit}}, {type, shape, 0, 0, {delta}}};
  c.outputs = {{type, {count}}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make({count}, [&](const Shape& i) { return in[0].at[0] + static_cast<double>(i[0]) * in[2].at[0]; })};
  };
  return c;
}

// --- Elements by where they are ---------------------------------------------------------------------------------------

NodeCase Tile(const std::string& name, const Shape& shape, const Shape& repeats) {
  Shape tiled = shape;
  for (size_t i = 0; i < shape.size(); ++i) tiled[i] *= repeats[i];
  NodeCase c = Move(name, "Tile", nullptr, {Integers(repeats)}, tiled, [=](Shape index) {
    for (size_t i = 0; i < shape.size(); ++i) index[i] %= shape[i];
    return index;
  });
  c.inputs[0].shape = shape;
  return c;
}

NodeCase Trilu(const std::string& name, const Shape& shape, bool upper, int64_t k, bool has_k) {
  NodeCase c;
  c.name = name;
  c.op_type = "Trilu";
  c.attributes = [=](Attributes* a) {
    if (!upper) a->Int("upper", 0);
  };
  c.inputs = {{kTyped, shape}};
  if (has_k) c.inputs.push_back({GCAP_DTYPE_I64, {}, 0, 0, {static_cast<double>(k)}});
  c.outputs = {{kTyped, shape}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape, [&](const Shape& i) {
      const int64_t distance = i[i.size() - 1] - i[i.size() - 2];
      return (upper ? distance >= k : distance <= k) ? At(in[0], i) : 0.0;
    })};
  };
  return c;
}

NodeCase EyeLike(const std::string& name, gcap_dtype_t from, gcap_dtype_t to, int64_t dtype, int64_t k) {
  NodeCase c;
  c.name = name;
  c.op_type = "EyeLike";
  c.attributes = [=](Attributes* a) {
    a->Int("k", k);
    if (dtype != 0) a->Int("dtype", dtype);
  };
  c.inputs = {{from, {3, 5}}};
  c.outputs = {{to, {3, 5}}};
  c.reference = [=](const Ins&) -> std::vector<Values> {
    return {Make({3, 5}, [=](const Shape& i) { return i[1] - i[0] == k ? 1.0 : 0.0; })};
  };
  return c;
}

// Of indices [2,3], some outside, into 4 places on `axis` of the output.
NodeCase OneHot(const std::string& name, gcap_dtype_t index_type, gcap_dtype_t depth_type, int64_t axis,
                const Shape& shape) {
  NodeCase c;
  c.name = name;
  c.op_type = "OneHot";
  c.attributes = [=](Attributes* a) { a->Int("axis", axis); };
  c.inputs = {{index_type, {2, 3}, 0, 0, {0, 3, -1, -4, 4, -5}}, {depth_type, {}, 0, 0, {4}}, {kTyped, {2}}};
  c.outputs = {{kTyped, shape}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape, [&](Shape i) {
      const size_t at = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
      const int64_t place = i[at];
      i.erase(i.begin() + static_cast<std::ptrdiff_t>(at));
      const double index = At(in[0], i);
      return in[2].at[index == static_cast<double>(place) || index + 4 == static_cast<double>(place) ? 1 : 0];
    })};
  };
  return c;
}

// Of numbers of which many are equal: 1 at the first of the largest.
NodeCase Hardmax(const std::string& name, const Shape& shape, int64_t axis) {
  NodeCase c;
  c.name = "Hardmax" + name;
  c.op_type = "Hardmax";
  const size_t along = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
  if (axis != -1) c.attributes = [=](Attributes* a) { a->Int("axis", axis); };
  c.inputs = {{kTyped, shape, -1, 1}};
  c.outputs = {{kTyped, shape}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(shape, [&](const Shape& i) {
      Shape best = i, other = i;
      best[along] = 0;
      for (other[along] = 1; other[along] < shape[along]; ++other[along]) {
        if (At(in[0], other) > At(in[0], best)) best = other;
      }
      return best == i ? 1.0 : 0.0;
    })};
  };
  return c;
}

NodeCase CumSum(const std::string& name, gcap_dtype_t type, const Shape& shape, int64_t axis, bool exclusive,
                bool reverse) {
  NodeCase c;
  c.name = name;
  c.op_type = "CumSum";
  c.attributes = [=](Attributes* a) {
    if (exclusive) a->Int("exclusive", 1);
    if (reverse) a->Int("reverse", 1);
  };
  c.inputs = {{type, shape, -3, 3}, {GCAP_DTYPE_I32, {}, 0, 0, {static_cast<double>(axis)}}};
  c.outputs = {{type, shape}};
  c.error = 1e-6;  // a further rounding, to f32, on the way to what is stored
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    const size_t at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
    return {Make(shape, [&](const Shape& index) {
      double sum = 0;
      for (int64_t i = 0; i < shape[at]; ++i) {
        const bool before = reverse ? i > index[at] : i < index[at];
        Shape other = index;
        other[at] = i;
        if (before || (i == index[at] && !exclusive)) sum += At(in[0], other);
      }
      return sum;
    })};
  };
  return c;
}

// Sequences of these lengths, of up to four steps, some lengths outside.
NodeCase ReverseSequence(const std::string& name, bool time_first) {
  const Shape shape = time_first ? Shape{4, 5, 2} : Shape{5, 4, 2};
  const Values lengths = {3, 4, 1, -2, 9};
  NodeCase c = Move(
      name, "ReverseSequence",
      [=](Attributes* a) { a->Int("time_axis", time_first ? 0 : 1).Int("batch_axis", time_first ? 1 : 0); },
      {{GCAP_DTYPE_I64, {5}, 0, 0, lengths}}, shape,
      [=](Shape i) {
        int64_t& time = time_first ? i[0] : i[1];
        const double given = lengths[static_cast<size_t>(time_first ? i[1] : i[0])];
        const int64_t length = given < 0 ? 0 : given > 4 ? 4 : static_cast<int64_t>(given);
        if (time < length) time = length - 1 - time;
        return i;
      });
  c.inputs[0].shape = shape;
  return c;
}

// --- Blocks ---------------------------------------------------------------------------------------------------------

// `from` is the index in the image of what is in the channels, of blocks of 2 x 3 images by their documentation.
NodeCase Blocks(const std::string& name, const std::string& op, const char* mode, const Shape& before,
                const Shape& after, const std::function<Shape(const Shape&)>& from) {
  NodeCase c = Move(name, op, nullptr, {}, after, from);
  c.attributes = [=](Attributes* a) {
    a->Int("blocksize", 2);
    if (mode != nullptr) a->String("mode", mode);
  };
  c.inputs[0].shape = before;
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
      Move(
          "SliceByAttributes", "Slice",
          [](Attributes* a) {
            a->Ints("starts", {0, -3}).Ints("ends", {-1, 100}).Ints("axes", {1, -1});
          },
          {}, {2, 2, 3},
          [](const Shape& i) -> Shape {
            return {i[0], i[1], i[2] + 1};
          }),
      Move(
          "SliceByStartsAndEnds", "Slice", [](Attributes* a) { a->Ints("starts", {1}).Ints("ends", {2}); }, {},
          {1, 3, 4},
          [](const Shape& i) -> Shape {
            return {1, i[1], i[2]};
          }),
      Pad("PadByAttributes", "constant", {2, 3}, {1, 0, 2, 4}, 0.25, {}),
      Pad("PadWithZeros", "constant", {2, 3, 4}, {0, 1, 0, 0, 2, 0}, 0, {Integers({0, 1, 0, 0, 2, 0})}),
      Pad("PadWithAValue", "constant", {2, 3, 4}, {0, 1, 2, 3, 0, 1}, -1.5,
          {Integers({0, 1, 2, 3, 0, 1}), {kTyped, {}, 0, 0, {-1.5}}}),
      Pad("PadAndCrop", "constant", {4, 3, 8}, {-1, 2, -4, 3, -1, 5}, 2,
          {Integers({-1, 2, -4, 3, -1, 5}), {kTyped, {1}, 0, 0, {2}}}),
      Pad("PadAllCropped", "constant", {2, 3}, {-3, 0, 5, 1}, 2, {Integers({-3, 0, 5, 1}), {kTyped, {}, 0, 0, {2}}}),
      Pad("PadOfAxes", "constant", {2, 3, 4}, {0, 1, 2, 0, 3, 0}, 1,
          {Integers({2, 1, 0, 3}), {kTyped, {}, 0, 0, {1}}, Integers({-1, 1}, GCAP_DTYPE_I32)}),
      Pad("PadOfAxesWithZeros", "constant", {2, 3, 4}, {0, 1, 2, 0, 3, 0}, 0,
          {Integers({2, 1, 0, 3}), {kTyped, kLeftOut}, Integers({-1, 1})}),
      Pad("PadOfNothing", "constant", {0, 3}, {1, 0, 1, 2}, 3, {Integers({1, 0, 1, 2}), {kTyped, {}, 0, 0, {3}}}),
      Pad("PadByReflection", "reflect", {4, 3, 16}, {3, 1, 0, 3, 2, 0}, 0, {Integers({3, 1, 0, 3, 2, 0})}),
      Pad("PadByReflectionOfWhatIsLeft", "reflect", {6, 5}, {-2, 2, 3, -1}, 0, {Integers({-2, 2, 3, -1})}),
      Pad("PadByTheEdge", "edge", {4, 3, 16}, {5, -1, 1, 0, 7, 2}, 0, {Integers({5, -1, 1, 0, 7, 2})}),
      Pad("PadByWrapping", "wrap", {4, 3, 16}, {9, 0, -2, 10, 2, 1}, 0, {Integers({9, 0, -2, 10, 2, 1})}),
      Pad("PadOfAScalar", "reflect", {}, {}, 0, {}),
      Expand("Expand", {3, 1, 8}, {2, 1, 5, 1}, {2, 3, 5, 8}),
      Expand("ExpandByRank", {4}, {2, 3, 1}, {2, 3, 4}),
      Expand("ExpandToNothing", {2, 1, 3}, {2, 0, 3}, {2, 0, 3}),
      Expand("ExpandARankOf8", {1, 2, 1, 2, 1, 2, 1, 2}, {2, 2, 3, 2, 2, 2, 2, 2}, {2, 2, 3, 2, 2, 2, 2, 2}),
      ConstantOfShape("ConstantOfShape", kTyped, {3, 5}, 1.5, true),
      ConstantOfShape("ConstantOfShapeOfZeros", kTyped, {2, 8}, 0, false),
      ConstantOfShape("ConstantOfShapeOfIntegers", GCAP_DTYPE_I64, {7}, -5e9, false),
      ConstantOfShape("ConstantOfShapeOfi32", GCAP_DTYPE_I32, {7}, -5, false),
      ConstantOfShape("ConstantOfShapeOfi8", GCAP_DTYPE_I8, {7}, -5, false),
      ConstantOfShape("ConstantOfShapeOfu8", GCAP_DTYPE_U8, {7}, 250, false),
      ConstantOfShape("ConstantOfShapeOfBools", GCAP_DTYPE_BOOL, {19}, 1, false),
      ConstantOfShape("ConstantOfShapeOfNothing", kTyped, {3, 0}, 1, true),
      Range("Range", GCAP_DTYPE_F32, 1.5, 9, 0.75, 10),
      Range("RangeOfIntegers", GCAP_DTYPE_I64, 10, -9, -4, 5),
      Range("RangeOfi32", GCAP_DTYPE_I32, -3, 600, 2, 302),
      Range("RangeOfListsOfOne", GCAP_DTYPE_I64, 2, 9, 3, 3, {1}),
      Range("RangeOfNothing", GCAP_DTYPE_I64, 3, 3, 1, 0),
      Tile("Tile", {2, 3, 4}, {2, 1, 3}),
      Tile("TileOfNothing", {2, 3}, {0, 2}),
      Tile("TileOfARankOf8", {2, 1, 2, 1, 2, 1, 2, 1}, {2, 2, 1, 2, 2, 2, 2, 2}),
      Trilu("Trilu", {3, 4}, true, 0, false),
      Trilu("TriluLower", {2, 4, 3}, false, -1, true),
      Trilu("TriluUpperByK", {2, 3, 4}, true, 2, true),
      Trilu("TriluOfNothingInside", {3, 4}, true, 50, true),
      EyeLike("EyeLike", kTyped, kTyped, 0, 1),
      EyeLike("EyeLikeOfIntegers", GCAP_DTYPE_BOOL, GCAP_DTYPE_I64, 7, -2),
      EyeLike("EyeLikeOfBools", kTyped, GCAP_DTYPE_BOOL, 9, 0),
      OneHot("OneHot", GCAP_DTYPE_I64, GCAP_DTYPE_I64, -1, {2, 3, 4}),
      OneHot("OneHotInTheMiddle", GCAP_DTYPE_I32, GCAP_DTYPE_I32, 1, {2, 4, 3}),
      OneHot("OneHotOfFloats", GCAP_DTYPE_F32, GCAP_DTYPE_F32, 0, {4, 2, 3}),
      Hardmax("", {3, 40}, -1),
      Hardmax("OfTheFirstAxis", {70, 3}, 0),
      Hardmax("InTheMiddle", {2, 300, 3}, 1),
      Hardmax("OfAVector", {7}, -1),
      CumSum("CumSum", kTyped, {2, 5, 3}, 1, false, false),
      CumSum("CumSumExclusive", kTyped, {2, 5}, -1, true, false),
      CumSum("CumSumReversed", kTyped, {5, 2}, 0, false, true),
      CumSum("CumSumOfIntegers", GCAP_DTYPE_I32, {6}, 0, true, true),
      ReverseSequence("ReverseSequence", true),
      ReverseSequence("ReverseSequenceOfBatches", false),
      // Channel (block row, block column, channel) of a pixel is the pixel of the block there.
      Blocks("SpaceToDepth", "SpaceToDepth", nullptr, {2, 3, 4, 6}, {2, 12, 2, 3},
             [](const Shape& i) -> Shape {
               return {i[0], i[1] % 3, 2 * i[2] + i[1] / 6, 2 * i[3] + i[1] / 3 % 2};
             }),
      Blocks("DepthToSpace", "DepthToSpace", nullptr, {2, 12, 2, 3}, {2, 3, 4, 6},
             [](const Shape& i) -> Shape {
               return {i[0], (i[2] % 2 * 2 + i[3] % 2) * 3 + i[1], i[2] / 2, i[3] / 2};
             }),
      Blocks("DepthToSpaceByColumns", "DepthToSpace", "CRD", {2, 12, 2, 3}, {2, 3, 4, 6},
             [](const Shape& i) -> Shape {
               return {i[0], i[1] * 4 + i[2] % 2 * 2 + i[3] % 2, i[2] / 2, i[3] / 2};
             }),
      Dropout(false),
      Dropout(true),
  };
}

}  // namespace testing
}  // namespace gcap
