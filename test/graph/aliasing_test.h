// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// aliasing_test.h: runs on two buffers that lie to one another in several ways, and work that follows how they lie, as
// that of an engine which has a kernel of its own for each.
#ifndef GCAP_TEST_GRAPH_ALIASING_TEST_H_
#define GCAP_TEST_GRAPH_ALIASING_TEST_H_

#include <cstdlib>
#include <vector>

#include "test/graph/moving_test.h"

namespace gcap {
namespace testing {

// How the output lies to the input.
enum class Lie { kApart = 0, kEqual, kOverlapping, kTouching, kOverlappingBefore, kTouchingBefore };
constexpr int kNumLies = 6;

class AliasingTest : public GraphMoving {
 protected:
  void SetUp() override {
    GraphMoving::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory_), kMemoryBytes), cudaSuccess);
    ASSERT_EQ(cudaMemset(memory_, 0, kMemoryBytes), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&given_), sizeof(float)), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&seen_), sizeof(float)), cudaSuccess);
  }
  void TearDown() override {
    if (!IsSkipped()) {
      DestroyManager();
      GCAP_EXPECT_CUDA(cudaFree(memory_));
      GCAP_EXPECT_CUDA(cudaFreeHost(given_));
      GCAP_EXPECT_CUDA(cudaFreeHost(seen_));
    }
    GraphMoving::TearDown();
  }

  static ptrdiff_t ShiftOf(Lie lie) {
    constexpr ptrdiff_t kBytes = kFloatsBytes;
    constexpr ptrdiff_t kShifts[kNumLies] = {4 * kBytes, 0, kBytes / 2, kBytes, -kBytes / 2, -kBytes};
    return kShifts[static_cast<int>(lie)];
  }
  // Input and output at one of many places.
  std::vector<gcap_graph_buffer_t> ItemsAt(size_t place, Lie lie) const {
    char* const input = memory_ + 8 * kFloatsBytes * (1 + place % kPlaces) + kFloatsBytes;
    return {{"input", input, kFloatsBytes, 4}, {"output", input + ShiftOf(lie), kFloatsBytes, 4}};
  }
  // What an eager run adds, for each way of lying another number.
  static uint64_t AddendOf(ptrdiff_t shift) {
    return std::abs(shift) > static_cast<ptrdiff_t>(kFloatsBytes) ? 1 : static_cast<uint64_t>(100 + shift / 64);
  }
  // A run that must succeed, with the result of an eager run. The rest of `run` is given: id or key, and flags.
  gcap_run_outcome_t RunAt(gcap_run_t run, size_t place, Lie lie, const WorkOn& work) {
    const std::vector<gcap_graph_buffer_t> items = ItemsAt(place, lie);
    const gcap_graph_buffers_t buffers = BuffersOf(items);
    Give(items[0].address);
    WorkOn counted = [&](cudaStream_t stream, void* const* at) {
      ++calls_;
      return work(stream, at);
    };
    PlainCall call = {nullptr, Issue, &counted};
    run.stream = stream_->get();
    run.work = CallPlain;
    run.user = &call;
    run.buffers = &buffers;
    run.synchronize = true;
    run.result = &result_;
    gcap_run_result_init(&result_);
    const Outcome outcome(gcap_graph_manager_run(manager_, &run));
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    if (!run.capture_only) {
      EXPECT_EQ(Seen(items[1].address), *given_ + static_cast<float>(AddendOf(ShiftOf(lie))));
    }
    return result_.outcome;
  }
  gcap_run_outcome_t RunAt(size_t place, Lie lie, int id = kId) {
    return RunAt(RunOf(id, nullptr), place, lie, AddOfLie());
  }
  WorkOn AddOfLie() const {
    return [](cudaStream_t stream, void* const* at) {
      const ptrdiff_t shift = static_cast<char*>(at[1]) - static_cast<char*>(at[0]);
      return AddTo(stream, at[0], at[1], AddendOf(shift), 8);
    };
  }
  void ExpectAllReplay(const std::vector<Lie>& lies, int id = kId) {
    for (const Lie lie : lies) {
      EXPECT_EQ(RunAt(next_place_++, lie, id), GCAP_RUN_REPLAYED) << static_cast<int>(lie);
    }
  }

  // Another number than any run before had.
  void Give(void* input) {
    *given_ = static_cast<float>(++num_given_ % 4096);
    GCAP_EXPECT_CUDA(cudaMemcpyAsync(input, given_, sizeof(float), cudaMemcpyHostToDevice, stream_->get()));
  }
  float Seen(const void* output) const {
    *seen_ = -1;
    GCAP_EXPECT_CUDA(cudaMemcpyAsync(seen_, output, sizeof(float), cudaMemcpyDeviceToHost, stream_->get()));
    stream_->Synchronize();
    return *seen_;
  }
  Outcome Explain(gcap_graph_question_t question, int id = kId) const {
    return Outcome(gcap_graph_manager_explain(manager_, id, question));
  }

  static constexpr size_t kPlaces = 61, kMemoryBytes = 8 * kFloatsBytes * (kPlaces + 2);
  gcap_run_result_t result_ = {};
  size_t next_place_ = 1;
  uint32_t num_given_ = 0;
  char* memory_ = nullptr;
  float *given_ = nullptr, *seen_ = nullptr;  // on the host
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_ALIASING_TEST_H_
