// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The choice against all choices: drawn histograms, costs, required sizes and limits, and for each of them every set of
// sizes, whose padding is counted run by run. Counts and costs are whole numbers, so both ways are exact. GCAP_SIM_SEED
// is the first seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

#include "gcap/buckets.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

constexpr int kRounds = 1500;
constexpr size_t kMaxSize = 11;  // so at most 2^10 sets with the largest

// A set of sizes: bit `size` is set.
using Set = unsigned;

// Costs by size, which never fall: flat parts, slopes and steps.
using Costs = std::vector<double>;

struct Problem {
  std::vector<gcap_size_count_t> sizes;
  std::vector<size_t> required;
  size_t largest = 0, max_buckets = 1;
  Costs costs;
};

struct Answer {
  bool exists = false;
  uint64_t padding = 0;
  size_t num_buckets = 0;
};

Problem Draw(std::mt19937_64* random) {
  const auto draw = [&](size_t below) { return static_cast<size_t>((*random)() % below); };
  Problem p;
  const size_t lines = 1 + draw(14);
  for (size_t i = 0; i < lines; ++i) p.sizes.push_back({1 + draw(kMaxSize), draw(4) == 0 ? 0 : draw(50)});
  for (size_t i = draw(3); i > 0; --i) p.required.push_back(1 + draw(kMaxSize));
  if (draw(3) == 0) p.largest = 1 + draw(kMaxSize);
  p.max_buckets = 1 + draw(7);
  p.costs.push_back(0);
  for (size_t size = 1; size <= kMaxSize; ++size) {
    const size_t steps[] = {0, 1, 1 + draw(5), 100};
    p.costs.push_back(p.costs.back() + static_cast<double>(steps[draw(4)]));
  }
  return p;
}

// The padding of all runs up to the largest bucket, by looking for each line's bucket.
uint64_t PaddingOf(const Problem& p, Set buckets) {
  uint64_t padding = 0;
  for (const gcap_size_count_t& line : p.sizes) {
    const Set no_smaller = buckets >> line.size;
    if (line.count == 0 || no_smaller == 0) continue;
    size_t bucket = line.size;
    while ((buckets >> bucket & 1) == 0) ++bucket;
    padding += line.count * static_cast<uint64_t>(p.costs[bucket] - p.costs[line.size]);
  }
  return padding;
}

size_t LargestOf(const Problem& p) {
  if (p.largest > 0) return p.largest;
  size_t largest = 0;
  for (const gcap_size_count_t& line : p.sizes) {
    if (line.count > 0) largest = std::max(largest, line.size);
  }
  for (const size_t size : p.required) largest = std::max(largest, size);
  return largest;
}

Answer BestOfAll(const Problem& p) {
  const size_t largest = LargestOf(p);
  Set fixed = Set{1} << largest;
  for (const size_t size : p.required) fixed |= Set{1} << size;
  Answer best;
  for (Set set = 2; largest > 0 && set < Set{2} << largest; set += 2) {
    const size_t num_buckets = static_cast<size_t>(__builtin_popcount(set));
    if ((set & fixed) != fixed || num_buckets > p.max_buckets) continue;
    const uint64_t padding = PaddingOf(p, set);
    if (best.exists && std::make_pair(padding, num_buckets) >= std::make_pair(best.padding, best.num_buckets)) continue;
    best = {true, padding, num_buckets};
  }
  return best;
}

double CostOf(void* user, size_t size) { return (*static_cast<const Costs*>(user))[size]; }

void ExpectTheBest(const Problem& p, const Answer& best) {
  gcap_buckets_options_t options;
  gcap_buckets_options_init(&options);
  options.cost = CostOf;
  options.user = const_cast<Costs*>(&p.costs);
  options.largest = p.largest;
  options.required = p.required.data();
  options.num_required = p.required.size();
  std::vector<size_t> out(p.max_buckets);
  gcap_buckets_choice_t choice;
  gcap_buckets_choice_init(&choice);
  const Outcome outcome(
      gcap_buckets_choose(p.sizes.data(), p.sizes.size(), &options, p.max_buckets, out.data(), &choice));
  ASSERT_EQ(outcome.ok(), best.exists) << outcome.message;
  if (!best.exists) return;
  Set buckets = 0;
  for (size_t i = 0; i < choice.num_buckets; ++i) {
    if (i > 0) {
      EXPECT_LT(out[i - 1], out[i]);
    }
    buckets |= Set{1} << out[i];
  }
  EXPECT_EQ(choice.num_buckets, best.num_buckets);
  EXPECT_EQ(PaddingOf(p, buckets), best.padding);
  EXPECT_EQ(choice.padding_cost, static_cast<double>(best.padding));
  EXPECT_NE(buckets >> LargestOf(p) & 1, 0u);
  for (const size_t size : p.required) EXPECT_NE(buckets >> size & 1, 0u) << size;
}

TEST(BucketsRandom, AreTheBestOfAllSets) {
  const char* given = std::getenv("GCAP_SIM_SEED");
  const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  int refused = 0;
  for (uint64_t seed = first; seed < first + kRounds; ++seed) {
    std::mt19937_64 random(seed);
    const Problem p = Draw(&random);
    const Answer best = BestOfAll(p);
    refused += !best.exists;
    ExpectTheBest(p, best);
    ASSERT_FALSE(HasFailure()) << "to run it again: GCAP_SIM_SEED=" << seed;
  }
  EXPECT_LT(refused, kRounds / 2) << "most that is drawn has no answer";
}

}  // namespace
}  // namespace testing
}  // namespace gcap
