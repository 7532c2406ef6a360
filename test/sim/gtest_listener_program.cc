// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Tests of which two must fail, though no assertion of theirs does: gtest_listener_test.sh runs them.

#include <cuda_runtime_api.h>

#include "gcap_sim_gtest.h"
#include "gtest/gtest.h"

namespace {

cudaStream_t NewStream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}

// Fills the same memory on two streams, which only the event orders.
void FillTwice(bool ordered) {
  cudaStream_t first = NewStream();
  cudaStream_t second = NewStream();
  cudaEvent_t event = nullptr;
  void* memory = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(memory, 1, 64, first), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, first), cudaSuccess);
  EXPECT_EQ(ordered ? cudaStreamWaitEvent(second, event, 0) : cudaSuccess, cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(memory, 2, 64, second), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(second), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(first), cudaSuccess);
}

TEST(Listener, FailsARace) { FillTwice(/*ordered=*/false); }

TEST(Listener, PassesWhatIsOrdered) { FillTwice(/*ordered=*/true); }

TEST(Listener, FailsALeak) { NewStream(); }

TEST(Listener, PassesAfterALeak) { FillTwice(/*ordered=*/true); }

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  gcap_sim::InstallGoogleTestListener(argc > 1 ? gcap_sim::Leaks::kIgnore : gcap_sim::Leaks::kReport);
  return RUN_ALL_TESTS();
}
