// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "gcap/version.h"

#include "gtest/gtest.h"

namespace {

TEST(Version, OfTheLibraryIsThatOfTheHeaders) { EXPECT_EQ(gcap_version(), GCAP_VERSION); }

TEST(Version, IsOneNumberThatGrows) {
  EXPECT_EQ(GCAP_VERSION / 10000, GCAP_VERSION_MAJOR);
  EXPECT_EQ(GCAP_VERSION / 100 % 100, GCAP_VERSION_MINOR);
  EXPECT_EQ(GCAP_VERSION % 100, GCAP_VERSION_PATCH);
}

}  // namespace
