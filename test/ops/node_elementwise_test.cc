// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The elementwise operators that only nodes have: each against its formula over doubles, for drawn numbers and for
// NaN, infinities, both zeros, the largest and the least numbers; their types, and what they refuse.

#include "ops/kernels/elementwise.h"

#include <functional>
#include <string>

#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

constexpr unsigned kSeeds = 4;
constexpr gcap_dtype_t kIntegerTypes[] = {GCAP_DTYPE_I64, GCAP_DTYPE_I32};

// Numbers of a type that are no ordinary ones.
Values SpecialValues(gcap_dtype_t type) {
  const Format format = FormatOf(type);
  const double least = std::ldexp(1.0, format.least_exponent - format.fraction_bits);
  return {kNan, kInf, -kInf, 0.0, -0.0, format.largest, -format.largest, least, -least, 1, -1, 0.5, -0.5, 1.5, 2.5};
}

// As ExpectStored; and a zero has the sign that it must have.
void ExpectNumbers(gcap_dtype_t type, const Values& actual, const Values& expected, double roundings) {
  ExpectStored(type, actual, expected, roundings);
  for (size_t i = 0; i < actual.size(); ++i) {
    if (!IsFloat(type) || actual[i] != 0 || expected[i] != 0) continue;
    EXPECT_EQ(std::signbit(actual[i]), std::signbit(expected[i])) << "element " << i << ": the sign of zero";
  }
}

class NodeUnary : public OpTest {
 protected:
  Values Run(int op, float alpha, float beta, gcap_dtype_t type, gcap_dtype_t y_type, const Values& in) {
    const Shape shape = {static_cast<int64_t>(in.size())};
    const DeviceTensor x(type, shape, in), y(y_type, shape);
    const gcap_tensor_t xv = x.view(), yv = y.view();
    GCAP_EXPECT_OK(gcap_unary_of(stream_, op, alpha, beta, &xv, &yv));
    Synchronize();
    return y.Get();
  }
};

// An operator in exact arithmetic, and the roundings of 2^-24 of its computation in f32: a function of CUDA's that is
// off by n ulp (CUDA C++ Programming Guide, mathematical functions) counts as 2 * n.
struct UnaryCase {
  const char* name;
  int op;
  std::function<double(double)> formula;
  double roundings;
  double low, high;    // of drawn numbers
  bool tests = false;  // gives bool
  float alpha = 0, beta = 0;
};

const UnaryCase kUnary[] = {
    {"cos", GCAP_UNARY_COS, [](double x) { return std::cos(x); }, 4, -9, 9},
    {"floor", GCAP_UNARY_FLOOR, [](double x) { return std::floor(x); }, 0, -9, 9},
    {"hard_sigmoid", GCAP_UNARY_HARD_SIGMOID,
     [](double x) { return std::isnan(x) ? x : std::max(0.0, std::min(1.0, 0.25 * x + 0.5)); }, 1, -4, 4, false, 0.25f,
     0.5f},
    {"is_nan", GCAP_UNARY_IS_NAN, [](double x) { return std::isnan(x); }, 0, -4, 4, true},
};

TEST_F(NodeUnary, EqualsTheFormula) {
  for (const UnaryCase& c : kUnary) {
    for (gcap_dtype_t type : kFloatTypes) {
      for (unsigned seed = 0; seed < kSeeds; ++seed) {
        SCOPED_TRACE(::testing::Message() << c.name << " of " << gcap_dtype_name(type) << ", seed " << seed);
        Draws draws(seed);
        const gcap_dtype_t y_type = c.tests ? GCAP_DTYPE_BOOL : type;
        const Values in = draws.Elements(type, draws.Int(1, 40), c.low, c.high);
        Values expected;
        for (double x : in) expected.push_back(c.formula(x));
        ExpectNumbers(y_type, Run(c.op, c.alpha, c.beta, type, y_type, in), expected, c.roundings);
      }
    }
  }
}

TEST_F(NodeUnary, EqualsTheFormulaForSpecialValues) {
  for (const UnaryCase& c : kUnary) {
    for (gcap_dtype_t type : kFloatTypes) {
      SCOPED_TRACE(::testing::Message() << c.name << " of " << gcap_dtype_name(type));
      const gcap_dtype_t y_type = c.tests ? GCAP_DTYPE_BOOL : type;
      const Values in = SpecialValues(type);
      Values expected;
      for (double x : in) expected.push_back(c.formula(x));
      ExpectNumbers(y_type, Run(c.op, c.alpha, c.beta, type, y_type, in), expected, c.roundings);
    }
  }
}

TEST_F(NodeUnary, NamesTypesThatDoNotFit) {
  const DeviceTensor integers(GCAP_DTYPE_I32, {2}), floats(GCAP_DTYPE_F32, {2}), flags(GCAP_DTYPE_BOOL, {2});
  const gcap_tensor_t i = integers.view(), f = floats.view(), b = flags.view();
  const gcap_code_t bad = GCAP_INVALID_ARGUMENT;
  GCAP_EXPECT_FAILS(gcap_unary_of(stream_, GCAP_UNARY_COS, 0, 0, &i, &i), bad,
                    "COS is not defined for i32, allowed are f32, f16, bf16");
  GCAP_EXPECT_FAILS(gcap_unary_of(stream_, GCAP_UNARY_COS, 0, 0, &f, &b), bad, "y is bool, must be f32: the type of x");
  GCAP_EXPECT_FAILS(gcap_unary_of(stream_, GCAP_UNARY_IS_NAN, 0, 0, &f, &f), bad,
                    "y is f32, must be bool: the type of a test");
}

class NodeBinary : public OpTest {
 protected:
  Values Run(int op, const DeviceTensor& a, const DeviceTensor& b, gcap_dtype_t y_type, const Shape& y_shape) {
    const DeviceTensor y(y_type, y_shape);
    const gcap_tensor_t av = a.view(), bv = b.view(), yv = y.view();
    GCAP_EXPECT_OK(gcap_binary_of(stream_, op, &av, &bv, &yv));
    Synchronize();
    return y.Get();
  }
  // Each number of the list with each.
  Values RunPairs(int op, gcap_dtype_t type, gcap_dtype_t y_type, const Values& in) {
    const int64_t count = static_cast<int64_t>(in.size());
    return Run(op, DeviceTensor(type, {count, 1}, in), DeviceTensor(type, {count}, in), y_type, {count, count});
  }
};

struct BinaryCase {
  const char* name;
  int op;
  std::function<double(double, double)> formula;
  double roundings;
  bool of_floats, of_integers, compares;
};

const BinaryCase kBinary[] = {
    {"less_or_equal", GCAP_BINARY_LESS_OR_EQUAL, [](double a, double b) { return a <= b; }, 0, true, true, true},
    {"greater_or_equal", GCAP_BINARY_GREATER_OR_EQUAL, [](double a, double b) { return a >= b; }, 0, true, true, true},
    {"prelu", GCAP_BINARY_PRELU, [](double a, double b) { return a < 0 ? a * b : a; }, 1, true, false, false},
};

Values PairsOf(const Values& in, const std::function<double(double, double)>& formula) {
  Values all;
  for (double a : in) {
    for (double b : in) all.push_back(formula(a, b));
  }
  return all;
}

TEST_F(NodeBinary, EqualsTheFormulaForFloats) {
  for (const BinaryCase& c : kBinary) {
    for (gcap_dtype_t type : kFloatTypes) {
      if (!c.of_floats) continue;
      SCOPED_TRACE(::testing::Message() << c.name << " of " << gcap_dtype_name(type));
      Draws draws(1);
      Values in = SpecialValues(type);
      for (double x : draws.Elements(type, 9, -3, 3)) in.push_back(x);
      const gcap_dtype_t y_type = c.compares ? GCAP_DTYPE_BOOL : type;
      ExpectNumbers(y_type, RunPairs(c.op, type, y_type, in), PairsOf(in, c.formula), c.roundings);
    }
  }
}

TEST_F(NodeBinary, EqualsTheFormulaForIntegers) {
  for (const BinaryCase& c : kBinary) {
    for (gcap_dtype_t type : kIntegerTypes) {
      if (!c.of_integers) continue;
      SCOPED_TRACE(::testing::Message() << c.name << " of " << gcap_dtype_name(type));
      const double least = type == GCAP_DTYPE_I32 ? -2147483648.0 : -9223372036854775808.0;
      const Values in = {least, -7, -2, -1, 0, 1, 2, 3, 7, 1 << 30};
      const gcap_dtype_t y_type = c.compares ? GCAP_DTYPE_BOOL : type;
      EXPECT_EQ(RunPairs(c.op, type, y_type, in), PairsOf(in, c.formula));
    }
  }
}

TEST_F(NodeBinary, NamesTypesThatDoNotFit) {
  const DeviceTensor integers(GCAP_DTYPE_I32, {2}), floats(GCAP_DTYPE_F32, {2});
  const gcap_tensor_t i = integers.view(), f = floats.view();
  const gcap_code_t bad = GCAP_INVALID_ARGUMENT;
  GCAP_EXPECT_FAILS(gcap_binary_of(stream_, GCAP_BINARY_PRELU, &i, &i, &i), bad,
                    "PRELU is not defined for i32, allowed are f32, f16, bf16");
  GCAP_EXPECT_FAILS(gcap_binary_of(stream_, GCAP_BINARY_LESS_OR_EQUAL, &f, &f, &f), bad,
                    "y is f32, must be bool: the type of a comparison");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
