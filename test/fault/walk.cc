// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The engine. The call that fails is any one, so a new call in a function is walked over without anybody's doing; which
// one it was is read off the simulator's log.
//
// What a failure may leave: the handle whose destruction failed, and what gcap says that it keeps because it may still
// be in use. All else is a leak.

#include "test/fault/walk.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>

#include "gcap/capture.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "lib/internal/capture_gate.h"
#include "test/support/expect_status.h"
#include "test/support/fault_walk.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

constexpr const char* kHandleKinds[] = {"stream",      "event",         "graph",        "exec",
                                        "user object", "device memory", "pinned memory"};

std::map<std::string, size_t> LiveHandles() {
  std::map<std::string, size_t> live;
  for (const char* kind : kHandleKinds) live[kind] = gcap_sim_live(kind);
  return live;
}

// The function of the first call that failed with the injected code while it lives; empty if none did.
class FailedCall {
 public:
  FailedCall() { gcap_sim_set_log("errors", Note, this); }
  FailedCall(const FailedCall&) = delete;
  FailedCall& operator=(const FailedCall&) = delete;
  ~FailedCall() { gcap_sim_set_log(nullptr, nullptr, nullptr); }

  const std::string& function() const { return function_; }

 private:
  // `#7 thread 1 cudaMalloc(64 bytes) -> 999 cudaErrorUnknown`
  static void Note(void* self, const char* line) {
    std::string* function = &static_cast<FailedCall*>(self)->function_;
    const std::string text(line);
    if (!function->empty() || text.find(" -> 999 ") == std::string::npos) return;
    const size_t end = text.find('(');
    const size_t begin = text.rfind(' ', end) + 1;
    *function = text.substr(begin, end - begin);
  }

  std::string function_;
};

bool Ends(const std::string& function) {
  return function.find("Destroy") != std::string::npos || function.find("Free") != std::string::npos;
}

// The last error, the capture mode and the mark of the thread that called.
void ExpectCleanThread(const std::string& failed) {
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "the last error was left behind";
  EXPECT_FALSE(gcap_thread_is_capturing());
  EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  // Where the very call that gives the mode back fails, there is no other.
  if (failed != "cudaThreadExchangeStreamCaptureMode") {
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal) << "the thread's mode was not given back";
  }
}

void ExpectOutcome(const Walk& walk, const Outcome& outcome, const std::string& failed, const std::string& log) {
  if (failed.empty()) {
    EXPECT_TRUE(outcome.ok()) << outcome.message;
  } else if (outcome.ok()) {
    EXPECT_EQ(walk.recovers_from.count(failed) + walk.recovers_from.count("*"), 1u)
        << "success, although " << failed << " failed";
    EXPECT_TRUE(!walk.logs_recovery || log.find(failed) != std::string::npos)
        << "success, and the log does not name " << failed << ": " << log;
  } else {
    EXPECT_TRUE(outcome.Names(failed)) << "does not name " << failed << ": " << outcome.message;
  }
}

// Compares handle by handle; a failed destruction leaves one more of one kind.
void ExpectNothingLeft(std::map<std::string, size_t> before, const std::string& failed) {
  size_t left = 0;
  for (const auto& kind : LiveHandles()) {
    EXPECT_GE(kind.second, before[kind.first]) << "fewer of the kind " << kind.first;
    left += kind.second - before[kind.first];
    EXPECT_TRUE(Ends(failed) || kind.second == before[kind.first]) << "left of the kind " << kind.first;
  }
  EXPECT_LE(left, Ends(failed) ? 1u : 0u);
}

// One trial; gives whether a call failed.
bool Try(const Walk& walk, uint64_t n) {
  const std::map<std::string, size_t> before = LiveHandles();
  LogCatcher log;
  std::unique_ptr<Scene> scene = walk.make();
  if (::testing::Test::HasFailure()) return false;
  std::string failed;
  const Outcome outcome = [&] {
    FailedCall call;
    const uint64_t calls = CudaCalls();
    ArmedFault fault(n);
    Outcome done(walk.act(scene.get()));
    const bool hit = fault.Disarm();
    failed = call.function();
    EXPECT_EQ(hit, !failed.empty());
    EXPECT_TRUE(walk.calls == Calls::kSome || CudaCalls() == calls) << "it is said to call nothing of CUDA";
    return done;
  }();
  ExpectOutcome(walk, outcome, failed, log.text());
  if ((outcome.ok() || walk.closes_failures) && walk.after) walk.after(scene.get());
  ExpectCleanThread(failed);
  scene->ExpectNextRunWorks();
  const Outcome ended(scene->End());
  scene.reset();
  const std::string said = outcome.message + ended.message + log.text();
  const bool keeps =
      !failed.empty() && (said.find(" kept") != std::string::npos || said.find("are lost") != std::string::npos);
  EXPECT_TRUE(ended.ok() || keeps || Ends(failed)) << "the end: " << ended.message;
  if (!keeps) ExpectNothingLeft(before, failed);
  return !failed.empty();
}

}  // namespace

void ExpectSurvivesFaults(const Walk& walk) {
  constexpr uint64_t kTooMany = 1000;
  for (uint64_t n = 1; n <= kTooMany; ++n) {
    SCOPED_TRACE(walk.Name() + ", CUDA call " + std::to_string(n) + " fails");
    const bool hit = Try(walk, n);
    if (::testing::Test::HasFailure()) return;
    if (hit) continue;
    EXPECT_TRUE(n > 1 || walk.calls == Calls::kNone) << "no call was walked over";
    return;
  }
  ADD_FAILURE() << walk.Name() << ": more than " << kTooMany << " calls";
}

}  // namespace testing
}  // namespace gcap
