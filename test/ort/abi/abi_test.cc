// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// abi.c is compiled into this test: that is the comparison of numbers, and where they are, with the official headers.

#include "gtest/gtest.h"

extern "C" bool gcap_ort_abi_has_headers(void);

namespace gcap {
namespace testing {
namespace {

TEST(OrtAbiTest, DeclarationsAreThoseOfTheOfficialHeaders) {
  if (!gcap_ort_abi_has_headers()) GTEST_SKIP() << "set GCAP_ORT_ROOT to the root of a release of ONNX Runtime";
}

}  // namespace
}  // namespace testing
}  // namespace gcap
