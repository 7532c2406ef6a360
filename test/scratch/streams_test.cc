// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The streams that an arena knows, and its locks, without anything else of an arena. Streams are addresses that nobody
// follows.

#include "lib/scratch/streams.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lib/scratch/lock.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

constexpr unsigned kSeed = 20261122;

gcap_stream_t* Stream(uintptr_t number) { return reinterpret_cast<gcap_stream_t*>(number * 64); }

class Streams : public ::testing::Test {
 protected:
  void SetUp() override {
    scratch_ = static_cast<gcap_scratch_t*>(std::calloc(1, sizeof(gcap_scratch_t)));
    pthread_mutex_init(&scratch_->mutex, nullptr);
    scratch_->device_id = -1;  // no stream is asked for its device
    scratch_->can_bias = gcap_scratch_can_bias();
    gcap_scratch_lock_arena(scratch_);
  }
  void TearDown() override {
    gcap_scratch_unlock_arena(scratch_);
    gcap_scratch_free_streams(scratch_);
    pthread_mutex_destroy(&scratch_->mutex);
    std::free(scratch_);
  }
  gcap_scratch_stream_state_t* Get(uintptr_t number) {
    gcap_scratch_stream_state_t* state = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_get_stream(scratch_, Stream(number), &state));
    return state;
  }
  gcap_scratch_stream_state_t* Find(uintptr_t number) { return gcap_scratch_find_stream(scratch_, Stream(number)); }

  gcap_scratch_t* scratch_ = nullptr;
};

TEST_F(Streams, AreMadeOnce) {
  EXPECT_EQ(Find(1), nullptr);
  gcap_scratch_stream_state_t* state = Get(1);
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(gcap_scratch_stream_of(state), Stream(1));
  EXPECT_EQ(Find(1), state);
  EXPECT_EQ(Get(1), state);
  EXPECT_EQ(gcap_scratch_state_of(&state->owner), state);
  EXPECT_EQ(scratch_->num_streams, 1u);
}

TEST_F(Streams, AStateIsUsedAgain) {
  gcap_scratch_stream_state_t* state = Get(1);
  gcap_scratch_remove_stream(scratch_, state);
  EXPECT_EQ(Find(1), nullptr);
  EXPECT_EQ(gcap_scratch_stream_of(state), nullptr);
  EXPECT_EQ(Get(2), state);
  EXPECT_EQ(Find(2), state);
  EXPECT_EQ(Find(1), nullptr);
}

TEST_F(Streams, RandomOnesAreFoundAsInAMap) {
  std::mt19937 random(kSeed);
  std::map<uintptr_t, gcap_scratch_stream_state_t*> expected;
  for (int step = 0; step < 5000; ++step) {
    const uintptr_t number = 1 + random() % 300;
    if (expected.count(number) != 0 && random() % 3 == 0) {
      gcap_scratch_remove_stream(scratch_, expected[number]);
      expected.erase(number);
    } else {
      expected[number] = Get(number);
    }
    ASSERT_EQ(scratch_->num_streams, expected.size());
    for (uintptr_t i = 1; i <= 300; i += 1 + random() % 20) {
      const auto it = expected.find(i);
      ASSERT_EQ(Find(i), it == expected.end() ? nullptr : it->second) << "step " << step << ", stream " << i;
    }
  }
  std::set<gcap_scratch_stream_state_t*> distinct;
  for (const auto& entry : expected) distinct.insert(entry.second);
  EXPECT_EQ(distinct.size(), expected.size());
}

// Counters of a stream that is gone are the arena's own.
TEST_F(Streams, CountersOutliveTheStream) {
  gcap_scratch_stream_state_t* state = Get(1);
  state->owner.num_allocs = state->owner.num_frees = 5;
  state->max_alloc_bytes = 4096;
  state->max_in_use_bytes = 10000;
  Get(2)->max_in_use_bytes = 500;
  gcap_scratch_remove_stream(scratch_, state);
  EXPECT_EQ(scratch_->stats.num_allocs, 5u);
  EXPECT_EQ(scratch_->stats.max_alloc_bytes, 4096u);
  EXPECT_EQ(scratch_->stats.max_in_use_bytes, 10500u) << "what both had most";
  EXPECT_EQ(gcap_scratch_num_live_of_all(scratch_), 0u);
}

TEST_F(Streams, TheThreadOfAStreamLocksByItsBias) {
  gcap_scratch_stream_state_t* state = Get(1);
  gcap_scratch_note_thread(scratch_, state, /*intruder=*/false);
  gcap_scratch_unlock_arena(scratch_);
  atomic_bool* entered = gcap_scratch_lock_stream(scratch_, state);
  ASSERT_NE(entered, nullptr);
  EXPECT_EQ(entered == &state->locked, !scratch_->can_bias);
  gcap_scratch_unlock_stream(entered);
  if (scratch_->can_bias) {
    std::thread([&] { EXPECT_EQ(gcap_scratch_lock_stream(scratch_, state), nullptr) << "another's bias"; }).join();
  }
  gcap_scratch_lock_arena(scratch_);
}

// Two threads lock the stream, one of them with the bias, and a third the arena: the counter loses nothing.
// A free of an address that is none may look at a stream while the stream joins the lock of the arena.
TEST_F(Streams, OneThatIsLookedAtJoinsTheArenasLockOnceThatIsOver) {
  gcap_scratch_stream_state_t* state = Get(1);
  state->locked = true;
  std::atomic<bool> has_joined{false};
  std::thread adder([&] {
    gcap_scratch_add_to_lock(state);
    has_joined = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(has_joined);
  state->locked = false;
  adder.join();
  EXPECT_TRUE(state->locked) << "by the arena";
}

TEST_F(Streams, LocksExclude) {
  constexpr int kRounds = 20000;
  gcap_scratch_stream_state_t* state = Get(1);
  gcap_scratch_unlock_arena(scratch_);
  uint64_t count = 0;  // by whoever holds the stream's lock or the arena's
  const auto add = [&](bool notes_itself) {
    for (int i = 0; i < kRounds; ++i) {
      atomic_bool* entered = gcap_scratch_lock_stream(scratch_, state);
      if (entered == nullptr || i == 0) {
        if (entered != nullptr) gcap_scratch_unlock_stream(entered);
        gcap_scratch_lock_arena(scratch_);
        if (notes_itself) gcap_scratch_note_thread(scratch_, state, /*intruder=*/false);
        ++count;
        gcap_scratch_unlock_arena(scratch_);
      } else {
        ++count;
        gcap_scratch_unlock_stream(entered);
      }
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(add, true);
  threads.emplace_back(add, false);
  for (int i = 0; i < kRounds / 10; ++i) {
    gcap_scratch_lock_arena(scratch_);
    ++count;
    gcap_scratch_unlock_arena(scratch_);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, uint64_t{2 * kRounds + kRounds / 10});
  gcap_scratch_lock_arena(scratch_);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
