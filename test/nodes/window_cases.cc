// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Convolution, pools and batch normalization.

#include <algorithm>
#include <cmath>

#include "test/nodes/cases.h"

namespace gcap {
namespace testing {
namespace {

// Of sums of up to 40 terms up to 1 in f32, by an algorithm that may transform them first (Winograd's, FFT): a further
// factor of 16.
constexpr double kConvError = 1e-4;

// Two axes, or three; one axis is {1, size}, with `axes` 1.
struct Setup {
  std::string name;
  Shape x = {2, 4, 5, 6}, weight = {6, 4, 3, 3};
  int64_t group = 1;
  Shape strides = {1, 1}, dilations = {1, 1}, pads = {0, 0, 0, 0}, y = {2, 6, 3, 4};
  const char* auto_pad = nullptr;  // `pads` are then what it must be
  bool bias = true, relu = false;
  size_t axes = 2;
};

Shape LastOf(const Shape& all, size_t axes) {
  if (axes > 1) return all;
  Shape last;
  for (size_t begin = 0; begin < all.size(); begin += 2) {
    last.insert(last.end(), all.begin() + static_cast<std::ptrdiff_t>(begin + 2 - axes),
                all.begin() + static_cast<std::ptrdiff_t>(begin + 2));
  }
  return last;
}
Shape WithoutFirstAxis(Shape shape, size_t axes) {
  if (axes == 1) shape.erase(shape.begin() + 2);
  return shape;
}

double ConvAt(const Setup& s, const Ins& in, const Shape& i) {
  const int64_t maps_of_a_group = s.weight[0] / s.group, first = i[1] / maps_of_a_group * s.weight[1];
  double sum = s.bias ? in[2].at[static_cast<size_t>(i[1])] : 0.0;
  const Elements x = {s.x, in[0].at}, weight = {s.weight, in[1].at};
  for (int64_t c = 0; c < s.weight[1]; ++c) {
    const Shape window(s.weight.begin() + 2, s.weight.end());
    for (int64_t tap = 0; tap < Count(window); ++tap) {
      const Shape at = Unravel(tap, window);
      Shape from = {i[0], first + c}, by = {i[1], c};
      bool inside = true;
      for (size_t k = 0; k < at.size(); ++k) {
        by.push_back(at[k]);
        from.push_back(i[2 + k] * s.strides[k] - s.pads[k] + at[k] * s.dilations[k]);
        inside = inside && from.back() >= 0 && from.back() < s.x[2 + k];
      }
      if (inside) sum += At(x, from) * At(weight, by);
    }
  }
  return s.relu ? std::max(sum, 0.0) : sum;
}

NodeCase Conv(const Setup& s) {
  NodeCase c;
  c.name = "Conv" + s.name;
  c.op_type = "Conv";
  c.attributes = [=](Attributes* a) {
    a->Int("group", s.group).Ints("strides", LastOf(s.strides, s.axes)).Ints("dilations", LastOf(s.dilations, s.axes));
    if (s.auto_pad != nullptr) a->String("auto_pad", s.auto_pad);
    if (s.auto_pad == nullptr) a->Ints("pads", LastOf(s.pads, s.axes));
    if (s.relu) a->String("activation", "Relu");
  };
  c.inputs = {{kTyped, WithoutFirstAxis(s.x, s.axes)}, {kTyped, WithoutFirstAxis(s.weight, s.axes)}};
  if (s.bias) c.inputs.push_back({kTyped, {s.weight[0]}});
  c.outputs = {{kTyped, WithoutFirstAxis(s.y, s.axes)}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(s.y, [&](const Shape& i) { return ConvAt(s, in, i); })};
  };
  c.error = kConvError;
  c.roundings = 4;  // before the bias, and inside of an algorithm that sums in the type
  c.magnitude = 40;
  return c;
}

// The p-th root of sums of p-th powers, by windows over any number of axes.
NodeCase LpPool(const std::string& name, int64_t p, const Shape& x, const Shape& y, const Shape& window,
                const Shape& strides, const Shape& dilations, const Shape& pads) {
  NodeCase c;
  c.op_type = "LpPool";
  c.name = c.op_type + name;
  c.attributes = [=](Attributes* a) {
    if (p != 2) a->Int("p", p);
    a->Ints("kernel_shape", window).Ints("strides", strides).Ints("dilations", dilations).Ints("pads", pads);
  };
  c.inputs = {{kTyped, x}};
  c.outputs = {{kTyped, y}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(y, [&](const Shape& i) {
      double sum = 0;
      for (int64_t tap = 0; tap < Count(window); ++tap) {
        const Shape at = Unravel(tap, window);
        Shape from = {i[0], i[1]};
        bool inside = true;
        for (size_t k = 0; k < at.size(); ++k) {
          from.push_back(i[2 + k] * strides[k] - pads[k] + at[k] * dilations[k]);
          inside = inside && from.back() >= 0 && from.back() < x[2 + k];
        }
        if (inside) sum += std::pow(std::fabs(At(in[0], from)), static_cast<double>(p));
      }
      return std::pow(sum, 1.0 / static_cast<double>(p));
    })};
  };
  c.error = 1e-5;  // of two powf and sums of up to 12 terms up to 1
  return c;
}

std::vector<NodeCase> Convolutions() {
  Setup plain, padded, strided, dilated, grouped, depthwise, uneven, same, one_axis, volume, uneven_volume;
  padded.name = "WithPads";
  padded.pads = {1, 2, 1, 2};
  padded.y = {2, 6, 5, 8};
  strided.name = "WithStridesAndRelu";
  strided.strides = {2, 3};
  strided.relu = true;
  strided.y = {2, 6, 2, 2};
  dilated.name = "WithDilationsWithoutBias";
  dilated.dilations = {2, 1};
  dilated.bias = false;
  dilated.y = {2, 6, 1, 4};
  grouped.name = "OfGroups";
  grouped.group = 2;
  grouped.weight = {6, 2, 3, 3};
  depthwise.name = "OfEachChannel";
  depthwise.group = 4;
  depthwise.weight = {4, 1, 3, 3};
  depthwise.y = {2, 4, 3, 4};
  uneven.name = "WithUnevenPads";
  uneven.pads = {0, 1, 2, 0};
  uneven.y = {2, 6, 5, 5};
  same.name = "WithAutoPad";
  same.auto_pad = "SAME_UPPER";
  same.strides = {2, 2};
  same.pads = {1, 0, 1, 1};  // 5 rows need 3 windows, 2 more rows; 6 columns need 3 windows, 1 more column at the end
  same.y = {2, 6, 3, 3};
  one_axis.name = "OfOneAxis";
  one_axis.axes = 1;
  one_axis.x = {2, 4, 1, 9};
  one_axis.weight = {6, 4, 1, 3};
  one_axis.strides = {1, 2};
  one_axis.pads = {0, 1, 0, 1};
  one_axis.y = {2, 6, 1, 5};
  volume.name = "OfThreeAxes";
  volume.axes = 3;
  volume.x = {2, 2, 4, 5, 6};
  volume.weight = {4, 2, 2, 3, 3};
  volume.strides = {1, 2, 1}, volume.dilations = {2, 1, 1}, volume.pads = {0, 1, 0, 0, 1, 0};
  volume.y = {2, 4, 2, 3, 4};
  volume.relu = true;
  uneven_volume = volume;
  uneven_volume.name = "OfThreeAxesOfGroupsWithUnevenPads";
  uneven_volume.group = 2;
  uneven_volume.weight[1] = 1;
  uneven_volume.pads = {1, 0, 2, 0, 2, 0};
  uneven_volume.y = {2, 4, 3, 3, 6};
  uneven_volume.bias = uneven_volume.relu = false;
  std::vector<NodeCase> all;
  for (const Setup& setup :
       {plain, padded, strided, dilated, grouped, depthwise, uneven, same, one_axis, volume, uneven_volume}) {
    all.push_back(Conv(setup));
  }
  return all;
}

// A window of 3 x 2 over [2,3,5,6], or of 3 over [2,3,5].
struct PoolSetup {
  std::string name, op;
  Shape strides, pads, y;  // pads at the beginning, and at the end if there are four
  size_t axes = 2;
  Shape dilations = {1, 1};
  bool counts_pads = false, ceil = false;
  const char* auto_pad = nullptr;  // `pads` are then what it must be
};

double PoolAt(const PoolSetup& s, const Shape& window, const Elements& image, const Shape& i) {
  const Shape& x = image.shape;
  double sum = 0, most = -1e9, count = 0;
  for (int64_t k = 0; k < window[0] * window[1]; ++k) {
    const int64_t h = i[2] * s.strides[0] - s.pads[0] + k / window[1] * s.dilations[0];
    const int64_t w = i[3] * s.strides[1] - s.pads[1] + k % window[1] * s.dilations[1];
    const bool inside = h >= 0 && h < x[2] && w >= 0 && w < x[3];
    const bool padded = h < x[2] + s.pads[s.pads.size() - 2] && w < x[3] + s.pads[s.pads.size() - 1];
    if (inside) sum += At(image, {i[0], i[1], h, w});
    if (inside) most = std::max(most, At(image, {i[0], i[1], h, w}));
    count += inside || (s.counts_pads && padded);
  }
  return s.op == "MaxPool" ? most : sum / count;
}

NodeCase Pool(const PoolSetup& s) {
  const Shape x = s.axes == 1 ? Shape{2, 3, 1, 5} : Shape{2, 3, 5, 6}, window = s.axes == 1 ? Shape{1, 3} : Shape{3, 2};
  NodeCase c;
  c.name = s.op + s.name;
  c.op_type = s.op;
  c.attributes = [=](Attributes* a) {
    Shape pads = s.pads;
    if (pads.size() == 2) pads.insert(pads.end(), s.pads.begin(), s.pads.end());
    a->Ints("kernel_shape", LastOf(window, s.axes)).Ints("strides", LastOf(s.strides, s.axes));
    a->Ints("dilations", LastOf(s.dilations, s.axes));
    if (s.auto_pad != nullptr) a->String("auto_pad", s.auto_pad);
    if (s.auto_pad == nullptr) a->Ints("pads", LastOf(pads, s.axes));
    if (s.counts_pads) a->Int("count_include_pad", 1);
    if (s.ceil) a->Int("ceil_mode", 1);
  };
  c.inputs = {{kTyped, WithoutFirstAxis(x, s.axes)}};
  c.outputs = {{kTyped, WithoutFirstAxis(s.y, s.axes)}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    const Elements image = {x, in[0].at};
    return {Make(s.y, [&](const Shape& i) { return PoolAt(s, window, image, i); })};
  };
  c.error = 2e-6;
  return c;
}

std::vector<NodeCase> Pools() {
  std::vector<PoolSetup> setups = {
      {"", "MaxPool", {1, 1}, {0, 0}, {2, 3, 3, 5}},
      {"WithStridesAndPads", "MaxPool", {2, 2}, {1, 1}, {2, 3, 3, 4}},
      {"OfOneAxis", "MaxPool", {1, 2}, {0, 1}, {2, 3, 1, 3}, 1},
      {"WithDilations", "MaxPool", {1, 1}, {2, 1}, {2, 3, 5, 5}, 2, {2, 3}},
      {"WithUnevenPads", "MaxPool", {2, 2}, {0, 1, 2, 0}, {2, 3, 3, 3}},
      {"WithCeilMode", "MaxPool", {3, 4}, {0, 0}, {2, 3, 2, 2}},
      {"OfOneAxisWithDilations", "MaxPool", {1, 1}, {0, 0}, {2, 3, 1, 1}, 1, {1, 2}},
      {"", "AveragePool", {2, 2}, {1, 1}, {2, 3, 3, 4}},
      {"WithPadsCounted", "AveragePool", {2, 2}, {1, 1}, {2, 3, 3, 4}},
      {"WithDilations", "AveragePool", {1, 1}, {2, 1}, {2, 3, 5, 5}, 2, {2, 3}},
      {"WithCeilModeAndPadsCounted", "AveragePool", {2, 4}, {1, 1, 0, 1}, {2, 3, 3, 2}},
      {"WithAutoPad", "AveragePool", {2, 3}, {1, 0, 1, 0}, {2, 3, 3, 2}},
  };
  std::vector<NodeCase> all;
  for (PoolSetup& setup : setups) {
    setup.ceil = setup.name.find("CeilMode") != std::string::npos;
    setup.counts_pads = setup.name.find("PadsCounted") != std::string::npos;
    if (setup.name == "WithAutoPad") setup.auto_pad = "SAME_UPPER";
    all.push_back(Pool(setup));
  }
  return all;
}

// Of three axes: a window of 2 x 3 x 2 over [2,2,4,5,6], with strides of 2, 1, 3 and pads of 1, 2, 0 and 0, 1, 1.
struct VolumeSetup {
  std::string name, op;
  Shape y, dilations = {1, 1, 1};
  bool counts_pads = false, ceil = false;
};

double VolumePoolAt(const VolumeSetup& s, const Elements& x, const Shape& i) {
  const Shape window = {2, 3, 2}, strides = {2, 1, 3}, begin = {1, 2, 0}, end = {0, 1, 1};
  double sum = 0, most = -1e9, count = 0;
  for (int64_t tap = 0; tap < Count(window); ++tap) {
    const Shape of_tap = Unravel(tap, window);
    Shape at = i;
    bool inside = true, padded = true;
    for (size_t k = 0; k < 3; ++k) {
      at[2 + k] = i[2 + k] * strides[k] - begin[k] + of_tap[k] * s.dilations[k];
      inside = inside && at[2 + k] >= 0 && at[2 + k] < x.shape[2 + k];
      padded = padded && at[2 + k] < x.shape[2 + k] + end[k];
    }
    if (inside) sum += At(x, at);
    if (inside) most = std::max(most, At(x, at));
    count += inside || (s.counts_pads && padded);
  }
  return s.op == "MaxPool" ? most : sum / count;
}

NodeCase VolumePool(const VolumeSetup& s) {
  NodeCase c;
  c.name = s.op + "OfThreeAxes" + s.name;
  c.op_type = s.op;
  c.attributes = [=](Attributes* a) {
    a->Ints("kernel_shape", {2, 3, 2}).Ints("strides", {2, 1, 3}).Ints("pads", {1, 2, 0, 0, 1, 1});
    a->Ints("dilations", s.dilations).Int("ceil_mode", s.ceil);
    if (s.counts_pads) a->Int("count_include_pad", 1);
  };
  c.inputs = {{kTyped, {2, 2, 4, 5, 6}}};
  c.outputs = {{kTyped, s.y}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(s.y, [&](const Shape& i) { return VolumePoolAt(s, in[0], i); })};
  };
  c.error = 2e-6;
  return c;
}

NodeCase GlobalPool(const std::string& op, const Shape& x) {
  Shape y = x;
  for (size_t i = 2; i < y.size(); ++i) y[i] = 1;
  NodeCase c;
  c.name = op + "OfRank" + std::to_string(x.size());
  c.op_type = op;
  c.inputs = {{kTyped, x}};
  c.outputs = {{kTyped, y}};
  const size_t count = static_cast<size_t>(Count(x) / Count(y));
  const bool is_max = op == "GlobalMaxPool";
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    Values made(static_cast<size_t>(Count(y)), is_max ? -1e9 : 0);
    for (size_t i = 0; i < in[0].at.size(); ++i) {
      double& to = made[i / count];
      to = is_max ? std::max(to, in[0].at[i]) : to + in[0].at[i] / static_cast<double>(count);
    }
    return {made};
  };
  c.error = 4e-6;
  return c;
}

NodeCase BatchNorm(const Shape& x) {
  NodeCase c;
  c.name = "BatchNormalizationOfRank" + std::to_string(x.size());
  c.op_type = "BatchNormalization";
  c.attributes = [](Attributes* a) { a->Float("epsilon", 0.125f); };
  const gcap_dtype_t f32 = GCAP_DTYPE_F32;
  c.inputs = {{kTyped, x}, {f32, {x[1]}}, {f32, {x[1]}}, {f32, {x[1]}}, {f32, {x[1]}, 0.5, 2}};
  c.outputs = {{kTyped, x}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(x, [&](const Shape& i) {
      const size_t k = static_cast<size_t>(i[1]);
      return in[1].at[k] * (At(in[0], i) - in[3].at[k]) / std::sqrt(in[4].at[k] + 0.125) + in[2].at[k];
    })};
  };
  c.error = 4e-6;
  return c;
}

}  // namespace

std::vector<NodeCase> WindowCases() {
  std::vector<NodeCase> all = Convolutions();
  all.push_back(LpPool("", 2, {2, 3, 5, 6}, {2, 3, 3, 3}, {3, 2}, {1, 2}, {1, 1}, {0, 0, 0, 0}));
  all.push_back(LpPool("Of1", 1, {1, 2, 9}, {1, 2, 4}, {3}, {2}, {2}, {1, 1}));
  all.push_back(LpPool("Of3OverThreeAxes", 3, {1, 2, 3, 4, 4}, {1, 2, 2, 3, 3}, {2, 2, 3}, {1, 1, 1}, {1, 1, 1},
                       {0, 0, 1, 0, 0, 0}));
  const std::vector<NodeCase> pools = Pools();
  all.insert(all.end(), pools.begin(), pools.end());
  all.push_back(VolumePool({"", "MaxPool", {2, 2, 2, 6, 2}}));
  all.push_back(VolumePool({"WithDilations", "MaxPool", {2, 2, 2, 4, 2}, {2, 2, 3}}));
  all.push_back(VolumePool({"", "AveragePool", {2, 2, 2, 6, 2}}));
  all.push_back(VolumePool({"WithPadsCounted", "AveragePool", {2, 2, 2, 6, 2}, {1, 1, 1}, true}));
  all.push_back(VolumePool({"WithCeilModeAndPadsCounted", "AveragePool", {2, 2, 3, 6, 2}, {1, 1, 1}, true, true}));
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"}) {
    all.push_back(GlobalPool(op, {2, 3, 4, 5}));
    all.push_back(GlobalPool(op, {2, 3, 7}));
    all.push_back(GlobalPool(op, {2, 2, 3, 2, 4}));
  }
  all.push_back(BatchNorm({2, 3, 4, 5}));
  all.push_back(BatchNorm({2, 3}));
  return all;
}

}  // namespace testing
}  // namespace gcap
