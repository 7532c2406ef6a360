// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Memory pools: who may have freed memory next, what a pool holds on to, and how pools share a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

constexpr size_t kChunk = size_t{32} << 20;  // what a pool reserves at a time, as measured
constexpr size_t kBytes = size_t{4} << 20;

// A host function that holds its stream until it is opened.
struct Gate {
  std::atomic<bool> open{false};
  static void Wait(void* self) {
    while (!static_cast<Gate*>(self)->open) std::this_thread::yield();
  }
};

class Pool : public testing::Test {
 protected:
  void SetUp() override {
    gcap_sim_set_seed(0);
    for (auto* stream : {&s_, &t_, &u_}) {
      ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    }
    ASSERT_EQ(cudaSuccess, cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    cudaMemPoolProps props = Props();
    ASSERT_EQ(cudaSuccess, cudaMemPoolCreate(&pool_, &props));
    Set(cudaMemPoolAttrReleaseThreshold, UINT64_MAX);
  }

  void TearDown() override {
    gate_.open = true;
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    for (auto stream : {s_, t_, u_}) EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
    EXPECT_EQ(cudaSuccess, cudaEventDestroy(event_));
    if (pool_) {
      EXPECT_EQ(cudaSuccess, cudaMemPoolDestroy(pool_));
    }
    EXPECT_EQ(0u, gcap_sim_live(nullptr));
    gcap_sim_set_device_bytes(0, 0);
    size_t free, total;
    EXPECT_EQ(cudaSuccess, cudaMemGetInfo(&free, &total));
    EXPECT_EQ(total, free) << "a pool that is gone still holds memory";
    cudaGetLastError();
  }

  static cudaMemPoolProps Props() {
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    return props;
  }

  void Set(cudaMemPoolAttr attr, uint64_t value) {
    ASSERT_EQ(cudaSuccess, cudaMemPoolSetAttribute(pool_, attr, &value));
  }

  void Off(cudaMemPoolAttr attr) {
    int off = 0;
    ASSERT_EQ(cudaSuccess, cudaMemPoolSetAttribute(pool_, attr, &off));
  }

  uint64_t Get(cudaMemPoolAttr attr) {
    uint64_t value = 0;
    EXPECT_EQ(cudaSuccess, cudaMemPoolGetAttribute(pool_, attr, &value));
    return value;
  }

  char* Take(cudaStream_t stream, size_t bytes = kBytes) {
    void* p = nullptr;
    EXPECT_EQ(cudaSuccess, cudaMallocFromPoolAsync(&p, bytes, pool_, stream));
    return static_cast<char*>(p);
  }

  void Free(void* p, cudaStream_t stream) { EXPECT_EQ(cudaSuccess, cudaFreeAsync(p, stream)); }

  void Close(cudaStream_t stream) { ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(stream, Gate::Wait, &gate_)); }

  void Order(cudaStream_t before, cudaStream_t after) {
    ASSERT_EQ(cudaSuccess, cudaEventRecord(event_, before));
    ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(after, event_, 0));
  }

  cudaStream_t s_, t_, u_;
  cudaEvent_t event_;
  cudaMemPool_t pool_ = nullptr;
  Gate gate_;
};

TEST_F(Pool, TheSameStreamHasItsMemoryAgainAtOnce) {
  Close(s_);
  char* a = Take(s_);
  Free(a, s_);
  EXPECT_EQ(a, Take(s_));
  Free(a, s_);
}

TEST_F(Pool, AnotherStreamHasItOnlyBehindAnEvent) {
  Off(cudaMemPoolReuseAllowOpportunistic);
  Off(cudaMemPoolReuseAllowInternalDependencies);
  Close(s_);
  char* a = Take(s_);
  Free(a, s_);
  char* b = Take(t_);
  EXPECT_NE(a, b);
  Order(s_, t_);
  EXPECT_EQ(a, Take(t_));
  Free(a, t_);
  Free(b, t_);
}

TEST_F(Pool, EventsAreFollowedThroughOtherStreams) {
  Close(s_);
  char* a = Take(s_);
  Free(a, s_);
  Order(s_, t_);
  Order(t_, u_);
  EXPECT_EQ(a, Take(u_));
  Free(a, u_);
}

TEST_F(Pool, EventsAreNotFollowedWhenThatIsOff) {
  Off(cudaMemPoolReuseFollowEventDependencies);
  Off(cudaMemPoolReuseAllowInternalDependencies);
  Close(s_);
  char* a = Take(s_);
  Free(a, s_);
  Order(s_, t_);
  char* b = Take(t_);
  EXPECT_NE(a, b);
  Free(b, t_);
}

TEST_F(Pool, AnEventOrdersOnlyTheFreesBeforeIt) {
  Close(s_);
  char* a = Take(s_);
  Order(s_, t_);
  Free(a, s_);
  char* b = Take(t_);
  EXPECT_NE(a, b);
  Free(b, t_);
}

TEST_F(Pool, TheLegacyStreamOrdersBlockingStreams) {
  cudaStream_t blocking;
  ASSERT_EQ(cudaSuccess, cudaStreamCreate(&blocking));
  Close(blocking);
  char* a = Take(blocking);
  Free(a, blocking);
  EXPECT_EQ(a, Take(cudaStreamLegacy));
  Free(a, cudaStreamLegacy);
  EXPECT_EQ(a, Take(blocking));
  Free(a, blocking);
  gate_.open = true;
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(blocking));
}

TEST_F(Pool, ADoneFreeIsSeenWhenThatIsAllowed) {
  char* a = Take(s_);
  Free(a, s_);
  while (cudaStreamQuery(s_) != cudaSuccess) continue;
  EXPECT_EQ(a, Take(t_));
  Free(a, t_);
}

TEST_F(Pool, ADoneFreeIsSeenByASynchronisationAlways) {
  Off(cudaMemPoolReuseAllowOpportunistic);
  Off(cudaMemPoolReuseAllowInternalDependencies);
  Off(cudaMemPoolReuseFollowEventDependencies);
  char* a = Take(s_);
  Free(a, s_);
  while (cudaStreamQuery(s_) != cudaSuccess) continue;
  char* b = Take(t_);
  EXPECT_NE(a, b);
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(s_));
  EXPECT_EQ(a, Take(t_));
  Free(a, t_);
  Free(b, t_);
}

TEST_F(Pool, AWaitIsPutInWhenNothingElseIsLeft) {
  size_t free, total;
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&free, &total));
  gcap_sim_set_device_bytes(0, total - free + kChunk);
  char* pinned;
  ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&pinned), 1));
  Close(s_);
  char* a = Take(s_, kChunk);
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(a, 1, kChunk, s_));
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(pinned, a + kChunk - 1, 1, cudaMemcpyDeviceToHost, s_));
  Free(a, s_);
  EXPECT_EQ(a, Take(t_, kChunk));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(a, 2, kChunk, t_));
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(t_));
  Free(a, t_);
  gate_.open = true;
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(t_));
  EXPECT_EQ(1, *pinned) << "the other stream overtook the free";
  EXPECT_EQ(cudaSuccess, cudaFreeHost(pinned));
}

TEST_F(Pool, WithoutThatItIsOutOfMemory) {
  Off(cudaMemPoolReuseAllowInternalDependencies);
  size_t free, total;
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&free, &total));
  gcap_sim_set_device_bytes(0, total - free + kChunk);
  Close(s_);
  char* a = Take(s_, kChunk);
  Free(a, s_);
  void* p = &p;
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&p, kChunk, pool_, t_));
  EXPECT_EQ(nullptr, p);
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaGetLastError());
}

TEST_F(Pool, CountsWhatIsUsedAndReserved) {
  char* a = Take(s_);
  char* b = Take(s_);
  EXPECT_EQ(2 * kBytes, Get(cudaMemPoolAttrUsedMemCurrent));
  EXPECT_EQ(kChunk, Get(cudaMemPoolAttrReservedMemCurrent));
  Free(a, s_);
  Free(b, s_);
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(s_));
  EXPECT_EQ(0u, Get(cudaMemPoolAttrUsedMemCurrent));
  EXPECT_EQ(2 * kBytes, Get(cudaMemPoolAttrUsedMemHigh));
  EXPECT_EQ(kChunk, Get(cudaMemPoolAttrReservedMemHigh));
  Set(cudaMemPoolAttrUsedMemHigh, 0);
  EXPECT_EQ(0u, Get(cudaMemPoolAttrUsedMemHigh));
  Set(cudaMemPoolAttrReservedMemHigh, 0);
  EXPECT_EQ(kChunk, Get(cudaMemPoolAttrReservedMemHigh)) << "reset makes it the current value";
  EXPECT_EQ(cudaSuccess, cudaMemPoolTrimTo(pool_, kChunk));
  EXPECT_EQ(kChunk, Get(cudaMemPoolAttrReservedMemCurrent));
  EXPECT_EQ(cudaSuccess, cudaMemPoolTrimTo(pool_, 0));
  EXPECT_EQ(0u, Get(cudaMemPoolAttrReservedMemCurrent));
}

TEST_F(Pool, GivesBackAboveTheThresholdAtASynchronisation) {
  Set(cudaMemPoolAttrReleaseThreshold, kChunk);
  char* a = Take(s_, kChunk);
  char* b = Take(s_, kChunk);
  Free(a, s_);
  Free(b, s_);
  EXPECT_EQ(2 * kChunk, Get(cudaMemPoolAttrReservedMemCurrent));
  EXPECT_EQ(cudaSuccess, cudaEventRecord(event_, s_));
  EXPECT_EQ(cudaSuccess, cudaEventSynchronize(event_));
  EXPECT_EQ(kChunk, Get(cudaMemPoolAttrReservedMemCurrent));
}

TEST_F(Pool, PendingMemoryIsNotGivenBack) {
  Close(s_);
  char* a = Take(s_);
  Free(a, s_);
  EXPECT_EQ(cudaSuccess, cudaMemPoolTrimTo(pool_, 0));
  EXPECT_EQ(kChunk, Get(cudaMemPoolAttrReservedMemCurrent));
}

TEST_F(Pool, UnusedMemoryIsGivenToOthersWhoNeedIt) {
  size_t free, total;
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&free, &total));
  gcap_sim_set_device_bytes(0, total - free + kChunk);
  char* a = Take(s_);
  void* p;
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaMalloc(&p, kChunk));
  Free(a, s_);
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(s_));
  EXPECT_EQ(cudaSuccess, cudaMalloc(&p, kChunk));
  EXPECT_EQ(0u, Get(cudaMemPoolAttrReservedMemCurrent));
  EXPECT_EQ(cudaSuccess, cudaFree(p));
  cudaGetLastError();
}

TEST_F(Pool, HasAMaximum) {
  cudaMemPoolProps props = Props();
  props.maxSize = 2 * kBytes;
  cudaMemPool_t small;
  ASSERT_EQ(cudaSuccess, cudaMemPoolCreate(&small, &props));
  void *a, *b, *c;
  EXPECT_EQ(cudaSuccess, cudaMallocFromPoolAsync(&a, kBytes, small, s_));
  EXPECT_EQ(cudaSuccess, cudaMallocFromPoolAsync(&b, kBytes, small, s_));
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&c, 1, small, s_));
  Free(a, s_);
  Free(b, s_);
  EXPECT_EQ(cudaSuccess, cudaMemPoolDestroy(small));
}

TEST_F(Pool, OutlivesItsHandleWhileItsMemoryIsInUse) {
  char* a = Take(s_);
  EXPECT_EQ(cudaSuccess, cudaMemPoolDestroy(pool_));
  pool_ = nullptr;
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(a, 0, kBytes, s_));
  Free(a, s_);
}

TEST_F(Pool, FreeOfPoolMemoryDoesNotWait) {
  Close(s_);
  char* a = Take(t_);
  EXPECT_EQ(cudaSuccess, cudaFree(a));  // would wait for the gate
  EXPECT_EQ(a, Take(u_)) << "and the memory is anybody's";
  Free(a, u_);
}

TEST_F(Pool, TheDevicesPoolCanBeAnother) {
  cudaMemPool_t standard, current;
  ASSERT_EQ(cudaSuccess, cudaDeviceGetDefaultMemPool(&standard, 0));
  ASSERT_EQ(cudaSuccess, cudaDeviceGetMemPool(&current, 0));
  EXPECT_EQ(standard, current);
  ASSERT_EQ(cudaSuccess, cudaDeviceSetMemPool(0, pool_));
  void* p;
  ASSERT_EQ(cudaSuccess, cudaMallocAsync(&p, kBytes, s_));
  EXPECT_EQ(kBytes, Get(cudaMemPoolAttrUsedMemCurrent));
  Free(p, s_);
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemPoolDestroy(standard));
  ASSERT_EQ(cudaSuccess, cudaMemPoolDestroy(pool_));
  pool_ = nullptr;
  ASSERT_EQ(cudaSuccess, cudaDeviceGetMemPool(&current, 0));
  EXPECT_EQ(standard, current) << "a pool that goes leaves its place to the default one";
}

// Each round gives a chunk back to the device, so 9,000 rounds are more than the addresses that a device has.
TEST_F(Pool, AddressesComeAgainOnlyWhenTheyAreUsedUp) {
  constexpr size_t kRounds = 9000, kApart = 1000;
  Set(cudaMemPoolAttrReleaseThreshold, 0);
  std::vector<char*> seen;
  for (size_t i = 0; i < kRounds; ++i) {
    char* p = Take(s_, 1);
    ASSERT_NE(nullptr, p);
    Free(p, s_);
    ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(s_));
    if (seen.size() < kApart) {
      ASSERT_EQ(seen.end(), std::find(seen.begin(), seen.end(), p)) << "round " << i;
      seen.push_back(p);
    }
  }
}

TEST_F(Pool, ThreadsShareAPool) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      cudaStream_t stream;
      ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      for (int i = 0; i < 200; ++i) {
        char* p = Take(stream, 4096);
        unsigned char seen = 0;
        ASSERT_EQ(cudaSuccess, cudaMemsetAsync(p, 1 + t, 4096, stream));
        ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(&seen, p + 4095, 1, cudaMemcpyDeviceToHost, stream));
        ASSERT_EQ(1 + t, seen);
        Free(p, stream);
      }
      ASSERT_EQ(cudaSuccess, cudaStreamDestroy(stream));
    });
  }
  for (auto& thread : threads) thread.join();
}

// Every allocation is filled with a number of its own, and its bytes are looked at just before it is freed. Whatever
// the schedule and whoever reuses it, nobody else's number may show.
class PoolFuzz : public Pool, public testing::WithParamInterface<int> {};

TEST_P(PoolFuzz, NobodyEverMeetsAnothersBytes) {
  constexpr int kAllocations = 600;
  std::mt19937 random(GetParam());
  gcap_sim_set_seed(GetParam());
  if (random() % 2) Off(cudaMemPoolReuseAllowOpportunistic);
  if (random() % 2) Off(cudaMemPoolReuseFollowEventDependencies);
  if (random() % 2) Set(cudaMemPoolAttrReleaseThreshold, 0);
  gcap_sim_set_device_bytes(0, kChunk);  // tight: waits have to be put in
  unsigned char* seen;
  ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&seen), 2 * kAllocations));
  const cudaStream_t streams[] = {s_, t_, u_, cudaStreamLegacy};
  struct Live {
    char* base;
    size_t bytes;
    cudaStream_t stream;
    int number;
  };
  std::vector<Live> live;
  auto drop = [&](size_t at) {
    Live one = live[at];
    live.erase(live.begin() + static_cast<long>(at));
    ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(seen + 2 * one.number, one.base, 1, cudaMemcpyDeviceToHost, one.stream));
    ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(seen + 2 * one.number + 1, one.base + one.bytes - 1, 1,
                                           cudaMemcpyDeviceToHost, one.stream));
    Free(one.base, one.stream);
  };
  for (int i = 0; i < kAllocations; ++i) {
    cudaStream_t stream = streams[random() % 4];
    size_t bytes = 1 + random() % (size_t{6} << 20);
    void* p;
    while (cudaMallocFromPoolAsync(&p, bytes, pool_, stream) != cudaSuccess) {
      ASSERT_FALSE(live.empty());
      drop(random() % live.size());
      if (random() % 3 == 0) {
        ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
      }
    }
    for (const Live& other : live) {
      ASSERT_TRUE(static_cast<char*>(p) >= other.base + other.bytes || static_cast<char*>(p) + bytes <= other.base);
    }
    ASSERT_EQ(cudaSuccess, cudaMemsetAsync(p, 1 + i % 255, bytes, stream));
    live.push_back({static_cast<char*>(p), bytes, stream, i});
    if (random() % 2) drop(random() % live.size());
    if (random() % 4 == 0) Order(streams[random() % 4], streams[random() % 4]);
  }
  while (!live.empty()) drop(0);
  ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
  for (int i = 0; i < kAllocations; ++i) {
    ASSERT_EQ(1 + i % 255, seen[2 * i]) << "first byte of allocation " << i;
    ASSERT_EQ(1 + i % 255, seen[2 * i + 1]) << "last byte of allocation " << i;
  }
  EXPECT_EQ(0u, Get(cudaMemPoolAttrUsedMemCurrent));
  EXPECT_EQ(cudaSuccess, cudaFreeHost(seen));
}

INSTANTIATE_TEST_SUITE_P(Seeds, PoolFuzz, testing::Range(0, 8));

}  // namespace
