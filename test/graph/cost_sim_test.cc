// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What executables are said to take: recorded numbers, then what was seen to go. Each case has a device of its own,
// since nothing of what was seen is forgotten.

#include "lib/graph/cost.h"

#include <cuda_runtime_api.h>

#include <vector>

#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kKernels = 1000;
constexpr size_t kRecorded = GCAP_GRAPH_EXEC_BYTES + kKernels * GCAP_GRAPH_KERNEL_NODE_BYTES;
constexpr size_t kMiB = size_t{1} << 20;
constexpr int kEnough = GCAP_GRAPH_MEASURED_BYTES / kRecorded + 4;

class GraphCost : public ::testing::Test {
 protected:
  void SetUp() override {
    static int next = 0;
    device_ = next++;
    GCAP_EXPECT_CUDA(cudaSetDevice(device_));
  }
  void TearDown() override {
    for (void* memory : taken_) GCAP_EXPECT_CUDA(cudaFree(memory));
    GCAP_EXPECT_CUDA(cudaSetDevice(0));
  }
  void Take(size_t bytes) {
    taken_.push_back(nullptr);
    GCAP_EXPECT_CUDA(cudaMalloc(&taken_.back(), bytes));
  }
  // An executable for which that much goes.
  void Make(size_t bytes) {
    const gcap_graph_cost_watch_t watch = gcap_graph_cost_begin(device_, kKernels, /*may_measure=*/true);
    if (bytes > 0) Take(bytes);
    gcap_graph_cost_end(&watch, /*made=*/true);
  }
  size_t Bytes() const { return gcap_graph_exec_bytes(device_, kKernels); }

  int device_ = 0;
  std::vector<void*> taken_;
};

TEST_F(GraphCost, IsTheRecordedOneUntilEnoughWent) {
  EXPECT_EQ(gcap_graph_exec_bytes(device_, 0), GCAP_GRAPH_EXEC_BYTES);
  for (size_t made = 0; made + kRecorded < GCAP_GRAPH_MEASURED_BYTES; made += kRecorded) {
    Make(kMiB);
    EXPECT_EQ(Bytes(), kRecorded);
  }
  Make(kMiB);
  EXPECT_NEAR(static_cast<double>(Bytes()), 1.0 * kMiB, 16.0);
  EXPECT_NEAR(static_cast<double>(gcap_graph_exec_bytes(device_, 0)),
              static_cast<double>(GCAP_GRAPH_EXEC_BYTES) * kMiB / kRecorded, 16.0);
  EXPECT_EQ(gcap_graph_exec_bytes(device_ + 1, kKernels), kRecorded) << "of another device";
}

// Destroyed ones leave memory to the next: that nothing goes for these tells nothing.
TEST_F(GraphCost, IsNotWhatWentForExecutablesInThePlaceOfOthers) {
  Make(kMiB);
  for (int i = 0; i < kEnough; ++i) {
    gcap_graph_cost_forget(device_, kKernels);
    Make(0);
  }
  EXPECT_EQ(Bytes(), kRecorded);
  for (int i = 0; i < kEnough; ++i) Make(kMiB);
  EXPECT_NEAR(static_cast<double>(Bytes()), 1.0 * kMiB, 16.0);
}

TEST_F(GraphCost, IsNotMeasuredWhereOthersAllocate) {
  for (int i = 0; i < kEnough; ++i) Make(16 * kMiB);
  EXPECT_EQ(Bytes(), kRecorded) << "too much went";
  for (int i = 0; i < kEnough; ++i) {
    const gcap_graph_cost_watch_t watch = gcap_graph_cost_begin(device_, kKernels, true);
    GCAP_EXPECT_CUDA(cudaFree(taken_.back()));
    taken_.pop_back();
    gcap_graph_cost_end(&watch, true);
  }
  EXPECT_EQ(Bytes(), kRecorded) << "memory came back";
  for (int i = 0; i < kEnough; ++i) {
    const gcap_graph_cost_watch_t first = gcap_graph_cost_begin(device_, kKernels, true);
    const gcap_graph_cost_watch_t second = gcap_graph_cost_begin(device_, kKernels, true);
    Take(kMiB);
    gcap_graph_cost_end(i % 2 == 0 ? &first : &second, true);
    gcap_graph_cost_end(i % 2 == 0 ? &second : &first, true);
  }
  EXPECT_EQ(Bytes(), kRecorded) << "two at once";
}

TEST_F(GraphCost, IsNotMeasuredWhereTheDriverDoesNotTell) {
  for (int i = 0; i < kEnough; ++i) {
    gcap_sim_fail_nth(i % 3 == 2 ? "cudaGetDevice" : "cudaMemGetInfo", 1 + i % 2, cudaErrorUnknown);
    Make(kMiB);
    gcap_sim_fail_nth(nullptr, 0, cudaSuccess);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  }
  GCAP_EXPECT_CUDA(cudaSetDevice(0));
  for (int i = 0; i < kEnough; ++i) Make(kMiB);
  EXPECT_EQ(Bytes(), kRecorded) << "of a device that is not current";
}

TEST_F(GraphCost, OfWhatWasNotMadeIsNothing) {
  for (int i = 0; i < kEnough; ++i) {
    const gcap_graph_cost_watch_t watch = gcap_graph_cost_begin(device_, kKernels, true);
    Take(kMiB);
    gcap_graph_cost_end(&watch, /*made=*/false);
  }
  EXPECT_EQ(Bytes(), kRecorded);
  for (const int device : {-1, 64, 1000}) {
    const gcap_graph_cost_watch_t watch = gcap_graph_cost_begin(device, kKernels, true);
    gcap_graph_cost_end(&watch, true);
    gcap_graph_cost_forget(device, kKernels);
    EXPECT_EQ(gcap_graph_exec_bytes(device, kKernels), kRecorded) << device;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
