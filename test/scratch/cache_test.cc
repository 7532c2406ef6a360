// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A stream's cache alone, with the pool that it is flushed to.

#include "lib/scratch/cache.h"

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
constexpr size_t kAnyWaste = ~static_cast<size_t>(0);
constexpr unsigned kSeed = 20261122;

class Cache : public ::testing::Test {
 protected:
  void SetUp() override {
    stream_.stream = &stream_;
    gcap_scratch_cache_init(&cache_);
  }
  // A block of the stream, just freed.
  gcap_scratch_block_t* Block(size_t bytes) {
    gcap_scratch_block_t* block = &blocks_.emplace_back();
    block->bytes = bytes;
    gcap_scratch_block_set_owner(block, &stream_);
    return block;
  }
  bool Put(gcap_scratch_block_t* block) {
    ++stream_.num_frees;
    return gcap_scratch_cache_put(&cache_, &stream_, block);
  }
  gcap_scratch_block_t* Take(size_t bytes, size_t max_dead_bytes = kAnyWaste) {
    return gcap_scratch_cache_take(&cache_, bytes, max_dead_bytes);
  }
  // A row of neighbours, as in a region.
  std::vector<gcap_scratch_block_t*> Neighbours(const std::vector<size_t>& sizes) {
    std::vector<gcap_scratch_block_t*> row;
    for (const size_t bytes : sizes) {
      gcap_scratch_block_t* block = Block(bytes);
      if (!row.empty()) {
        row.back()->upper = block;
        gcap_scratch_block_set_lower(block, row.back());
      }
      row.push_back(block);
    }
    return row;
  }

  gcap_scratch_cache_t cache_ = {};
  gcap_scratch_owner_t stream_ = {};
  std::deque<gcap_scratch_block_t> blocks_;
};

TEST_F(Cache, GivesTheLastOfASizeBack) {
  gcap_scratch_block_t* first = Block(4096);
  gcap_scratch_block_t* second = Block(4096);
  ASSERT_TRUE(Put(first));
  ASSERT_TRUE(Put(second));
  EXPECT_EQ(gcap_scratch_block_phase(first), GCAP_SCRATCH_CACHED);
  EXPECT_EQ(gcap_scratch_block_stream(first), &stream_);
  EXPECT_EQ(gcap_scratch_cache_bytes(&cache_), 8192u);
  EXPECT_EQ(Take(4096), second);
  EXPECT_EQ(Take(4096), first);
  EXPECT_EQ(Take(4096), nullptr);
  EXPECT_EQ(cache_.num_blocks, 0u);
}

TEST_F(Cache, GivesNoBlockOfWhichMoreIsDeadThanAllowed) {
  ASSERT_EQ(gcap_scratch_pool_bin(71 * kGranule), gcap_scratch_pool_bin(64 * kGranule));
  ASSERT_TRUE(Put(Block(71 * kGranule)));
  EXPECT_EQ(Take(64 * kGranule, 0), nullptr);
  EXPECT_EQ(Take(64 * kGranule, 7 * kGranule - 1), nullptr);
  EXPECT_NE(Take(64 * kGranule, 7 * kGranule), nullptr);
}

TEST_F(Cache, AnEighthOfTheRequestIsTooMuchToLieDead) {
  const gcap_scratch_block_t* block = Block(9 * kGranule);
  EXPECT_FALSE(gcap_scratch_fits_whole(block, 8 * kGranule, kAnyWaste));
  EXPECT_TRUE(gcap_scratch_fits_whole(block, 8 * kGranule + 1, kAnyWaste));
  EXPECT_FALSE(gcap_scratch_fits_whole(block, 8 * kGranule + 1, kGranule - 2));
  EXPECT_TRUE(gcap_scratch_fits_whole(block, 9 * kGranule, 0));
  EXPECT_FALSE(gcap_scratch_fits_whole(block, 9 * kGranule + 1, kAnyWaste)) << "it is too small";
}

TEST_F(Cache, LooksAtTheLastTwoOfABin) {
  gcap_scratch_block_t* exact = Block(64 * kGranule);
  ASSERT_TRUE(Put(exact));
  ASSERT_TRUE(Put(Block(65 * kGranule)));
  EXPECT_EQ(Take(64 * kGranule, 0), exact);
  ASSERT_TRUE(Put(exact));
  ASSERT_TRUE(Put(Block(65 * kGranule)));
  ASSERT_TRUE(Put(Block(65 * kGranule)));
  EXPECT_EQ(Take(64 * kGranule, 0), nullptr);
}

TEST_F(Cache, KeepsUpToOneMebibyte) {
  EXPECT_EQ(gcap_scratch_pool_bin(GCAP_SCRATCH_MAX_CACHED_BYTES) + 1,
            static_cast<unsigned>(GCAP_SCRATCH_NUM_CACHE_BINS));
  gcap_scratch_block_t* largest = Block(GCAP_SCRATCH_MAX_CACHED_BYTES);
  EXPECT_TRUE(Put(largest));
  EXPECT_EQ(Take(GCAP_SCRATCH_MAX_CACHED_BYTES), largest);
  EXPECT_FALSE(Put(Block(2 * GCAP_SCRATCH_MAX_CACHED_BYTES)));
  EXPECT_EQ(Take(2 * GCAP_SCRATCH_MAX_CACHED_BYTES), nullptr);
  EXPECT_EQ(cache_.num_blocks, 0u);
}

TEST_F(Cache, FlushJoinsNeighbours) {
  const std::vector<gcap_scratch_block_t*> row = Neighbours({1024, 512, 4096, 256});
  for (const int i : {2, 0, 3, 1}) ASSERT_TRUE(Put(row[i]));
  gcap_scratch_cache_flush(&cache_, &stream_);
  EXPECT_EQ(cache_.num_blocks, 0u);
  EXPECT_EQ(gcap_scratch_cache_bytes(&cache_), 0u);
  const gcap_scratch_block_t* joined = gcap_scratch_pool_first(&stream_.pool);
  ASSERT_EQ(joined, row[0]);
  EXPECT_EQ(joined->bytes, 1024u + 512 + 4096 + 256);
  EXPECT_EQ(joined->upper, nullptr);
  EXPECT_EQ(gcap_scratch_pool_bytes(&stream_.pool), joined->bytes);
  int num_spares = 0;
  for (const gcap_scratch_block_t* spare = stream_.spares; spare != nullptr; spare = spare->next) ++num_spares;
  EXPECT_EQ(num_spares, 3);
}

// A bin whose blocks only pass through stops to cache, but for one free in sixteen; a hit brings it back.
TEST_F(Cache, ABinWithoutHitsStopsCaching) {
  int num_cached = 0, num_flushed_in_vain = 0;
  while (Put(Block(4096))) {
    gcap_scratch_cache_flush(&cache_, &stream_);
    ++num_flushed_in_vain;
    ASSERT_LT(num_flushed_in_vain, 1000);
  }
  EXPECT_EQ(num_flushed_in_vain, 4) << "its first credit is 8, and each costs 2";
  for (int i = 0; i < 160; ++i) {
    if (!Put(Block(4096))) continue;
    ++num_cached;
    gcap_scratch_cache_flush(&cache_, &stream_);
  }
  EXPECT_EQ(num_cached, 160 / 16);
  EXPECT_TRUE(Put(Block(512))) << "another bin";
  while (!Put(Block(4096))) {
  }
  ASSERT_NE(Take(4096), nullptr);
  EXPECT_TRUE(Put(Block(4096)));
}

// Beside a vector of what is cached: a request gets one of the last two of its bin that fits, or none.
TEST_F(Cache, RandomOperationsGiveWhatAVectorGives) {
  std::mt19937 random(kSeed);
  std::vector<gcap_scratch_block_t*> cached;  // oldest first
  for (int step = 0; step < 20000; ++step) {
    const size_t bytes = (60 + random() % 40) * kGranule;
    if (random() % 2 == 0) {
      gcap_scratch_block_t* block = Block(bytes);
      if (Put(block)) cached.push_back(block);
    } else {
      const size_t max_dead_bytes = random() % 4 * kGranule;
      gcap_scratch_block_t* expected = nullptr;
      int looks = 0;
      for (auto block = cached.rbegin(); block != cached.rend() && looks < 2 && expected == nullptr; ++block) {
        if (gcap_scratch_pool_bin((*block)->bytes) != gcap_scratch_pool_bin(bytes)) continue;
        ++looks;
        const bool fits = (*block)->bytes >= bytes && (*block)->bytes - bytes <= max_dead_bytes &&
                          ((*block)->bytes - bytes) * 8 < bytes;
        if (fits) expected = *block;
      }
      ASSERT_EQ(Take(bytes, max_dead_bytes), expected) << "step " << step;
      if (expected != nullptr) cached.erase(std::find(cached.begin(), cached.end(), expected));
    }
    ASSERT_EQ(cache_.num_blocks, cached.size());
    if (step % 100 == 99) {
      gcap_scratch_cache_flush(&cache_, &stream_);
      cached.clear();
    }
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
