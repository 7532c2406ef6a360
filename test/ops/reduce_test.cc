// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reductions: numbers against loops over doubles for random axes, long sums, special values, no elements, capture and
// replay, and bad input.

#include "gcap/kit/ops/reduce.h"

#include <set>

#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

constexpr gcap_reduce_op_t kOps[] = {GCAP_REDUCE_SUM, GCAP_REDUCE_MEAN,       GCAP_REDUCE_MAX,
                                     GCAP_REDUCE_MIN, GCAP_REDUCE_PROD,       GCAP_REDUCE_L1,
                                     GCAP_REDUCE_L2,  GCAP_REDUCE_SUM_SQUARE, GCAP_REDUCE_LOG_SUM};

bool IsDefined(gcap_reduce_op_t op, gcap_dtype_t type) {
  if (type == GCAP_DTYPE_I8 || type == GCAP_DTYPE_U8) return false;
  if (type == GCAP_DTYPE_BOOL) return op == GCAP_REDUCE_MAX || op == GCAP_REDUCE_MIN;
  return IsFloat(type) || (op != GCAP_REDUCE_L2 && op != GCAP_REDUCE_LOG_SUM);
}

bool SumsSquares(gcap_reduce_op_t op) { return op == GCAP_REDUCE_L2 || op == GCAP_REDUCE_SUM_SQUARE; }

using Axes = std::vector<int64_t>;

class Reduce : public OpTest {
 protected:
  Values Run(gcap_reduce_op_t op, const DeviceTensor& x, const Axes& axes, const Shape& y_shape, size_t offset = 0) {
    const DeviceTensor y(x.type(), y_shape, offset);
    const gcap_tensor_t xv = x.view(), yv = y.view();
    GCAP_EXPECT_OK(gcap_reduce(stream_, op, &xv, axes.data(), static_cast<int>(axes.size()), &yv));
    Synchronize();
    return y.Get();
  }
  // Of a list, over its only axis.
  double Run(gcap_reduce_op_t op, gcap_dtype_t type, const Values& x) {
    return Run(op, DeviceTensor(type, {static_cast<int64_t>(x.size())}, x), {0}, {})[0];
  }
};

bool Reduces(const Axes& axes, size_t axis, size_t rank) {
  return std::count(axes.begin(), axes.end(), static_cast<int64_t>(axis)) +
             std::count(axes.begin(), axes.end(), static_cast<int64_t>(axis) - static_cast<int64_t>(rank)) >
         0;
}

// The shape of the output, whose reduced axes are 1 or gone.
Shape Reduced(const Shape& shape, const Axes& axes, bool keep) {
  Shape reduced;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (!Reduces(axes, axis, shape.size())) reduced.push_back(shape[axis]);
    if (Reduces(axes, axis, shape.size()) && keep) reduced.push_back(1);
  }
  return reduced;
}

struct Exact {
  Values values;
  Values magnitudes;  // the sum of the terms' magnitudes
  int64_t terms;
};

Exact Reference(gcap_reduce_op_t op, gcap_dtype_t type, const Values& x, const Shape& shape, const Axes& axes) {
  const Shape y_shape = Reduced(shape, axes, /*keep=*/true);
  const double start = op == GCAP_REDUCE_MAX    ? -kInf
                       : op == GCAP_REDUCE_MIN  ? kInf
                       : op == GCAP_REDUCE_PROD ? 1.0
                                                : 0.0;
  Exact y = {Values(Count(y_shape), start), Values(Count(y_shape)), Count(shape) / Count(y_shape)};
  for (size_t i = 0; i < x.size(); ++i) {
    Shape index = Unravel(static_cast<int64_t>(i), shape);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (y_shape[axis] == 1) index[axis] = 0;
    }
    const int64_t at = Ravel(index, y_shape);
    double& value = y.values[at];
    y.magnitudes[at] += std::fabs(x[i]);
    if (op == GCAP_REDUCE_SUM || op == GCAP_REDUCE_MEAN || op == GCAP_REDUCE_LOG_SUM) value += x[i];
    if (op == GCAP_REDUCE_L1) value += std::fabs(x[i]);
    if (SumsSquares(op)) value += x[i] * x[i];
    if (op == GCAP_REDUCE_MAX) value = std::max(value, x[i]);
    if (op == GCAP_REDUCE_MIN) value = std::min(value, x[i]);
    if (op == GCAP_REDUCE_PROD) value *= x[i];
  }
  for (double& value : y.values) {
    if (op == GCAP_REDUCE_MEAN) value /= static_cast<double>(y.terms);
    if (op == GCAP_REDUCE_L2) value = std::sqrt(value);
    if (op == GCAP_REDUCE_LOG_SUM) value = std::log(value);
    if (!IsFloat(type)) value = std::trunc(value);
  }
  return y;
}

// A sum is off by what the header says, a mean by one rounding more; a product by one rounding for each factor;
// extremes are exact. A square has one rounding, and the terms of all but sums and means have one sign: 13 of a sum of
// squares, and half of these and one of its root. The logarithm is 12 off, and 2 of its own, of at least log(2), in
// f32. Then the result is rounded to its type.
void ExpectReduced(gcap_reduce_op_t op, gcap_dtype_t type, const Values& actual, const Exact& exact) {
  if (IsFloat(type) && (op == GCAP_REDUCE_L1 || SumsSquares(op))) return ExpectStored(type, actual, exact.values, 13);
  if (op == GCAP_REDUCE_LOG_SUM) return ExpectStored(type, actual, exact.values, 12 / std::log(2.0) + 2);
  if (op == GCAP_REDUCE_PROD) return ExpectStored(type, actual, exact.values, static_cast<double>(exact.terms));
  if (op == GCAP_REDUCE_MAX || op == GCAP_REDUCE_MIN || !IsFloat(type)) {
    return ExpectStored(type, actual, exact.values, 0);
  }
  ASSERT_EQ(actual.size(), exact.values.size());
  const double stored = std::ldexp(1.0, -FormatOf(type).fraction_bits - 1);
  for (size_t i = 0; i < actual.size(); ++i) {
    const double magnitude = exact.magnitudes[i] / (op == GCAP_REDUCE_MEAN ? static_cast<double>(exact.terms) : 1.0);
    const double rounding = std::ldexp(std::fabs(exact.values[i]), -24);
    ASSERT_NEAR(actual[i], exact.values[i],
                std::ldexp(12 * magnitude, -24) + rounding + stored * std::fabs(exact.values[i]) * 1.0001 + 1e-7)
        << "element " << i;
  }
}

TEST_F(Reduce, EqualsTheLoopForRandomAxes) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    Draws draws(seed);
    for (gcap_reduce_op_t op : kOps) {
      for (gcap_dtype_t type : kAllTypes) {
        if (!IsDefined(op, type)) continue;
        const Shape shape = draws.AnyShape(0, GCAP_MAX_RANK, 4);
        Axes axes;
        for (size_t axis = 0; axis < shape.size(); ++axis) {
          if (draws.Int(0, 1) == 1) axes.push_back(static_cast<int64_t>(axis) - draws.Int(0, 1) * shape.size());
        }
        const bool keep = draws.Int(0, 1) == 1;
        SCOPED_TRACE(::testing::Message() << "seed " << seed << ", op " << op << ", " << gcap_dtype_name(type) << ", x "
                                          << ToString(shape) << ", axes " << ToString(axes) << ", keep " << keep);
        // Factors near 1, so that no product of 65,536 leaves the range of f16.
        const bool product = op == GCAP_REDUCE_PROD && IsFloat(type);
        const double low = product                     ? 0.9999
                           : op == GCAP_REDUCE_PROD    ? 1
                           : op == GCAP_REDUCE_LOG_SUM ? 2
                                                       : -8,
                     high = product                  ? 1.0001
                            : op == GCAP_REDUCE_PROD ? 1
                                                     : 8;
        const DeviceTensor x(type, shape, draws.Elements(type, Count(shape), low, high), draws.Int(0, 3));
        ExpectReduced(op, type, Run(op, x, axes, Reduced(shape, axes, keep), draws.Int(0, 3)),
                      Reference(op, type, x.Get(), shape, axes));
      }
    }
  }
}

// Each way in which threads share an element of the output: one thread, a warp, a block; along memory and across it.
TEST_F(Reduce, EqualsTheLoopForLongAndManyRows) {
  const struct {
    Shape shape;
    Axes axes;
  } kCases[] = {{{3000, 5}, {1}},  {{50, 100}, {1}}, {{7, 1025}, {1}},  {{3, 20000}, {1}},
                {{9, 20000}, {0}}, {{900, 33}, {0}}, {{2000, 7}, {0}},  {{20, 30, 40}, {0, 2}},
                {{1 << 17}, {0}},  {{5, 1, 7}, {1}}, {{20001, 9}, {1}}, {{2, 8, 9000}, {1}}};
  unsigned seed = 0;
  for (const auto& [shape, axes] : kCases) {
    Draws draws(++seed);
    for (gcap_dtype_t type : {GCAP_DTYPE_F32, GCAP_DTYPE_F16}) {
      for (gcap_reduce_op_t op : {GCAP_REDUCE_SUM, GCAP_REDUCE_MAX, GCAP_REDUCE_L2}) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed << ", op " << op << ", " << gcap_dtype_name(type) << ", x "
                                          << ToString(shape) << ", axes " << ToString(axes));
        const DeviceTensor x(type, shape, draws.Elements(type, Count(shape), -1, 1));
        ExpectReduced(op, type, Run(op, x, axes, Reduced(shape, axes, false)),
                      Reference(op, type, x.Get(), shape, axes));
      }
    }
  }
}

// Added one by one in f32, a million times 0.1 is 100958.34.
TEST_F(Reduce, LongSumsAreCompensated) {
  const double tenth = static_cast<double>(0.1f);
  const double sum = Run(GCAP_REDUCE_SUM, GCAP_DTYPE_F32, Values(1000000, 0.1));
  EXPECT_NEAR(sum, 1e6 * tenth, 12 * 1e5 / (1 << 24));
  EXPECT_NEAR(Run(GCAP_REDUCE_MEAN, GCAP_DTYPE_F16, Values(100000, 2.0)), 2.0, 0.0);  // a sum beyond f16
}

TEST_F(Reduce, SpecialValues) {
  for (gcap_dtype_t type : kFloatTypes) {
    EXPECT_EQ(Run(GCAP_REDUCE_SUM, type, {1, kInf, 2}), kInf);
    EXPECT_TRUE(std::isnan(Run(GCAP_REDUCE_SUM, type, {kInf, -kInf, 2})));
    EXPECT_TRUE(std::isnan(Run(GCAP_REDUCE_MAX, type, {1, kNan, 2})));
    EXPECT_TRUE(std::isnan(Run(GCAP_REDUCE_MIN, type, {kNan, 1, 2})));
    EXPECT_EQ(Run(GCAP_REDUCE_MAX, type, {-kInf, -kInf}), -kInf);
  }
  EXPECT_EQ(Run(GCAP_REDUCE_SUM, GCAP_DTYPE_I32, {2147483647, 1}), -2147483648.0);
  EXPECT_EQ(Run(GCAP_REDUCE_MEAN, GCAP_DTYPE_I32, {2147483647, 2147483647, -1}), 1431655764.0);
  EXPECT_EQ(Run(GCAP_REDUCE_MEAN, GCAP_DTYPE_I64, {-3, -4}), -3);
  EXPECT_EQ(Run(GCAP_REDUCE_PROD, GCAP_DTYPE_I32, {65536, 65536, 5}), 0);
  EXPECT_EQ(Run(GCAP_REDUCE_L1, GCAP_DTYPE_I32, {-2147483648.0, 5}), -2147483643.0);
  EXPECT_EQ(Run(GCAP_REDUCE_SUM_SQUARE, GCAP_DTYPE_I32, {65536, -3}), 9);
}

TEST_F(Reduce, OverNoElementsGivesTheNeutralElement) {
  const double least64 = -9223372036854775808.0;
  const DeviceTensor x(GCAP_DTYPE_F32, {0, 3}, Values{}), i(GCAP_DTYPE_I64, {0}, Values{});
  const Values zeros(3, 0.0), ones(3, 1.0);
  EXPECT_EQ(Run(GCAP_REDUCE_SUM, x, {0}, {3}), zeros);
  EXPECT_EQ(Run(GCAP_REDUCE_PROD, x, {0}, {3}), ones);
  EXPECT_EQ(Run(GCAP_REDUCE_L1, x, {0}, {3}), zeros);
  EXPECT_EQ(Run(GCAP_REDUCE_L2, x, {0}, {3}), zeros);
  EXPECT_EQ(Run(GCAP_REDUCE_SUM_SQUARE, x, {0}, {3}), zeros);
  EXPECT_EQ(Run(GCAP_REDUCE_LOG_SUM, x, {0}, {3}), Values(3, -kInf));
  EXPECT_EQ(Run(GCAP_REDUCE_MAX, x, {0}, {1, 3}), Values(3, -kInf));
  EXPECT_EQ(Run(GCAP_REDUCE_MIN, x, {0}, {3}), Values(3, kInf));
  EXPECT_TRUE(std::isnan(Run(GCAP_REDUCE_MEAN, x, {0, 1}, {})[0]));
  EXPECT_EQ(Run(GCAP_REDUCE_MAX, i, {0}, {}), Values{least64});
  EXPECT_EQ(Run(GCAP_REDUCE_MEAN, i, {0}, {}), Values{0});
  EXPECT_EQ(Run(GCAP_REDUCE_MAX, DeviceTensor(GCAP_DTYPE_BOOL, {0}, Values{}), {0}, {}), Values{0});
  EXPECT_EQ(Run(GCAP_REDUCE_MIN, DeviceTensor(GCAP_DTYPE_BOOL, {0}, Values{}), {0}, {}), Values{1});
}

TEST_F(Reduce, OverNoAxesCopies) {
  const DeviceTensor x(GCAP_DTYPE_F16, {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(Run(GCAP_REDUCE_MEAN, x, {}, {2, 2}), (Values{1, 2, 3, 4}));
}

TEST_F(Reduce, ReplayReadsTheInputAgainAndNoOutputLaunchesNothing) {
  DeviceTensor x(GCAP_DTYPE_F32, {2, 3}, {1, 2, 3, 4, 5, 6}), y(GCAP_DTYPE_F32, {2});
  const gcap_tensor_t xv = x.view(), yv = y.view();
  const int64_t axis = -1;
  Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_reduce(stream_, GCAP_REDUCE_SUM, &xv, &axis, 1, &yv)); });
  EXPECT_EQ(graph.CountKernels(), 1u);
  x.Set({10, 20, 30, 40, 50, 60});
  graph.Replay();
  EXPECT_EQ(y.Get(), (Values{60, 150}));
  const gcap_tensor_t none = View(GCAP_DTYPE_F32, {0, 3}, nullptr), nothing = View(GCAP_DTYPE_F32, {0}, nullptr);
  const Graph empty(stream_, [&] { GCAP_EXPECT_OK(gcap_reduce(stream_, GCAP_REDUCE_SUM, &none, &axis, 1, &nothing)); });
  EXPECT_EQ(empty.CountKernels(), 0u);
}

TEST_F(Reduce, NamesTheBadArgument) {
  const auto bad = GCAP_INVALID_ARGUMENT;
  const auto sum = GCAP_REDUCE_SUM;
  gcap_tensor_t x = View(GCAP_DTYPE_F32, {2, 3}, reinterpret_cast<void*>(1 << 20));
  gcap_tensor_t y = View(GCAP_DTYPE_F32, {2}, reinterpret_cast<void*>(2 << 20));
  const int64_t last[] = {1}, twice[] = {1, -1}, far[] = {2}, low[] = {-3};
  GCAP_EXPECT_FAILS(gcap_reduce(nullptr, sum, &x, last, 1, &y), bad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, sum, nullptr, last, 1, &y), bad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, sum, &x, nullptr, 1, &y), bad, "axes is NULL");
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, sum, &x, last, 1, nullptr), bad, "y is NULL");
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, static_cast<gcap_reduce_op_t>(9), &x, last, 1, &y), bad,
                    "op is 9, allowed are 0..8");
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, sum, &x, last, -1, &y), bad, "num_axes is -1, allowed are 0..2");
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, sum, &x, last, 3, &y), bad, "num_axes is 3, allowed are 0..2");
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, sum, &x, far, 1, &y), bad, "axes[0] is 2, allowed are -2..1");
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, sum, &x, low, 1, &y), bad, "axes[0] is -3, allowed are -2..1");
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, sum, &x, twice, 2, &y), bad, "axes[1] is -1, named before");
  y.shape[0] = 3;
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, sum, &x, last, 1, &y), bad, "y is [3], must be [2]: the shape of x without");
  y = View(GCAP_DTYPE_F32, {1, 2}, y.data);
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, sum, &x, last, 1, &y), bad, "y is [1,2], must be [2,1]");
  y = View(GCAP_DTYPE_F16, {2}, y.data);
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, sum, &x, last, 1, &y), bad, "y is f16, must be f32");
  y = View(GCAP_DTYPE_F32, {2, 3}, x.data);
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, sum, &x, nullptr, 0, &y), bad, "y overlaps x");
  x.dtype = y.dtype = GCAP_DTYPE_BOOL;
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, GCAP_REDUCE_MEAN, &x, last, 1, &y), bad, "MEAN is not defined for bool");
  x.dtype = y.dtype = GCAP_DTYPE_I64;
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, GCAP_REDUCE_LOG_SUM, &x, last, 1, &y), bad, "LOG_SUM is not defined for i64");
  x.rank = 9;
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, sum, &x, last, 1, &y), bad, "x.rank is 9");
  x.rank = 2, y.rank = -1;
  GCAP_EXPECT_FAILS(gcap_reduce(stream_, sum, &x, last, 1, &y), bad, "y.rank is -1");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
