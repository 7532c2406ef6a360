// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Elementwise operators of one and two inputs, and where: numbers against loops over doubles, broadcasting, special
// values, in place, no elements, capture and replay, and bad input. test/ops/cast_test.cc has the casts.

#include "gcap/kit/ops/elementwise.h"

#include <functional>

#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

constexpr unsigned kSeeds = 6;

// The value of an input at an index of the broadcast shape.
double At(const Values& values, const Shape& shape, const Shape& index) {
  Shape own(shape.size());
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    own[axis] = shape[axis] == 1 ? 0 : index[index.size() - shape.size() + axis];
  }
  return values[Ravel(own, shape)];
}

// A shape that broadcasts to `shape`: without some of the first axes, and 1 on some others.
Shape Broadcastable(Draws* draws, const Shape& shape) {
  Shape own(shape.begin() + draws->Int(0, static_cast<int>(shape.size())), shape.end());
  for (int64_t& size : own) {
    if (draws->Int(0, 2) == 0) size = 1;
  }
  return own;
}

class Binary : public OpTest {
 protected:
  // op(a, b) of shape `y_shape`, into a tensor that starts `offset` elements into its memory.
  Values Run(gcap_binary_op_t op, const DeviceTensor& a, const DeviceTensor& b, gcap_dtype_t y_type,
             const Shape& y_shape, size_t offset = 0) {
    const DeviceTensor y(y_type, y_shape, offset);
    const gcap_tensor_t av = a.view(), bv = b.view(), yv = y.view();
    GCAP_EXPECT_OK(gcap_binary(stream_, op, &av, &bv, &yv));
    Synchronize();
    return y.Get();
  }
  // The same of lists.
  Values Run(gcap_binary_op_t op, gcap_dtype_t type, const Values& a, const Values& b) {
    const Shape shape = {static_cast<int64_t>(a.size())};
    const bool compares = op >= GCAP_BINARY_EQUAL;
    return Run(op, DeviceTensor(type, shape, a), DeviceTensor(type, shape, b), compares ? GCAP_DTYPE_BOOL : type,
               shape);
  }
};

// An operator in exact arithmetic, and the roundings of 2^-24 of its computation in f32: 1 for what IEEE 754 rounds
// once. powf is off by up to 4 ulp on a GPU (CUDA C++ Programming Guide, mathematical functions), which are 8 of them.
struct BinaryCase {
  gcap_binary_op_t op;
  std::function<double(double, double)> formula;
  double roundings;
  double low_a;  // the least a
};
const BinaryCase kArithmetic[] = {
    {GCAP_BINARY_ADD, [](double a, double b) { return a + b; }, 1, -8},
    {GCAP_BINARY_SUB, [](double a, double b) { return a - b; }, 1, -8},
    {GCAP_BINARY_MUL, [](double a, double b) { return a * b; }, 1, -8},
    {GCAP_BINARY_DIV, [](double a, double b) { return a / b; }, 1, -8},
    {GCAP_BINARY_POW, [](double a, double b) { return std::pow(a, b); }, 9, 0.125},
    {GCAP_BINARY_MIN, [](double a, double b) { return std::min(a, b); }, 0, -8},
    {GCAP_BINARY_MAX, [](double a, double b) { return std::max(a, b); }, 0, -8},
};
const BinaryCase kComparisons[] = {
    {GCAP_BINARY_EQUAL, [](double a, double b) { return a == b; }, 0, -8},
    {GCAP_BINARY_LESS, [](double a, double b) { return a < b; }, 0, -8},
    {GCAP_BINARY_GREATER, [](double a, double b) { return a > b; }, 0, -8},
};

Values Reference(const BinaryCase& c, gcap_dtype_t type, const DeviceTensor& a, const DeviceTensor& b,
                 const Shape& shape) {
  const Values av = a.Get(), bv = b.Get();
  Values y(Count(shape));
  for (size_t i = 0; i < y.size(); ++i) {
    const Shape index = Unravel(static_cast<int64_t>(i), shape);
    y[i] = c.formula(At(av, a.shape(), index), At(bv, b.shape(), index));
    if (!IsFloat(type)) y[i] = std::trunc(y[i]);
  }
  return y;
}

// Integers without 0, which nothing is divided by, and small enough for powers.
Values Operand(Draws* draws, gcap_dtype_t type, int64_t count, double low) {
  Values values = draws->Elements(type, count, low, 8);
  for (double& value : values) {
    if (value == 0.0 && type != GCAP_DTYPE_BOOL) value = 3.0;
  }
  return values;
}

TEST_F(Binary, EqualsTheLoopForBroadcastShapes) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    Draws draws(seed);
    for (const auto& cases : {std::vector<BinaryCase>(std::begin(kArithmetic), std::end(kArithmetic)),
                              std::vector<BinaryCase>(std::begin(kComparisons), std::end(kComparisons))}) {
      for (const BinaryCase& c : cases) {
        for (gcap_dtype_t type : {GCAP_DTYPE_F32, GCAP_DTYPE_F16, GCAP_DTYPE_BF16, GCAP_DTYPE_I64, GCAP_DTYPE_I32}) {
          const Shape whole = draws.AnyShape(0, GCAP_MAX_RANK, 4);
          const Shape other = Broadcastable(&draws, whole);
          const bool swap = draws.Int(0, 1) == 1;
          const Shape &a_shape = swap ? other : whole, &b_shape = swap ? whole : other;
          const DeviceTensor a(type, a_shape, Operand(&draws, type, Count(a_shape), c.low_a), draws.Int(0, 3));
          const DeviceTensor b(type, b_shape, Operand(&draws, type, Count(b_shape), -4), draws.Int(0, 3));
          SCOPED_TRACE(::testing::Message() << "seed " << seed << ", op " << c.op << ", " << gcap_dtype_name(type)
                                            << ", a " << ToString(a_shape) << ", b " << ToString(b_shape));
          const gcap_dtype_t y_type = c.op >= GCAP_BINARY_EQUAL ? GCAP_DTYPE_BOOL : type;
          ExpectStored(y_type, Run(c.op, a, b, y_type, whole, draws.Int(0, 3)), Reference(c, type, a, b, whole),
                       c.roundings);
        }
      }
    }
  }
}

// Both inputs are repeated, each on an axis of its own.
TEST_F(Binary, BroadcastsBothInputs) {
  const DeviceTensor a(GCAP_DTYPE_F32, {2, 1}, {10, 20}), b(GCAP_DTYPE_F32, {3}, {1, 2, 3});
  EXPECT_EQ(Run(GCAP_BINARY_ADD, a, b, GCAP_DTYPE_F32, {2, 3}), (Values{11, 12, 13, 21, 22, 23}));
  const DeviceTensor one(GCAP_DTYPE_F32, {}, Values{5});
  EXPECT_EQ(Run(GCAP_BINARY_SUB, one, one, GCAP_DTYPE_F32, {}), (Values{0}));
  EXPECT_EQ(Run(GCAP_BINARY_SUB, b, one, GCAP_DTYPE_F32, {3}), (Values{-4, -3, -2}));
}

// Around what a thread takes in one step, what a block takes, and beyond what the largest grid takes in one step.
TEST_F(Binary, EqualsTheLoopForAllCountsAndAlignments) {
  for (int64_t count : {1, 3, 4, 5, 8, 9, 1023, 1025, 4096 * 1024 + 7}) {
    for (size_t offset : {0, 1, 4}) {
      if (count > 2000 && offset == 4) continue;  // only slow
      SCOPED_TRACE(::testing::Message() << count << " elements, offset " << offset);
      const std::vector<float> x = RandomFloats(static_cast<size_t>(count), 1), z = RandomFloats(x.size(), 2);
      const DeviceFloats a(Behind(offset, x)), b(z), y(Behind(offset, x));
      const gcap_tensor_t av = View(GCAP_DTYPE_F32, {count}, a.get() + offset);
      const gcap_tensor_t bv = View(GCAP_DTYPE_F32, {count}, b.get());
      const gcap_tensor_t yv = View(GCAP_DTYPE_F32, {count}, y.get() + offset);
      GCAP_ASSERT_OK(gcap_binary(stream_, GCAP_BINARY_ADD, &av, &bv, &yv));
      Synchronize();
      std::vector<float> expected(x);
      for (size_t i = 0; i < x.size(); ++i) expected[i] += z[i];
      EXPECT_TRUE(Without(offset, y.Get()) == expected);
    }
  }
}

TEST_F(Binary, NaNAndInfinityFollowIeee754) {
  for (gcap_dtype_t type : kFloatTypes) {
    const Values a = {kNan, 1, kInf, 1, 0, 2}, b = {1, kNan, kInf, 0, 0, kInf};
    ExpectStored(type, Run(GCAP_BINARY_MIN, type, a, b), {kNan, kNan, kInf, 0, 0, 2}, 0);
    ExpectStored(type, Run(GCAP_BINARY_MAX, type, a, b), {kNan, kNan, kInf, 1, 0, kInf}, 0);
    ExpectStored(type, Run(GCAP_BINARY_SUB, type, a, b), {kNan, kNan, kNan, 1, 0, -kInf}, 0);
    ExpectStored(type, Run(GCAP_BINARY_DIV, type, a, b), {kNan, kNan, kNan, kInf, kNan, 0}, 0);
    EXPECT_EQ(Run(GCAP_BINARY_EQUAL, type, a, b), (Values{0, 0, 1, 0, 1, 0}));
    EXPECT_EQ(Run(GCAP_BINARY_LESS, type, a, b), (Values{0, 0, 0, 0, 0, 1}));
  }
}

// 65504 + 32 rounds to infinity in f16 though f32 holds it.
TEST_F(Binary, HalvesAreRoundedOnceAndOverflowToInfinity) {
  EXPECT_EQ(Run(GCAP_BINARY_ADD, GCAP_DTYPE_F16, {65504, 65504, 2048, 2050}, {15, 32, 1, 1}),
            (Values{65504, kInf, 2048, 2052}));
  EXPECT_EQ(Run(GCAP_BINARY_ADD, GCAP_DTYPE_BF16, {256, 258}, {1, 1}), (Values{256, 260}));
}

TEST_F(Binary, IntegersWrapAroundAndDivideByZero) {
  const double least32 = -2147483648.0, least64 = -9223372036854775808.0;
  EXPECT_EQ(Run(GCAP_BINARY_ADD, GCAP_DTYPE_I32, {2147483647}, {1}), (Values{least32}));
  EXPECT_EQ(Run(GCAP_BINARY_SUB, GCAP_DTYPE_I64, {least64}, {1}), (Values{9223372036854775807.0}));
  EXPECT_EQ(Run(GCAP_BINARY_MUL, GCAP_DTYPE_I32, {65536, 3}, {65536, -5}), (Values{0, -15}));
  EXPECT_EQ(Run(GCAP_BINARY_DIV, GCAP_DTYPE_I32, {7, -7, 5, least32}, {2, 2, 0, -1}), (Values{3, -3, 0, least32}));
  EXPECT_EQ(Run(GCAP_BINARY_DIV, GCAP_DTYPE_I64, {7, least64}, {0, -1}), (Values{0, least64}));
  EXPECT_EQ(Run(GCAP_BINARY_POW, GCAP_DTYPE_I64, {2, 3, -1, -1, 1, 0, 0}, {62, -1, -3, -2, -9, 0, -1}),
            (Values{4611686018427387904.0, 0, -1, 1, 1, 1, 0}));
}

TEST_F(Binary, BooleansAreAnythingThatIsNotZero) {
  const DeviceTensor a(GCAP_DTYPE_BOOL, {4}, {0, 0, 1, 1}), b(GCAP_DTYPE_BOOL, {4}, {0, 1, 0, 1});
  // A 2 among the bytes of b.
  const unsigned char two = 2;
  GCAP_EXPECT_CUDA(cudaMemcpy(static_cast<char*>(b.view().data) + 3, &two, 1, cudaMemcpyHostToDevice));
  EXPECT_EQ(Run(GCAP_BINARY_AND, a, b, GCAP_DTYPE_BOOL, {4}), (Values{0, 0, 0, 1}));
  EXPECT_EQ(Run(GCAP_BINARY_OR, a, b, GCAP_DTYPE_BOOL, {4}), (Values{0, 1, 1, 1}));
  EXPECT_EQ(Run(GCAP_BINARY_EQUAL, a, b, GCAP_DTYPE_BOOL, {4}), (Values{1, 0, 0, 1}));
  for (gcap_dtype_t type : {GCAP_DTYPE_I8, GCAP_DTYPE_U8}) {
    const DeviceTensor p(type, {3}, {0, 1, 100}), q(type, {3}, {0, 2, 100});
    EXPECT_EQ(Run(GCAP_BINARY_EQUAL, p, q, GCAP_DTYPE_BOOL, {3}), (Values{1, 0, 1}));
  }
}

TEST_F(Binary, TheOutputMayBeAnInput) {
  const DeviceTensor a(GCAP_DTYPE_F16, {2, 3}, {1, 2, 3, 4, 5, 6}), b(GCAP_DTYPE_F16, {3}, {10, 20, 30});
  const gcap_tensor_t av = a.view(), bv = b.view();
  GCAP_EXPECT_OK(gcap_binary(stream_, GCAP_BINARY_ADD, &bv, &av, &av));
  Synchronize();
  EXPECT_EQ(a.Get(), (Values{11, 22, 33, 14, 25, 36}));
}

TEST_F(Binary, NoElementsLaunchNothing) {
  const gcap_tensor_t a = View(GCAP_DTYPE_F32, {2, 0, 3}, nullptr), y = a;
  float unused = 0.0f;
  const gcap_tensor_t b = View(GCAP_DTYPE_F32, {1, 1, 3}, &unused);  // which nothing reads
  const Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_binary(stream_, GCAP_BINARY_ADD, &a, &b, &y)); });
  EXPECT_EQ(graph.CountKernels(), 0u);
}

TEST_F(Binary, ReplayReadsTheInputsAgain) {
  DeviceTensor a(GCAP_DTYPE_F32, {2, 1}, {1, 2}), b(GCAP_DTYPE_F32, {2}, {3, 4}), y(GCAP_DTYPE_F32, {2, 2});
  const gcap_tensor_t av = a.view(), bv = b.view(), yv = y.view();
  Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_binary(stream_, GCAP_BINARY_MUL, &av, &bv, &yv)); });
  EXPECT_EQ(graph.CountKernels(), 1u);
  graph.Replay();
  EXPECT_EQ(y.Get(), (Values{3, 4, 6, 8}));
  a.Set({-1, 5});
  b.Set({7, 8});
  graph.Replay();
  EXPECT_EQ(y.Get(), (Values{-7, -8, 35, 40}));
}

class Unary : public OpTest {
 protected:
  Values Run(gcap_unary_op_t op, const DeviceTensor& x, size_t offset = 0) {
    const DeviceTensor y(x.type(), x.shape(), offset);
    const gcap_tensor_t xv = x.view(), yv = y.view();
    GCAP_EXPECT_OK(gcap_unary(stream_, op, &xv, &yv));
    Synchronize();
    return y.Get();
  }
  Values Run(gcap_unary_op_t op, gcap_dtype_t type, const Values& x) {
    return Run(op, DeviceTensor(type, {static_cast<int64_t>(x.size())}, x));
  }
};

// Roundings of 2^-24. A function of CUDA's that is off by n ulp (the guide's table) counts as 2 * n, and an argument
// that is off by r roundings adds r times the function's condition there.
// GELU on [-4, 4]: erfc is off by 4 ulp, its argument of at most 2.83 by two roundings, at a condition of 2 * 2.83^2 +
// 1 = 17; two products: 44. Its tanh form: an exponent of at most 11 is off by 6 roundings; exp by 1 ulp; a sum and a
// quotient: 70.
struct UnaryCase {
  gcap_unary_op_t op;
  std::function<double(double)> formula;
  double roundings;
  double low;
};
const UnaryCase kUnary[] = {
    {GCAP_UNARY_RELU, [](double x) { return x > 0 ? x : 0; }, 0, -4},
    {GCAP_UNARY_GELU, [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }, 44, -4},
    {GCAP_UNARY_GELU_TANH,
     [](double x) { return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }, 70, -4},
    {GCAP_UNARY_SIGMOID, [](double x) { return 1 / (1 + std::exp(-x)); }, 4, -4},
    {GCAP_UNARY_TANH, [](double x) { return std::tanh(x); }, 4, -4},
    {GCAP_UNARY_ERF, [](double x) { return std::erf(x); }, 4, -4},
    {GCAP_UNARY_EXP, [](double x) { return std::exp(x); }, 4, -4},
    {GCAP_UNARY_LOG, [](double x) { return std::log(x); }, 2, 0.001},
    {GCAP_UNARY_SQRT, [](double x) { return std::sqrt(x); }, 1, 0},
    {GCAP_UNARY_NEG, [](double x) { return -x; }, 0, -4},
    {GCAP_UNARY_ABS, [](double x) { return std::fabs(x); }, 0, -4},
    {GCAP_UNARY_RECIPROCAL, [](double x) { return 1 / x; }, 1, 0.001},
};

TEST_F(Unary, EqualsTheLoopForFloats) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    Draws draws(seed);
    for (const UnaryCase& c : kUnary) {
      for (gcap_dtype_t type : kFloatTypes) {
        const Shape shape = draws.AnyShape(0, GCAP_MAX_RANK, 4);
        const DeviceTensor x(type, shape, draws.Elements(type, Count(shape), c.low, 4), draws.Int(0, 3));
        SCOPED_TRACE(::testing::Message() << "seed " << seed << ", op " << c.op << ", " << gcap_dtype_name(type)
                                          << ", x " << ToString(shape));
        Values expected = x.Get();
        for (double& value : expected) value = c.formula(value);
        ExpectStored(type, Run(c.op, x, draws.Int(0, 3)), expected, c.roundings);
      }
    }
  }
}

TEST_F(Unary, IntegersAndBooleans) {
  for (gcap_dtype_t type : {GCAP_DTYPE_I64, GCAP_DTYPE_I32}) {
    const double least = type == GCAP_DTYPE_I32 ? -2147483648.0 : -9223372036854775808.0;
    EXPECT_EQ(Run(GCAP_UNARY_RELU, type, {-3, 0, 4}), (Values{0, 0, 4}));
    EXPECT_EQ(Run(GCAP_UNARY_NEG, type, {-3, 0, least}), (Values{3, 0, least}));
    EXPECT_EQ(Run(GCAP_UNARY_ABS, type, {-3, 5, least}), (Values{3, 5, least}));
  }
  EXPECT_EQ(Run(GCAP_UNARY_NOT, GCAP_DTYPE_BOOL, {1, 0, 1}), (Values{0, 1, 0}));
}

TEST_F(Unary, SpecialValues) {
  for (gcap_dtype_t type : kFloatTypes) {
    const Values x = {kNan, kInf, -kInf};
    ExpectStored(type, Run(GCAP_UNARY_RELU, type, x), {kNan, kInf, 0}, 0);
    ExpectStored(type, Run(GCAP_UNARY_SIGMOID, type, x), {kNan, 1, 0}, 0);
    ExpectStored(type, Run(GCAP_UNARY_TANH, type, x), {kNan, 1, -1}, 0);
    ExpectStored(type, Run(GCAP_UNARY_LOG, type, {0, -1, kInf}), {-kInf, kNan, kInf}, 0);
    ExpectStored(type, Run(GCAP_UNARY_SQRT, type, {-1, kInf, kNan}), {kNan, kInf, kNan}, 0);
    ExpectStored(type, Run(GCAP_UNARY_RECIPROCAL, type, {0, -0.0, kInf}), {kInf, -kInf, 0}, 0);
    ExpectStored(type, Run(GCAP_UNARY_EXP, type, {1000, -1000, kNan}), {kInf, 0, kNan}, 0);
    ExpectStored(type, Run(GCAP_UNARY_GELU, type, {-50, 50, kNan}), {0, 50, kNan}, 0);
    ExpectStored(type, Run(GCAP_UNARY_GELU_TANH, type, {-50, 50, kNan}), {0, 50, kNan}, 0);
  }
}

TEST_F(Unary, LeakyReluAndClip) {
  const Values in = {-2, -0.5, 0, 3, kNan};
  for (gcap_dtype_t type : kFloatTypes) {
    const DeviceTensor x(type, {5}, in), y(type, {5});
    const gcap_tensor_t xv = x.view(), yv = y.view();
    GCAP_EXPECT_OK(gcap_leaky_relu(stream_, 0.25f, &xv, &yv));
    Synchronize();
    ExpectStored(type, y.Get(), {-0.5, -0.125, 0, 3, kNan}, 0);
    GCAP_EXPECT_OK(gcap_clip(stream_, -1.0, INFINITY, &xv, &yv));
    Synchronize();
    ExpectStored(type, y.Get(), {-1, -0.5, 0, 3, kNan}, 0);
    GCAP_EXPECT_OK(gcap_clip(stream_, 5.0, 1.0, &xv, &yv));  // the upper bound wins
    Synchronize();
    ExpectStored(type, y.Get(), {1, 1, 1, 1, kNan}, 0);
  }
  for (gcap_dtype_t type : {GCAP_DTYPE_I64, GCAP_DTYPE_I32}) {
    const double least = type == GCAP_DTYPE_I32 ? -2147483648.0 : -9223372036854775808.0;
    const DeviceTensor x(type, {4}, {least, -2, 2, 5}), y(type, {4});
    const gcap_tensor_t xv = x.view(), yv = y.view();
    GCAP_EXPECT_OK(gcap_clip(stream_, -1.5, 3.5, &xv, &yv));
    Synchronize();
    EXPECT_EQ(y.Get(), (Values{-1, -1, 2, 3}));
    GCAP_EXPECT_OK(gcap_clip(stream_, -INFINITY, 1e300, &xv, &yv));
    Synchronize();
    EXPECT_EQ(y.Get(), (Values{least, -2, 2, 5}));
  }
}

TEST_F(Unary, TheOutputMayBeTheInputAndReplayReadsItAgain) {
  DeviceTensor x(GCAP_DTYPE_F32, {3}, {-1, 2, -3});
  const gcap_tensor_t xv = x.view();
  Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_unary(stream_, GCAP_UNARY_ABS, &xv, &xv)); });
  EXPECT_EQ(graph.CountKernels(), 1u);
  for (double value : {-4.0, -5.0}) {
    x.Set({value, 1, 2});
    graph.Replay();
    EXPECT_EQ(x.Get(), (Values{-value, 1, 2}));
  }
}

class Where : public OpTest {};

TEST_F(Where, EqualsTheLoopForBroadcastShapesOfAllTypes) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    Draws draws(seed);
    for (gcap_dtype_t type : kAllTypes) {
      const Shape whole = draws.AnyShape(0, GCAP_MAX_RANK, 4);
      const Shape c_shape = Broadcastable(&draws, whole), a_shape = Broadcastable(&draws, whole);
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << gcap_dtype_name(type) << ", " << ToString(whole)
                                        << ", condition " << ToString(c_shape) << ", a " << ToString(a_shape));
      const DeviceTensor c(GCAP_DTYPE_BOOL, c_shape, draws.Elements(GCAP_DTYPE_BOOL, Count(c_shape), 0, 1),
                           draws.Int(0, 3));
      const DeviceTensor a(type, a_shape, draws.Elements(type, Count(a_shape), -9, 9), draws.Int(0, 3));
      const DeviceTensor b(type, whole, draws.Elements(type, Count(whole), -9, 9)), y(type, whole, draws.Int(0, 3));
      const gcap_tensor_t cv = c.view(), av = a.view(), bv = b.view(), yv = y.view();
      GCAP_ASSERT_OK(gcap_where(stream_, &cv, &av, &bv, &yv));
      Synchronize();
      const Values in_c = c.Get(), in_a = a.Get(), in_b = b.Get();
      Values expected(in_b.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        const Shape index = Unravel(static_cast<int64_t>(i), whole);
        expected[i] = At(in_c, c_shape, index) != 0.0 ? At(in_a, a_shape, index) : in_b[i];
      }
      EXPECT_EQ(y.Get(), expected);
    }
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
