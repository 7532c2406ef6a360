// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A provider's kernel that refuses an output on its input, in a graph that moves to such tensors: the run is refused as
// an eager one, and a replay never answers in its place.

#include <vector>

#include "gtest/gtest.h"
#include "test/nodes/node_rig.h"
#include "test/support/device_test.h"

namespace gcap {
namespace testing {
namespace {

class NodeMoves : public DeviceTest {
 protected:
  static constexpr int64_t kRows = 16;
  static constexpr size_t kCount = kRows * kRows;

  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    attributes_.Ints("perm", {1, 0});
    const int x = model_.Value("x", {kRows, kRows}), y = model_.Value("y", {kRows, kRows});
    model_.inputs.push_back(x);
    model_.outputs.push_back(y);
    model_.Node("Transpose", "t", {x}, {y}, attributes_.get());
    for (float** memory : {&x_, &y_}) {
      ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(memory), 3 * kCount * sizeof(float)), cudaSuccess);
    }
  }
  void TearDown() override {
    GCAP_EXPECT_CUDA(cudaFree(x_));
    GCAP_EXPECT_CUDA(cudaFree(y_));
    DeviceTest::TearDown();
  }

  // Runs on these tensors. If that is OK the result is right.
  Outcome Run(NodeSession* session, float* x, float* y, gcap_bindings_t bindings) {
    std::vector<float> values(kCount), result(kCount);
    for (size_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i);
    GCAP_EXPECT_CUDA(cudaMemcpy(x, values.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
    const gcap_tensor_t input = At(x), output = At(y);
    gcap_run_options_t options = RunWithId(0);
    options.bindings = bindings;
    const Outcome outcome(gcap_session_run(session->session(), &options, &input, &output));
    GCAP_EXPECT_CUDA(cudaMemcpy(result.data(), y, kCount * sizeof(float), cudaMemcpyDeviceToHost));
    size_t wrong = 0;
    for (size_t i = 0; i < kCount; ++i) wrong += result[i] != values[i % kRows * kRows + i / kRows];
    if (outcome.ok()) {
      EXPECT_EQ(wrong, 0u) << "of " << kCount << " values";
    }
    return outcome;
  }

  float *x_ = nullptr, *y_ = nullptr;
  ModelBuilder model_;

 private:
  static gcap_tensor_t At(float* data) {
    gcap_tensor_t tensor = {};
    tensor.data = data;
    tensor.dtype = GCAP_DTYPE_F32;
    tensor.rank = 2;
    tensor.shape[0] = tensor.shape[1] = kRows;
    return tensor;
  }

  Attributes attributes_;
};

TEST_F(NodeMoves, AnOutputThatComesOntoTheInputIsRefusedAsByAnEagerRun) {
  NodeSession session(NodeOptions());
  GCAP_ASSERT_OK(session.Create(model_));
  for (int run = 0; run < 4; ++run) EXPECT_TRUE(Run(&session, x_, y_, GCAP_BINDINGS_RELOCATE).ok());
  EXPECT_EQ(session.Info(0).captures, 1u);
  EXPECT_TRUE(Run(&session, x_ + kCount, y_ + kCount, GCAP_BINDINGS_RELOCATE).ok());
  EXPECT_EQ(session.Info(0).replays, 4u) << "tensors that are apart are replayed on";
  for (const size_t shift : {size_t{0}, size_t{64}, kCount - 1}) {
    SCOPED_TRACE(shift);
    const Outcome outcome = Run(&session, x_, x_ + shift, GCAP_BINDINGS_RELOCATE);
    EXPECT_STREQ(gcap_code_name(outcome.code), "INVALID_ARGUMENT");
    EXPECT_TRUE(outcome.Names("overlaps")) << outcome.message;
  }
  EXPECT_EQ(session.Info(0).replays, 4u);
}

TEST_F(NodeMoves, CopiedTensorsMayOverlap) {
  NodeSession session(NodeOptions());
  GCAP_ASSERT_OK(session.Create(model_));
  for (int run = 0; run < 3; ++run) EXPECT_TRUE(Run(&session, x_, y_, GCAP_BINDINGS_COPY).ok());
  for (const size_t shift : {size_t{0}, size_t{64}}) {
    EXPECT_TRUE(Run(&session, x_, x_ + shift, GCAP_BINDINGS_COPY).ok());
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
