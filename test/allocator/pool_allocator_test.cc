// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The pool allocator: what it does beyond driver_allocator_test, which it shares with the others: the order of streams,
// streams that are gone, captures of others, what it keeps.

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "gcap/allocator.h"
#include "gcap/capture.h"
#include "gcap/scratch.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kBytes = 4096;

class PoolAllocator : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    gcap_pool_allocator_options_init(&options_);
    GCAP_ASSERT_OK(gcap_stream_create(0, &stream_));
    GCAP_ASSERT_OK(gcap_stream_create(0, &other_));
    Create();
  }
  void TearDown() override {
    gcap_allocator_destroy(allocator_);
    GCAP_EXPECT_OK(gcap_stream_destroy(other_));
    GCAP_EXPECT_OK(gcap_stream_destroy(stream_));
  }

  void Create() {
    gcap_allocator_destroy(allocator_);
    GCAP_ASSERT_OK(gcap_pool_allocator_create(&options_, &allocator_));
  }
  void* AllocOn(gcap_stream_t* stream, size_t bytes = kBytes) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_allocator_alloc_on_stream(allocator_, bytes, stream, &ptr));
    return ptr;
  }
  void Free(void* ptr) { GCAP_EXPECT_OK(gcap_allocator_free(allocator_, ptr)); }
  gcap_allocator_stats_t Stats() {
    gcap_allocator_stats_t stats;
    gcap_allocator_get_stats(allocator_, &stats);
    return stats;
  }
  // Fills the block and reads it back, in the order of the stream.
  void ExpectHolds(void* ptr, gcap_stream_t* stream, int byte) {
    std::vector<unsigned char> actual(kBytes);
    EXPECT_EQ(cudaMemsetAsync(ptr, byte, kBytes, gcap_stream_handle(stream)), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(actual.data(), ptr, kBytes, cudaMemcpyDeviceToHost, gcap_stream_handle(stream)),
              cudaSuccess);
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    EXPECT_EQ(actual, std::vector<unsigned char>(kBytes, static_cast<unsigned char>(byte)));
  }

  // Frees the block while work that uses it is still to come on `handle`, which is that of stream_, and lets another
  // stream ask for as much: were the free in any other order, it could get the block now, and the work would not see
  // what it wrote there.
  void ExpectFreedInOrderOf(cudaStream_t handle, void* ptr) {
    ExpectHolds(ptr, stream_, 1);  // any copy, before the stream is held, does what copies do once
    void* copy = AllocOn(stream_);
    Gate gate;
    gate.Hold(handle);
    EXPECT_EQ(cudaMemsetAsync(ptr, 5, kBytes, handle), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(copy, ptr, kBytes, cudaMemcpyDeviceToDevice, handle), cudaSuccess);
    Free(ptr);
    void* second = AllocOn(other_);
    EXPECT_NE(second, ptr);
    ExpectHolds(second, other_, 6);
    gate.Open();
    std::vector<unsigned char> seen(kBytes);
    EXPECT_EQ(cudaMemcpyAsync(seen.data(), copy, kBytes, cudaMemcpyDeviceToHost, handle), cudaSuccess);
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
    EXPECT_EQ(seen, std::vector<unsigned char>(kBytes, 5));
    Free(second);
    Free(copy);
  }

  gcap_pool_allocator_options_t options_;
  gcap_stream_t* stream_ = nullptr;
  gcap_stream_t* other_ = nullptr;
  gcap_allocator_t* allocator_ = nullptr;
};

TEST_F(PoolAllocator, GivesMemoryInTheOrderOfTheStream) {
  void* ptr = AllocOn(stream_);
  ExpectHolds(ptr, stream_, 3);
  Free(ptr);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  EXPECT_EQ(Stats().num_allocs, 1u);
}

TEST_F(PoolAllocator, FreesInTheOrderOfTheStreamThatAllocated) {
  ExpectFreedInOrderOf(gcap_stream_handle(stream_), AllocOn(stream_));
}

TEST_F(PoolAllocator, FreesABlockWhoseStreamIsGone) {
  void* ptr = AllocOn(other_);
  ExpectHolds(ptr, other_, 7);
  GCAP_EXPECT_OK(gcap_stream_destroy(other_));
  other_ = nullptr;
  Free(ptr);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  ptr = AllocOn(stream_);
  ExpectHolds(ptr, stream_, 8);
  Free(ptr);
}

// One of two wrappers ends and the stream goes on: its order still counts.
TEST_F(PoolAllocator, FreesInTheOrderOfAStreamOfWhichAnotherWrapperLives) {
  cudaStream_t handle = gcap_stream_handle(stream_);
  gcap_stream_t* wrapper = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(handle, GCAP_STREAM_EXTERNAL, 0, 0, &wrapper));
  void* ptr = AllocOn(wrapper);
  GCAP_EXPECT_OK(gcap_stream_destroy(wrapper));
  ExpectFreedInOrderOf(handle, ptr);
}

TEST_F(PoolAllocator, ServesTheDefaultStreamAndRefusesThatOfEachThread) {
  gcap_stream_t* wrapper = nullptr;
  GCAP_ASSERT_OK(
      gcap_stream_wrap(nullptr, GCAP_STREAM_USER, GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM, /*device_id=*/0, &wrapper));
  void* ptr = AllocOn(wrapper);
  ExpectHolds(ptr, wrapper, 2);
  Free(ptr);
  GCAP_EXPECT_OK(gcap_stream_destroy(wrapper));
  GCAP_ASSERT_OK(gcap_stream_wrap(cudaStreamPerThread, GCAP_STREAM_USER, 0, 0, &wrapper));
  ptr = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc_on_stream(allocator_, kBytes, wrapper, &ptr), GCAP_INVALID_ARGUMENT,
                    "cudaStreamPerThread");
  EXPECT_EQ(ptr, nullptr);
  GCAP_EXPECT_OK(gcap_stream_destroy(wrapper));
}

TEST_F(PoolAllocator, AskedForMemoryOnAStreamThatItsThreadCapturesFailsTheCapture) {
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
  void* ptr = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc_on_stream(allocator_, 5000, stream_, &ptr), GCAP_FAILED_PRECONDITION,
                    "5000 bytes (cudaMallocFromPoolAsync of the pool allocator)");
  EXPECT_EQ(ptr, nullptr);
  GCAP_EXPECT_FAILS(gcap_allocator_trim(allocator_), GCAP_FAILED_PRECONDITION, "cudaMemPoolTrimTo");
  EXPECT_EQ(Stats().num_allocs, 0u);
  gcap_allocator_t* second = nullptr;
  GCAP_EXPECT_FAILS(gcap_pool_allocator_create(&options_, &second), GCAP_FAILED_PRECONDITION,
                    "gcap_pool_allocator_create");
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "5000 bytes");
  EXPECT_EQ(graph, nullptr);
  Free(AllocOn(stream_));
}

TEST_F(PoolAllocator, WhatItRefusesBesidesMemoryLeavesTheCaptureAlone) {
  void* block = AllocOn(stream_);
  const uint64_t held_bytes = Stats().total_allocated_bytes;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_allocator_free(allocator_, block), GCAP_FAILED_PRECONDITION, "cudaFreeAsync");
  GCAP_EXPECT_FAILS(gcap_allocator_trim(allocator_), GCAP_FAILED_PRECONDITION, "cudaMemPoolTrimTo");
  EXPECT_EQ(Stats().total_allocated_bytes, held_bytes);
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));
  gcap_retained_release(retained);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  Free(block);
}

TEST_F(PoolAllocator, IsAnUpstreamForScratch) {
  gcap_scratch_t* scratch = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_create(allocator_, nullptr, &scratch));
  void* ptr = nullptr;
  GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, kBytes, stream_, &ptr));
  EXPECT_GE(Stats().in_use_bytes, kBytes);
  ExpectHolds(ptr, stream_, 11);
  GCAP_EXPECT_OK(gcap_scratch_free(scratch, ptr));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

// Nobody but the driver knows of a capture that gcap did not begin.
TEST_F(PoolAllocator, LeavesAStreamAloneThatSomebodyElseCaptures) {
  void* block = AllocOn(stream_);
  const cudaStream_t handle = gcap_stream_handle(stream_);
  ASSERT_EQ(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  void* ptr = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc_on_stream(allocator_, kBytes, stream_, &ptr), GCAP_FAILED_PRECONDITION,
                    "is capturing");
  EXPECT_EQ(ptr, nullptr);
  GCAP_EXPECT_FAILS(gcap_allocator_free(allocator_, block), GCAP_FAILED_PRECONDITION, "is capturing");
  EXPECT_EQ(Stats().in_use_bytes, kBytes);
  Free(AllocOn(other_));  // another stream is not concerned
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(handle, &graph), cudaSuccess);  // it was not disturbed
  size_t num_nodes = 99;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &num_nodes), cudaSuccess);
  EXPECT_EQ(num_nodes, 0u);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  Free(block);
}

TEST_F(PoolAllocator, KeepsMemoryUntilATrim) {
  void* ptr = AllocOn(stream_);
  Free(ptr);
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  EXPECT_GE(Stats().total_allocated_bytes, kBytes);
  EXPECT_EQ(Stats().num_shrinkages, 0u);
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  EXPECT_EQ(Stats().total_allocated_bytes, 0u);
  EXPECT_EQ(Stats().num_shrinkages, 1u);
}

TEST_F(PoolAllocator, ATrimLeavesWhatTheOptionSaysAndWhatIsInUse) {
  options_.bytes_kept_on_trim = kBytes;
  Create();
  Free(AllocOn(stream_));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  EXPECT_GE(Stats().total_allocated_bytes, kBytes);
  options_.bytes_kept_on_trim = 0;
  Create();
  void* ptr = AllocOn(stream_);
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  ExpectHolds(ptr, stream_, 4);
  Free(ptr);
}

TEST_F(PoolAllocator, WithoutAReleaseThresholdGivesMemoryBackWhenAStreamIsSynchronised) {
  options_.release_threshold_bytes = 0;
  Create();
  Free(AllocOn(stream_));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  EXPECT_EQ(Stats().total_allocated_bytes, 0u);
}

TEST_F(PoolAllocator, ServesSeveralThreadsOnTheirStreams) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      gcap_stream_t* stream = nullptr;
      GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
      for (int round = 0; round < 20; ++round) {
        void* ptr = AllocOn(stream);
        ExpectHolds(ptr, stream, t + 1);
        Free(ptr);
      }
      GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Stats().num_allocs, 80u);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

TEST_F(PoolAllocator, ReportsExhaustionWithTheBytes) {
  const size_t bytes = size_t{1} << 60;
  void* ptr = this;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc_on_stream(allocator_, bytes, stream_, &ptr), GCAP_RESOURCE_EXHAUSTED,
                    std::to_string(bytes));
  EXPECT_EQ(ptr, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(PoolAllocator, CreateRejectsBadInput) {
  gcap_allocator_t* allocator = allocator_;
  GCAP_EXPECT_FAILS(gcap_pool_allocator_create(nullptr, &allocator), GCAP_INVALID_ARGUMENT, "options is NULL");
  EXPECT_EQ(allocator, nullptr);
  GCAP_EXPECT_FAILS(gcap_pool_allocator_create(&options_, nullptr), GCAP_INVALID_ARGUMENT, "out_allocator is NULL");
  for (const int device_id : {-1, 999}) {
    options_.device_id = device_id;
    GCAP_EXPECT_FAILS(gcap_pool_allocator_create(&options_, &allocator), GCAP_INVALID_ARGUMENT,
                      "device_id is " + std::to_string(device_id));
    EXPECT_EQ(allocator, nullptr);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
