// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The store of blocks alone: regions, cutting and joining, without an arena, a stream or any memory behind the
// addresses. The model is a byte for each granule, which says whose it is: what must lie in which pool is every longest
// run of granules with one owner.

#include "lib/scratch/region.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kGranule = GCAP_SCRATCH_GRANULE_BYTES;
constexpr size_t kLarge = size_t{4} << 20;  // from here on a small piece is cut from the top
constexpr uintptr_t kBase = uintptr_t{0x7f} << 40;
constexpr unsigned kSeed = 20261122;

char* At(uintptr_t address) { return reinterpret_cast<char*>(address); }
uintptr_t Base(const gcap_scratch_block_t* block) {
  return reinterpret_cast<uintptr_t>(gcap_scratch_block_base(block));
}

// Two streams, a reservation of the first one, and a store.
class Region : public ::testing::Test {
 protected:
  void SetUp() override {
    gcap_scratch_store_init(&store_);
    for (gcap_scratch_owner_t* stream : {&a_, &b_}) {
      stream->stream = stream;
      gcap_scratch_slabs_add_stream(&store_.slabs, stream);
    }
    kept_.stream = &a_;
  }
  void TearDown() override {
    while (store_.num_regions > 0) {
      gcap_scratch_region_t* region = store_.regions[0];
      gcap_scratch_unlist_region(&store_, region);
      gcap_scratch_region_destroy(&store_, region);  // of several blocks it only matters that the first is one
    }
    gcap_scratch_store_deinit(&store_);
  }

  // A region, as one untagged block in its pool.
  gcap_scratch_block_t* AddRegion(uintptr_t base, size_t bytes) {
    const Outcome placed(gcap_scratch_make_region_places(&store_, store_.num_regions + 1));
    gcap_scratch_block_t* block = gcap_scratch_block_new(&store_.slabs, nullptr);
    gcap_scratch_region_t* region = nullptr;
    const Outcome created(gcap_scratch_region_create(&store_, At(base), bytes, block, &region));
    EXPECT_TRUE(placed.ok() && created.ok()) << placed.message << created.message;
    gcap_scratch_list_region(&store_, region);
    return gcap_scratch_put(&store_, block);
  }

  // `bytes` of a free block, handed out for `owner`.
  gcap_scratch_block_t* Take(gcap_scratch_block_t* block, size_t bytes, gcap_scratch_owner_t* owner) {
    GCAP_EXPECT_OK(gcap_scratch_detach(&store_, bytes, &block));
    gcap_scratch_block_set_owner(block, owner);
    gcap_scratch_block_set_phase(block, GCAP_SCRATCH_LIVE);
    gcap_scratch_pages_set(&store_.pages, gcap_scratch_block_base(block), block);
    return block;
  }
  // Frees it for an owner; NULL: no stream uses it any more.
  gcap_scratch_block_t* Free(gcap_scratch_block_t* block, const gcap_scratch_owner_t* owner) {
    gcap_scratch_block_set_phase(block, GCAP_SCRATCH_FREE);
    gcap_scratch_block_set_owner(block, owner);
    return gcap_scratch_put(&store_, block);
  }

  using Pieces = std::set<std::pair<uintptr_t, size_t>>;
  static Pieces In(const gcap_scratch_pool_t& pool) {
    Pieces pieces;
    for (const gcap_scratch_block_t* head : pool.bins) {
      for (const gcap_scratch_block_t* block = head; block != nullptr; block = block->next) {
        pieces.emplace(Base(block), block->bytes);
      }
    }
    return pieces;
  }

  gcap_scratch_store_t store_ = {};
  gcap_scratch_owner_t a_ = {}, b_ = {}, kept_ = {};
};

TEST_F(Region, IsOneUntaggedBlock) {
  const gcap_scratch_block_t* block = AddRegion(kBase, 1 << 20);
  EXPECT_EQ(Base(block), kBase);
  EXPECT_EQ(block->bytes, size_t{1} << 20);
  EXPECT_EQ(gcap_scratch_block_owner(block), nullptr);
  EXPECT_EQ(gcap_scratch_block_stream(block), nullptr);
  EXPECT_EQ(gcap_scratch_pool_of(&store_, block), &store_.untagged);
  EXPECT_EQ(In(store_.untagged), (Pieces{{kBase, 1 << 20}}));
}

TEST_F(Region, IsFoundByItsAddresses) {
  for (const int i : {3, 0, 2}) AddRegion(kBase + i * 4096, 2048);
  ASSERT_EQ(store_.num_regions, 3u);
  for (const int i : {0, 2, 3}) {
    const uintptr_t base = kBase + i * 4096;
    const gcap_scratch_region_t* region = gcap_scratch_find_region(&store_, At(base));
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(region->base, At(base));
    EXPECT_EQ(gcap_scratch_find_region(&store_, At(base + 2047)), region);
    EXPECT_EQ(gcap_scratch_find_region(&store_, At(base + 2048)), nullptr);
    EXPECT_EQ(gcap_scratch_find_region(&store_, At(base - 1)), nullptr);
  }
  EXPECT_EQ(gcap_scratch_find_region(&store_, At(kBase + 4096)), nullptr);
}

TEST_F(Region, TagsNameTheOwnerAndItsStream) {
  gcap_scratch_block_t* block = Take(AddRegion(kBase, 4096), 4096, &b_);
  EXPECT_EQ(gcap_scratch_block_owner(block), &b_);
  EXPECT_EQ(gcap_scratch_block_stream(block), &b_);
  EXPECT_FALSE(gcap_scratch_block_is_kept(block));
  gcap_scratch_block_set_owner(block, &kept_);
  EXPECT_EQ(gcap_scratch_block_phase(block), GCAP_SCRATCH_LIVE) << "the phase stays";
  EXPECT_EQ(gcap_scratch_block_owner(block), &kept_);
  EXPECT_EQ(gcap_scratch_block_stream(block), &a_);
  EXPECT_TRUE(gcap_scratch_block_is_kept(block));
  EXPECT_EQ(gcap_scratch_pool_of(&store_, block), &kept_.pool);
}

TEST_F(Region, LiveBlocksAreFoundByTheirStart) {
  gcap_scratch_block_t* block = Take(AddRegion(kBase, 8192), 4096, &a_);
  gcap_scratch_block_t* found = nullptr;
  GCAP_EXPECT_OK(gcap_scratch_find_live(&store_, At(Base(block)), 0, &found));
  EXPECT_EQ(found, block);
  GCAP_EXPECT_OK(gcap_scratch_find_live(&store_, At(Base(block) + kGranule), kGranule, &found));
  EXPECT_EQ(found, block) << "behind a red zone";
  GCAP_EXPECT_FAILS(gcap_scratch_find_live(&store_, At(Base(block) + 1), 0, &found), GCAP_INVALID_ARGUMENT, "inside");
  EXPECT_EQ(found, nullptr);
  GCAP_EXPECT_FAILS(gcap_scratch_find_live(&store_, At(kBase + 8192), 0, &found), GCAP_INVALID_ARGUMENT,
                    "not allocated from this scratch");
  const uintptr_t base = Base(block);
  Free(block, &a_);
  GCAP_EXPECT_FAILS(gcap_scratch_find_live(&store_, At(base), 0, &found), GCAP_INVALID_ARGUMENT, "freed already");
}

// Neighbours are joined just when their tags are the same; the later use counts for both.
TEST_F(Region, JoinsNeighboursOfOneTag) {
  gcap_scratch_block_t* rest = AddRegion(kBase, 3072);
  gcap_scratch_block_t* first = Take(rest, 1024, &a_);
  gcap_scratch_block_t* second = Take(first->upper, 1024, &a_);
  gcap_scratch_block_t* third = Take(second->upper, 1024, &a_);
  first->used_before = 7;
  second->used_before = 5;
  third->used_before = 9;
  Free(first, &a_);
  Free(third, &b_);
  EXPECT_EQ(In(a_.pool), (Pieces{{kBase, 1024}}));
  gcap_scratch_block_t* joined = Free(second, &a_);
  EXPECT_EQ(joined, first);
  EXPECT_EQ(joined->used_before, 7u);
  EXPECT_EQ(In(a_.pool), (Pieces{{kBase, 2048}}));
  EXPECT_EQ(In(b_.pool), (Pieces{{kBase + 2048, 1024}}));
  EXPECT_EQ(joined->upper, third);
  EXPECT_EQ(gcap_scratch_block_lower(third), joined);
}

TEST_F(Region, TheLaterUseCountsAlsoWhenItIsTheUpperOnes) {
  gcap_scratch_block_t* lower = Take(AddRegion(kBase, 2048), 1024, &a_);
  gcap_scratch_block_t* upper = Take(lower->upper, 1024, &a_);
  lower->used_before = 5;
  upper->used_before = 7;
  Free(upper, &a_);
  EXPECT_EQ(Free(lower, &a_)->used_before, 7u);
}

TEST_F(Region, SmallPiecesComeFromTheTopOfLargeBlocks) {
  gcap_scratch_block_t* block = AddRegion(kBase, kLarge);
  EXPECT_EQ(Base(Take(block, kLarge / 8, &a_)), kBase + kLarge - kLarge / 8);
  EXPECT_EQ(In(store_.untagged), (Pieces{{kBase, kLarge - kLarge / 8}}));
  gcap_scratch_block_t* other = AddRegion(2 * kBase, kLarge);
  EXPECT_EQ(Base(Take(other, kLarge / 8 + kGranule, &a_)), 2 * kBase) << "it is not small beside it";
  gcap_scratch_block_t* little = AddRegion(3 * kBase, kLarge - kGranule);
  EXPECT_EQ(Base(Take(little, kGranule, &a_)), 3 * kBase) << "the block is not large";
  gcap_scratch_block_t* bottom = AddRegion(kBase + kLarge, kLarge);
  GCAP_ASSERT_OK(gcap_scratch_detach_bottom(&store_, bottom, kGranule));
  EXPECT_EQ(Base(bottom), kBase + kLarge);
  EXPECT_EQ(bottom->bytes, kGranule);
}

// With a stream's lock alone no block struct can be got.
TEST_F(Region, AStreamCutsItsOwnBlocksWithItsOwnStructs) {
  gcap_scratch_block_t* block = Free(Take(AddRegion(kBase, 4096), 4096, &a_), &a_);
  ASSERT_EQ(a_.spares, nullptr);
  EXPECT_EQ(gcap_scratch_detach_own(&a_, block, 1024), nullptr);
  EXPECT_EQ(In(a_.pool), (Pieces{{kBase, 4096}})) << "nothing happened";
  gcap_scratch_block_recycle(nullptr, &a_, gcap_scratch_block_new(&store_.slabs, nullptr));
  gcap_scratch_block_t* piece = gcap_scratch_detach_own(&a_, block, 1024);
  ASSERT_EQ(piece, block);
  EXPECT_EQ(a_.spares, nullptr);
  EXPECT_EQ(In(a_.pool), (Pieces{{kBase + 1024, 3072}}));
  gcap_scratch_put_own(&a_, piece);
  EXPECT_EQ(In(a_.pool), (Pieces{{kBase, 4096}}));
  EXPECT_NE(a_.spares, nullptr) << "joining gives one back";
  EXPECT_EQ(gcap_scratch_detach_own(&a_, piece, 4096), piece);
  EXPECT_EQ(In(a_.pool), Pieces{});
}

TEST_F(Region, SparesOfAStreamThatGoesAreForAll) {
  gcap_scratch_block_t* spare = gcap_scratch_block_new(&store_.slabs, &a_);
  gcap_scratch_block_recycle(&store_.slabs, &a_, spare);
  gcap_scratch_slabs_remove_stream(&store_.slabs, &a_);
  EXPECT_EQ(a_.spares, nullptr);
  size_t num_spares = 0;
  for (const gcap_scratch_block_t* block = store_.slabs.spares; block != nullptr; block = block->next) ++num_spares;
  EXPECT_EQ(num_spares, 62u) << "the slab that was made for it";
  EXPECT_EQ(store_.slabs.num_slabs, 1u);
}

// --- Random operations ----------------------------------------------------------------------------------------------

constexpr size_t kGranules = 96;  // of each of
constexpr int kRegions = 3;
constexpr int kLive = -1;

class RandomRegion : public Region {
 protected:
  void SetUp() override {
    Region::SetUp();
    for (int i = 0; i < kRegions; ++i) {
      AddRegion(BaseOf(i), kGranules * kGranule);
      granules_[BaseOf(i)].assign(kGranules, 0);
    }
  }
  static uintptr_t BaseOf(int region) { return kBase + region * kGranules * kGranule; }  // without a gap between them

  void Paint(uintptr_t base, size_t bytes, int owner) {
    const uintptr_t region = kBase + (base - kBase) / (kGranules * kGranule) * (kGranules * kGranule);
    for (size_t i = 0; i < bytes / kGranule; ++i) granules_[region][(base - region) / kGranule + i] = owner;
  }

  // The longest runs of granules of one owner, region by region.
  Pieces Expected(int owner) const {
    Pieces pieces;
    for (const auto& region : granules_) {
      for (size_t i = 0; i < kGranules;) {
        size_t end = i;
        while (end < kGranules && region.second[end] == region.second[i]) ++end;
        if (region.second[i] == owner) pieces.emplace(region.first + i * kGranule, (end - i) * kGranule);
        i = end;
      }
    }
    return pieces;
  }

  // That the blocks of a region cover it, and know each other.
  void ExpectCovered() const {
    for (size_t i = 0; i < store_.num_regions; ++i) {
      uintptr_t at = reinterpret_cast<uintptr_t>(store_.regions[i]->base);
      const gcap_scratch_block_t* lower = nullptr;
      for (const gcap_scratch_block_t* b = store_.regions[i]->first; b != nullptr; lower = b, b = b->upper) {
        ASSERT_EQ(Base(b), at);
        ASSERT_EQ(gcap_scratch_block_lower(b), lower);
        at += b->bytes;
      }
      ASSERT_EQ(at, reinterpret_cast<uintptr_t>(store_.regions[i]->base) + kGranules * kGranule);
    }
  }

  std::map<uintptr_t, std::vector<int>> granules_;  // by region: the index of the owner, or kLive
};

TEST_F(RandomRegion, PoolsHoldTheLongestRuns) {
  std::mt19937 random(kSeed);
  gcap_scratch_owner_t* const owners[] = {nullptr, &a_, &b_, &kept_};
  const gcap_scratch_pool_t* const pools[] = {&store_.untagged, &a_.pool, &b_.pool, &kept_.pool};
  std::vector<gcap_scratch_block_t*> live;
  for (int step = 0; step < 20000; ++step) {
    const int owner = static_cast<int>(random() % 4);
    const size_t bytes = (1 + random() % 12) * kGranule;
    gcap_scratch_block_t* block = gcap_scratch_pool_find(pools[owner], bytes, nullptr, nullptr);
    if (block != nullptr && random() % 2 == 0) {
      live.push_back(Take(block, bytes, owners[1 + random() % 3]));
      Paint(Base(live.back()), bytes, kLive);
    } else if (!live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      Paint(Base(live.back()), live.back()->bytes, owner);
      Free(live.back(), owners[owner]);
      live.pop_back();
    }
    for (int i = 0; i < 4; ++i) ASSERT_EQ(In(*pools[i]), Expected(i)) << "step " << step << ", pool " << i;
    ExpectCovered();
    if (HasFatalFailure()) return;
    for (gcap_scratch_block_t* known : live) {
      ASSERT_EQ(gcap_scratch_pages_find(&store_.pages, gcap_scratch_block_base(known)), known);
    }
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
