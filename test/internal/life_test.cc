// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "lib/internal/life.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "test/base/heap_failure.h"

namespace gcap {
namespace testing {
namespace {

TEST(Life, GoesOnUntilItsOwnerEndsIt) {
  gcap_life_t* life = gcap_life_create();
  ASSERT_NE(life, nullptr);
  EXPECT_TRUE(gcap_life_goes_on(life));
  gcap_life_t* kept = gcap_life_retain(life);
  EXPECT_EQ(kept, life);
  gcap_life_end(life);
  EXPECT_FALSE(gcap_life_goes_on(kept)) << "who keeps it must see the end";
  gcap_life_release(kept);
}

TEST(Life, OfNobodyGoesOn) {
  EXPECT_EQ(gcap_life_retain(nullptr), nullptr);
  EXPECT_TRUE(gcap_life_goes_on(nullptr));
  gcap_life_release(nullptr);
  gcap_life_end(nullptr);
}

TEST(Life, WithoutMemoryIsNobodys) {
  const HeapFailure no_memory;
  EXPECT_EQ(gcap_life_create(), nullptr);
  EXPECT_EQ(no_memory.hits(), 1);
}

TEST(ThreadLife, IsOneAThreadAndEndsWithIt) {
  constexpr int kThreads = 8;
  std::vector<gcap_life_t*> lives(kThreads);
  std::vector<std::thread> threads;
  for (gcap_life_t*& kept : lives) {
    threads.emplace_back([&kept] {
      kept = gcap_life_retain(gcap_thread_life());
      EXPECT_EQ(gcap_thread_life(), kept);
      EXPECT_TRUE(gcap_life_goes_on(kept));
    });
  }
  for (std::thread& thread : threads) thread.join();
  // All are kept, so an address used twice would be two threads with one life.
  EXPECT_EQ(std::set<gcap_life_t*>(lives.begin(), lives.end()).size(), lives.size());
  for (gcap_life_t* life : lives) {
    ASSERT_NE(life, nullptr);
    EXPECT_FALSE(gcap_life_goes_on(life));
    gcap_life_release(life);
  }
}

TEST(ThreadLife, WithoutMemoryIsTriedAgain) {
  std::thread([] {
    {
      const HeapFailure no_memory;
      EXPECT_EQ(gcap_thread_life(), nullptr);
      EXPECT_EQ(no_memory.hits(), 1);
    }
    EXPECT_NE(gcap_thread_life(), nullptr);
  }).join();
}

TEST(Life, MayBeKeptAndLetGoOnManyThreadsWhileItEnds) {
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    gcap_life_t* life = gcap_life_create();
    ASSERT_NE(life, nullptr);
    int written_before_the_end = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([kept = gcap_life_retain(life), &written_before_the_end] {
        gcap_life_release(gcap_life_retain(kept));
        if (!gcap_life_goes_on(kept)) {
          EXPECT_EQ(written_before_the_end, 1);
        }
        gcap_life_release(kept);
      });
    }
    written_before_the_end = 1;
    gcap_life_end(life);
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
