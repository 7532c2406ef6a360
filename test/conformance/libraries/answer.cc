// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The list of expected differences, and the check at the end that every row of it was met.
#include "test/conformance/libraries/answer.h"

#include <cstddef>
#include <cstdio>
#include <set>
#include <sstream>

#include "gtest/gtest.h"

// The simulator's own function, absent on a GPU.
extern "C" size_t gcap_sim_live(const char* kind) __attribute__((weak));

namespace conformance {

namespace {

struct Difference {
  const char* name;
  const char* answer;
  const char* reason;
};

const Difference kDifferences[] = {
#define DIFFERENCE(name, answer, reason) {name, answer, reason},
#include "test/conformance/libraries/expected_differences.inc"
#undef DIFFERENCE
};

// A case and what a GPU answered.
struct Answer {
  const char* name;
  const char* answer;
};

const Answer kRecord[] = {
#define RECORDED(name, answer) {name, answer},
#include "test/conformance/libraries/recorded.inc"
#undef RECORDED
    {nullptr, nullptr}};

std::set<std::string>& Met() {
  static auto* met = new std::set<std::string>;
  return *met;
}

std::set<std::string>& Asked() {
  static auto* asked = new std::set<std::string>;
  return *asked;
}

// A row that no test asks for is left over from one that is gone. Says nothing when tests were left out.
class EveryDifferenceIsMet : public testing::Environment {
 public:
  void TearDown() override {
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    if (!OnSimulator() || all.test_to_run_count() != all.total_test_count()) return;
    for (const Difference& difference : kDifferences) {
      EXPECT_EQ(1u, Met().count(difference.name)) << difference.name << " is listed, but no test asks for it";
    }
    for (const Answer* row = kRecord; row->name != nullptr; ++row) {
      EXPECT_EQ(1u, Asked().count(row->name)) << row->name << " is recorded, but no test asks for it";
    }
  }
};

testing::Environment* const kEnvironment = testing::AddGlobalTestEnvironment(new EveryDifferenceIsMet);

}  // namespace

bool OnSimulator() { return gcap_sim_live != nullptr; }

void ExpectAnswer(const std::string& name, const std::string& recorded, const std::string& got) {
  if (OnSimulator()) {
    for (const Difference& difference : kDifferences) {
      if (name != difference.name) continue;
      Met().insert(name);
      EXPECT_EQ(difference.answer, got) << name << " differs from the GPU: " << difference.reason;
      EXPECT_NE(difference.answer, recorded) << name << ": the listed difference has gone";
      return;
    }
  }
  std::istringstream answers(recorded);
  for (std::string answer; std::getline(answers, answer, '|');) {
    if (answer == got) return;
  }
  EXPECT_EQ(recorded, got) << name;
}

void CompareWithRecord(const std::string& name, const std::string& got) {
  for (const Answer* row = kRecord; row->name != nullptr; ++row) {
    if (name != row->name) continue;
    Asked().insert(name);
    return ExpectAnswer(name, row->answer, got);
  }
  if (!OnSimulator()) std::printf("RECORDED(\"%s\", \"%s\")\n", name.c_str(), got.c_str());
  GTEST_SKIP() << "no GPU was asked yet";
}

std::string TestName() {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::string suite = info->test_suite_name(), test = info->name();
  return suite.substr(suite.find('/') + 1) + "." + test.substr(test.find('/') + 1);
}

}  // namespace conformance
