// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// faults.h: a trial done again and again, each time with another of its CUDA calls failing. Simulator only.
//
//     const Walked walked = WalkFaults([](Fault& fault) {
//       const Outcome outcome = fault.During([] { return step(); });
//       EXPECT_EQ(outcome.ok(), !fault.hit());
//     });
//     EXPECT_EQ(walked.functions, (Functions{"cudaMalloc"}));
//
// A call is made to fail by its number, so a new call is walked over without anybody's doing; which function the call
// was is read off the simulator's log. What every failure must leave behind is checked here, once for all tests: the
// thread's last error, device and capture mode, and the live handles, of which only the one whose destruction failed
// may be one more.
#ifndef GCAP_TEST_SUPPORT_FAULTS_H_
#define GCAP_TEST_SUPPORT_FAULTS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

using Functions = std::set<std::string>;
using Handles = std::map<std::string, size_t>;

// How many handles live, by kind.
Handles LiveHandles();

enum class Reach {
  kOneCall,
  kAllAfter,  // each call after the nth fails too, with kLaterError: the first failure is the one to be told first
};
constexpr cudaError_t kLaterError = cudaErrorNotPermitted;  // gcap takes it for nothing special

// The nth CUDA call from Arm to Disarm fails, with cudaErrorUnknown.
class Fault {
 public:
  explicit Fault(uint64_t n, Reach reach = Reach::kOneCall);
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;
  ~Fault() { Disarm(); }

  // Counts the calls of every thread from here on.
  void Arm();
  // Ends the fault's reach, expects that the thread is as before, and tells whether the fault hit a call. Where the
  // very call failed that gives the thread its device or mode back, Disarm does.
  bool Disarm();

  // Runs the step under test with the fault armed, and gives its outcome.
  template <typename Step>
  Outcome During(Step step) {
    Arm();
    const Outcome outcome(step());
    Disarm();
    return outcome;
  }

  bool hit() const { return !function_.empty(); }
  const std::string& function() const { return function_; }  // of the nth call; empty if none failed
  bool Is(const std::string& function) const { return hit() && function_ == function; }
  // How many calls of the function failed.
  size_t Failures(const std::string& function) const { return failed_.count(function); }
  // The failed call ends a handle, which is then left.
  bool IsOfAnEnd() const;
  // The failed call may be one that only measures what an executable takes, of which no outcome tells.
  bool MayBeOfAMeasurement() const { return Is("cudaGetDevice") || Is("cudaMemGetInfo"); }
  // Whether the text names the function of the nth call before any later failure, which does not decide the code
  // either.
  bool ComesFirst(const Outcome& outcome) const {
    const size_t later = outcome.message.find("cudaErrorNotPermitted");
    return hit() && outcome.cuda_error != kLaterError && outcome.message.find(function_) < later;
  }
  // Whether the outcome is the nth call's: its code, and a text that names the function first.
  bool Explains(const Outcome& outcome) const { return ComesFirst(outcome) && outcome.cuda_error == cudaErrorUnknown; }

  // The trial's outcome keeps one more handle of the kind for ever, as documented.
  void ExpectKept(const std::string& kind) { ++kept_[kind]; }
  // The trial's outcome keeps handles of which there may be any number, as documented.
  void AllowKept() { any_kept_ = true; }

  // Expects of the calling thread no last error, and the device and the capture mode of when the fault was made.
  void ExpectThreadAsBefore() const { ExpectThreadAsBefore(/*failed=*/{}); }
  // Expects that nothing but what the failure excuses is left of a trial that began with these handles.
  void ExpectNothingLeft(const Handles& before) const;

 private:
  static void Note(void* self, const char* line);
  void ExpectThreadAsBefore(const Functions& failed) const;

  const uint64_t n_;
  const Reach reach_;
  int device_ = 0;
  uint64_t calls_before_ = 0;
  bool armed_ = false;
  std::string function_;
  std::multiset<std::string> failed_;  // of function_ and of the later calls
  Handles kept_;
  bool any_kept_ = false;
};

struct Walked {
  uint64_t calls = 0;  // how many have failed
  Functions functions;
};

// Calls `trial` for n = 1, 2, … until its fault hits nothing: then every call has failed once as the first. Gives what
// has failed so.
Walked WalkFaults(const std::function<void(Fault&)>& trial, Reach reach = Reach::kOneCall);

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SUPPORT_FAULTS_H_
