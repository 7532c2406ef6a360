// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// compensated_sum.h: a sum of floats that hands what an addition rounds off to the next one (W. Kahan, 1965; the error
// of an addition by D. Knuth's two-sum). While there are fewer than 2^24 terms, it is off by two roundings of 2^-24,
// and not by one for each term.
#ifndef GCAP_OPS_KERNELS_COMPENSATED_SUM_H_
#define GCAP_OPS_KERNELS_COMPENSATED_SUM_H_

#include "ops/kernels/element.h"

typedef struct gcap_sum {
  float rounded;
  float lost;
} gcap_sum_t;

GCAP_INLINE gcap_sum_t gcap_sum_zero(void) {
  gcap_sum_t sum = {0.0f, 0.0f};
  return sum;
}

// Beside an infinity what was lost would be a NaN.
GCAP_INLINE void gcap_sum_add(gcap_sum_t* sum, float term) {
  const float corrected = term + sum->lost;
  const float rounded = sum->rounded + corrected;
  const float added = rounded - sum->rounded;
  const float lost = (sum->rounded - (rounded - added)) + (corrected - added);
  sum->lost = isfinite(rounded) ? lost : 0.0f;
  sum->rounded = rounded;
}

GCAP_INLINE float gcap_sum_value(gcap_sum_t sum) { return sum.rounded + sum.lost; }

#endif  // GCAP_OPS_KERNELS_COMPENSATED_SUM_H_
