// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// fault_walk.h: a step done again and again, each time with another of its CUDA calls failing. Simulator only.
#ifndef GCAP_TEST_SUPPORT_FAULT_WALK_H_
#define GCAP_TEST_SUPPORT_FAULT_WALK_H_

#include <cstdint>
#include <string>

#include "gcap_sim.h"
#include "gtest/gtest.h"

namespace gcap {
namespace testing {

// Calls that a fault can hit: all but those that only read the calling thread's own error state.
inline uint64_t CudaCalls() {
  uint64_t calls = gcap_sim_calls(nullptr);
  for (const char* name : {"cudaGetLastError", "cudaPeekAtLastError", "cudaGetErrorName", "cudaGetErrorString"}) {
    calls -= gcap_sim_calls(name);
  }
  return calls;
}

// Makes the nth CUDA call from now on fail. Disarms at the end of its life.
class ArmedFault {
 public:
  explicit ArmedFault(uint64_t n, cudaError_t code = cudaErrorUnknown) : n_(n), before_(CudaCalls()) {
    gcap_sim_fail_nth(nullptr, n, code);
  }
  ArmedFault(const ArmedFault&) = delete;
  ArmedFault& operator=(const ArmedFault&) = delete;
  ~ArmedFault() { Disarm(); }

  // Ends the fault's reach and tells whether it hit a call.
  bool Disarm() {
    if (armed_) hit_ = CudaCalls() - before_ >= n_;
    if (armed_) gcap_sim_fail_nth(nullptr, 0, cudaSuccess);
    armed_ = false;
    return hit_;
  }

 private:
  const uint64_t n_;
  const uint64_t before_;
  bool armed_ = true;
  bool hit_ = false;
};

// Calls `trial(n)` for n = 1, 2, … until it answers that its fault hit nothing: then every call has failed once. Gives
// the number of calls that failed.
template <typename Trial>
uint64_t WalkFaults(Trial trial) {
  constexpr uint64_t kTooMany = 1000;
  for (uint64_t n = 1; n <= kTooMany; ++n) {
    SCOPED_TRACE("CUDA call " + std::to_string(n) + " fails");
    if (!trial(n)) return n - 1;
    if (::testing::Test::HasFatalFailure()) return n;
  }
  ADD_FAILURE() << "more than " << kTooMany << " calls";
  return kTooMany;
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SUPPORT_FAULT_WALK_H_
