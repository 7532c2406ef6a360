// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Casts between all types: every pair, ties, what is out of range, and integers that two roundings would get wrong.

#include "gcap/kit/ops/elementwise.h"
#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

class Cast : public OpTest {
 protected:
  Values Run(const DeviceTensor& x, gcap_dtype_t to, size_t offset = 0) {
    const DeviceTensor y(to, x.shape(), offset);
    const gcap_tensor_t xv = x.view(), yv = y.view();
    GCAP_EXPECT_OK(gcap_cast(stream_, &xv, &yv));
    Synchronize();
    return y.Get();
  }
  Values Run(gcap_dtype_t from, gcap_dtype_t to, const Values& x) {
    return Run(DeviceTensor(from, {static_cast<int64_t>(x.size())}, x), to);
  }
};

double Expected(gcap_dtype_t from, gcap_dtype_t to, double value) {
  if (to == GCAP_DTYPE_BOOL) return value != 0.0;
  if (IsFloat(to)) return Round(to, value);
  const double whole = std::trunc(value), least = to == GCAP_DTYPE_I8 ? -128 : 0, most = least + 255;
  if (to != GCAP_DTYPE_I8 && to != GCAP_DTYPE_U8) return whole;
  if (IsFloat(from)) return std::min(std::max(whole, least), most);
  return whole - 256 * std::floor((whole - least) / 256);  // the low bits
}

TEST_F(Cast, EqualsTheLoopForAllPairsOfTypes) {
  for (gcap_dtype_t from : kAllTypes) {
    for (gcap_dtype_t to : kAllTypes) {
      Draws draws(7);
      SCOPED_TRACE(::testing::Message() << "seed 7, " << gcap_dtype_name(from) << " to " << gcap_dtype_name(to));
      for (size_t offset : {0, 1}) {
        const DeviceTensor x(from, {3, 347}, draws.Elements(from, 3 * 347, -1000, 1000), offset);
        Values expected = x.Get();
        for (double& value : expected) value = Expected(from, to, value);
        EXPECT_EQ(Run(x, to, 2 * offset), expected);
      }
    }
  }
}

TEST_F(Cast, FloatsOutOfRangeSaturateAndNaNIsZero) {
  const double most32 = 2147483647.0, most64 = 9223372036854775807.0;
  for (gcap_dtype_t from : kFloatTypes) {
    EXPECT_EQ(Run(from, GCAP_DTYPE_I32, {kNan, kInf, -kInf, -2.75}), (Values{0, most32, -most32 - 1, -2}));
    EXPECT_EQ(Run(from, GCAP_DTYPE_I64, {kNan, kInf, -kInf, 2.75}), (Values{0, most64, -most64 - 1, 2}));
    EXPECT_EQ(Run(from, GCAP_DTYPE_BOOL, {kNan, 0.0, -0.0, 0.001}), (Values{1, 0, 0, 1}));
    EXPECT_EQ(Run(from, GCAP_DTYPE_I8, {kNan, kInf, -kInf, 127.5, 128, -128.5, -129}),
              (Values{0, 127, -128, 127, 127, -128, -128}));
    EXPECT_EQ(Run(from, GCAP_DTYPE_U8, {kNan, kInf, -kInf, -0.5, -1, 255, 256}), (Values{0, 255, 0, 0, 0, 255, 255}));
  }
  EXPECT_EQ(Run(GCAP_DTYPE_F32, GCAP_DTYPE_I32, {2147483520.0, 2147483648.0, -2147483648.0, -2147483904.0}),
            (Values{2147483520.0, most32, -2147483648.0, -2147483648.0}));
  EXPECT_EQ(Run(GCAP_DTYPE_F32, GCAP_DTYPE_F16, {65519, 65520, -1e30, 1e-30}), (Values{65504, kInf, -kInf, 0}));
  EXPECT_EQ(Run(GCAP_DTYPE_F32, GCAP_DTYPE_BF16, {3.4e38}), (Values{kInf}));
  EXPECT_TRUE(std::isnan(Run(GCAP_DTYPE_F32, GCAP_DTYPE_BF16, {kNan})[0]));
  EXPECT_EQ(Run(GCAP_DTYPE_I64, GCAP_DTYPE_F16, {65519, 65520, -9e18}), (Values{65504, kInf, -kInf}));
}

TEST_F(Cast, WideIntegersKeepTheirLowBits) {
  EXPECT_EQ(Run(GCAP_DTYPE_I64, GCAP_DTYPE_I32, {4294967296.0 + 5, 2147483648.0, -1}), (Values{5, -2147483648.0, -1}));
}

// 2^40 + 2^32 lies halfway between two of bf16, and 1 more decides; in f32 the 1 is lost.
TEST_F(Cast, IntegersAreRoundedOnce) {
  const double tie = 1099511627776.0 + 4294967296.0;
  const double up = 1099511627776.0 + 8589934592.0;
  EXPECT_EQ(Run(GCAP_DTYPE_I64, GCAP_DTYPE_BF16, {tie, tie + 1, -tie - 1, 257, 259, 16777217}),
            (Values{1099511627776.0, up, -up, 256, 260, 16777216}));
  EXPECT_EQ(Run(GCAP_DTYPE_I32, GCAP_DTYPE_F32, {16777217, 16777219}), (Values{16777216, 16777220}));
  const double least = -9223372036854775808.0;
  EXPECT_EQ(Run(GCAP_DTYPE_I64, GCAP_DTYPE_BF16, {least}), (Values{least}));
}

TEST_F(Cast, OfOneTypeIsACopyAndOfOneSizeMayBeInPlace) {
  const DeviceTensor x(GCAP_DTYPE_F32, {2}, {1.5, -2.5});
  EXPECT_EQ(Run(x, GCAP_DTYPE_F32), (Values{1.5, -2.5}));
  const gcap_tensor_t xv = x.view(), yv = View(GCAP_DTYPE_I32, {2}, xv.data);
  GCAP_EXPECT_OK(gcap_cast(stream_, &xv, &yv));
  Synchronize();
  int32_t values[2];
  GCAP_EXPECT_CUDA(cudaMemcpy(values, xv.data, sizeof(values), cudaMemcpyDeviceToHost));
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], -2);
}

TEST_F(Cast, ReplayReadsTheInputAgain) {
  DeviceTensor x(GCAP_DTYPE_F16, {2}, {1, 2}), y(GCAP_DTYPE_I64, {2});
  const gcap_tensor_t xv = x.view(), yv = y.view();
  Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_cast(stream_, &xv, &yv)); });
  EXPECT_EQ(graph.CountKernels(), 1u);
  x.Set({-7.5, 9.5});
  graph.Replay();
  EXPECT_EQ(y.Get(), (Values{-7, 9}));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
