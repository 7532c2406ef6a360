// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Padding, fills and ranges: against loops over indices, for random shapes of all types, at odd addresses; no elements,
// capture and replay, what is refused.

#include "ops/kernels/pad.h"

#include <algorithm>
#include <functional>

#include "ops/kernels/range.h"
#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

constexpr unsigned kSeeds = 8;
constexpr gcap_code_t kBad = GCAP_INVALID_ARGUMENT;
constexpr gcap_pad_mode_t kModes[] = {GCAP_PAD_CONSTANT, GCAP_PAD_REFLECT, GCAP_PAD_EDGE, GCAP_PAD_WRAP};

// One axis: from the elements before `begin` and behind the last one, step by step into x.
struct Axis {
  int64_t size, begin, end;

  int64_t Left() const { return size + std::min<int64_t>(begin, 0) + std::min<int64_t>(end, 0); }
  int64_t From(gcap_pad_mode_t mode, int64_t i) const {
    i -= std::max<int64_t>(begin, 0);
    const int64_t left = Left(), first = std::max<int64_t>(-begin, 0);
    if (mode == GCAP_PAD_CONSTANT && (i < 0 || i >= left)) return -1;
    if (mode == GCAP_PAD_EDGE) i = std::min(std::max<int64_t>(i, 0), left - 1);
    while (mode == GCAP_PAD_WRAP && i < 0) i += left;
    while (mode == GCAP_PAD_WRAP && i >= left) i -= left;
    if (mode == GCAP_PAD_REFLECT && i < 0) i = -i;
    if (mode == GCAP_PAD_REFLECT && i >= left) i = left - 1 - (i - (left - 1));
    return first + i;
  }
};

// An axis that the mode can pad; every third one is whole, so that neighbours move together.
Axis DrawAxis(Draws* draws, gcap_pad_mode_t mode) {
  Axis axis = {draws->Int(1, 6), 0, 0};
  if (draws->Int(0, 2) == 0) axis.size *= 4;
  if (draws->Int(0, 2) == 0) return axis;
  axis.begin = draws->Int(-1, 3);
  axis.end = draws->Int(-1, 3);
  if (mode == GCAP_PAD_CONSTANT && axis.size + axis.begin + axis.end >= 0) return axis;
  const bool fits = axis.Left() >= 1 && (mode != GCAP_PAD_REFLECT || std::max(axis.begin, axis.end) < axis.Left());
  if (!fits) axis.begin = axis.end = 0;
  return axis;
}

class Pad : public OpTest {
 protected:
  void ExpectPadded(gcap_dtype_t type, gcap_pad_mode_t mode, unsigned seed) {
    Draws draws(seed);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << gcap_dtype_name(type) << ", mode " << mode);
    std::vector<Axis> axes(draws.Int(0, 4));
    Shape shape, padded, begins;
    for (Axis& axis : axes) {
      axis = DrawAxis(&draws, mode);
      shape.push_back(axis.size);
      padded.push_back(axis.size + axis.begin + axis.end);
      begins.push_back(axis.begin);
    }
    const DeviceTensor x(type, shape, draws.Elements(type, Count(shape), -99, 99), draws.Int(0, 2));
    const DeviceTensor y(type, padded, draws.Int(0, 2));
    const double value = type == GCAP_DTYPE_BOOL ? 1 : 5;
    unsigned char bytes[8];
    Put(type, bytes, value);
    const gcap_tensor_t xv = x.view(), yv = y.view();
    GCAP_ASSERT_OK(gcap_pad(stream_, &xv, begins.data(), mode, bytes, &yv));
    Synchronize();
    const Values from = x.Get(), made = y.Get();
    for (size_t i = 0; i < made.size(); ++i) {
      Shape index = Unravel(static_cast<int64_t>(i), padded);
      bool is_value = false;
      for (size_t k = 0; k < index.size(); ++k) {
        index[k] = axes[k].From(mode, index[k]);
        is_value |= index[k] < 0;
      }
      ASSERT_EQ(made[i], is_value ? value : from[static_cast<size_t>(Ravel(index, shape))]) << "element " << i;
    }
  }
  // A tensor at the `i`th of places that are far apart.
  static gcap_tensor_t At(uintptr_t i, const Shape& shape, gcap_dtype_t type = GCAP_DTYPE_F32) {
    return View(type, shape, reinterpret_cast<void*>((i + 1) << 20));
  }
};

TEST_F(Pad, EqualsTheLoopForRandomPadsOfAllTypes) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    for (gcap_dtype_t type : kAllTypes) {
      for (gcap_pad_mode_t mode : kModes) ExpectPadded(type, mode, seed);
    }
  }
}

TEST_F(Pad, ReplayReadsTheInputAgainAndNoElementsLaunchNothing) {
  DeviceTensor x(GCAP_DTYPE_F32, {2}, {1, 2}), y(GCAP_DTYPE_F32, {4});
  const gcap_tensor_t xv = x.view(), yv = y.view();
  const int64_t begin = 1;
  const float value = 9;
  Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_pad(stream_, &xv, &begin, GCAP_PAD_CONSTANT, &value, &yv)); });
  EXPECT_EQ(graph.CountKernels(), 1u);
  x.Set({5, 6});
  graph.Replay();
  EXPECT_EQ(y.Get(), (Values{9, 5, 6, 9}));
  const gcap_tensor_t none = View(GCAP_DTYPE_F32, {0}, nullptr);
  const int64_t all = -2;
  const Graph empty(stream_, [&] {
    GCAP_EXPECT_OK(gcap_pad(stream_, &xv, &all, GCAP_PAD_CONSTANT, &value, &none));
    GCAP_EXPECT_OK(gcap_fill(stream_, &value, &none));
    GCAP_EXPECT_OK(gcap_range(stream_, &value, &value, &none));
  });
  EXPECT_EQ(empty.CountKernels(), 0u);
}

// Padding far beyond x, and x far before and behind what is shown of it.
TEST_F(Pad, ShowsNothingOfAnInputThatLiesElsewhere) {
  const DeviceTensor x(GCAP_DTYPE_I32, {2, 2}, {1, 2, 3, 4}), y(GCAP_DTYPE_I32, {2, 2});
  const gcap_tensor_t xv = x.view(), yv = y.view();
  const int32_t value = 7;
  for (const int64_t begin : {int64_t{2}, int64_t{-2}, INT64_MAX / 2, INT64_MIN / 2}) {
    const int64_t begins[] = {begin, 0};
    GCAP_EXPECT_OK(gcap_pad(stream_, &xv, begins, GCAP_PAD_CONSTANT, &value, &yv));
    Synchronize();
    EXPECT_EQ(y.Get(), Values(4, 7.0)) << begin;
  }
}

TEST_F(Pad, RefusesWhatItCannotPad) {
  gcap_tensor_t x = At(0, {2, 3}), y = At(1, {4, 3});
  const int64_t begins[] = {1, 0}, cropped[] = {-2, 0}, far[] = {0, 0};
  const float value = 0;
  GCAP_EXPECT_FAILS(gcap_pad(nullptr, &x, begins, GCAP_PAD_EDGE, &value, &y), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_pad(stream_, nullptr, begins, GCAP_PAD_EDGE, &value, &y), kBad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_pad(stream_, &x, nullptr, GCAP_PAD_EDGE, &value, &y), kBad, "begins is NULL");
  GCAP_EXPECT_FAILS(gcap_pad(stream_, &x, begins, GCAP_PAD_EDGE, &value, nullptr), kBad, "y is NULL");
  GCAP_EXPECT_FAILS(gcap_pad(stream_, &x, begins, GCAP_PAD_CONSTANT, nullptr, &y), kBad, "value is NULL");
  GCAP_EXPECT_FAILS(gcap_pad(stream_, &x, cropped, GCAP_PAD_WRAP, nullptr, &y), kBad,
                    "nothing is left of the 2 elements of axis 0 of x");
  GCAP_EXPECT_FAILS(gcap_pad(stream_, &x, far, GCAP_PAD_REFLECT, nullptr, &y), kBad,
                    "2 elements of padding on axis 0 mirror x, allowed are 1 of what is left");
  y.dtype = GCAP_DTYPE_I32;
  GCAP_EXPECT_FAILS(gcap_pad(stream_, &x, begins, GCAP_PAD_EDGE, &value, &y), kBad, "y is i32, must be f32");
  y = At(1, {4, 3, 1});
  GCAP_EXPECT_FAILS(gcap_pad(stream_, &x, begins, GCAP_PAD_EDGE, &value, &y), kBad, "y.rank is 3, must be 2");
  y = At(0, {4, 3});
  GCAP_EXPECT_FAILS(gcap_pad(stream_, &x, begins, GCAP_PAD_EDGE, &value, &y), kBad, "y overlaps x");
}

TEST_F(Pad, FillsWithOneElement) {
  for (gcap_dtype_t type : kAllTypes) {
    for (const int64_t count : {1, 3, 16, 64}) {
      for (const size_t offset : {0, 1}) {
        const DeviceTensor y(type, {count}, Values(static_cast<size_t>(count), 0.0), offset);
        const gcap_tensor_t view = y.view();
        unsigned char bytes[8];
        Put(type, bytes, 1.0);
        GCAP_EXPECT_OK(gcap_fill(stream_, bytes, &view));
        Synchronize();
        EXPECT_EQ(y.Get(), Values(static_cast<size_t>(count), 1.0)) << gcap_dtype_name(type) << ' ' << count;
      }
    }
  }
  const gcap_tensor_t y = At(0, {2});
  const float value = 0;
  GCAP_EXPECT_FAILS(gcap_fill(nullptr, &value, &y), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_fill(stream_, nullptr, &y), kBad, "value is NULL");
  GCAP_EXPECT_FAILS(gcap_fill(stream_, &value, nullptr), kBad, "y is NULL");
}

TEST_F(Pad, ARangeIsRoundedOnceAndWraps) {
  const DeviceTensor floats(GCAP_DTYPE_F32, {3000}, 1), narrow(GCAP_DTYPE_I32, {3}), wide(GCAP_DTYPE_I64, {3});
  const gcap_tensor_t fv = floats.view(), nv = narrow.view(), wv = wide.view();
  const float start = 0.1f, delta = 0.3f;
  const int32_t last = INT32_MAX, two = 2;
  const int64_t first = INT64_MIN, back = -1;
  GCAP_EXPECT_OK(gcap_range(stream_, &start, &delta, &fv));
  GCAP_EXPECT_OK(gcap_range(stream_, &last, &two, &nv));
  GCAP_EXPECT_OK(gcap_range(stream_, &first, &back, &wv));
  Synchronize();
  const Values made = floats.Get();
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(made[i], static_cast<float>(double{start} + i * double{delta})) << i;
  EXPECT_EQ(narrow.Get(), (Values{2147483647.0, -2147483647.0, -2147483645.0}));
  EXPECT_EQ(wide.Get()[1], 0x1p63);  // as a double, INT64_MAX
  const gcap_tensor_t half = View(GCAP_DTYPE_F16, {3}, nv.data);
  GCAP_EXPECT_FAILS(gcap_range(nullptr, &start, &delta, &fv), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_range(stream_, nullptr, &delta, &fv), kBad, "start is NULL");
  GCAP_EXPECT_FAILS(gcap_range(stream_, &start, nullptr, &fv), kBad, "delta is NULL");
  GCAP_EXPECT_FAILS(gcap_range(stream_, &start, &delta, nullptr), kBad, "y is NULL");
  GCAP_EXPECT_FAILS(gcap_range(stream_, &start, &delta, &half), kBad, "a range");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
