// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Forks that never came back, among those that did.
#include <gtest/gtest.h>

#include "test/doctor/analyse/sentences.h"

namespace {

using script::Diagnose;
using script::Diagnosis;

TEST(Forks, NamesTheForkAndItsLastWork) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuLaunchKernel stream=1 +kernel",
      "main cuEventRecord stream=1 event=5",
      "main cuStreamWaitEvent stream=3 event=5",
      "main cuLaunchKernel stream=3 +kernel",
      "main cuMemsetD8Async stream=3 +memset",
      "main cuStreamEndCapture stream=1 -> 904",
  });
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_UNJOINED);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_ERROR);
  EXPECT_EQ(d.Rule(f), "R6");
  EXPECT_EQ(d.Call(f), 4u);
  EXPECT_EQ(d.Other(f), 6u);
  EXPECT_EQ(d->captures[0].outcome, GCAP_DOCTOR_OUTCOME_BROKEN);
  EXPECT_EQ(d->captures[0].culprit, f->call);
}

TEST(Forks, OnlyTheOneThatIsMissing) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuEventRecord stream=1 event=5",
      "main cuStreamWaitEvent stream=2 event=5",
      "main cuStreamWaitEvent stream=3 event=5",
      "main cuStreamWaitEvent stream=4 event=5",  // without work of its own
      "main cuLaunchKernel stream=2 +kernel",
      "main cuLaunchKernel stream=3 +kernel",
      "main cuEventRecord stream=2 event=6",
      "main cuStreamWaitEvent stream=1 event=6",
      "main cuStreamEndCapture stream=1 -> 904",
  });
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(d.Call(&d->findings[0]), 4u);
  EXPECT_EQ(d.Other(&d->findings[0]), 7u);
}

TEST(Forks, JoinByWayOfAnotherFork) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuEventRecord stream=1 event=5",
      "main cuStreamWaitEvent stream=2 event=5",
      "main cuLaunchKernel stream=2 +kernel",
      "main cuEventRecord stream=2 event=6",
      "main cuStreamWaitEvent stream=3 event=6",  // 3 has all of 2
      "main cuLaunchKernel stream=3 +kernel",
      "main cuEventRecord stream=3 event=7",
      "main cuStreamWaitEvent stream=1 event=7",
      "main cuLaunchKernel stream=2 +kernel",  // and then 2 goes on
      "main cuStreamEndCapture stream=1 -> 904",
  });
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(d.Call(&d->findings[0]), 3u);
  EXPECT_EQ(d.Other(&d->findings[0]), 10u);
}

TEST(Forks, EventRecordedBeforeTheLastWorkIsNoJoin) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuEventRecord stream=1 event=5",
      "main cuStreamWaitEvent stream=2 event=5",
      "main cuLaunchKernel stream=2 +kernel",
      "main cuEventRecord stream=2 event=6",
      "main cuLaunchKernel stream=2 +kernel",
      "main cuStreamWaitEvent stream=1 event=6",
      "main cuStreamEndCapture stream=1 -> 904",
  });
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(d.Other(&d->findings[0]), 6u);
}

TEST(Forks, DestroyedStreamHasARuleOfItsOwn) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuEventRecord stream=1 event=5",
      "main cuStreamWaitEvent stream=2 event=5",
      "main cuLaunchKernel stream=2 +kernel",
      "main cuStreamDestroy stream=2",
      "main cuStreamEndCapture stream=1 -> 904",
  });
  EXPECT_EQ(d.Rule(d.Find(GCAP_DOCTOR_FINDING_UNJOINED)), "R23") << d.All();
}

TEST(Forks, ForkWithoutItsWaitBeginsWithItsFirstWork) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuLaunchKernel stream=1 +kernel",
      "main cuLaunchKernel stream=2 +kernel",
      "main cuStreamEndCapture stream=1 -> 904",
  });
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_UNJOINED);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d.Call(f), 3u);
}

TEST(Forks, RecordingThatDoesNotTellTheFork) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuLaunchKernel stream=1 +kernel",
      "main cuStreamEndCapture stream=1 -> 904",
  });
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_UNJOINED);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_FALSE(f->is_certain);
  EXPECT_EQ(d.Call(f), 3u);
}

TEST(Forks, OverlappingCapturesHaveTheirOwn) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=thread_local",
      "other cuStreamBeginCapture stream=2 mode=thread_local",
      "main cuEventRecord stream=1 event=5",
      "other cuEventRecord stream=2 event=6",
      "other cuStreamWaitEvent stream=4 event=6",
      "main cuStreamWaitEvent stream=3 event=5",
      "main cuLaunchKernel stream=3 +kernel@1",
      "other cuLaunchKernel stream=4 +kernel@2",
      "main cuStreamEndCapture stream=1 -> 904",
      "other cuStreamEndCapture stream=2 -> 904",
  });
  ASSERT_EQ(d->num_findings, 2u) << d.All();
  EXPECT_EQ(d->captures[0].culprit, 5u);
  EXPECT_EQ(d->captures[1].culprit, 4u);
  EXPECT_EQ(d.Other(&d->findings[0]), 8u);
  EXPECT_EQ(d.Other(&d->findings[1]), 7u);
}

TEST(Forks, JoinedForksAreHealthy) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuEventRecord stream=1 event=5",
      "main cuStreamWaitEvent stream=2 event=5",
      "main cuLaunchKernel stream=2 +kernel",
      "main cuEventRecord stream=2 event=6",
      "main cuStreamWaitEvent stream=1 event=6",
      "main cuStreamEndCapture stream=1",
      "main cuLaunchKernel stream=2",
      "! exec id=1 graph=1",
      "! replays exec=1 count=1",
      "! end t=900",
  });
  EXPECT_EQ(d->num_findings, 0u) << d.All();
  EXPECT_EQ(gcap_doctor_diagnosis_capture_of(d.get(), 3), 0u);
  EXPECT_EQ(gcap_doctor_diagnosis_capture_of(d.get(), 7), GCAP_DOCTOR_NONE);  // the stream left with the end
}

}  // namespace
