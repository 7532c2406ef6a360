// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// half.h: f16 and bf16 as their bits, to and from f32, in plain C11 for the CPU. Rounding is to nearest, ties to even.
// A NaN stays a NaN; what is too large becomes infinite.
//
// f16 has 1 sign bit, 5 of exponent (bias 15) and 10 of fraction; bf16 is the upper half of an f32 (IEEE
// 754-2008, 3.4).
#ifndef GCAP_OPS_KERNELS_HALF_H_
#define GCAP_OPS_KERNELS_HALF_H_

#include <stdint.h>
#include <string.h>

static inline uint32_t gcap_f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static inline float gcap_f32_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// `bits` without its last `drop` (1..31) ones, rounded. A carry out of the fraction goes into the exponent, as it must.
static inline uint32_t gcap_round_bits(uint32_t bits, unsigned drop) {
  const uint32_t half = UINT32_C(1) << (drop - 1);
  const uint32_t kept = bits >> drop, rest = bits & (2 * half - 1);
  return kept + (rest > half || (rest == half && (kept & 1)));
}

static inline float gcap_bf16_to_f32(uint16_t value) { return gcap_f32_from_bits((uint32_t)value << 16); }

static inline uint16_t gcap_bf16_from_f32(float value) {
  const uint32_t bits = gcap_f32_bits(value);
  if (value != value) return (uint16_t)(bits >> 16 | 0x40);  // quiet, so that the upper half alone is a NaN too
  return (uint16_t)gcap_round_bits(bits, 16);
}

static inline float gcap_f16_to_f32(uint16_t value) {
  const uint32_t sign = (uint32_t)(value & 0x8000) << 16, magnitude = value & 0x7fff;
  if (magnitude >= 0x7c00) return gcap_f32_from_bits(sign | 0x7f800000 | magnitude << 13);  // infinity, NaN
  // The bits as those of an f32 are the value at an exponent of 127 - 15 too little. The product is exact, and makes a
  // subnormal normal.
  const float scaled = gcap_f32_from_bits(magnitude << 13) * 0x1p112f;
  return gcap_f32_from_bits(sign | gcap_f32_bits(scaled));
}

static inline uint16_t gcap_f16_from_f32(float value) {
  const uint32_t bits = gcap_f32_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));  // NaN
  if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00);  // 65520 and more, halfway beyond the largest
  if (magnitude >= 0x38800000) return (uint16_t)(sign | gcap_round_bits(magnitude - (UINT32_C(112) << 23), 13));
  if (magnitude < 0x33000000) return (uint16_t)sign;  // below 2^-25, half of the smallest
  // A subnormal counts in 2^-24. The fraction with its leading one counts in 2^(exponent - 150).
  const unsigned exponent = magnitude >> 23;
  return (uint16_t)(sign | gcap_round_bits((magnitude & 0x7fffff) | 0x800000, 126 - exponent));
}

#endif  // GCAP_OPS_KERNELS_HALF_H_
