// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ConvTranspose, as ONNX's documentation has it: each element of the input is spread by the weights over the output,
// from which the pads are cut off.

#include <memory>

#include "test/nodes/cases.h"

namespace gcap {
namespace testing {
namespace {

struct Setup {
  std::string name;
  Shape x, weight, y;
  Shape strides, dilations, pads;  // pads: those at the beginning, also where they follow from something else
  int64_t group = 1;
  bool has_bias = true;
  std::function<void(Attributes*)> more = nullptr;
};

// Adds what element `from` of x spreads over y.
void Spread(const Setup& s, const Ins& in, const Shape& from, Elements* y) {
  const int64_t maps = s.weight[1], channels = s.x[1] / s.group, group = from[1] / channels;
  for (int64_t i = maps * Count(Shape(s.weight.begin() + 2, s.weight.end())); i-- > 0;) {
    Shape one = s.weight;
    one[0] = 1;
    Shape at = Unravel(i, one), to = from;
    at[0] = from[1];
    to[1] = group * maps + at[1];
    bool inside = true;
    for (size_t k = 2; k < at.size(); ++k) {
      to[k] = from[k] * s.strides[k - 2] - s.pads[k - 2] + at[k] * s.dilations[k - 2];
      inside = inside && to[k] >= 0 && to[k] < s.y[k];
    }
    if (inside) y->at[static_cast<size_t>(Ravel(to, s.y))] += At(in[0], from) * At(in[1], at);
  }
}

NodeCase ConvTranspose(const Setup& setup) {
  NodeCase c;
  c.name = "ConvTranspose" + setup.name;
  c.op_type = "ConvTranspose";
  c.attributes = [setup](Attributes* a) {
    a->Int("group", setup.group).Ints("strides", setup.strides).Ints("dilations", setup.dilations);
    if (setup.more) setup.more(a);
  };
  c.inputs = {{kTyped, setup.x}, {kTyped, setup.weight}};
  if (setup.has_bias) c.inputs.push_back({kTyped, {setup.y[1]}});
  c.outputs = {{kTyped, setup.y}};
  c.reference = [setup](const Ins& in) -> std::vector<Values> {
    Elements y = {setup.y, Make(setup.y, [&](const Shape& i) {
                    return setup.has_bias ? in[2].at[static_cast<size_t>(i[1])] : 0.0;
                  })};
    for (int64_t i = 0; i < Count(setup.x); ++i) Spread(setup, in, Unravel(i, setup.x), &y);
    return {y.at};
  };
  c.error = 2e-5;  // sums of up to 36 terms below 1, in f32
  return c;
}

}  // namespace

std::vector<NodeCase> TransposedCases() {
  const auto pads = [](const Shape& p) { return [p](Attributes* a) { a->Ints("pads", p); }; };
  Setup plain = {"", {2, 4, 3, 4}, {4, 3, 3, 2}, {2, 3, 5, 5}, {1, 1}, {1, 1}, {0, 0}};
  // (3 - 1) * 2 + 3 + 1 - 0 - 2 rows, (4 - 1) * 3 + 2 + 2 - 1 - 0 columns.
  Setup strided = {"WithStridesAndPads", {2, 4, 3, 4}, {4, 3, 3, 2}, {2, 3, 6, 12}, {2, 3}, {1, 1}, {0, 1}};
  strided.more = [](Attributes* a) { a->Ints("pads", {0, 1, 2, 0}).Ints("output_padding", {1, 2}); };
  Setup groups = {"OfGroupsWithoutBias", {1, 4, 3, 3}, {4, 3, 2, 2}, {1, 6, 5, 4}, {1, 1}, {3, 2}, {1, 1}, 2, false};
  groups.more = pads({1, 1, 0, 0});
  Setup one_axis = {"OfOneAxis", {2, 3, 5}, {3, 2, 4}, {2, 2, 10}, {2}, {1}, {1}};
  one_axis.more = pads({1, 1});
  Setup three = {"OfThreeAxes", {1, 2, 2, 3, 2}, {2, 2, 2, 3, 3}, {1, 2, 3, 7, 5}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}};
  // 10 rows and 8 columns are reached, so 2 rows and 1 column are cut off: the odd one at the end.
  Setup same = {"WithAutoPad", {1, 2, 4, 4}, {2, 2, 4, 3}, {1, 2, 8, 8}, {2, 2}, {1, 1}, {1, 0}};
  same.more = [](Attributes* a) { a->String("auto_pad", "SAME_UPPER"); };
  // 9 rows and 7 columns are reached; 1 row is cut off, at the beginning, and columns are added at the end.
  Setup sized = {"WithAnOutputShape", {1, 2, 4, 3}, {2, 2, 3, 3}, {1, 2, 8, 9}, {2, 2}, {1, 1}, {1, 0}};
  sized.more = [](Attributes* a) { a->Ints("output_shape", {8, 9}); };
  std::vector<NodeCase> all;
  for (const Setup& setup : {plain, strided, groups, one_axis, three, same, sized}) {
    all.push_back(ConvTranspose(setup));
  }
  return all;
}

}  // namespace testing
}  // namespace gcap
