// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A model of open sizes: how many kernels a node keeps, and which.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "test/ort/onnx_model.h"
#include "test/ort/runtime.h"

namespace gcap {
namespace testing {
namespace {

// Of what no graph and no stream has; and the one that came last, which was in use when the others were counted.
constexpr int kKept = 16 + 1;
constexpr int kManySizes = 40;

// y = w * x, with weights of 2: each element is twice the sum of its column.
std::string Twice() {
  return OnnxModel()
      .Node("MatMul", "matmul", {"x", "w"}, {"y"})
      .Constant("w", {1, 1}, std::vector<float>{2})
      .Input("x", {kAnySize, 1})
      .Output("y", {kAnySize, 1})
      .Bytes();
}

class ShapesTest : public OrtTest {
 protected:
  void Create(const Options& options) {
    session_ = std::make_unique<OrtSession>(ort_, env(), device(), Twice(), options);
    ASSERT_EQ(session_->error(), "");
  }
  void TearDown() override {
    session_.reset();
    OrtTest::TearDown();
  }

  // Runs with `rows` rows of `value`, and expects what is right. The tensors live as long as the result.
  struct Bound {
    std::unique_ptr<DeviceTensor> x, y;
  };
  Bound Bind(OrtBinding* binding, int64_t rows, float value) {
    const Floats values(static_cast<size_t>(rows), value);
    Bound bound = {std::make_unique<DeviceTensor>(ort_, env(), device(), Shape{rows, 1}, values),
                   std::make_unique<DeviceTensor>(ort_, env(), device(), Shape{rows, 1}, Floats{})};
    binding->BindInput("x", *bound.x);
    binding->BindOutput("y", *bound.y);
    return bound;
  }
  void ExpectRightRun(int64_t rows, const Options& options) {
    OrtBinding binding(ort_, session_->get());
    const Bound bound = Bind(&binding, rows, static_cast<float>(rows));
    EXPECT_EQ(binding.Run(options), "");
    EXPECT_EQ(bound.y->Get(), Floats(static_cast<size_t>(rows), 2 * static_cast<float>(rows)));
  }

  std::unique_ptr<OrtSession> session_;
};

TEST_F(ShapesTest, KernelsOfShapesThatWereUsedLongAgoEnd) {
  Create({});
  for (int round = 0; round < 2; ++round) {
    for (int rows = 1; rows <= kManySizes; ++rows) ExpectRightRun(rows, {});
    EXPECT_EQ(plugin().live_kernels, kKept);
  }
  // The ones used last are found again, and one that is used again and again stays.
  const int made = plugin().made_kernels;
  for (int rows = kManySizes - kKept + 1; rows <= kManySizes; ++rows) ExpectRightRun(rows, {});
  EXPECT_EQ(plugin().made_kernels, made);
  for (int rows = kManySizes + 1; rows <= 2 * kManySizes; ++rows) {
    ExpectRightRun(rows, {});
    ExpectRightRun(kManySizes, {});
  }
  EXPECT_EQ(plugin().made_kernels, made + kManySizes);
  session_.reset();
  EXPECT_EQ(plugin().live_kernels, 0);
}

TEST_F(ShapesTest, KernelsOfGraphsStayAsLongAsTheGraphs) {
  Create({{"enable_cuda_graph", "1"}});
  OrtBinding binding(ort_, session_->get());
  const Bound bound = Bind(&binding, /*rows=*/3, 5);
  EXPECT_EQ(binding.Run({{"gpu_graph_id", "1"}}), "");
  EXPECT_EQ(plugin().captured_computes, 1);
  for (int rows = 10; rows < 10 + kManySizes; ++rows) ExpectRightRun(rows, {{"gpu_graph_id", "-1"}});
  EXPECT_EQ(plugin().live_kernels, kKept + 1);
  bound.x->Set({7, 8, 9});
  const int computes = plugin().computes;
  EXPECT_EQ(binding.Run({{"gpu_graph_id", "1"}}), "");
  EXPECT_EQ(plugin().computes, computes) << "it was a replay";
  EXPECT_EQ(bound.y->Get(), (Floats{14, 16, 18}));
  if (ort_->version() < 27) return;  // SessionReleaseCapturedGraph came with 1.27
  Ok(api().SessionReleaseCapturedGraph(session_->get(), 1));
  for (int rows = 60; rows < 60 + kManySizes; ++rows) ExpectRightRun(rows, {{"gpu_graph_id", "-1"}});
  EXPECT_EQ(plugin().live_kernels, kKept);
}

// Each run leaves its work on the stream. Nobody waits, so a kernel may end only when the stream has passed its work.
TEST_F(ShapesTest, KernelsWhoseWorkIsUnderWayStay) {
  Create({});
  plugin().watches_ends = true;
  OrtBinding binding(ort_, session_->get());
  std::vector<Bound> all;
  for (int rows = 1; rows <= kManySizes; ++rows) {
    all.push_back(Bind(&binding, rows, static_cast<float>(rows)));
    EXPECT_EQ(binding.Run({{"disable_synchronize_execution_providers", "1"}}), "");
  }
  EXPECT_EQ(plugin().early_ends, 0);
  for (int rows = kManySizes + 1; rows < kManySizes + 4; ++rows) ExpectRightRun(rows, {});
  EXPECT_EQ(plugin().live_kernels, kKept);
  EXPECT_EQ(plugin().early_ends, 0);
  for (int rows = 1; rows <= kManySizes; ++rows) {
    EXPECT_EQ(all[rows - 1].y->Get(), Floats(static_cast<size_t>(rows), 2 * static_cast<float>(rows)));
  }
}

// Threads that bring the same new shapes at once, and others' shapes in between.
TEST_F(ShapesTest, ThreadsThatBringNewShapesAtOnce) {
  Create({});
  plugin().watches_ends = true;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this] {
      for (int rows = 1; rows <= kManySizes; ++rows) ExpectRightRun(rows, {});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(plugin().early_ends, 0);
  ExpectRightRun(kManySizes + 1, {});
  EXPECT_EQ(plugin().live_kernels, kKept);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
