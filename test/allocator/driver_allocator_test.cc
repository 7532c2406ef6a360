// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The allocators of the driver's memory: one set of tests for all, since they promise the same.

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gcap/allocator.h"
#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "test/support/allocator_stats.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

struct Maker {
  const char* name;
  gcap_status_t (*create)(gcap_allocator_t** out_allocator);
  int device_id;
  cudaError_t (*raw_free)(void* ptr);
  const char* source;
};

gcap_status_t CreatePool(gcap_allocator_t** out_allocator) {
  gcap_pool_allocator_options_t options;
  gcap_pool_allocator_options_init(&options);
  return gcap_pool_allocator_create(&options, out_allocator);
}

constexpr Maker kMakers[] = {
    {"Device", [](gcap_allocator_t** out) { return gcap_device_allocator_create(0, out); }, 0, cudaFree,
     "cudaMalloc of the device allocator"},
    {"Pinned", gcap_pinned_allocator_create, -1, cudaFreeHost, "cudaHostAlloc of the pinned allocator"},
    {"Pool", CreatePool, 0, cudaFree, "cudaMallocFromPoolAsync of the pool allocator"},
};

class DriverAllocator : public DeviceTest, public ::testing::WithParamInterface<Maker> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_ASSERT_OK(GetParam().create(&allocator_));
  }
  void TearDown() override { gcap_allocator_destroy(allocator_); }

  void* Alloc(size_t bytes) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_allocator_alloc(allocator_, bytes, &ptr));
    return ptr;
  }
  void Free(void* ptr) { GCAP_EXPECT_OK(gcap_allocator_free(allocator_, ptr)); }
  void ExpectFreeRejected(void* ptr) {
    GCAP_EXPECT_FAILS(gcap_allocator_free(allocator_, ptr), GCAP_INVALID_ARGUMENT, "not handed out");
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  gcap_allocator_stats_t Stats() {
    gcap_allocator_stats_t stats;
    gcap_allocator_get_stats(allocator_, &stats);
    return stats;
  }

  gcap_allocator_t* allocator_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(All, DriverAllocator, ::testing::ValuesIn(kMakers),
                         [](const ::testing::TestParamInfo<Maker>& info) { return info.param.name; });

TEST_P(DriverAllocator, GivesAlignedMemoryThatHoldsData) {
  EXPECT_EQ(StatsOf(allocator_).device_id, GetParam().device_id);
  EXPECT_EQ(StatsOf(allocator_).alignment, 256u);
  std::vector<char> expected(1000), actual(1000);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<char>(i * 7);
  void* small = Alloc(1);
  void* ptr = Alloc(expected.size());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(small) % 256, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(ptr) % 256, 0u);
  EXPECT_EQ(cudaMemcpy(ptr, expected.data(), expected.size(), cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(actual.data(), ptr, actual.size(), cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(actual, expected);
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, ptr), cudaSuccess);
  EXPECT_EQ(attributes.type, GetParam().device_id < 0 ? cudaMemoryTypeHost : cudaMemoryTypeDevice);
  Free(ptr);
  Free(small);
}

TEST_P(DriverAllocator, RejectsWhatItDidNotHandOut) {
  void* ptr = Alloc(1024);
  int local = 0;
  ExpectFreeRejected(&local);
  ExpectFreeRejected(static_cast<char*>(ptr) + 256);
  EXPECT_EQ(Stats().in_use_bytes, 1024u);
  Free(ptr);
  ExpectFreeRejected(ptr);
}

TEST_P(DriverAllocator, Counts) {
  void* first = Alloc(100);
  void* second = Alloc(300);
  void* third = nullptr;
  GCAP_EXPECT_OK(gcap_allocator_reserve(allocator_, 50, &third));
  Free(second);
  gcap_allocator_stats_t stats = Stats();
  EXPECT_EQ(stats.limit_bytes, 0u);
  EXPECT_EQ(stats.in_use_bytes, 150u);
  EXPECT_EQ(stats.requested_in_use_bytes, 150u);
  const bool caches = GetParam().create == CreatePool;
  EXPECT_TRUE(caches ? stats.total_allocated_bytes >= 150 : stats.total_allocated_bytes == 150)
      << stats.total_allocated_bytes;
  EXPECT_EQ(stats.max_in_use_bytes, 450u);
  EXPECT_EQ(stats.max_alloc_bytes, 300u);
  EXPECT_EQ(stats.num_allocs, 3u);
  EXPECT_EQ(stats.num_reserves, 1u);
  Free(first);
  Free(third);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

TEST_P(DriverAllocator, KnowsManyBlocks) {
  std::vector<void*> blocks;
  for (size_t i = 1; i <= 200; ++i) blocks.push_back(Alloc(i));
  EXPECT_EQ(Stats().in_use_bytes, 200u * 201 / 2);
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937(1));
  for (void* block : blocks) Free(block);
  for (void* block : blocks) ExpectFreeRejected(block);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

TEST_P(DriverAllocator, ServesSeveralThreads) {
  std::vector<std::thread> threads;
  for (size_t t = 1; t <= 4; ++t) {
    threads.emplace_back([this, t] {
      for (int round = 0; round < 25; ++round) {
        void* first = Alloc(t * 16);
        void* second = Alloc(t * 32);
        Free(first);
        Free(second);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  EXPECT_EQ(Stats().num_allocs, 200u);
}

TEST_P(DriverAllocator, RefusesAFreeWhileItsThreadCapturesAndLeavesTheCaptureAlone) {
  void* ptr = Alloc(64);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream, nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_allocator_free(allocator_, ptr), GCAP_FAILED_PRECONDITION, "captures");
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));  // it was not disturbed
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  Free(ptr);
}

// What a kernel does that allocates in a capture and does not look at the status: it must not get a graph.
TEST_P(DriverAllocator, AskedForMemoryWhileItsThreadCapturesFailsTheCaptureAndIsNamed) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  for (const bool reserve : {false, true}) {
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(stream, nullptr, &capture));
    void* other = this;
    const std::string call =
        reserve ? "gcap_allocator_reserve of 4096 bytes (" : "gcap_allocator_alloc of 4096 bytes (";
    GCAP_EXPECT_FAILS((reserve ? gcap_allocator_reserve : gcap_allocator_alloc)(allocator_, 4096, &other),
                      GCAP_FAILED_PRECONDITION, call);
    EXPECT_EQ(other, nullptr);
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    const Outcome outcome(gcap_capture_end(capture, &graph, &retained));
    EXPECT_EQ(graph, nullptr);
    EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
    EXPECT_TRUE(outcome.Names(call + GetParam().source + ")")) << outcome.message;
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_P(DriverAllocator, DoesNotDisturbAGlobalCaptureOfAnotherThread) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  gcap_capture_options_t options;
  gcap_capture_options_init(&options);
  options.mode = GCAP_CAPTURE_GLOBAL;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(stream, &options, &capture));
  std::thread([this] { Free(Alloc(64)); }).join();
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_P(DriverAllocator, DestroySaysWhatIsLost) {
  const LogCatcher log;
  void* ptr = Alloc(321);
  gcap_allocator_destroy(allocator_);
  allocator_ = nullptr;
  EXPECT_NE(log.text().find("1 blocks (321 bytes)"), std::string::npos) << log.text();
  EXPECT_EQ(GetParam().raw_free(ptr), cudaSuccess);  // it is still there
}

class DeviceAllocator : public DeviceTest {};

// Of pinned memory nobody knows how much there is: see the simulator's test.
TEST_F(DeviceAllocator, ReportsExhaustionWithTheBytes) {
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &allocator));
  const size_t bytes = size_t{1} << 60;
  void* ptr = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator, bytes, &ptr), GCAP_RESOURCE_EXHAUSTED, std::to_string(bytes));
  EXPECT_EQ(ptr, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  gcap_allocator_stats_t stats;
  gcap_allocator_get_stats(allocator, &stats);
  EXPECT_EQ(stats.num_allocs, 0u);
  gcap_allocator_destroy(allocator);
}

TEST_F(DeviceAllocator, CreateRejectsAMissingDevice) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  gcap_allocator_t* allocator = nullptr;
  for (int device_id : {-1, count, 999}) {
    GCAP_EXPECT_FAILS(gcap_device_allocator_create(device_id, &allocator), GCAP_INVALID_ARGUMENT,
                      "device_id is " + std::to_string(device_id));
    EXPECT_EQ(allocator, nullptr);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
