// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Conversions between float and the 16-bit formats, on the bits. bfloat16 and TF32 are a float with a shorter mantissa,
// so one rounding serves both. A half has its own exponent range: 5 bits, bias 15, and denormals below 2^-14.
// Stateless.
#include "sim/library/element.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// Rounds away the lowest `dropped` mantissa bits, to nearest even. NaN keeps its top mantissa bit set.
static uint32_t round_mantissa(float value, unsigned dropped) {
  const uint32_t bits = bits_of(value);
  const uint32_t mask = (1u << dropped) - 1;
  if (isnan(value)) {
    return (bits | 0x00400000u) & ~mask;
  }
  const uint32_t odd = (bits >> dropped) & 1u;
  return (bits + (mask >> 1) + odd) & ~mask;
}

static float half_to_float(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
  const unsigned exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) {
    return float_of(sign | 0x7f800000u | mantissa << 13);
  }
  if (exponent == 0) {
    const float magnitude = ldexpf((float)mantissa, -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return float_of(sign | (exponent + 127 - 15) << 23 | mantissa << 13);
}

static uint16_t float_to_half(float value) {
  const uint16_t sign = (uint16_t)(bits_of(value) >> 16 & 0x8000u);
  const float magnitude = fabsf(value);
  if (isnan(value)) {
    return sign | 0x7e00u;
  }
  if (magnitude >= 65520.0f) {  // half way between the largest half and the next power of two
    return sign | 0x7c00u;
  }
  if (magnitude < 6.103515625e-05f) {  // 2^-14: denormal, a multiple of 2^-24; a carry gives the smallest normal
    return sign | (uint16_t)lrintf(ldexpf(magnitude, 24));
  }
  const uint32_t rounded = round_mantissa(magnitude, 13);
  return sign | (uint16_t)((rounded >> 13) - ((127u - 15u) << 10));
}

size_t gcap_sim_element_bytes(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F: return 8;
    case CUDA_R_32F: return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    default: return 0;
  }
}

static float load_bits(cudaDataType type, uint16_t bits) {
  return type == CUDA_R_16F ? half_to_float(bits) : float_of((uint32_t)bits << 16);
}

static uint16_t store_bits(cudaDataType type, float value) {
  return type == CUDA_R_16F ? float_to_half(value) : (uint16_t)(round_mantissa(value, 16) >> 16);
}

float gcap_sim_element_load_16(const void* base, cudaDataType type, ptrdiff_t index) {
  return load_bits(type, ((const uint16_t*)base)[index]);
}

void gcap_sim_element_store_16(void* base, cudaDataType type, ptrdiff_t index, float value) {
  ((uint16_t*)base)[index] = store_bits(type, value);
}

float gcap_sim_element_round_to_16(cudaDataType type, float value) { return load_bits(type, store_bits(type, value)); }

float gcap_sim_element_round_to_tf32(float value) { return float_of(round_mantissa(value, 13)); }
