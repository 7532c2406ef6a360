// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Every public function that returns a status is walked over: each of its CUDA calls fails once. The list of functions
// is read off the headers, so a new function fails here until it has a walk.

#include <dirent.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/fault/walk.h"

namespace {

using gcap::testing::Walk;

constexpr const char* kHeaders[] = {"include/gcap", "include/gcap/kit"};

std::vector<Walk> AllWalks() {
  std::vector<Walk> all;
  for (auto module : {gcap::testing::StreamWalks, gcap::testing::CaptureWalks, gcap::testing::GraphWalks,
                      gcap::testing::MemoryWalks, gcap::testing::EpWalks, gcap::testing::SessionWalks}) {
    for (Walk& walk : module()) all.push_back(std::move(walk));
  }
  return all;
}

std::string WithoutComments(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  for (std::string line; std::getline(file, line);) text << line.substr(0, line.find("//")) << "\n";
  return text.str();
}

// What the text declares to return a status, by name. Types of functions and members are no functions.
std::set<std::string> StatusFunctions(const std::string& text) {
  static const std::regex declaration(R"(gcap_status_t\s+(gcap_\w+)\s*\()");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at) names.insert((*at)[1]);
  return names;
}

std::vector<std::string> Headers() {
  std::vector<std::string> paths;
  for (const char* path : kHeaders) {
    DIR* folder = opendir(path);
    while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
      const std::string name = entry->d_name;
      // Makes statuses, of calls that others made.
      if (name.size() <= 2 || name.substr(name.size() - 2) != ".h" || name == "status.h") continue;
      paths.push_back(path + ("/" + name));
    }
    if (folder != nullptr) closedir(folder);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(FaultCoverage, ADeclarationIsFoundHoweverItIsBroken) {
  EXPECT_EQ(StatusFunctions("gcap_status_t gcap_a_make(int);\ngcap_status_t\n  gcap_b_do (void) GCAP_NODISCARD;\n"
                            "typedef gcap_status_t (*gcap_work_t)(void*);\nvoid gcap_c_fail(gcap_status_t cause);\n"),
            (std::set<std::string>{"gcap_a_make", "gcap_b_do"}));
}

TEST(FaultCoverage, EveryFunctionThatReturnsAStatusIsWalkedOver) {
  std::set<std::string> walked;
  for (const Walk& walk : AllWalks()) walked.insert(walk.function);
  const std::vector<std::string> headers = Headers();
  ASSERT_GE(headers.size(), 10u) << "no headers in " << kHeaders[0];
  std::set<std::string> declared;
  for (const std::string& header : headers) {
    for (const std::string& name : StatusFunctions(WithoutComments(header))) {
      EXPECT_EQ(walked.count(name), 1u) << header << " declares " << name << ", which no walk in test/fault covers";
      declared.insert(name);
    }
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
