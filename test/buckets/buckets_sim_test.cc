// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The choice without host memory: each of its allocations fails once.

#include <gtest/gtest.h>

#include "gcap/buckets.h"
#include "test/base/heap_failure.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

TEST(BucketsHeap, EachAllocationMayFail) {
  const gcap_size_count_t sizes[] = {{1, 10}, {2, 1}, {3, 2}, {8, 1}};
  const long before = LiveBlocks();
  int failed = 0;
  for (bool hit = true; hit; ++failed) {
    ASSERT_LT(failed, 100);
    size_t out[2] = {77, 77};
    gcap_buckets_choice_t choice;
    gcap_buckets_choice_init(&choice);
    gcap_status_t status = nullptr;
    {
      const HeapFailure no_memory(1, failed);
      status = gcap_buckets_choose(sizes, 4, nullptr, 2, out, &choice);
      hit = no_memory.hits() > 0;
    }
    const Outcome outcome(status);
    EXPECT_EQ(outcome.code, hit ? GCAP_RESOURCE_EXHAUSTED : GCAP_OK) << outcome.message;
    EXPECT_EQ(choice.num_buckets, hit ? 0u : 2u);
    EXPECT_EQ(out[0], hit ? 0u : 1u);
    EXPECT_EQ(out[1], hit ? 0u : 8u);
    EXPECT_EQ(LiveBlocks(), before);
  }
  EXPECT_EQ(failed - 1, 3) << "allocations: the sizes, the costs, the ways";
}

}  // namespace
}  // namespace testing
}  // namespace gcap
