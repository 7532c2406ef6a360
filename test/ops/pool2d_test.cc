// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Pool2d, by cuDNN and by gcap's kernel: numbers against loops in double for shapes drawn from a fixed seed, capture
// and replay with other inputs, and bad input.

#include "gcap/kit/ops/pool2d.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>

#include "gcap/capture.h"
#include "test/ops/op_test.h"
#include "test/ops/typed.h"

namespace gcap {
namespace testing {
namespace {

constexpr unsigned kSeed = 20260102;
constexpr int kProblems = 240;

// Where an element of an image stands.
size_t At(const int* shape, gcap_image_layout_t layout, int n, int c, int h, int w) {
  if (layout == GCAP_IMAGE_NHWC) return ((size_t(n) * shape[2] + h) * shape[3] + w) * shape[1] + c;
  return ((size_t(n) * shape[1] + c) * shape[2] + h) * shape[3] + w;
}
size_t Size(const int* shape) { return size_t(shape[0]) * shape[1] * shape[2] * shape[3]; }

// What the options say, with `global` and the ends written out.
gcap_pool2d_options_t Explicit(gcap_pool2d_options_t o) {
  if (o.pad_h_end < 0) o.pad_h_end = o.pad_h;
  if (o.pad_w_end < 0) o.pad_w_end = o.pad_w;
  if (o.global) {
    o.kernel_h = o.h, o.kernel_w = o.w;
    o.stride_h = o.stride_w = o.dilation_h = o.dilation_w = 1;
    o.pad_h = o.pad_w = o.pad_h_end = o.pad_w_end = 0;
    o.ceil_mode = false;
  }
  return o;
}

// How many windows there are: each fits into the padded input, but with `ceil` the last one has to begin in the input
// or before it only.
int Windows(int input, int begin, int end, int kernel, int dilation, int stride, bool ceil) {
  const int padded = input + begin + end, reach = dilation * (kernel - 1) + 1;
  int count = 0;
  for (int at = 0; at + reach <= padded; at += stride) ++count;
  const bool left_over = (count - 1) * stride + reach < padded;
  return count + (ceil && left_over && count * stride < begin + input);
}

// A maximum rounds nothing. An average is a sum in f32 or, if a GPU likes, of rounded parts: a rounding to f32 an
// element of at most the largest, then one to the type of y.
TypedExpectation PoolReference(const gcap_pool2d_options_t& given, const int* shape, const std::vector<double>& x) {
  const gcap_pool2d_options_t o = Explicit(given);
  const int x_shape[] = {o.n, o.c, o.h, o.w};
  TypedExpectation expected;
  expected.value.resize(Size(shape));
  expected.tolerance.assign(Size(shape), 0.0);
  for (int i = 0; i < int(Size(shape)); ++i) {
    const int ow = i % shape[3], oh = i / shape[3] % shape[2], c = i / shape[3] / shape[2] % shape[1];
    const int n = i / shape[3] / shape[2] / shape[1];
    double largest = -std::numeric_limits<double>::infinity(), sum = 0.0, count = 0.0, padded = 0.0;
    for (int h = oh * o.stride_h - o.pad_h, kh = 0; kh < o.kernel_h; h += o.dilation_h, ++kh) {
      for (int w = ow * o.stride_w - o.pad_w, kw = 0; kw < o.kernel_w; w += o.dilation_w, ++kw) {
        padded += h < o.h + o.pad_h_end && w < o.w + o.pad_w_end;
        if (h < 0 || h >= o.h || w < 0 || w >= o.w) continue;
        const double value = x[At(x_shape, o.layout, n, c, h, w)];
        largest = std::max(largest, value);
        sum += value;
        count += 1.0;
      }
    }
    const size_t at = At(shape, o.layout, n, c, oh, ow);
    if (o.mode == GCAP_POOL2D_MAX) {
      expected.value[at] = largest;
    } else {
      const double value = sum / (o.count_include_pad ? padded : count);
      expected.value[at] = value;
      expected.tolerance[at] = (count + 2) * std::ldexp(1.0, -24) + Rounding(o.dtype) * (std::fabs(value) + 1e-3);
    }
  }
  return expected;
}

int Draw(int least, int most, std::mt19937* generator) {
  return std::uniform_int_distribution<int>(least, most)(*generator);
}

gcap_pool2d_options_t DrawOptions(std::mt19937* generator) {
  gcap_pool2d_options_t o;
  gcap_pool2d_options_init(&o);
  o.n = Draw(0, 3, generator), o.c = Draw(1, 9, generator), o.h = Draw(1, 12, generator), o.w = Draw(1, 12, generator);
  o.dilation_h = Draw(0, 2, generator) == 0 ? 2 : 1, o.dilation_w = Draw(0, 2, generator) == 0 ? 3 : 1;
  o.kernel_h = Draw(1, std::min((o.h - 1) / o.dilation_h + 1, 4), generator);
  o.kernel_w = Draw(1, std::min((o.w - 1) / o.dilation_w + 1, 4), generator);
  o.stride_h = Draw(1, 3, generator), o.stride_w = Draw(1, 3, generator);
  const int reach_h = o.dilation_h * (o.kernel_h - 1) + 1, reach_w = o.dilation_w * (o.kernel_w - 1) + 1;
  o.pad_h = Draw(0, reach_h - 1, generator), o.pad_w = Draw(0, reach_w - 1, generator);
  o.pad_h_end = Draw(-1, reach_h - 1, generator), o.pad_w_end = Draw(-1, reach_w - 1, generator);
  o.ceil_mode = Draw(0, 1, generator) == 0;
  o.mode = static_cast<gcap_pool2d_mode_t>(Draw(0, 1, generator));
  o.count_include_pad = Draw(0, 1, generator) == 0;
  o.global = Draw(0, 5, generator) == 0;
  o.dtype = static_cast<gcap_dtype_t>(Draw(0, 2, generator));
  o.layout = static_cast<gcap_image_layout_t>(Draw(0, 1, generator));
  return o;
}

class Pool2d : public OpTest {
 protected:
  // Attaches the stream's handle, as a warm-up run would.
  void SetUp() override {
    OpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    cudnnHandle_t handle = nullptr;
    GCAP_ASSERT_OK(gcap_stream_cudnn_handle(stream_, &handle));
  }

  void ExpectRight(const gcap_pool2d_options_t& o, std::mt19937* generator) {
    gcap_pool2d_t* plan = nullptr;
    GCAP_ASSERT_OK(gcap_pool2d_create(&o, &plan));
    const gcap_pool2d_options_t e = Explicit(o);
    const int oh = Windows(e.h, e.pad_h, e.pad_h_end, e.kernel_h, e.dilation_h, e.stride_h, e.ceil_mode);
    const int ow = Windows(e.w, e.pad_w, e.pad_w_end, e.kernel_w, e.dilation_w, e.stride_w, e.ceil_mode);
    const int shape[] = {o.n, o.c, oh, ow};
    const int x_shape[] = {o.n, o.c, o.h, o.w};
    std::vector<double> x = RandomValues(Size(x_shape), o.dtype, generator);
    TypedArray device_x(o.dtype, x), device_y(o.dtype, std::vector<double>(Size(shape), 7.0));
    const auto run = [&] { GCAP_EXPECT_OK(gcap_pool2d_run(plan, stream_, device_x.get(), device_y.get())); };
    run();
    Synchronize();
    ExpectNear(device_y.Get(), PoolReference(o, shape, x));
    {
      Graph graph(stream_, run);
      EXPECT_GE(graph.CountKernels(), o.n == 0 ? 0u : 1u);
      x = RandomValues(x.size(), o.dtype, generator);
      device_x.Set(x);
      graph.Replay();
      ExpectNear(device_y.Get(), PoolReference(o, shape, x));
    }
    gcap_pool2d_destroy(plan);
  }
};

TEST_F(Pool2d, EqualsTheLoopAlsoWhenReplayed) {
  std::mt19937 generator(kSeed);
  for (int i = 0; i < kProblems && !HasFailure(); ++i) {
    const gcap_pool2d_options_t o = DrawOptions(&generator);
    SCOPED_TRACE(::testing::Message() << "problem " << i << " of seed " << kSeed << ": " << o.n << "x" << o.c << "x"
                                      << o.h << "x" << o.w << ", kernel " << o.kernel_h << "x" << o.kernel_w
                                      << ", stride " << o.stride_h << " " << o.stride_w << ", pads " << o.pad_h << " "
                                      << o.pad_w << " " << o.pad_h_end << " " << o.pad_w_end << ", dilation "
                                      << o.dilation_h << " " << o.dilation_w << ", ceil " << o.ceil_mode << ", global "
                                      << o.global << ", counts pads " << o.count_include_pad << ", mode " << o.mode
                                      << ", " << gcap_dtype_name(o.dtype) << ", layout " << o.layout);
    ExpectRight(o, &generator);
  }
}

TEST_F(Pool2d, AMaximumIsANaNIfThereIsOne) {
  gcap_pool2d_options_t o;
  gcap_pool2d_options_init(&o);
  o.n = o.c = 1, o.h = 1, o.w = 4, o.kernel_h = 1, o.kernel_w = o.stride_w = 2;
  for (const auto& [dilation, nan_at] : {std::pair{1, 0}, {1, 1}, {2, 0}, {2, 2}}) {  // cuDNN, and gcap's kernel
    o.dilation_w = dilation;
    std::vector<float> values = {1.0f, 2.0f, 3.0f, 2.0f};
    values[nan_at] = NAN;
    const DeviceFloats x(values), y({0.0f, 0.0f});
    gcap_pool2d_t* plan = nullptr;
    GCAP_ASSERT_OK(gcap_pool2d_create(&o, &plan));
    GCAP_EXPECT_OK(gcap_pool2d_run(plan, stream_, x.get(), y.get()));
    Synchronize();
    EXPECT_TRUE(std::isnan(y.Get()[0]));
    EXPECT_EQ(y.Get()[1], dilation == 1 ? 3.0f : 0.0f);  // dilated, there is one window
    gcap_pool2d_destroy(plan);
  }
}

// The two columns of the window are 4 apart: one is before the input, the other one behind it.
TEST_F(Pool2d, AWindowThatMissesTheInputIsOfNothing) {
  gcap_pool2d_options_t o;
  gcap_pool2d_options_init(&o);
  o.n = o.c = o.h = o.w = o.kernel_h = 1;
  o.kernel_w = 2, o.dilation_w = 4, o.pad_w = 2;
  const DeviceFloats x({5.0f}), y({7.0f});
  const struct {
    gcap_pool2d_mode_t mode;
    bool count_include_pad;
    float expected;
  } kCases[] = {
      {GCAP_POOL2D_MAX, false, -INFINITY}, {GCAP_POOL2D_AVERAGE, true, 0.0f}, {GCAP_POOL2D_AVERAGE, false, NAN}};
  for (const auto& [mode, count_include_pad, expected] : kCases) {
    o.mode = mode, o.count_include_pad = count_include_pad;
    gcap_pool2d_t* plan = nullptr;
    GCAP_ASSERT_OK(gcap_pool2d_create(&o, &plan));
    GCAP_EXPECT_OK(gcap_pool2d_run(plan, stream_, x.get(), y.get()));
    Synchronize();
    const float made = y.Get()[0];
    EXPECT_TRUE(std::isnan(expected) ? std::isnan(made) : made == expected) << made;
    gcap_pool2d_destroy(plan);
  }
}

gcap_pool2d_options_t Good() {
  gcap_pool2d_options_t o;
  gcap_pool2d_options_init(&o);
  o.n = 2, o.c = 3, o.h = o.w = 8, o.kernel_h = o.kernel_w = 3;
  return o;
}

TEST_F(Pool2d, CreateNamesTheBadOption) {
  const struct {
    int gcap_pool2d_options_t::*member;
    const char* name;
    int value;
  } kBadMembers[] = {
      {&gcap_pool2d_options_t::n, "n", -1},
      {&gcap_pool2d_options_t::c, "c", 0},
      {&gcap_pool2d_options_t::h, "h", -3},
      {&gcap_pool2d_options_t::w, "w", 0},
      {&gcap_pool2d_options_t::kernel_h, "kernel_h", 0},
      {&gcap_pool2d_options_t::kernel_w, "kernel_w", 9},  // the input is 8 x 8
      {&gcap_pool2d_options_t::stride_h, "stride_h", INT_MIN},
      {&gcap_pool2d_options_t::stride_w, "stride_w", 0},
      {&gcap_pool2d_options_t::pad_h, "pad_h", 3},  // the kernel is 3 x 3
      {&gcap_pool2d_options_t::pad_w, "pad_w", -1},
      {&gcap_pool2d_options_t::pad_h_end, "pad_h_end", 3},
      {&gcap_pool2d_options_t::pad_w_end, "pad_w_end", -2},
      {&gcap_pool2d_options_t::dilation_h, "dilation_h", 0},
      {&gcap_pool2d_options_t::dilation_w, "dilation_w", -1},
      {&gcap_pool2d_options_t::w, "w", (1 << 30) + 1},
  };
  gcap_pool2d_t* plan = nullptr;
  gcap_pool2d_options_t bad;
  for (const auto& [member, name, value] : kBadMembers) {
    bad = Good();
    bad.*member = value;
    GCAP_EXPECT_FAILS(gcap_pool2d_create(&bad, &plan), GCAP_INVALID_ARGUMENT,
                      std::string(name) + " is " + std::to_string(value));
    EXPECT_EQ(plan, nullptr);
  }
  bad = Good();
  bad.mode = static_cast<gcap_pool2d_mode_t>(2);
  GCAP_EXPECT_FAILS(gcap_pool2d_create(&bad, &plan), GCAP_INVALID_ARGUMENT, "mode is 2");
  bad = Good();
  bad.dtype = GCAP_DTYPE_I64;
  GCAP_EXPECT_FAILS(gcap_pool2d_create(&bad, &plan), GCAP_INVALID_ARGUMENT, "dtype is i64");
  bad = Good();
  bad.layout = static_cast<gcap_image_layout_t>(-1);
  GCAP_EXPECT_FAILS(gcap_pool2d_create(&bad, &plan), GCAP_INVALID_ARGUMENT, "layout is -1");
  GCAP_EXPECT_FAILS(gcap_pool2d_create(nullptr, &plan), GCAP_INVALID_ARGUMENT, "options is NULL");
  const gcap_pool2d_options_t good = Good();
  GCAP_EXPECT_FAILS(gcap_pool2d_create(&good, nullptr), GCAP_INVALID_ARGUMENT, "out_pool is NULL");
}

TEST_F(Pool2d, RunNamesTheBadAddress) {
  gcap_pool2d_options_t o = Good();
  const DeviceFloats x(std::vector<float>(512)), y(std::vector<float>(512));
  const auto bad = GCAP_INVALID_ARGUMENT;
  gcap_pool2d_t* plan = nullptr;
  GCAP_ASSERT_OK(gcap_pool2d_create(&o, &plan));
  GCAP_EXPECT_FAILS(gcap_pool2d_run(nullptr, stream_, x.get(), y.get()), bad, "pool is NULL");
  GCAP_EXPECT_FAILS(gcap_pool2d_run(plan, nullptr, x.get(), y.get()), bad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_pool2d_run(plan, stream_, nullptr, y.get()), bad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_pool2d_run(plan, stream_, x.get(), nullptr), bad, "y is NULL");
  gcap_pool2d_destroy(plan);
  o.dtype = GCAP_DTYPE_F16;
  GCAP_ASSERT_OK(gcap_pool2d_create(&o, &plan));
  GCAP_EXPECT_FAILS(gcap_pool2d_run(plan, stream_, x.get() + 1, y.get()), bad, "must be 16-byte aligned");
  gcap_pool2d_destroy(plan);
}

TEST_F(Pool2d, CreateIsRefusedWhileTheThreadCapturesAndFailsTheCapture) {
  const gcap_pool2d_options_t good = Good();
  gcap_capture_t* capture = nullptr;
  gcap_pool2d_t* plan = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_pool2d_create(&good, &plan), GCAP_FAILED_PRECONDITION, "capturing");
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED,
                    "a pooling is planned before the capture");
  EXPECT_EQ(graph, nullptr);
}

TEST_F(Pool2d, DestroyOfNullIsFine) { gcap_pool2d_destroy(nullptr); }

}  // namespace
}  // namespace testing
}  // namespace gcap
