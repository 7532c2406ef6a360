// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Transpose, concat, split, slice and gather: against loops over indices, for random shapes of all types, at odd
// addresses; no elements, capture and replay. test/ops/layout_refusal_test.cc has what is refused.

#include "gcap/kit/ops/layout.h"

#include <functional>
#include <memory>
#include <numeric>

#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

constexpr unsigned kSeeds = 8;

class Layout : public OpTest {
 protected:
  static Values Draw(Draws* draws, gcap_dtype_t type, const Shape& shape) {
    return draws->Elements(type, Count(shape), -99, 99);
  }
  // What `issue` writes to a tensor.
  Values Run(gcap_dtype_t type, const Shape& shape, size_t offset,
             const std::function<gcap_status_t(const gcap_tensor_t*)>& issue) {
    const DeviceTensor y(type, shape, offset);
    const gcap_tensor_t view = y.view();
    GCAP_EXPECT_OK(issue(&view));
    Synchronize();
    return y.Get();
  }
};

// y[index] = x[from(index)]
Values Moved(const Values& x, const Shape& x_shape, const Shape& y_shape,
             const std::function<Shape(const Shape&)>& from) {
  Values y(Count(y_shape));
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = x[Ravel(from(Unravel(static_cast<int64_t>(i), y_shape)), x_shape)];
  }
  return y;
}

class Transpose : public Layout {
 protected:
  void ExpectTransposed(gcap_dtype_t type, const Shape& shape, const std::vector<int64_t>& perm, unsigned seed) {
    Draws draws(seed);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << gcap_dtype_name(type) << ", x " << ToString(shape)
                                      << ", perm " << ToString(perm));
    const DeviceTensor x(type, shape, Draw(&draws, type, shape), draws.Int(0, 2));
    Shape y_shape(shape.size());
    for (size_t i = 0; i < perm.size(); ++i) y_shape[i] = shape[perm[i]];
    const gcap_tensor_t xv = x.view();
    const Values y = Run(type, y_shape, draws.Int(0, 2),
                         [&](const gcap_tensor_t* out) { return gcap_transpose(stream_, &xv, perm.data(), out); });
    EXPECT_TRUE(y == Moved(x.Get(), shape, y_shape, [&](const Shape& index) {
                  Shape from(index.size());
                  for (size_t i = 0; i < perm.size(); ++i) from[perm[i]] = index[i];
                  return from;
                }));
  }
};

TEST_F(Transpose, EqualsTheLoopForRandomPermutationsOfAllTypes) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    for (gcap_dtype_t type : kAllTypes) {
      std::mt19937 generator(seed);
      const Shape shape = Draws(seed + 100).AnyShape(0, GCAP_MAX_RANK, 4);
      std::vector<int64_t> perm(shape.size());
      std::iota(perm.begin(), perm.end(), 0);
      std::shuffle(perm.begin(), perm.end(), generator);
      ExpectTransposed(type, shape, perm, seed);
    }
  }
}

// Around a tile, more than one, several batches; axes that stay neighbours and so move as one.
TEST_F(Transpose, EqualsTheLoopForMatrices) {
  for (gcap_dtype_t type : kAllTypes) {
    for (const Shape& shape : {Shape{31, 33}, Shape{32, 32}, Shape{1, 65}, Shape{100, 3}}) {
      ExpectTransposed(type, shape, {1, 0}, 1);
    }
    ExpectTransposed(type, {3, 40, 35}, {0, 2, 1}, 2);
    ExpectTransposed(type, {2, 5, 3, 7}, {0, 3, 1, 2}, 3);
    ExpectTransposed(type, {2, 5, 3, 8}, {2, 0, 1, 3}, 4);
    ExpectTransposed(type, {7, 9}, {0, 1}, 5);  // a copy
  }
  ExpectTransposed(GCAP_DTYPE_F32, {300, 300}, {1, 0}, 6);
}

TEST_F(Transpose, ReplayReadsTheInputAgainAndNoElementsLaunchNothing) {
  DeviceTensor x(GCAP_DTYPE_F16, {2, 2}, {1, 2, 3, 4}), y(GCAP_DTYPE_F16, {2, 2});
  const gcap_tensor_t xv = x.view(), yv = y.view();
  const int64_t perm[] = {1, 0};
  Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_transpose(stream_, &xv, perm, &yv)); });
  EXPECT_EQ(graph.CountKernels(), 1u);
  x.Set({5, 6, 7, 8});
  graph.Replay();
  EXPECT_EQ(y.Get(), (Values{5, 7, 6, 8}));
  const gcap_tensor_t none = View(GCAP_DTYPE_F16, {0, 3}, nullptr), nothing = View(GCAP_DTYPE_F16, {3, 0}, nullptr);
  const Graph empty(stream_, [&] { GCAP_EXPECT_OK(gcap_transpose(stream_, &none, perm, &nothing)); });
  EXPECT_EQ(empty.CountKernels(), 0u);
}

class Parts : public Layout {};

// Splits a tensor into parts, some without elements, and puts them together again.
TEST_F(Parts, SplitEqualsTheLoopAndConcatUndoesIt) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    for (gcap_dtype_t type : kAllTypes) {
      Draws draws(seed);
      Shape shape = draws.AnyShape(1, GCAP_MAX_RANK, 4);
      const int axis = draws.Int(0, static_cast<int>(shape.size()) - 1);
      std::vector<std::unique_ptr<DeviceTensor>> parts;
      std::vector<gcap_tensor_t> views;
      Shape part = shape;
      shape[axis] = 0;
      for (int i = draws.Int(1, 5); i-- > 0;) {
        part[axis] = draws.Int(0, 5);
        parts.push_back(std::make_unique<DeviceTensor>(type, part, draws.Int(0, 3)));
        views.push_back(parts.back()->view());
        shape[axis] += part[axis];
      }
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << gcap_dtype_name(type) << ", " << ToString(shape)
                                        << ", axis " << axis << ", " << parts.size() << " parts");
      const DeviceTensor x(type, shape, Draw(&draws, type, shape), draws.Int(0, 3));
      const gcap_tensor_t xv = x.view();
      const int count = static_cast<int>(parts.size());
      GCAP_ASSERT_OK(gcap_split(stream_, &xv, axis - static_cast<int>(shape.size()), views.data(), count));
      Synchronize();
      int64_t first = 0;
      for (const auto& tensor : parts) {
        EXPECT_TRUE(tensor->Get() == Moved(x.Get(), shape, tensor->shape(), [&](Shape index) {
                      index[axis] += first;
                      return index;
                    }));
        first += tensor->shape()[axis];
      }
      const Values whole = Run(type, shape, draws.Int(0, 3), [&](const gcap_tensor_t* y) {
        return gcap_concat(stream_, views.data(), count, axis, y);
      });
      EXPECT_TRUE(whole == x.Get());
    }
  }
}

TEST_F(Parts, ReplayReadsTheInputsAgainWithAKernelForEachPart) {
  DeviceTensor a(GCAP_DTYPE_I32, {2, 1}, {1, 2}), b(GCAP_DTYPE_I32, {2, 2}, {3, 4, 5, 6}), y(GCAP_DTYPE_I32, {2, 3});
  const gcap_tensor_t inputs[] = {a.view(), View(GCAP_DTYPE_I32, {2, 0}, nullptr), b.view()}, yv = y.view();
  Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_concat(stream_, inputs, 3, -1, &yv)); });
  EXPECT_EQ(graph.CountKernels(), 2u);
  a.Set({10, 20});
  graph.Replay();
  EXPECT_EQ(y.Get(), (Values{10, 3, 4, 20, 5, 6}));
}

class Slice : public Layout {};

TEST_F(Slice, EqualsTheLoopForRandomStartsAndSteps) {
  for (unsigned seed = 0; seed < 3 * kSeeds; ++seed) {
    for (gcap_dtype_t type : kAllTypes) {
      Draws draws(seed);
      const Shape shape = draws.AnyShape(0, GCAP_MAX_RANK, 5);
      Shape y_shape(shape.size()), starts(shape.size()), steps(shape.size());
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        const int size = static_cast<int>(shape[axis]);
        starts[axis] = draws.Int(0, size - 1);
        steps[axis] = draws.Int(1, 3) * (draws.Int(0, 1) == 1 ? 1 : -1);
        const int64_t most = steps[axis] > 0 ? (size - 1 - starts[axis]) / steps[axis] : starts[axis] / -steps[axis];
        y_shape[axis] = draws.Int(1, static_cast<int>(most) + 1);
      }
      Shape given = starts;
      for (size_t axis = 0; axis < shape.size(); ++axis) given[axis] -= draws.Int(0, 1) * shape[axis];
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << gcap_dtype_name(type) << ", x " << ToString(shape)
                                        << ", starts " << ToString(given) << ", steps " << ToString(steps) << ", y "
                                        << ToString(y_shape));
      const DeviceTensor x(type, shape, Draw(&draws, type, shape), draws.Int(0, 3));
      const gcap_tensor_t xv = x.view();
      const Values y = Run(type, y_shape, draws.Int(0, 3), [&](const gcap_tensor_t* out) {
        return gcap_slice(stream_, &xv, given.data(), steps.data(), out);
      });
      EXPECT_TRUE(y == Moved(x.Get(), shape, y_shape, [&](Shape index) {
                    for (size_t axis = 0; axis < index.size(); ++axis) {
                      index[axis] = starts[axis] + index[axis] * steps[axis];
                    }
                    return index;
                  }));
    }
  }
}

TEST_F(Slice, ReplayReadsTheInputAgainAndNoElementsLaunchNothing) {
  DeviceTensor x(GCAP_DTYPE_F32, {5}, {1, 2, 3, 4, 5}), y(GCAP_DTYPE_F32, {3});
  const gcap_tensor_t xv = x.view(), yv = y.view();
  const int64_t start = -1, step = -2, anywhere = INT64_MAX, huge = INT64_MIN;
  Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_slice(stream_, &xv, &start, &step, &yv)); });
  EXPECT_EQ(graph.CountKernels(), 1u);
  x.Set({10, 20, 30, 40, 50});
  graph.Replay();
  EXPECT_EQ(y.Get(), (Values{50, 30, 10}));
  const gcap_tensor_t none = View(GCAP_DTYPE_F32, {0}, nullptr);
  const Graph empty(stream_, [&] {
    GCAP_EXPECT_OK(gcap_slice(stream_, &xv, &start, nullptr, &none));
    GCAP_EXPECT_OK(gcap_slice(stream_, &xv, &anywhere, &huge, &none));
  });
  EXPECT_EQ(empty.CountKernels(), 0u);
}

class Gather : public Layout {};

TEST_F(Gather, EqualsTheLoopForRandomShapesOfAllTypes) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    for (gcap_dtype_t type : kAllTypes) {
      for (gcap_dtype_t index_type : {GCAP_DTYPE_I64, GCAP_DTYPE_I32}) {
        Draws draws(seed);
        const Shape shape = draws.AnyShape(1, 5, 5), index_shape = draws.AnyShape(0, 4, 3);
        const int axis = draws.Int(0, static_cast<int>(shape.size()) - 1);
        Values indices(Count(index_shape));
        for (double& index : indices)
          index = draws.Int(-static_cast<int>(shape[axis]), static_cast<int>(shape[axis]) - 1);
        Shape y_shape(shape.begin(), shape.begin() + axis);
        y_shape.insert(y_shape.end(), index_shape.begin(), index_shape.end());
        y_shape.insert(y_shape.end(), shape.begin() + axis + 1, shape.end());
        SCOPED_TRACE(::testing::Message()
                     << "seed " << seed << ", " << gcap_dtype_name(type) << " by " << gcap_dtype_name(index_type)
                     << ", x " << ToString(shape) << ", axis " << axis << ", indices " << ToString(index_shape));
        const DeviceTensor x(type, shape, Draw(&draws, type, shape), draws.Int(0, 3));
        const DeviceTensor i(index_type, index_shape, indices, draws.Int(0, 3));
        const gcap_tensor_t xv = x.view(), iv = i.view();
        const Values y = Run(type, y_shape, draws.Int(0, 3), [&](const gcap_tensor_t* out) {
          return gcap_gather(stream_, &xv, &iv, axis - draws.Int(0, 1) * static_cast<int>(shape.size()), out);
        });
        EXPECT_TRUE(y == Moved(x.Get(), shape, y_shape, [&](const Shape& index) {
                      const auto middle = index.begin() + axis;
                      const auto rest = middle + static_cast<std::ptrdiff_t>(index_shape.size());
                      const int64_t chosen = static_cast<int64_t>(indices[Ravel(Shape(middle, rest), index_shape)]);
                      Shape from(index.begin(), middle);
                      from.push_back(chosen < 0 ? chosen + shape[axis] : chosen);
                      from.insert(from.end(), rest, index.end());
                      return from;
                    }));
      }
    }
  }
}

TEST_F(Gather, IndicesOutOfRangeGiveZeros) {
  const DeviceTensor x(GCAP_DTYPE_F32, {2, 2}, {1, 2, 3, 4}), none(GCAP_DTYPE_F32, {0, 2}, Values{});
  const DeviceTensor indices(GCAP_DTYPE_I64, {6}, {1, 2, -3, -2, -9e18, 9e18});
  const gcap_tensor_t xv = x.view(), nv = none.view(), iv = indices.view();
  EXPECT_EQ(
      Run(GCAP_DTYPE_F32, {6, 2}, 0, [&](const gcap_tensor_t* y) { return gcap_gather(stream_, &xv, &iv, 0, y); }),
      (Values{3, 4, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0}));
  EXPECT_EQ(
      Run(GCAP_DTYPE_F32, {6, 2}, 1, [&](const gcap_tensor_t* y) { return gcap_gather(stream_, &nv, &iv, 0, y); }),
      Values(12, 0.0));
}

TEST_F(Gather, ReplayReadsTheIndicesAgainAndNoIndicesLaunchNothing) {
  DeviceTensor x(GCAP_DTYPE_F32, {3}, {1, 2, 3}), i(GCAP_DTYPE_I32, {2}, {0, 1}), y(GCAP_DTYPE_F32, {2});
  const gcap_tensor_t xv = x.view(), iv = i.view(), yv = y.view();
  Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_gather(stream_, &xv, &iv, 0, &yv)); });
  EXPECT_EQ(graph.CountKernels(), 1u);
  i.Set({-1, 0});
  x.Set({7, 8, 9});
  graph.Replay();
  EXPECT_EQ(y.Get(), (Values{9, 7}));
  const gcap_tensor_t none = View(GCAP_DTYPE_I32, {0}, nullptr), nothing = View(GCAP_DTYPE_F32, {0}, nullptr);
  const Graph empty(stream_, [&] { GCAP_EXPECT_OK(gcap_gather(stream_, &xv, &none, 0, &nothing)); });
  EXPECT_EQ(empty.CountKernels(), 0u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
