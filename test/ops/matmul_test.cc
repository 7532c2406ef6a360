// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Matmul: numbers against double-precision loops, capture and replay, one plan on many threads, and bad input.

#include "gcap/kit/ops/matmul.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>

#include "gcap/capture.h"
#include "test/ops/op_test.h"

namespace gcap {
namespace testing {
namespace {

struct Shape {
  int64_t m, n, k;
};

// Half a unit in the last place of 1: one rounding is off by at most this part of its result.
constexpr double kRounding = 1.0 / (1 << 24);

// C, and for each element the largest error that k products and k additions in fp32, in any order, can make: (k + 2)
// roundings of at most the sum of the absolute terms. TF32, which rounds the inputs to 2^-11, breaks it for small k.
struct Expected {
  std::vector<double> value;
  std::vector<double> tolerance;
};

Expected Reference(const Shape& s, gcap_matmul_epilogue_t epilogue, const std::vector<float>& a,
                   const std::vector<float>& b, const std::vector<float>& bias) {
  Expected expected;
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = epilogue == GCAP_MATMUL_EPILOGUE_NONE ? 0.0 : bias[j];
      double magnitude = std::fabs(sum);
      for (int64_t l = 0; l < s.k; ++l) {
        const double term = static_cast<double>(a[i * s.k + l]) * b[j * s.k + l];
        sum += term;
        magnitude += std::fabs(term);
      }
      expected.value.push_back(epilogue == GCAP_MATMUL_EPILOGUE_BIAS_RELU ? std::max(sum, 0.0) : sum);
      expected.tolerance.push_back((s.k + 2) * kRounding * magnitude);
    }
  }
  return expected;
}

void ExpectNear(const std::vector<float>& actual, const Expected& expected) {
  ASSERT_EQ(actual.size(), expected.value.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected.value[i], expected.tolerance[i]) << "element " << i;
  }
}

class Matmul : public OpTest {
 protected:
  void SetUp() override {
    OpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    if (handle_ != nullptr) {
      EXPECT_EQ(cublasLtDestroy(handle_), CUBLAS_STATUS_SUCCESS);
    }
    OpTest::TearDown();
  }

  gcap_matmul_options_t Options(const Shape& s, gcap_matmul_epilogue_t epilogue, size_t max_workspace_bytes) {
    gcap_matmul_options_t options;
    gcap_matmul_options_init(&options);
    options.handle = handle_;
    options.m = s.m;
    options.n = s.n;
    options.k = s.k;
    options.epilogue = epilogue;
    options.max_workspace_bytes = max_workspace_bytes;
    return options;
  }

  cublasLtHandle_t handle_ = nullptr;
};

// A plan with its operands on the device; the operands start `offset` floats into their allocations.
struct Problem {
  Problem(const gcap_matmul_options_t& options, unsigned seed, size_t offset = 0)
      : shape{options.m, options.n, options.k},
        epilogue(options.epilogue),
        a(RandomFloats(shape.m * shape.k, seed)),
        b(RandomFloats(shape.n * shape.k, seed + 1)),
        bias(RandomFloats(shape.n, seed + 2)),
        offset(offset),
        device_a(Behind(offset, a)),
        device_b(Behind(offset, b)),
        device_bias(Behind(offset, bias)),
        device_c(Behind(offset, std::vector<float>(shape.m * shape.n))) {
    GCAP_EXPECT_OK(gcap_matmul_create(&options, &plan));
    if (plan == nullptr) return;
    EXPECT_LE(gcap_matmul_workspace_bytes(plan), options.max_workspace_bytes);
    workspace =
        std::make_unique<DeviceFloats>(std::vector<float>(gcap_matmul_workspace_bytes(plan) / sizeof(float) + 1));
  }
  ~Problem() { gcap_matmul_destroy(plan); }

  gcap_status_t Run(gcap_stream_t* stream) {
    return gcap_matmul_run(plan, stream, device_a.get() + offset, device_b.get() + offset,
                           epilogue == GCAP_MATMUL_EPILOGUE_NONE ? nullptr : device_bias.get() + offset,
                           /*addend=*/nullptr, device_c.get() + offset,
                           gcap_matmul_workspace_bytes(plan) == 0 ? nullptr : workspace->get());
  }
  std::vector<float> C() const { return Without(offset, device_c.Get()); }
  Expected Reference() const { return testing::Reference(shape, epilogue, a, b, bias); }

  Shape shape;
  gcap_matmul_epilogue_t epilogue;
  std::vector<float> a, b, bias;
  size_t offset;
  DeviceFloats device_a, device_b, device_bias, device_c;
  gcap_matmul_t* plan = nullptr;
  std::unique_ptr<DeviceFloats> workspace;
};

constexpr gcap_matmul_epilogue_t kEpilogues[] = {GCAP_MATMUL_EPILOGUE_NONE, GCAP_MATMUL_EPILOGUE_BIAS,
                                                 GCAP_MATMUL_EPILOGUE_BIAS_RELU};
constexpr Shape kShapes[] = {{1, 1, 1},    {1, 10, 64},  {7, 1, 5},    {3, 5, 1},     {2, 3, 4},
                             {32, 10, 64}, {17, 13, 11}, {64, 64, 64}, {5, 33, 1031}, {128, 48, 256}};
constexpr size_t kWorkspaceLimits[] = {0, 4 << 20};

TEST_F(Matmul, EqualsTheDoubleLoopForAllShapesAndEpilogues) {
  unsigned seed = 1;
  for (const Shape& shape : kShapes) {
    for (gcap_matmul_epilogue_t epilogue : kEpilogues) {
      for (size_t limit : kWorkspaceLimits) {
        SCOPED_TRACE(::testing::Message() << "m " << shape.m << ", n " << shape.n << ", k " << shape.k << ", epilogue "
                                          << epilogue << ", workspace limit " << limit << ", seed " << seed);
        Problem problem(Options(shape, epilogue, limit), seed++);
        GCAP_ASSERT_OK(problem.Run(stream_));
        Synchronize();
        ExpectNear(problem.C(), problem.Reference());
      }
    }
  }
}

TEST_F(Matmul, TakesArraysThatAreOnlyAlignedAsFloatsAre) {
  for (gcap_matmul_epilogue_t epilogue : kEpilogues) {
    Problem problem(Options({24, 16, 32}, epilogue, 4 << 20), 100, /*offset=*/1);
    GCAP_ASSERT_OK(problem.Run(stream_));
    Synchronize();
    ExpectNear(problem.C(), problem.Reference());
  }
}

TEST_F(Matmul, KeepsANaNInItsRow) {
  Problem problem(Options({2, 2, 2}, GCAP_MATMUL_EPILOGUE_BIAS, 0), 110);
  problem.a[0] = std::numeric_limits<float>::quiet_NaN();
  problem.device_a.Set(problem.a);
  GCAP_ASSERT_OK(problem.Run(stream_));
  Synchronize();
  const std::vector<float> c = problem.C();
  EXPECT_TRUE(std::isnan(c[0]) && std::isnan(c[1]));
  EXPECT_FALSE(std::isnan(c[2]) || std::isnan(c[3]));
}

TEST_F(Matmul, ReplayEqualsEagerAlsoAfterTheInputsChanged) {
  for (gcap_matmul_epilogue_t epilogue : kEpilogues) {
    for (const Shape& shape : {Shape{32, 10, 64}, Shape{4, 8, 1024}}) {
      Problem problem(Options(shape, epilogue, 4 << 20), 120);
      Graph graph(stream_, [&] { GCAP_EXPECT_OK(problem.Run(stream_)); });
      EXPECT_GE(graph.CountKernels(), 1u);
      for (unsigned seed : {130u, 140u}) {
        problem.a = RandomFloats(problem.a.size(), seed);
        problem.bias = RandomFloats(problem.bias.size(), seed + 1);
        problem.device_a.Set(problem.a);
        problem.device_bias.Set(problem.bias);
        GCAP_ASSERT_OK(problem.Run(stream_));
        Synchronize();
        const std::vector<float> eager = problem.C();
        ExpectNear(eager, problem.Reference());
        problem.device_c.Set(std::vector<float>(eager.size(), -7.0f));
        graph.Replay();
        EXPECT_EQ(problem.C(), eager);  // the same kernels on the same bytes: bit for bit
      }
    }
  }
}

TEST_F(Matmul, OnePlanServesManyThreadsWithABiasEach) {
  constexpr int kThreads = 4, kRuns = 20;
  const Shape shape = {8, 16, 32};
  const gcap_matmul_options_t options = Options(shape, GCAP_MATMUL_EPILOGUE_BIAS, 0);
  const Problem shared(options, 150);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      gcap_stream_t* stream = nullptr;
      GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
      {
        const std::vector<float> bias = RandomFloats(shape.n, 160 + t);
        const DeviceFloats device_bias(bias), device_c(std::vector<float>(shape.m * shape.n));
        const Expected expected = Reference(shape, options.epilogue, shared.a, shared.b, bias);
        for (int run = 0; run < kRuns; ++run) {
          GCAP_EXPECT_OK(gcap_matmul_run(shared.plan, stream, shared.device_a.get(), shared.device_b.get(),
                                         device_bias.get(), /*addend=*/nullptr, device_c.get(), nullptr));
          GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
          ExpectNear(device_c.Get(), expected);
        }
      }
      GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Matmul, CreateNamesTheBadOption) {
  const gcap_matmul_options_t good = Options({2, 3, 4}, GCAP_MATMUL_EPILOGUE_BIAS, 0);
  const auto expect_refused = [](const gcap_matmul_options_t* options, const char* culprit) {
    gcap_matmul_t* plan = reinterpret_cast<gcap_matmul_t*>(1);
    GCAP_EXPECT_FAILS(gcap_matmul_create(options, &plan), GCAP_INVALID_ARGUMENT, culprit);
    EXPECT_EQ(plan, nullptr);
  };
  expect_refused(nullptr, "options is NULL");
  GCAP_EXPECT_FAILS(gcap_matmul_create(&good, nullptr), GCAP_INVALID_ARGUMENT, "out_matmul is NULL");
  gcap_matmul_options_t bad = good;
  bad.handle = nullptr;
  expect_refused(&bad, "handle is NULL");
  const struct {
    std::function<void(gcap_matmul_options_t*)> spoil;
    const char* culprit;
  } kSpoilt[] = {
      {[](auto* o) { o->m = -1; }, "m is -1, allowed are 0..2147483647"},
      {[](auto* o) { o->n = -2; }, "n is -2"},
      {[](auto* o) { o->k = std::numeric_limits<int64_t>::min(); }, "k is -9223372036854775808"},
      {[](auto* o) { o->m = o->k = std::numeric_limits<int32_t>::max(); }, "m is 2147483647 and k is 2147483647"},
      {[](auto* o) { o->batch = -1; }, "batch is -1"},
      {[](auto* o) { o->a_stride = -2; }, "a_stride is -2"},
      {[](auto* o) { o->b_stride = -2; }, "b_stride is -2"},
      {[](auto* o) { o->batch = 3, o->b_stride = std::numeric_limits<int64_t>::max(); }, "exceeds the address space"},
      {[](auto* o) { o->epilogue = static_cast<gcap_matmul_epilogue_t>(6); }, "epilogue is 6, allowed are 0..5"},
      {[](auto* o) { o->dtype = GCAP_DTYPE_I32; }, "dtype is i32"},
      {[](auto* o) { o->dtype = static_cast<gcap_dtype_t>(77); }, "dtype is unknown type (77)"},
      {[](auto* o) { o->dtype = GCAP_DTYPE_F16, o->tf32 = true; }, "tf32 is true and dtype is f16"},
      {[](auto* o) { o->addend = static_cast<gcap_matmul_addend_t>(5); }, "addend is 5"},
      {[](auto* o) { o->addend = GCAP_MATMUL_ADDEND_ROW, o->batch = 2; }, "addend is 2 and batch is 2"},
      {[](auto* o) { o->alignment_bytes = 3; }, "alignment_bytes is 3"},
      {[](auto* o) { o->alignment_bytes = 512; }, "alignment_bytes is 512"},
  };
  for (const auto& [spoil, culprit] : kSpoilt) {
    bad = good;
    spoil(&bad);
    expect_refused(&bad, culprit);
  }
}

TEST_F(Matmul, RunNamesTheNullAddress) {
  Problem with(Options({2, 3, 4}, GCAP_MATMUL_EPILOGUE_BIAS, 0), 170);
  Problem without(Options({2, 3, 4}, GCAP_MATMUL_EPILOGUE_NONE, 0), 180);
  const float *a = with.device_a.get(), *b = with.device_b.get(), *bias = with.device_bias.get();
  float* c = with.device_c.get();
  const auto bad = GCAP_INVALID_ARGUMENT;
  GCAP_EXPECT_FAILS(gcap_matmul_run(nullptr, stream_, a, b, bias, /*addend=*/nullptr, c, nullptr), bad,
                    "matmul is NULL");
  GCAP_EXPECT_FAILS(gcap_matmul_run(with.plan, nullptr, a, b, bias, /*addend=*/nullptr, c, nullptr), bad,
                    "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_matmul_run(with.plan, stream_, nullptr, b, bias, /*addend=*/nullptr, c, nullptr), bad,
                    "a is NULL");
  GCAP_EXPECT_FAILS(gcap_matmul_run(with.plan, stream_, a, nullptr, bias, /*addend=*/nullptr, c, nullptr), bad,
                    "b is NULL");
  GCAP_EXPECT_FAILS(gcap_matmul_run(with.plan, stream_, a, b, nullptr, /*addend=*/nullptr, c, nullptr), bad,
                    "bias is NULL");
  GCAP_EXPECT_FAILS(gcap_matmul_run(with.plan, stream_, a, b, bias, /*addend=*/nullptr, nullptr, nullptr), bad,
                    "c is NULL");
  GCAP_EXPECT_FAILS(gcap_matmul_run(without.plan, stream_, a, b, bias, /*addend=*/nullptr, c, nullptr), bad,
                    "bias is not NULL");
  GCAP_EXPECT_FAILS(gcap_matmul_run(with.plan, stream_, a, b, bias, c, c, nullptr), bad, "addend is not NULL");
  const auto* odd = reinterpret_cast<const char*>(a) + 2;
  GCAP_EXPECT_FAILS(gcap_matmul_run(with.plan, stream_, odd, b, bias, /*addend=*/nullptr, c, nullptr), bad,
                    "it must be 4-byte aligned");
}

TEST_F(Matmul, CreateIsRefusedWhileTheThreadCapturesAndFailsTheCapture) {
  const gcap_matmul_options_t options = Options({2, 3, 4}, GCAP_MATMUL_EPILOGUE_NONE, 0);
  gcap_capture_t* capture = nullptr;
  gcap_matmul_t* plan = nullptr;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_matmul_create(&options, &plan), GCAP_FAILED_PRECONDITION, "capturing");
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED,
                    "a matmul is planned before the capture");
  EXPECT_EQ(graph, nullptr);
}

TEST_F(Matmul, DestroyOfNullIsFine) { gcap_matmul_destroy(nullptr); }

}  // namespace
}  // namespace testing
}  // namespace gcap
