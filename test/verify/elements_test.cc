// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Elements of each type as numbers, within tolerances, and as texts. The numbers of the small floats are computed here
// by their definition in IEEE 754, bit by bit.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "gtest/gtest.h"

extern "C" {
#include "lib/verify/elements.h"
}

namespace gcap {
namespace testing {
namespace {

template <typename T>
gcap_verify_element_t Element(gcap_dtype_t type, T value) {
  return gcap_verify_read_element(type, &value);
}

// (-1)^s 2^(e - bias) (1 + f / 2^bits), and without the one for e = 0.
double Defined(uint32_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, all_ones = (1 << exponent_bits) - 1;
  const uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  const int exponent = static_cast<int>(bits >> fraction_bits) & all_ones;
  const double sign = (bits >> (exponent_bits + fraction_bits) & 1) != 0 ? -1 : 1;
  const double part = fraction / std::pow(2.0, fraction_bits);
  if (exponent == all_ones) return fraction != 0 ? NAN : sign * INFINITY;
  return exponent == 0 ? sign * part * std::pow(2.0, 1 - bias) : sign * (1 + part) * std::pow(2.0, exponent - bias);
}

TEST(VerifyElements, OfSmallFloatsEachNumberIsAsDefined) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const double numbers[] = {Element(GCAP_DTYPE_F16, half).number, Element(GCAP_DTYPE_BF16, half).number};
    const double defined[] = {Defined(bits, 5, 10), Defined(bits, 8, 7)};
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(std::isnan(defined[i]) ? std::isnan(numbers[i]) : numbers[i] == defined[i]) << bits << " " << i;
      ASSERT_TRUE(std::isnan(defined[i]) || std::signbit(numbers[i]) == std::signbit(defined[i])) << bits << " " << i;
    }
  }
}

TEST(VerifyElements, OfOtherTypesTheNumberIsTheValue) {
  EXPECT_EQ(Element(GCAP_DTYPE_F32, -2.5f).number, -2.5);
  EXPECT_EQ(Element(GCAP_DTYPE_I32, int32_t{-7}).number, -7);
  EXPECT_EQ(Element(GCAP_DTYPE_I64, int64_t{-7}).number, -7);
  EXPECT_EQ(Element(GCAP_DTYPE_BOOL, uint8_t{200}).number, 200) << "a byte";
  EXPECT_EQ(Element(GCAP_DTYPE_U8, uint8_t{200}).number, 200);
  EXPECT_EQ(Element(GCAP_DTYPE_I8, int8_t{-56}).number, -56);
}

TEST(VerifyElements, ADistanceOfLargeIntegersIsExact) {
  const int64_t large = (int64_t{1} << 60) + 1;
  const auto a = Element(GCAP_DTYPE_I64, large), b = Element(GCAP_DTYPE_I64, large + 2);
  EXPECT_EQ(gcap_verify_distance(GCAP_DTYPE_I64, a, b), 2);
  EXPECT_EQ(gcap_verify_distance(GCAP_DTYPE_I64, b, a), 2);
  EXPECT_TRUE(gcap_verify_is_near(GCAP_DTYPE_I64, a, b, 2, 0));
  EXPECT_FALSE(gcap_verify_is_near(GCAP_DTYPE_I64, a, b, 1, 0));
  const auto least = Element(GCAP_DTYPE_I64, std::numeric_limits<int64_t>::min());
  const auto most = Element(GCAP_DTYPE_I64, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(gcap_verify_distance(GCAP_DTYPE_I64, least, most), std::pow(2.0, 64));
}

bool IsNear(float actual, float expected, double absolute, double relative) {
  return gcap_verify_is_near(GCAP_DTYPE_F32, Element(GCAP_DTYPE_F32, actual), Element(GCAP_DTYPE_F32, expected),
                             absolute, relative);
}

TEST(VerifyElements, WithoutAToleranceEachBitCounts) {
  EXPECT_TRUE(IsNear(1, 1, 0, 0));
  EXPECT_FALSE(IsNear(std::nextafter(1.0f, 2.0f), 1, 0, 0));
  EXPECT_FALSE(IsNear(-0.0f, 0.0f, 0, 0));
  EXPECT_TRUE(IsNear(NAN, NAN, 0, 0)) << "of the same bits";
  EXPECT_FALSE(IsNear(-NAN, NAN, 0, 0));
}

TEST(VerifyElements, ToleranceIsAbsoluteAndRelativeToWhatIsExpected) {
  EXPECT_TRUE(IsNear(1.5f, 1, 0.5, 0));
  EXPECT_FALSE(IsNear(1.5f, 1, 0.49, 0));
  EXPECT_FALSE(IsNear(110, 100, 0, 0.095)) << "10 of 100 is more";
  EXPECT_TRUE(IsNear(100, 110, 0, 0.095)) << "10 of 110 is less";
  EXPECT_TRUE(IsNear(-111, -100, 1, 0.1)) << "both together";
  EXPECT_TRUE(IsNear(-0.0f, 0.0f, 0, 1e-9));
}

TEST(VerifyElements, NoToleranceReachesNaNOrInfinity) {
  EXPECT_TRUE(IsNear(-NAN, NAN, 1, 1)) << "a NaN is a NaN";
  EXPECT_FALSE(IsNear(NAN, 1, 1e30, 1e30));
  EXPECT_FALSE(IsNear(1, NAN, 1e30, 1e30));
  EXPECT_TRUE(IsNear(INFINITY, INFINITY, 1, 1));
  EXPECT_FALSE(IsNear(INFINITY, -INFINITY, 1, 1));
  EXPECT_FALSE(IsNear(1, INFINITY, 1, 1)) << "whose tolerance is no number";
  EXPECT_FALSE(IsNear(INFINITY, 1, INFINITY, 0));
}

template <typename T>
std::string Text(gcap_dtype_t type, T value) {
  const gcap_verify_element_t element = Element(type, value);
  char chars[128];
  gcap_text_t text;
  gcap_text_init(&text, chars, sizeof(chars));
  gcap_verify_write_element(type, element.bits, element.number, &text);
  return chars;
}

TEST(VerifyElements, ATextTellsAnyTwoApart) {
  EXPECT_EQ(Text(GCAP_DTYPE_F32, 0.25f), "0.25");
  EXPECT_NE(Text(GCAP_DTYPE_F32, std::nextafter(1.0f, 2.0f)), Text(GCAP_DTYPE_F32, 1.0f));
  EXPECT_EQ(Text(GCAP_DTYPE_F32, -0.0f), "-0 (0x80000000)");
  EXPECT_EQ(Text(GCAP_DTYPE_F16, uint16_t{0x7E01}), "nan (0x7e01)");
  EXPECT_EQ(Text(GCAP_DTYPE_I64, (int64_t{1} << 60) + 1), "1152921504606846977");
  EXPECT_EQ(Text(GCAP_DTYPE_I32, int32_t{-3}), "-3");
  EXPECT_EQ(Text(GCAP_DTYPE_BOOL, uint8_t{255}), "255");
  EXPECT_EQ(Text(GCAP_DTYPE_U8, uint8_t{255}), "255");
  EXPECT_EQ(Text(GCAP_DTYPE_I8, int8_t{-1}), "-1");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
