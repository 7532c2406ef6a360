// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Percentiles by nearest rank, against values counted by hand and against the definition in integers.
#include "examples/minimal_ep/digits/stats.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace {

TEST(Stats, NoSamplesGiveZeros) {
  const stats_summary_t summary = stats_summarize(nullptr, 0);
  EXPECT_EQ(summary.median_ns, 0u);
  EXPECT_EQ(summary.p99_ns, 0u);
}

TEST(Stats, OneSampleIsBoth) {
  uint64_t samples[] = {42};
  const stats_summary_t summary = stats_summarize(samples, 1);
  EXPECT_EQ(summary.median_ns, 42u);
  EXPECT_EQ(summary.p99_ns, 42u);
}

TEST(Stats, MedianOfAnEvenNumberIsTheLowerMiddleOne) {
  uint64_t samples[] = {40, 10, 30, 20};
  EXPECT_EQ(stats_summarize(samples, 4).median_ns, 20u);
}

TEST(Stats, SamplesNeedNotBeSortedAndMayBeLarge) {
  uint64_t samples[] = {UINT64_MAX, 0, 7};  // a difference in int would order these wrongly
  const stats_summary_t summary = stats_summarize(samples, 3);
  EXPECT_EQ(summary.median_ns, 7u);
  EXPECT_EQ(summary.p99_ns, UINT64_MAX);
}

// For the samples 1..n, percentile p is the least k with k * 100 >= p * n.
TEST(Stats, EveryCountUpToAThousandFollowsTheDefinition) {
  for (uint64_t n = 1; n <= 1000; ++n) {
    std::vector<uint64_t> samples;
    for (uint64_t i = 0; i < n; ++i) samples.push_back(n - i);
    uint64_t median = 1;
    while (median * 100 < 50 * n) ++median;
    uint64_t p99 = 1;
    while (p99 * 100 < 99 * n) ++p99;
    const stats_summary_t summary = stats_summarize(samples.data(), samples.size());
    ASSERT_EQ(summary.median_ns, median) << "n = " << n;
    ASSERT_EQ(summary.p99_ns, p99) << "n = " << n;
  }
}

}  // namespace
