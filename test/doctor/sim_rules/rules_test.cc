// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Each rule that a case of //test/conformance shows, through the simulator's log: a finding names the rule's call.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <set>
#include <string>

#include "test/doctor/sim_rules/logged.h"

namespace gcap {
namespace testing {
namespace {

struct Row {
  const char *rule, *block;
  gcap_doctor_finding_kind_t kind;
  const char* function;
  const char* told;  // the rule that the finding names, where that is another one; "" for none
};

constexpr gcap_doctor_finding_kind_t kCulprit = GCAP_DOCTOR_FINDING_CULPRIT, kUnjoined = GCAP_DOCTOR_FINDING_UNJOINED,
                                     kLost = GCAP_DOCTOR_FINDING_LOST_CALL, kFailed = GCAP_DOCTOR_FINDING_LAUNCH_FAILED,
                                     kRefused = GCAP_DOCTOR_FINDING_UPDATE_REFUSED;

const Row kRows[] = {
    {"R1", "begin.legacy/GLOBAL", kCulprit, "cudaStreamBeginCapture", nullptr},
    {"R2", "cap.begin_again/self GLOBAL", kCulprit, "cudaStreamBeginCapture", nullptr},
    {"R2", "cap.begin_again/other RELAXED", kCulprit, "cudaStreamBeginCapture", nullptr},
    {"R3", "end.wrong_stream/GLOBAL", kCulprit, "cudaStreamEndCapture", nullptr},
    {"R4", "end.other_thread/THREAD_LOCAL", kCulprit, "cudaStreamEndCapture", nullptr},
    {"R5", "end.after_invalidation/GLOBAL", kCulprit, "cudaStreamSynchronize", "R11"},  // what made it invalid
    {"R6", "end.unjoined_work/GLOBAL", kUnjoined, "cudaStreamWaitEvent", nullptr},
    {"R8", "end.empty/GLOBAL", GCAP_DOCTOR_FINDING_EMPTY_GRAPH, "cudaStreamBeginCapture", nullptr},
    {"R9", "cap.cudaMemcpyAsync_nulldst/self GLOBAL", kLost, "cudaMemcpyAsync", nullptr},
    {"R9", "cap.cudaEventElapsedTime_captured/self GLOBAL", kLost, "cudaEventElapsedTime", nullptr},
    {"R11", "end.after_invalidation/RELAXED", kCulprit, "cudaStreamSynchronize", nullptr},
    {"R11", "cap.sync_joined/other THREAD_LOCAL", kCulprit, "cudaStreamSynchronize", nullptr},
    {"R12", "cap.relaxed_exchange_cudaDeviceSynchronize/other RELAXED", kCulprit, "cudaDeviceSynchronize", nullptr},
    {"R13", "cap.cudaEventQuery_captured/self RELAXED", kCulprit, "cudaEventQuery", nullptr},
    {"R14", "cap.cudaEventQuery_pre/other GLOBAL", kCulprit, "cudaEventQuery", nullptr},
    {"R15", "cap.cudaMemcpy_d2d/blocking GLOBAL", kCulprit, "cudaMemcpy", nullptr},
    {"R16", "merge.two_captures/GLOBAL", kCulprit, "cudaStreamWaitEvent", nullptr},
    {"R17", "probe.cap.cudaStreamWaitEvent_pre/self GLOBAL", kCulprit, "cudaStreamWaitEvent", nullptr},
    {"R19", "end.events_of_ended/GLOBAL", kCulprit, "cudaStreamWaitEvent", nullptr},
    {"R20", "during.cudaStreamAddCallback_capturing/self GLOBAL", kCulprit, "cudaStreamAddCallback", nullptr},
    {"R21", "probe.cap.cudaStreamAttachMemAsync_capturing/self GLOBAL", kCulprit, "cudaStreamAttachMemAsync", nullptr},
    {"R22", "during.cudaMemcpyBatchAsync_capturing/self GLOBAL", kLost, "cudaMemcpyBatchAsync", nullptr},
    {"R23", "probe.destroy.fork_unjoined/GLOBAL", kUnjoined, "cudaStreamWaitEvent", nullptr},
    {"R24", "cap.cudaStreamGetFlags/self GLOBAL", kCulprit, "cudaStreamGetFlags", nullptr},
    {"R26", "mode.exchange_matrix/capture GLOBAL thread GLOBAL", kCulprit, "cudaMalloc", nullptr},
    {"R28", "cap.cudaFree/self THREAD_LOCAL", kCulprit, "cudaFree", nullptr},
    {"R29", "cap.cudaMallocAsync_capturing/self GLOBAL", GCAP_DOCTOR_FINDING_ALLOCATION_NODE, "cudaMallocAsync",
     nullptr},
    {"R30", "memnode.no_autofree/", kFailed, "cudaGraphLaunch", nullptr},
    {"R32", "instantiate.flags/", kFailed, "cudaGraphInstantiate", ""},
    {"R33", "memnode.edits/", kFailed, "cudaGraphInstantiate", ""},
    {"R35", "cap.cudaMemPoolGetAttribute_reuse/self GLOBAL", kCulprit, "cudaMemPoolGetAttribute", nullptr},
    {"R36", "during.cudaHostAlloc/other GLOBAL", kCulprit, "cudaHostAlloc", nullptr},
    {"R37", "order.capture_and_eager/", GCAP_DOCTOR_FINDING_PAGEABLE, "cudaMemcpyAsync",
     "R38"},  // pageable, and so both
    {"R38", "order.capture_and_eager/", GCAP_DOCTOR_FINDING_PAGEABLE, "cudaMemcpyAsync", nullptr},
    {"R49", "during.cudaDeviceSetLimit/self GLOBAL", kCulprit, "cudaDeviceSetLimit", nullptr},
    // The log does not say what the update would have changed.
    {"R53", "update.changes/", kRefused, "cudaGraphExecUpdate", "R55"},
    {"R54", "update.changes/", kRefused, "cudaGraphExecUpdate", nullptr},
    {"R55", "update.changes/", kRefused, "cudaGraphExecUpdate", nullptr},
    {"R63", "during.cudaLaunchKernel_grid0_capturing/self GLOBAL", kCulprit, "cudaLaunchKernel", nullptr},
    {"R64", "during.cudaMemsetAsync_other/self GLOBAL", GCAP_DOCTOR_FINDING_ESCAPED, "cudaMemsetAsync", nullptr},
    {"R64", "cap.cudaMemcpy_d2d/self GLOBAL", GCAP_DOCTOR_FINDING_ESCAPED, "cudaMemcpy", nullptr},
};

const struct {
  const char *rule, *reason;
} kUntold[] = {
    {"R10", "the use of the dead handle stops the simulator; the call that broke the capture is named"},
    {"R18", "to join a stream is legal; a stream that is not joined back is R6's"},
    {"R25", "legal: what is not ordered shows in what the program computes"},
    {"R27", "legal: an allocation in relaxed mode"},
    {"R41", "legal where the runtime waits: the simulator's checks find it"},
    {"R48", "legal: the module was loaded"},
    {"R57", "legal: a matter of time"},
    {"R60", "the case gives the mode back; mistakes_test.cc does not"},
};

const std::set<std::string> kShown = {
#define SHOWN_BY(rule, case_name) #rule,
#define NOT_SHOWN(rule, reason)
#include "test/conformance/rule_cases.inc"
#undef NOT_SHOWN
#undef SHOWN_BY
};

TEST(SimRules, EachThatACaseShowsIsToldOrHasAReason) {
  for (const std::string& rule : kShown) {
    size_t rows = 0, reasons = 0;
    for (const Row& row : kRows) rows += row.rule == rule;
    for (const auto& row : kUntold) reasons += row.rule == rule;
    EXPECT_TRUE((rows > 0 && reasons == 0) || (rows == 0 && reasons == 1))
        << rule << " has " << rows << " rows and " << reasons << " reasons";
  }
}

// Is there a finding of that kind about a call of that function, which names that rule?
bool IsTold(const Logged& logged, const Row& row, const std::string& rule) {
  for (size_t i = 0; i < logged.diagnosis().num_findings; ++i) {
    const gcap_doctor_finding_t& finding = logged.diagnosis().findings[i];
    const std::string told = finding.rule != nullptr ? finding.rule->id : "";
    if (finding.kind == row.kind && logged.FunctionOf(finding.call) == row.function && told == rule) return true;
  }
  return false;
}

class SimRule : public ::testing::TestWithParam<Row> {};

TEST_P(SimRule, HasItsCallNamed) {
  const Row& row = GetParam();
  const Logged logged = Logged::Of({getenv("CASES"), std::string("--observe=") + row.block});
  ASSERT_GT(logged.recording().num_calls, 10u) << logged.log();
  EXPECT_EQ(logged.recording().damage.lines, 0u);
  EXPECT_TRUE(IsTold(logged, row, row.told != nullptr ? row.told : row.rule)) << logged.Findings();
}

INSTANTIATE_TEST_SUITE_P(All, SimRule, ::testing::ValuesIn(kRows), [](const auto& info) {
  std::string name = info.param.rule + std::string("_") + info.param.block;
  for (char& c : name) c = isalnum(c) ? c : '_';
  return name;
});

}  // namespace
}  // namespace testing
}  // namespace gcap
