// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Turns: who may join, leave and block, and what is said when somebody does so wrongly.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

TEST(Turns, ThreadMayLeaveToBlockAndJoinAgain) {
  gcap_sim_turns_begin(2);
  std::promise<void> promise;
  std::thread waiter([&] {
    gcap_sim_turns_join(0);
    gcap_sim_turns_leave();
    promise.get_future().wait();
    gcap_sim_turns_join(0);
    EXPECT_EQ(cudaSuccess, cudaGetLastError());
    gcap_sim_turns_leave();
  });
  std::thread other([&] {
    gcap_sim_turns_join(1);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(cudaSuccess, cudaGetLastError());
    promise.set_value();
    gcap_sim_turns_leave();
  });
  waiter.join();
  other.join();
}

TEST(Turns, ThreadThatEndsHasLeft) {
  gcap_sim_turns_begin(2);
  std::thread first([] { gcap_sim_turns_join(0); });
  std::thread second([] {
    gcap_sim_turns_join(1);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(cudaSuccess, cudaGetLastError());
  });
  first.join();
  second.join();
  gcap_sim_turns_begin(1);  // the last group is over
}

TEST(Turns, HostFunctionMayWaitForAnotherThreadOfTheGroup) {
  gcap_sim_turns_begin(2);
  std::promise<void> promise;
  std::thread waiter([&] {
    gcap_sim_turns_join(0);
    EXPECT_EQ(cudaSuccess, cudaLaunchHostFunc(
                               cudaStreamPerThread,
                               [](void* p) { static_cast<std::promise<void>*>(p)->get_future().wait(); }, &promise));
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(cudaStreamPerThread));
    gcap_sim_turns_leave();
  });
  std::thread other([&] {
    gcap_sim_turns_join(1);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(cudaSuccess, cudaGetLastError());
    promise.set_value();
    gcap_sim_turns_leave();
  });
  waiter.join();
  other.join();
}

TEST(TurnsDeathTest, MistakesStopTheProgram) {
  EXPECT_DEATH(gcap_sim_turns_begin(0), "gcap_sim_turns_begin: a group has at least one thread");
  EXPECT_DEATH(gcap_sim_turns_leave(), "gcap_sim_turns_leave: this thread is in no group");
  EXPECT_DEATH(
      {
        gcap_sim_turns_begin(2);
        gcap_sim_turns_join(2);
      },
      "gcap_sim_turns_join: index 2 of a group of 2 threads");
  EXPECT_DEATH(
      {
        gcap_sim_turns_begin(1);
        gcap_sim_turns_join(0);
        gcap_sim_turns_join(0);
      },
      "gcap_sim_turns_join: this thread is thread 0 of the group");
  EXPECT_DEATH(
      {
        gcap_sim_turns_begin(1);
        gcap_sim_turns_join(0);
        gcap_sim_turns_begin(1);
      },
      "gcap_sim_turns_begin: 1 threads of the last group have not left");
}

TEST(TurnsDeathTest, ThreadThatBlocksWithoutLeavingIsReported) {
  EXPECT_DEATH(
      {
        gcap_sim_turns_begin(2);
        std::thread other([] {
          gcap_sim_turns_join(1);
          for (;;) cudaGetLastError();
        });
        gcap_sim_turns_join(0);
        other.join();
      },
      "has waited 5 s for thread 0, which has the turn and makes no call");
}

// Nor is one that gets no processor for so long; the simulator cannot tell the two apart.
TEST(Turns, AThreadThatComputesForLongIsNotTakenForOneThatBlocks) {
  gcap_sim_turns_begin(2);
  std::thread other([] {
    gcap_sim_turns_join(1);
    EXPECT_EQ(cudaSuccess, cudaGetLastError());
    gcap_sim_turns_leave();
  });
  gcap_sim_turns_join(0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(6500);
  while (std::chrono::steady_clock::now() < end) continue;
  gcap_sim_turns_leave();
  other.join();
}

}  // namespace
