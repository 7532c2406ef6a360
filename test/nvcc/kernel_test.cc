// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap_sim_kernel.hpp: kernels' bodies that run for each thread of a grid, and twins made of functions.
#include "gcap_sim_kernel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "test/nvcc/host_object.h"

namespace {

using gcap_sim::RunGrid;
using gcap_sim::Thread;

gcap_sim_launch_t LaunchOf(dim3 grid, dim3 block, size_t shared_bytes = 0) {
  return {grid, block, shared_bytes, dim3(1, 1, 1)};
}

TEST(RunGrid, RunsEachThreadOnce) {
  using Index = std::tuple<unsigned, unsigned, unsigned>;
  std::set<std::pair<Index, Index>> seen;
  size_t count = 0;
  RunGrid(LaunchOf(dim3(3, 2, 2), dim3(4, 3, 2)), [&](const Thread& t) {
    seen.insert({{t.blockIdx.x, t.blockIdx.y, t.blockIdx.z}, {t.threadIdx.x, t.threadIdx.y, t.threadIdx.z}});
    ++count;
    EXPECT_EQ(3u, t.gridDim.x);
    EXPECT_EQ(3u, t.blockDim.y);
    EXPECT_LT(t.threadIdx.x, 4u);
    EXPECT_LT(t.threadIdx.y, 3u);
    EXPECT_LT(t.threadIdx.z, 2u);
  });
  EXPECT_EQ(size_t{12} * 24, seen.size());
  EXPECT_EQ(seen.size(), count);
}

// Each block reverses its part through shared memory: wrong without a barrier that holds.
TEST(RunGrid, ABarrierHoldsTheWholeBlock) {
  constexpr unsigned kBlock = 1024, kGrid = 3;
  struct Shared {
    int tile[kBlock];
  };
  std::vector<int> x(kBlock * kGrid), y(x.size(), -1);
  std::iota(x.begin(), x.end(), 0);
  RunGrid<Shared>(LaunchOf(dim3(kGrid), dim3(kBlock)), [&](const Thread& t, Shared& shared) {
    const unsigned first = t.blockIdx.x * t.blockDim.x;
    shared.tile[t.threadIdx.x] = x[first + t.threadIdx.x];
    t.SyncThreads();
    y[first + t.threadIdx.x] = shared.tile[t.blockDim.x - 1 - t.threadIdx.x];
  });
  for (unsigned i = 0; i < x.size(); ++i) {
    ASSERT_EQ(static_cast<int>(i / kBlock * kBlock + kBlock - 1 - i % kBlock), y[i]) << i;
  }
}

// A tree of sums: a barrier in a loop, in dynamic shared memory.
TEST(RunGrid, BarriersInALoop) {
  constexpr unsigned kBlock = 128;
  std::vector<int64_t> sums(5, 0);
  RunGrid(LaunchOf(dim3(5), dim3(kBlock), kBlock * sizeof(int64_t)), [&](const Thread& t) {
    int64_t* part = t.DynamicShared<int64_t>();
    part[t.threadIdx.x] = t.blockIdx.x * 1000 + t.threadIdx.x;
    for (unsigned step = t.blockDim.x / 2; step > 0; step /= 2) {
      t.SyncThreads();
      if (t.threadIdx.x < step) part[t.threadIdx.x] += part[t.threadIdx.x + step];
    }
    if (t.threadIdx.x == 0) sums[t.blockIdx.x] = part[0];
  });
  for (int64_t block = 0; block < 5; ++block) EXPECT_EQ(block * 1000 * kBlock + kBlock * (kBlock - 1) / 2, sums[block]);
}

// As on a GPU, a thread that has ended is not waited for.
TEST(RunGrid, ThreadsMayEndBeforeABarrier) {
  std::vector<unsigned> order;
  RunGrid(LaunchOf(dim3(2), dim3(4)), [&](const Thread& t) {
    if (t.threadIdx.x == 1) return;
    order.push_back(t.threadIdx.x);
    t.SyncThreads();
    order.push_back(10 + t.threadIdx.x);
  });
  const std::vector<unsigned> expected = {0, 2, 3, 10, 12, 13, 0, 2, 3, 10, 12, 13};
  EXPECT_EQ(expected, order);
}

// What a block left behind is no initial value for the next.
TEST(RunGrid, SharedMemoryIsNewInEachBlock) {
  struct Shared {
    uint32_t word;
  };
  std::vector<uint32_t> seen;
  RunGrid<Shared>(LaunchOf(dim3(2), dim3(1), sizeof(uint32_t)), [&](const Thread& t, Shared& shared) {
    uint32_t* dynamic = t.DynamicShared<uint32_t>();
    seen.insert(seen.end(), {shared.word, *dynamic});
    shared.word = *dynamic = 7;
  });
  EXPECT_EQ(std::vector<uint32_t>(4, 0xcdcdcdcd), seen);
}

TEST(RunGrid, AnEmptyStructAndAGridOfOneAreFine) {
  int count = 0;
  RunGrid(LaunchOf(dim3(1), dim3(1)), [&](const Thread& t) {
    t.SyncThreads();
    ++count;
  });
  EXPECT_EQ(1, count);
}

// --- Twins ----------------------------------------------------------------------------------------------------------

struct Range {
  int begin, end;
};

// y[i] = factor * x[i] in the range.
void RunScale(const gcap_sim_launch_t& launch, const float* x, float factor, float* y, Range range) {
  RunGrid(launch, [=](const Thread& t) {
    const int i = range.begin + static_cast<int>(t.blockIdx.x * t.blockDim.x + t.threadIdx.x);
    if (i < range.end) y[i] = factor * x[i];
  });
}

std::vector<gcap_sim_access_t> ScaleAccesses(const gcap_sim_launch_t&, const float* x, float, float* y, Range range) {
  const size_t count = static_cast<size_t>(range.end - range.begin);
  return {gcap_sim::Reads(x + range.begin, count), gcap_sim::Writes(y + range.begin, count)};
}

void RunNothing(const gcap_sim_launch_t&) {}

const bool g_scale = gcap_sim::RegisterTwin<RunScale, ScaleAccesses>("twin::scale<float>");
const bool g_nothing = gcap_sim::RegisterTwin<RunNothing>("nothing", reinterpret_cast<const void*>(&RunNothing));

constexpr auto* kScale = gcap_test::HostFunction<200, const float*, float, float*, Range>;

class Twins : public testing::Test {
 protected:
  static constexpr int kCount = 100;
  static constexpr size_t kBytes = kCount * sizeof(float);

  void SetUp() override {
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    for (float** memory : {&x_, &y_}) ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(memory), kBytes));
    object_.Add(kScale, "_ZN4twin5scaleIfEEvPKT_S1_PS1_N12_GLOBAL__N_15RangeE").End();
  }
  void TearDown() override {
    for (float* memory : {x_, y_}) EXPECT_EQ(cudaSuccess, cudaFree(memory));
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream_));
    gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_DEFAULT);
  }

  gcap_test::HostObject object_;
  cudaStream_t stream_;
  float *x_, *y_;
};

TEST_F(Twins, AFunctionOfTheKernelsParametersIsATwin) {
  std::vector<float> x(kCount), y(kCount);
  std::iota(x.begin(), x.end(), 0.0f);
  ASSERT_EQ(cudaSuccess, cudaMemcpy(x_, x.data(), kBytes, cudaMemcpyHostToDevice));
  gcap_test::Launch(kScale, dim3(4), dim3(32), stream_, static_cast<const float*>(x_), 2.0f, y_, Range{0, kCount});
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(y.data(), y_, kBytes, cudaMemcpyDeviceToHost, stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(2.0f * static_cast<float>(i), y[static_cast<size_t>(i)]);
  EXPECT_EQ(cudaSuccess,
            cudaLaunchKernel(reinterpret_cast<const void*>(&RunNothing), dim3(1), dim3(1), nullptr, 0, stream_));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
}

TEST_F(Twins, TheChecksGoByItsAccesses) {
  gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_RECORD);
  testing::internal::CaptureStderr();
  gcap_test::Launch(kScale, dim3(4), dim3(32), stream_, static_cast<const float*>(x_), 2.0f, y_, Range{10, 20});
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_OFF);
  ASSERT_EQ(1u, gcap_sim_check());
  testing::internal::GetCapturedStderr();
  const std::string report = gcap_sim_report(0);
  EXPECT_NE(std::string::npos, report.find("uninitialized")) << report;
  EXPECT_NE(std::string::npos, report.find("+ 40 of 400 bytes")) << report;
}

}  // namespace
