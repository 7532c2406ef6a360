// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A fault takes the simulator's log while it is armed, so there is one armed fault at a time. Locking: none; the sink
// runs under the simulator's mutex, and Disarm comes when the step's threads are done.

#include "test/support/faults.h"

#include <algorithm>

namespace gcap {
namespace testing {
namespace {

constexpr const char* kHandleKinds[] = {
    "stream",      "event",       "graph",         "graph node",    "exec",
    "user object", "memory pool", "device memory", "pinned memory", "reserved address range"};

// What a failure of the function leaves: exactly one more of the kind. gcap does not try these again.
const std::map<std::string, std::string> kLeftBy = {{"cudaEventDestroy", "event"},
                                                    {"cudaStreamDestroy", "stream"},
                                                    {"cudaGraphExecDestroy", "exec"},
                                                    {"cudaGraphDestroy", "graph"}};

}  // namespace

Handles LiveHandles() {
  Handles live;
  size_t others = gcap_sim_live(nullptr);
  for (const char* kind : kHandleKinds) others -= live[kind] = gcap_sim_live(kind);
  live["of other kinds"] = others;
  return live;
}

// --- Fault -----------------------------------------------------------------------------------------------------------

// `#7 thread 1 cudaMalloc(64 bytes) -> 999 cudaErrorUnknown`
void Fault::Note(void* self, const char* line) {
  Fault* fault = static_cast<Fault*>(self);
  const std::string text(line);
  const bool is_first = fault->function_.empty();
  if (text.find(is_first ? " -> 999 " : " -> 800 ") == std::string::npos) return;
  const size_t end = text.find('(');
  const size_t begin = text.rfind(' ', end) + 1;
  const std::string function = text.substr(begin, end - begin);
  if (is_first) fault->function_ = function;
  fault->failed_.insert(function);
}

Fault::Fault(uint64_t n, Reach reach) : n_(n), reach_(reach) { EXPECT_EQ(cudaGetDevice(&device_), cudaSuccess); }

void Fault::Arm() {
  constexpr uint64_t kManyCalls = 60;  // more than follow; a call that is made again until it succeeds must end
  armed_ = true;
  calls_before_ = gcap_sim_calls_for_faults();
  gcap_sim_set_log("errors", Note, this);
  gcap_sim_fail_nth(nullptr, n_, cudaErrorUnknown);
  gcap_sim_fault_t later = {};
  later.code = kLaterError;
  for (later.nth = n_ + 1; reach_ == Reach::kAllAfter && later.nth < n_ + kManyCalls; ++later.nth) {
    gcap_sim_inject(&later);
  }
}

bool Fault::Disarm() {
  if (!armed_) return hit();
  armed_ = false;
  const bool reached = gcap_sim_calls_for_faults() - calls_before_ >= n_;
  gcap_sim_fail_nth(nullptr, 0, cudaSuccess);
  gcap_sim_set_log(nullptr, nullptr, nullptr);
  EXPECT_EQ(reached, hit()) << function_;
  ExpectThreadAsBefore(Functions(failed_.begin(), failed_.end()));
  return hit();
}

bool Fault::IsOfAnEnd() const {
  return function_.find("Destroy") != std::string::npos || function_.find("Free") != std::string::npos;
}

void Fault::ExpectNothingLeft(const Handles& before) const {
  if (any_kept_) return;
  const Handles live = LiveHandles();
  Handles expected = before;
  for (const auto& entry : kept_) expected[entry.first] += entry.second;
  if (Failures("cudaGraphDestroy") != 0) expected["graph node"] = live.at("graph node");  // as many as that graph had
  const auto left = kLeftBy.find(function_);
  const size_t later = failed_.size() - hit();
  if (left != kLeftBy.end()) ++expected[left->second];
  if (later == 0 && (left != kLeftBy.end() || !IsOfAnEnd())) {
    EXPECT_EQ(live, expected) << function_;
    return;
  }
  size_t more = 0;  // of an end that may have been tried again, or before which a later call failed
  for (const auto& entry : live) {
    EXPECT_GE(entry.second, before.at(entry.first)) << "fewer of the kind " << entry.first;
    more += entry.second - std::min(entry.second, expected[entry.first]);
  }
  EXPECT_LE(more, later + IsOfAnEnd());
}

// Where the very call fails that gives a setting back, there is no other.
void Fault::ExpectThreadAsBefore(const Functions& failed) const {
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "the last error was left behind";
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_TRUE(failed.count("cudaSetDevice") != 0 || device == device_)
      << "the thread's device was not given back: " << device;
  EXPECT_EQ(cudaSetDevice(device_), cudaSuccess);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_TRUE(failed.count("cudaThreadExchangeStreamCaptureMode") != 0 || mode == cudaStreamCaptureModeGlobal)
      << "the thread's mode was not given back";
}

// --- Walks -----------------------------------------------------------------------------------------------------------

Walked WalkFaults(const std::function<void(Fault&)>& trial, Reach reach) {
  constexpr uint64_t kTooMany = 1000;
  Walked walked;
  for (uint64_t n = 1; n <= kTooMany; ++n) {
    SCOPED_TRACE("CUDA call " + std::to_string(n) + (reach == Reach::kAllAfter ? " and all after fail" : " fails"));
    const Handles before = LiveHandles();
    Fault fault(n, reach);
    trial(fault);
    const bool hit = fault.Disarm();
    SCOPED_TRACE("of " + fault.function());
    fault.ExpectNothingLeft(before);
    fault.ExpectThreadAsBefore();
    if (!hit || ::testing::Test::HasFailure()) return walked;
    walked.calls = n;
    walked.functions.insert(fault.function());
  }
  ADD_FAILURE() << "more than " << kTooMany << " calls";
  return walked;
}

}  // namespace testing
}  // namespace gcap
