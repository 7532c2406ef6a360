// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Recordings whose middle is left out: what may have come of the calls that are not there is no finding, and what the
// calls show that are there is one.
#include <gtest/gtest.h>

#include "test/doctor/analyse/sentences.h"

namespace {

using script::Diagnosis;
using script::Script;

constexpr char kEnd[] = "! end t=9000";

// What a script finds before calls are left out, where `found` is a kind of finding that it has without that.
void ExpectSuppressed(const std::vector<std::string>& before, gcap_doctor_finding_kind_t found) {
  Script whole, cut;
  for (const std::string& line : before) {
    whole.Run(line);
    cut.Run(line);
  }
  whole.Run(kEnd);
  ASSERT_NE(whole.Diagnose().Find(found), nullptr) << whole.Diagnose().All();
  cut.LeaveOut(100).Run({"other cuStreamBeginCapture stream=4 mode=relaxed", "other cuLaunchKernel stream=4 +kernel",
                         "other cuStreamEndCapture stream=4", "! exec id=9 graph=99", kEnd});
  Diagnosis d = cut.Diagnose();
  EXPECT_EQ(d.recording()->left_out, 100u);
  EXPECT_EQ(d.Find(found), nullptr) << d.All();
}

TEST(Gap, CaptureMayHaveEndedInIt) {
  ExpectSuppressed({"main cuStreamBeginCapture stream=1 mode=global", "main cuLaunchKernel stream=1 +kernel"},
                   GCAP_DOCTOR_FINDING_LEFT_OPEN);
}

TEST(Gap, ModeMayHaveBeenPutBackInIt) {
  ExpectSuppressed({"main cuThreadExchangeStreamCaptureMode mode=relaxed"}, GCAP_DOCTOR_FINDING_MODE_KEPT);
}

TEST(Gap, GraphMayHaveBeenLaunchedInIt) {
  Script s;
  s.Run({"main cuStreamBeginCapture stream=1 mode=global", "main cuLaunchKernel stream=1 +kernel",
         "main cuStreamEndCapture stream=1"});
  s.LeaveOut(10).Run({"main cuStreamBeginCapture stream=2 mode=global", "main cuLaunchKernel stream=2 +kernel",
                      "main cuStreamEndCapture stream=2", kEnd});
  Diagnosis d = s.Diagnose();
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(d->findings[0].kind, GCAP_DOCTOR_FINDING_NEVER_LAUNCHED);
  EXPECT_EQ(d->findings[0].capture, 1u);
}

TEST(Gap, CapturesOfOnePlaceMayHaveBeenLaunchedInIt) {
  std::vector<std::string> lines;
  for (int i = 1; i <= 9; ++i) {
    lines.push_back("main cuStreamBeginCapture stream=1 mode=global at=loop");
    lines.push_back("main cuLaunchKernel stream=1 +kernel");
    lines.push_back("main cuStreamEndCapture stream=1");
    lines.push_back("! exec id=" + std::to_string(i) + " graph=" + std::to_string(i));
    lines.push_back("! replays exec=" + std::to_string(i) + " count=1");
  }
  Script whole, cut;
  whole.Place("loop", {"app:loop"});
  cut.Place("loop", {"app:loop"});
  for (const std::string& line : lines) {
    whole.Run(line);
    cut.Run(line);
  }
  EXPECT_NE(whole.Run(kEnd).Diagnose().Find(GCAP_DOCTOR_FINDING_RECAPTURED), nullptr);
  cut.LeaveOut(10).Run({"main cuCtxSynchronize", kEnd});
  EXPECT_EQ(cut.Diagnose()->num_findings, 0u) << cut.Diagnose().All();
}

TEST(Gap, WhatAFrameworkRefusedMayHaveBeenLaunchedInIt) {
  Script s;
  s.Place("begin", {"libtorch.so:begin"}, {"train.py:1:body"});
  s.Place("item", {"libtorch.so:item"}, {"train.py:2:body"});
  s.Run({"main cuStreamBeginCapture stream=1 mode=global at=begin",
         "main cuStreamIsCapturing stream=1 status=active at=item", "main cuStreamEndCapture stream=1 at=begin"});
  Script whole = s;
  EXPECT_NE(whole.Run(kEnd).Diagnose().Find(GCAP_DOCTOR_FINDING_REFUSED), nullptr);
  s.LeaveOut(10).Run({"main cuCtxSynchronize", kEnd});
  EXPECT_EQ(s.Diagnose().Find(GCAP_DOCTOR_FINDING_REFUSED), nullptr) << s.Diagnose().All();
}

TEST(Gap, InstantiationInsteadOfAnUpdateMayBeInIt) {
  Script s;
  s.Run({"! exec id=1 graph=1", "main cuGraphExecUpdate exec=1 graph=2 update=topology -> 910"});
  EXPECT_EQ(s.Diagnose()->findings[0].severity, GCAP_DOCTOR_SEVERITY_ERROR);
  s.LeaveOut(10).Run({"main cuCtxSynchronize", kEnd});
  Diagnosis d = s.Diagnose();
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(d->findings[0].severity, GCAP_DOCTOR_SEVERITY_WARNING);
}

// The stream of a capture that was open before belongs to nothing that is known.
TEST(Gap, CaptureThatWasOpenBeforeItTakesNothingBehindIt) {
  Script s;
  s.Run({"main cuStreamBeginCapture stream=1 mode=global", "main cuLaunchKernel stream=1 +kernel"});
  s.LeaveOut(10).Run({"main cuStreamSynchronize stream=1 -> 900", "main cuCtxSynchronize", kEnd});
  Diagnosis d = s.Diagnose();
  EXPECT_EQ(d->num_findings, 0u) << d.All();
  EXPECT_EQ(d->captures[0].outcome, GCAP_DOCTOR_OUTCOME_OPEN);
}

TEST(Gap, EndThatFailsBehindItIsToldWithoutAFalseReason) {
  Script s;
  s.Run({"main cuStreamBeginCapture stream=1 mode=global"});
  s.LeaveOut(10).Run({"main cuStreamEndCapture stream=2 -> 901", kEnd});
  Diagnosis d = s.Diagnose();
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_NE(std::string(d->findings[0].sentence).find("ended a capture whose begin is left out"), std::string::npos)
      << d.All();
}

TEST(Gap, CaptureBehindItIsJudgedAsAny) {
  Script s;
  s.Run({"main cuThreadExchangeStreamCaptureMode mode=relaxed", "main cuStreamBeginCapture stream=1 mode=global"});
  s.LeaveOut(1000).Run({"main cuStreamBeginCapture stream=1 mode=thread_local", "main cuLaunchKernel stream=1 +kernel",
                        "main cuStreamSynchronize stream=1 -> 900", "main cuStreamEndCapture stream=1 -> 901",
                        "main cuStreamBeginCapture stream=2 mode=global", kEnd});
  Diagnosis d = s.Diagnose();
  ASSERT_EQ(d->num_findings, 2u) << d.All();
  EXPECT_EQ(d->findings[0].kind, GCAP_DOCTOR_FINDING_CULPRIT);
  EXPECT_STREQ(d.recording()->calls[d->findings[0].call].function, "cuStreamSynchronize");
  EXPECT_EQ(d->findings[1].kind, GCAP_DOCTOR_FINDING_LEFT_OPEN);
}

// A recorder of version 1 stopped at its limit.
TEST(Gap, EndThatIsMissingIsOne) {
  Script s;
  s.Run({"main cuThreadExchangeStreamCaptureMode mode=relaxed", "main cuStreamBeginCapture stream=1 mode=global",
         "main cuLaunchKernel stream=1 +kernel", "main cuStreamEndCapture stream=1",
         "! note text=the%20recording%20stopped%20at%201024%20KB,%20its%20limit", kEnd});
  Diagnosis d = s.Diagnose();
  EXPECT_TRUE(d.recording()->reached_limit);
  EXPECT_EQ(d->num_findings, 0u) << d.All();
}

}  // namespace
