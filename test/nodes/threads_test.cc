// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Threads that make and run kernels at once, each with shapes and a graph id of its own.

#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "test/nodes/node_rig.h"
#include "test/support/device_test.h"

namespace gcap {
namespace testing {
namespace {

constexpr gcap_dtype_t f32 = GCAP_DTYPE_F32;

// All weights are 1: of images whose elements are all v, the convolution of 3 channels makes 3 * v, and the product of
// 4 maps 12 * v.
ModelBuilder Network(Attributes* trans_b) {
  ModelBuilder m;
  const int64_t batch = m.Symbol("batch"), open = GCAP_DIM_INFERRED;
  const int x = m.Value("x", {batch, 3, 4, 4}), filter = m.Constant("filter", {4, 3, 1, 1}, std::vector<float>(12, 1));
  const int weight = m.Constant("weight", {2, 4}, std::vector<float>(8, 1));
  const int maps = m.Value("maps", {open, open, open, open}), pooled = m.Value("pooled", {open, 4, 1, 1});
  const int features = m.Value("features", {open, open}), y = m.Value("y", {batch, 2});
  m.inputs = {x};
  m.outputs = {y};
  m.Node("Conv", "conv", {x, filter}, {maps});
  m.Node("GlobalAveragePool", "pool", {maps}, {pooled});
  m.Node("Flatten", "flatten", {pooled}, {features});
  m.Node("Gemm", "gemm", {features, weight}, {y}, trans_b->Int("transB", 1).get());
  return m;
}

class NodeThreads : public DeviceTest {};

TEST_F(NodeThreads, MakeAndRunKernelsAtOnce) {
  constexpr int kThreads = 4, kRuns = 5;
  Attributes trans_b;
  const ModelBuilder model = Network(&trans_b);
  NodeSession session(NodeOptions());
  GCAP_ASSERT_OK(session.Create(model));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&session, t] {
      const int64_t batch = t + 1;
      DeviceTensor x(f32, {batch, 3, 4, 4}), y(f32, {batch, 2});
      for (int run = 0; run < kRuns; ++run) {
        x.Set(Values(static_cast<size_t>(batch) * 48, run - t));
        GCAP_ASSERT_OK(session.Run(/*graph_id=*/t, {x.view()}, {y.view()}));
        EXPECT_EQ(y.Get(), Values(static_cast<size_t>(batch) * 2, 12 * (run - t)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The plans of products stay when the thread that made them, and with it its stream, is gone.
TEST_F(NodeThreads, KernelsOutliveTheThreadThatMadeThem) {
  Attributes trans_b;
  const ModelBuilder model = Network(&trans_b);
  NodeSession session(NodeOptions());
  DeviceTensor x(f32, {2, 3, 4, 4}), y(f32, {2, 2});
  const auto run = [&](int value) {
    x.Set(Values(96, value));
    GCAP_ASSERT_OK(session.Run(/*graph_id=*/0, {x.view()}, {y.view()}));
    EXPECT_EQ(y.Get(), Values(4, 12 * value));
  };
  std::thread([&] {
    GCAP_ASSERT_OK(session.Create(model));
    for (int value = 1; value < 4; ++value) run(value);
  }).join();
  for (int value = 1; value < 4; ++value) run(value);
  EXPECT_EQ(session.Info(0).captures, 1u) << "of this thread";
}

}  // namespace
}  // namespace testing
}  // namespace gcap
