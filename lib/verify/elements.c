// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Elements on the host. Bits are compared first, so that a tolerance of nothing tells zeros of two signs and NaNs of
// two payloads apart. A difference of two integers is taken as one, since 64 bits do not fit into a double. Pure
// functions.

#include "lib/verify/elements.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static double of_f32(uint32_t bits) {
  float number;
  memcpy(&number, &bits, sizeof(number));
  return (double)number;
}

static double of_f16(uint32_t bits) {
  const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
  const int exponent = (int)(bits >> 10 & 0x1Fu);
  const double fraction = (double)(bits & 0x3FFu);
  if (exponent == 0x1F) return fraction == 0.0 ? sign * INFINITY : (double)NAN;
  if (exponent == 0) return sign * ldexp(fraction, -24);
  return sign * ldexp(1024.0 + fraction, exponent - 25);
}

static double number_of(gcap_dtype_t type, uint64_t bits) {
  switch (type) {
    case GCAP_DTYPE_F32: return of_f32((uint32_t)bits);
    case GCAP_DTYPE_F16: return of_f16((uint32_t)bits);
    case GCAP_DTYPE_BF16: return of_f32((uint32_t)bits << 16);
    case GCAP_DTYPE_I64: return (double)(int64_t)bits;
    case GCAP_DTYPE_I32: return (double)(int32_t)(uint32_t)bits;
    case GCAP_DTYPE_I8: return (double)(int8_t)(uint8_t)bits;
    case GCAP_DTYPE_U8:
    case GCAP_DTYPE_BOOL: break;
  }
  return (double)bits;
}

gcap_verify_element_t gcap_verify_read_element(gcap_dtype_t type, const void* address) {
  gcap_verify_element_t element = {0};
  memcpy(&element.bits, address, gcap_dtype_bytes(type));  // gcap and CUDA run on little-endian hosts
  element.number = number_of(type, element.bits);
  return element;
}

double gcap_verify_distance(gcap_dtype_t type, gcap_verify_element_t a, gcap_verify_element_t b) {
  if (type != GCAP_DTYPE_I64) return fabs(a.number - b.number);
  const bool is_less = (int64_t)a.bits < (int64_t)b.bits;
  return (double)(is_less ? b.bits - a.bits : a.bits - b.bits);
}

bool gcap_verify_is_near(gcap_dtype_t type, gcap_verify_element_t actual, gcap_verify_element_t expected,
                         double absolute, double relative) {
  if (actual.bits == expected.bits) return true;
  if (absolute == 0.0 && relative == 0.0) return false;
  if (isnan(actual.number) || isnan(expected.number)) return isnan(actual.number) && isnan(expected.number);
  if (isinf(actual.number) || isinf(expected.number)) return false;
  return gcap_verify_distance(type, actual, expected) <= absolute + relative * fabs(expected.number);
}

void gcap_verify_write_element(gcap_dtype_t type, uint64_t bits, double number, gcap_text_t* text) {
  const bool is_plain = !isnan(number) && !(number == 0.0 && signbit(number));
  switch (type) {
    case GCAP_DTYPE_I64:
    case GCAP_DTYPE_I32:
    case GCAP_DTYPE_BOOL:
    case GCAP_DTYPE_I8:
    case GCAP_DTYPE_U8:
      gcap_text_add(text, "%" PRId64, type == GCAP_DTYPE_I64 ? (int64_t)bits : (int64_t)number);
      return;
    case GCAP_DTYPE_F32:
    case GCAP_DTYPE_F16:
    case GCAP_DTYPE_BF16: break;
  }
  gcap_text_add(text, "%.9g", number);  // 9 digits tell any two f32 apart
  if (!is_plain) gcap_text_add(text, " (0x%" PRIx64 ")", bits);
}
