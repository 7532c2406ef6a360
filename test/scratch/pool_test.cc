// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The pool alone, beside a vector of what was put into it. What a search must find is what looking at all of them
// finds.

#include "lib/scratch/pool.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kGranule = GCAP_SCRATCH_GRANULE_BYTES;
constexpr unsigned kSeed = 20261122;

// A pool, and its blocks in the order in which they were put there.
class Pool : public ::testing::Test {
 protected:
  gcap_scratch_block_t* Insert(size_t granules) {
    gcap_scratch_block_t* block = &blocks_.emplace_back();
    block->bytes = granules * kGranule;
    Reinsert(block);
    return block;
  }
  void Reinsert(gcap_scratch_block_t* block) {
    gcap_scratch_pool_insert(&pool_, block);
    inside_.push_back(block);
  }
  void Remove(gcap_scratch_block_t* block) {
    gcap_scratch_pool_remove(&pool_, block);
    inside_.erase(std::find(inside_.begin(), inside_.end(), block));
  }

  // The last one put into the lowest bin that has one of at least `bytes`.
  gcap_scratch_block_t* Expected(size_t bytes, size_t multiple = 1) const {
    gcap_scratch_block_t* best = nullptr;
    for (gcap_scratch_block_t* block : inside_) {
      if (block->bytes < bytes || block->bytes / kGranule % multiple != 0) continue;
      if (best == nullptr || gcap_scratch_pool_bin(block->bytes) <= gcap_scratch_pool_bin(best->bytes)) best = block;
    }
    return best;
  }

  gcap_scratch_pool_t pool_ = {};
  std::deque<gcap_scratch_block_t> blocks_;
  std::vector<gcap_scratch_block_t*> inside_;
};

TEST_F(Pool, EmptyFindsNothing) {
  EXPECT_EQ(gcap_scratch_pool_first(&pool_), nullptr);
  EXPECT_EQ(gcap_scratch_pool_find(&pool_, kGranule, nullptr, nullptr), nullptr);
  EXPECT_EQ(gcap_scratch_pool_find_quickly(&pool_, kGranule), nullptr);
  EXPECT_EQ(gcap_scratch_pool_next_bin(&pool_, 0), static_cast<unsigned>(GCAP_SCRATCH_NUM_BINS));
  EXPECT_EQ(gcap_scratch_pool_bytes(&pool_), 0u);
}

// Sizes of one bin differ by less than an eighth; the small ones have a bin each; and no size is without a bin.
TEST(PoolBins, HoldSizesThatAreNearlyTheSame) {
  size_t first_granules = 1;
  for (size_t granules = 1; granules < 100000; ++granules) {
    const unsigned bin = gcap_scratch_pool_bin(granules * kGranule);
    if (bin != gcap_scratch_pool_bin(first_granules * kGranule)) {
      EXPECT_EQ(bin, gcap_scratch_pool_bin(first_granules * kGranule) + 1) << granules;
      first_granules = granules;
    }
    EXPECT_LT((granules - first_granules) * 8, first_granules) << granules;
    if (granules < 16) {
      EXPECT_EQ(first_granules, granules);
    }
  }
  const size_t largest = ~static_cast<size_t>(0) / kGranule * kGranule;
  EXPECT_LT(gcap_scratch_pool_bin(largest), static_cast<unsigned>(GCAP_SCRATCH_NUM_BINS));
}

TEST_F(Pool, GivesTheLastOfASizeFirst) {
  Insert(3);
  gcap_scratch_block_t* second = Insert(3);
  gcap_scratch_block_t* third = Insert(3);
  EXPECT_EQ(gcap_scratch_pool_find(&pool_, 3 * kGranule, nullptr, nullptr), third);
  EXPECT_EQ(gcap_scratch_pool_find_quickly(&pool_, 3 * kGranule), third);
  Remove(third);
  EXPECT_EQ(gcap_scratch_pool_find(&pool_, 3 * kGranule, nullptr, nullptr), second);
}

// The bin of 64 granules also has blocks of 71: the head may be too small where another one is not.
TEST_F(Pool, LooksThroughItsOwnBin) {
  gcap_scratch_block_t* large = Insert(71);
  Insert(64);
  ASSERT_EQ(gcap_scratch_pool_bin(71 * kGranule), gcap_scratch_pool_bin(64 * kGranule));
  EXPECT_EQ(gcap_scratch_pool_find(&pool_, 70 * kGranule, nullptr, nullptr), large);
  EXPECT_EQ(gcap_scratch_pool_find_quickly(&pool_, 70 * kGranule), large);
  gcap_scratch_block_t* larger = Insert(72);
  EXPECT_EQ(gcap_scratch_pool_find(&pool_, 70 * kGranule, nullptr, nullptr), large);
  EXPECT_EQ(gcap_scratch_pool_find_quickly(&pool_, 70 * kGranule), larger) << "its bin needs no look at sizes";
}

bool IsMultiple(const void* context, const gcap_scratch_block_t* block) {
  return block->bytes / kGranule % *static_cast<const size_t*>(context) == 0;
}

TEST_F(Pool, RandomOperationsFindWhatLookingAtAllFinds) {
  std::mt19937 random(kSeed);
  for (int step = 0; step < 20000; ++step) {
    const size_t granules = 1 + random() % (random() % 2 == 0 ? 20 : 2000);
    const size_t bytes = granules * kGranule;
    const bool grows = inside_.size() < 100 && random() % 2 == 0;
    if (grows || inside_.empty()) {
      Insert(granules);
    } else {
      Remove(inside_[random() % inside_.size()]);
    }
    ASSERT_EQ(gcap_scratch_pool_find(&pool_, bytes, nullptr, nullptr), Expected(bytes)) << "step " << step;
    const size_t multiple = 1 + random() % 5;
    ASSERT_EQ(gcap_scratch_pool_find(&pool_, bytes, IsMultiple, &multiple), Expected(bytes, multiple));
    ASSERT_EQ(gcap_scratch_pool_first(&pool_), Expected(0));
    const gcap_scratch_block_t* quick = gcap_scratch_pool_find_quickly(&pool_, bytes);
    ASSERT_EQ(quick != nullptr, Expected(bytes) != nullptr);
    if (quick != nullptr) {
      ASSERT_GE(quick->bytes, bytes);
    }
    size_t sum = 0;
    for (const gcap_scratch_block_t* block : inside_) sum += block->bytes;
    ASSERT_EQ(gcap_scratch_pool_bytes(&pool_), sum);
  }
}

TEST_F(Pool, TakesABlockBackThatItHadBefore) {
  gcap_scratch_block_t* block = Insert(5);
  Insert(5);
  Remove(block);
  block->bytes = 9 * kGranule;
  Reinsert(block);
  EXPECT_EQ(gcap_scratch_pool_find(&pool_, 6 * kGranule, nullptr, nullptr), block);
  Remove(block);
  EXPECT_EQ(gcap_scratch_pool_find(&pool_, 6 * kGranule, nullptr, nullptr), nullptr);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
