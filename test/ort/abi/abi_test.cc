// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Our declarations of ONNX Runtime's C API: each slot is the one that its comment says, and with GCAP_ORT_ROOT set,
// each offset, size, type of a function and value is that of the official headers.

#include <iostream>

#include "gtest/gtest.h"
#include "ort/abi/api.h"
#ifdef GCAP_HAS_ORT_HEADERS
#include "onnxruntime_c_api.h"
#define GCAP_ABI_HAS_THEIRS
static_assert(ORT_API_VERSION >= GCAP_ORT_OLDEST_VERSION, "GCAP_ORT_ROOT is an older release than gcap runs on");
#else
#define ORT_API_VERSION 0
#endif
#include "test/ort/abi/compare.h"

namespace gcap {
namespace testing {

#ifdef GCAP_ABI_HAS_THEIRS
#include "test/ort/abi/types.inc"
#endif

namespace {

AbiComparison Compare() {
  AbiComparison comparison(ORT_API_VERSION, GCAP_ORT_NEWEST_VERSION);
#include "test/ort/abi/rows.inc"
  return comparison;
}

TEST(OrtAbiTest, EachSlotIsTheOneThatItsCommentSays) {
  const AbiComparison comparison = Compare();
  EXPECT_GT(comparison.num_slots, 200);
  for (const std::string& slot : comparison.wrong_slots) ADD_FAILURE() << slot;
}

TEST(OrtAbiTest, DeclarationsAreThoseOfTheOfficialHeaders) {
#ifndef GCAP_ABI_HAS_THEIRS
  GTEST_SKIP() << "there are no official headers: set GCAP_ORT_ROOT to the root of a release of ONNX Runtime";
#endif
  const AbiComparison comparison = Compare();
  for (const std::string& difference : comparison.differences) ADD_FAILURE() << difference;
  for (const std::string& member : comparison.skipped) std::cout << "skipped: " << member << "\n";
  std::cout << "compared with version " << ORT_API_VERSION << ": " << comparison.num_members << " members, "
            << comparison.num_others << " sizes and values\n";
}

}  // namespace
}  // namespace testing
}  // namespace gcap
