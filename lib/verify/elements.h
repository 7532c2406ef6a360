// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// elements.h: one element of a tensor on the host, as bits, as a number and as text.
#ifndef GCAP_LIB_VERIFY_ELEMENTS_H_
#define GCAP_LIB_VERIFY_ELEMENTS_H_

#include <stdbool.h>
#include <stdint.h>

#include "gcap/tensor.h"
#include "lib/internal/text.h"

typedef struct gcap_verify_element {
  uint64_t bits;
  double number;
} gcap_verify_element_t;

gcap_verify_element_t gcap_verify_read_element(gcap_dtype_t type, const void* address);

// |a - b|, exact up to the rounding to a double; NaN if it is none of two numbers.
double gcap_verify_distance(gcap_dtype_t type, gcap_verify_element_t a, gcap_verify_element_t b);

// Whether `actual` is within the tolerance of `expected`.
bool gcap_verify_is_near(gcap_dtype_t type, gcap_verify_element_t actual, gcap_verify_element_t expected,
                         double absolute, double relative);

// "0.25", "18446744073709551615", "nan (0x7fc00001)": enough to tell any two elements of a type apart.
void gcap_verify_write_element(gcap_dtype_t type, uint64_t bits, double number, gcap_text_t* text);

#endif  // GCAP_LIB_VERIFY_ELEMENTS_H_
