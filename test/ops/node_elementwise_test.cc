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

double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
double HardSigmoid(double x) { return std::isnan(x) ? x : std::max(0.0, std::min(1.0, 0.25 * x + 0.5)); }

// What is computed of a result of r roundings, or of an argument of r roundings at a condition of at most 1, adds r.
// SWISH on [-4, 4] with alpha 1.5: the exponent of at most 6 is off by 6 roundings; exp, a sum and a quotient.
const UnaryCase kUnary[] = {
    {"cos", GCAP_UNARY_COS, [](double x) { return std::cos(x); }, 4, -9, 9},
    {"sin", GCAP_UNARY_SIN, [](double x) { return std::sin(x); }, 4, -9, 9},
    {"tan", GCAP_UNARY_TAN, [](double x) { return std::tan(x); }, 8, -9, 9},
    {"acos", GCAP_UNARY_ACOS, [](double x) { return std::acos(x); }, 6, -1, 1},
    {"asin", GCAP_UNARY_ASIN, [](double x) { return std::asin(x); }, 8, -1, 1},
    {"atan", GCAP_UNARY_ATAN, [](double x) { return std::atan(x); }, 4, -9, 9},
    {"cosh", GCAP_UNARY_COSH, [](double x) { return std::cosh(x); }, 4, -9, 9},
    {"sinh", GCAP_UNARY_SINH, [](double x) { return std::sinh(x); }, 6, -9, 9},
    {"acosh", GCAP_UNARY_ACOSH, [](double x) { return std::acosh(x); }, 8, 1, 9},
    {"asinh", GCAP_UNARY_ASINH, [](double x) { return std::asinh(x); }, 6, -9, 9},
    {"atanh", GCAP_UNARY_ATANH, [](double x) { return std::atanh(x); }, 6, -1, 1},
    {"ceil", GCAP_UNARY_CEIL, [](double x) { return std::ceil(x); }, 0, -9, 9},
    {"floor", GCAP_UNARY_FLOOR, [](double x) { return std::floor(x); }, 0, -9, 9},
    {"round", GCAP_UNARY_ROUND, [](double x) { return std::nearbyint(x); }, 0, -9, 9},
    {"sign", GCAP_UNARY_SIGN, [](double x) { return std::isnan(x) ? x : (x > 0) - (x < 0); }, 0, -9, 9},
    {"elu", GCAP_UNARY_ELU, [](double x) { return x < 0 ? 0.75 * std::expm1(x) : x; }, 3, -4, 4, false, 0.75f},
    {"selu", GCAP_UNARY_SELU, [](double x) { return 1.5 * (x < 0 ? 0.75 * std::expm1(x) : x); }, 4, -4, 4, false, 0.75f,
     1.5f},
    {"celu", GCAP_UNARY_CELU, [](double x) { return x < 0 ? 0.75 * std::expm1(x / 0.75) : x; }, 4, -4, 4, false, 0.75f},
    {"hard_sigmoid", GCAP_UNARY_HARD_SIGMOID, HardSigmoid, 1, -4, 4, false, 0.25f, 0.5f},
    {"hard_swish", GCAP_UNARY_HARD_SWISH, [](double x) { return x * HardSigmoid(x); }, 2, -4, 4, false, 0.25f, 0.5f},
    {"swish", GCAP_UNARY_SWISH, [](double x) { return x / (1 + std::exp(-1.5 * x)); }, 13, -4, 4, false, 1.5f},
    {"softplus", GCAP_UNARY_SOFTPLUS, Softplus, 8, -9, 9},
    {"softsign", GCAP_UNARY_SOFTSIGN, [](double x) { return x / (1 + std::fabs(x)); }, 2, -9, 9},
    {"mish", GCAP_UNARY_MISH, [](double x) { return x * std::tanh(Softplus(x)); }, 14, -9, 9},
    {"thresholded_relu", GCAP_UNARY_THRESHOLDED_RELU, [](double x) { return x > 0.5 ? x : 0; }, 0, -4, 4, false, 0.5f},
    {"shrink", GCAP_UNARY_SHRINK, [](double x) { return x < -0.5  ? x + 0.25
                                                        : x > 0.5 ? x - 0.25
                                                                  : 0; }, 1, -4, 4,
     false, 0.25f, 0.5f},
    {"is_nan", GCAP_UNARY_IS_NAN, [](double x) { return std::isnan(x); }, 0, -4, 4, true},
    {"is_inf", GCAP_UNARY_IS_INF, [](double x) { return std::isinf(x); }, 0, -4, 4, true, 1, 1},
    {"is_positive_inf", GCAP_UNARY_IS_INF, [](double x) { return x == kInf; }, 0, -4, 4, true, 0, 1},
    {"is_negative_inf", GCAP_UNARY_IS_INF, [](double x) { return x == -kInf; }, 0, -4, 4, true, 1, 0},
    {"is_no_inf", GCAP_UNARY_IS_INF, [](double) { return 0; }, 0, -4, 4, true, 0, 0},
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

TEST_F(NodeUnary, SignAndShrinkOfIntegers) {
  for (gcap_dtype_t type : kIntegerTypes) {
    const double least = type == GCAP_DTYPE_I32 ? -2147483648.0 : -9223372036854775808.0;
    const Values in = {least, -5, -4, -3, -1, 0, 1, 3, 4, 5};
    EXPECT_EQ(Run(GCAP_UNARY_SIGN, 0, 0, type, type, in), (Values{-1, -1, -1, -1, -1, 0, 1, 1, 1, 1}));
    // -5 + 1.5 is -3.5, and 5 - 1.5 is 3.5.
    EXPECT_EQ(Run(GCAP_UNARY_SHRINK, 1.5f, 3.0f, type, type, {-5, -4, -3, 0, 3, 4, 5}),
              (Values{-3, -2, 0, 0, 0, 2, 3}));
    EXPECT_EQ(Run(GCAP_UNARY_SHRINK, -1.5f, 0.5f, type, type, {-5, -1, 0, 1, 5}), (Values{-6, -2, 0, 2, 6}));
    EXPECT_EQ(Run(GCAP_UNARY_SHRINK, 4.0f, 0.0f, type, type, {-5, -1, 1, 5, least}), (Values{-1, 3, -3, 1, least + 4}));
    EXPECT_EQ(Run(GCAP_UNARY_SHRINK, 0.5f, 0.0f, type, type, {-1, 1, 2}), (Values{0, 0, 1}));
    EXPECT_EQ(Run(GCAP_UNARY_SHRINK, 1.0f, NAN, type, type, {-1, 1}), (Values{0, 0}));
  }
}

TEST_F(NodeUnary, BitsOfIntegers) {
  for (gcap_dtype_t type : kIntegerTypes) {
    EXPECT_EQ(Run(GCAP_UNARY_BIT_NOT, 0, 0, type, type, {0, -1, 5, -6}), (Values{-1, 0, -6, 5}));
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
    GCAP_EXPECT_OK(gcap_binary_of(stream_, op, alpha_, &av, &bv, &yv));
    Synchronize();
    return y.Get();
  }
  float alpha_ = 0;
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

// As Python's %; a modulo 0 is 0.
double FloorMod(double a, double b) {
  const long double divisor = b;  // to which a rest is added without a rounding
  return b == 0 ? 0
                : static_cast<double>(std::fmod(std::fmod(static_cast<long double>(a), divisor) + divisor, divisor) +
                                      0.0L);
}

const BinaryCase kBinary[] = {
    {"less_or_equal", GCAP_BINARY_LESS_OR_EQUAL, [](double a, double b) { return a <= b; }, 0, true, true, true},
    {"greater_or_equal", GCAP_BINARY_GREATER_OR_EQUAL, [](double a, double b) { return a >= b; }, 0, true, true, true},
    {"prelu", GCAP_BINARY_PRELU, [](double a, double b) { return a < 0 ? a * b : a; }, 1, true, false, false},
    {"mod", GCAP_BINARY_MOD, FloorMod, 0, false, true, false},
    {"fmod", GCAP_BINARY_FMOD, [](double a, double b) { return std::fmod(a, b); }, 0, true, false, false},
    {"fmod of integers", GCAP_BINARY_FMOD, [](double a, double b) { return b == 0 ? 0 : std::fmod(a, b) + 0.0; }, 0,
     false, true, false},
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

TEST_F(NodeBinary, BitsOfIntegers) {
  for (gcap_dtype_t type : kIntegerTypes) {
    const DeviceTensor a(type, {4}, {12, -1, 0, -8}), b(type, {4}, {10, 7, 9, 12});
    EXPECT_EQ(Run(GCAP_BINARY_BIT_AND, a, b, type, {4}), (Values{8, 7, 0, 8}));
    EXPECT_EQ(Run(GCAP_BINARY_BIT_OR, a, b, type, {4}), (Values{14, -1, 9, -4}));
    EXPECT_EQ(Run(GCAP_BINARY_BIT_XOR, a, b, type, {4}), (Values{6, -8, 9, -12}));
  }
}

// ONNX's example, and shifts of all bits and of more.
TEST_F(NodeBinary, ShiftsOfBytes) {
  const gcap_dtype_t type = GCAP_DTYPE_U8;
  const DeviceTensor a(type, {6}, {16, 4, 1, 255, 255, 255}), by(type, {6}, {1, 2, 3, 7, 8, 255});
  EXPECT_EQ(Run(GCAP_BINARY_SHIFT_RIGHT, a, by, type, {6}), (Values{8, 1, 0, 1, 0, 0}));
  EXPECT_EQ(Run(GCAP_BINARY_SHIFT_LEFT, a, by, type, {6}), (Values{32, 16, 8, 128, 0, 0}));
}

TEST_F(NodeBinary, XorOfBooleans) {
  EXPECT_EQ(RunPairs(GCAP_BINARY_XOR, GCAP_DTYPE_BOOL, GCAP_DTYPE_BOOL, {0, 1}), (Values{0, 1, 1, 0}));
}

// A sum of the numbers would be infinite in f16.
TEST_F(NodeBinary, ARunningMeanOfLargeNumbersIsFinite) {
  for (gcap_dtype_t type : kFloatTypes) {
    const DeviceTensor a(type, {3}, {60000, -8, kNan}), b(type, {3}, {40000, 4, 1});
    alpha_ = 3;
    ExpectNumbers(type, Run(GCAP_BINARY_RUNNING_MEAN, a, b, type, {3}),
                  {(3 * Stored(type, 60000) + Stored(type, 40000)) / 4, -5, kNan}, 3);
  }
}

TEST_F(NodeBinary, NamesTypesThatDoNotFit) {
  const DeviceTensor integers(GCAP_DTYPE_I32, {2}), floats(GCAP_DTYPE_F32, {2});
  const gcap_tensor_t i = integers.view(), f = floats.view();
  const gcap_code_t bad = GCAP_INVALID_ARGUMENT;
  GCAP_EXPECT_FAILS(gcap_binary_of(stream_, GCAP_BINARY_PRELU, 0, &i, &i, &i), bad,
                    "PRELU is not defined for i32, allowed are f32, f16, bf16");
  GCAP_EXPECT_FAILS(gcap_binary_of(stream_, GCAP_BINARY_MOD, 0, &f, &f, &f), bad,
                    "MOD is not defined for f32, allowed are i64, i32");
  GCAP_EXPECT_FAILS(gcap_binary_of(stream_, GCAP_BINARY_XOR, 0, &f, &f, &f), bad,
                    "XOR is not defined for f32, allowed are bool");
  GCAP_EXPECT_FAILS(gcap_binary_of(stream_, GCAP_BINARY_LESS_OR_EQUAL, 0, &f, &f, &f), bad,
                    "y is f32, must be bool: the type of a comparison");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
