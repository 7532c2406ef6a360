// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What becomes of graphs after their capture: updates, launches, and captures that come again and again.
#include <gtest/gtest.h>

#include "test/doctor/analyse/sentences.h"

namespace {

using script::Diagnose;
using script::Diagnosis;
using script::Script;

// Two captures, an executable of the first, and an update of it by the second.
Diagnosis Updated(const std::string& second_node, std::initializer_list<std::string> rest,
                  const std::string& reason = "") {
  Script s;
  s.Run({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuLaunchKernel stream=1 +kernel",
      "main cuMemcpyDtoDAsync stream=1 +memcpy",
      "main cuStreamEndCapture stream=1",
      "main cuGraphInstantiateWithFlags graph=1 exec=1",
      "! exec id=1 graph=1 call=5",
      "! replays exec=1 count=2",
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuLaunchKernel stream=1 +kernel",
      "main cuLaunchKernel stream=1 " + second_node,
      "main cuStreamEndCapture stream=1",
      "main cuGraphExecUpdate exec=1 graph=2" + reason + " -> 910",
  });
  s.Run(rest);
  s.Run("! end t=9000");
  return s.Diagnose();
}

TEST(Update, OtherTopology) {
  Diagnosis d = Updated("+kernel +kernel", {});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_UPDATE_REFUSED);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_ERROR);
  EXPECT_EQ(d.Rule(f), "R54");
  EXPECT_TRUE(f->is_certain);
  EXPECT_EQ(d.Call(f), 10u);
  EXPECT_EQ(d.Other(f), 5u);
  EXPECT_EQ(f->capture, 1u);
}

TEST(Update, OtherParameters) {
  Diagnosis d = Updated("+memcpy", {});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_UPDATE_REFUSED);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d.Rule(f), "R55");
  EXPECT_FALSE(f->is_certain);
}

// The driver's word counts, whatever the graphs look like.
TEST(Update, ReasonOfTheDriver) {
  const struct {
    const char *update, *rule;
  } reasons[] = {{"topology", "R54"}, {"node_type", "R54"}, {"attributes", "R53"}, {"parameters", "R55"}};
  for (const auto& reason : reasons) {
    Diagnosis d = Updated("+memcpy", {}, std::string(" update=") + reason.update);
    const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_UPDATE_REFUSED);
    ASSERT_NE(f, nullptr) << d.All();
    EXPECT_EQ(d.Rule(f), reason.rule);
    EXPECT_TRUE(f->is_certain);
  }
}

TEST(Update, OrderOfTypesIsTopology) {
  EXPECT_EQ(Updated("+memset", {}).Find(GCAP_DOCTOR_FINDING_UPDATE_REFUSED)->rule, gcap_rule_by_id("R54"));
}

TEST(Update, CooperativeKernel) {
  Script s;
  s.Run({"main cuStreamBeginCapture stream=1 mode=global", "main cuLaunchKernel stream=1 +kernel",
         "main cuStreamEndCapture stream=1", "main cuStreamBeginCapture stream=1 mode=global",
         "main cuLaunchCooperativeKernel stream=1 +kernel", "main cuStreamEndCapture stream=1", "! exec id=1 graph=1",
         "main cuGraphExecUpdate exec=1 graph=2 -> 910"});
  Diagnosis d = s.Diagnose();
  EXPECT_EQ(d.Rule(d.Find(GCAP_DOCTOR_FINDING_UPDATE_REFUSED)), "R53") << d.All();
}

TEST(Update, InstantiationInsteadCostsOnly) {
  Diagnosis d = Updated("+memcpy", {"main cuGraphInstantiateWithFlags graph=2 exec=2", "! exec id=2 graph=2 call=11",
                                    "! replays exec=2 count=2"});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_UPDATE_REFUSED);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_WARNING);
}

TEST(Update, InstantiationByAnotherThreadCounts) {
  Diagnosis d = Updated("+memcpy", {"other cuGraphInstantiateWithFlags graph=2 exec=2", "! exec id=2 graph=2 call=11",
                                    "! replays exec=2 count=2"});
  ASSERT_NE(d.Find(GCAP_DOCTOR_FINDING_UPDATE_REFUSED), nullptr) << d.All();
  EXPECT_EQ(d.Find(GCAP_DOCTOR_FINDING_UPDATE_REFUSED)->severity, GCAP_DOCTOR_SEVERITY_WARNING);
  // That of another graph is another matter.
  Diagnosis e = Updated("+memcpy", {"other cuGraphInstantiateWithFlags graph=1 exec=2"});
  ASSERT_NE(e.Find(GCAP_DOCTOR_FINDING_UPDATE_REFUSED), nullptr) << e.All();
  EXPECT_EQ(e.Find(GCAP_DOCTOR_FINDING_UPDATE_REFUSED)->severity, GCAP_DOCTOR_SEVERITY_ERROR);
}

TEST(Launch, FailedLaunchOfUnfreedMemory) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuMemAllocAsync stream=1 +alloc",
      "main cuStreamEndCapture stream=1",
      "! exec id=1 graph=1",
      "! replays exec=1 count=1 failed=1",
      "main cuGraphLaunch exec=1 stream=1 -> 1",
  });
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_LAUNCH_FAILED);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d->findings[0].kind, GCAP_DOCTOR_FINDING_LAUNCH_FAILED);
  EXPECT_EQ(f->count, 1u);
  EXPECT_EQ(d.Rule(f), "R30");
  EXPECT_EQ(f->capture, 0u);
}

TEST(Launch, NoExecutable) {
  Diagnosis d = Diagnose({"main cuGraphLaunch stream=1 -> 400"});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_LAUNCH_FAILED);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(f->rule, nullptr);
  EXPECT_STRNE(f->remedy, "");
}

TEST(Launch, CountedFailuresWithoutACall) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuLaunchKernel stream=1 +kernel",
      "main cuStreamEndCapture stream=1",
      "! exec id=1 graph=1",
      "! replays exec=1 count=1 failed=3",
  });
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_LAUNCH_FAILED);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(f->count, 3u);
}

TEST(Launch, InCaptureIsTheCapturesAffair) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuGraphLaunch stream=1 exec=7 -> 900",
      "main cuStreamEndCapture stream=1 -> 901",
  });
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(d->findings[0].kind, GCAP_DOCTOR_FINDING_CULPRIT);
}

TEST(Launch, InstantiationOfMemoryNodesTwice) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuMemAllocAsync stream=1 +alloc",
      "main cuMemFreeAsync stream=1 +free",
      "main cuStreamEndCapture stream=1",
      "! exec id=1 graph=1",
      "! replays exec=1 count=1",
      "main cuGraphInstantiateWithFlags graph=1 -> 801",
  });
  EXPECT_EQ(d.Rule(d.Find(GCAP_DOCTOR_FINDING_LAUNCH_FAILED)), "R33") << d.All();
}

TEST(NeverLaunched, IsANote) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuLaunchKernel stream=1 +kernel",
      "main cuStreamEndCapture stream=1",
      "! end t=900",
  });
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(d->findings[0].kind, GCAP_DOCTOR_FINDING_NEVER_LAUNCHED);
  EXPECT_EQ(d->findings[0].severity, GCAP_DOCTOR_SEVERITY_NOTE);
}

TEST(NeverLaunched, ProgramThatDiedMayHaveLaunchedIt) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuLaunchKernel stream=1 +kernel",
      "main cuStreamEndCapture stream=1",
  });
  EXPECT_EQ(d->num_findings, 0u) << d.All();
}

// --- Again and again -------------------------------------------------------------------------------------------------

// Captures at a line of Python each, launched so often.
Diagnosis Repeated(const std::vector<int>& launches, bool one_place = true, bool afterwards = false) {
  Script s;
  auto launch = [&](size_t i) {
    s.Run("! replays exec=" + std::to_string(i + 1) + " count=" + std::to_string(launches[i]));
  };
  for (size_t i = 0; i < launches.size(); ++i) {
    const std::string place = "place" + std::to_string(i), id = std::to_string(i + 1);
    s.Place(place, {"libtorch.so:begin"},
            {"/x/site-packages/torch/cuda/graphs.py:90:capture_begin",
             "train.py:" + std::to_string(one_place ? 17 : 100 + i) + ":step"});
    s.Run({"main cuStreamBeginCapture stream=1 mode=global at=" + place, "main cuLaunchKernel stream=1 +kernel",
           "main cuStreamEndCapture stream=1", "! exec id=" + id + " graph=" + id});
    if (!afterwards) launch(i);
  }
  for (size_t i = 0; afterwards && i < launches.size(); ++i) launch(i);
  s.Run("! end t=90000");
  return s.Diagnose();
}

TEST(Recaptured, OneLineCapturesForEver) {
  Diagnosis d = Repeated(std::vector<int>(9, 1));
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_RECAPTURED);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_WARNING);
  EXPECT_EQ(f->count, 9u);
  EXPECT_EQ(d.Call(f), 25u);
  EXPECT_EQ(d.Other(f), 1u);
}

TEST(Recaptured, SevenAreFewAndOtherLinesAreOtherPlaces) {
  EXPECT_EQ(Repeated(std::vector<int>(7, 1))->num_findings, 0u);
  EXPECT_EQ(Repeated(std::vector<int>(9, 1), false)->num_findings, 0u);
}

TEST(Recaptured, GraphsThatAreUsedAreFine) {
  std::vector<int> launches(9, 1);
  launches[4] = 2;
  EXPECT_EQ(Repeated(launches).NumSerious(), 0u);
  // All shapes captured beforehand, then launched once each.
  EXPECT_EQ(Repeated(std::vector<int>(9, 1), true, true).NumSerious(), 0u);
  // All shapes captured beforehand, of which the program has used few by now.
  EXPECT_EQ(Repeated({1, 0, 0, 1, 0, 0, 0, 0, 0, 0}).NumSerious(), 0u);
}

}  // namespace
