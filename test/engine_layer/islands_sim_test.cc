// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The graph layer of examples/engine_layer on the simulator: what it answers, and that an island's work is done once
// whatever call fails. The work shifts a row of bytes by one, so a second time shows.

#include <cuda_runtime_api.h>

#include "examples/engine_layer/islands.h"
#include "test/support/device_test.h"
#include "test/support/faults.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kBytes = 64;
constexpr int kRuns = 6;  // an eager one, a captured one, and replays

class IslandsSim : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&row_), kBytes), cudaSuccess);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&other_), kBytes), cudaSuccess);
    key_.from = row_;
    key_.to = other_;
  }
  void TearDown() override {
    EXPECT_EQ(cudaFree(other_), cudaSuccess);
    EXPECT_EQ(cudaFree(row_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }

  // The row is 0, 1, 2, …
  void Fill() {
    unsigned char host[kBytes];
    for (size_t i = 0; i < kBytes; ++i) host[i] = static_cast<unsigned char>(i);
    ASSERT_EQ(cudaMemcpy(row_, host, kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  }
  // How often the row was shifted.
  int Shifts() {
    unsigned char first = 0;
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(&first, row_, 1, cudaMemcpyDeviceToHost), cudaSuccess);
    return first;
  }

  bool Issue() {
    if (cudaMemcpyAsync(other_, row_ + 1, kBytes - 1, cudaMemcpyDeviceToDevice, stream_) == cudaSuccess &&
        cudaMemcpyAsync(row_, other_, kBytes - 1, cudaMemcpyDeviceToDevice, stream_) == cudaSuccess) {
      return true;
    }
    (void)cudaGetLastError();  // the caller knows
    return false;
  }

  // As an engine runs an island. False: a call of the engine's own failed.
  bool Run() {
    const int answer = islands_begin(&key_);
    if (answer == 1) return true;
    if (!Issue()) {
      if (answer == 0) islands_abort(&key_);
      return false;
    }
    return answer == -1 || islands_end(&key_) == 0 || Issue();
  }

  cudaStream_t stream_ = nullptr;
  char* row_ = nullptr;
  char* other_ = nullptr;
  island_key_t key_ = {};
};

// The capture fails by a call whose failure the engine does not look at: nothing has run, and the engine does it again.
TEST_F(IslandsSim, ACaptureThatFailsIsIssuedAgain) {
  Fill();
  ASSERT_TRUE(islands_create(stream_));
  EXPECT_EQ(islands_begin(&key_), -1);
  EXPECT_TRUE(Issue());
  EXPECT_EQ(islands_begin(&key_), 0);
  EXPECT_TRUE(Issue());
  void* memory = nullptr;
  EXPECT_NE(cudaMalloc(&memory, kBytes), cudaSuccess);
  EXPECT_EQ(islands_end(&key_), -1);
  EXPECT_EQ(Shifts(), 1);
  EXPECT_TRUE(Issue());
  EXPECT_EQ(Shifts(), 2);
  EXPECT_TRUE(islands_destroy());
}

TEST_F(IslandsSim, AnIslandIsThatOfAllOfItsKey) {
  Fill();
  ASSERT_TRUE(islands_create(stream_));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Run());
  EXPECT_EQ(islands_begin(&key_), 1);
  island_key_t other = key_;
  ++other.variant;
  EXPECT_EQ(islands_begin(&other), -1);
  other = key_;
  other.weights = row_;
  EXPECT_EQ(islands_begin(&other), -1);
  islands_invalidate();
  EXPECT_EQ(islands_begin(&key_), -1);
  EXPECT_TRUE(islands_destroy());
}

TEST_F(IslandsSim, EachIslandRunsOnceWhateverFails) {
  int num_judged = 0;
  const Walked walked = WalkFaults([&](Fault& fault) {
    Fill();
    ASSERT_TRUE(islands_create(stream_));
    fault.Arm();
    bool is_done = true;
    for (int i = 0; i < kRuns && is_done; ++i) is_done = Run();
    fault.Disarm();
    const int shifts = Shifts();
    if (is_done) {
      EXPECT_EQ(shifts, kRuns) << fault.function();
    }
    num_judged += is_done;
    EXPECT_TRUE(islands_destroy());
  });
  EXPECT_TRUE(walked.functions.count("cudaGraphLaunch"));
  EXPECT_TRUE(walked.functions.count("cudaStreamEndCapture"));
  EXPECT_GE(num_judged, static_cast<int>(walked.calls) - 4);  // four copies of the engine's own
}

}  // namespace
}  // namespace testing
}  // namespace gcap
