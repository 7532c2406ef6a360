// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// sentences.h: the sentences of all findings of this folder's tests are those of sentences.txt, a line each: the test,
// the sentence, and the remedy where it is not the rule's. So a phrase is reworded in words.c and in that file alone,
// and tests ask for values. Who rewords a phrase writes the file anew:
//
//   for test in culprit diagnosis forks gap graphs launches stale; do
//     ./bazelw build //test/doctor/analyse:${test}_test
//     GCAP_SENTENCES=/dev/stdout .bazel/bin/test/doctor/analyse/${test}_test | grep '^sentence '
//   done | cut -d ' ' -f 2- | LC_ALL=C sort >test/doctor/analyse/sentences.txt
#ifndef GCAP_TEST_DOCTOR_ANALYSE_SENTENCES_H_
#define GCAP_TEST_DOCTOR_ANALYSE_SENTENCES_H_

#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

#include <fstream>
#include <set>
#include <string>

#include "test/doctor/analyse/script.h"

namespace script {

class Sentences : public testing::EmptyTestEventListener {
 public:
  Sentences() {
    watch = [this](const Diagnosis& diagnosis) { Add(diagnosis); };
  }

 private:
  static std::string NameOf(const testing::TestInfo& test) {
    return std::string(test.test_suite_name()) + "." + test.name() + ": ";
  }

  void Add(const Diagnosis& diagnosis) {
    const std::string name = NameOf(*testing::UnitTest::GetInstance()->current_test_info());
    for (size_t i = 0; i < diagnosis->num_findings; ++i) {
      const gcap_doctor_finding_t& finding = diagnosis->findings[i];
      const bool is_rules = finding.rule != nullptr && strcmp(finding.remedy, finding.rule->remedy) == 0;
      said_.insert(name + finding.sentence + (is_rules ? "" : std::string(" -> ") + finding.remedy));
    }
  }

  void OnTestEnd(const testing::TestInfo& test) override {
    std::set<std::string> expected;
    std::ifstream file("test/doctor/analyse/sentences.txt");
    for (std::string line; std::getline(file, line);) {
      if (line.compare(0, NameOf(test).size(), NameOf(test)) == 0) expected.insert(line);
    }
    if (const char* path = getenv("GCAP_SENTENCES")) {
      std::ofstream out(path, std::ios::app);
      for (const std::string& line : said_) out << "sentence " << line << "\n";
    } else {
      EXPECT_EQ(said_, expected) << "reworded? sentences.h says how sentences.txt is written";
    }
    said_.clear();
  }

  std::set<std::string> said_;
};

inline const bool kSentencesAreWatched = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Sentences);
  return true;
}();

}  // namespace script

#endif  // GCAP_TEST_DOCTOR_ANALYSE_SENTENCES_H_
