// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Triangles, one-hot vectors, reversed sequences and running sums: at odd addresses and of all types against loops, no
// elements, what is refused.

#include "ops/kernels/arrange.h"

#include <functional>

#include "ops/kernels/cum_sum.h"
#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

constexpr gcap_code_t kBad = GCAP_INVALID_ARGUMENT;

class Arrange : public OpTest {
 protected:
  // A tensor at the `i`th of places that are far apart.
  static gcap_tensor_t At(uintptr_t i, const Shape& shape, gcap_dtype_t type = GCAP_DTYPE_F32) {
    return View(type, shape, reinterpret_cast<void*>((i + 1) << 20));
  }
  // Whether `issue` writes for each element what `expected` says of its index.
  void Expect(gcap_dtype_t type, const Shape& shape, const std::function<double(const Shape&)>& expected,
              const std::function<gcap_status_t(const gcap_tensor_t*)>& issue) {
    const DeviceTensor y(type, shape, /*offset=*/1);
    const gcap_tensor_t view = y.view();
    GCAP_ASSERT_OK(issue(&view));
    Synchronize();
    const Values made = y.Get();
    for (size_t i = 0; i < made.size(); ++i) {
      ASSERT_EQ(made[i], expected(Unravel(static_cast<int64_t>(i), shape))) << gcap_dtype_name(type) << " at " << i;
    }
  }
};

TEST_F(Arrange, TrianglesOfAllTypes) {
  const Shape shape = {2, 4, 3};
  for (gcap_dtype_t type : kAllTypes) {
    const DeviceTensor x(type, shape, Draws(1).Elements(type, 24, 1, 99), 1);
    const gcap_tensor_t xv = x.view();
    const Values from = x.Get();
    for (const int64_t k : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{1}, INT64_MAX}) {
      const auto at = [&](const Shape& i) { return from[static_cast<size_t>(Ravel(i, shape))]; };
      Expect(
          type, shape, [&](const Shape& i) { return i[2] - i[1] >= k ? at(i) : 0.0; },
          [&](const gcap_tensor_t* y) { return gcap_triangle(stream_, GCAP_TRIANGLE_UPPER, k, &xv, nullptr, y); });
      Expect(
          type, shape, [&](const Shape& i) { return i[2] - i[1] <= k ? at(i) : 0.0; },
          [&](const gcap_tensor_t* y) { return gcap_triangle(stream_, GCAP_TRIANGLE_LOWER, k, &xv, nullptr, y); });
      unsigned char one[8];
      Put(type, one, 1.0);
      Expect(
          type, shape, [&](const Shape& i) { return i[2] - i[1] == k ? 1.0 : 0.0; },
          [&](const gcap_tensor_t* y) { return gcap_triangle(stream_, GCAP_TRIANGLE_DIAGONAL, k, nullptr, one, y); });
    }
  }
}

// NaN and what no integer holds are nowhere, or where a conversion that saturates puts them: outside.
TEST_F(Arrange, OneHotOfFloatsThatAreNoIndices) {
  const DeviceTensor indices(GCAP_DTYPE_F32, {4}, {1e30, -1e30, 2.75, -0.5}), values(GCAP_DTYPE_I32, {2}, {-1, 7});
  const gcap_tensor_t iv = indices.view(), vv = values.view();
  Expect(
      GCAP_DTYPE_I32, {4, 3},
      [](const Shape& i) { return (i[0] == 2 && i[1] == 2) || (i[0] == 3 && i[1] == 0) ? 7.0 : -1.0; },
      [&](const gcap_tensor_t* y) { return gcap_one_hot(stream_, &iv, &vv, 1, y); });
}

TEST_F(Arrange, ReversesSequencesOfAllTypes) {
  for (gcap_dtype_t type : kAllTypes) {
    for (const int64_t inner : {1, 3, 16}) {
      const Shape shape = {3, 2, inner};
      const DeviceTensor x(type, shape, Draws(2).Elements(type, Count(shape), -99, 99));
      const DeviceTensor lengths(GCAP_DTYPE_I64, {2}, {3, 2});
      const gcap_tensor_t xv = x.view(), lv = lengths.view();
      const Values from = x.Get();
      Expect(
          type, shape,
          [&](Shape i) {
            const int64_t length = i[1] == 0 ? 3 : 2;
            if (i[0] < length) i[0] = length - 1 - i[0];
            return from[static_cast<size_t>(Ravel(i, shape))];
          },
          [&](const gcap_tensor_t* y) { return gcap_reverse_sequence(stream_, &xv, &lv, 0, y); });
    }
  }
}

// 2^24 and then ones: a sum in f32 would stand still.
TEST_F(Arrange, ARunningSumOfFloatsKeepsWhatASumInItsTypeLoses) {
  Values numbers(100, 1.0);
  numbers[0] = 16777216.0;
  const DeviceTensor x(GCAP_DTYPE_F32, {100}, numbers);
  const gcap_tensor_t xv = x.view();
  Expect(
      GCAP_DTYPE_F32, {100},
      [](const Shape& i) { return Round(GCAP_DTYPE_F32, 16777216.0 + static_cast<double>(i[0])); },
      [&](const gcap_tensor_t* y) { return gcap_cum_sum(stream_, &xv, 0, false, false, y); });
}

TEST_F(Arrange, NoElementsLaunchNothing) {
  const gcap_tensor_t none = View(GCAP_DTYPE_F32, {0, 3}, nullptr), counted = At(2, {3}, GCAP_DTYPE_I64);
  const gcap_tensor_t indices = View(GCAP_DTYPE_I64, {0}, nullptr), some = At(1, {2});
  const Graph empty(stream_, [&] {
    GCAP_EXPECT_OK(gcap_triangle(stream_, GCAP_TRIANGLE_UPPER, 0, &none, nullptr, &none));
    GCAP_EXPECT_OK(gcap_one_hot(stream_, &indices, &some, 1, &none));
    GCAP_EXPECT_OK(gcap_reverse_sequence(stream_, &none, &counted, 0, &none));
    GCAP_EXPECT_OK(gcap_cum_sum(stream_, &none, 1, false, false, &none));
  });
  EXPECT_EQ(empty.CountKernels(), 0u);
}

TEST_F(Arrange, RefusesWhatItDoesNotTake) {
  const gcap_tensor_t x = At(0, {2, 3}), y = At(1, {2, 3}), row = At(2, {3}), wide = At(3, {3}, GCAP_DTYPE_I64);
  const gcap_tensor_t two = At(4, {2}), matrix = At(5, {2}, GCAP_DTYPE_BOOL), half = At(6, {2}, GCAP_DTYPE_F16);
  const float one = 1;
  GCAP_EXPECT_FAILS(gcap_triangle(nullptr, GCAP_TRIANGLE_UPPER, 0, &x, nullptr, &y), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_triangle(stream_, GCAP_TRIANGLE_UPPER, 0, nullptr, nullptr, &y), kBad, "value is NULL");
  GCAP_EXPECT_FAILS(gcap_triangle(stream_, GCAP_TRIANGLE_UPPER, 0, &x, nullptr, nullptr), kBad, "y is NULL");
  GCAP_EXPECT_FAILS(gcap_triangle(stream_, GCAP_TRIANGLE_UPPER, 0, nullptr, &one, &row), kBad, "y.rank is 1");
  GCAP_EXPECT_FAILS(gcap_triangle(stream_, GCAP_TRIANGLE_UPPER, 0, &row, nullptr, &y), kBad, "y is [2,3], must be [3]");
  GCAP_EXPECT_FAILS(gcap_triangle(stream_, GCAP_TRIANGLE_UPPER, 0, &x, nullptr, &x), kBad, "y overlaps x");
  GCAP_EXPECT_FAILS(gcap_one_hot(nullptr, &two, &two, 1, &y), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_one_hot(stream_, nullptr, &two, 1, &y), kBad, "indices is NULL");
  GCAP_EXPECT_FAILS(gcap_one_hot(stream_, &two, nullptr, 1, &y), kBad, "values is NULL");
  GCAP_EXPECT_FAILS(gcap_one_hot(stream_, &two, &two, 1, nullptr), kBad, "y is NULL");
  GCAP_EXPECT_FAILS(gcap_one_hot(stream_, &matrix, &two, 1, &y), kBad, "one-hot of indices");
  GCAP_EXPECT_FAILS(gcap_one_hot(stream_, &two, &half, 1, &y), kBad, "values is f16, must be f32");
  GCAP_EXPECT_FAILS(gcap_one_hot(stream_, &two, &row, 1, &y), kBad, "values is [3], must be [2]");
  GCAP_EXPECT_FAILS(gcap_one_hot(stream_, &row, &two, 1, &y), kBad, "indices is [3], must be [2]");
  GCAP_EXPECT_FAILS(gcap_one_hot(stream_, &two, &two, 2, &y), kBad, "axis is 2, allowed are -2..1");
  GCAP_EXPECT_FAILS(gcap_reverse_sequence(nullptr, &x, &wide, 0, &y), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_reverse_sequence(stream_, nullptr, &wide, 0, &y), kBad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_reverse_sequence(stream_, &x, nullptr, 0, &y), kBad, "lengths is NULL");
  GCAP_EXPECT_FAILS(gcap_reverse_sequence(stream_, &x, &wide, 0, nullptr), kBad, "y is NULL");
  GCAP_EXPECT_FAILS(gcap_reverse_sequence(stream_, &x, &wide, 2, &y), kBad, "time_axis is 2, allowed are -2..1");
  GCAP_EXPECT_FAILS(gcap_reverse_sequence(stream_, &x, &row, 0, &y), kBad, "lengths is f32, must be i64");
  GCAP_EXPECT_FAILS(gcap_reverse_sequence(stream_, &x, &wide, 1, &y), kBad, "lengths is [3], must be [2]");
  GCAP_EXPECT_FAILS(gcap_cum_sum(nullptr, &x, 0, false, false, &y), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_cum_sum(stream_, nullptr, 0, false, false, &y), kBad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_cum_sum(stream_, &x, 0, false, false, nullptr), kBad, "y is NULL");
  GCAP_EXPECT_FAILS(gcap_cum_sum(stream_, &x, -3, false, false, &y), kBad, "axis is -3, allowed are -2..1");
  GCAP_EXPECT_FAILS(gcap_cum_sum(stream_, &matrix, 0, false, false, &matrix), kBad, "a running sum");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
