// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The call that broke a capture: by the capturing thread, by another one, in the driver's own calls, and not at all.
#include <gtest/gtest.h>

#include "test/doctor/analyse/script.h"

namespace {

using script::Diagnose;
using script::Diagnosis;
using script::Script;
using testing::Test;

#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)
#define EXPECT_LACKS(text, part) EXPECT_EQ(std::string(text).find(part), std::string::npos) << (text)

TEST(Culprit, SynchronizationOfTheCapturingStream) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=2 mode=global",
      "main cuLaunchKernel stream=2 +kernel",
      "main cuStreamSynchronize stream=2 -> 900",
      "main cuLaunchKernel stream=2 -> 901",
      "main cuStreamEndCapture stream=2 -> 901",
  });
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  const gcap_finding_t* f = d.Find(GCAP_FINDING_CULPRIT);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d.Rule(f), "R11");
  EXPECT_EQ(d.Call(f), 3u);
  EXPECT_TRUE(f->is_certain);
  EXPECT_STREQ(
      f->sentence,
      "cudaStreamSynchronize (cuStreamSynchronize) on stream 2 (the capturing stream), by thread 'main', broke "
      "capture 1: rule R11, a call that a capturing stream cannot be given.");
  EXPECT_STREQ(f->remedy, gcap_rule_by_id("R11")->remedy);
  EXPECT_EQ(d->captures[0].culprit, f->call);
  EXPECT_EQ(d->captures[0].outcome, GCAP_OUTCOME_BROKEN);
  EXPECT_EQ(d->captures[0].num_nodes, 1u);
}

TEST(Culprit, HealthyCaptureHasNoFinding) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=2 mode=global",
      "main cuLaunchKernel stream=2 +kernel",
      "main cuStreamEndCapture stream=2",
      "main cuGraphInstantiateWithFlags graph=1",
      "! exec id=1 graph=1 call=4",
      "! replays exec=1 count=3",
      "main cuStreamSynchronize stream=2",
      "! end t=900",
  });
  EXPECT_EQ(d->num_findings, 0u) << d.All();
  ASSERT_EQ(d->num_captures, 1u);
  EXPECT_EQ(d->captures[0].outcome, GCAP_OUTCOME_GRAPH);
  EXPECT_EQ(d->captures[0].replays, 3u);
  EXPECT_EQ(d->captures[0].exec, 1u);
  EXPECT_EQ(gcap_diagnosis_capture_of(d.get(), 1), 0u);
  EXPECT_EQ(gcap_diagnosis_capture_of(d.get(), 4), GCAP_NONE);
}

TEST(Culprit, AllocationOfAnotherThreadNamesBothThreads) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "loader cuMemAlloc -> 900",
      "main cuStreamEndCapture stream=1 -> 901",
  });
  const gcap_finding_t* f = d.Find(GCAP_FINDING_CULPRIT);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d.Rule(f), "R26");
  EXPECT_EQ(d.Call(f), 2u);
  EXPECT_EQ(d.Other(f), 1u);
  EXPECT_HAS(f->sentence,
             "cudaMalloc (cuMemAlloc), by thread 'loader', broke capture 1 of thread 'main', which is in "
             "global mode");
}

}  // namespace
