// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The diagnosis as a whole: the order of findings, equal ones, recordings of real programs, damaged ones, large ones.
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/doctor/analyse/sentences.h"

namespace {

using script::Diagnose;
using script::Diagnosis;
using script::Script;

TEST(Diagnosis, NothingInAnEmptyRecording) {
  Diagnosis d = Diagnose({});
  EXPECT_EQ(d->num_captures, 0u);
  EXPECT_EQ(d->num_findings, 0u);
}

TEST(Diagnosis, WorstFindingFirstThenInOrderOfTheCalls) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuMemcpyHtoDAsync stream=1 host=pageable +memcpy",  // a warning
      "main cuMemcpyDtoDAsync stream=1 -> 1",                   // an error
      "main cuLaunchKernel stream=9",                           // and another one
      "main cuStreamEndCapture stream=1",
      "! exec id=1 graph=1",
      "! replays exec=1 count=1",
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuMemAlloc -> 900",  // why a capture failed: before all else
      "main cuStreamEndCapture stream=1 -> 901",
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuLaunchKernel stream=1 +kernel@3",
      "main cuStreamEndCapture stream=1 graph=3",
      "! end t=900",
  });
  ASSERT_EQ(d->num_findings, 5u) << d.All();
  EXPECT_EQ(d->findings[0].kind, GCAP_DOCTOR_FINDING_CULPRIT);
  EXPECT_EQ(d->findings[1].kind, GCAP_DOCTOR_FINDING_LOST_CALL);
  EXPECT_EQ(d->findings[2].kind, GCAP_DOCTOR_FINDING_ESCAPED);
  EXPECT_EQ(d->findings[3].kind, GCAP_DOCTOR_FINDING_PAGEABLE);
  EXPECT_EQ(d->findings[4].kind, GCAP_DOCTOR_FINDING_NEVER_LAUNCHED);
  EXPECT_EQ(d->findings[0].capture, 1u);
}

TEST(Diagnosis, MistakeOfALoopIsOneFinding) {
  Script s;
  s.Place("loop", {"app:step"});
  for (int i = 0; i < 3; ++i) {
    s.Run({"main cuStreamBeginCapture stream=1 mode=global", "main cuStreamSynchronize stream=1 at=loop -> 900",
           "main cuStreamEndCapture stream=1 -> 901"});
  }
  Diagnosis d = s.Diagnose();
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  EXPECT_EQ(d->findings[0].count, 3u);
  EXPECT_EQ(d->findings[0].capture, 0u);
}

TEST(Diagnosis, EachKindHasAWord) {
  EXPECT_STREQ(gcap_doctor_finding_kind_name(GCAP_DOCTOR_FINDING_CULPRIT), "culprit");
  EXPECT_STREQ(gcap_doctor_finding_kind_name(GCAP_DOCTOR_FINDING_LOST_CALL), "lost_call");
  EXPECT_STREQ(gcap_doctor_finding_kind_name(GCAP_DOCTOR_FINDING_MODE_KEPT), "mode_kept");
  EXPECT_STREQ(gcap_doctor_finding_kind_name(GCAP_DOCTOR_FINDING_DIFFERS), "differs");
  EXPECT_STREQ(gcap_doctor_finding_kind_name(GCAP_DOCTOR_FINDING_STALE), "stale_memory");
  EXPECT_STREQ(gcap_doctor_finding_kind_name(GCAP_DOCTOR_FINDING_SHARED), "shared_launch");
  EXPECT_STREQ(gcap_doctor_finding_kind_name(GCAP_DOCTOR_FINDING_GROWTH), "growth");
}

TEST(Diagnosis, BeginWhoseEndIsMissingLeavesTheStreamToTheNextOne) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuLaunchKernel stream=1 +kernel",
      "main cuStreamEndCapture stream=1",
  });
  ASSERT_EQ(d->num_captures, 2u);
  EXPECT_EQ(d->captures[0].outcome, GCAP_DOCTOR_OUTCOME_OPEN);
  EXPECT_EQ(d->captures[1].outcome, GCAP_DOCTOR_OUTCOME_GRAPH);
}

TEST(Diagnosis, CallsAndThreadsHaveNames) {
  Diagnosis d = Diagnose({"main cuMemAlloc", "main cuGetProcAddress", "! thread id=9 os=99"});
  EXPECT_STREQ(gcap_doctor_diagnosis_call_name(d.get(), 0), "cudaMalloc (cuMemAlloc)");
  EXPECT_STREQ(gcap_doctor_diagnosis_call_name(d.get(), 1), "cuGetProcAddress");
  EXPECT_STREQ(gcap_doctor_diagnosis_thread_name(d.get(), 0), "thread 'main'");
  EXPECT_STREQ(gcap_doctor_diagnosis_thread_name(d.get(), 1), "thread 99");
}

// --- Size ------------------------------------------------------------------------------------------------------------

// Diagnoses so many captures with so many calls each.
void DiagnoseMany(int captures, int calls, bool nested) {
  gcap_doctor_recording_t* recording = gcap_doctor_recording_create("events");
  gcap_doctor_recording_add_thread(recording, 1);
  for (int i = 0; i < captures; ++i) gcap_doctor_recording_add_stream(recording, static_cast<uint32_t>(i + 1));
  auto add = [recording](const char* function, int stream, int result) {
    const uint32_t index = gcap_doctor_recording_add_call(recording);
    gcap_doctor_event_call_t& call = recording->calls[index];
    call.number = index + 1;
    call.function = function;
    call.thread = 0;
    call.stream = static_cast<uint32_t>(stream);
    call.event = index;
    call.result = result;
    call.mode = GCAP_DOCTOR_MODE_GLOBAL;
  };
  for (int i = 0; i < captures; ++i) {
    add("cuStreamBeginCapture", i, 0);
    if (nested) continue;
    for (int k = 0; k < calls; ++k) add(k % 2 == 0 ? "cuLaunchKernel" : "cuEventRecord", i, 0);
    add("cuStreamSynchronize", i, 900);
    add("cuStreamEndCapture", i, 901);
  }
  for (int k = 0; nested && k < captures * calls; ++k) add("cuMemAlloc", k % captures, k % 10 == 0 ? 900 : 0);
  for (int i = 0; nested && i < captures; ++i) add("cuStreamEndCapture", i, 901);
  gcap_doctor_recording_finish(recording);
  gcap_doctor_diagnosis_t* diagnosis = gcap_doctor_diagnosis_create(recording);
  EXPECT_EQ(diagnosis->num_captures, static_cast<size_t>(captures));
  EXPECT_GE(diagnosis->num_findings, 1u);
  gcap_doctor_diagnosis_destroy(diagnosis);
  gcap_doctor_recording_destroy(recording);
}

// A recording of bare calls, many of them.
class Calls {
 public:
  explicit Calls(int streams) : recording_(gcap_doctor_recording_create("events")) {
    gcap_doctor_recording_add_thread(recording_, 1);
    gcap_doctor_recording_add_thread(recording_, 2);
    for (int i = 0; i < streams; ++i) gcap_doctor_recording_add_stream(recording_, static_cast<uint32_t>(i + 1));
  }
  ~Calls() { gcap_doctor_recording_destroy(recording_); }

  void Add(uint32_t thread, const char* function, uint32_t stream, int result) {
    const uint32_t index = gcap_doctor_recording_add_call(recording_);
    gcap_doctor_event_call_t& call = recording_->calls[index];
    call.number = index + 1;
    call.function = function;
    call.thread = thread;
    call.stream = stream;
    call.result = result;
    call.mode = GCAP_DOCTOR_MODE_THREAD_LOCAL;
  }
  // How many captures have the call as their culprit.
  size_t Blamed(uint32_t culprit) {
    gcap_doctor_recording_finish(recording_);
    gcap_doctor_diagnosis_t* diagnosis = gcap_doctor_diagnosis_create(recording_);
    size_t count = 0;
    for (size_t i = 0; i < diagnosis->num_captures; ++i) count += diagnosis->captures[i].culprit == culprit;
    gcap_doctor_diagnosis_destroy(diagnosis);
    return count;
  }

 private:
  gcap_doctor_recording_t* recording_;
};

TEST(Diagnosis, ManyOpenCapturesAndManyFailures) {
  enum { kCaptures = 50000, kFailures = 300000 };
  Calls calls(kCaptures);
  for (uint32_t i = 0; i < kCaptures; ++i) calls.Add(0, "cuStreamBeginCapture", i, 0);
  for (uint32_t i = 0; i < kFailures; ++i) calls.Add(1, "cuMemAlloc", GCAP_DOCTOR_NONE, 2);
  calls.Add(1, "cuCtxSynchronize", GCAP_DOCTOR_NONE, 900);
  for (uint32_t i = 0; i < kFailures; ++i) calls.Add(1, "cuMemAlloc", GCAP_DOCTOR_NONE, 900);
  for (uint32_t i = 0; i < kCaptures; ++i) calls.Add(0, "cuStreamEndCapture", i, 901);
  EXPECT_EQ(calls.Blamed(kCaptures + kFailures), static_cast<size_t>(kCaptures));
}

TEST(Diagnosis, ManyOverlappingCapturesWithAFork) {
  enum { kCaptures = 100000 };
  Calls calls(kCaptures);
  for (uint32_t i = 0; i < kCaptures; ++i) calls.Add(0, "cuStreamBeginCapture", i, 0);
  for (uint32_t i = 0; i < kCaptures; ++i) calls.Add(0, "cuStreamEndCapture", i, 904);
  EXPECT_EQ(calls.Blamed(GCAP_DOCTOR_NONE), static_cast<size_t>(kCaptures));  // the recording does not tell the forks
}

// Work that grows with the square of the calls would take longer than a test may.
TEST(Diagnosis, MillionCallsAreDiagnosed) {
  DiagnoseMany(10000, 100, false);
  DiagnoseMany(200, 1000, true);  // all open at once
}

}  // namespace
