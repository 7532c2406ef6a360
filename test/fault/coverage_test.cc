// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Every public function that returns a status is walked over: each of its CUDA calls fails once. The list of functions
// is read off the headers, so a new function fails here until it has a walk.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/fault/headers.h"
#include "test/fault/walk.h"

namespace {

using gcap::testing::Walk;

const std::vector<Walk>& AllWalks() {
  using namespace gcap::testing;
  static const auto* const all = new std::vector<Walk>(
      Joined({StreamWalks(), CaptureWalks(), GraphWalks(), MemoryWalks(), EpWalks(), SessionWalks()}));
  return *all;
}

TEST(FaultCoverage, ADeclarationIsFoundHoweverItIsBroken) {
  const auto declared = gcap::testing::DeclarationsIn(
      "gcap_status_t gcap_a_make(int);\ngcap_status_t\n  gcap_b_do (void) GCAP_NODISCARD;\n"
      "typedef gcap_status_t (*gcap_work_t)(void*);\nvoid gcap_c_fail(gcap_status_t cause);\n");
  ASSERT_EQ(declared.size(), 2u);
  EXPECT_EQ(declared.count("gcap_a_make") + declared.count("gcap_b_do"), 2u);
}

TEST(FaultCoverage, EveryFunctionThatReturnsAStatusIsWalkedOver) {
  std::set<std::string> walked, declared;
  for (const Walk& walk : AllWalks()) walked.insert(walk.function);
  for (const auto& function : gcap::testing::DeclarationsInHeaders()) {
    declared.insert(function.first);
    EXPECT_EQ(walked.count(function.first), 1u) << function.first << " is walked over by nothing in test/fault";
  }
  for (const std::string& name : walked) EXPECT_EQ(declared.count(name), 1u) << name << " is walked but not declared";
}

class FaultWalk : public ::testing::TestWithParam<size_t> {};

TEST_P(FaultWalk, EachCallFailsOnce) { gcap::testing::ExpectSurvivesFaults(AllWalks()[GetParam()]); }

INSTANTIATE_TEST_SUITE_P(All, FaultWalk, ::testing::Range<size_t>(0, AllWalks().size()),
                         [](const ::testing::TestParamInfo<size_t>& info) {
                           std::string name = AllWalks()[info.param].Name();
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !isalnum(c); }, '_');
                           return name;
                         });

}  // namespace
