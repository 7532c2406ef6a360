// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Exploration: a planted race is found, its seed shows it again, and what is right passes under all seeds.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"
#include "test/sim/with_action.h"

namespace {

using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

constexpr size_t kBytes = 256;
constexpr uint64_t kSeeds = 200;

// Fills on one stream, copies back on another; without the wait the copy may come first. Says whether it did.
int CopyAfterFill(bool wait) {
  cudaStream_t a, b;
  cudaEvent_t filled;
  unsigned char *device, *pinned;
  EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  EXPECT_EQ(cudaSuccess, cudaEventCreate(&filled));
  EXPECT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&device), kBytes));
  EXPECT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&pinned), kBytes));
  EXPECT_EQ(cudaSuccess, cudaMemset(device, 0, kBytes));
  EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(device, 7, kBytes, a));
  EXPECT_EQ(cudaSuccess, cudaEventRecord(filled, a));
  if (wait) {
    EXPECT_EQ(cudaSuccess, cudaStreamWaitEvent(b, filled, 0));
  }
  EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDeviceToHost, b));
  EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
  int wrong = pinned[kBytes - 1] != 7;
  EXPECT_EQ(cudaSuccess, cudaFreeHost(pinned));
  EXPECT_EQ(cudaSuccess, cudaFree(device));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(filled));
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(a));
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(b));
  return wrong;
}

int Racy(void*) { return CopyAfterFill(false); }
int Repaired(void*) { return CopyAfterFill(true); }

// By its wrong result alone, which needs the right seed.
TEST(Explore, FindsAPlantedRaceAndItsSeedShowsItEveryTime) {
  gcap_test::WithAction quiet(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_OFF);
  uint64_t seed = 0;
  CaptureStderr();
  ASSERT_EQ(1, gcap_sim_explore(Racy, nullptr, 0, kSeeds, &seed));
  const std::string text = GetCapturedStderr();
  EXPECT_LT(seed, kSeeds);
  EXPECT_NE(std::string::npos, text.find("failed under seed " + std::to_string(seed)));
  EXPECT_NE(std::string::npos, text.find("GCAP_SIM_EXPLORE=" + std::to_string(seed)));
  for (int i = 0; i < 50; ++i) {
    uint64_t again = seed + 1;
    CaptureStderr();
    ASSERT_EQ(1, gcap_sim_explore(Racy, nullptr, seed, 1, &again));
    GetCapturedStderr();
    EXPECT_EQ(seed, again);
  }
}

// The check sees the missing order itself, under any seed.
TEST(Explore, FailsWhatACheckReports) {
  uint64_t seed = 1;
  CaptureStderr();
  ASSERT_EQ(1, gcap_sim_explore(Racy, nullptr, 7, kSeeds, &seed));
  const std::string text = GetCapturedStderr();
  EXPECT_EQ(7u, seed);
  EXPECT_NE(std::string::npos, text.find("race on 256 bytes")) << text;
  EXPECT_NE(std::string::npos, text.find("cudaMemsetAsync")) << text;
  EXPECT_NE(std::string::npos, text.find("cudaMemcpyAsync")) << text;
}

TEST(Explore, EverySeedsVerdictIsTheSameAgain) {
  gcap_test::WithAction quiet(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_OFF);
  auto verdicts = [] {
    std::string all;
    for (uint64_t seed = 0; seed < 64; ++seed) {
      CaptureStderr();
      all += gcap_sim_explore(Racy, nullptr, seed, 1, nullptr) ? 'x' : '.';
      GetCapturedStderr();
    }
    return all;
  };
  EXPECT_EQ(verdicts(), verdicts());
}

TEST(Explore, PassesWhatIsRight) {
  uint64_t seed = 1;
  EXPECT_EQ(0, gcap_sim_explore(Repaired, nullptr, 0, kSeeds, &seed));
  EXPECT_EQ(0u, seed);
  EXPECT_EQ(0, gcap_sim_explore(Repaired, nullptr, 0, 3, nullptr));
}

TEST(Explore, RunsEachSeedOnceAndStopsAtTheFirstFailure) {
  struct Count {
    int calls;
    int fail_at;
  } count = {0, 5};
  auto body = [](void* user) {
    Count* count = static_cast<Count*>(user);
    return count->calls++ == count->fail_at ? 3 : 0;
  };
  uint64_t seed = 0;
  CaptureStderr();
  EXPECT_EQ(1, gcap_sim_explore(body, &count, 1000, 20, &seed));
  EXPECT_NE(std::string::npos, GetCapturedStderr().find("the body returned 3"));
  EXPECT_EQ(1005u, seed);
  EXPECT_EQ(6, count.calls);
  count = {0, -1};
  EXPECT_EQ(0, gcap_sim_explore(body, &count, 0, 20, nullptr));
  EXPECT_EQ(20, count.calls);
}

TEST(Explore, FailsABodyThatLeavesSomethingBehind) {
  cudaStream_t stream = nullptr;
  CaptureStderr();
  EXPECT_EQ(
      1, gcap_sim_explore([](void* out) { return static_cast<int>(cudaStreamCreate(static_cast<cudaStream_t*>(out))); },
                          &stream, 0, 5, nullptr));
  EXPECT_NE(std::string::npos, GetCapturedStderr().find("handles and allocations"));
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
}

TEST(Explore, PutsTheCallersSeedAside) {
  cudaStream_t stream;
  unsigned char* pinned;
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&pinned), 1));
  auto trace = [&](bool explore) {
    std::string order;
    *pinned = 0;
    gcap_sim_set_seed(4);
    if (explore) {
      EXPECT_EQ(0, gcap_sim_explore(Repaired, nullptr, 0, 3, nullptr));
    }
    for (int i = 1; i < 40; ++i) {
      EXPECT_EQ(cudaSuccess, cudaMemsetAsync(pinned, i, 1, stream));
      order += std::to_string(*pinned) + ",";
    }
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream));
    return order;
  };
  EXPECT_EQ(trace(false), trace(true));
  ASSERT_EQ(cudaSuccess, cudaFreeHost(pinned));
  ASSERT_EQ(cudaSuccess, cudaStreamDestroy(stream));
}

TEST(Explore, EnvironmentPicksTheOneSeed) {
  std::vector<int> calls;
  auto body = [](void* user) {
    static_cast<std::vector<int>*>(user)->push_back(1);
    return 1;
  };
  uint64_t seed = 0;
  setenv("GCAP_SIM_EXPLORE", "77", 1);
  CaptureStderr();
  EXPECT_EQ(1, gcap_sim_explore(body, &calls, 0, 20, &seed));
  GetCapturedStderr();
  EXPECT_EQ(77u, seed);
  EXPECT_EQ(1u, calls.size());
  setenv("GCAP_SIM_EXPLORE", "many", 1);
  EXPECT_DEATH(gcap_sim_explore(body, &calls, 0, 20, &seed), "GCAP_SIM_EXPLORE is 'many'");
  unsetenv("GCAP_SIM_EXPLORE");
}

}  // namespace
