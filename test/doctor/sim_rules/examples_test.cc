// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The examples: healthy ones have nothing worth a warning, those that break captures have their calls named.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <sstream>
#include <string>

#include "test/doctor/sim_rules/logged.h"

namespace gcap {
namespace testing {
namespace {

std::map<std::string, std::string> Examples() {
  std::istringstream paths(getenv("EXAMPLES"));
  std::map<std::string, std::string> examples;  // by name
  for (std::string path; paths >> path;) examples[path.substr(path.rfind('/') + 1)] = path;
  return examples;
}

size_t Bad(const Logged& logged) {
  size_t bad = 0;
  for (size_t i = 0; i < logged.diagnosis().num_findings; ++i) {
    bad += logged.diagnosis().findings[i].severity != GCAP_DOCTOR_SEVERITY_NOTE;
  }
  return bad;
}

TEST(Examples, HealthyOnesHaveNothingWorthAWarning) {
  setenv("GCAP_SIM_DEVICES", "2", 1);
  size_t captures = 0, healthy = 0;
  for (const auto& [name, path] : Examples()) {
    if (name.compare(0, 7, "broken_") == 0 || name == "holes") continue;
    const Logged logged = Logged::Of({path});
    EXPECT_EQ(Bad(logged), 0u) << name << "\n" << logged.Findings();
    EXPECT_EQ(logged.recording().damage.lines, 0u) << name;
    EXPECT_GT(logged.recording().num_calls, 20u) << name << ": is this a log?\n" << logged.log().substr(0, 1000);
    captures += logged.diagnosis().num_captures;
    ++healthy;
  }
  EXPECT_GE(healthy, 15u);
  EXPECT_GE(captures, 20u);
}

TEST(Examples, BrokenCaptureHasItsFourMistakes) {
  const Logged logged = Logged::Of({Examples().at("broken_capture")});
  const struct {
    gcap_doctor_finding_kind_t kind;
    const char *function, *rule;
  } mistakes[] = {{GCAP_DOCTOR_FINDING_CULPRIT, "cudaStreamSynchronize", "R11"},
                  {GCAP_DOCTOR_FINDING_CULPRIT, "cudaMalloc", "R26"},
                  {GCAP_DOCTOR_FINDING_CULPRIT, "cudaStreamWaitEvent", "R17"},
                  {GCAP_DOCTOR_FINDING_UNJOINED, "cudaStreamWaitEvent", "R6"}};
  for (const auto& mistake : mistakes) {
    const gcap_doctor_finding_t* finding = logged.Find(mistake.kind, mistake.function);
    ASSERT_NE(finding, nullptr) << mistake.rule << "\n" << logged.Findings();
    ASSERT_NE(finding->rule, nullptr) << mistake.rule;
    EXPECT_STREQ(finding->rule->id, mistake.rule);
    EXPECT_TRUE(finding->is_certain);
  }
  EXPECT_EQ(Bad(logged), 4u) << logged.Findings();
}

// Of its four mistakes a missing wait and scratch that is freed too early are not those of a capture.
TEST(Examples, BrokenEpHasItsAllocationAndItsStaleStagingBuffer) {
  const Logged logged = Logged::Of({Examples().at("broken_ep")});
  EXPECT_NE(logged.Find(GCAP_DOCTOR_FINDING_CULPRIT, "cudaMalloc"), nullptr) << logged.Findings();
  const gcap_doctor_finding_t* stale = logged.Find(GCAP_DOCTOR_FINDING_STALE, "cudaGraphLaunch");
  ASSERT_NE(stale, nullptr) << logged.Findings();
  ASSERT_EQ(stale->num_places, 3u);
  EXPECT_STREQ(stale->places[1].what, "freed");
  EXPECT_EQ(logged.FunctionOf(stale->places[1].call), "cudaFreeHost");
  EXPECT_EQ(Bad(logged), 2u) << logged.Findings();
}

// A step with break_where_refused.
TEST(Examples, HolesHasTheCallThatACaptureRefuses) {
  const Logged logged = Logged::Of({Examples().at("holes")});
  const gcap_doctor_finding_t* finding = logged.Find(GCAP_DOCTOR_FINDING_CULPRIT, "cudaStreamSynchronize");
  ASSERT_NE(finding, nullptr) << logged.Findings();
  ASSERT_NE(finding->rule, nullptr);
  EXPECT_STREQ(finding->rule->id, "R11");
  EXPECT_EQ(Bad(logged), 1u) << logged.Findings();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
