// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Maxpool2d: numbers against loops (exactly: a maximum rounds nothing), capture and replay, and bad input.

#include <algorithm>
#include <climits>

#include "gcap/capture.h"
#include "gcap/ops/conv2d.h"
#include "test/ops/op_test.h"

namespace gcap {
namespace testing {
namespace {

// Windows that touch, overlap, leave gaps, leave a rest at the border, cover all, and do nothing.
constexpr size_t kSize = sizeof(gcap_maxpool2d_options_t);
constexpr gcap_maxpool2d_options_t kShapes[] = {
    {kSize, 32, 16, 8, 8, 2, 2}, {kSize, 2, 3, 7, 9, 3, 1}, {kSize, 1, 2, 9, 5, 2, 3}, {kSize, 3, 1, 5, 5, 2, 2},
    {kSize, 2, 2, 4, 4, 4, 1},   {kSize, 1, 1, 1, 1, 1, 1}, {kSize, 2, 3, 5, 6, 1, 1}, {kSize, 1, 1, 3, 3, 2, 5},
};

std::vector<float> Reference(const gcap_maxpool2d_options_t& o, const std::vector<float>& x) {
  std::vector<float> y;
  for (int plane = 0; plane < o.n * o.c; ++plane) {
    for (int top = 0; top + o.window <= o.h; top += o.stride) {
      for (int left = 0; left + o.window <= o.w; left += o.stride) {
        float largest = x[(plane * o.h + top) * o.w + left];
        for (int i = 0; i < o.window * o.window; ++i) {
          largest = std::max(largest, x[(plane * o.h + top + i / o.window) * o.w + left + i % o.window]);
        }
        y.push_back(largest);
      }
    }
  }
  return y;
}

class Maxpool2d : public OpTest {
 protected:
  // Attaches the stream's handle, as a warm-up run would.
  void SetUp() override {
    OpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    cudnnHandle_t handle = nullptr;
    GCAP_ASSERT_OK(gcap_stream_cudnn_handle(stream_, &handle));
  }
};

struct Problem {
  Problem(const gcap_maxpool2d_options_t& o, unsigned seed)
      : options(o),
        x(RandomFloats(size_t(o.n) * o.c * o.h * o.w, seed)),
        device_x(x),
        device_y(std::vector<float>(Reference(o, x).size())) {
    GCAP_EXPECT_OK(gcap_maxpool2d_create(&o, &plan));
  }
  ~Problem() { gcap_maxpool2d_destroy(plan); }

  gcap_status_t Run(gcap_stream_t* stream) { return gcap_maxpool2d_run(plan, stream, device_x.get(), device_y.get()); }

  gcap_maxpool2d_options_t options;
  std::vector<float> x;
  DeviceFloats device_x, device_y;
  gcap_maxpool2d_t* plan = nullptr;
};

TEST_F(Maxpool2d, EqualsTheLoopForAllShapes) {
  unsigned seed = 1;
  for (const gcap_maxpool2d_options_t& o : kShapes) {
    SCOPED_TRACE(::testing::Message() << o.h << "x" << o.w << ", window " << o.window << ", stride " << o.stride
                                      << ", seed " << seed);
    Problem problem(o, seed++);
    GCAP_ASSERT_OK(problem.Run(stream_));
    Synchronize();
    const std::vector<float> expected = Reference(o, problem.x);
    EXPECT_EQ(problem.device_y.Get(), expected);
    int shape[4];
    gcap_maxpool2d_output_shape(problem.plan, shape);
    EXPECT_EQ(shape[0], o.n);
    EXPECT_EQ(shape[1], o.c);
    EXPECT_EQ(size_t(shape[0]) * shape[1] * shape[2] * shape[3], expected.size());
  }
}

TEST_F(Maxpool2d, ReplayEqualsEagerAlsoAfterTheInputsChanged) {
  Problem problem(kShapes[0], 20);
  Graph graph(stream_, [&] { GCAP_EXPECT_OK(problem.Run(stream_)); });
  EXPECT_EQ(graph.CountKernels(), 1u);
  for (unsigned seed : {21u, 22u}) {
    const std::vector<float> x = RandomFloats(problem.x.size(), seed);
    problem.device_x.Set(x);
    graph.Replay();
    EXPECT_EQ(problem.device_y.Get(), Reference(problem.options, x));
  }
}

TEST_F(Maxpool2d, CreateNamesTheBadOption) {
  const struct {
    int gcap_maxpool2d_options_t::*member;
    const char* name;
    int value;
  } kBadMembers[] = {
      {&gcap_maxpool2d_options_t::n, "n", 0},           {&gcap_maxpool2d_options_t::c, "c", 0},
      {&gcap_maxpool2d_options_t::h, "h", -3},          {&gcap_maxpool2d_options_t::w, "w", 0},
      {&gcap_maxpool2d_options_t::window, "window", 0}, {&gcap_maxpool2d_options_t::stride, "stride", INT_MIN},
      {&gcap_maxpool2d_options_t::window, "window", 9},  // the input is 8 x 8
  };
  gcap_maxpool2d_t* plan = nullptr;
  for (const auto& [member, name, value] : kBadMembers) {
    gcap_maxpool2d_options_t bad = kShapes[0];
    bad.*member = value;
    GCAP_EXPECT_FAILS(gcap_maxpool2d_create(&bad, &plan), GCAP_INVALID_ARGUMENT,
                      std::string(name) + " is " + std::to_string(value));
    EXPECT_EQ(plan, nullptr);
  }
  GCAP_EXPECT_FAILS(gcap_maxpool2d_create(nullptr, &plan), GCAP_INVALID_ARGUMENT, "options is NULL");
  GCAP_EXPECT_FAILS(gcap_maxpool2d_create(&kShapes[0], nullptr), GCAP_INVALID_ARGUMENT, "out_pool is NULL");
}

TEST_F(Maxpool2d, RunNamesTheNullAddress) {
  Problem p(kShapes[0], 30);
  const auto bad = GCAP_INVALID_ARGUMENT;
  const float* x = p.device_x.get();
  float* y = p.device_y.get();
  GCAP_EXPECT_FAILS(gcap_maxpool2d_run(nullptr, stream_, x, y), bad, "pool is NULL");
  GCAP_EXPECT_FAILS(gcap_maxpool2d_run(p.plan, nullptr, x, y), bad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_maxpool2d_run(p.plan, stream_, nullptr, y), bad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_maxpool2d_run(p.plan, stream_, x, nullptr), bad, "y is NULL");
}

TEST_F(Maxpool2d, CreateIsRefusedWhileTheThreadCapturesAndFailsTheCapture) {
  gcap_capture_t* capture = nullptr;
  gcap_maxpool2d_t* plan = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_maxpool2d_create(&kShapes[0], &plan), GCAP_FAILED_PRECONDITION, "capturing");
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED,
                    "a pooling is planned before the capture");
  EXPECT_EQ(graph, nullptr);
}

TEST_F(Maxpool2d, DestroyOfNullIsFine) { gcap_maxpool2d_destroy(nullptr); }

}  // namespace
}  // namespace testing
}  // namespace gcap
