// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ORT_PARALLEL: ONNX Runtime calls kernels on threads of its own. By itself, since tsan does not see how its threads
// wait for one another.

#include <string>

#include "gtest/gtest.h"
#include "test/ort/onnx_model.h"
#include "test/ort/runtime.h"

namespace gcap {
namespace testing {
namespace {

using ParallelTest = OrtTest;

TEST_F(ParallelTest, KernelsUseTheStreamOfTheRunAndNothingIsCaptured) {
  const std::string model = OnnxModel()
                                .Node("Add", "inner", {"a", "b"}, {"s"})
                                .Node("Relu", "relu", {"s"}, {"r"})
                                .Node("Add", "outer", {"r", "b"}, {"c"})
                                .Input("a", {4})
                                .Input("b", {4})
                                .Output("c", {4})
                                .Bytes();
  for (const std::string graphs : {"0", "1"}) {
    OrtSession session(ort_, env(), device(), model, {{"enable_cuda_graph", graphs}}, nullptr, GCAP_ORT_PARALLEL);
    ASSERT_EQ(session.error(), "");
    DeviceTensor a(ort_, env(), device(), {4}, {0, 0, 0, 0}), b(ort_, env(), device(), {4}, {1, 2, 3, 4}),
        c(ort_, env(), device(), {4}, {});
    session.BindInput("a", a);
    session.BindInput("b", b);
    session.BindOutput("c", c);
    for (int i = 0; i < 4; ++i) {
      const float x = static_cast<float>(i);
      a.Set({x, x, x, x});
      EXPECT_EQ(session.Run(), "");
      EXPECT_EQ(c.Get(), (Floats{x + 2, x + 4, x + 6, x + 8}));
    }
  }
}

// A copy for a node on the CPU comes after the kernels of its run, and its memory is read by those that follow. Was:
// the copy went to the stream of the thread that ONNX Runtime called, and nothing ordered the two.
TEST_F(ParallelTest, CopiesForTheCpuAreOnTheStreamOfTheRun) {
  constexpr int64_t kSize = 1 << 14;
  const std::string model = OnnxModel()
                                .Node("Relu", "relu", {"a"}, {"r"})
                                .Int("to", kOnnxDouble)
                                .Node("Cast", "to_double", {"r"}, {"d"})
                                .Node("Neg", "of_double", {"d"}, {"n"})
                                .Int("to", kOnnxFloat)
                                .Node("Cast", "to_float", {"n"}, {"h"})
                                .Node("Neg", "neg", {"h"}, {"c"})
                                .Input("a", {kSize})
                                .Output("c", {kSize})
                                .Bytes();
  OrtSession session(ort_, env(), device(), model, {}, nullptr, GCAP_ORT_PARALLEL);
  ASSERT_EQ(session.error(), "");
  for (int i = 0; i < 20; ++i) {
    const float x = static_cast<float>(i) / 10;
    Floats c;
    EXPECT_EQ(session.RunOnHost({"a"}, {{kSize}}, {Floats(kSize, x)}, "c", &c), "");
    ASSERT_EQ(c.size(), static_cast<size_t>(kSize));
    for (const float value : c) ASSERT_EQ(value, x);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
