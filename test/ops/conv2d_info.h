// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// conv2d_info.h: what a plan of a convolution says of itself, as a value.
#ifndef GCAP_TEST_OPS_CONV2D_INFO_H_
#define GCAP_TEST_OPS_CONV2D_INFO_H_

#include "gcap/kit/ops/conv2d.h"

namespace gcap {
namespace testing {

inline gcap_conv2d_info_t InfoOf(const gcap_conv2d_t* plan) {
  gcap_conv2d_info_t info;
  gcap_conv2d_get_info(plan, &info);
  return info;
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_OPS_CONV2D_INFO_H_
