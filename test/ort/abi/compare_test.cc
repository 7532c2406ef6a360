// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The comparison of abi_test itself, with two made-up headers: each difference is found, and nothing else.

#include "test/ort/abi/compare.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "test/ort/abi/made_up/ours.h"
#include "test/ort/abi/made_up/theirs.h"

namespace gcap {
namespace testing {

#include "test/ort/abi/made_up_types.inc"

namespace {

using Strings = std::vector<std::string>;

// With their header taken for one of `version`.
AbiComparison Compare(int version) {
  AbiComparison comparison(version, MY_NEWEST_VERSION);
#include "test/ort/abi/made_up_rows.inc"
  return comparison;
}

TEST(OrtAbiCompareTest, EachDifferenceIsFound) {
  EXPECT_EQ(Compare(7).differences, (Strings{
                                        "kBlue: is 2, theirs 3",
                                        "OtherCallback: 'int (*)(Thing*)', theirs 'float (*)(Thing*)'",
                                        "Table.Moved: at byte 8, theirs 16",
                                        "Table.Counted: parameters 2, theirs 1",
                                        "Table.Typed: 'int (*)(const Thing*)', theirs 'int (*)(Thing*)'",
                                        "Table.Lost: at byte 48, theirs has no such member",
                                        "Table.Early: since version 8, theirs 7",
                                        "Short: bytes 8, theirs 16",
                                        "Wide.size: bytes 4, theirs 8",
                                        "Wide: bytes 4, theirs 8",
                                    }));
}

TEST(OrtAbiCompareTest, AMemberThatIsNewerThanTheirsIsSkipped) {
  EXPECT_EQ(Compare(7).skipped, (Strings{"Right.Later, since 8"}));
}

TEST(OrtAbiCompareTest, AMemberThatTheirsShouldHaveIsMissed) {
  const AbiComparison comparison = Compare(8);
  EXPECT_EQ(comparison.skipped, Strings{});
  const Strings& found = comparison.differences;
  auto has = [&](const char* text) { return std::find(found.begin(), found.end(), text) != found.end(); };
  EXPECT_TRUE(has("Right.Later: at byte 24, theirs has no such member"));
  EXPECT_TRUE(has("Right: bytes 32, theirs 24"));
  EXPECT_FALSE(has("Table.Early: since version 8, theirs 8"));
}

TEST(OrtAbiCompareTest, AVersionThatOursDoNotKnowMayHaveLongerStructs) {
  for (const std::string& difference : Compare(10).differences) EXPECT_NE(difference, "Short: bytes 8, theirs 16");
}

TEST(OrtAbiCompareTest, ASlotIsComparedWithItsComment) {
  EXPECT_EQ(Compare(7).wrong_slots, (Strings{"my_table.Misnumbered says slot 9, but is at byte 64"}));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
