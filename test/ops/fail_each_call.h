// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// fail_each_call.h: an op under the failure of each CUDA or library call that it makes. Simulator only.
#ifndef GCAP_TEST_OPS_FAIL_EACH_CALL_H_
#define GCAP_TEST_OPS_FAIL_EACH_CALL_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <vector>

#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {

using Names = std::vector<const char*>;

inline uint64_t CountCalls(const Names& functions) {
  uint64_t count = 0;
  for (const char* function : functions) count += gcap_sim_calls(function);
  return count;
}

// Makes each call of `attempt` to `functions` fail once: the status must name it, and as many objects live afterwards
// as before. `endings` are what it also calls, to end its objects: those are not made to fail, since that leaks one by
// definition. The two lists must be all that a good attempt calls, so that no new call escapes.
inline void FailEachCall(const Names& functions, const Names& endings, const std::function<gcap_status_t()>& attempt) {
  const uint64_t listed = CountCalls(functions) + CountCalls(endings), all = gcap_sim_calls(nullptr);
  GCAP_EXPECT_OK(attempt());
  EXPECT_EQ(CountCalls(functions) + CountCalls(endings) - listed, gcap_sim_calls(nullptr) - all);
  for (const char* function : functions) {
    uint64_t n = 1;
    for (;; ++n) {
      const size_t live = gcap_sim_live(nullptr);
      gcap_sim_fail_nth(function, n, cudaErrorUnknown);
      const Outcome outcome(attempt());
      gcap_sim_fail_nth(nullptr, 0, cudaSuccess);
      EXPECT_EQ(gcap_sim_live(nullptr), live) << outcome.message;
      EXPECT_EQ(cudaGetLastError(), cudaSuccess) << outcome.message;
      if (outcome.code == GCAP_OK) break;
      EXPECT_TRUE(outcome.code == GCAP_LIBRARY_ERROR || outcome.code == GCAP_CUDA_ERROR) << outcome.message;
      EXPECT_EQ(outcome.message.find(function), 0u) << outcome.message;
    }
    EXPECT_GT(n, 1u) << function << " was not called";
  }
}

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_OPS_FAIL_EACH_CALL_H_
