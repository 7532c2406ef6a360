// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Allocators whose refusal cannot be described for want of host memory: what becomes of the memory must not hang on it.
// Was: a status without memory was RESOURCE_EXHAUSTED, so a block in use went back to its owner, who gave it twice.

#include <functional>

#include "gcap/allocator_ops.h"
#include "gcap/external_allocator.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

alignas(256) char memory[1024];
int num_frees = 0;

void* SameMemory(size_t) { return memory; }
void CountFree(void*) { ++num_frees; }

// Every step of a refusal: its status alone cannot be made, and with it whatever is said about it.
constexpr int kLacks[] = {1, 2, 100};

TEST(ShortMemory, ExternalBlockInUseStaysWithItsOwner) {
  gcap_external_allocator_options_t options;
  gcap_external_allocator_options_init(&options);
  options.alloc = SameMemory;
  options.free = CountFree;
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_external_allocator_create(&options, &allocator));
  void* owned = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_alloc(allocator, 256, &owned));
  num_frees = 0;
  for (int lack : kLacks) {
    void* again = nullptr;
    const HeapFailure no_memory(lack);
    GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator, 256, &again), GCAP_LIBRARY_ERROR, "");
    EXPECT_GE(no_memory.hits(), 1);
    EXPECT_EQ(again, nullptr);
  }
  EXPECT_EQ(num_frees, 0);
  GCAP_EXPECT_OK(gcap_allocator_free(allocator, owned));
  EXPECT_EQ(num_frees, 1);
  gcap_allocator_destroy(allocator);
}

TEST(ShortMemory, ExternalBlockThatCannotBeNotedGoesBack) {
  gcap_external_allocator_options_t options;
  gcap_external_allocator_options_init(&options);
  options.alloc = SameMemory;
  options.free = CountFree;
  int failed = 0;
  for (int hits = 1; hits > 0; failed += hits) {
    gcap_allocator_t* allocator = nullptr;
    GCAP_ASSERT_OK(gcap_external_allocator_create(&options, &allocator));
    num_frees = 0;
    void* block = nullptr;
    Outcome outcome(nullptr);
    {
      const HeapFailure no_memory(1, failed);
      outcome = Outcome(gcap_allocator_alloc(allocator, 256, &block));
      hits = no_memory.hits();
    }
    EXPECT_EQ(outcome.code, hits > 0 ? GCAP_RESOURCE_EXHAUSTED : GCAP_OK) << outcome.message;
    EXPECT_EQ(num_frees, hits);
    EXPECT_EQ(block != nullptr, hits == 0);
    if (hits > 0) GCAP_EXPECT_OK(gcap_allocator_alloc(allocator, 256, &block));
    GCAP_EXPECT_OK(gcap_allocator_free(allocator, block));
    gcap_allocator_destroy(allocator);
  }
  EXPECT_GE(failed, 2) << "its place, and its note";
}

// Each allocation of each creation fails once, but for that of a pool: the simulator stops without memory.
TEST(ShortMemory, AnAllocatorThatCannotBeMadeLeavesNothing) {
  gcap_allocator_t* upstream = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &upstream));
  const std::function<gcap_status_t(gcap_allocator_t**)> creations[] = {
      [](gcap_allocator_t** out) { return gcap_device_allocator_create(0, out); },
      [](gcap_allocator_t** out) { return gcap_pinned_allocator_create(out); },
      [](gcap_allocator_t** out) {
        gcap_external_allocator_options_t options;
        gcap_external_allocator_options_init(&options);
        options.alloc = SameMemory;
        options.free = CountFree;
        return gcap_external_allocator_create(&options, out);
      },
  };
  for (const auto& create : creations) {
    for (int round = 0; round < 2; ++round) {  // in the first, what the simulator keeps is made
      bool made = false;
      for (int skip = 0; !made; ++skip) {
        SCOPED_TRACE(skip);
        const long before = LiveBlocks();
        gcap_allocator_t* allocator = nullptr;
        gcap_status_t status = nullptr;
        {
          const HeapFailure no_memory(1, skip);
          status = create(&allocator);
          made = no_memory.hits() == 0;
        }
        EXPECT_EQ(gcap_status_code(status), made ? GCAP_OK : GCAP_RESOURCE_EXHAUSTED);
        EXPECT_EQ(allocator != nullptr, made);
        gcap_status_free(status);
        gcap_allocator_destroy(allocator);
        EXPECT_TRUE(round == 0 || LiveBlocks() == before) << LiveBlocks() - before;
      }
    }
  }
  gcap_allocator_destroy(upstream);
}

// Of the heap calls of a creation the last one makes the allocator.
TEST(ShortMemory, APoolThatCannotBeGivenOutEndsItsPool) {
  gcap_pool_allocator_options_t options;
  gcap_pool_allocator_options_init(&options);
  gcap_allocator_t* allocator = nullptr;
  gcap_status_t status = nullptr;
  size_t live = 0;
  for (int skip = 100; status == nullptr && skip >= 0; --skip) {
    gcap_allocator_destroy(allocator);
    live = gcap_sim_live(nullptr);
    const HeapFailure no_memory(1, skip);
    status = gcap_pool_allocator_create(&options, &allocator);
    ASSERT_EQ(status == nullptr, allocator != nullptr);
  }
  GCAP_EXPECT_FAILS(status, GCAP_RESOURCE_EXHAUSTED, "no host memory for an allocator");
  EXPECT_EQ(allocator, nullptr);
  EXPECT_EQ(gcap_sim_live(nullptr), live);
}

// Callers free memory and try again when the answer is RESOURCE_EXHAUSTED, so it must not be CUDA_ERROR; nor may any
// other failure of the driver look like it.
TEST(ShortMemory, DeviceMemoryThatIsUsedUpIsToldFromOtherFailures) {
  gcap_allocator_t* device = nullptr;
  gcap_allocator_t* pool = nullptr;
  gcap_pool_allocator_options_t options;
  gcap_pool_allocator_options_init(&options);
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device));
  GCAP_ASSERT_OK(gcap_pool_allocator_create(&options, &pool));
  const struct {
    gcap_allocator_t* allocator;
    const char* call;
  } rows[] = {{device, "cudaMalloc"}, {pool, "cudaMallocFromPoolAsync"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.call);
    for (cudaError_t error : {cudaErrorMemoryAllocation, cudaErrorUnknown}) {
      void* ptr = nullptr;
      gcap_sim_fail_nth(row.call, 1, error);
      const HeapFailure no_memory(100);
      const gcap_code_t expected = error == cudaErrorMemoryAllocation ? GCAP_RESOURCE_EXHAUSTED : GCAP_CUDA_ERROR;
      GCAP_EXPECT_FAILS(gcap_allocator_alloc(row.allocator, 256, &ptr), expected, "");
      EXPECT_GE(no_memory.hits(), 1);
      EXPECT_EQ(ptr, nullptr);
    }
  }
  gcap_allocator_destroy(pool);
  gcap_allocator_destroy(device);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
