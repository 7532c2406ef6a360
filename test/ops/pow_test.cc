// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Powers whose exponent has a type of its own: numbers against std::pow of doubles for each pair of types, what is
// special about whole exponents and about integers, in place, capture and replay, and bad input.

#include "gcap/kit/ops/elementwise.h"
#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

constexpr gcap_dtype_t kNumbers[] = {GCAP_DTYPE_F32, GCAP_DTYPE_F16, GCAP_DTYPE_BF16, GCAP_DTYPE_I64, GCAP_DTYPE_I32};
constexpr double kRoundings =
    9;  // powf: 4 ulp on a GPU (CUDA C++ Programming Guide), which are 8, and that of the sign

class Pow : public OpTest {
 protected:
  gcap_status_t Issue(const DeviceTensor& a, const DeviceTensor& b, const DeviceTensor& y) {
    const gcap_tensor_t av = a.view(), bv = b.view(), yv = y.view();
    return gcap_binary(stream_, GCAP_BINARY_POW, &av, &bv, &yv);
  }
  // Of lists.
  Values Run(gcap_dtype_t a_type, const Values& a, gcap_dtype_t b_type, const Values& b) {
    const Shape shape = {static_cast<int64_t>(a.size())};
    const DeviceTensor y(a_type, shape);
    GCAP_EXPECT_OK(Issue(DeviceTensor(a_type, shape, a), DeviceTensor(b_type, shape, b), y));
    Synchronize();
    return y.Get();
  }
};

// Integers have no power here that is whole by a hair: 2, 3, 5, 6 and 7 to a power of a quarter are irrational.
Values Bases(gcap_dtype_t type) {
  return IsFloat(type) ? Values{0.25, 0.75, 1, 1.5, 2, 3, 5, 7, 0.5} : Values{2, 3, 5, 6, 7, 1, 2, 3, 5};
}
Values Exponents(gcap_dtype_t type) {
  return IsFloat(type) ? Values{0.25, -1.75, 2, 2.75, -1, 0, 4} : Values{0, 1, -1, 2, 3, -2, 4};
}

TEST_F(Pow, EqualsTheLoopForEachPairOfTypesAlsoWhenReplayed) {
  for (gcap_dtype_t a_type : kNumbers) {
    for (gcap_dtype_t b_type : kNumbers) {
      SCOPED_TRACE(::testing::Message() << gcap_dtype_name(a_type) << " to " << gcap_dtype_name(b_type));
      const Values bases = Bases(a_type), exponents = Exponents(b_type);
      const Shape shape = {7, 9};
      DeviceTensor a(a_type, {9}, bases, /*offset=*/1);
      const DeviceTensor b(b_type, {7, 1}, exponents, /*offset=*/3);
      const DeviceTensor y(a_type, shape, /*offset=*/1);
      const auto expect_right = [&](double factor) {
        const Values av = a.Get();
        const Values expected = [&] {
          Values values(63);
          for (size_t i = 0; i < values.size(); ++i) {
            values[i] = std::pow(av[i % 9], exponents[i / 9]);
            if (!IsFloat(a_type)) values[i] = std::trunc(values[i]);
          }
          return values;
        }();
        EXPECT_EQ(av[0], bases[0] * factor);
        ExpectStored(a_type, y.Get(), expected, kRoundings);
      };
      Graph graph(stream_, [&] { GCAP_EXPECT_OK(Issue(a, b, y)); });
      EXPECT_EQ(graph.CountKernels(), 1u);
      graph.Replay();
      expect_right(1);
      Values tripled = bases;
      for (double& base : tripled) base *= 3;
      a.Set(tripled);
      graph.Replay();
      expect_right(3);
    }
  }
}

TEST_F(Pow, AWholeExponentKeepsItsParity) {
  const double odd = std::ldexp(1.0, 24) + 1;  // no float
  EXPECT_EQ(Run(GCAP_DTYPE_F32, {-1, -1, -1}, GCAP_DTYPE_I64, {odd, odd + 1, -odd}), (Values{-1, 1, -1}));
  EXPECT_EQ(Run(GCAP_DTYPE_F32, {-2, -2, 0}, GCAP_DTYPE_I32, {3, 2, 0}), (Values{-8, 4, 1}));
  EXPECT_EQ(Run(GCAP_DTYPE_F32, {-0.0, -0.0, 0}, GCAP_DTYPE_I32, {-3, -2, -1}), (Values{-kInf, kInf, kInf}));
  EXPECT_EQ(Run(GCAP_DTYPE_F32, {kNan, -kInf}, GCAP_DTYPE_I32, {0, 3}), (Values{1, -kInf}));
}

TEST_F(Pow, AnIntegerToAWholeRealPowerIsExact) {
  EXPECT_EQ(Run(GCAP_DTYPE_I64, {3, 7, -3, 2, -1}, GCAP_DTYPE_F32, {33, 18, 31, 62, -5}),
            (Values{5559060566555523, 1628413597910449, -617673396283947, std::ldexp(1.0, 62), -1}));
}

TEST_F(Pow, AnIntegerToAnotherPowerTruncatesAndSaturates) {
  for (gcap_dtype_t b_type : kFloatTypes) {
    EXPECT_EQ(Run(GCAP_DTYPE_I32, {10, -10, 7, 0, 0}, b_type, {0.5, 0.5, -0.5, -0.5, kInf}),
              (Values{3, 0, 0, INT32_MAX, 0}));
    EXPECT_EQ(Run(GCAP_DTYPE_I32, {1000, 1000}, b_type, {20.5, kNan}), (Values{INT32_MAX, 0}));
  }
}

TEST_F(Pow, TheOutputMayBeTheBaseOrTheExponent) {
  for (bool in_exponent : {false, true}) {
    const DeviceTensor a(GCAP_DTYPE_F32, {3}, {2, 3, 4}), b(GCAP_DTYPE_I32, {3}, {3, 2, 1});
    const gcap_tensor_t av = a.view(), bv = b.view();
    const gcap_tensor_t y = View(GCAP_DTYPE_F32, {3}, in_exponent ? bv.data : av.data);
    GCAP_EXPECT_OK(gcap_binary(stream_, GCAP_BINARY_POW, &av, &bv, &y));
    Synchronize();
    float values[3];
    GCAP_EXPECT_CUDA(cudaMemcpy(values, y.data, sizeof(values), cudaMemcpyDeviceToHost));
    EXPECT_EQ(std::vector<float>(values, values + 3), (std::vector<float>{8, 9, 4}));
  }
}

TEST_F(Pow, OfNoElementsIsNothing) {
  GCAP_EXPECT_OK(Issue(DeviceTensor(GCAP_DTYPE_F16, {0, 3}), DeviceTensor(GCAP_DTYPE_I64, {3}),
                       DeviceTensor(GCAP_DTYPE_F16, {0, 3})));
}

TEST_F(Pow, OtherTypesAreNamed) {
  const DeviceTensor a(GCAP_DTYPE_F32, {3}), flags(GCAP_DTYPE_BOOL, {3}), whole(GCAP_DTYPE_I64, {3});
  GCAP_EXPECT_FAILS(Issue(a, flags, a), GCAP_INVALID_ARGUMENT, "bool, allowed are f32, f16, bf16, i64, i32");
  GCAP_EXPECT_FAILS(Issue(a, whole, whole), GCAP_INVALID_ARGUMENT, "y is i64, must be f32: the type of a");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
