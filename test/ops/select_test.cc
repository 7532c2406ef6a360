// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Extrema and the k largest against a stable sort of doubles: drawn shapes of each rank and type, many equal elements,
// rows of one to thousands of elements, special values, no elements, and capture and replay.

#include "ops/kernels/select.h"

#include <algorithm>
#include <numeric>

#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

constexpr gcap_dtype_t kNumbers[] = {GCAP_DTYPE_F32, GCAP_DTYPE_F16, GCAP_DTYPE_BF16, GCAP_DTYPE_I64, GCAP_DTYPE_I32};

Shape WithSize(Shape shape, int axis, int64_t size) {
  shape[static_cast<size_t>(axis)] = size;
  return shape;
}

// The elements of the row of which `index` is any element.
Values RowOf(const Values& x, const Shape& shape, int axis, Shape index) {
  Values row;
  for (int64_t i = 0; i < shape[axis]; ++i) {
    index[axis] = i;
    row.push_back(x[Ravel(index, shape)]);
  }
  return row;
}

// Whether `a` comes before `b` where the largest come first. A NaN is larger than any number.
bool IsLarger(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  return a > b;
}

// The indices of a row in the order of its elements, equal ones in their own.
std::vector<int64_t> Sorted(const Values& row, bool smallest) {
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return smallest ? IsLarger(row[b], row[a]) : IsLarger(row[a], row[b]);
  });
  return order;
}

class Select : public OpTest {
 protected:
  void ExpectTop(const DeviceTensor& x, int axis, int64_t k, bool smallest, bool sorted, size_t offset = 0) {
    SCOPED_TRACE(::testing::Message() << gcap_dtype_name(x.type()) << " " << ToString(x.shape()) << ", axis " << axis
                                      << ", k " << k << (smallest ? ", smallest" : "") << (sorted ? ", sorted" : ""));
    const Shape shape = WithSize(x.shape(), axis, k);
    const DeviceTensor values(x.type(), shape, offset), indices(GCAP_DTYPE_I64, shape);
    const gcap_tensor_t x_view = x.view(), values_view = values.view(), indices_view = indices.view();
    GCAP_ASSERT_OK(gcap_top_k(stream_, &x_view, axis, smallest, sorted, &values_view, &indices_view));
    Synchronize();
    ExpectTopOf(x, axis, k, smallest, sorted, values.Get(), indices.Get());
  }
  static void ExpectTopOf(const DeviceTensor& x, int axis, int64_t k, bool smallest, bool sorted, const Values& values,
                          const Values& indices) {
    const Values in = x.Get();
    const Shape shape = WithSize(x.shape(), axis, k);
    for (int64_t i = 0; i < Count(shape); ++i) {
      Shape index = Unravel(i, shape);
      if (index[axis] != 0) continue;
      const Values row = RowOf(in, x.shape(), axis, index);
      std::vector<int64_t> order = Sorted(row, smallest);
      order.resize(static_cast<size_t>(k));
      if (!sorted) std::sort(order.begin(), order.end());
      for (int64_t at = 0; at < k; ++at) {
        index[axis] = at;
        const int64_t from = order[static_cast<size_t>(at)], place = Ravel(index, shape);
        ASSERT_EQ(indices[place], static_cast<double>(from)) << "place " << place;
        ASSERT_TRUE(values[place] == row[from] || (std::isnan(values[place]) && std::isnan(row[from])))
            << "place " << place << " is " << values[place] << ", must be " << row[from];
      }
    }
  }

  Values Arg(const DeviceTensor& x, int axis, bool smallest, bool last) {
    const DeviceTensor y(GCAP_DTYPE_I64, WithSize(x.shape(), axis, 1));
    const gcap_tensor_t x_view = x.view(), y_view = y.view();
    GCAP_EXPECT_OK(gcap_arg(stream_, &x_view, axis, smallest, last, &y_view));
    Synchronize();
    return y.Get();
  }
};

// --- The k largest --------------------------------------------------------------------------------------------------

TEST_F(Select, TopIsAStableSortForEachRankAndType) {
  for (unsigned seed = 0; seed < 64; ++seed) {
    SCOPED_TRACE(seed);
    Draws draws(seed);
    const int rank = 1 + static_cast<int>(seed % 8), axis = draws.Int(0, rank - 1);
    const Shape shape = WithSize(draws.AnyShape(rank, rank, rank > 4 ? 2 : 5), axis, draws.Int(1, 12));
    const int64_t k = draws.Int(1, static_cast<int>(shape[axis]));
    for (const gcap_dtype_t type : kNumbers) {
      // Halves or integers, so that many are equal.
      Values values = draws.Elements(GCAP_DTYPE_I64, Count(shape), -4, 4);
      for (double& value : values) value *= IsFloat(type) ? 0.5 : 1;
      const DeviceTensor x(type, shape, values, draws.Int(0, 3));
      ExpectTop(x, axis, k, draws.Int(0, 1) != 0, draws.Int(0, 3) != 0, draws.Int(0, 3));
    }
  }
}

// More elements than a block has threads, and than a digit has values.
TEST_F(Select, TopOfLongRows) {
  Draws draws(3);
  for (const gcap_dtype_t type : kNumbers) {
    const DeviceTensor last(type, {2, 3000}, draws.Elements(type, 6000, -2e4, 2e4));
    for (const int64_t k : {1, 31, 257, 3000}) {
      ExpectTop(last, 1, k, /*smallest=*/false, /*sorted=*/true);
      ExpectTop(last, 1, k, /*smallest=*/true, /*sorted=*/false);
    }
    const DeviceTensor first(type, {700, 2}, draws.Elements(type, 1400, -100, 100));
    ExpectTop(first, 0, 300, /*smallest=*/true, /*sorted=*/true);
  }
}

TEST_F(Select, TopOfEqualElementsAreTheFirst) {
  for (const gcap_dtype_t type : kNumbers) {
    const DeviceTensor x(type, {1, 1000}, Values(1000, 7.0));
    ExpectTop(x, 1, 600, /*smallest=*/false, /*sorted=*/true);
    ExpectTop(x, 1, 600, /*smallest=*/true, /*sorted=*/false);
  }
}

// The answers are those of ONNX Runtime 1.32's CPU EP.
TEST_F(Select, TopOrdersNansOfBothSignsBehindTheInfinity) {
  const double negative = std::copysign(kNan, -1.0);
  for (const gcap_dtype_t type : kFloatTypes) {
    const DeviceTensor x(type, {8}, {1, kNan, 3, negative, -kInf, 2, kInf, kNan}), values(type, {8});
    const DeviceTensor indices(GCAP_DTYPE_I64, {8});
    const gcap_tensor_t x_view = x.view(), values_view = values.view(), indices_view = indices.view();
    GCAP_ASSERT_OK(gcap_top_k(stream_, &x_view, 0, /*smallest=*/false, /*sorted=*/true, &values_view, &indices_view));
    Synchronize();
    EXPECT_EQ(indices.Get(), (Values{1, 3, 7, 6, 2, 5, 0, 4})) << gcap_dtype_name(type);
    GCAP_ASSERT_OK(gcap_top_k(stream_, &x_view, 0, /*smallest=*/true, /*sorted=*/true, &values_view, &indices_view));
    Synchronize();
    EXPECT_EQ(indices.Get(), (Values{4, 0, 5, 2, 6, 1, 3, 7})) << gcap_dtype_name(type);
  }
}

TEST_F(Select, TopOrdersSpecialValues) {
  for (const gcap_dtype_t type : kFloatTypes) {
    const DeviceTensor x(type, {9}, {1, kNan, -kInf, -0.0, kInf, 0.0, std::copysign(kNan, -1.0), -1, -0.0});
    for (const bool smallest : {false, true}) {
      ExpectTop(x, 0, 9, smallest, /*sorted=*/true);
      ExpectTop(x, 0, 4, smallest, /*sorted=*/true);
    }
  }
  for (const double largest : {std::ldexp(1.0, 62), std::ldexp(1.0, 30)}) {
    const gcap_dtype_t type = largest > 1e10 ? GCAP_DTYPE_I64 : GCAP_DTYPE_I32;
    const DeviceTensor x(type, {6}, {0, -2 * largest, largest, -1, 1, -largest});
    ExpectTop(x, 0, 5, /*smallest=*/false, /*sorted=*/true);
    ExpectTop(x, 0, 5, /*smallest=*/true, /*sorted=*/true);
  }
}

// --- Extrema --------------------------------------------------------------------------------------------------------

TEST_F(Select, ArgIsTheFirstOrTheLastExtremum) {
  for (unsigned seed = 0; seed < 64; ++seed) {
    Draws draws(seed);
    const int rank = 1 + static_cast<int>(seed / 4 % 8), axis = draws.Int(0, rank - 1);
    // A thread, a warp and a block for each row.
    const int64_t columns = seed % 4 == 3 ? draws.Int(1025, 1400) : draws.Int(1, seed % 4 == 2 ? 200 : 9);
    const Shape shape = WithSize(draws.AnyShape(rank, rank, rank > 4 && columns > 9 ? 1 : 2), axis, columns);
    for (const gcap_dtype_t type : kNumbers) {
      const DeviceTensor x(type, shape, draws.Elements(GCAP_DTYPE_I64, Count(shape), -3, 3), draws.Int(0, 3));
      const Values in = x.Get();
      for (const bool smallest : {false, true}) {
        for (const bool last : {false, true}) {
          SCOPED_TRACE(::testing::Message()
                       << "seed " << seed << ", " << gcap_dtype_name(type) << " " << ToString(shape) << ", axis "
                       << axis << (smallest ? ", smallest" : "") << (last ? ", last" : ""));
          const Shape rows = WithSize(shape, axis, 1);
          Values expected;
          for (int64_t i = 0; i < Count(rows); ++i) {
            const Values row = RowOf(in, shape, axis, Unravel(i, rows));
            const double extremum =
                smallest ? *std::min_element(row.begin(), row.end()) : *std::max_element(row.begin(), row.end());
            const auto first = std::find(row.begin(), row.end(), extremum);
            const auto behind = std::find(row.rbegin(), row.rend(), extremum).base();
            expected.push_back(static_cast<double>(last ? behind - row.begin() - 1 : first - row.begin()));
          }
          EXPECT_EQ(Arg(x, axis, smallest, last), expected);
        }
      }
    }
  }
}

TEST_F(Select, ANanIsTheExtremum) {
  for (const gcap_dtype_t type : kFloatTypes) {
    const DeviceTensor x(type, {5}, {-kInf, kNan, kInf, std::copysign(kNan, -1.0), 0});
    for (const bool smallest : {false, true}) {
      EXPECT_EQ(Arg(x, 0, smallest, /*last=*/false), Values{1});
      EXPECT_EQ(Arg(x, 0, smallest, /*last=*/true), Values{3});
    }
    const DeviceTensor zeros(type, {3}, {-0.0, 0.0, -0.0});
    EXPECT_EQ(Arg(zeros, 0, false, false), Values{0});
    EXPECT_EQ(Arg(zeros, 0, true, true), Values{2});
  }
}

// --- Edges ----------------------------------------------------------------------------------------------------------

TEST_F(Select, NoElementsLaunchNothing) {
  const DeviceTensor data(GCAP_DTYPE_F32, {2, 3});
  const gcap_tensor_t x = data.view(), none = View(GCAP_DTYPE_F32, {0, 3}, nullptr);
  const gcap_tensor_t no_values = View(GCAP_DTYPE_F32, {2, 0}, nullptr),
                      no_indices = View(GCAP_DTYPE_I64, {0, 1}, nullptr);
  const Graph graph(stream_, [&] {
    GCAP_EXPECT_OK(gcap_arg(stream_, &none, 1, false, false, &no_indices));
    GCAP_EXPECT_OK(gcap_top_k(stream_, &x, 1, false, true, &no_values, &no_indices));
    GCAP_EXPECT_OK(gcap_top_k(stream_, &none, 1, false, true, &none, &no_indices));
  });
  EXPECT_EQ(graph.CountKernels(), 0u);
}

TEST_F(Select, ReplaysReadTheInputAgain) {
  Draws draws(5);
  DeviceTensor x(GCAP_DTYPE_F16, {2, 40}, draws.Elements(GCAP_DTYPE_F16, 80, -4, 4));
  const DeviceTensor values(GCAP_DTYPE_F16, {2, 9}), indices(GCAP_DTYPE_I64, {2, 9}), arg(GCAP_DTYPE_I64, {2, 1});
  const gcap_tensor_t x_view = x.view(), values_view = values.view(), indices_view = indices.view();
  const gcap_tensor_t arg_view = arg.view();
  Graph graph(stream_, [&] {
    GCAP_EXPECT_OK(gcap_top_k(stream_, &x_view, 1, false, true, &values_view, &indices_view));
    GCAP_EXPECT_OK(gcap_arg(stream_, &x_view, 1, false, false, &arg_view));
  });
  EXPECT_EQ(graph.CountKernels(), 2u);
  for (int replay = 0; replay < 2; ++replay) {
    x.Set(draws.Elements(GCAP_DTYPE_F16, 80, -4, 4));
    graph.Replay();
    ExpectTopOf(x, 1, 9, false, true, values.Get(), indices.Get());
    EXPECT_EQ(arg.Get(), (Values{indices.Get()[0], indices.Get()[9]}));
  }
}

TEST_F(Select, NamesTheBadTensor) {
  const DeviceTensor data(GCAP_DTYPE_I64, {4}), other(GCAP_DTYPE_I64, {4});
  const gcap_tensor_t x = data.view(), y = other.view(), none = View(GCAP_DTYPE_I64, {4}, nullptr);
  const gcap_tensor_t inside = View(GCAP_DTYPE_I64, {1}, x.data);
  GCAP_EXPECT_FAILS(gcap_arg(stream_, &x, 0, false, false, &inside), GCAP_INVALID_ARGUMENT, "y overlaps x");
  GCAP_EXPECT_FAILS(gcap_arg(stream_, &none, 0, false, false, &inside), GCAP_INVALID_ARGUMENT, "x.data is NULL");
  GCAP_EXPECT_FAILS(gcap_top_k(stream_, &x, 0, false, true, &x, &y), GCAP_INVALID_ARGUMENT, "values overlaps x");
  GCAP_EXPECT_FAILS(gcap_top_k(stream_, &x, 0, false, true, &y, &none), GCAP_INVALID_ARGUMENT, "indices.data is NULL");
  GCAP_EXPECT_FAILS(gcap_top_k(stream_, &x, 0, false, true, &y, &y), GCAP_INVALID_ARGUMENT, "indices overlaps values");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
