// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Resize and Upsample: each axis alone, from the last to the first, by the formulas of ONNX's documentation in double
// precision. No coordinate of a resize to the nearest element is close to one where another element is the nearest.

#include <algorithm>
#include <cmath>
#include <memory>

#include "test/nodes/cases.h"

namespace gcap {
namespace testing {
namespace {

// Coordinates up to 9 and the weights of up to 16 elements, in f32, by slopes up to 2.
constexpr double kResizeError = 2e-5;

struct Setup {
  std::string name;
  Shape x, y;
  std::string mode, coordinates = "half_pixel", nearest = "round_prefer_floor";
  Values scales = {};  // of each of `axes`; none: `sizes` are given
  Shape sizes = {};
  Shape axes = {};  // none: all
  double cubic_coeff = -0.75;
  bool exclude_outside = false;
  std::string policy = "";
  int opset = 13;  // 10: the old form; 11: with inputs that say nothing, which later ones leave out
  std::string op = "Resize";
  gcap_dtype_t type = kTyped;
};

double Coordinate(const Setup& s, double i, double scale, double input, double output) {
  const double halves = (i + 0.5) / scale - 0.5;
  if (s.coordinates == "asymmetric") return i / scale;
  if (s.coordinates == "tf_half_pixel_for_nn") return (i + 0.5) / scale;
  if (s.coordinates == "align_corners") return output == 1 ? 0 : i * (input - 1) / (scale * input - 1);
  if (s.coordinates == "pytorch_half_pixel") return output == 1 ? 0 : halves;
  if (s.coordinates == "half_pixel_symmetric") return input / 2 * (1 - output / (scale * input)) + halves;
  return halves;
}

double Nearest(const Setup& s, double x, double scale) {
  if (s.nearest == "simple") return scale < 1 ? std::ceil(x) : std::floor(x);
  if (s.nearest == "floor") return std::floor(x);
  if (s.nearest == "ceil") return std::ceil(x);
  return s.nearest == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5);
}

double Cubic(double a, double distance) {
  const double d = std::fabs(distance);
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

// How much each element along an axis counts for element `i`.
Values Weights(const Setup& s, int64_t i, double scale, int64_t input, int64_t output) {
  const double last = static_cast<double>(input - 1);
  const double x =
      Coordinate(s, static_cast<double>(i), scale, static_cast<double>(input), static_cast<double>(output));
  Values weights(static_cast<size_t>(input));
  const auto add = [&](double at, double weight) {
    weights[static_cast<size_t>(std::min(std::max(at, 0.0), last))] += weight;
  };
  if (s.mode == "nearest") add(Nearest(s, x, scale), 1);
  if (s.mode == "linear") add(std::floor(x), 1 - (x - std::floor(x)));
  if (s.mode == "linear") add(std::floor(x) + 1, x - std::floor(x));
  double sum = 0;
  for (double at = std::floor(x) - 1; s.mode == "cubic" && at <= std::floor(x) + 2; ++at) {
    if (s.exclude_outside && (at < 0 || at > last)) continue;
    sum += Cubic(s.cubic_coeff, at - x);
    add(at, Cubic(s.cubic_coeff, at - x));
  }
  for (double& weight : weights) weight /= s.exclude_outside ? sum : 1;
  return weights;
}

Elements ResizeAxis(const Setup& s, const Elements& x, size_t axis, double scale, int64_t size) {
  Elements y = {x.shape, {}};
  y.shape[axis] = size;
  y.at = Make(y.shape, [&](const Shape& index) {
    const Values weights = Weights(s, index[axis], scale, x.shape[axis], size);
    double sum = 0;
    Shape from = index;
    for (from[axis] = 0; from[axis] < x.shape[axis]; ++from[axis]) {
      sum += weights[static_cast<size_t>(from[axis])] * At(x, from);
    }
    return sum;
  });
  return y;
}

// The scale of each axis. Those of `sizes` follow from the shape of y.
Values ScalesOf(const Setup& s) {
  Values all(s.x.size(), 1);
  for (size_t i = 0; i < std::max(s.scales.size(), s.sizes.size()); ++i) {
    const size_t axis = s.axes.empty() ? i : static_cast<size_t>(s.axes[i] < 0 ? s.axes[i] + 4 : s.axes[i]);
    const double of_size = static_cast<double>(s.sizes.empty() ? 0 : s.sizes[i]) / static_cast<double>(s.x[axis]);
    all[axis] = s.scales.empty() ? of_size : s.scales[i];
  }
  if (s.policy == "not_smaller") {
    const double most = *std::max_element(all.begin() + 2, all.end());
    std::fill(all.begin() + 2, all.end(), most);
  }
  return all;
}

void AddAttributes(const Setup& s, Attributes* a) {
  a->String("mode", s.mode.c_str());
  if (s.opset < 11) return;
  a->String("coordinate_transformation_mode", s.coordinates.c_str()).String("nearest_mode", s.nearest.c_str());
  a->Float("cubic_coeff_a", static_cast<float>(s.cubic_coeff)).Int("exclude_outside", s.exclude_outside);
  if (!s.axes.empty()) a->Ints("axes", s.axes);
  if (!s.policy.empty()) a->String("keep_aspect_ratio_policy", s.policy.c_str());
}

NodeCase Resize(const Setup& setup) {
  // The strings of attributes live as long as the case.
  const auto kept = std::make_shared<const Setup>(setup);
  const Setup& s = *kept;
  const int64_t rank = static_cast<int64_t>(s.x.size()), count = static_cast<int64_t>(s.scales.size());
  NodeCase c;
  c.name = s.op + s.name;
  c.op_type = s.op;
  c.attributes = [kept](Attributes* a) { AddAttributes(*kept, a); };
  c.inputs = {{s.type, s.x}};
  // The region is read by a mode of coordinates that there is not.
  const Input left_out = {GCAP_DTYPE_F32, kLeftOut};
  if (s.opset == 11) c.inputs.push_back({GCAP_DTYPE_F32, {2 * rank}, 0, 0, Values(2 * s.x.size(), 0.25)});
  if (s.opset == 13) c.inputs.push_back(left_out);
  if (count > 0) c.inputs.push_back({GCAP_DTYPE_F32, {count}, 0, 0, s.scales});
  if (count == 0) {
    c.inputs.push_back(s.opset == 11 ? Input{GCAP_DTYPE_F32, {0}, 0, 0, {0}} : left_out);
    c.inputs.push_back(
        {GCAP_DTYPE_I64, {static_cast<int64_t>(s.sizes.size())}, 0, 0, Values(s.sizes.begin(), s.sizes.end())});
  }
  c.outputs = {{s.type, s.y}};
  c.reference = [kept](const Ins& in) -> std::vector<Values> {
    const Values scales = ScalesOf(*kept);
    Elements made = in[0];
    for (size_t axis = scales.size(); axis-- > 0;) {
      if (scales[axis] != 1) made = ResizeAxis(*kept, made, axis, scales[axis], kept->y[axis]);
    }
    return {made.at};
  };
  c.error = kResizeError;
  return c;
}

std::vector<Setup> ToTheNearest() {
  Setup by_scales = {"ToTheNearest", {1, 2, 3, 4}, {1, 2, 6, 12}, "nearest"};
  by_scales.scales = {1, 1, 2, 3};
  Setup by_sizes = {"ToTheNearestBySizes", {2, 2, 4, 6}, {2, 2, 7, 3}, "nearest", "asymmetric", "ceil"};
  by_sizes.sizes = {2, 2, 7, 3};
  by_sizes.opset = 11;
  Setup for_nn = {"ToTheNearestForNn", {2, 3, 5}, {2, 3, 4}, "nearest", "tf_half_pixel_for_nn", "floor"};
  for_nn.scales = {1, 1, 0.875};
  Setup ceil = {"ToTheNearestPreferCeil", {1, 1, 4, 4}, {1, 1, 2, 8}, "nearest", "asymmetric", "round_prefer_ceil"};
  ceil.scales = {1, 1, 0.5, 2};
  Setup ratio = {"KeepsTheRatio", {1, 2, 2, 4}, {1, 2, 6, 12}, "nearest"};
  ratio.axes = {-2, 3};
  ratio.sizes = {6, 8};
  ratio.policy = "not_smaller";
  Setup integers = by_scales;
  integers.name = "OfIntegers";
  integers.type = GCAP_DTYPE_I64;
  Setup old = {"OfOpset10", {1, 2, 5, 3}, {1, 2, 2, 6}, "nearest", "asymmetric", "simple"};
  old.scales = {1, 1, 0.4375, 2};
  old.opset = 10;
  Setup upsample = old;
  upsample.name = "";
  upsample.op = "Upsample";
  upsample.scales = {1, 1, 1.5, 2};
  upsample.y = {1, 2, 7, 6};
  return {by_scales, by_sizes, for_nn, ceil, ratio, integers, old, upsample};
}

std::vector<Setup> Interpolated() {
  Setup linear = {"Linear", {2, 2, 3, 4}, {2, 2, 6, 12}, "linear"};
  linear.scales = {1, 1, 2, 3};
  linear.opset = 11;
  Setup corners = {"LinearWithAlignedCorners", {1, 2, 4, 5}, {1, 2, 7, 3}, "linear", "align_corners"};
  corners.sizes = {1, 2, 7, 3};
  Setup cut = {"LinearWithCornersOfACutLength", {1, 1, 4}, {1, 1, 2}, "linear", "align_corners"};
  cut.scales = {1, 1, 0.625};
  Setup symmetric = {"LinearOfThreeAxes", {1, 2, 4, 3, 3}, {1, 2, 2, 5, 6}, "linear", "half_pixel_symmetric"};
  symmetric.scales = {1, 1, 0.625, 1.75, 2};
  Setup outer = {"LinearOfAnOuterAxis", {3, 2, 2, 2}, {7, 2, 2, 4}, "linear"};
  outer.scales = {2.5, 1, 1, 2};
  Setup upsample = {"Linear", {1, 2, 3, 2}, {1, 2, 6, 4}, "linear", "asymmetric"};
  upsample.scales = {1, 1, 2, 2};
  upsample.opset = 10;
  upsample.op = "Upsample";
  Setup cubic = {"Cubic", {1, 2, 4, 5}, {1, 2, 8, 4}, "cubic"};
  cubic.scales = {1, 1, 2, 0.8125};
  Setup inside = cubic;
  inside.name = "CubicOfTheInside";
  inside.exclude_outside = true;
  inside.cubic_coeff = -0.5;
  Setup point = {"CubicToOneElement", {2, 3, 5}, {2, 3, 1}, "cubic", "pytorch_half_pixel"};
  point.sizes = {2, 3, 1};
  return {linear, corners, cut, symmetric, outer, upsample, cubic, inside, point};
}

// --- GridSample -----------------------------------------------------------------------------------------------------

struct Grid {
  std::string name;
  Shape x, y;
  const char *mode, *padding;
  bool align_corners;
};

double Mirrored(double at, double low, double high) {
  if (high <= low) return low;
  while (at < low || at > high) at = at < low ? 2 * low - at : 2 * high - at;
  return at;
}

// The weight of an element at a distance from the place, up to its mode's reach.
double GridWeight(const std::string& mode, double distance) {
  const double d = std::fabs(distance), a = -0.75;
  if (mode == "nearest") return d == 0 ? 1 : 0;
  if (mode == "linear" || mode == "bilinear") return std::max(1 - d, 0.0);
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

double GridSampleAt(const Grid& g, const Ins& in, const Shape& i) {
  const size_t axes = g.x.size() - 2;
  const std::string mode = g.mode, padding = g.padding;
  Shape window(axes, 5);  // from two before the place to two behind it
  std::vector<double> place(axes);
  Shape at_grid = {i[0]};
  at_grid.insert(at_grid.end(), i.begin() + 2, i.end());
  for (size_t k = 0; k < axes; ++k) {
    Shape at = at_grid;
    at.push_back(static_cast<int64_t>(axes - 1 - k));
    const double size = static_cast<double>(g.x[2 + k]), n = At(in[1], at), edge = g.align_corners ? 0 : 0.5;
    double p = g.align_corners ? (n + 1) / 2 * (size - 1) : ((n + 1) * size - 1) / 2;
    if (mode == "nearest") p = std::nearbyint(p);
    if (padding == "border" && (p < -edge || p > size - 1 + edge)) p = std::min(std::max(p, 0.0), size - 1);
    if (padding == "reflection") p = Mirrored(p, -edge, size - 1 + edge);
    place[k] = p;
  }
  double sum = 0;
  for (int64_t tap = 0; tap < Count(window); ++tap) {
    const Shape step = Unravel(tap, window);
    Shape from = {i[0], i[1]};
    double weight = 1;
    bool inside = true;
    for (size_t k = 0; k < axes; ++k) {
      const int64_t size = g.x[2 + k], at = static_cast<int64_t>(std::floor(place[k])) + step[k] - 2;
      const double edge = g.align_corners ? 0 : 0.5;
      weight *= GridWeight(mode, place[k] - static_cast<double>(at));
      int64_t source = at;
      if (padding == "border") source = std::min(std::max<int64_t>(at, 0), size - 1);
      if (padding == "reflection") {
        source = static_cast<int64_t>(Mirrored(static_cast<double>(at), -edge, static_cast<double>(size) - 1 + edge));
      }
      inside = inside && source >= 0 && source < size;
      from.push_back(source);
    }
    if (inside && weight != 0) sum += weight * At(in[0], from);
  }
  return sum;
}

NodeCase GridSample(const Grid& g) {
  NodeCase c;
  c.op_type = "GridSample";
  c.name = c.op_type + g.name;
  c.attributes = [=](Attributes* a) {
    a->String("mode", g.mode).String("padding_mode", g.padding);
    if (g.align_corners) a->Int("align_corners", 1);
  };
  Shape grid = {g.y[0]};
  grid.insert(grid.end(), g.y.begin() + 2, g.y.end());
  grid.push_back(static_cast<int64_t>(g.y.size()) - 2);
  c.inputs = {{kTyped, g.x}, {kTyped, grid, -2.5, 2.5}};  // places inside and outside
  c.outputs = {{kTyped, g.y}};
  c.reference = [=](const Ins& in) -> std::vector<Values> {
    return {Make(g.y, [&](const Shape& i) { return GridSampleAt(g, in, i); })};
  };
  c.error = 1e-4;  // places are f32 up to 20, of which a cubic weight changes twice as much
  return c;
}

std::vector<NodeCase> GridSamples() {
  std::vector<NodeCase> all;
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const bool align : {false, true}) {
        const std::string name = std::string("By") + mode + "With" + padding + (align ? "OfCorners" : "");
        all.push_back(GridSample({name, {2, 3, 4, 5}, {2, 3, 6, 7}, mode, padding, align}));
      }
    }
  }
  all.push_back(GridSample({"OfOneAxis", {2, 2, 6}, {2, 2, 9}, "bilinear", "border", false}));
  all.push_back(GridSample({"OfThreeAxes", {1, 2, 3, 4, 2}, {1, 2, 2, 3, 4}, "linear", "zeros", true}));
  all.push_back(GridSample({"CubicOfThreeAxes", {1, 2, 3, 4, 3}, {1, 2, 2, 3, 2}, "cubic", "reflection", false}));
  all.push_back(GridSample({"OfOneElement", {1, 1, 1, 1}, {1, 1, 2, 3}, "bicubic", "reflection", true}));
  return all;
}

}  // namespace

std::vector<NodeCase> ResizeCases() {
  std::vector<NodeCase> all;
  for (const Setup& setup : ToTheNearest()) all.push_back(Resize(setup));
  for (const Setup& setup : Interpolated()) all.push_back(Resize(setup));
  for (const NodeCase& sampled : GridSamples()) all.push_back(sampled);
  return all;
}

}  // namespace testing
}  // namespace gcap
