// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Batch norm: numbers against loops in double for shapes drawn from a fixed seed, capture and replay with other inputs,
// in place, and bad input.

#include "gcap/kit/ops/batch_norm.h"

#include <cmath>
#include <limits>

#include "gcap/capture.h"
#include "test/ops/op_test.h"
#include "test/ops/typed.h"

namespace gcap {
namespace testing {
namespace {

constexpr unsigned kSeed = 20260103;
constexpr int kProblems = 60;

struct Problem {
  gcap_batch_norm_options_t o;
  std::vector<double> x, scale, bias, mean, variance;

  size_t size() const { return size_t(o.n) * o.c * o.h * o.w; }

  void DrawValues(std::mt19937* generator) {
    x = RandomValues(size(), o.dtype, generator);
    for (auto* parameter : {&scale, &bias, &mean, &variance}) *parameter = RandomValues(o.c, GCAP_DTYPE_F32, generator);
    for (double& v : variance) v = Rounded(v * v + 0.05, GCAP_DTYPE_F32);
  }

  // In f32: a subtraction, a root of 2 roundings, a division, a product, a sum, each of at most one rounding of its
  // result, or as many that were folded into a factor and a summand before: 16 roundings of the largest term. Then one
  // to the type of y.
  TypedExpectation Reference() const {
    TypedExpectation expected;
    for (size_t i = 0; i < size(); ++i) {
      const size_t c = o.layout == GCAP_IMAGE_NHWC ? i % o.c : i / (size_t(o.h) * o.w) % o.c;
      const double factor = scale[c] / std::sqrt(variance[c] + o.epsilon);
      const double value = factor * (x[i] - mean[c]) + bias[c];
      const double magnitude = std::fabs(factor) * (std::fabs(x[i]) + std::fabs(mean[c])) + std::fabs(bias[c]);
      expected.value.push_back(value);
      expected.tolerance.push_back(16 * std::ldexp(magnitude, -24) + Rounding(o.dtype) * (std::fabs(value) + 1e-3));
    }
    return expected;
  }
};

gcap_batch_norm_options_t Good() {
  gcap_batch_norm_options_t o;
  gcap_batch_norm_options_init(&o);
  o.n = 2, o.c = 3, o.h = 4, o.w = 5;
  return o;
}

class BatchNorm : public OpTest {
 protected:
  // Attaches the stream's handle, as a warm-up run would.
  void SetUp() override {
    OpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    cudnnHandle_t handle = nullptr;
    GCAP_ASSERT_OK(gcap_stream_cudnn_handle(stream_, &handle));
  }
};

int Draw(int least, int most, std::mt19937* generator) {
  return std::uniform_int_distribution<int>(least, most)(*generator);
}

void ExpectRight(gcap_stream_t* stream, Problem* p, bool in_place, std::mt19937* generator) {
  gcap_batch_norm_t* plan = nullptr;
  GCAP_ASSERT_OK(gcap_batch_norm_create(&p->o, &plan));
  TypedArray x(p->o.dtype, p->x), y(p->o.dtype, std::vector<double>(p->size()));
  TypedArray scale(GCAP_DTYPE_F32, p->scale), bias(GCAP_DTYPE_F32, p->bias);
  TypedArray mean(GCAP_DTYPE_F32, p->mean), variance(GCAP_DTYPE_F32, p->variance);
  const auto floats = [](const TypedArray& array) { return static_cast<const float*>(array.get()); };
  const auto run = [&] {
    GCAP_EXPECT_OK(gcap_batch_norm_run(plan, stream, x.get(), floats(scale), floats(bias), floats(mean),
                                       floats(variance), in_place ? x.get() : y.get()));
  };
  run();
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  ExpectNear((in_place ? x : y).Get(), p->Reference());
  {
    Graph graph(stream, run);
    EXPECT_GE(graph.CountKernels(), p->o.n == 0 ? 0u : 1u);
    p->DrawValues(generator);
    x.Set(p->x), scale.Set(p->scale), bias.Set(p->bias), mean.Set(p->mean), variance.Set(p->variance);
    graph.Replay();
    ExpectNear((in_place ? x : y).Get(), p->Reference());
  }
  gcap_batch_norm_destroy(plan);
}

TEST_F(BatchNorm, EqualsTheLoopAlsoWhenReplayed) {
  std::mt19937 generator(kSeed);
  for (int i = 0; i < kProblems && !HasFailure(); ++i) {
    Problem p{Good(), {}, {}, {}, {}, {}};
    p.o.n = Draw(0, 3, &generator), p.o.c = Draw(1, 40, &generator);
    p.o.h = Draw(1, 9, &generator), p.o.w = Draw(1, 9, &generator);
    p.o.epsilon = Draw(0, 1, &generator) == 0 ? 1e-5f : 0.1f;
    p.o.dtype = static_cast<gcap_dtype_t>(Draw(0, 2, &generator));
    p.o.layout = static_cast<gcap_image_layout_t>(Draw(0, 1, &generator));
    p.DrawValues(&generator);
    SCOPED_TRACE(::testing::Message() << "problem " << i << " of seed " << kSeed << ": " << p.o.n << "x" << p.o.c << "x"
                                      << p.o.h << "x" << p.o.w << ", " << gcap_dtype_name(p.o.dtype) << ", layout "
                                      << p.o.layout);
    ExpectRight(stream_, &p, Draw(0, 1, &generator) == 0, &generator);
  }
}

TEST_F(BatchNorm, CreateNamesTheBadOption) {
  const struct {
    std::function<void(gcap_batch_norm_options_t*)> spoil;
    const char* culprit;
  } kSpoilt[] = {
      {[](auto* o) { o->n = -1; }, "n is -1"},
      {[](auto* o) { o->c = 0; }, "c is 0"},
      {[](auto* o) { o->h = 0; }, "h is 0"},
      {[](auto* o) { o->w = -5; }, "w is -5"},
      {[](auto* o) { o->epsilon = -1.0f; }, "epsilon is -1"},
      {[](auto* o) { o->epsilon = std::numeric_limits<float>::quiet_NaN(); }, "epsilon is nan"},
      {[](auto* o) { o->dtype = GCAP_DTYPE_I32; }, "dtype is i32"},
      {[](auto* o) { o->layout = static_cast<gcap_image_layout_t>(9); }, "layout is 9"},
  };
  gcap_batch_norm_t* plan = nullptr;
  for (const auto& [spoil, culprit] : kSpoilt) {
    gcap_batch_norm_options_t bad = Good();
    spoil(&bad);
    GCAP_EXPECT_FAILS(gcap_batch_norm_create(&bad, &plan), GCAP_INVALID_ARGUMENT, culprit);
    EXPECT_EQ(plan, nullptr);
  }
  const gcap_batch_norm_options_t good = Good();
  GCAP_EXPECT_FAILS(gcap_batch_norm_create(nullptr, &plan), GCAP_INVALID_ARGUMENT, "options is NULL");
  GCAP_EXPECT_FAILS(gcap_batch_norm_create(&good, nullptr), GCAP_INVALID_ARGUMENT, "out_norm is NULL");
}

TEST_F(BatchNorm, RunNamesTheBadAddress) {
  const gcap_batch_norm_options_t good = Good();
  const DeviceFloats array(std::vector<float>(120));
  float* p = array.get();
  const auto bad = GCAP_INVALID_ARGUMENT;
  gcap_batch_norm_t* plan = nullptr;
  GCAP_ASSERT_OK(gcap_batch_norm_create(&good, &plan));
  GCAP_EXPECT_FAILS(gcap_batch_norm_run(nullptr, stream_, p, p, p, p, p, p), bad, "norm is NULL");
  GCAP_EXPECT_FAILS(gcap_batch_norm_run(plan, nullptr, p, p, p, p, p, p), bad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_batch_norm_run(plan, stream_, nullptr, p, p, p, p, p), bad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_batch_norm_run(plan, stream_, p, nullptr, p, p, p, p), bad, "scale is NULL");
  GCAP_EXPECT_FAILS(gcap_batch_norm_run(plan, stream_, p, p, nullptr, p, p, p), bad, "bias is NULL");
  GCAP_EXPECT_FAILS(gcap_batch_norm_run(plan, stream_, p, p, p, nullptr, p, p), bad, "mean is NULL");
  GCAP_EXPECT_FAILS(gcap_batch_norm_run(plan, stream_, p, p, p, p, nullptr, p), bad, "variance is NULL");
  GCAP_EXPECT_FAILS(gcap_batch_norm_run(plan, stream_, p, p, p, p, p, nullptr), bad, "y is NULL");
  const void* odd = reinterpret_cast<const char*>(p) + 1;
  GCAP_EXPECT_FAILS(gcap_batch_norm_run(plan, stream_, odd, p, p, p, p, p), bad, "must be 4-byte aligned");
  gcap_batch_norm_destroy(plan);
}

TEST_F(BatchNorm, CreateIsRefusedWhileTheThreadCapturesAndFailsTheCapture) {
  const gcap_batch_norm_options_t good = Good();
  gcap_capture_t* capture = nullptr;
  gcap_batch_norm_t* plan = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_batch_norm_create(&good, &plan), GCAP_FAILED_PRECONDITION, "capturing");
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED,
                    "a batch normalization is planned before the capture");
  EXPECT_EQ(graph, nullptr);
}

TEST_F(BatchNorm, DestroyOfNullIsFine) { gcap_batch_norm_destroy(nullptr); }

}  // namespace
}  // namespace testing
}  // namespace gcap
