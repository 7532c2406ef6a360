// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The arena under several threads: a stream each, frees from other threads, and those who look at everything or free
// what is none meanwhile. Whether it is right is for the data in the blocks, the counters, gcap_scratch_validate and
// the thread sanitizer to say.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "test/scratch/scratch_test_support.h"

namespace gcap {
namespace testing {
namespace {

constexpr int kThreads = 16;
constexpr int kSteps = 400;

class ScratchThreads : public ScratchTest {
 protected:
  struct Block {
    char* ptr;
    size_t bytes;
    char mark;
  };

  void* TryAlloc(size_t bytes, gcap_stream_t* stream) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, bytes, stream, &ptr));
    return ptr;
  }
  Block AllocMarked(size_t bytes, gcap_stream_t* stream, char mark) {
    const Block block = {static_cast<char*>(TryAlloc(bytes, stream)), bytes, mark};
    std::memset(block.ptr, mark, bytes);
    return block;
  }
  // What another thread wrote into it meanwhile would show.
  void CheckAndFree(const Block& block) {
    EXPECT_EQ(static_cast<size_t>(std::count(block.ptr, block.ptr + block.bytes, block.mark)), block.bytes);
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, block.ptr));
  }
  static size_t RandomBytes(std::mt19937* random) { return 1 + (*random)() % (size_t{256} << ((*random)() % 6)); }
};

// Each thread has a stream of its own, which it forgets in the end and sometimes in between.
TEST_F(ScratchThreads, AStreamEach) {
  std::atomic<uint64_t> num_allocs{0};
  std::vector<std::thread> threads;
  for (int index = 0; index < kThreads; ++index) {
    threads.emplace_back([this, index, &num_allocs] {
      std::mt19937 random(static_cast<unsigned>(index));
      gcap_stream_t* stream = nullptr;
      GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
      std::vector<Block> blocks;
      for (int step = 0; step < kSteps; ++step) {
        if (blocks.size() < 20) {
          blocks.push_back(AllocMarked(RandomBytes(&random), stream, static_cast<char>(index + 1)));
          ++num_allocs;
        }
        if (random() % 2 == 0) {
          std::swap(blocks[random() % blocks.size()], blocks.back());
          CheckAndFree(blocks.back());
          blocks.pop_back();
        }
        if (step % 150 != 149) continue;
        for (const Block& block : blocks) CheckAndFree(block);
        blocks.clear();
        GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
        GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, stream));
        GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
        GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
      }
      for (const Block& block : blocks) CheckAndFree(block);
      GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
      GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, stream));
      GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  Validate();
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  EXPECT_EQ(Stats().num_allocs, num_allocs);
}

// One thread allocates for the stream, others free.
TEST_F(ScratchThreads, FreesFromOtherThreads) {
  std::mutex mutex;
  std::vector<Block> shared;
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (true) {
        const bool last = done;
        std::vector<Block> mine;
        {
          const std::lock_guard<std::mutex> lock(mutex);
          mine.swap(shared);
        }
        for (const Block& block : mine) CheckAndFree(block);
        if (last && mine.empty()) return;
        std::this_thread::yield();
      }
    });
  }
  std::mt19937 random(1);
  for (int step = 0; step < 10 * kSteps; ++step) {
    const Block block = AllocMarked(RandomBytes(&random), a_, static_cast<char>(1 + step % 100));
    const std::lock_guard<std::mutex> lock(mutex);
    shared.push_back(block);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  Validate();
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  EXPECT_EQ(Stats().num_allocs, 10u * kSteps);
}

// A wrong free finds nothing, whatever becomes of the memory at its address at that moment.
TEST_F(ScratchThreads, WrongFreesWhileRegionsComeAndGo) {
  std::atomic<char*> last{nullptr};
  std::atomic<bool> done{false};
  std::thread wrong([&] {
    while (!done) {
      char* ptr = last;
      if (ptr == nullptr) continue;
      GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, ptr + 1), GCAP_INVALID_ARGUMENT, "address");
    }
  });
  std::mt19937 random(2);
  for (int step = 0; step < kSteps; ++step) {
    const Block first = AllocMarked(RandomBytes(&random), a_, 1);
    const Block second = AllocMarked(RandomBytes(&random), a_, 2);
    last = step % 2 == 0 ? first.ptr : second.ptr;
    CheckAndFree(first);
    CheckAndFree(second);
    if (step % 4 != 3) continue;
    Synchronize(a_);
    GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
  }
  done = true;
  wrong.join();
  Validate();
}

// All of the limit is on its way to another thread, and what is wanted is a small part of it.
TEST_F(ScratchThreads, MemoryThatAnotherThreadFetchesIsWaitedFor) {
  options_.memory_limit_bytes = kChunk;
  hooks_.wait_for_ever = true;  // the other thread may get no processor for longer than the patience
  Create();
  std::atomic<bool> is_asked{false};
  upstream_.on_alloc = [&is_asked] {
    is_asked = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  void* first = nullptr;
  std::thread other([this, &first] { first = TryAlloc(kGranule, a_); });
  while (!is_asked) std::this_thread::yield();
  void* second = TryAlloc(kGranule, b_);
  other.join();
  EXPECT_EQ(NumRequests(), 1u);
  for (void* ptr : {first, second}) Free(ptr);
}

// One that waits for itself: upstream calls the scratch again, which has nothing left but what is on its way.
TEST_F(ScratchThreads, MemoryThatTheThreadItselfFetchesIsNotWaitedForForEver) {
  options_.memory_limit_bytes = kChunk;
  Create();
  upstream_.on_alloc = [this] { ExpectAllocFails(kGranule, b_, GCAP_RESOURCE_EXHAUSTED, std::to_string(kChunk)); };
  Free(Alloc(kGranule, a_));
}

TEST_F(ScratchThreads, EverythingIsLookedAtMeanwhile) {
  std::atomic<bool> done{false};
  std::thread looker([&] {
    while (!done) {
      GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
      const gcap_allocator_stats_t stats = Stats();
      EXPECT_LE(stats.in_use_bytes, stats.max_in_use_bytes);
      EXPECT_LE(stats.in_use_bytes, stats.total_allocated_bytes);
    }
  });
  std::mt19937 random(3);
  for (int step = 0; step < 5 * kSteps; ++step) {
    const Block first = AllocMarked(RandomBytes(&random), a_, 1);
    const Block second = AllocMarked(RandomBytes(&random), b_, 2);
    CheckAndFree(first);
    CheckAndFree(second);
  }
  done = true;
  looker.join();
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

// The threads use two streams in turn, and others' blocks come back on whatever thread. First a few changes, so that
// the threads' rights wander; then so many that nobody keeps one.
TEST_F(ScratchThreads, StreamsChangeHands) {
  struct Shared {
    std::mutex mutex;  // a stream is used by one thread at a time
    gcap_stream_t* stream;
    std::vector<Block> blocks;
  };
  Shared shared[2] = {{{}, a_, {}}, {{}, b_, {}}};
  for (const int turns : {3, 200}) {
    std::vector<std::thread> threads;
    for (int index = 0; index < 4; ++index) {
      threads.emplace_back([&, index] {
        std::mt19937 random(static_cast<unsigned>(100 * turns + index));
        for (int turn = 0; turn < turns; ++turn) {
          Shared& mine = shared[random() % 2];
          std::vector<Block> taken;
          {
            const std::lock_guard<std::mutex> lock(mine.mutex);
            for (int i = 0; i < 30; ++i) {
              mine.blocks.push_back(AllocMarked(RandomBytes(&random), mine.stream, static_cast<char>(index + 1)));
            }
            taken.swap(mine.blocks);
          }
          for (const Block& block : taken) CheckAndFree(block);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    Validate();
    EXPECT_EQ(Stats().in_use_bytes, 0u);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
