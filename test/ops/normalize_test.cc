// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Softmax, its logarithm and layer normalization: numbers against loops over doubles, special values, in place, no
// elements, capture and replay, and bad input.

#include "gcap/kit/ops/normalize.h"

#include <functional>

#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

constexpr gcap_code_t kBad = GCAP_INVALID_ARGUMENT;

// Calls `visit(indices)` with the elements along `axis` for each index of the other axes.
void ForEachRow(const Shape& shape, size_t axis, const std::function<void(const std::vector<int64_t>&)>& visit) {
  Shape others = shape;
  others[axis] = 1;
  for (int64_t row = 0; row < Count(others); ++row) {
    Shape index = Unravel(row, others);
    std::vector<int64_t> indices;
    for (index[axis] = 0; index[axis] < shape[axis]; ++index[axis]) indices.push_back(Ravel(index, shape));
    visit(indices);
  }
}

class Softmax : public OpTest {
 protected:
  using Function = gcap_status_t (*)(gcap_stream_t*, const gcap_tensor_t*, int, const gcap_tensor_t*);

  Values Run(Function function, const DeviceTensor& x, int axis, size_t offset = 0) {
    const DeviceTensor y(x.type(), x.shape(), offset);
    const gcap_tensor_t xv = x.view(), yv = y.view();
    GCAP_EXPECT_OK(function(stream_, &xv, axis, &yv));
    Synchronize();
    return y.Get();
  }
};

// A difference x - max of at most 20 is off by 20 roundings of 2^-24 at most, and so is its exponential, which adds 4
// of its own (2 ulp): 24 in the numerator, 24 in the sum, and with the sum (12) and the quotient 61.
constexpr double kSoftmaxRoundings = 61;

void ExpectSoftmax(const Values& actual, const DeviceTensor& x, size_t axis) {
  const Values in = x.Get();
  Values expected(in.size());
  ForEachRow(x.shape(), axis, [&](const std::vector<int64_t>& row) {
    double largest = -kInf, sum = 0.0;
    for (int64_t i : row) largest = std::max(largest, in[i]);
    for (int64_t i : row) sum += std::exp(in[i] - largest);
    for (int64_t i : row) expected[i] = std::exp(in[i] - largest) / sum;
  });
  ExpectStored(x.type(), actual, expected, kSoftmaxRoundings);
}

// The logarithm of the sum is off by the sum's relative error (36), and by 2 of its own; the rest are roundings of
// numbers of at most 40.
void ExpectLogSoftmax(const Values& actual, const DeviceTensor& x, size_t axis) {
  const Values in = x.Get();
  ForEachRow(x.shape(), axis, [&](const std::vector<int64_t>& row) {
    double sum = 0.0;
    for (int64_t i : row) sum += std::exp(in[i]);
    for (int64_t i : row) {
      const double expected = in[i] - std::log(sum);
      const double stored = std::ldexp(std::fabs(expected), -FormatOf(x.type()).fraction_bits - 1);
      ASSERT_NEAR(actual[i], expected, stored + std::ldexp(38.0 + 2 * 40, -24)) << "element " << i;
    }
  });
}

// In [-10, 10), for each axis: rows for one thread, a warp and a block; along memory and across it.
TEST_F(Softmax, EqualsTheLoopForAllAxesAndTypes) {
  const Shape kShapes[] = {{1},       {5},          {3, 4, 5}, {2, 33, 7}, {32, 10},   {9, 1024},    {2, 1025},
                           {3, 5001}, {1500, 2, 3}, {7000, 3}, {3, 1, 4},  {1, 30000}, {130, 8, 130}};
  unsigned seed = 0;
  for (const Shape& shape : kShapes) {
    Draws draws(++seed);
    for (gcap_dtype_t type : kFloatTypes) {
      if (Count(shape) > 20000 && type != GCAP_DTYPE_F32) continue;  // only slow
      const DeviceTensor x(type, shape, draws.Elements(type, Count(shape), -10, 10), draws.Int(0, 3));
      for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << gcap_dtype_name(type) << ", x "
                                          << ToString(shape) << ", axis " << axis);
        ExpectSoftmax(Run(gcap_softmax, x, axis, draws.Int(0, 3)), x, axis);
        ExpectLogSoftmax(Run(gcap_log_softmax, x, axis - static_cast<int>(shape.size())), x, axis);
      }
    }
  }
}

// Values of one sign: their exponentials overflow or vanish unless the largest is subtracted.
TEST_F(Softmax, IsStableForLargeValues) {
  for (double base : {-3e38, -1000.0, 1000.0, 3e38}) {
    for (int64_t columns : {4, 2000}) {
      const DeviceTensor x(GCAP_DTYPE_F32, {columns}, Values(columns, base));
      ExpectStored(GCAP_DTYPE_F32, Run(gcap_softmax, x, 0), Values(columns, 1.0 / columns), 1);
      ExpectStored(GCAP_DTYPE_F32, Run(gcap_log_softmax, x, 0), Values(columns, -std::log(columns)), 2);
    }
  }
}

TEST_F(Softmax, NonFiniteRowsAreNaNAndStayApart) {
  for (int64_t columns : {3, 40, 1200}) {
    Values in(5 * columns, 1.0);
    in[0 * columns + 1] = kNan;
    in[1 * columns + 2] = kInf;
    std::fill(&in[2 * columns], &in[3 * columns], -kInf);
    in[3 * columns] = -kInf;  // row 3: one impossible class; row 4: plain
    Values expected(5 * columns, kNan);
    std::fill(&expected[3 * columns], &expected[4 * columns], 1.0 / static_cast<double>(columns - 1));
    expected[3 * columns] = 0.0;
    std::fill(&expected[4 * columns], &expected[4 * columns] + columns, 1.0 / static_cast<double>(columns));
    for (gcap_dtype_t type : kFloatTypes) {
      SCOPED_TRACE(::testing::Message() << columns << " columns of " << gcap_dtype_name(type));
      const DeviceTensor x(type, {5, columns}, in);
      ExpectStored(type, Run(gcap_softmax, x, 1), expected, 2);
      EXPECT_EQ(Run(gcap_log_softmax, x, 1)[3 * columns], -kInf);
    }
  }
}

TEST_F(Softmax, WorksInPlaceAndReplayReadsTheInputAgain) {
  for (const Shape& shape : {Shape{32, 10}, Shape{4, 1500}, Shape{1, 3, 20000}}) {
    Draws draws(3);
    DeviceTensor x(GCAP_DTYPE_F32, shape, draws.Elements(GCAP_DTYPE_F32, Count(shape), -10, 10));
    const gcap_tensor_t xv = x.view();
    Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_softmax(stream_, &xv, 1, &xv)); });
    EXPECT_EQ(graph.CountKernels(), 1u);
    for (int replay = 0; replay < 2; ++replay) {
      const DeviceTensor in(GCAP_DTYPE_F32, shape, draws.Elements(GCAP_DTYPE_F32, Count(shape), -10, 10));
      x.Set(in.Get());
      graph.Replay();
      ExpectSoftmax(x.Get(), in, 1);
    }
  }
}

TEST_F(Softmax, NoElementsLaunchNothing) {
  for (const Shape& shape : {Shape{0}, Shape{3, 0}, Shape{0, 3}}) {
    const gcap_tensor_t x = View(GCAP_DTYPE_F32, shape, nullptr);
    const Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_softmax(stream_, &x, 0, &x)); });
    EXPECT_EQ(graph.CountKernels(), 0u);
  }
}

TEST_F(Softmax, NamesTheBadArgument) {
  for (Function function : {gcap_softmax, gcap_log_softmax}) {
    gcap_tensor_t x = View(GCAP_DTYPE_F32, {2, 3}, reinterpret_cast<void*>(1 << 20));
    gcap_tensor_t y = View(GCAP_DTYPE_F32, {2, 3}, reinterpret_cast<void*>(2 << 20));
    GCAP_EXPECT_FAILS(function(nullptr, &x, 0, &y), kBad, "stream is NULL");
    GCAP_EXPECT_FAILS(function(stream_, nullptr, 0, &y), kBad, "x is NULL");
    GCAP_EXPECT_FAILS(function(stream_, &x, 0, nullptr), kBad, "y is NULL");
    GCAP_EXPECT_FAILS(function(stream_, &x, 2, &y), kBad, "axis is 2, allowed are -2..1");
    GCAP_EXPECT_FAILS(function(stream_, &x, -3, &y), kBad, "axis is -3, allowed are -2..1");
    y.dtype = GCAP_DTYPE_F16;
    GCAP_EXPECT_FAILS(function(stream_, &x, 0, &y), kBad, "y is f16, must be f32: the type of x");
    x.dtype = GCAP_DTYPE_I32;
    GCAP_EXPECT_FAILS(function(stream_, &x, 0, &y), kBad, "softmax is not defined for i32, allowed are f32, f16, bf16");
    x.dtype = y.dtype = GCAP_DTYPE_F32;
    y.shape[0] = 3;
    GCAP_EXPECT_FAILS(function(stream_, &x, 0, &y), kBad, "y is [3,3], must be [2,3]: the shape of x");
    y.shape[0] = 2, y.data = static_cast<char*>(x.data) + 8;
    GCAP_EXPECT_FAILS(function(stream_, &x, 0, &y), kBad, "y overlaps x");
    x.rank = y.rank = 0;
    GCAP_EXPECT_FAILS(function(stream_, &x, 0, &y), kBad, "axis is 0, but rank 0 has no axis");
    x.rank = 9;
    GCAP_EXPECT_FAILS(function(stream_, &x, 0, &y), kBad, "x.rank is 9");
    x.rank = 0, y.rank = 9;
    GCAP_EXPECT_FAILS(function(stream_, &x, 0, &y), kBad, "y.rank is 9");
  }
}

class LayerNorm : public OpTest {
 protected:
  static constexpr float kEpsilon = 1e-5f;

  gcap_status_t Issue(const gcap_tensor_t& x, int axis, float epsilon, const gcap_tensor_t& scale,
                      const gcap_tensor_t* bias, const gcap_tensor_t& y) {
    return gcap_layer_norm(stream_, &x, axis, epsilon, &scale, bias, &y, nullptr, nullptr);
  }
  Values Run(const DeviceTensor& x, int axis, const DeviceTensor& scale, const DeviceTensor* bias, size_t offset = 0) {
    const DeviceTensor y(x.type(), x.shape(), offset);
    const gcap_tensor_t bv = bias == nullptr ? gcap_tensor_t{} : bias->view();
    GCAP_EXPECT_OK(Issue(x.view(), axis, kEpsilon, scale.view(), bias == nullptr ? nullptr : &bv, y.view()));
    Synchronize();
    return y.Get();
  }
};

// In roundings of 2^-24 of the terms of the result. The mean of numbers of at most 4 is off by 4 * 14, x - mean by 8
// more: over the deviation (above 1 here) that is 64 for the quotient, an absolute error. Its relative error: the
// variance's 14 and twice that of the differences (64 at most, on average less), halved by the root, and 4 roundings.
// With |scale| and |bias| at most 2 the result is off by 2 * (64 + 4 * 75) + 2 at most, for quotients of at most 4.
constexpr double kLayerNormRoundings = 730;

void ExpectLayerNorm(const Values& actual, const DeviceTensor& x, int axis, const DeviceTensor& scale,
                     const DeviceTensor* bias, double epsilon) {
  const Values in = x.Get(), s = scale.Get(), b = bias == nullptr ? Values(s.size(), 0.0) : bias->Get();
  ASSERT_EQ(Count(Shape(x.shape().begin() + axis, x.shape().end())), static_cast<int64_t>(s.size()));
  for (size_t first = 0; first < in.size(); first += s.size()) {
    double mean = 0.0, variance = 0.0;
    for (size_t i = 0; i < s.size(); ++i) mean += in[first + i] / static_cast<double>(s.size());
    for (size_t i = 0; i < s.size(); ++i) variance += std::pow(in[first + i] - mean, 2) / static_cast<double>(s.size());
    for (size_t i = 0; i < s.size(); ++i) {
      const double expected = (in[first + i] - mean) / std::sqrt(variance + epsilon) * s[i] + b[i];
      const double stored = std::ldexp(std::fabs(expected), -FormatOf(x.type()).fraction_bits - 1);
      ASSERT_NEAR(actual[first + i], expected, stored + std::ldexp(kLayerNormRoundings, -24))
          << "element " << first + i;
    }
  }
}

TEST_F(LayerNorm, EqualsTheLoopForAllAxesAndTypes) {
  const Shape kShapes[] = {{16}, {3, 16, 5}, {32, 100}, {9, 1024}, {2, 1025}, {3, 5001}, {2500, 9}, {1, 30000}};
  unsigned seed = 0;
  for (const Shape& shape : kShapes) {
    Draws draws(++seed);
    for (gcap_dtype_t type : kFloatTypes) {
      const DeviceTensor x(type, shape, draws.Elements(type, Count(shape), -4, 4), draws.Int(0, 3));
      for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
        const Shape inner(shape.begin() + axis, shape.end());
        if (Count(inner) < 9) continue;  // a deviation that is by chance small makes large errors
        SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << gcap_dtype_name(type) << ", x "
                                          << ToString(shape) << ", axis " << axis);
        const DeviceTensor scale(type, inner, draws.Elements(type, Count(inner), -2, 2), draws.Int(0, 3));
        const DeviceTensor bias(type, inner, draws.Elements(type, Count(inner), -2, 2), draws.Int(0, 3));
        ExpectLayerNorm(Run(x, axis, scale, &bias, draws.Int(0, 3)), x, axis, scale, &bias, kEpsilon);
        ExpectLayerNorm(Run(x, axis - static_cast<int>(shape.size()), scale, nullptr), x, axis, scale, nullptr,
                        kEpsilon);
      }
    }
  }
}

// The mean of the squares less the square of the mean would be 0 here, in f32.
TEST_F(LayerNorm, KeepsSmallDifferencesOfLargeNumbers) {
  const DeviceTensor x(GCAP_DTYPE_F32, {1, 4}, {16384, 16385, 16386, 16387}), one(GCAP_DTYPE_F32, {4}, {1, 1, 1, 1});
  ExpectLayerNorm(Run(x, 1, one, nullptr), x, 1, one, nullptr, kEpsilon);
}

// Of equal elements the variance is 0: epsilon alone divides.
TEST_F(LayerNorm, OfEqualElementsIsTheBias) {
  const DeviceTensor x(GCAP_DTYPE_F16, {2, 3}, Values(6, 5.0)), scale(GCAP_DTYPE_F16, {3}, {1, 2, 3});
  const DeviceTensor bias(GCAP_DTYPE_F16, {3}, {-1, 0, 1});
  EXPECT_EQ(Run(x, 1, scale, &bias), (Values{-1, 0, 1, -1, 0, 1}));
}

TEST_F(LayerNorm, WorksInPlaceAndReplayReadsTheInputAgain) {
  Draws draws(5);
  for (int64_t columns : {20, 1500}) {
    DeviceTensor x(GCAP_DTYPE_F32, {4, columns}, Values(4 * columns, 1.0));
    const DeviceTensor scale(GCAP_DTYPE_F32, {columns}, draws.Elements(GCAP_DTYPE_F32, columns, -2, 2));
    const gcap_tensor_t xv = x.view(), sv = scale.view();
    Graph graph(stream_, [&] { GCAP_EXPECT_OK(Issue(xv, 1, kEpsilon, sv, nullptr, xv)); });
    EXPECT_EQ(graph.CountKernels(), 1u);
    const DeviceTensor in(GCAP_DTYPE_F32, {4, columns}, draws.Elements(GCAP_DTYPE_F32, 4 * columns, -4, 4));
    x.Set(in.Get());
    graph.Replay();
    ExpectLayerNorm(x.Get(), in, 1, scale, nullptr, kEpsilon);
  }
}

TEST_F(LayerNorm, NoElementsLaunchNothing) {
  const gcap_tensor_t x = View(GCAP_DTYPE_F32, {3, 0}, nullptr), scale = View(GCAP_DTYPE_F32, {0}, nullptr);
  const Graph graph(stream_, [&] { GCAP_EXPECT_OK(Issue(x, 1, 0.0f, scale, &scale, x)); });
  EXPECT_EQ(graph.CountKernels(), 0u);
}

// Rows for one thread, a warp and a block; with one of the two, and of y in the place of x.
TEST_F(LayerNorm, GivesMeanAndInverseDeviation) {
  Draws draws(6);
  for (const Shape& shape : {Shape{5, 7}, Shape{2, 3, 40}, Shape{2, 1500}}) {
    const size_t axis = shape.size() - 1;
    const int64_t columns = shape[axis];
    Shape rows = shape;
    rows[axis] = 1;
    for (gcap_dtype_t type : kFloatTypes) {
      SCOPED_TRACE(::testing::Message() << gcap_dtype_name(type) << ", x " << ToString(shape));
      const Values in = draws.Elements(type, Count(shape), -4, 4);
      const DeviceTensor x(type, shape, in), scale(type, {columns}, Values(columns, 1.0));
      const DeviceTensor mean(GCAP_DTYPE_F32, rows, 1), inverse(GCAP_DTYPE_F32, rows, 1), alone(GCAP_DTYPE_F32, rows);
      const gcap_tensor_t xv = x.view(), sv = scale.view(), mv = mean.view(), iv = inverse.view(), av = alone.view();
      const DeviceTensor y(type, shape);
      const gcap_tensor_t yv = y.view();
      GCAP_EXPECT_OK(gcap_layer_norm(stream_, &xv, -1, kEpsilon, &sv, nullptr, &yv, nullptr, &av));
      GCAP_EXPECT_OK(gcap_layer_norm(stream_, &xv, -1, kEpsilon, &sv, nullptr, &xv, &mv, &iv));
      Synchronize();
      EXPECT_EQ(x.Get(), y.Get());
      EXPECT_EQ(alone.Get(), inverse.Get());
      for (int64_t row = 0; row < Count(rows); ++row) {
        const double n = static_cast<double>(columns);
        double expected = 0.0, variance = 0.0;
        for (int64_t i = 0; i < columns; ++i) expected += in[row * columns + i] / n;
        for (int64_t i = 0; i < columns; ++i) variance += std::pow(in[row * columns + i] - expected, 2) / n;
        // As kLayerNormRoundings has it: the mean's error, and that of a deviation above 1, relative to it.
        ASSERT_NEAR(mean.Get()[row], expected, std::ldexp(4 * 14, -24)) << "row " << row;
        const double inverted = 1 / std::sqrt(variance + static_cast<double>(kEpsilon));
        ASSERT_NEAR(inverse.Get()[row], inverted, std::ldexp(75, -24) * inverted) << "row " << row;
      }
    }
  }
}

TEST_F(LayerNorm, EmptyRowsHaveNoMean) {
  const gcap_tensor_t x = View(GCAP_DTYPE_F32, {3, 0}, nullptr), scale = View(GCAP_DTYPE_F32, {0}, nullptr);
  const DeviceTensor mean(GCAP_DTYPE_F32, {3, 1}), inverse(GCAP_DTYPE_F32, {3, 1});
  const gcap_tensor_t mv = mean.view(), iv = inverse.view();
  GCAP_EXPECT_OK(gcap_layer_norm(stream_, &x, 1, kEpsilon, &scale, nullptr, &x, &mv, &iv));
  Synchronize();
  for (const Values& values : {mean.Get(), inverse.Get()}) {
    for (double value : values) EXPECT_TRUE(std::isnan(value)) << value;
  }
}

TEST_F(LayerNorm, NamesTheBadStatistic) {
  const auto at = [](int i) { return reinterpret_cast<void*>(static_cast<uintptr_t>(i) << 20); };
  const gcap_tensor_t x = View(GCAP_DTYPE_F16, {2, 3}, at(1)), y = View(GCAP_DTYPE_F16, {2, 3}, at(2));
  const gcap_tensor_t scale = View(GCAP_DTYPE_F16, {3}, at(3)), bias = View(GCAP_DTYPE_F16, {3}, at(4));
  const gcap_tensor_t good = View(GCAP_DTYPE_F32, {2, 1}, at(5));
  const auto run = [&](const gcap_tensor_t& mean, const gcap_tensor_t& inverse) {
    return gcap_layer_norm(stream_, &x, 1, 0.0f, &scale, &bias, &y, &mean, &inverse);
  };
  GCAP_EXPECT_FAILS(run(View(GCAP_DTYPE_F16, {2, 1}, at(6)), good), kBad,
                    "mean is f16, must be f32: it is of each row");
  GCAP_EXPECT_FAILS(run(good, View(GCAP_DTYPE_F32, {2}, at(6))), kBad, "inv_std_dev is [2], must be [2,1]");
  GCAP_EXPECT_FAILS(run(good, View(GCAP_DTYPE_F32, {2, 1}, nullptr)), kBad, "inv_std_dev.data is NULL");
  GCAP_EXPECT_FAILS(run(View(GCAP_DTYPE_F32, {2, 1}, at(1)), good), kBad, "mean overlaps x");
  GCAP_EXPECT_FAILS(run(good, View(GCAP_DTYPE_F32, {2, 1}, at(2))), kBad, "inv_std_dev overlaps y");
  GCAP_EXPECT_FAILS(run(View(GCAP_DTYPE_F32, {2, 1}, at(3)), good), kBad, "mean overlaps scale");
  GCAP_EXPECT_FAILS(run(good, View(GCAP_DTYPE_F32, {2, 1}, at(4))), kBad, "inv_std_dev overlaps bias");
  GCAP_EXPECT_FAILS(run(good, good), kBad, "mean overlaps inv_std_dev");
}

TEST_F(LayerNorm, NamesTheBadArgument) {
  gcap_tensor_t x = View(GCAP_DTYPE_F32, {2, 3}, reinterpret_cast<void*>(1 << 20));
  gcap_tensor_t y = View(GCAP_DTYPE_F32, {2, 3}, reinterpret_cast<void*>(2 << 20));
  gcap_tensor_t scale = View(GCAP_DTYPE_F32, {3}, reinterpret_cast<void*>(3 << 20)), bias = scale;
  const auto run = [&](int axis, float epsilon) { return Issue(x, axis, epsilon, scale, &bias, y); };
  GCAP_EXPECT_FAILS(gcap_layer_norm(nullptr, &x, 1, 0.0f, &scale, &bias, &y, nullptr, nullptr), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_layer_norm(stream_, nullptr, 1, 0.0f, &scale, &bias, &y, nullptr, nullptr), kBad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_layer_norm(stream_, &x, 1, 0.0f, nullptr, &bias, &y, nullptr, nullptr), kBad, "scale is NULL");
  GCAP_EXPECT_FAILS(gcap_layer_norm(stream_, &x, 1, 0.0f, &scale, &bias, nullptr, nullptr, nullptr), kBad, "y is NULL");
  GCAP_EXPECT_FAILS(run(2, 0.0f), kBad, "axis is 2, allowed are -2..1");
  GCAP_EXPECT_FAILS(run(1, -1.0f), kBad, "epsilon is -1, allowed are 0 and more");
  GCAP_EXPECT_FAILS(run(1, NAN), kBad, "epsilon is nan, allowed are 0 and more");
  GCAP_EXPECT_FAILS(run(0, 0.0f), kBad, "scale is [3], must be [2,3]: the shape of x from the axis on");
  bias.shape[0] = 4;
  GCAP_EXPECT_FAILS(run(1, 0.0f), kBad, "bias is [4], must be [3]");
  bias.shape[0] = 3, bias.dtype = GCAP_DTYPE_F16;
  GCAP_EXPECT_FAILS(run(1, 0.0f), kBad, "bias is f16, must be f32: the type of x");
  bias = scale, bias.data = y.data;
  GCAP_EXPECT_FAILS(run(1, 0.0f), kBad, "y overlaps bias");
  scale.rank = -1;
  GCAP_EXPECT_FAILS(run(1, 0.0f), kBad, "scale.rank is -1");
  x.dtype = y.dtype = GCAP_DTYPE_I64;
  GCAP_EXPECT_FAILS(run(1, 0.0f), kBad, "layer_norm is not defined for i64");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
