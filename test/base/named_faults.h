// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// named_faults.h: makes each CUDA call of a step fail in turn, by the name of its function, and checks what every
// failure must leave behind. Simulator only.
//
// Names matter: a destroy that was made to fail leaves exactly its own handle, and anything else that is left is a
// leak.
#ifndef GCAP_TEST_BASE_NAMED_FAULTS_H_
#define GCAP_TEST_BASE_NAMED_FAULTS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

// The functions that gcap's base, stream, capture and graph modules call and that can fail, and those that tests issue
// within a step. A walk finds out when one is missing here.
constexpr const char* kFallibleFunctions[] = {
    "cudaEventCreateWithFlags",
    "cudaEventDestroy",
    "cudaEventQuery",
    "cudaEventRecord",
    "cudaEventSynchronize",
    "cudaFuncGetName",
    "cudaGetDevice",
    "cudaGetDeviceCount",
    "cudaGraphDebugDotPrint",
    "cudaGraphDestroy",
    "cudaGraphExecDestroy",
    "cudaGraphExecUpdate",
    "cudaGraphGetEdges",
    "cudaGraphGetNodes",
    "cudaGraphInstantiateWithParams",
    "cudaGraphKernelNodeGetParams",
    "cudaGraphLaunch",
    "cudaGraphMemAllocNodeGetParams",
    "cudaGraphNodeGetType",
    "cudaGraphUpload",
    "cudaMemcpyAsync",
    "cudaSetDevice",
    "cudaStreamBeginCapture",
    "cudaStreamCreateWithFlags",
    "cudaStreamDestroy",
    "cudaStreamEndCapture",
    "cudaStreamGetCaptureInfo",
    "cudaStreamGetDevice",
    "cudaStreamGetId",
    "cudaStreamIsCapturing",
    "cudaStreamSynchronize",
    "cudaStreamWaitEvent",
    "cudaThreadExchangeStreamCaptureMode",
};

constexpr const char* kHandleKinds[] = {"stream", "event",         "graph",         "graph node",
                                        "exec",   "device memory", "pinned memory", "user object"};

inline std::map<std::string, size_t> LiveHandles() {
  std::map<std::string, size_t> live;
  for (const char* kind : kHandleKinds) live[kind] = gcap_sim_live(kind);
  return live;
}

// The nth call of one function fails, once, within During.
class NamedFault {
 public:
  NamedFault(std::string function, uint64_t n) : function_(std::move(function)), n_(n) {}

  // Runs the step under test with the fault armed, and gives its outcome.
  template <typename Step>
  Outcome During(Step step) {
    const uint64_t all = gcap_sim_calls(nullptr);
    const uint64_t listed = ListedCalls();
    const uint64_t before = gcap_sim_calls(function_.c_str());
    gcap_sim_fail_nth(function_.c_str(), n_, cudaErrorUnknown);
    const Outcome outcome(step());
    gcap_sim_fail_nth(nullptr, 0, cudaSuccess);
    fired_ = gcap_sim_calls(function_.c_str()) - before >= n_;
    EXPECT_EQ(gcap_sim_calls(nullptr) - all, ListedCalls() - listed) << "kFallibleFunctions lacks a function";
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "the last error was left behind";
    return outcome;
  }

  // The trial's outcome keeps one more handle of the kind for ever, as documented.
  void ExpectKept(const char* kind) { ++kept_[kind]; }
  size_t Kept(const std::string& kind) const { return kept_.count(kind) != 0 ? kept_.at(kind) : 0; }

  bool fired() const { return fired_; }
  bool Is(const char* function) const { return fired_ && function_ == function; }
  const std::string& function() const { return function_; }

  // Whether the outcome is the failed call's: its code, and a text that names the function.
  bool Explains(const Outcome& outcome) const {
    return fired_ && outcome.cuda_error == cudaErrorUnknown && outcome.Names(function_);
  }

 private:
  static uint64_t ListedCalls() {
    uint64_t calls = 0;
    for (const char* name : kFallibleFunctions) calls += gcap_sim_calls(name);
    for (const char* name : {"cudaGetLastError", "cudaPeekAtLastError", "cudaGetErrorName", "cudaGetErrorString"}) {
      calls += gcap_sim_calls(name);
    }
    return calls;
  }

  const std::string function_;
  const uint64_t n_;
  bool fired_ = false;
  std::map<std::string, size_t> kept_;
};

// What must hold after a trial, whatever failed in it.
inline void ExpectNothingLeft(const NamedFault& fault, std::map<std::string, size_t> expected) {
  for (auto& entry : expected) entry.second += fault.Kept(entry.first);
  if (fault.Is("cudaEventDestroy")) ++expected["event"];
  if (fault.Is("cudaStreamDestroy")) ++expected["stream"];
  if (fault.Is("cudaGraphExecDestroy")) ++expected["exec"];
  std::map<std::string, size_t> live = LiveHandles();
  if (fault.Is("cudaGraphDestroy")) {
    ++expected["graph"];
    expected["graph node"] = live["graph node"];  // as many as that graph had
  }
  EXPECT_EQ(live, expected);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  ASSERT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  if (!fault.Is("cudaThreadExchangeStreamCaptureMode")) {
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal) << "the thread's mode was not given back";
  }
}

// Calls `trial(fault)` for every call of every function that the trial's step makes. Gives the functions that failed.
template <typename Trial>
std::set<std::string> WalkNamedFaults(Trial trial) {
  constexpr uint64_t kTooMany = 100;
  std::set<std::string> walked;
  for (const char* function : kFallibleFunctions) {
    for (uint64_t n = 1;; ++n) {
      SCOPED_TRACE("call " + std::to_string(n) + " of " + function + " fails");
      const std::map<std::string, size_t> before = LiveHandles();
      NamedFault fault(function, n);
      trial(fault);
      ExpectNothingLeft(fault, before);
      if (!fault.fired() || ::testing::Test::HasFailure()) break;
      walked.insert(function);
      if (n == kTooMany) {
        ADD_FAILURE() << "more than " << kTooMany << " calls";
        break;
      }
    }
  }
  return walked;
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_BASE_NAMED_FAULTS_H_
