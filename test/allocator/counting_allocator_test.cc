// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The counting allocator over an upstream of host memory that does as it is told.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gcap/allocator.h"
#include "gcap/allocator_ops.h"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

struct Upstream {
  std::atomic<bool> fail{false};
  std::atomic<int> num_blocks{0};
  std::atomic<int> num_frees{0};
  void* always = nullptr;  // what is answered instead of fresh memory
  gcap_stream_t* last_stream = nullptr;
  int num_reserves = 0, num_trims = 0;

  gcap_status_t Give(size_t bytes, void** out_ptr) {
    if (fail) return GCAP_STATUS(GCAP_UNAVAILABLE, "upstream is not in the mood");
    ++num_blocks;
    *out_ptr = always != nullptr ? always : std::aligned_alloc(128, (bytes + 127) / 128 * 128);
    return nullptr;
  }
};

Upstream* Self(void* self) { return static_cast<Upstream*>(self); }

gcap_allocator_ops_t UpstreamOps(Upstream* upstream) {
  gcap_allocator_ops_t ops = {};
  ops.struct_version = GCAP_ALLOCATOR_OPS_VERSION;
  ops.device_id = 2;
  ops.alignment = 128;
  ops.self = upstream;
  ops.alloc = [](void* self, size_t bytes, void** out_ptr) { return Self(self)->Give(bytes, out_ptr); };
  ops.free = [](void* self, void* ptr) -> gcap_status_t {
    if (Self(self)->fail) return GCAP_STATUS(GCAP_UNAVAILABLE, "upstream is not in the mood");
    --Self(self)->num_blocks;
    ++Self(self)->num_frees;
    if (ptr != Self(self)->always) std::free(ptr);
    return nullptr;
  };
  ops.alloc_on_stream = [](void* self, size_t bytes, gcap_stream_t* stream, void** out_ptr) {
    Self(self)->last_stream = stream;
    return Self(self)->Give(bytes, out_ptr);
  };
  ops.reserve = [](void* self, size_t bytes, void** out_ptr) {
    ++Self(self)->num_reserves;
    return Self(self)->Give(bytes, out_ptr);
  };
  ops.trim = [](void* self) -> gcap_status_t {
    if (Self(self)->fail) return GCAP_STATUS(GCAP_UNAVAILABLE, "upstream is not in the mood");
    ++Self(self)->num_trims;
    return nullptr;
  };
  return ops;
}

std::string Line(const gcap_allocator_event_t& event) {
  char line[96];
  const int length = gcap_allocator_event_format(&event, line, sizeof(line));
  EXPECT_LT(static_cast<size_t>(length), sizeof(line));
  return line;
}

class CountingAllocator : public ::testing::Test {
 protected:
  void SetUp() override {
    const gcap_allocator_ops_t ops = UpstreamOps(&table_);
    GCAP_ASSERT_OK(gcap_allocator_create(&ops, &upstream_));
  }
  void TearDown() override {
    gcap_allocator_destroy(allocator_);
    EXPECT_EQ(table_.num_blocks, 0);
    gcap_allocator_destroy(upstream_);
  }

  void Create(size_t limit_bytes = 0) {
    gcap_counting_allocator_options_t options;
    gcap_counting_allocator_options_init(&options);
    options.limit_bytes = limit_bytes;
    options.user = this;
    options.on_event = [](void* user, const gcap_allocator_event_t* event) {
      CountingAllocator* self = static_cast<CountingAllocator*>(user);
      const std::lock_guard<std::mutex> lock(self->mutex_);
      self->events_.push_back(*event);
    };
    GCAP_ASSERT_OK(gcap_counting_allocator_create(upstream_, &options, &allocator_));
  }
  void* Alloc(size_t bytes) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_allocator_alloc(allocator_, bytes, &ptr));
    return ptr;
  }
  void Free(void* ptr) { GCAP_EXPECT_OK(gcap_allocator_free(allocator_, ptr)); }
  gcap_allocator_stats_t Stats() {
    gcap_allocator_stats_t stats;
    gcap_allocator_get_stats(allocator_, &stats);
    return stats;
  }
  // In the order of their numbers.
  std::vector<gcap_allocator_event_t> Events() {
    std::vector<gcap_allocator_event_t> events = events_;
    std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
    return events;
  }

  Upstream table_;
  gcap_allocator_t* upstream_ = nullptr;
  gcap_allocator_t* allocator_ = nullptr;
  std::mutex mutex_;
  std::vector<gcap_allocator_event_t> events_;
};

TEST_F(CountingAllocator, PassesEachRequestOnAndReportsIt) {
  Create();
  EXPECT_EQ(gcap_allocator_device(allocator_), 2);
  EXPECT_EQ(gcap_allocator_alignment(allocator_), 128u);
  gcap_stream_t* const stream = reinterpret_cast<gcap_stream_t*>(4711);  // nobody looks into it
  void* first = Alloc(10);
  void* second = nullptr;
  GCAP_EXPECT_OK(gcap_allocator_alloc_on_stream(allocator_, 20, stream, &second));
  EXPECT_EQ(table_.last_stream, stream);
  void* third = nullptr;
  GCAP_EXPECT_OK(gcap_allocator_reserve(allocator_, 30, &third));
  EXPECT_EQ(table_.num_reserves, 1);
  Free(second);
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  EXPECT_EQ(table_.num_trims, 1);
  Free(first);
  Free(third);
  const std::vector<std::string> expected = {"a 1 10 0", "a 2 20 4711", "r 3 30", "f 2", "t", "f 1", "f 3"};
  std::vector<std::string> lines;
  for (const gcap_allocator_event_t& event : Events()) lines.push_back(Line(event));
  EXPECT_EQ(lines, expected);
  const std::vector<gcap_allocator_event_t> events = Events();
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(events[3].kind, GCAP_ALLOCATOR_EVENT_FREE);
  EXPECT_EQ(events[3].sequence, 4u);
  EXPECT_EQ(events[3].bytes, 20u);
  EXPECT_EQ(events[3].ptr, second);
  EXPECT_EQ(events[4].ptr, nullptr);
}

TEST_F(CountingAllocator, Counts) {
  Create(/*limit_bytes=*/1000);
  void* first = Alloc(100);
  void* second = Alloc(300);
  void* third = nullptr;
  GCAP_EXPECT_OK(gcap_allocator_reserve(allocator_, 50, &third));
  Free(second);
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  const gcap_allocator_stats_t stats = Stats();
  EXPECT_EQ(stats.limit_bytes, 1000u);
  EXPECT_EQ(stats.in_use_bytes, 150u);
  EXPECT_EQ(stats.requested_in_use_bytes, 150u);
  EXPECT_EQ(stats.total_allocated_bytes, 150u);
  EXPECT_EQ(stats.max_in_use_bytes, 450u);
  EXPECT_EQ(stats.max_alloc_bytes, 300u);
  EXPECT_EQ(stats.num_allocs, 3u);
  EXPECT_EQ(stats.num_reserves, 1u);
  EXPECT_EQ(stats.num_shrinkages, 1u);
  Free(first);
  Free(third);
}

TEST_F(CountingAllocator, RefusesWhatGoesBeyondTheLimit) {
  Create(/*limit_bytes=*/100);
  void* first = Alloc(60);
  void* ptr = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, 41, &ptr), GCAP_RESOURCE_EXHAUSTED,
                    "41 bytes were requested, 60 are in use");
  EXPECT_EQ(ptr, nullptr);
  GCAP_EXPECT_FAILS(gcap_allocator_reserve(allocator_, PTRDIFF_MAX, &ptr), GCAP_RESOURCE_EXHAUSTED, "limit is 100");
  EXPECT_EQ(table_.num_blocks, 1);  // the upstream heard nothing
  void* second = Alloc(40);
  Free(first);
  first = Alloc(60);
  Free(first);
  Free(second);
  EXPECT_EQ(Stats().num_allocs, 3u);
  EXPECT_EQ(events_.size(), 6u);
}

TEST_F(CountingAllocator, AFailureOfTheUpstreamCountsForNothing) {
  Create(/*limit_bytes=*/100);
  table_.fail = true;
  void* ptr = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, 100, &ptr), GCAP_UNAVAILABLE, "mood");
  EXPECT_EQ(ptr, nullptr);
  GCAP_EXPECT_FAILS(gcap_allocator_trim(allocator_), GCAP_UNAVAILABLE, "mood");
  table_.fail = false;
  ptr = Alloc(100);
  table_.fail = true;
  GCAP_EXPECT_FAILS(gcap_allocator_free(allocator_, ptr), GCAP_UNAVAILABLE, "mood");
  EXPECT_EQ(Stats().in_use_bytes, 100u);  // it is still the caller's, who tries again
  table_.fail = false;
  void* other = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, 1, &other), GCAP_RESOURCE_EXHAUSTED, "100 are in use");
  Free(ptr);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  EXPECT_EQ(Stats().num_allocs, 1u);
  EXPECT_EQ(Stats().num_shrinkages, 0u);
  EXPECT_EQ(events_.size(), 2u);
}

TEST_F(CountingAllocator, RejectsWhatItDidNotHandOut) {
  Create();
  char* ptr = static_cast<char*>(Alloc(256));
  void* upstreams = nullptr;
  GCAP_EXPECT_OK(gcap_allocator_alloc(upstream_, 8, &upstreams));
  GCAP_EXPECT_FAILS(gcap_allocator_free(allocator_, upstreams), GCAP_INVALID_ARGUMENT, "not handed out");
  GCAP_EXPECT_FAILS(gcap_allocator_free(allocator_, ptr + 128), GCAP_INVALID_ARGUMENT, "not handed out");
  EXPECT_EQ(table_.num_frees, 0);
  Free(ptr);
  GCAP_EXPECT_FAILS(gcap_allocator_free(allocator_, ptr), GCAP_INVALID_ARGUMENT, "not handed out");
  EXPECT_EQ(table_.num_frees, 1);
  GCAP_EXPECT_OK(gcap_allocator_free(upstream_, upstreams));
}

TEST_F(CountingAllocator, MemoryThatIsInUseIsTheUpstreamsFault) {
  Create(/*limit_bytes=*/100);
  char block[64];
  table_.always = block;
  void* ptr = Alloc(40);
  void* second = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator_, 50, &second), GCAP_LIBRARY_ERROR, "in use");
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(table_.num_frees, 0);  // that would have taken it from its owner
  EXPECT_EQ(Stats().in_use_bytes, 40u);
  Free(ptr);
  table_.num_blocks = 0;
  Free(Alloc(100));  // nothing is held against the limit
}

TEST_F(CountingAllocator, TheCallbackMayCallGcap) {
  struct Nested {
    gcap_allocator_t* allocator = nullptr;
    int num_events = 0;
    uint64_t in_use_bytes = 0;
  } nested;
  gcap_counting_allocator_options_t options;
  gcap_counting_allocator_options_init(&options);
  options.user = &nested;
  options.on_event = [](void* user, const gcap_allocator_event_t* event) {
    Nested* self = static_cast<Nested*>(user);
    ++self->num_events;
    gcap_allocator_stats_t stats;
    gcap_allocator_get_stats(self->allocator, &stats);
    self->in_use_bytes = stats.in_use_bytes;
    if (event->kind != GCAP_ALLOCATOR_EVENT_ALLOC || event->bytes != 10) return;
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_allocator_alloc(self->allocator, 20, &ptr));
    GCAP_EXPECT_OK(gcap_allocator_free(self->allocator, ptr));
  };
  GCAP_ASSERT_OK(gcap_counting_allocator_create(upstream_, &options, &allocator_));
  nested.allocator = allocator_;
  void* ptr = Alloc(10);
  EXPECT_EQ(nested.num_events, 3);
  EXPECT_EQ(nested.in_use_bytes, 10u);
  Free(ptr);
}

// What a reader of the events can rely on, checked by replaying them in the order of their numbers.
TEST_F(CountingAllocator, ServesSeveralThreadsWithinTheLimitAndTheirTraceReplays) {
  constexpr size_t kLimit = 4000;
  Create(kLimit);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      std::mt19937 random(t + 1);
      std::vector<void*> mine;
      for (int round = 0; round < 500; ++round) {
        void* ptr = nullptr;
        const Outcome outcome(gcap_allocator_alloc(allocator_, 1 + random() % 600, &ptr));
        EXPECT_TRUE(outcome.ok() || outcome.code == GCAP_RESOURCE_EXHAUSTED) << outcome.message;
        if (ptr != nullptr) mine.push_back(ptr);
        if (!mine.empty() && random() % 2 == 0) Free(mine.back()), mine.pop_back();
      }
      for (void* ptr : mine) Free(ptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(Stats().max_in_use_bytes, kLimit);
  size_t in_use = 0;
  std::map<uint64_t, size_t> live;
  std::map<void*, uint64_t> at;
  for (const gcap_allocator_event_t& event : Events()) {
    unsigned long long block = 0;
    size_t bytes = 0;
    const std::string line = Line(event);
    if (std::sscanf(line.c_str(), "a %llu %zu 0", &block, &bytes) == 2) {
      EXPECT_TRUE(live.emplace(block, bytes).second) << line;
      EXPECT_TRUE(at.emplace(event.ptr, block).second) << line;
      in_use += bytes;
    } else {
      ASSERT_EQ(std::sscanf(line.c_str(), "f %llu", &block), 1) << line;
      ASSERT_EQ(live.count(block), 1u) << line;
      EXPECT_EQ(at[event.ptr], block) << line;
      in_use -= live[block];
      live.erase(block);
      at.erase(event.ptr);
    }
    ASSERT_LE(in_use, kLimit) << line;
  }
  EXPECT_TRUE(live.empty());
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  Free(Alloc(kLimit));
}

TEST_F(CountingAllocator, ATraceLineIsCutWhereThereIsNoRoom) {
  gcap_allocator_event_t event = {};
  event.kind = GCAP_ALLOCATOR_EVENT_RESERVE;
  event.block = 12;
  event.bytes = 345;
  char line[5];
  EXPECT_EQ(gcap_allocator_event_format(&event, line, sizeof(line)), 8);
  EXPECT_STREQ(line, "r 12");
}

TEST_F(CountingAllocator, CreateRejectsBadInputAndTakesDefaults) {
  GCAP_EXPECT_FAILS(gcap_counting_allocator_create(nullptr, nullptr, &allocator_), GCAP_INVALID_ARGUMENT,
                    "upstream is NULL");
  EXPECT_EQ(allocator_, nullptr);
  GCAP_EXPECT_FAILS(gcap_counting_allocator_create(upstream_, nullptr, nullptr), GCAP_INVALID_ARGUMENT,
                    "out_allocator is NULL");
  GCAP_ASSERT_OK(gcap_counting_allocator_create(upstream_, nullptr, &allocator_));
  EXPECT_EQ(Stats().limit_bytes, 0u);
  Free(Alloc(1 << 20));
}

TEST_F(CountingAllocator, DestroySaysWhatIsLostAndLeavesItToTheUpstream) {
  Create();
  const LogCatcher log;
  void* ptr = Alloc(321);
  gcap_allocator_destroy(allocator_);
  allocator_ = nullptr;
  EXPECT_NE(log.text().find("1 blocks (321 bytes)"), std::string::npos) << log.text();
  GCAP_EXPECT_OK(gcap_allocator_free(upstream_, ptr));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
