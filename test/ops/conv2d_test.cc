// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Conv2d by cuDNN and the stream's handle of it: numbers against double-precision loops, capture and replay, and bad
// input.

#include "gcap/kit/ops/conv2d.h"

#include <algorithm>
#include <climits>
#include <cmath>

#include "gcap/capture.h"
#include "test/ops/conv2d_info.h"
#include "test/ops/op_test.h"

namespace gcap {
namespace testing {
namespace {

struct Shape {
  int n, c, h, w;
  int k, kernel_h, kernel_w;
  int stride_h, stride_w, pad_h, pad_w;

  int oh() const { return (h + 2 * pad_h - kernel_h) / stride_h + 1; }
  int ow() const { return (w + 2 * pad_w - kernel_w) / stride_w + 1; }
};

// The digits network's two convolutions, then ones, odd sides, even and oblong kernels, strides, wide padding.
constexpr Shape kShapes[] = {
    {32, 1, 8, 8, 16, 3, 3, 1, 1, 1, 1}, {32, 16, 4, 4, 32, 3, 3, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0},
    {3, 5, 7, 9, 2, 2, 4, 1, 1, 0, 1},   {2, 3, 11, 6, 7, 5, 1, 2, 1, 2, 0},   {1, 2, 5, 5, 3, 3, 3, 3, 2, 2, 2},
    {2, 4, 3, 3, 5, 3, 3, 1, 1, 0, 0},
};
constexpr size_t kWorkspaceLimit = 32 << 20;

struct Expected {
  std::vector<double> value;
  double tolerance;
};

// fp32 in any order of additions makes at most one rounding, 2^-24, a term and two more; transforms (Winograd, FFT)
// spread the error of the largest output over its neighbours and cost some tens of roundings: 64 here. TF32, 2^-11 an
// input, would break this.
Expected Reference(const Shape& s, bool relu, const std::vector<float>& x, const std::vector<float>& weight,
                   const std::vector<float>& bias) {
  Expected expected;
  double largest = 0.0;
  for (int n = 0; n < s.n; ++n) {
    for (int k = 0; k < s.k; ++k) {
      for (int i = 0; i < s.oh() * s.ow(); ++i) {
        double sum = bias[k], magnitude = std::fabs(sum);
        for (int c = 0; c < s.c; ++c) {
          for (int kh = 0; kh < s.kernel_h; ++kh) {
            for (int kw = 0; kw < s.kernel_w; ++kw) {
              const int h = i / s.ow() * s.stride_h - s.pad_h + kh, w = i % s.ow() * s.stride_w - s.pad_w + kw;
              if (h < 0 || h >= s.h || w < 0 || w >= s.w) continue;
              const double term = static_cast<double>(x[((n * s.c + c) * s.h + h) * s.w + w]) *
                                  weight[((k * s.c + c) * s.kernel_h + kh) * s.kernel_w + kw];
              sum += term;
              magnitude += std::fabs(term);
            }
          }
        }
        expected.value.push_back(relu ? std::max(sum, 0.0) : sum);
        largest = std::max(largest, magnitude);
      }
    }
  }
  expected.tolerance = (s.c * s.kernel_h * s.kernel_w + 2 + 64) * largest / (1 << 24);
  return expected;
}

void ExpectNear(const std::vector<float>& actual, const Expected& expected) {
  ASSERT_EQ(actual.size(), expected.value.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected.value[i], expected.tolerance) << "element " << i;
  }
}

class Conv2d : public OpTest {
 protected:
  gcap_conv2d_options_t Options(const Shape& s, bool relu, size_t max_workspace_bytes) {
    gcap_conv2d_options_t options;
    gcap_conv2d_options_init(&options);
    GCAP_EXPECT_OK(gcap_stream_cudnn_handle(stream_, &options.handle));
    options.n = s.n, options.c = s.c, options.h = s.h, options.w = s.w;
    options.k = s.k, options.kernel_h = s.kernel_h, options.kernel_w = s.kernel_w;
    options.stride_h = s.stride_h, options.stride_w = s.stride_w;
    options.pad_h = s.pad_h, options.pad_w = s.pad_w;
    options.relu = relu;
    options.max_workspace_bytes = max_workspace_bytes;
    options.direct = GCAP_CONV2D_DIRECT_NEVER;
    return options;
  }
};

// A plan with its operands on the device.
struct Problem {
  Problem(const Shape& s, const gcap_conv2d_options_t& options, unsigned seed)
      : shape(s),
        relu(options.relu),
        x(RandomFloats(size_t(s.n) * s.c * s.h * s.w, seed)),
        weight(RandomFloats(size_t(s.k) * s.c * s.kernel_h * s.kernel_w, seed + 1)),
        bias(RandomFloats(s.k, seed + 2)),
        device_x(x),
        device_weight(weight),
        device_bias(bias),
        device_y(std::vector<float>(size_t(s.n) * s.k * s.oh() * s.ow())) {
    GCAP_EXPECT_OK(gcap_conv2d_create(&options, &plan));
    if (plan == nullptr) return;
    EXPECT_LE(InfoOf(plan).workspace_bytes, options.max_workspace_bytes);
    workspace = std::make_unique<DeviceFloats>(std::vector<float>(InfoOf(plan).workspace_bytes / sizeof(float) + 1));
  }
  ~Problem() { gcap_conv2d_destroy(plan); }

  gcap_status_t Run(gcap_stream_t* stream) {
    return gcap_conv2d_run(plan, stream, device_x.get(), device_weight.get(), device_bias.get(), device_y.get(),
                           InfoOf(plan).workspace_bytes == 0 ? nullptr : workspace->get());
  }
  Expected Reference() const { return testing::Reference(shape, relu, x, weight, bias); }

  Shape shape;
  bool relu;
  std::vector<float> x, weight, bias;
  DeviceFloats device_x, device_weight, device_bias, device_y;
  gcap_conv2d_t* plan = nullptr;
  std::unique_ptr<DeviceFloats> workspace;
};

TEST_F(Conv2d, EqualsTheDoubleLoopForAllShapes) {
  unsigned seed = 1;
  for (const Shape& shape : kShapes) {
    for (bool relu : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "input " << shape.c << "x" << shape.h << "x" << shape.w << ", kernel "
                                        << shape.kernel_h << "x" << shape.kernel_w << ", relu " << relu << ", seed "
                                        << seed);
      Problem problem(shape, Options(shape, relu, kWorkspaceLimit), seed++);
      const gcap_conv2d_info_t info = InfoOf(problem.plan);
      EXPECT_EQ(std::vector<int>(info.output_shape, info.output_shape + 4),
                (std::vector<int>{shape.n, shape.k, shape.oh(), shape.ow()}));
      GCAP_ASSERT_OK(problem.Run(stream_));
      Synchronize();
      ExpectNear(problem.device_y.Get(), problem.Reference());
    }
  }
}

TEST_F(Conv2d, WithReluRunsWithoutWorkspace) {
  const Shape shape = kShapes[0];
  Problem problem(shape, Options(shape, true, 0), 50);
  GCAP_ASSERT_OK(problem.Run(stream_));
  Synchronize();
  ExpectNear(problem.device_y.Get(), problem.Reference());
}

TEST_F(Conv2d, ReplayEqualsEagerAlsoAfterTheInputsChanged) {
  for (bool relu : {false, true}) {
    const Shape shape = kShapes[1];
    Problem problem(shape, Options(shape, relu, kWorkspaceLimit), 60);
    Graph graph(stream_, [&] { GCAP_EXPECT_OK(problem.Run(stream_)); });
    EXPECT_GE(graph.CountKernels(), 1u);
    for (unsigned seed : {70u, 80u}) {
      problem.x = RandomFloats(problem.x.size(), seed);
      problem.device_x.Set(problem.x);
      GCAP_ASSERT_OK(problem.Run(stream_));
      Synchronize();
      const std::vector<float> eager = problem.device_y.Get();
      ExpectNear(eager, problem.Reference());
      problem.device_y.Set(std::vector<float>(eager.size(), -7.0f));
      graph.Replay();
      EXPECT_EQ(problem.device_y.Get(), eager);  // the same kernels on the same bytes: bit for bit
    }
  }
}

TEST_F(Conv2d, CreateNamesTheBadOption) {
  const gcap_conv2d_options_t good = Options(kShapes[0], true, 0);
  const auto expect_refused = [](const gcap_conv2d_options_t* options, const char* culprit) {
    gcap_conv2d_t* plan = reinterpret_cast<gcap_conv2d_t*>(1);
    GCAP_EXPECT_FAILS(gcap_conv2d_create(options, &plan), GCAP_INVALID_ARGUMENT, culprit);
    EXPECT_EQ(plan, nullptr);
  };
  expect_refused(nullptr, "options is NULL");
  GCAP_EXPECT_FAILS(gcap_conv2d_create(&good, nullptr), GCAP_INVALID_ARGUMENT, "out_conv is NULL");
  gcap_conv2d_options_t bad = good;
  bad.handle = nullptr;
  expect_refused(&bad, "handle is NULL");
  const struct {
    int gcap_conv2d_options_t::*member;
    const char* name;
    int value;
  } kBadMembers[] = {
      {&gcap_conv2d_options_t::n, "n", -1},
      {&gcap_conv2d_options_t::c, "c", -1},
      {&gcap_conv2d_options_t::h, "h", 0},
      {&gcap_conv2d_options_t::w, "w", INT_MIN},
      {&gcap_conv2d_options_t::k, "k", 0},
      {&gcap_conv2d_options_t::kernel_h, "kernel_h", 0},
      {&gcap_conv2d_options_t::kernel_w, "kernel_w", 0},
      {&gcap_conv2d_options_t::stride_h, "stride_h", 0},
      {&gcap_conv2d_options_t::stride_w, "stride_w", 0},
      {&gcap_conv2d_options_t::pad_h, "pad_h", -1},
      {&gcap_conv2d_options_t::pad_w, "pad_w", -1},
      {&gcap_conv2d_options_t::pad_h, "pad_h", INT_MAX},   // the padded height is no int
      {&gcap_conv2d_options_t::kernel_w, "kernel_w", 11},  // the padded width is 10
      {&gcap_conv2d_options_t::kernel_h, "kernel_h", INT_MAX},
      {&gcap_conv2d_options_t::pad_h_end, "pad_h_end", -2},
      {&gcap_conv2d_options_t::pad_w_end, "pad_w_end", INT_MAX},
      {&gcap_conv2d_options_t::dilation_h, "dilation_h", 0},
      {&gcap_conv2d_options_t::dilation_w, "dilation_w", -1},
      {&gcap_conv2d_options_t::groups, "groups", 0},
      {&gcap_conv2d_options_t::groups, "groups", 2},  // c is 1
  };
  for (const auto& [member, name, value] : kBadMembers) {
    bad = good;
    bad.*member = value;
    expect_refused(&bad, (std::string(name) + " is " + std::to_string(value)).c_str());
  }
  gcap_conv2d_options_t volume = good;
  volume.d = 4, volume.kernel_d = 3;
  const std::pair<int gcap_conv2d_options_t::*, const char*> of_depth[] = {
      {&gcap_conv2d_options_t::d, "d"},
      {&gcap_conv2d_options_t::kernel_d, "kernel_d"},
      {&gcap_conv2d_options_t::stride_d, "stride_d"},
      {&gcap_conv2d_options_t::dilation_d, "dilation_d"},
      {&gcap_conv2d_options_t::pad_d, "pad_d"},
      {&gcap_conv2d_options_t::pad_d_end, "pad_d_end"},
  };
  for (const auto& [member, name] : of_depth) {
    bad = volume;
    bad.*member = -2;
    expect_refused(&bad, (std::string(name) + " is -2").c_str());
  }
  bad = volume;
  bad.kernel_d = 5;
  expect_refused(&bad, "kernel_d is 5 with dilation 1, the padded input is 4");
  bad = volume;
  bad.layout = GCAP_IMAGE_NHWC;
  expect_refused(&bad, "layout is 1 and d is 4");
  bad = volume;
  bad.direct = GCAP_CONV2D_DIRECT_ALWAYS;
  expect_refused(&bad, "direct is ALWAYS (2) and d is 4");
  bad = good;
  bad.dtype = GCAP_DTYPE_BOOL;
  expect_refused(&bad, "dtype is bool");
  bad = good;
  bad.dtype = GCAP_DTYPE_BF16;
  bad.tf32 = true;
  expect_refused(&bad, "tf32 is true and dtype is bf16");
  bad = good;
  bad.layout = static_cast<gcap_image_layout_t>(2);
  expect_refused(&bad, "layout is 2");
  bad = good;
  bad.direct = static_cast<gcap_conv2d_direct_t>(3);
  expect_refused(&bad, "direct is 3, allowed are 0..2");
  bad = good;
  bad.search = static_cast<gcap_conv2d_search_t>(2);
  expect_refused(&bad, "search is 2");
  bad.search = GCAP_CONV2D_SEARCH_EXHAUSTIVE;
  expect_refused(&bad, "search_stream is NULL");
  bad.search_stream = stream_;
  expect_refused(&bad, "search_scratch is NULL");
}

TEST_F(Conv2d, CreateIsUnimplementedWhenNoAlgorithmFits) {
  // Without ReLU only the algorithm with precomputed indices may be fused; the simulator's needs workspace.
  gcap_conv2d_options_t options = Options(kShapes[1], false, kWorkspaceLimit);
  gcap_conv2d_t* plan = nullptr;
  GCAP_ASSERT_OK(gcap_conv2d_create(&options, &plan));
  const size_t need = InfoOf(plan).workspace_bytes;
  gcap_conv2d_destroy(plan);
  if (need == 0) return;  // this machine's algorithm fits everywhere
  options.max_workspace_bytes = need - 1;
  GCAP_EXPECT_FAILS(gcap_conv2d_create(&options, &plan), GCAP_UNIMPLEMENTED,
                    "max_workspace_bytes is " + std::to_string(need - 1));
  EXPECT_EQ(plan, nullptr);
}

TEST_F(Conv2d, RunNamesTheNullAddress) {
  Problem p(kShapes[0], Options(kShapes[0], true, kWorkspaceLimit), 90);
  const float *x = p.device_x.get(), *weight = p.device_weight.get(), *bias = p.device_bias.get();
  float* y = p.device_y.get();
  void* workspace = p.workspace->get();
  const auto bad = GCAP_INVALID_ARGUMENT;
  GCAP_EXPECT_FAILS(gcap_conv2d_run(nullptr, stream_, x, weight, bias, y, workspace), bad, "conv is NULL");
  GCAP_EXPECT_FAILS(gcap_conv2d_run(p.plan, nullptr, x, weight, bias, y, workspace), bad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_conv2d_run(p.plan, stream_, nullptr, weight, bias, y, workspace), bad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_conv2d_run(p.plan, stream_, x, nullptr, bias, y, workspace), bad, "weight is NULL");
  GCAP_EXPECT_FAILS(gcap_conv2d_run(p.plan, stream_, x, weight, nullptr, y, workspace), bad, "bias is NULL");
  GCAP_EXPECT_FAILS(gcap_conv2d_run(p.plan, stream_, x, weight, bias, nullptr, workspace), bad, "y is NULL");
  const auto* odd = reinterpret_cast<const char*>(x) + 2;
  GCAP_EXPECT_FAILS(gcap_conv2d_run(p.plan, stream_, odd, weight, bias, y, workspace), bad, "must be 4-byte aligned");
}

TEST_F(Conv2d, CreateIsRefusedWhileTheThreadCapturesAndFailsTheCapture) {
  const gcap_conv2d_options_t options = Options(kShapes[0], true, 0);
  gcap_capture_t* capture = nullptr;
  gcap_conv2d_t* plan = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_conv2d_create(&options, &plan), GCAP_FAILED_PRECONDITION, "capturing");
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED,
                    "a convolution is planned before the capture");
  EXPECT_EQ(graph, nullptr);
}

TEST_F(Conv2d, DestroyOfNullIsFine) { gcap_conv2d_destroy(nullptr); }

class CudnnHandle : public OpTest {};

TEST_F(CudnnHandle, IsOneAStreamAndBoundToIt) {
  cudnnHandle_t first = nullptr, again = nullptr, others = nullptr;
  gcap_stream_t* other = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &other));
  GCAP_EXPECT_OK(gcap_stream_cudnn_handle(stream_, &first));
  GCAP_EXPECT_OK(gcap_stream_cudnn_handle(stream_, &again));
  GCAP_EXPECT_OK(gcap_stream_cudnn_handle(other, &others));
  EXPECT_EQ(first, again);
  EXPECT_NE(first, others);
  cudaStream_t bound = nullptr;
  EXPECT_EQ(cudnnGetStream(first, &bound), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(bound, gcap_stream_handle(stream_));
  GCAP_EXPECT_OK(gcap_stream_destroy(other));
}

TEST_F(CudnnHandle, IsNotMadeForNullNorForAnExternalStream) {
  cudnnHandle_t handle = nullptr;
  GCAP_EXPECT_FAILS(gcap_stream_cudnn_handle(nullptr, &handle), GCAP_INVALID_ARGUMENT, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_stream_cudnn_handle(stream_, nullptr), GCAP_INVALID_ARGUMENT, "out_handle is NULL");
  gcap_stream_t* external = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(gcap_stream_handle(stream_), GCAP_STREAM_EXTERNAL, 0, 0, &external));
  GCAP_EXPECT_FAILS(gcap_stream_cudnn_handle(external, &handle), GCAP_INVALID_ARGUMENT, "cudnnHandle_t");
  EXPECT_EQ(handle, nullptr);
  GCAP_EXPECT_OK(gcap_stream_destroy(external));
}

TEST_F(CudnnHandle, IsNotMadeInACaptureWhichThenFails) {
  gcap_stream_t* other = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &other));
  gcap_capture_t* capture = nullptr;
  cudnnHandle_t handle = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_stream_cudnn_handle(stream_, &handle), GCAP_FAILED_PRECONDITION, "cudnnHandle_t");
  GCAP_EXPECT_FAILS(gcap_stream_cudnn_handle(other, &handle), GCAP_FAILED_PRECONDITION, "this thread is capturing");
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "cudnnHandle_t");
  EXPECT_EQ(graph, nullptr);
  GCAP_EXPECT_OK(gcap_stream_cudnn_handle(stream_, &handle));
  GCAP_EXPECT_OK(gcap_stream_destroy(other));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
