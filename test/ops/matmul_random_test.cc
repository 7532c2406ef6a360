// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Matmul with everything that its options offer, drawn at random from a fixed seed: types, transposes, batches,
// strides, scalars, addends, epilogues, empty sizes and odd addresses, against loops in double; each also captured and
// replayed with other inputs.

#include "gcap/kit/ops/matmul.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "test/ops/op_test.h"
#include "test/ops/typed.h"

namespace gcap {
namespace testing {
namespace {

constexpr unsigned kSeed = 20260101;
constexpr int kProblems = 150;
constexpr size_t kMaxWorkspace = 4 << 20;

bool HasBias(gcap_matmul_epilogue_t e) {
  return e == GCAP_MATMUL_EPILOGUE_BIAS || e == GCAP_MATMUL_EPILOGUE_BIAS_RELU || e == GCAP_MATMUL_EPILOGUE_BIAS_GELU;
}
bool HasRelu(gcap_matmul_epilogue_t e) { return e == GCAP_MATMUL_EPILOGUE_RELU || e == GCAP_MATMUL_EPILOGUE_BIAS_RELU; }
bool HasGelu(gcap_matmul_epilogue_t e) { return e == GCAP_MATMUL_EPILOGUE_GELU || e == GCAP_MATMUL_EPILOGUE_BIAS_GELU; }

// Options, and all operands on the host. Strides in the options are given, never PACKED.
struct Problem {
  gcap_matmul_options_t o;
  size_t offset;  // of each array, in elements
  std::vector<double> a, b, bias, addend;

  gcap_dtype_t out_dtype() const { return o.out_f32 ? GCAP_DTYPE_F32 : o.dtype; }
  size_t c_size() const { return static_cast<size_t>(o.batch * o.m * o.n); }

  void DrawValues(std::mt19937* generator) {
    const auto elements = [this](int64_t one, int64_t stride) {
      return static_cast<size_t>(o.batch == 0 ? 0 : (o.batch - 1) * stride + one);
    };
    const size_t kAddends[] = {0, c_size(), static_cast<size_t>(o.n), static_cast<size_t>(o.m), 1};
    a = RandomValues(elements(o.m * o.k, o.a_stride), o.dtype, generator);
    b = RandomValues(elements(o.k * o.n, o.b_stride), o.dtype, generator);
    bias = RandomValues(static_cast<size_t>(o.n), out_dtype(), generator);
    addend = RandomValues(kAddends[o.addend], out_dtype(), generator);
  }

  double Addend(int64_t batch, int64_t i, int64_t j) const {
    switch (o.addend) {
      case GCAP_MATMUL_ADDEND_FULL: return addend[(batch * o.m + i) * o.n + j];
      case GCAP_MATMUL_ADDEND_ROW: return addend[j];
      case GCAP_MATMUL_ADDEND_COLUMN: return addend[i];
      case GCAP_MATMUL_ADDEND_SCALAR: return addend[0];
      default: return 0.0;
    }
  }

  // One element before its activation; in `magnitude` the sum of the absolute terms.
  double Sum(int64_t batch, int64_t i, int64_t j, double* magnitude) const {
    double sum = 0.0;
    *magnitude = 0.0;
    for (int64_t l = 0; l < o.k; ++l) {
      const double left = a[batch * o.a_stride + (o.trans_a ? l * o.m + i : i * o.k + l)];
      const double right = b[batch * o.b_stride + (o.trans_b ? j * o.k + l : l * o.n + j)];
      sum += o.alpha * left * right;
      *magnitude += std::fabs(o.alpha * left * right);
    }
    const double more[] = {o.addend == GCAP_MATMUL_ADDEND_NONE ? 0.0 : o.beta * Addend(batch, i, j),
                           HasBias(o.epilogue) ? bias[j] : 0.0};
    for (double term : more) {
      sum += term;
      *magnitude += std::fabs(term);
    }
    return sum;
  }

  // Sums are made in f32: a rounding for each product, sum, scalar and addend, of at most the sum of the absolute
  // terms. TF32 first takes from each factor up to 2^-10 of it, if a GPU cuts it off, so 2^-9 from a product. GELU's
  // slope is at most 1.13; the tanh instruction of a GPU is off by up to 2^-11 (PTX ISA, tanh.approx.f32), which counts
  // for half of |x|. An H200 rounds a product of 16 bits to its type before bias and activation, and computes the GELU
  // in that type, which rounds its argument, the tanh and their product; with a workspace, an algorithm may split the
  // depth and keep the partial sums in 16 bits. The result is rounded to the output's type; below F16's smallest normal
  // number the last place is 2^-24.
  TypedExpectation Reference() const {
    TypedExpectation expected;
    for (int64_t batch = 0; batch < o.batch; ++batch) {
      for (int64_t i = 0; i < o.m; ++i) {
        for (int64_t j = 0; j < o.n; ++j) {
          double magnitude;
          double value = Sum(batch, i, j, &magnitude);
          double tolerance = (o.k + 6) * std::ldexp(magnitude, -24) + (o.tf32 ? std::ldexp(magnitude, -9) : 0.0);
          if (out_dtype() != GCAP_DTYPE_F32 && o.max_workspace_bytes > 0)
            tolerance += Rounding(out_dtype()) * magnitude;
          if (out_dtype() != GCAP_DTYPE_F32 && o.epilogue != GCAP_MATMUL_EPILOGUE_NONE) {
            const double before_bias = value - (HasBias(o.epilogue) ? bias[j] : 0.0);
            tolerance += Rounding(out_dtype()) * std::max(std::fabs(before_bias), std::fabs(value));
          }
          if (HasRelu(o.epilogue)) value = std::max(value, 0.0);
          if (HasGelu(o.epilogue)) {
            tolerance = 1.13 * tolerance + std::ldexp(0.5 * std::fabs(value), -11) + std::ldexp(1.0, -22);
            if (out_dtype() != GCAP_DTYPE_F32) tolerance += 3 * Rounding(out_dtype()) * std::fabs(value);
            value = 0.5 * value * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (value + 0.044715 * value * value * value)));
          }
          const double rounding = Rounding(out_dtype()) * (std::fabs(value) + tolerance) + std::ldexp(1.0, -25);
          expected.value.push_back(value);
          expected.tolerance.push_back(tolerance + rounding);
        }
      }
    }
    return expected;
  }
};

int64_t Draw(int64_t least, int64_t most, std::mt19937* generator) {
  return std::uniform_int_distribution<int64_t>(least, most)(*generator);
}

int64_t DrawStride(int64_t packed, std::mt19937* generator) {
  const int64_t kChoices[] = {packed, packed, 0, packed + 3};
  return kChoices[Draw(0, 3, generator)];
}

Problem DrawProblem(cublasLtHandle_t handle, std::mt19937* generator) {
  constexpr float kScalars[] = {1.0f, 1.0f, 0.5f, -2.0f, 0.0f};
  Problem problem;
  gcap_matmul_options_t& o = problem.o;
  gcap_matmul_options_init(&o);
  o.handle = handle;
  o.m = Draw(0, 33, generator), o.n = Draw(0, 33, generator);
  o.k = Draw(0, 7, generator) == 0 ? Draw(256, 1100, generator) : Draw(0, 40, generator);
  o.epilogue = static_cast<gcap_matmul_epilogue_t>(Draw(0, 5, generator));
  o.max_workspace_bytes = Draw(0, 1, generator) == 0 ? 0 : kMaxWorkspace;
  o.dtype = static_cast<gcap_dtype_t>(Draw(0, 2, generator));
  o.out_f32 = Draw(0, 2, generator) == 0;
  o.tf32 = o.dtype == GCAP_DTYPE_F32 && Draw(0, 1, generator) == 0;
  o.trans_a = Draw(0, 1, generator) == 0, o.trans_b = Draw(0, 1, generator) == 0;
  o.batch = Draw(0, 1, generator) == 0 ? 1 : Draw(0, 4, generator);
  o.a_stride = DrawStride(o.m * o.k, generator), o.b_stride = DrawStride(o.k * o.n, generator);
  o.alpha = kScalars[Draw(0, 4, generator)], o.beta = kScalars[Draw(0, 4, generator)];
  o.addend = static_cast<gcap_matmul_addend_t>(Draw(0, o.batch > 1 ? 1 : 4, generator));
  problem.offset = static_cast<size_t>(Draw(0, 1, generator));
  problem.DrawValues(generator);
  return problem;
}

class MatmulRandom : public OpTest {
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

  cublasLtHandle_t handle_ = nullptr;
};

std::string Describe(const Problem& p, int index) {
  const gcap_matmul_options_t& o = p.o;
  return (::testing::Message() << "problem " << index << " of seed " << kSeed << ": m " << o.m << ", n " << o.n
                               << ", k " << o.k << ", batch " << o.batch << " strides " << o.a_stride << " "
                               << o.b_stride << ", trans " << o.trans_a << o.trans_b << ", " << gcap_dtype_name(o.dtype)
                               << " tf32 " << o.tf32 << " out_f32 " << o.out_f32 << ", epilogue " << o.epilogue
                               << ", alpha " << o.alpha << ", beta " << o.beta << ", addend " << o.addend << ", offset "
                               << p.offset << ", workspace " << o.max_workspace_bytes)
      .GetString();
}

// Runs a plan on the stream, then replays the run's graph with other operands.
void ExpectRight(gcap_stream_t* stream, Problem* p, std::mt19937* generator) {
  const gcap_dtype_t dtype = p->o.dtype, out = p->out_dtype();
  gcap_matmul_t* plan = nullptr;
  GCAP_ASSERT_OK(gcap_matmul_create(&p->o, &plan));
  TypedArray a(dtype, p->a, p->offset), b(dtype, p->b, p->offset), bias(out, p->bias, p->offset);
  TypedArray addend(out, p->addend, p->offset), c(out, std::vector<double>(p->c_size(), 7.0), p->offset);
  const DeviceFloats workspace(std::vector<float>(gcap_matmul_workspace_bytes(plan) / sizeof(float) + 1));
  const auto run = [&] {
    GCAP_EXPECT_OK(gcap_matmul_run(plan, stream, a.get(), b.get(), HasBias(p->o.epilogue) ? bias.get() : nullptr,
                                   p->o.addend == GCAP_MATMUL_ADDEND_NONE ? nullptr : addend.get(), c.get(),
                                   workspace.get()));
  };
  run();
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  ExpectNear(c.Get(), p->Reference());
  {
    Graph graph(stream, run);
    p->DrawValues(generator);
    a.Set(p->a), b.Set(p->b), bias.Set(p->bias), addend.Set(p->addend);
    graph.Replay();
    ExpectNear(c.Get(), p->Reference());
  }
  gcap_matmul_destroy(plan);
}

TEST_F(MatmulRandom, EqualsTheDoubleLoopAlsoWhenReplayed) {
  std::mt19937 generator(kSeed);
  for (int i = 0; i < kProblems && !HasFailure(); ++i) {
    Problem problem = DrawProblem(handle_, &generator);
    SCOPED_TRACE(Describe(problem, i));
    ExpectRight(stream_, &problem, &generator);
  }
}

TEST_F(MatmulRandom, AFullAddendMayBeTheOutput) {
  std::mt19937 generator(kSeed);
  Problem p = DrawProblem(handle_, &generator);
  gcap_matmul_options_init(&p.o);
  p.o.handle = handle_;
  p.o.m = 5, p.o.n = 7, p.o.k = 9;
  p.o.a_stride = 45, p.o.b_stride = 63;
  p.o.beta = -0.5f;
  p.o.addend = GCAP_MATMUL_ADDEND_FULL;
  p.DrawValues(&generator);
  const TypedArray a(p.o.dtype, p.a), b(p.o.dtype, p.b), c(p.o.dtype, p.addend);
  gcap_matmul_t* plan = nullptr;
  GCAP_ASSERT_OK(gcap_matmul_create(&p.o, &plan));
  GCAP_EXPECT_OK(gcap_matmul_run(plan, stream_, a.get(), b.get(), nullptr, c.get(), c.get(), nullptr));
  Synchronize();
  ExpectNear(c.Get(), p.Reference());
  gcap_matmul_destroy(plan);
}

// Aligned as wide loads want it, and promised to be.
TEST_F(MatmulRandom, ABetterAlignmentIsPromisedAndThenDemanded) {
  std::mt19937 generator(kSeed);
  Problem p = DrawProblem(handle_, &generator);
  gcap_matmul_options_init(&p.o);
  p.o.handle = handle_;
  p.o.m = p.o.n = p.o.k = 16;
  p.o.a_stride = p.o.b_stride = 256;
  p.o.dtype = GCAP_DTYPE_F16;
  p.o.alignment_bytes = 16;
  p.DrawValues(&generator);
  const TypedArray a(p.o.dtype, p.a), b(p.o.dtype, p.b), c(p.o.dtype, std::vector<double>(256));
  gcap_matmul_t* plan = nullptr;
  GCAP_ASSERT_OK(gcap_matmul_create(&p.o, &plan));
  GCAP_EXPECT_OK(gcap_matmul_run(plan, stream_, a.get(), b.get(), nullptr, /*addend=*/nullptr, c.get(), nullptr));
  Synchronize();
  ExpectNear(c.Get(), p.Reference());
  const void* odd = static_cast<char*>(b.get()) + 8;
  GCAP_EXPECT_FAILS(gcap_matmul_run(plan, stream_, a.get(), odd, nullptr, /*addend=*/nullptr, c.get(), nullptr),
                    GCAP_INVALID_ARGUMENT, "it must be 16-byte aligned");
  gcap_matmul_destroy(plan);
}

TEST_F(MatmulRandom, NothingToComputeNeedsNoAddress) {
  for (int which = 0; which < 3; ++which) {
    gcap_matmul_options_t o;
    gcap_matmul_options_init(&o);
    o.handle = handle_;
    o.m = o.n = o.k = 3;
    (which == 0 ? o.m : which == 1 ? o.n : o.batch) = 0;
    gcap_matmul_t* plan = nullptr;
    GCAP_ASSERT_OK(gcap_matmul_create(&o, &plan));
    EXPECT_EQ(gcap_matmul_workspace_bytes(plan), 0u);
    GCAP_EXPECT_OK(gcap_matmul_run(plan, stream_, nullptr, nullptr, nullptr, /*addend=*/nullptr, nullptr, nullptr));
    gcap_matmul_destroy(plan);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
