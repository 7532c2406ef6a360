// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The pool allocator when CUDA calls fail whose failure no status tells, without pools, and with two devices. The walks
// over what returns a status are in test/fault.

#include <string>

#include "gcap/allocator.h"
#include "gtest/gtest.h"
#include "test/support/allocator_stats.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

gcap_allocator_t* CreatePool(int device_id) {
  gcap_pool_allocator_options_t options;
  gcap_pool_allocator_options_init(&options);
  options.device_id = device_id;
  gcap_allocator_t* allocator = nullptr;
  GCAP_EXPECT_OK(gcap_pool_allocator_create(&options, &allocator));
  return allocator;
}

TEST(PoolAllocatorFaults, OfDestroyAreLogged) {
  const Walked walked = WalkFaults([](Fault& fault) {
    gcap_allocator_t* allocator = CreatePool(1);
    const LogCatcher log;
    fault.Arm();
    gcap_allocator_destroy(allocator);
    fault.Disarm();
    EXPECT_EQ(fault.hit(), log.text().find("at the end of the pool allocator") != std::string::npos) << log.text();
    if (fault.hit()) fault.AllowKept();
  });
  EXPECT_EQ(walked.calls,
            8u);  // get device, set it, relax, synchronise, destroy the stream and the pool, and the way back
}

TEST(PoolAllocatorFaults, OfStatisticsAreLoggedAndGiveTheOldAnswer) {
  gcap_allocator_t* allocator = CreatePool(1);
  void* ptr = nullptr;
  GCAP_EXPECT_OK(gcap_allocator_alloc(allocator, 512, &ptr));
  gcap_allocator_stats_t before;
  gcap_allocator_get_stats(allocator, &before);
  EXPECT_GE(before.total_allocated_bytes, 512u);
  const Walked walked = WalkFaults([&](Fault& fault) {
    const LogCatcher log;
    fault.Arm();
    gcap_allocator_stats_t stats;
    gcap_allocator_get_stats(allocator, &stats);
    fault.Disarm();
    EXPECT_EQ(fault.hit(), log.text().find("TotalAllocated") != std::string::npos) << log.text();
    EXPECT_EQ(stats.total_allocated_bytes, before.total_allocated_bytes);
    EXPECT_EQ(stats.in_use_bytes, 512u);
  });
  EXPECT_EQ(walked.calls, 6u);
  GCAP_EXPECT_OK(gcap_allocator_free(allocator, ptr));
  gcap_allocator_destroy(allocator);
}

TEST(PoolAllocator, OfADeviceWithoutPoolsIsUnimplemented) {
  gcap_sim_fail_nth("cudaMemPoolCreate", 1, cudaErrorNotSupported);
  gcap_pool_allocator_options_t options;
  gcap_pool_allocator_options_init(&options);
  gcap_allocator_t* allocator = nullptr;
  GCAP_EXPECT_FAILS(gcap_pool_allocator_create(&options, &allocator), GCAP_UNIMPLEMENTED,
                    "device 0 has no memory pools");
  EXPECT_EQ(allocator, nullptr);
}

TEST(PoolAllocator, AllocatesOnItsOwnDeviceAndRefusesStreamsOfAnother) {
  gcap_allocator_t* allocator = CreatePool(1);
  EXPECT_EQ(StatsOf(allocator).device_id, 1);
  void* ptr = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_alloc(allocator, 512, &ptr));
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, ptr), cudaSuccess);
  EXPECT_EQ(attributes.device, 1);
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 0);
  GCAP_EXPECT_OK(gcap_allocator_free(allocator, ptr));
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  GCAP_EXPECT_FAILS(gcap_allocator_alloc_on_stream(allocator, 512, stream, &ptr), GCAP_INVALID_ARGUMENT,
                    "the stream is on device 0, the pool allocator on device 1");
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  gcap_allocator_destroy(allocator);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
