// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Local response normalization: numbers against a loop over doubles, special values, no elements, capture and replay,
// and bad input.

#include "gcap/kit/ops/normalize.h"
#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

constexpr gcap_code_t kBad = GCAP_INVALID_ARGUMENT;

struct Parameters {
  int64_t size;
  float alpha, beta, bias;
};

// The base of the power: each square is rounded, their sum twice, and alpha / size, the product and the sum with the
// bias once, all of them of one sign: 6. The power, whose exponent is at most 2, doubles that and is off by 8 (4 ulp)
// of its own; the quotient by 1.
constexpr double kRoundings = 21;

class Lrn : public OpTest {
 protected:
  gcap_status_t Issue(const Parameters& p, const gcap_tensor_t& x, const gcap_tensor_t& y) {
    return gcap_lrn(stream_, &x, p.size, p.alpha, p.beta, p.bias, &y);
  }
  Values Run(const Parameters& p, const DeviceTensor& x, size_t offset = 0) {
    const DeviceTensor y(x.type(), x.shape(), offset);
    GCAP_EXPECT_OK(Issue(p, x.view(), y.view()));
    Synchronize();
    return y.Get();
  }
};

// ONNX's formula, channel by channel.
Values Expected(const Parameters& p, const DeviceTensor& x) {
  const Values in = x.Get();
  const int64_t channels = x.shape()[1], before = (p.size - 1) / 2, after = p.size - 1 - before;
  Values expected;
  for (int64_t i = 0; i < static_cast<int64_t>(in.size()); ++i) {
    Shape index = Unravel(i, x.shape());
    const int64_t c = index[1];
    double squares = 0.0;
    for (index[1] = 0; index[1] < channels; ++index[1]) {
      const bool in_window = index[1] < c ? c - index[1] <= before : index[1] - c <= after;
      if (in_window) squares += std::pow(in[Ravel(index, x.shape())], 2);
    }
    const double base = static_cast<double>(p.bias) + static_cast<double>(p.alpha) / p.size * squares;
    expected.push_back(in[i] / std::pow(base, static_cast<double>(p.beta)));
  }
  return expected;
}

// Odd and even windows, windows of more than all channels, and of one; images, rows, and channels alone.
TEST_F(Lrn, EqualsTheLoopForAllSizesAndTypes) {
  const Shape kShapes[] = {{3, 1}, {2, 5}, {2, 7, 3}, {1, 4, 3, 2}, {2, 33, 5, 5}, {2, 3, 2, 2, 2, 2, 1, 2}};
  const int64_t kSizes[] = {1, 2, 3, 4, 5, 9, 100, INT64_MAX};
  const Parameters kOthers[] = {{0, 1e-4f, 0.75f, 1.0f}, {0, 3.0f, 2.0f, 0.25f}, {0, 0.5f, 0.5f, 2.0f}};
  unsigned seed = 0;
  for (const Shape& shape : kShapes) {
    Draws draws(++seed);
    for (gcap_dtype_t type : kFloatTypes) {
      const DeviceTensor x(type, shape, draws.Elements(type, Count(shape), -4, 4), draws.Int(0, 3));
      for (int64_t size : kSizes) {
        for (Parameters p : kOthers) {
          p.size = size;
          SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << gcap_dtype_name(type) << ", x "
                                            << ToString(shape) << ", size " << size << ", alpha " << p.alpha);
          ExpectStored(type, Run(p, x, draws.Int(0, 3)), Expected(p, x), kRoundings);
        }
      }
    }
  }
}

// Of 6 channels at two places, the third is a NaN at the first place. A window of 4 reaches one channel before its own
// and two behind it.
TEST_F(Lrn, ANanReachesTheWindowsThatHaveIt) {
  Values in(12, 2.0);
  in[2 * 2] = kNan;
  const DeviceTensor x(GCAP_DTYPE_F32, {1, 6, 2}, in);
  const Values y = Run({4, 1.0f, 1.0f, 1.0f}, x);
  for (int64_t c = 0; c < 6; ++c) {
    EXPECT_EQ(std::isnan(y[2 * c]), c <= 3) << "channel " << c;
    EXPECT_FALSE(std::isnan(y[2 * c + 1])) << "channel " << c;
  }
}

TEST_F(Lrn, ReplayReadsTheInputAgain) {
  const Parameters p = {5, 0.5f, 0.75f, 1.0f};
  for (gcap_dtype_t type : {GCAP_DTYPE_F32, GCAP_DTYPE_F16}) {
    Draws draws(3);
    const Shape shape = {2, 8, 3, 3};
    DeviceTensor x(type, shape, draws.Elements(type, Count(shape), -4, 4));
    const DeviceTensor y(type, shape);
    Graph graph(stream_, [&] { GCAP_EXPECT_OK(Issue(p, x.view(), y.view())); });
    EXPECT_EQ(graph.CountKernels(), 1u);
    for (int replay = 0; replay < 2; ++replay) {
      x.Set(draws.Elements(type, Count(shape), -4, 4));
      graph.Replay();
      ExpectStored(type, y.Get(), Expected(p, x), kRoundings);
    }
  }
}

TEST_F(Lrn, NoElementsLaunchNothing) {
  for (const Shape& shape : {Shape{0, 3, 2, 2}, Shape{2, 0, 2}, Shape{2, 3, 0}}) {
    const gcap_tensor_t x = View(GCAP_DTYPE_F32, shape, nullptr);
    const Graph graph(stream_, [&] { GCAP_EXPECT_OK(Issue({3, 1.0f, 1.0f, 1.0f}, x, x)); });
    EXPECT_EQ(graph.CountKernels(), 0u);
  }
}

TEST_F(Lrn, NamesTheBadArgument) {
  const Parameters p = {3, 1.0f, 1.0f, 1.0f};
  gcap_tensor_t x = View(GCAP_DTYPE_F32, {2, 3}, reinterpret_cast<void*>(1 << 20));
  gcap_tensor_t y = View(GCAP_DTYPE_F32, {2, 3}, reinterpret_cast<void*>(2 << 20));
  GCAP_EXPECT_FAILS(gcap_lrn(nullptr, &x, 3, 1.0f, 1.0f, 1.0f, &y), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_lrn(stream_, nullptr, 3, 1.0f, 1.0f, 1.0f, &y), kBad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_lrn(stream_, &x, 3, 1.0f, 1.0f, 1.0f, nullptr), kBad, "y is NULL");
  GCAP_EXPECT_FAILS(Issue({0, 1.0f, 1.0f, 1.0f}, x, y), kBad, "size is 0, allowed are 1 and more");
  GCAP_EXPECT_FAILS(Issue({-5, 1.0f, 1.0f, 1.0f}, x, y), kBad, "size is -5, allowed are 1 and more");
  GCAP_EXPECT_FAILS(Issue(p, x, x), kBad, "y overlaps x");
  y.dtype = GCAP_DTYPE_F16;
  GCAP_EXPECT_FAILS(Issue(p, x, y), kBad, "y is f16, must be f32: the type of x");
  y.dtype = GCAP_DTYPE_F32, y.shape[1] = 4;
  GCAP_EXPECT_FAILS(Issue(p, x, y), kBad, "y is [2,4], must be [2,3]: the shape of x");
  x.dtype = y.dtype = GCAP_DTYPE_I32;
  GCAP_EXPECT_FAILS(Issue(p, x, y), kBad, "lrn is not defined for i32, allowed are f32, f16, bf16");
  x.dtype = y.dtype = GCAP_DTYPE_F32, x.rank = y.rank = 1;
  GCAP_EXPECT_FAILS(Issue(p, x, y), kBad, "x.rank is 1, allowed are 2..8: axis 1 are the channels");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
