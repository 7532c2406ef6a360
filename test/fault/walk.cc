// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What must hold of a public function when any of its calls fails, over the engine of test/support/faults.h.
//
// What a failure may leave: the handle whose destruction failed, and what gcap says that it keeps because it may still
// be in use. All else is a leak.

#include "test/fault/walk.h"

#include <cstdint>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "lib/internal/capture_gate.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// Nothing of the capture is left with the thread that called.
void ExpectCleanThread(const Fault& fault) {
  EXPECT_FALSE(gcap_thread_is_capturing());
  EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
  fault.ExpectThreadAsBefore();
}

// What recovers from one failure may fail by a later one.
void ExpectOutcome(const Walk& walk, const Outcome& outcome, const Fault& fault, const std::string& log) {
  const std::string& failed = fault.function();
  const bool recovers = walk.recovers_from.count(failed) + walk.recovers_from.count("*") != 0;
  if (!fault.hit()) {
    EXPECT_TRUE(outcome.ok()) << outcome.message;
  } else if (outcome.ok()) {
    EXPECT_TRUE(recovers) << "success, although " << failed << " failed";
    EXPECT_TRUE(!walk.logs_recovery || log.find(failed) != std::string::npos)
        << "success, and the log does not name " << failed << ": " << log;
  } else {
    EXPECT_TRUE(recovers || fault.ComesFirst(outcome)) << failed << " does not come first: " << outcome.message;
  }
}

// An end that fails whenever it is tried leaves the stream capturing, and everybody else's calls refused.
void EndCapture(cudaStream_t stream) {
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  EXPECT_EQ(cudaStreamIsCapturing(stream, &state), cudaSuccess);
  cudaGraph_t graph = nullptr;
  if (state != cudaStreamCaptureStatusNone) (void)cudaStreamEndCapture(stream, &graph);
  if (graph != nullptr) {
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  (void)cudaGetLastError();
}

void Try(const Walk& walk, Fault* fault) {
  LogCatcher log;
  std::unique_ptr<Scene> scene = walk.make();
  if (::testing::Test::HasFailure()) return;
  const uint64_t calls = gcap_sim_calls_for_faults();
  fault->Arm();
  const Outcome outcome(walk.act(scene.get()));
  EXPECT_TRUE(walk.calls == Calls::kSome || gcap_sim_calls_for_faults() == calls)
      << "it is said to call nothing of CUDA";
  fault->Disarm();
  if (fault->Failures("cudaStreamEndCapture") > 1) EndCapture(scene->CapturingStream());
  ExpectOutcome(walk, outcome, *fault, log.text());
  if ((outcome.ok() || walk.closes_failures) && walk.after) walk.after(scene.get());
  ExpectCleanThread(*fault);
  scene->ExpectNextRunWorks();
  const Outcome ended(scene->End());
  scene.reset();
  const std::string said = outcome.message + ended.message + log.text();
  const bool keeps =
      fault->hit() && (said.find(" kept") != std::string::npos || said.find("are lost") != std::string::npos);
  EXPECT_TRUE(ended.ok() || keeps || fault->IsOfAnEnd()) << "the end: " << ended.message;
  if (keeps) fault->AllowKept();
}

}  // namespace

std::vector<Walk> Joined(std::initializer_list<std::vector<Walk>> parts) {
  std::vector<Walk> all;
  for (const std::vector<Walk>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

void ExpectSurvivesFaults(const Walk& walk) {
  SCOPED_TRACE(walk.Name());
  for (const Reach reach : {Reach::kOneCall, Reach::kAllAfter}) {
    const Walked walked = WalkFaults([&walk](Fault& fault) { Try(walk, &fault); }, reach);
    if (::testing::Test::HasFailure()) return;
    EXPECT_TRUE(walked.calls > 0 || walk.calls == Calls::kNone) << "no call was walked over";
  }
}

}  // namespace testing
}  // namespace gcap
