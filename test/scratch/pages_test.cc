// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The map from addresses to blocks alone, beside a std::map. Nothing is ever read or written at the addresses.

#include "lib/scratch/pages.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kGranule = GCAP_SCRATCH_GRANULE_BYTES;
constexpr uintptr_t kPage = uintptr_t{1} << GCAP_SCRATCH_PAGE_BYTES_LOG2;
constexpr uintptr_t kLeaf = kPage << GCAP_SCRATCH_LEAF_PAGES_LOG2;
constexpr uintptr_t kEnd = uintptr_t{1} << 49;
constexpr uintptr_t kBase = uintptr_t{0x7f} << 40;
constexpr unsigned kSeed = 20261122;

char* At(uintptr_t address) { return reinterpret_cast<char*>(address); }

class Pages : public ::testing::Test {
 protected:
  void SetUp() override { gcap_scratch_pages_init(&pages_); }
  // The pages that regions have are the pages' own; what is left is freed only where a region is gone.
  void TearDown() override {
    for (const auto& region : regions_) gcap_scratch_pages_remove(&pages_, At(region.first), region.second);
    gcap_scratch_pages_deinit(&pages_);
  }
  void Add(uintptr_t base, size_t bytes) {
    GCAP_ASSERT_OK(gcap_scratch_pages_add(&pages_, At(base), bytes));
    regions_[base] = bytes;
  }
  void Remove(uintptr_t base) {
    gcap_scratch_pages_remove(&pages_, At(base), regions_.at(base));
    regions_.erase(base);
  }
  gcap_scratch_block_t* Set(uintptr_t address) {
    gcap_scratch_block_t* block = &blocks_.emplace_back();
    gcap_scratch_pages_set(&pages_, At(address), block);
    return block;
  }
  gcap_scratch_block_t* Find(uintptr_t address) { return gcap_scratch_pages_find(&pages_, At(address)); }

  gcap_scratch_pages_t pages_ = {};
  std::map<uintptr_t, size_t> regions_;
  std::deque<gcap_scratch_block_t> blocks_;
};

TEST_F(Pages, KnowNothingOfOtherAddresses) {
  EXPECT_EQ(Find(0), nullptr);
  EXPECT_EQ(Find(kBase), nullptr);
  EXPECT_EQ(Find(kEnd), nullptr);
  EXPECT_EQ(Find(~uintptr_t{0}), nullptr);
  Add(kBase, kGranule);
  EXPECT_EQ(Find(kBase), nullptr) << "no block was set there";
  EXPECT_EQ(Find(kBase + kPage), nullptr);
  EXPECT_EQ(Find(kBase + kLeaf), nullptr);
}

TEST_F(Pages, TellGranulesApart) {
  Add(kBase, 3 * kGranule);
  gcap_scratch_block_t* first = Set(kBase);
  gcap_scratch_block_t* third = Set(kBase + 2 * kGranule);
  EXPECT_EQ(Find(kBase), first);
  EXPECT_EQ(Find(kBase + kGranule - 1), first) << "the same granule";
  EXPECT_EQ(Find(kBase + kGranule), nullptr);
  EXPECT_EQ(Find(kBase + 2 * kGranule), third);
}

// A region that crosses from a page to the next, and from a leaf to the next.
TEST_F(Pages, CrossTheirBounds) {
  for (const uintptr_t bound : {kBase + kPage, kBase + kLeaf}) {
    Add(bound - kGranule, 2 * kGranule);
    gcap_scratch_block_t* below = Set(bound - kGranule);
    gcap_scratch_block_t* above = Set(bound);
    EXPECT_EQ(Find(bound - kGranule), below);
    EXPECT_EQ(Find(bound), above);
  }
}

TEST_F(Pages, LastAsLongAsOneRegionNeedsThem) {
  Add(kBase, kGranule);
  Add(kBase + kGranule, kGranule);
  gcap_scratch_block_t* second = Set(kBase + kGranule);
  Remove(kBase);
  EXPECT_EQ(Find(kBase + kGranule), second) << "it shares the page";
  Remove(kBase + kGranule);
  EXPECT_EQ(Find(kBase + kGranule), nullptr);
  EXPECT_EQ(gcap_scratch_pages_place(&pages_, At(kBase)), nullptr);
}

TEST_F(Pages, ReachTheLastAddressAndNoFurther) {
  Add(kEnd - kGranule, kGranule);
  gcap_scratch_block_t* block = Set(kEnd - kGranule);
  EXPECT_EQ(Find(kEnd - kGranule), block);
  GCAP_EXPECT_FAILS(gcap_scratch_pages_add(&pages_, At(kEnd - kGranule), 2 * kGranule), GCAP_LIBRARY_ERROR,
                    "expected addresses below 2^49");
  GCAP_EXPECT_FAILS(gcap_scratch_pages_add(&pages_, At(~uintptr_t{0} - kGranule + 1), 2 * kGranule), GCAP_LIBRARY_ERROR,
                    "512 bytes");
  EXPECT_EQ(Find(kEnd - kGranule), block);
}

// Regions come and go, at random places of a few pages; every block that was set in one that is there is found.
TEST_F(Pages, RandomOperationsFindWhatAMapFinds) {
  std::mt19937 random(kSeed);
  constexpr uintptr_t kSlot = kPage / 2 + 3 * kGranule;  // so that regions share pages, and cross their bounds
  std::map<uintptr_t, gcap_scratch_block_t*> expected;
  for (int step = 0; step < 2000; ++step) {
    const uintptr_t base = kBase + random() % 12 * kSlot;
    const auto region = regions_.find(base);
    if (region == regions_.end()) {
      Add(base, (1 + random() % (kSlot / kGranule)) * kGranule);
    } else if (random() % 3 == 0) {
      expected.erase(expected.lower_bound(base), expected.lower_bound(base + region->second));
      Remove(base);
    } else {
      const uintptr_t address = base + random() % (region->second / kGranule) * kGranule;
      expected[address] = Set(address);
    }
    for (const auto& entry : expected) ASSERT_EQ(Find(entry.first), entry.second) << "step " << step;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
