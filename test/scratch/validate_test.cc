// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap_scratch_validate finds each damage that it looks for. Each case breaks one field of a busy arena, through the
// arena's own headers, expects the validation to name the damage, and puts the field back.

#include <cstdint>
#include <string>
#include <utility>

#include "lib/scratch/arena.h"
#include "lib/scratch/debug.h"
#include "lib/scratch/inner.h"
#include "lib/scratch/region.h"
#include "lib/scratch/reservation.h"
#include "lib/scratch/streams.h"
#include "test/scratch/scratch_test_support.h"

namespace gcap {
namespace testing {
namespace {

// Stream a has a live block and a cached one, b an open run with a block and a large free block, c a closed reservation
// with a live block and a free one. One region is reserved.
class Validation : public ScratchTest {
 protected:
  void SetUp() override {
    ScratchTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    // Large enough for the pool of its stream at once.
    void* large = Alloc(2 << 20, b_);
    GCAP_ASSERT_OK(gcap_scratch_begin_run(scratch_, b_));
    live_ = BlockOf(Alloc(3 * GCAP_SCRATCH_GRANULE_BYTES + 10, a_));
    of_run_ = BlockOf(Alloc(GCAP_SCRATCH_GRANULE_BYTES, b_));
    kept_reservation_ = Open(c_);
    kept_ = BlockOf(Alloc(GCAP_SCRATCH_GRANULE_BYTES, c_));
    void* given_back = Alloc(GCAP_SCRATCH_GRANULE_BYTES, c_);
    Free(given_back);
    Close(kept_reservation_);
    void* cached = Alloc(2 * GCAP_SCRATCH_GRANULE_BYTES, a_);
    cached_ = BlockOf(cached);
    Free(cached);
    free_ = BlockOf(large);
    Free(large);
    GCAP_ASSERT_OK(
        gcap_allocator_reserve(gcap_scratch_allocator(scratch_), 4 * GCAP_SCRATCH_GRANULE_BYTES, &reserved_));
    Validate();
    ASSERT_EQ(gcap_scratch_block_phase(cached_), GCAP_SCRATCH_CACHED);
    ASSERT_EQ(gcap_scratch_block_phase(free_), GCAP_SCRATCH_FREE);
    ASSERT_GE(scratch_->store.num_regions, 2u);
    a_state_ = gcap_scratch_find_stream(scratch_, a_);
    b_state_ = gcap_scratch_find_stream(scratch_, b_);
    c_state_ = gcap_scratch_find_stream(scratch_, c_);
  }
  void TearDown() override {
    if (kept_reservation_ != nullptr) {
      GCAP_EXPECT_OK(gcap_allocator_free(gcap_scratch_allocator(scratch_), reserved_));
      for (gcap_scratch_block_t* block : {live_, of_run_, kept_}) Free(gcap_scratch_block_base(block));
      GCAP_EXPECT_OK(gcap_scratch_end_run(scratch_, b_));
      Release(kept_reservation_);
    }
    ScratchTest::TearDown();
  }

  gcap_scratch_block_t* BlockOf(void* ptr) {
    gcap_scratch_block_t* block = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_find_live(&scratch_->store, ptr, /*zone_bytes=*/0, &block));
    return block;
  }
  void ExpectDamage(const std::string& what) {
    GCAP_EXPECT_FAILS(gcap_scratch_validate(scratch_), GCAP_INTERNAL, what);
  }
  // Whether a validation of the field with `value` says so.
  template <typename Field, typename Value>
  void ExpectDamage(Field* field, Value value, const std::string& what) {
    const auto before = static_cast<Value>(*field);
    *field = value;
    ExpectDamage(what);
    *field = before;
    Validate();
  }
  // The same with one more, and with one less.
  template <typename Field>
  void ExpectCounted(Field* field, const std::string& what) {
    ExpectDamage(field, static_cast<Field>(*field + 1), what);
    ExpectDamage(field, static_cast<Field>(*field - 1), what);
  }
  void ExpectTagDamage(gcap_scratch_block_t* block, uintptr_t tag, const std::string& what) {
    const uintptr_t before = gcap_scratch_block_tag(block);
    gcap_scratch_block_set_tag(block, tag);
    ExpectDamage(what);
    gcap_scratch_block_set_tag(block, before);
    Validate();
  }
  void ExpectOwnerDamage(gcap_scratch_block_t* block, const gcap_scratch_owner_t* owner, const std::string& what) {
    const uintptr_t before = gcap_scratch_block_tag(block);
    gcap_scratch_block_set_owner(block, owner);
    const uintptr_t changed = gcap_scratch_block_tag(block);
    gcap_scratch_block_set_tag(block, before);
    ExpectTagDamage(block, changed, what);
  }
  gcap_scratch_region_t* RegionOf(const gcap_scratch_block_t* block) {
    return gcap_scratch_find_region(&scratch_->store, gcap_scratch_block_base(block));
  }

  gcap_scratch_block_t* live_ = nullptr;
  gcap_scratch_block_t* of_run_ = nullptr;
  gcap_scratch_block_t* kept_ = nullptr;
  gcap_scratch_block_t* cached_ = nullptr;
  gcap_scratch_block_t* free_ = nullptr;
  gcap_scratch_reservation_t* kept_reservation_ = nullptr;
  void* reserved_ = nullptr;
  gcap_scratch_stream_state_t* a_state_ = nullptr;
  gcap_scratch_stream_state_t* b_state_ = nullptr;
  gcap_scratch_stream_state_t* c_state_ = nullptr;
};

TEST_F(Validation, FindsABlockThatStartsElsewhere) {
  char* base = gcap_scratch_block_base(live_);
  gcap_scratch_block_set_base(live_, base + GCAP_SCRATCH_GRANULE_BYTES);
  ExpectDamage("should start at");
  gcap_scratch_block_set_base(live_, base);
}

TEST_F(Validation, FindsABlockOfAWrongSize) {
  ExpectDamage(&live_->bytes, size_t{0}, "has 0 bytes");
  ExpectDamage(&live_->bytes, size_t{1000}, "has 1000 bytes");
}

TEST_F(Validation, FindsNeighborsThatDisagree) {
  ASSERT_NE(live_->upper, nullptr);
  gcap_scratch_block_set_lower(live_->upper, nullptr);
  ExpectDamage("disagree");
  gcap_scratch_block_set_lower(live_->upper, live_);
}

TEST_F(Validation, FindsALiveBlockOfNoRequest) {
  ExpectDamage(&live_->requested_bytes, size_t{0}, "has 0 requested bytes");
  ExpectDamage(&live_->requested_bytes, live_->bytes + 1, "has 1025 requested bytes");
  ExpectOwnerDamage(live_, nullptr, "or no stream");
}

TEST_F(Validation, FindsACachedBlockOfNobodyOrOfAGraph) {
  ExpectOwnerDamage(cached_, nullptr, "is of no stream, or of a graph");
  ExpectOwnerDamage(cached_, &kept_reservation_->owner, "is of no stream, or of a graph");
}

TEST_F(Validation, FindsFreeNeighborsThatAreNotJoined) {
  gcap_scratch_block_t* lower = RegionOf(live_)->first;
  while (lower->upper != nullptr && gcap_scratch_block_phase(lower->upper) != GCAP_SCRATCH_FREE) lower = lower->upper;
  ASSERT_NE(lower->upper, nullptr);
  ExpectTagDamage(lower, gcap_scratch_block_tag(lower->upper), "carry the same tag");
}

TEST_F(Validation, FindsARegionWithoutALowestBlock) {
  gcap_scratch_region_t* region = RegionOf(live_);
  gcap_scratch_block_t* first = region->first;
  ExpectDamage(&region->first, static_cast<gcap_scratch_block_t*>(nullptr), "has no lowest block");
  gcap_scratch_block_set_lower(first, first);
  ExpectDamage("has no lowest block");
  gcap_scratch_block_set_lower(first, nullptr);
}

TEST_F(Validation, FindsALiveBlockThatIsNotFoundByAddress) {
  gcap_scratch_pages_set(&scratch_->store.pages, gcap_scratch_block_base(live_), nullptr);
  ExpectDamage("is not found");
  gcap_scratch_pages_set(&scratch_->store.pages, gcap_scratch_block_base(live_), live_);
}

TEST_F(Validation, FindsARegionThatItsBlocksDoNotFill) {
  gcap_scratch_region_t* last = scratch_->store.regions[scratch_->store.num_regions - 1];
  ExpectDamage(&last->bytes, last->bytes + GCAP_SCRATCH_GRANULE_BYTES, "end at");
}

TEST_F(Validation, FindsRegionsOutOfOrder) {
  std::swap(scratch_->store.regions[0], scratch_->store.regions[1]);
  ExpectDamage("overlaps the one below, or is out of order");
  std::swap(scratch_->store.regions[0], scratch_->store.regions[1]);
}

TEST_F(Validation, FindsABitOfABinThatIsWrong) {
  for (gcap_scratch_pool_t* pool : {&scratch_->store.untagged, &scratch_->unknown_stream.owner.pool,
                                    &b_state_->owner.pool, &kept_reservation_->owner.pool}) {
    ExpectDamage(&pool->filled[0], pool->filled[0] ^ 2, "the bit of bin 1 is wrong");
  }
}

TEST_F(Validation, FindsABlockInAPoolThatIsNotFree) {
  const uintptr_t cached = (gcap_scratch_block_tag(free_) & ~GCAP_SCRATCH_TAG_PHASE) | GCAP_SCRATCH_CACHED;
  ExpectTagDamage(free_, cached, "is in a pool, but not free");
}

TEST_F(Validation, FindsABlockInAnothersPool) {
  ExpectOwnerDamage(free_, &c_state_->owner, "is in another pool than its own");
}

TEST_F(Validation, FindsABlockInAWrongBin) {
  gcap_scratch_pool_t* pool = &b_state_->owner.pool;
  const unsigned bin = gcap_scratch_pool_bin(free_->bytes);
  const unsigned wrong = bin + 1;
  gcap_scratch_pool_remove(pool, free_);
  free_->next = nullptr;
  free_->previous = nullptr;
  pool->bins[wrong] = free_;
  pool->filled[wrong / 64] |= uint64_t{1} << (wrong % 64);
  ExpectDamage("is in bin " + std::to_string(wrong));
  pool->bins[wrong] = nullptr;
  pool->filled[wrong / 64] &= ~(uint64_t{1} << (wrong % 64));
  gcap_scratch_pool_insert(pool, free_);
}

TEST_F(Validation, FindsABinThatIsLinkedWrongly) { ExpectDamage(&free_->previous, free_, "is linked wrongly"); }

TEST_F(Validation, FindsAFreeBlockInNoPool) {
  gcap_scratch_pool_remove(&b_state_->owner.pool, free_);
  ExpectDamage("are in pools");
  gcap_scratch_pool_insert(&b_state_->owner.pool, free_);
}

TEST_F(Validation, FindsABlockInAnothersCache) {
  ExpectOwnerDamage(cached_, &b_state_->owner, "is in a cache that is not its own");
}

TEST_F(Validation, FindsACachedBlockInAWrongBin) {
  const unsigned bin = gcap_scratch_pool_bin(cached_->bytes);
  gcap_scratch_cache_t* cache = &a_state_->cache;
  ASSERT_EQ(cache->bins[bin], cached_);
  ASSERT_EQ(cache->bins[bin + 7], nullptr);
  std::swap(cache->bins[bin], cache->bins[bin + 7]);
  ExpectDamage("is in bin " + std::to_string(bin + 7));
  std::swap(cache->bins[bin], cache->bins[bin + 7]);
}

TEST_F(Validation, CountsTheCachedBlocks) {
  ExpectCounted(&a_state_->cache.num_blocks, "cached blocks, its counter says");
  gcap_scratch_block_t** link = &a_state_->cache.bins[gcap_scratch_pool_bin(cached_->bytes)];
  ASSERT_EQ(*link, cached_);
  *link = cached_->next;
  --a_state_->cache.num_blocks;
  ExpectDamage("are marked as cached");
  *link = cached_;
  ++a_state_->cache.num_blocks;
}

TEST_F(Validation, FindsAStreamThatIsNotFound) {
  gcap_scratch_directory_t* directory = scratch_->directory;
  for (size_t i = 0; i <= directory->mask; ++i) {
    if (directory->places[i] != a_state_) continue;
    directory->places[i] = nullptr;
    ExpectDamage("a stream is not found");
    directory->places[i] = a_state_;
  }
}

TEST_F(Validation, CountsTheLiveBlocksOfAStreamAndOfItsRun) {
  ExpectCounted(&a_state_->owner.num_allocs, "live blocks, its counters say");
  ExpectCounted(&b_state_->num_others, "a run has 1 live blocks");
}

TEST_F(Validation, CountsTheReservationsOfAStream) {
  ExpectCounted(&c_state_->num_reservations, "a stream has 1 reservations");
  ExpectDamage(&a_state_->open, kept_reservation_, "open reservation is not on the list");
  gcap_scratch_reservation_t unknown = *kept_reservation_;
  ExpectDamage(&c_state_->open, &unknown, "open reservation is not on the list");
}

TEST_F(Validation, CountsTheMemoryOfAReservation) {
  ExpectCounted(&kept_reservation_->bytes, "its counters say");
  ExpectCounted(&kept_reservation_->num_live, "its counters say");
  ExpectDamage(&kept_reservation_->num_graphs, size_t{0}, "is no graph's");
}

TEST_F(Validation, CountsWhatIsOfNoStream) {
  ExpectCounted(&scratch_->unknown_stream.owner.num_allocs, "live blocks are of no stream");
  ExpectDamage(&scratch_->unknown_stream.num_reservations, size_t{1}, "are of streams that are gone");
  ExpectDamage(&RegionOf(live_)->reserved, true, "is not one live block of no stream");
  ExpectDamage(&scratch_->stats.num_reserves, uint64_t{0}, "regions are reserved, and 0 ever were");
}

TEST_F(Validation, CountsTheBytes) {
  ExpectCounted(&scratch_->stats.total_allocated_bytes, "the counter says");
  ExpectCounted(&a_state_->in_use_bytes, "bytes are live");
  ExpectCounted(&a_state_->requested_in_use_bytes, "bytes are live");
  ExpectCounted(&scratch_->unknown_stream.in_use_bytes, "bytes are live");
  ExpectCounted(&scratch_->unknown_stream.requested_in_use_bytes, "bytes are live");
}

TEST_F(Validation, ComparesTheMemoryWithTheLimit) {
  const size_t held = scratch_->stats.total_allocated_bytes;
  ExpectDamage(&scratch_->options.memory_limit_bytes, held - 1, "bytes are held, the limit is");
  scratch_->options.memory_limit_bytes = held;
  Validate();
  ExpectDamage(&scratch_->in_transit_bytes, size_t{1}, "bytes are held, the limit is");
  scratch_->options.memory_limit_bytes = 0;
}

// One of two live blocks is not in the table of the debug options.
TEST(ValidationOfDebugOptions, CountsTheLiveBlocksThatTheyKnowOf) {
  const Upstream upstream;
  gcap_stream_t* stream = nullptr;
  gcap_scratch_t* scratch = nullptr;
  gcap_scratch_options_t options;
  gcap_scratch_options_init(&options);
  options.recorded_operations = 4;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  GCAP_ASSERT_OK(gcap_scratch_create(upstream.get(), &options, &scratch));
  void* ptrs[2] = {};
  for (void*& ptr : ptrs) GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, 100, stream, &ptr));
  gcap_scratch_block_t* block = nullptr;
  gcap_scratch_live_t* live = nullptr;
  gcap_status_t damage = nullptr;
  GCAP_EXPECT_OK(gcap_scratch_find_live(&scratch->store, ptrs[0], /*zone_bytes=*/0, &block));
  GCAP_EXPECT_OK(gcap_scratch_debug_begin_free(scratch, block, /*forced=*/false, &live, &damage));
  GCAP_EXPECT_OK(damage);
  GCAP_EXPECT_FAILS(gcap_scratch_validate(scratch), GCAP_INTERNAL, "2 blocks are live, the debug options know of 1");
  gcap_scratch_debug_undo_free(scratch, live);
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch));
  for (void* ptr : ptrs) GCAP_EXPECT_OK(gcap_scratch_free(scratch, ptr));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
