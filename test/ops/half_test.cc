// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The conversions of f16 and bf16: all 65,536 values, and floats around each of them and around each tie.

#include "ops/kernels/half.h"

#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

struct Conversion {
  gcap_dtype_t type;
  float (*to_f32)(uint16_t);
  uint16_t (*from_f32)(float);
};
constexpr Conversion kConversions[] = {{GCAP_DTYPE_F16, gcap_f16_to_f32, gcap_f16_from_f32},
                                       {GCAP_DTYPE_BF16, gcap_bf16_to_f32, gcap_bf16_from_f32}};

TEST(Half, EveryValueBecomesItsFloatAndComesBack) {
  for (const Conversion& conversion : kConversions) {
    for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
      const double expected = FromBits16(conversion.type, static_cast<uint16_t>(bits));
      const float value = conversion.to_f32(static_cast<uint16_t>(bits));
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(value)) << bits;
        ASSERT_TRUE(std::isnan(FromBits16(conversion.type, conversion.from_f32(value)))) << bits;
        continue;
      }
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
      ASSERT_EQ(conversion.from_f32(value), bits);
    }
  }
}

// Between two neighbours lie the tie and the floats next to it.
TEST(Half, RoundsToNearestEven) {
  for (const Conversion& conversion : kConversions) {
    const int infinity = 0x7fff >> FormatOf(conversion.type).fraction_bits << FormatOf(conversion.type).fraction_bits;
    for (int bits = 0; bits < infinity; ++bits) {
      const double low = FromBits16(conversion.type, static_cast<uint16_t>(bits));
      const double quantum = bits + 1 < infinity ? FromBits16(conversion.type, static_cast<uint16_t>(bits + 1)) - low
                                                 : low - FromBits16(conversion.type, static_cast<uint16_t>(bits - 1));
      const float tie = static_cast<float>(low + quantum / 2);
      for (float value : {std::nextafter(static_cast<float>(low), HUGE_VALF), std::nextafter(tie, -HUGE_VALF), tie,
                          std::nextafter(tie, HUGE_VALF)}) {
        const uint16_t expected = Bits16(conversion.type, Round(conversion.type, value));
        ASSERT_EQ(conversion.from_f32(value), expected) << value;
        ASSERT_EQ(conversion.from_f32(-value), expected | 0x8000) << value;
      }
    }
    EXPECT_EQ(conversion.from_f32(HUGE_VALF), infinity);
    EXPECT_EQ(conversion.from_f32(-HUGE_VALF), infinity | 0x8000);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
