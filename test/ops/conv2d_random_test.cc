// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Conv2d with everything that its options offer, drawn at random from a fixed seed: types, layouts, groups, dilation,
// pads that differ, with and without bias and ReLU, both ways to an algorithm; each by cuDNN and by gcap's kernel;
// against loops in double, each also captured and replayed with other inputs. Volumes too, by cuDNN.

#include "gcap/kit/ops/conv2d.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "gcap/capture.h"
#include "test/ops/conv2d_info.h"
#include "test/ops/op_test.h"
#include "test/ops/typed.h"

namespace gcap {
namespace testing {
namespace {

constexpr unsigned kSeed = 20260104;
constexpr int kProblems = 120;
constexpr size_t kMaxWorkspace = 64 << 20;

int Draw(int least, int most, std::mt19937* generator) {
  return std::uniform_int_distribution<int>(least, most)(*generator);
}

// Where an element of n, c, h, w, d stands. The depth of an image is 1.
size_t At(const int* shape, gcap_image_layout_t layout, int n, int c, int h, int w, int d) {
  if (layout == GCAP_IMAGE_NHWC) return ((size_t(n) * shape[2] + h) * shape[3] + w) * shape[1] + c;
  return (((size_t(n) * shape[1] + c) * shape[4] + d) * shape[2] + h) * shape[3] + w;
}

struct Problem {
  gcap_conv2d_options_t o;  // all pads given
  std::vector<double> x, weight, bias;

  bool IsVolume() const { return o.d > 0; }
  int KernelD() const { return IsVolume() ? o.kernel_d : 1; }
  std::vector<int> XShape() const { return {o.n, o.c, o.h, o.w, IsVolume() ? o.d : 1}; }
  std::vector<int> WeightShape() const { return {o.k, o.c / o.groups, o.kernel_h, o.kernel_w, KernelD()}; }
  std::vector<int> YShape() const {
    const auto side = [](int input, int begin, int end, int kernel, int dilation, int stride) {
      return (input + begin + end - dilation * (kernel - 1) - 1) / stride + 1;
    };
    return {o.n, o.k, side(o.h, o.pad_h, o.pad_h_end, o.kernel_h, o.dilation_h, o.stride_h),
            side(o.w, o.pad_w, o.pad_w_end, o.kernel_w, o.dilation_w, o.stride_w),
            IsVolume() ? side(o.d, o.pad_d, o.pad_d_end, o.kernel_d, o.dilation_d, o.stride_d) : 1};
  }
  static size_t Size(const std::vector<int>& shape) {
    size_t size = 1;
    for (int side : shape) size *= size_t(side);
    return size;
  }

  void DrawValues(std::mt19937* generator) {
    x = RandomValues(Size(XShape()), o.dtype, generator);
    weight = RandomValues(Size(WeightShape()), o.dtype, generator);
    bias = RandomValues(size_t(o.k), o.dtype, generator);
  }

  // One output before its ReLU; in `magnitude` the sum of the absolute terms.
  double Sum(int n, int k, int oh, int ow, int od, double* magnitude) const {
    const std::vector<int> x_shape = XShape(), weight_shape = WeightShape();
    const int first = k / (o.k / o.groups) * weight_shape[1];
    double sum = o.no_bias ? 0.0 : bias[k];
    *magnitude = std::fabs(sum);
    for (int c = 0; c < weight_shape[1]; ++c) {
      for (int tap = 0; tap < KernelD() * o.kernel_h * o.kernel_w; ++tap) {
        const int s = tap % o.kernel_w, r = tap / o.kernel_w % o.kernel_h, t = tap / o.kernel_w / o.kernel_h;
        const int h = oh * o.stride_h - o.pad_h + r * o.dilation_h, w = ow * o.stride_w - o.pad_w + s * o.dilation_w;
        const int d = od * o.stride_d - o.pad_d + t * o.dilation_d;
        if (h < 0 || h >= x_shape[2] || w < 0 || w >= x_shape[3] || d < 0 || d >= x_shape[4]) continue;
        const double term = x[At(x_shape.data(), o.layout, n, first + c, h, w, d)] *
                            weight[At(weight_shape.data(), o.layout, k, c, r, s, t)];
        sum += term;
        *magnitude += std::fabs(term);
      }
    }
    return sum;
  }

  // Sums are made in f32: at most one rounding a term and two more; transforms (Winograd, FFT) spread the error of the
  // largest output over its neighbours and cost some tens of roundings: 64 here. TF32 first takes from each factor up
  // to 2^-10 of it, if a GPU cuts it off; transforms of F16 and BF16 may round on the way as the type does, and so may
  // TF32's. gcap's kernel does none of this. The result is rounded to the type.
  TypedExpectation Reference() const {
    const std::vector<int> shape = YShape();
    TypedExpectation expected;
    expected.value.resize(Size(shape));
    double largest = 0.0;
    for (int n = 0; n < shape[0]; ++n) {
      for (int k = 0; k < shape[1]; ++k) {
        for (int i = 0; i < shape[2] * shape[3] * shape[4]; ++i) {
          const int w = i % shape[3], h = i / shape[3] % shape[2], d = i / shape[3] / shape[2];
          double magnitude;
          const double sum = Sum(n, k, h, w, d, &magnitude);
          expected.value[At(shape.data(), o.layout, n, k, h, w, d)] = o.relu ? std::max(sum, 0.0) : sum;
          largest = std::max(largest, magnitude);
        }
      }
    }
    const double terms = double(o.c / o.groups) * KernelD() * o.kernel_h * o.kernel_w;
    const bool direct = o.direct == GCAP_CONV2D_DIRECT_ALWAYS;
    const double exact = (terms + 2 + (direct ? 0 : 64)) * std::ldexp(largest, -24);
    const double tf32 = o.tf32 && !direct ? std::ldexp(largest, -9) : 0.0;
    const double rounding = o.dtype == GCAP_DTYPE_F32 ? 0.0 : (direct ? 1 : 2) * Rounding(o.dtype) * largest;
    expected.tolerance.assign(expected.value.size(), exact + tf32 + rounding);
    return expected;
  }
};

class Conv2dRandom : public OpTest {
 protected:
  void SetUp() override {
    OpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_ASSERT_OK(gcap_stream_cudnn_handle(stream_, &handle_));
    GCAP_ASSERT_OK(gcap_device_allocator_create(0, &upstream_));
    gcap_scratch_options_t options;
    gcap_scratch_options_init(&options);
    GCAP_ASSERT_OK(gcap_scratch_create(upstream_, &options, &scratch_));
  }
  void TearDown() override {
    if (scratch_ != nullptr) {
      Synchronize();
      GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    }
    if (upstream_ != nullptr) gcap_allocator_destroy(upstream_);
    OpTest::TearDown();
  }

  gcap_conv2d_options_t DrawOptions(std::mt19937* generator) {
    gcap_conv2d_options_t o;
    gcap_conv2d_options_init(&o);
    o.handle = handle_;
    o.groups = Draw(0, 1, generator) == 0 ? 1 : Draw(1, 4, generator);
    o.n = Draw(0, 3, generator), o.c = o.groups * Draw(1, 4, generator), o.k = o.groups * Draw(1, 5, generator);
    o.h = Draw(1, 12, generator), o.w = Draw(1, 12, generator);
    o.dilation_h = Draw(1, 2, generator), o.dilation_w = Draw(1, 2, generator);
    o.kernel_h = Draw(1, std::min(3, (o.h + 1) / 2), generator),
    o.kernel_w = Draw(1, std::min(3, (o.w + 1) / 2), generator);
    o.stride_h = Draw(1, 2, generator), o.stride_w = Draw(1, 2, generator);
    o.pad_h = Draw(0, 2, generator), o.pad_w = Draw(0, 2, generator);
    o.pad_h_end = Draw(0, 1, generator) == 0 ? o.pad_h : Draw(0, 2, generator);
    o.pad_w_end = Draw(0, 1, generator) == 0 ? o.pad_w : Draw(0, 2, generator);
    o.dtype = static_cast<gcap_dtype_t>(Draw(0, 2, generator));
    o.tf32 = o.dtype == GCAP_DTYPE_F32 && Draw(0, 1, generator) == 0;
    o.layout = static_cast<gcap_image_layout_t>(Draw(0, 1, generator));
    o.relu = Draw(0, 1, generator) == 0, o.no_bias = Draw(0, 1, generator) == 0;
    o.max_workspace_bytes = kMaxWorkspace;
    if (Draw(0, 2, generator) == 0) {
      o.search = GCAP_CONV2D_SEARCH_EXHAUSTIVE;
      o.search_stream = stream_;
      o.search_scratch = scratch_;
    }
    return o;
  }

  // Runs a plan, then replays the run's graph with other operands. False where cuDNN has no algorithm.
  bool ExpectRight(Problem* p, std::mt19937* generator) {
    const gcap_dtype_t dtype = p->o.dtype;
    gcap_conv2d_t* plan = nullptr;
    const Outcome made(gcap_conv2d_create(&p->o, &plan));
    if (made.code == GCAP_UNIMPLEMENTED) return false;
    EXPECT_TRUE(made.ok()) << made.message;
    if (plan == nullptr) return true;
    const bool direct = p->o.direct == GCAP_CONV2D_DIRECT_ALWAYS;
    EXPECT_EQ(InfoOf(plan).is_direct, direct && p->o.n != 0);
    EXPECT_TRUE(!direct || InfoOf(plan).workspace_bytes == 0);
    const gcap_conv2d_info_t info = InfoOf(plan);
    std::vector<int> y_shape(info.output_shape, info.output_shape + 4);
    EXPECT_EQ(info.output_d != 0, p->IsVolume());
    y_shape.push_back(p->IsVolume() ? info.output_d : 1);
    EXPECT_EQ(y_shape, p->YShape());
    TypedArray x(dtype, p->x), weight(dtype, p->weight), bias(dtype, p->bias);
    const TypedArray y(dtype, std::vector<double>(Problem::Size(p->YShape()), 7.0));
    const DeviceFloats workspace(std::vector<float>(InfoOf(plan).workspace_bytes / sizeof(float) + 1));
    const auto run = [&] {
      GCAP_EXPECT_OK(gcap_conv2d_run(plan, stream_, x.get(), weight.get(), p->o.no_bias ? nullptr : bias.get(), y.get(),
                                     workspace.get()));
    };
    run();
    Synchronize();
    ExpectNear(y.Get(), p->Reference());
    {
      Graph graph(stream_, run);
      EXPECT_TRUE(!direct || graph.CountKernels() == (p->o.n == 0 ? 0u : 1u));
      p->DrawValues(generator);
      x.Set(p->x), weight.Set(p->weight), bias.Set(p->bias);
      graph.Replay();
      ExpectNear(y.Get(), p->Reference());
    }
    gcap_conv2d_destroy(plan);
    return true;
  }

  cudnnHandle_t handle_ = nullptr;
  gcap_allocator_t* upstream_ = nullptr;
  gcap_scratch_t* scratch_ = nullptr;
};

class Conv2dRandomBy : public Conv2dRandom, public ::testing::WithParamInterface<gcap_conv2d_direct_t> {};

INSTANTIATE_TEST_SUITE_P(Who, Conv2dRandomBy, ::testing::Values(GCAP_CONV2D_DIRECT_NEVER, GCAP_CONV2D_DIRECT_ALWAYS),
                         [](const ::testing::TestParamInfo<gcap_conv2d_direct_t>& info) {
                           return info.param == GCAP_CONV2D_DIRECT_NEVER ? "Cudnn" : "Gcap";
                         });

TEST_P(Conv2dRandomBy, EqualsTheDoubleLoopAlsoWhenReplayed) {
  std::mt19937 generator(kSeed);
  int done = 0;
  for (int i = 0; i < kProblems && !HasFailure(); ++i) {
    Problem p{DrawOptions(&generator), {}, {}, {}};
    p.o.direct = GetParam();
    const gcap_conv2d_options_t& o = p.o;
    p.DrawValues(&generator);
    SCOPED_TRACE(::testing::Message() << "problem " << i << " of seed " << kSeed << ": " << o.n << "x" << o.c << "x"
                                      << o.h << "x" << o.w << ", k " << o.k << " of " << o.kernel_h << "x" << o.kernel_w
                                      << ", groups " << o.groups << ", stride " << o.stride_h << o.stride_w
                                      << ", dilation " << o.dilation_h << o.dilation_w << ", pads " << o.pad_h
                                      << o.pad_w << o.pad_h_end << o.pad_w_end << ", " << gcap_dtype_name(o.dtype)
                                      << " tf32 " << o.tf32 << ", layout " << o.layout << ", relu " << o.relu
                                      << ", no_bias " << o.no_bias << ", search " << o.search);
    done += ExpectRight(&p, &generator);
  }
  EXPECT_GT(done, kProblems / 2);  // what cuDNN has depends on the machine; the simulator's has all
}

TEST_F(Conv2dRandom, VolumesEqualTheDoubleLoopAlsoWhenReplayed) {
  std::mt19937 generator(kSeed);
  int done = 0;
  for (int i = 0; i < kProblems / 2 && !HasFailure(); ++i) {
    Problem p{DrawOptions(&generator), {}, {}, {}};
    gcap_conv2d_options_t& o = p.o;
    o.layout = GCAP_IMAGE_NCHW;
    o.h = (o.h + 1) / 2, o.kernel_h = std::min(o.kernel_h, (o.h + 1) / 2);
    o.d = Draw(1, 7, &generator), o.kernel_d = Draw(1, std::min(3, (o.d + 1) / 2), &generator);
    o.stride_d = Draw(1, 2, &generator), o.dilation_d = Draw(1, 2, &generator);
    o.pad_d = Draw(0, 2, &generator), o.pad_d_end = Draw(0, 1, &generator) == 0 ? o.pad_d : Draw(0, 2, &generator);
    p.DrawValues(&generator);
    SCOPED_TRACE(::testing::Message() << "volume " << i << " of seed " << kSeed << ": " << o.n << "x" << o.c << "x"
                                      << o.d << "x" << o.h << "x" << o.w << ", k " << o.k << " of " << o.kernel_d << "x"
                                      << o.kernel_h << "x" << o.kernel_w << ", groups " << o.groups << ", stride "
                                      << o.stride_d << ", dilation " << o.dilation_d << ", pads " << o.pad_d << " "
                                      << o.pad_d_end << ", " << gcap_dtype_name(o.dtype) << " tf32 " << o.tf32
                                      << ", relu " << o.relu << ", no_bias " << o.no_bias << ", search " << o.search);
    done += ExpectRight(&p, &generator);
  }
  EXPECT_GT(done, kProblems / 4);  // what cuDNN has depends on the machine; the simulator's has all
}

TEST_F(Conv2dRandom, AnExhaustiveSearchGivesItsScratchBack) {
  std::mt19937 generator(kSeed);
  gcap_conv2d_options_t o = DrawOptions(&generator);
  gcap_conv2d_options_init(&o);
  o.handle = handle_;
  o.n = 2, o.c = 3, o.h = o.w = 8, o.k = 4, o.kernel_h = o.kernel_w = 3;
  o.relu = true;
  o.direct = GCAP_CONV2D_DIRECT_NEVER;
  o.search = GCAP_CONV2D_SEARCH_EXHAUSTIVE;
  o.search_stream = stream_, o.search_scratch = scratch_;
  o.max_workspace_bytes = SIZE_MAX;
  gcap_conv2d_t* plan = nullptr;
  GCAP_ASSERT_OK(gcap_conv2d_create(&o, &plan));
  gcap_allocator_stats_t stats;
  gcap_scratch_get_stats(scratch_, &stats);
  EXPECT_EQ(stats.in_use_bytes, 0u);
  EXPECT_GT(stats.total_allocated_bytes, 0u);
  gcap_conv2d_destroy(plan);
}

TEST_F(Conv2dRandom, ASmallConvolutionIsNotSearchedFor) {
  std::mt19937 generator(kSeed);
  gcap_conv2d_options_t o = DrawOptions(&generator);
  o.n = 1;
  o.layout = GCAP_IMAGE_NCHW;
  o.search = GCAP_CONV2D_SEARCH_EXHAUSTIVE;
  o.search_stream = stream_, o.search_scratch = scratch_;
  gcap_conv2d_t* plan = nullptr;
  GCAP_ASSERT_OK(gcap_conv2d_create(&o, &plan));
  EXPECT_TRUE(InfoOf(plan).is_direct);
  gcap_allocator_stats_t stats;
  gcap_scratch_get_stats(scratch_, &stats);
  EXPECT_EQ(stats.total_allocated_bytes, 0u);
  gcap_conv2d_destroy(plan);
}

TEST_F(Conv2dRandom, AnExhaustiveSearchIsRefusedOnACapturingStream) {
  std::mt19937 generator(kSeed);
  gcap_conv2d_options_t o = DrawOptions(&generator);
  o.n = 1;
  o.direct = GCAP_CONV2D_DIRECT_NEVER;
  o.search = GCAP_CONV2D_SEARCH_EXHAUSTIVE;
  o.search_stream = stream_, o.search_scratch = scratch_;
  gcap_conv2d_t* plan = nullptr;
  Graph graph(stream_, [&] {  // begun without gcap, so that the thread's own check does not see it
    GCAP_EXPECT_FAILS(gcap_conv2d_create(&o, &plan), GCAP_FAILED_PRECONDITION, "is capturing");
  });
  EXPECT_EQ(plan, nullptr);
  EXPECT_EQ(graph.CountKernels(), 0u);  // and the capture was not broken
}

}  // namespace
}  // namespace testing
}  // namespace gcap
