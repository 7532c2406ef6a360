// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs whose buffers are elsewhere at each replay: runs on buffers, binds, replays with addresses, and refusals.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/device_floats.h"
#include "test/support/kernels/plain_kernels.h"

namespace gcap {
namespace testing {
namespace {

constexpr int64_t kCount = 64;
constexpr size_t kBytes = kCount * sizeof(float);

// Device memory of kCount floats, all of one value at first.
class Floats {
 public:
  explicit Floats(float value) {
    GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory_), kBytes));
    Fill(value);
  }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  ~Floats() { GCAP_EXPECT_CUDA(cudaFree(memory_)); }

  void Fill(float value) {
    const std::vector<float> values(kCount, value);
    GCAP_EXPECT_CUDA(cudaMemcpy(memory_, values.data(), kBytes, cudaMemcpyHostToDevice));
  }
  std::vector<float> Read() const {
    std::vector<float> values(kCount);
    GCAP_EXPECT_CUDA(cudaMemcpy(values.data(), memory_, kBytes, cudaMemcpyDeviceToHost));
    return values;
  }
  // The value that all have; NaN if they differ.
  float value() const {
    const std::vector<float> values = Read();
    for (const float value : values) {
      if (value != values[0]) return NAN;
    }
    return values[0];
  }
  float* get() const { return memory_; }

 private:
  float* memory_ = nullptr;
};

// One kernel: output = relu(input).
gcap_status_t Relu(void* user, cudaStream_t stream, void* const* addresses) {
  ++*static_cast<int*>(user);
  int64_t count = kCount;
  void *input = addresses[0], *output = addresses[1];
  void* args[] = {&input, &output, &count};
  return GCAP_CUDA(
      cudaLaunchKernel(reinterpret_cast<const void*>(gcap_kernel_relu_f32), dim3(1), dim3(64), args, 0, stream));
}

class GraphMoving : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Create(0);
  }

  Outcome RunOn(gcap_graph_work_on_t work, float* input, float* output) {
    const gcap_graph_buffer_t items[] = {{"input", input, kBytes, 0}, {"output", output, kBytes, 0}};
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.items = items;
    buffers.count = 2;
    return Outcome(gcap_graph_manager_run_on(manager_, 0, stream_->get(), &buffers, work, &calls_, true));
  }

  int calls_ = 0;
};

TEST_F(GraphMoving, ReplaysOnOtherBuffersWithoutACapture) {
  const Floats first_input(-3), first_output(9), second_input(5), second_output(9);
  ASSERT_TRUE(RunOn(Relu, first_input.get(), first_output.get()).ok());
  EXPECT_EQ(calls_, 2) << "a rehearsal and the capture";
  EXPECT_EQ(first_output.value(), 0);
  GCAP_EXPECT_OK(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_MOVABLE));
  first_output.Read();
  const Outcome moved = RunOn(Relu, second_input.get(), second_output.get());
  EXPECT_TRUE(moved.ok()) << moved.message;
  EXPECT_EQ(calls_, 2) << "replayed";
  EXPECT_EQ(second_output.value(), 5);
  EXPECT_EQ(first_output.value(), 0) << "untouched";
  EXPECT_EQ(Info(0).captures, 1u);
  EXPECT_EQ(Info(0).replays, 2u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
