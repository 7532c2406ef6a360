// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Two captured graphs, then eager traffic that would reuse their intermediates, then replays. With reservations
// everything is right; without them, by a test hook, the damage is seen both ways: eager writes reach a graph's output,
// and replays reach eager data. A pause in the middle of the graphs makes sure of the former.

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <vector>

#include "gtest/gtest.h"
#include "lib/scratch/inner.h"
#include "lib/scratch/test_hooks.h"
#include "test/scratch/chain_graph.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kFloats = 1024;
constexpr size_t kBytes = kFloats * sizeof(float);
constexpr unsigned char kEager = 0x5a;

// What went wrong.
struct Damage {
  int outputs = 0;      // of graphs
  int eager_bytes = 0;  // of data that an eager run kept over replays
};

class GraphTraffic : public DeviceTest {
 protected:
  static void SetUpTestSuite() {
    // The races that are made here on purpose are seen in the results. The simulator reads this at the first CUDA call,
    // and a GPU ignores it.
    setenv("GCAP_SIM_CHECKS", "race=off", /*overwrite=*/1);
  }
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (gcap_stream_t** stream : {&a_, &b_, &eager_}) GCAP_ASSERT_OK(gcap_stream_create(0, stream));
    GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device_));
    gcap_scratch_options_t options;
    gcap_scratch_options_init(&options);
    options.initial_chunk_bytes = 16 * kBytes;
    GCAP_ASSERT_OK(gcap_scratch_create(device_, &options, &scratch_));
  }
  void TearDown() override {
    for (gcap_stream_t* stream : {a_, b_, eager_}) {
      if (stream != nullptr) GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    }
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    gcap_allocator_destroy(device_);
    for (gcap_stream_t* stream : {a_, b_, eager_}) GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }

  // Allocates all that there is to have and writes it. The scratch need not grow for it: that might wait for a graph
  // that is stopped.
  std::vector<void*> WriteEagerly(gcap_stream_t* stream, size_t kept_bytes) {
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(scratch_, &stats);
    std::vector<void*> blocks((stats.total_allocated_bytes - stats.in_use_bytes - kept_bytes) / kBytes, nullptr);
    for (void*& block : blocks) {
      GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, kBytes, stream, &block));
      EXPECT_EQ(cudaMemsetAsync(block, kEager, kBytes, gcap_stream_handle(stream)), cudaSuccess);
    }
    gcap_scratch_get_stats(scratch_, &stats);
    EXPECT_EQ(stats.num_extensions, 1u);
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    return blocks;
  }
  void Free(const std::vector<void*>& blocks) {
    for (void* block : blocks) GCAP_EXPECT_OK(gcap_scratch_free(scratch_, block));
  }
  int CountDamage(const std::vector<void*>& blocks, gcap_stream_t* stream) {
    int damaged = 0;
    std::vector<unsigned char> content(kBytes);
    for (void* block : blocks) {
      const cudaStream_t handle = gcap_stream_handle(stream);
      EXPECT_EQ(cudaMemcpyAsync(content.data(), block, kBytes, cudaMemcpyDeviceToHost, handle), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(handle), cudaSuccess);
      for (unsigned char byte : content) damaged += byte != kEager;
    }
    return damaged;
  }
  void WarmUp() {
    for (gcap_stream_t* stream : {a_, b_}) {
      void* block = nullptr;
      GCAP_ASSERT_OK(gcap_scratch_alloc(scratch_, 2 * kBytes, stream, &block));
      GCAP_ASSERT_OK(gcap_scratch_free(scratch_, block));
      GCAP_ASSERT_OK(gcap_scratch_reservation_prepare(scratch_, stream));
    }
  }
  void SynchronizeGraphs() {
    for (gcap_stream_t* stream : {a_, b_}) GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  }

  Damage RunAll(Pause* pause) {
    Damage damage;
    WarmUp();
    ChainGraph first(scratch_, a_, kFloats, nullptr, pause);
    ChainGraph second(scratch_, b_, kFloats, nullptr, pause);
    SynchronizeGraphs();
    const size_t kept_bytes =
        gcap_scratch_reservation_bytes(first.reservation()) + gcap_scratch_reservation_bytes(second.reservation());
    // Each replay is stopped in its middle, when its first block is written and not read yet.
    for (ChainGraph* graph : {&first, &second}) {
      pause->Arm();
      graph->Launch(5.0f);
      pause->AwaitArrival();
      const std::vector<void*> blocks = WriteEagerly(eager_, kept_bytes);
      pause->GoOn();
      SynchronizeGraphs();
      damage.outputs += !graph->OutputIsInput();
      damage.eager_bytes += CountDamage(blocks, eager_);
      Free(blocks);
    }
    // An eager run's data from before the replays is read after them.
    const std::vector<void*> blocks = WriteEagerly(eager_, kept_bytes);
    for (float round = 0; round < 3; ++round) {
      first.Launch(100 * round);
      second.Launch(100 * round + 50);
      SynchronizeGraphs();
      damage.outputs += !first.OutputIsInput() + !second.OutputIsInput();
    }
    damage.eager_bytes += CountDamage(blocks, eager_);
    Free(blocks);
    GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
    return damage;
  }

  gcap_allocator_t* device_ = nullptr;
  gcap_scratch_t* scratch_ = nullptr;
  gcap_stream_t* a_ = nullptr;
  gcap_stream_t* b_ = nullptr;
  gcap_stream_t* eager_ = nullptr;
};

TEST_F(GraphTraffic, ReservationsKeepGraphsAndEagerRunsApart) {
  Pause pause;
  const Damage damage = RunAll(&pause);
  EXPECT_EQ(damage.outputs, 0);
  EXPECT_EQ(damage.eager_bytes, 0);
}

TEST_F(GraphTraffic, WithoutReservationsTheDamageIsSeen) {
  gcap_scratch_test_hooks_t hooks = {};
  hooks.ignore_reservations = true;
  gcap_scratch_set_test_hooks(scratch_, &hooks);
  Pause pause;
  const Damage damage = RunAll(&pause);
  EXPECT_EQ(damage.outputs, 2) << "of both graphs, when they were stopped";
  EXPECT_GT(damage.eager_bytes, 0);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
