// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The call that broke a capture: by the capturing thread, by another one, in the driver's own calls, and not at all.
#include <gtest/gtest.h>

#include "test/doctor/analyse/sentences.h"

namespace {

using script::Diagnose;
using script::Diagnosis;
using script::Script;

TEST(Culprit, SynchronizationOfTheCapturingStream) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=2 mode=global",
      "main cuLaunchKernel stream=2 +kernel",
      "main cuStreamSynchronize stream=2 -> 900",
      "main cuLaunchKernel stream=2 -> 901",
      "main cuStreamEndCapture stream=2 -> 901",
  });
  ASSERT_EQ(d->num_findings, 1u) << d.All();
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_CULPRIT);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(f->severity, GCAP_DOCTOR_SEVERITY_ERROR);
  EXPECT_EQ(d.Rule(f), "R11");
  EXPECT_EQ(d.Call(f), 3u);
  EXPECT_EQ(f->other, GCAP_DOCTOR_NONE);
  EXPECT_TRUE(f->is_certain);
  EXPECT_STREQ(f->remedy, gcap_rule_by_id("R11")->remedy);
  EXPECT_EQ(d->captures[0].culprit, f->call);
  EXPECT_EQ(d->captures[0].outcome, GCAP_DOCTOR_OUTCOME_BROKEN);
  EXPECT_EQ(d->captures[0].result, 901);
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
  EXPECT_EQ(d->captures[0].outcome, GCAP_DOCTOR_OUTCOME_GRAPH);
  EXPECT_EQ(d->captures[0].replays, 3u);
  EXPECT_EQ(d->captures[0].exec, 1u);
  EXPECT_EQ(gcap_doctor_diagnosis_capture_of(d.get(), 1), 0u);
  EXPECT_EQ(gcap_doctor_diagnosis_capture_of(d.get(), 4), GCAP_DOCTOR_NONE);
  EXPECT_EQ(gcap_doctor_diagnosis_capture_of(d.get(), 99), GCAP_DOCTOR_NONE);
}

// The rule of one call in a capture of stream 1 by `main`, the line after the begin.
std::string RuleOf(const std::string& line, const std::string& mode = "global") {
  Script s;
  s.Run({"main cuStreamBeginCapture stream=1 mode=" + mode, "main cuLaunchKernel stream=1 +kernel",
         "main cuEventRecord stream=1 event=5", line, "main cuStreamEndCapture stream=1 -> 901"});
  Diagnosis d = s.Diagnose();
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_CULPRIT);
  if (f == nullptr || d.Call(f) != 4 || !f->is_certain) return "not found: " + d.All();
  return d.Rule(f);
}

TEST(Culprit, RuleOfEachCall) {
  EXPECT_EQ(RuleOf("main cuStreamQuery stream=1 -> 900"), "R11");
  EXPECT_EQ(RuleOf("main cuStreamSynchronize stream=2 -> 900"), "R26");  // of a stream that does not capture
  EXPECT_EQ(RuleOf("main cuCtxSynchronize -> 900"), "R12");
  EXPECT_EQ(RuleOf("main cuCtxSynchronize -> 900", "relaxed"), "R12");
  EXPECT_EQ(RuleOf("main cuEventQuery event=5 -> 907"), "R13");
  EXPECT_EQ(RuleOf("main cuEventSynchronize event=5 -> 907", "relaxed"), "R13");
  EXPECT_EQ(RuleOf("poller cuEventQuery event=6 -> 900"), "R14");
  EXPECT_EQ(RuleOf("main cuMemcpyHtoD stream=9 -> 906"), "R15");
  EXPECT_EQ(RuleOf("main cuStreamWaitEvent stream=1 event=7 -> 905"), "R17");
  EXPECT_EQ(RuleOf("main cuStreamAddCallback stream=1 -> 900"), "R20");
  EXPECT_EQ(RuleOf("main cuStreamGetFlags stream=1 -> 900"), "R24");
  EXPECT_EQ(RuleOf("main cuMemAlloc_v2 -> 900"), "R26");
  EXPECT_EQ(RuleOf("main cuMemFree -> 900", "thread_local"), "R28");
  EXPECT_EQ(RuleOf("main cuMemPoolGetAttribute -> 900"), "R35");
  EXPECT_EQ(RuleOf("main cuMemHostAlloc -> 900"), "R36");
  EXPECT_EQ(RuleOf("main cuCtxSetLimit -> 900"), "R49");
  EXPECT_EQ(RuleOf("main cuLaunchKernel stream=1 -> 1"), "R63");
  EXPECT_EQ(RuleOf("main cudaStreamSynchronize stream=1 -> 900"), "R11");  // the runtime's, of a simulator's log
}

// --- One call of a script --------------------------------------------------------------------------------------------

// A name, what is found, and the script: of each capture the number of the call that broke it, 0 where it is not known;
// then of the first such finding.
const char kRows[] = R"(
AllocationOfAnotherThreadNamesBothThreads: culprit 2, rule R26, certain, call 2, other 1
  main cuStreamBeginCapture stream=1 mode=global
  loader cuMemAlloc -> 900
  main cuStreamEndCapture stream=1 -> 901
OtherThreadsDoNotReachACaptureInThreadLocalMode: culprit 5 3, rule R26, certain, call 3, other 0
  main cuStreamBeginCapture stream=1 mode=thread_local
  loader cuStreamBeginCapture stream=2 mode=global
  loader cuMemAlloc -> 900  # breaks its own capture alone
  loader cuStreamEndCapture stream=2 -> 901
  main cuMemFree -> 900
  main cuStreamEndCapture stream=1 -> 901
CallBreaksTwoGlobalCapturesAtOnce: culprit 3 3, rule R26, certain, call 3, other 1
  main cuStreamBeginCapture stream=1 mode=global
  second cuStreamBeginCapture stream=2 mode=global
  second cuMemAlloc -> 900
  second cuStreamEndCapture stream=2 -> 901
  main cuStreamEndCapture stream=1 -> 901
ThreadThatExchangedItsModeIsInnocent: culprit 5, rule R28, certain, call 5, other 1
  main cuStreamBeginCapture stream=1 mode=global
  loader cuThreadExchangeStreamCaptureMode mode=thread_local
  loader cuMemAlloc -> 900  # it has a capture of its own elsewhere, say
  loader cuThreadExchangeStreamCaptureMode mode=global
  loader cuMemFree -> 900
  main cuStreamEndCapture stream=1 -> 901
StreamThatJoinedIsAMember: culprit 4, rule R11, certain, call 4, other 1
  main cuStreamBeginCapture stream=1 mode=relaxed
  main cuEventRecord stream=1 event=5
  main cuStreamWaitEvent stream=2 event=5
  other cuStreamSynchronize stream=2 -> 900
  main cuStreamEndCapture stream=1 -> 901
SynchronizationOfAnotherCapturesStreamLeavesThisOne: culprit 5 3, rule R11, certain, call 3, other 2
  main cuStreamBeginCapture stream=1 mode=global
  second cuStreamBeginCapture stream=2 mode=global
  main cuStreamSynchronize stream=2 -> 900
  second cuStreamEndCapture stream=2 -> 901
  main cuMemAlloc -> 900
  main cuStreamEndCapture stream=1 -> 901
ErrorAfterTheBreakIsNotToBlame: culprit 0, rule R5, probable, call 3, other 2
  main cuStreamBeginCapture stream=1 mode=global
  main cuLaunchKernel stream=1 +kernel
  main cuLaunchKernel stream=1 -> 901
  main cuStreamSynchronize stream=1 -> 900
  main cuStreamEndCapture stream=1 -> 901
# A program that asks gets the state told, so what broke the capture lies between two answers.
StateThatTheProgramAskedForNarrowsIt: culprit 0, rule R5, probable, call 5, other 3
  main cuStreamBeginCapture stream=1 mode=global
  main cuLaunchKernel stream=1 +kernel
  main cuStreamIsCapturing stream=1 status=active
  main cuModuleGetFunction
  main cuStreamIsCapturing stream=1 status=invalidated
  main cuMemAlloc -> 900
  main cuStreamEndCapture stream=1 -> 901
QuestionsAndRefusalsLeaveTheCaptureAsItIs: culprit 5, rule R15, certain, call 5, other 0
  main cuStreamBeginCapture stream=8 mode=relaxed
  main cuStreamIsCapturing stream=9 -> 906
  main cuMemcpyBatchAsync stream=8 -> 900
  main cuPointerGetAttribute -> 1
  main cuLaunchHostFunc stream=9 -> 906
  main cuStreamEndCapture stream=8 -> 901
OtherFailureIsOnlyProbable: culprit 2, rule none, probable, call 2, other 0
  main cuStreamBeginCapture stream=1 mode=global
  main cuEventRecord stream=1 event=3 -> 400
  main cuStreamEndCapture stream=1 -> 901
CallsBeforeANodeAreNotToBlame: culprit 6, rule R12, probable, call 6, other 0
  main cuStreamBeginCapture stream=1 mode=global
  main cuMemAlloc -> 2  # no memory: the program frees some and asks again
  main cuMemFree
  main cuMemAlloc
  main cuLaunchKernel stream=1 +kernel
  main cuCtxSynchronize
  main cuLaunchKernel stream=1 -> 901
  main cuStreamEndCapture stream=1 -> 901
AllocationThatSucceededAtItsSecondTryIsNotToBlame: culprit 2, rule none, probable, call 2, other 0
  main cuStreamBeginCapture stream=1 mode=global
  main cuEventRecord stream=1 event=3 -> 400
  main cuMemAlloc -> 2
  main cuMemAlloc
  main cuStreamEndCapture stream=1 -> 901
TheLastFailureIsMoreProbableThanAnEarlierOne: culprit 3, rule none, probable, call 3, other 0
  main cuStreamBeginCapture stream=1 mode=global
  main cuModuleLoadData -> 209
  main cuEventRecord stream=1 event=3 -> 400
  main cuStreamEndCapture stream=1 -> 901
# It began before the node, and may have done its harm after it.
CallOfAnotherThreadThatRanOnAfterTheNodeIsNotExonerated: culprit 2, rule R28, probable, call 2, other 1
  main cuStreamBeginCapture stream=1 mode=global
  loader cuMemFree t=20 end=90
  main cuLaunchKernel stream=1 t=30 end=40 +kernel
  main cuLaunchKernel stream=1 t=95 end=96 -> 901
  main cuStreamEndCapture stream=1 t=97 end=98 -> 901
NodeOfAnotherGraphProvesNothing: culprit 2, rule R28, probable, call 2, other 0
  main cuStreamBeginCapture stream=1 mode=global
  main cuMemFree
  main cuGraphAddKernelNode +kernel@7
  main cuLaunchKernel stream=1 -> 901
  main cuStreamEndCapture stream=1 -> 901
LegacyWorkBreaksTheCaptureOfABlockingStreamAlone: culprit 6 3, rule R15, certain, call 3, other 2
  main cuStreamBeginCapture stream=1 mode=thread_local
  second cuStreamBeginCapture stream=8 mode=thread_local
  main cuLaunchKernel stream=9 -> 906
  main cuLaunchKernel stream=1 +kernel@1
  main cuLaunchKernel stream=1 +kernel@1
  main cuMemAlloc -> 900
  main cuStreamEndCapture stream=1 -> 901
  second cuStreamEndCapture stream=8 -> 901
# A blocking stream that joined makes its capture one that legacy work breaks.
LegacyWorkBreaksACaptureThatABlockingStreamJoined: culprit 4, rule R15, certain, call 4, other 1
  main cuStreamBeginCapture stream=1 mode=relaxed
  main cuEventRecord stream=1 event=5
  main cuStreamWaitEvent stream=8 event=5
  other cuLaunchKernel stream=9 -> 906
  main cuStreamEndCapture stream=1 -> 901
AnswerAfterWhichTheCaptureWentOnIsNotToBlame: culprit 5 0, rule R28, certain, call 5, other 0
  main cuStreamBeginCapture stream=1 mode=global
  main cuStreamBeginCapture stream=2 mode=relaxed
  main cuMemAlloc -> 900  # the newer capture's, say
  main cuLaunchKernel stream=1 +kernel@1
  main cuMemFree -> 900
  main cuStreamEndCapture stream=1 -> 901
  main cuStreamEndCapture stream=2
LibrarysHandleIsNamedByTheStack: culprit 2, rule R42, certain, call 2, other 0
  main cuStreamBeginCapture stream=1 mode=global
  main cuMemFree at=free -> 900
  main cuStreamEndCapture stream=1 -> 901
LibrarysHandleWhoseCallsAllSucceedIsProbable: culprit 3, rule R42, probable, call 3, other 0
  main cuStreamBeginCapture stream=1 mode=global
  main cuLaunchKernel stream=1 +kernel
  main cuEventDestroy event=3 at=destroy
  main cuLaunchKernel stream=1 -> 901
  main cuStreamEndCapture stream=1 -> 901
ResultInHostMemoryOfAProduct: culprit 2, rule R45, certain, call 2, other 0
  main cuStreamBeginCapture stream=1 mode=global
  main cuStreamSynchronize stream=1 at=dot -> 900
  main cuStreamEndCapture stream=1 -> 901
SearchOfALibraryIsProbable: culprit 2, rule R46, probable, call 2, other 0
  main cudaStreamBeginCapture stream=1 mode=thread_local
  main cudnnFindConvolutionForwardAlgorithm
  main cudaLaunchKernel stream=1 -> 901
  main cudaStreamEndCapture stream=1 -> 901
CallWithoutARuleHasARemedy: culprit 2, rule none, probable, call 2, other 0
  main cuStreamBeginCapture stream=1 mode=global
  main cuEventRecord stream=1 -> 5
  main cuStreamEndCapture stream=1 -> 901
CallThatBreaksSilentlyIsProbable: culprit 2, rule R28, probable, call 2, other 0
  main cuStreamBeginCapture stream=1 mode=global
  main cuMemFree
  main cuLaunchKernel stream=1 -> 901
  main cuStreamEndCapture stream=1 -> 901
NestedCallNamesTheOuterOne: culprit 3, rule R28, certain, call 3, other 2
  main cuStreamBeginCapture stream=1 mode=global
  main cuModuleUnload
  > main cuMemFree -> 900
  main cuStreamEndCapture stream=1 -> 901
OfTwoThreadsTheOneThatReturnedFirst: culprit 3, rule R28, certain, call 3, other 1
  main cuStreamBeginCapture stream=1 mode=global
  slow cuMemAlloc t=20 end=90 -> 900
  fast cuMemFree t=30 end=40 -> 900
  main cuStreamEndCapture stream=1 -> 901
EqualNamesOfThreadsAreToldApartByNumber: culprit 2, rule R26, certain, call 2, other 1
  ! thread id=7 os=707 name=python
  ! thread id=8 os=808 name=python
  ! call n=1 thread=7 function=cuStreamBeginCapture result=0 stream=1 mode=global
  ! call n=2 thread=8 function=cuMemAlloc result=900
  ! call n=3 thread=7 function=cuStreamEndCapture result=901 stream=1
MergeBreaksBothCaptures: culprit 4 4, rule R16, certain, call 4, other 1
  main cuStreamBeginCapture stream=1 mode=thread_local
  second cuStreamBeginCapture stream=2 mode=thread_local
  main cuEventRecord stream=1 event=5
  second cuStreamWaitEvent stream=2 event=5 -> 902
  second cuStreamEndCapture stream=2 -> 901
  main cuStreamEndCapture stream=1 -> 901
TheFirstOfSeveralErrors: culprit 2, rule R28, certain, call 2, other 0
  main cuStreamBeginCapture stream=1 mode=global
  main cuMemFree -> 900
  main cuMemAlloc -> 900
  main cuStreamSynchronize stream=1 -> 900
  main cuStreamEndCapture stream=1 -> 901
BreakWithoutAnyOtherCallIsBetweenBeginAndEnd: culprit 0, rule R5, probable, call 2, other 1
  main cuStreamBeginCapture stream=1 mode=thread_local
  main cuStreamEndCapture stream=1 -> 901
ProgramThatStoppedAtTheError: culprit 2, rule R11, certain, call 2, other 0
  main cuStreamBeginCapture stream=1 mode=global
  main cuStreamSynchronize stream=1 -> 900
QueryByTheCapturingThreadIsNotCalledAnotherThreads: culprit 2, rule R14, certain, call 2, other 0
  main cuStreamBeginCapture stream=1 mode=global
  main cuEventQuery event=3 -> 900
  main cuStreamEndCapture stream=1 -> 901
EndOnAnotherThread: culprit 2, rule R4, certain, call 2, other 1
  main cuStreamBeginCapture stream=1 mode=global
  second cuStreamEndCapture stream=1 -> 908
)";

struct Row {
  std::string name, found;
  std::vector<std::string> script;
};

std::vector<Row> Rows() {
  std::vector<Row> rows;
  std::istringstream lines(kRows);
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('#'));
    if (line.empty()) continue;
    const size_t colon = line.find(": ");
    if (line[0] != ' ') {
      rows.push_back({line.substr(0, colon), line.substr(colon + 2), {}});
    } else {
      rows.back().script.push_back(line.substr(2));
    }
  }
  return rows;
}

std::string Found(const Diagnosis& d) {
  std::string found = "culprit";
  for (size_t i = 0; i < d->num_captures; ++i) {
    const uint32_t culprit = d->captures[i].culprit;
    found += " " + std::to_string(culprit == GCAP_DOCTOR_NONE ? 0 : culprit + 1);
  }
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_CULPRIT);
  if (f == nullptr) return found + ", not found";
  return found + ", rule " + (d.Rule(f).empty() ? "none" : d.Rule(f)) + (f->is_certain ? ", certain" : ", probable") +
         ", call " + std::to_string(d.Call(f)) + ", other " + std::to_string(d.Other(f));
}

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class Culprits : public testing::TestWithParam<Row> {};

TEST_P(Culprits, Of) {
  Script s;
  s.Place("free",
          {"libcuda.so.1:cuMemFree_v2", "libcublasLt.so.13:inner", "libcublasLt.so.13:cublasLtDestroy", "app:main"});
  s.Place("destroy", {"libcublasLt.so.13:cublasLtDestroy", "app:main"});
  s.Place("dot", {"libcuda.so.1:cuStreamSynchronize", "libcublas.so.13:cublasSdot_v2", "app:main"});
  for (const std::string& line : GetParam().script) s.Run(line);
  Diagnosis d = s.Diagnose();
  EXPECT_EQ(Found(d), GetParam().found) << d.All();
  EXPECT_STRNE(d->findings[0].remedy, "");
}

INSTANTIATE_TEST_SUITE_P(Rows, Culprits, testing::ValuesIn(Rows()),
                         [](const testing::TestParamInfo<Row>& info) { return info.param.name; });

// --- Other threads ---------------------------------------------------------------------------------------------------

TEST(Culprit, RelaxedExchangeAroundAnAllocationIsHealthy) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuThreadExchangeStreamCaptureMode mode=relaxed",
      "main cuMemAlloc",
      "main cuThreadExchangeStreamCaptureMode mode=global",
      "main cuLaunchKernel stream=1 +kernel",
      "main cuStreamEndCapture stream=1",
      "! exec id=1 graph=1",
      "! replays exec=1 count=1",
      "! end t=900",
  });
  EXPECT_EQ(d->num_findings, 0u) << d.All();
}

// --- Streams and events of several captures --------------------------------------------------------------------------

// --- Order -----------------------------------------------------------------------------------------------------------

// --- Proofs that the capture was alive -------------------------------------------------------------------------------

// A node, or an answer that the capture is active, after the calls that would else be suspected.
TEST(Culprit, BreakAfterAProofOfLifeIsBetweenItAndTheError) {
  for (const char* proof :
       {"main cuLaunchKernel stream=1 +kernel", "main cuStreamIsCapturing stream=1 status=active"}) {
    for (const char* suspect : {"main cuMemFree", "main cuEventDestroy event=3 at=destroy", "main cuMemAlloc -> 2"}) {
      Script s;
      s.Place("destroy", {"libcublasLt.so.13:cublasLtDestroy", "app:main"});
      s.Run({"main cuStreamBeginCapture stream=1 mode=global", suspect, "main cuLaunchKernel stream=1 +kernel", proof,
             "main cuLaunchKernel stream=1 -> 901", "main cuStreamEndCapture stream=1 -> 901"});
      Diagnosis d = s.Diagnose();
      const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_CULPRIT);
      ASSERT_NE(f, nullptr) << d.All();
      EXPECT_EQ(d->captures[0].culprit, GCAP_DOCTOR_NONE) << d.All();
      EXPECT_EQ(d.Other(f), 4u);
      EXPECT_EQ(d.Call(f), 5u);
    }
  }
}

TEST(Culprit, LegacyWorkIsNoCertainCulpritBesideABlockingCapture) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=thread_local",
      "second cuStreamBeginCapture stream=8 mode=thread_local",
      "main cuLaunchKernel stream=9 -> 906",
      "main cuStreamEndCapture stream=1 -> 901",
      "second cuStreamEndCapture stream=8 -> 901",
  });
  ASSERT_EQ(d->num_findings, 2u) << d.All();
  size_t certain = 0;
  for (size_t i = 0; i < d->num_findings; ++i) certain += d->findings[i].is_certain;
  EXPECT_EQ(certain, 1u) << d.All();
  EXPECT_EQ(d->captures[1].culprit, 2u) << d.All();
}

// --- Libraries, and the driver's own calls ---------------------------------------------------------------------------

TEST(Culprit, SimulatorsWordIsBelieved) {
  Diagnosis d(
      "gcap sim: #1 thread 1 cudaStreamBeginCapture(stream 1, mode thread-local) -> 0 cudaSuccess, makes graph 2, "
      "begins "
      "capture 1 [capture 1 active]\n"
      "gcap sim: #2 thread 1 cudaFree() -> 0 cudaSuccess\n"
      "gcap sim: #3 thread 1 cublasLtDestroy() -> 0 cudaSuccess, invalidates capture 1: rule R12\n"
      "gcap sim: #4 thread 1 cudaMalloc(64 bytes) -> 900 cudaErrorStreamCaptureUnsupported\n"
      "gcap sim: #5 thread 1 cudaStreamEndCapture(stream 1) -> 901 cudaErrorStreamCaptureInvalidated, ends capture "
      "1\n");
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_CULPRIT);
  ASSERT_NE(f, nullptr) << d.All();
  EXPECT_EQ(d.Rule(f), "R42");
  EXPECT_TRUE(f->is_certain);
}

// --- Begins and ends -------------------------------------------------------------------------------------------------

TEST(Culprit, EndOnAStreamThatJoined) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuEventRecord stream=1 event=5",
      "main cuStreamWaitEvent stream=2 event=5",
      "main cuStreamEndCapture stream=2 -> 903",
      "main cuStreamEndCapture stream=1 -> 901",
  });
  EXPECT_EQ(d->captures[0].culprit, 3u) << d.All();
  EXPECT_EQ(d->captures[0].end, 4u);
  EXPECT_EQ(d.Rule(d.Find(GCAP_DOCTOR_FINDING_CULPRIT)), "R3");
}

TEST(Culprit, BeginOnTheLegacyStream) {
  Diagnosis d = Diagnose({"main cuStreamBeginCapture stream=9 mode=global -> 900"});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_CULPRIT);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(d->num_captures, 0u);
  EXPECT_EQ(d.Rule(f), "R1");
  EXPECT_EQ(f->capture, GCAP_DOCTOR_NONE);
}

TEST(Culprit, BeginOnAStreamThatCapturesLeavesItsCaptureAsItIs) {
  Diagnosis d = Diagnose({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuStreamBeginCapture stream=1 mode=global -> 401",
      "main cuLaunchKernel stream=1 +kernel",
      "main cuStreamEndCapture stream=1",
      "! exec id=1 graph=1",
      "! replays exec=1 count=1",
  });
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_CULPRIT);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(d.Rule(f), "R2");
  EXPECT_EQ(f->capture, 0u);
  EXPECT_EQ(d->num_captures, 1u);
  EXPECT_EQ(d->captures[0].outcome, GCAP_DOCTOR_OUTCOME_GRAPH);
  EXPECT_EQ(d->num_findings, 1u) << d.All();
}

TEST(Culprit, EndAfterARefusedBeginSaysNothingNew) {
  Diagnosis d =
      Diagnose({"main cuStreamBeginCapture stream=9 mode=global -> 900", "main cuStreamEndCapture stream=9 -> 401"});
  EXPECT_EQ(d->num_findings, 1u) << d.All();
}

TEST(Culprit, EndWithoutACapture) {
  Diagnosis d = Diagnose({"main cuStreamEndCapture stream=1 -> 401"});
  const gcap_doctor_finding_t* f = d.Find(GCAP_DOCTOR_FINDING_CULPRIT);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(d.Call(f), 1u);
}

// --- Captures without an end -----------------------------------------------------------------------------------------

TEST(Culprit, CallsOfTheProgramsEndAreNotToBlame) {
  Script s;
  s.Place("exit", {"libcuda.so.1:cuCtxSynchronize", "libapp.so:clean_up", "libc.so.6:exit"});
  s.Run({
      "main cuStreamBeginCapture stream=1 mode=global",
      "main cuLaunchKernel stream=1 +kernel",
      "main cuCtxSynchronize at=exit -> 900",
      "! end t=900",
  });
  Diagnosis d = s.Diagnose();
  EXPECT_EQ(d.Find(GCAP_DOCTOR_FINDING_CULPRIT), nullptr) << d.All();
  EXPECT_EQ(d.Rule(d.Find(GCAP_DOCTOR_FINDING_LEFT_OPEN)), "R7") << d.All();
}

TEST(Culprit, CallsOfAnInterpretersEndAreNotToBlame) {
  Script s;
  s.Place("begin", {"libtorch_cuda.so:capture_begin"}, {"train.py:10:main"});
  s.Place("python", {"libtorch_cuda.so:synchronize"}, {"train.py:11:main"});
  s.Place("destructor", {"libtorch_cuda.so:free_graph"});
  s.Run({"main cuStreamBeginCapture stream=1 mode=global at=begin", "main cuCtxSynchronize at=destructor -> 900"});
  EXPECT_EQ(s.Diagnose().Find(GCAP_DOCTOR_FINDING_CULPRIT), nullptr);
  Script other = Script().Place("begin", {"a:b"}, {"train.py:10:main"}).Place("python", {"a:c"}, {"train.py:11:main"});
  other.Run({"main cuStreamBeginCapture stream=1 mode=global at=begin", "main cuCtxSynchronize at=python -> 900"});
  EXPECT_NE(other.Diagnose().Find(GCAP_DOCTOR_FINDING_CULPRIT), nullptr);
}

}  // namespace
