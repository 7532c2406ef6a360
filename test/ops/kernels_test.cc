// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The ReLU and softmax kernels: numbers against loops, special values, in place, capture and replay, and bad input.

#include "gcap/ops/kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "test/ops/op_test.h"

namespace gcap {
namespace testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class Relu : public OpTest {};

std::vector<float> ReluReference(std::vector<float> x) {
  for (float& value : x) value = std::max(value, 0.0f);
  return x;
}

// Around the width of a vector, of a block's share, and beyond what the largest grid covers in one step.
constexpr size_t kCounts[] = {1, 2, 3, 4, 5, 1023, 1024, 1025, 4096 * 1024 + 7};

TEST_F(Relu, EqualsTheLoopForAllCountsAndAlignments) {
  for (size_t count : kCounts) {
    for (size_t x_offset : {0, 1}) {
      for (size_t y_offset : {0, 3}) {
        SCOPED_TRACE(::testing::Message() << count << " floats, offsets " << x_offset << " and " << y_offset);
        const std::vector<float> x = RandomFloats(count, 1);
        const DeviceFloats device_x(Behind(x_offset, x)), device_y(Behind(y_offset, std::vector<float>(count)));
        GCAP_ASSERT_OK(gcap_relu_f32(stream_, device_x.get() + x_offset, device_y.get() + y_offset, count));
        Synchronize();
        EXPECT_TRUE(Without(y_offset, device_y.Get()) == ReluReference(x));
        EXPECT_TRUE(Without(x_offset, device_x.Get()) == x);
      }
    }
  }
}

TEST_F(Relu, WritesNothingBehindTheEnd) {
  const DeviceFloats x(std::vector<float>(8, 1.0f)), y(std::vector<float>(8, -5.0f));
  GCAP_ASSERT_OK(gcap_relu_f32(stream_, x.get(), y.get(), 5));
  Synchronize();
  EXPECT_EQ(y.Get(), (std::vector<float>{1, 1, 1, 1, 1, -5, -5, -5}));
}

TEST_F(Relu, KeepsNaNAndPositiveInfinity) {
  const DeviceFloats x(std::vector<float>{kNaN, kInfinity, -kInfinity, -0.0f, -kNaN});
  GCAP_ASSERT_OK(gcap_relu_f32(stream_, x.get(), x.get(), 5));  // in place
  Synchronize();
  const std::vector<float> y = x.Get();
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[4]));
  EXPECT_EQ(y[1], kInfinity);
  EXPECT_EQ(y[2], 0.0f);
  EXPECT_EQ(y[3], 0.0f);
}

TEST_F(Relu, ReplayReadsTheInputAgain) {
  DeviceFloats x(RandomFloats(1000, 1)), y(RandomFloats(1000, 1));
  Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_relu_f32(stream_, x.get(), y.get(), 1000)); });
  EXPECT_EQ(graph.CountKernels(), 1u);
  for (unsigned seed : {2u, 3u}) {
    x.Set(RandomFloats(1000, seed));
    graph.Replay();
    EXPECT_EQ(y.Get(), ReluReference(RandomFloats(1000, seed)));
  }
}

TEST_F(Relu, NamesTheBadArgument) {
  const DeviceFloats x(std::vector<float>(4));
  const auto bad = GCAP_INVALID_ARGUMENT;
  GCAP_EXPECT_FAILS(gcap_relu_f32(nullptr, x.get(), x.get(), 4), bad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_relu_f32(stream_, nullptr, x.get(), 4), bad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_relu_f32(stream_, x.get(), nullptr, 4), bad, "y is NULL");
  GCAP_EXPECT_FAILS(gcap_relu_f32(stream_, x.get(), x.get(), 0), bad, "count is 0");
  GCAP_EXPECT_FAILS(gcap_relu_f32(stream_, x.get(), x.get(), (int64_t{1} << 40) + 1), bad, "count is 1099511627777");
}

class Softmax : public OpTest {};

struct Matrix {
  int64_t rows, cols;
};

std::vector<double> SoftmaxReference(const Matrix& m, const std::vector<float>& x) {
  std::vector<double> y(x.size());
  for (int64_t r = 0; r < m.rows; ++r) {
    const float* row = &x[r * m.cols];
    const double largest = *std::max_element(row, row + m.cols);
    double sum = 0.0;
    for (int64_t c = 0; c < m.cols; ++c) sum += std::exp(row[c] - largest);
    for (int64_t c = 0; c < m.cols; ++c) y[r * m.cols + c] = std::exp(row[c] - largest) / sum;
  }
  return y;
}

// The tolerance is relative, in roundings of 2^-24. A difference x - max of at most 20 is off by 20 of them at most,
// and so is its exponential, which adds 4 of its own: 24 in the numerator and 24 in the sum. A thread adds up 32
// values, or one in 512 of a long row; a tree of 14 steps and the quotient follow: 95 + cols / 512.
void ExpectSoftmax(const std::vector<float>& actual, const Matrix& m, const std::vector<float>& x) {
  const std::vector<double> expected = SoftmaxReference(m, x);
  const double tolerance = (95.0 + m.cols / 512) / (1 << 24);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * expected[i]) << "element " << i;
  }
}

// Values in [-10, 10).
std::vector<float> SoftmaxInput(const Matrix& m, unsigned seed) {
  std::vector<float> x = RandomFloats(m.rows * m.cols, seed);
  for (float& value : x) value *= 10.0f;
  return x;
}

// Around a warp, around the change from warps to blocks, many rows, the longest row.
constexpr Matrix kMatrices[] = {{1, 1},    {32, 10},  {3, 31},   {5, 32},    {7, 33},     {9, 1023},
                                {9, 1024}, {2, 1025}, {3, 5001}, {70000, 3}, {1, 1 << 20}};

TEST_F(Softmax, EqualsTheDoubleLoopForAllShapes) {
  for (const Matrix& m : kMatrices) {
    SCOPED_TRACE(::testing::Message() << m.rows << " x " << m.cols);
    const std::vector<float> x = SoftmaxInput(m, 1);
    const DeviceFloats device_x(x), device_y(x);
    GCAP_ASSERT_OK(gcap_softmax_f32(stream_, device_x.get(), device_y.get(), m.rows, m.cols));
    Synchronize();
    ExpectSoftmax(device_y.Get(), m, x);
    EXPECT_TRUE(device_x.Get() == x);
  }
}

TEST_F(Softmax, WorksInPlace) {
  for (const Matrix& m : {Matrix{9, 1000}, Matrix{9, 2000}}) {
    const std::vector<float> x = SoftmaxInput(m, 2);
    const DeviceFloats device_x(x);
    GCAP_ASSERT_OK(gcap_softmax_f32(stream_, device_x.get(), device_x.get(), m.rows, m.cols));
    Synchronize();
    ExpectSoftmax(device_x.Get(), m, x);
  }
}

// 2000 values of one sign: their exponentials overflow or vanish unless the maximum is subtracted.
TEST_F(Softmax, IsStableForLargeValues) {
  for (float base : {-3e38f, -1000.0f, 1000.0f, 3e38f}) {
    for (int64_t cols : {4, 2000}) {
      const DeviceFloats x(std::vector<float>(cols, base)), y(std::vector<float>(cols, base));
      GCAP_ASSERT_OK(gcap_softmax_f32(stream_, x.get(), y.get(), 1, cols));
      Synchronize();
      for (float value : y.Get()) ASSERT_NEAR(value, 1.0 / cols, 2e-7 / cols);  // exp(0) and small sums are exact
    }
  }
}

TEST_F(Softmax, NonFiniteRowsAreNaNAndStayApart) {
  for (int64_t cols : {3, 1200}) {
    std::vector<float> x(5 * cols, 1.0f);
    x[0 * cols + 1] = kNaN;
    x[1 * cols + 2] = kInfinity;
    std::fill(&x[2 * cols], &x[3 * cols], -kInfinity);
    x[3 * cols] = -kInfinity;  // row 3: one impossible class; row 4: plain
    const DeviceFloats device_x(x), device_y(x);
    GCAP_ASSERT_OK(gcap_softmax_f32(stream_, device_x.get(), device_y.get(), 5, cols));
    Synchronize();
    const std::vector<float> y = device_y.Get();
    for (int64_t c = 0; c < cols; ++c) {
      ASSERT_TRUE(std::isnan(y[c]) && std::isnan(y[cols + c]) && std::isnan(y[2 * cols + c])) << c;
      ASSERT_NEAR(y[3 * cols + c], c == 0 ? 0.0 : 1.0 / (cols - 1), 2e-7) << c;
      ASSERT_NEAR(y[4 * cols + c], 1.0 / cols, 2e-7) << c;
    }
  }
}

TEST_F(Softmax, ReplayReadsTheInputAgain) {
  for (const Matrix& m : {Matrix{32, 10}, Matrix{4, 1500}}) {
    DeviceFloats x(SoftmaxInput(m, 3)), y(SoftmaxInput(m, 3));
    Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_softmax_f32(stream_, x.get(), y.get(), m.rows, m.cols)); });
    EXPECT_EQ(graph.CountKernels(), 1u);
    for (unsigned seed : {4u, 5u}) {
      x.Set(SoftmaxInput(m, seed));
      graph.Replay();
      ExpectSoftmax(y.Get(), m, SoftmaxInput(m, seed));
    }
  }
}

TEST_F(Softmax, NamesTheBadArgument) {
  const DeviceFloats x(std::vector<float>(4));
  const auto bad = GCAP_INVALID_ARGUMENT;
  float* p = x.get();
  GCAP_EXPECT_FAILS(gcap_softmax_f32(nullptr, p, p, 2, 2), bad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_softmax_f32(stream_, nullptr, p, 2, 2), bad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_softmax_f32(stream_, p, nullptr, 2, 2), bad, "y is NULL");
  GCAP_EXPECT_FAILS(gcap_softmax_f32(stream_, p, p, 0, 2), bad, "rows is 0");
  GCAP_EXPECT_FAILS(gcap_softmax_f32(stream_, p, p, int64_t{1} << 31, 2), bad, "rows is 2147483648");
  GCAP_EXPECT_FAILS(gcap_softmax_f32(stream_, p, p, 2, -1), bad, "cols is -1");
  GCAP_EXPECT_FAILS(gcap_softmax_f32(stream_, p, p, 2, (1 << 20) + 1), bad, "cols is 1048577");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
