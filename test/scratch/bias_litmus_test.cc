// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A litmus of the biased lock: one thread locks its stream by the bias without a pause, another locks the arena without
// a pause, and each looks whether the other is inside, too. The lock rests on one thing that no sanitizer and no model
// in C sees: the fence that membarrier runs on the other thread's processor. So the program is built twice: as it is
// (bias_litmus_test), where nothing may be found in a fixed number of turns; and with the fence taken out by the linker
// (bias_litmus_mutant_test, no_membarrier.c), where the two must be found inside at once. A litmus that cannot fail
// shows nothing.

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lib/scratch/lock.h"
#include "lib/scratch/streams.h"
#include "test/support/expect_status.h"

#ifdef GCAP_TEST_NO_MEMBARRIER
constexpr bool kMustFail = true;
constexpr uint64_t kTurns = 50000000;  // of the arena; a few thousand are the rule
#else
constexpr bool kMustFail = false;
constexpr uint64_t kTurns = 1000000;
#endif

namespace gcap {
namespace testing {
namespace {

// The processors that this process may run on.
std::vector<int> Processors() {
  std::vector<int> processors;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) processors.push_back(i);
  }
  return processors;
}

// Two threads on one processor are never inside at once, whatever the lock does.
void StayOn(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(only), &only), 0);
}

struct Litmus {
  gcap_scratch_t* scratch;
  gcap_scratch_stream_state_t* state;
  std::atomic<bool> ready{false}, stop{false};
  // Plain flags would do: relaxed, so that they order nothing themselves.
  std::atomic<bool> in_stream{false}, in_arena{false};
  std::atomic<uint64_t> both{0};
  uint64_t stream_turns = 0, by_bias = 0;

  void See(const std::atomic<bool>& other) {
    if (other.load(std::memory_order_relaxed)) both.fetch_add(1, std::memory_order_relaxed);
  }

  void LockStreamWithoutAPause() {
    gcap_scratch_lock_arena(scratch);
    gcap_scratch_note_thread(scratch, state, /*intruder=*/false);
    gcap_scratch_unlock_arena(scratch);
    ready = true;
    while (!stop.load(std::memory_order_relaxed)) {
      std::atomic<bool>* entered = gcap_scratch_lock_stream(scratch, state);
      if (entered == nullptr) continue;
      in_stream.store(true, std::memory_order_relaxed);
      See(in_arena);
      in_stream.store(false, std::memory_order_relaxed);
      if (entered != &state->locked) ++by_bias;
      ++stream_turns;
      gcap_scratch_unlock_stream(entered);
    }
  }

  void LockArenaWithoutAPause() {
    while (!ready) std::this_thread::yield();
    uint32_t draw = 1;
    for (uint64_t turn = 0; turn < kTurns && both.load(std::memory_order_relaxed) == 0; ++turn) {
      gcap_scratch_lock_arena(scratch);
      in_arena.store(true, std::memory_order_relaxed);
      for (int look = 0; look < 20; ++look) See(in_stream);
      in_arena.store(false, std::memory_order_relaxed);
      gcap_scratch_unlock_arena(scratch);
      draw = draw * 1103515245u + 12345u;
      for (volatile uint32_t i = 0; i < (draw >> 16) % 400; i = i + 1) {
      }  // meets every point of the other's way
    }
    stop = true;
  }
};

TEST(BiasLitmus, NoTwoThreadsAreInsideAtOnceUnlessTheFenceIsTakenOut) {
  const std::vector<int> processors = Processors();
  if (processors.size() < 2) GTEST_SKIP() << "one processor: its stores come in order for all its threads";
  if (!gcap_scratch_can_bias()) GTEST_SKIP() << "this kernel or build has no membarrier, so no thread has a bias";
  Litmus litmus;
  litmus.scratch = static_cast<gcap_scratch_t*>(std::calloc(1, sizeof(gcap_scratch_t)));
  pthread_mutex_init(&litmus.scratch->mutex, nullptr);
  litmus.scratch->device_id = -1;  // no stream is asked for its device
  litmus.scratch->can_bias = true;
  gcap_scratch_lock_arena(litmus.scratch);
  auto* stream = reinterpret_cast<gcap_stream_t*>(uintptr_t{64});  // nobody follows it
  GCAP_ASSERT_OK(gcap_scratch_get_stream(litmus.scratch, stream, &litmus.state));
  gcap_scratch_unlock_arena(litmus.scratch);

  std::thread user([&] {
    StayOn(processors[0]);
    litmus.LockStreamWithoutAPause();
  });
  StayOn(processors[1]);
  litmus.LockArenaWithoutAPause();
  user.join();

  EXPECT_GT(litmus.by_bias, 0u) << "the bias was never used";
  EXPECT_EQ(litmus.both > 0, kMustFail) << litmus.both << " times both were inside, in " << litmus.stream_turns
                                        << " turns of the stream";
  RecordProperty("stream_turns", std::to_string(litmus.stream_turns));
  gcap_scratch_free_streams(litmus.scratch);
  pthread_mutex_destroy(&litmus.scratch->mutex);
  std::free(litmus.scratch);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
