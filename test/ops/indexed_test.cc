// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Gathers and scatters by indices on the device: drawn shapes of each rank and type against loops over elements,
// indices beyond both ends, places that several updates share, no elements, alignment, and capture and replay.

#include "ops/kernels/indexed.h"

#include <algorithm>
#include <limits>

#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

constexpr gcap_scatter_op_t kReductions[] = {GCAP_SCATTER_ADD, GCAP_SCATTER_MUL, GCAP_SCATTER_MIN, GCAP_SCATTER_MAX};

class Indexed : public OpTest {};

// --- References -----------------------------------------------------------------------------------------------------

// As ONNX counts indices; negative if out of range.
int64_t Inside(double index, int64_t size) {
  const double at = index < 0 ? index + static_cast<double>(size) : index;
  return at >= 0 && at < static_cast<double>(size) ? static_cast<int64_t>(at) : -1;
}
int64_t Nearest(double index, int64_t size) {
  const double at = index < 0 ? index + static_cast<double>(size) : index;
  return at < 0 ? 0 : at < static_cast<double>(size) ? static_cast<int64_t>(at) : size - 1;
}

double Combined(gcap_scatter_op_t op, double a, double b) {
  switch (op) {
    case GCAP_SCATTER_ADD: return a + b;
    case GCAP_SCATTER_MUL: return a * b;
    case GCAP_SCATTER_MIN: return std::min(a, b);
    case GCAP_SCATTER_MAX: return std::max(a, b);
    default: return b;
  }
}

// Where the slice at `index`, the place of a slice in the indices, is in the data; false if an index is out of range.
template <typename Resolve>
bool PlaceOfSlice(const Shape& data, const Shape& indices, const Values& content, size_t batch_dims, const Shape& slice,
                  Resolve resolve, Shape* place) {
  const int64_t depth = indices.back();
  place->assign(slice.begin(), slice.begin() + static_cast<std::ptrdiff_t>(batch_dims));
  for (int64_t k = 0; k < depth; ++k) {
    Shape at(slice.begin(), slice.begin() + static_cast<std::ptrdiff_t>(indices.size() - 1));
    at.push_back(k);
    place->push_back(resolve(content[static_cast<size_t>(Ravel(at, indices))], data[place->size()]));
    if (place->back() < 0) return false;
  }
  place->insert(place->end(), slice.begin() + static_cast<std::ptrdiff_t>(indices.size() - 1), slice.end());
  return true;
}

// The shape of what moves.
Shape MovedShape(const Shape& data, const Shape& indices, size_t batch_dims) {
  Shape moved(indices.begin(), indices.end() - 1);
  moved.insert(moved.end(), data.begin() + static_cast<std::ptrdiff_t>(batch_dims) + indices.back(), data.end());
  return moved;
}

// --- Elements -------------------------------------------------------------------------------------------------------

struct ElementsDraw {
  Shape data, indices;
  int axis;
  gcap_dtype_t index_type;
  Values content;
};

ElementsDraw DrawElements(Draws* draws, int rank) {
  ElementsDraw d;
  for (int i = 0; i < rank; ++i) {
    d.data.push_back(draws->Int(1, rank > 4 ? 3 : 6));
    d.indices.push_back(draws->Int(1, static_cast<int>(d.data.back())));
  }
  d.axis = draws->Int(0, rank - 1);
  d.indices[d.axis] = draws->Int(1, 7);
  d.index_type = draws->Int(0, 1) != 0 ? GCAP_DTYPE_I64 : GCAP_DTYPE_I32;
  const double size = static_cast<double>(d.data[d.axis]);
  d.content = draws->Elements(GCAP_DTYPE_I64, Count(d.indices), -size - 2, size + 1);
  return d;
}

TEST_F(Indexed, ElementsAreGatheredFromEachAxisInEachType) {
  for (unsigned seed = 0; seed < 32; ++seed) {
    Draws draws(seed);
    const ElementsDraw d = DrawElements(&draws, 1 + static_cast<int>(seed % 8));
    for (const gcap_dtype_t type : kAllTypes) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << gcap_dtype_name(type) << ", axis " << d.axis
                                        << " of " << ToString(d.data) << " by " << ToString(d.indices));
      const DeviceTensor x(type, d.data, draws.Elements(type, Count(d.data), -50, 50), draws.Int(0, 3));
      const DeviceTensor indices(d.index_type, d.indices, d.content), y(type, d.indices, draws.Int(0, 3));
      const gcap_tensor_t x_view = x.view(), indices_view = indices.view(), y_view = y.view();
      GCAP_ASSERT_OK(gcap_gather_elements(stream_, &x_view, &indices_view, d.axis, &y_view));
      Synchronize();
      const Values in = x.Get();
      Values expected;
      for (int64_t i = 0; i < Count(d.indices); ++i) {
        Shape at = Unravel(i, d.indices);
        at[d.axis] = Inside(d.content[i], d.data[d.axis]);
        expected.push_back(at[d.axis] < 0 ? 0.0 : in[Ravel(at, d.data)]);
      }
      EXPECT_EQ(y.Get(), expected);
    }
  }
}

// Numbers of which sums and products of a few are exact in each type, so that no order of updates shows.
Values SmallNumbers(Draws* draws, gcap_dtype_t type, int64_t count, gcap_scatter_op_t op) {
  if (op != GCAP_SCATTER_MUL) return draws->Elements(GCAP_DTYPE_I64, count, type == GCAP_DTYPE_BOOL ? 0 : -4, 4);
  Values values = draws->Elements(GCAP_DTYPE_I64, count, 0, 2);
  for (double& value : values) value = value == 0 ? -1 : value;
  return values;
}

TEST_F(Indexed, UpdatesOfElementsAreCombinedInEachType) {
  for (unsigned seed = 0; seed < 32; ++seed) {
    Draws draws(seed);
    const ElementsDraw d = DrawElements(&draws, 1 + static_cast<int>(seed % 8));
    for (const gcap_scatter_op_t op : kReductions) {
      for (const gcap_dtype_t type :
           {GCAP_DTYPE_F32, GCAP_DTYPE_F16, GCAP_DTYPE_BF16, GCAP_DTYPE_I64, GCAP_DTYPE_I32}) {
        SCOPED_TRACE(::testing::Message()
                     << "seed " << seed << ", op " << op << ", " << gcap_dtype_name(type) << ", axis " << d.axis
                     << " of " << ToString(d.data) << " by " << ToString(d.indices));
        const Values before = SmallNumbers(&draws, type, Count(d.data), op);
        const Values given = SmallNumbers(&draws, type, Count(d.indices), op);
        const DeviceTensor y(type, d.data, before, draws.Int(0, 3)), updates(type, d.indices, given);
        const DeviceTensor indices(d.index_type, d.indices, d.content);
        const gcap_tensor_t y_view = y.view(), indices_view = indices.view(), updates_view = updates.view();
        GCAP_ASSERT_OK(gcap_scatter_elements(stream_, op, &indices_view, &updates_view, d.axis, &y_view));
        Synchronize();
        Values expected = before;
        for (int64_t i = 0; i < Count(d.indices); ++i) {
          Shape at = Unravel(i, d.indices);
          at[d.axis] = Inside(d.content[i], d.data[d.axis]);
          if (at[d.axis] < 0) continue;
          double& element = expected[Ravel(at, d.data)];
          element = Combined(op, element, given[i]);
        }
        EXPECT_EQ(y.Get(), expected);
      }
    }
  }
}

// Of several updates of one element any one stays, and elements without one are as before.
TEST_F(Indexed, OneUpdateOfAnElementStaysInEachType) {
  for (unsigned seed = 0; seed < 32; ++seed) {
    Draws draws(seed);
    const ElementsDraw d = DrawElements(&draws, 1 + static_cast<int>(seed % 8));
    for (const gcap_dtype_t type : kAllTypes) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << gcap_dtype_name(type) << ", axis " << d.axis
                                        << " of " << ToString(d.data) << " by " << ToString(d.indices));
      const Values before = draws.Elements(type, Count(d.data), -50, 50);
      const Values given = draws.Elements(type, Count(d.indices), -50, 50);
      const DeviceTensor y(type, d.data, before), updates(type, d.indices, given);
      const DeviceTensor indices(d.index_type, d.indices, d.content);
      const gcap_tensor_t y_view = y.view(), indices_view = indices.view(), updates_view = updates.view();
      GCAP_ASSERT_OK(gcap_scatter_elements(stream_, GCAP_SCATTER_NONE, &indices_view, &updates_view, d.axis, &y_view));
      Synchronize();
      std::vector<Values> allowed(before.size());
      for (int64_t i = 0; i < Count(d.indices); ++i) {
        Shape at = Unravel(i, d.indices);
        at[d.axis] = Inside(d.content[i], d.data[d.axis]);
        if (at[d.axis] >= 0) allowed[Ravel(at, d.data)].push_back(given[i]);
      }
      const Values after = y.Get();
      for (size_t i = 0; i < after.size(); ++i) {
        if (allowed[i].empty()) allowed[i].push_back(before[i]);
        EXPECT_NE(std::find(allowed[i].begin(), allowed[i].end(), after[i]), allowed[i].end()) << "element " << i;
      }
    }
  }
}

// --- Slices ---------------------------------------------------------------------------------------------------------

struct SlicesDraw {
  Shape data, indices;
  size_t batch_dims;
  Values content;
};

// A third of the draws have slices of 16 elements, which move together.
SlicesDraw DrawSlices(Draws* draws, int rank, bool has_batch) {
  SlicesDraw d;
  for (int i = 0; i < rank; ++i) d.data.push_back(draws->Int(1, rank > 4 ? 3 : 5));
  if (rank > 1 && draws->Int(0, 2) == 0) d.data.back() = 16;
  d.batch_dims = has_batch ? static_cast<size_t>(draws->Int(0, rank - 1)) : 0;
  d.indices.assign(d.data.begin(), d.data.begin() + static_cast<std::ptrdiff_t>(d.batch_dims));
  const int depth = draws->Int(1, rank - static_cast<int>(d.batch_dims));
  const int room = std::min(8 - rank + depth, 7 - static_cast<int>(d.batch_dims));  // up to rank 8
  for (int i = draws->Int(0, std::min(2, room)); i > 0; --i) {
    d.indices.push_back(draws->Int(1, 4));
  }
  d.indices.push_back(depth);
  for (int64_t i = 0; i < Count(d.indices); ++i) {
    const int64_t size = d.data[d.batch_dims + static_cast<size_t>(i % depth)];
    d.content.push_back(draws->Int(static_cast<int>(-size) - 1, static_cast<int>(size)));
  }
  return d;
}

TEST_F(Indexed, SlicesAreGatheredInEachType) {
  for (unsigned seed = 0; seed < 64; ++seed) {
    Draws draws(seed);
    const SlicesDraw d = DrawSlices(&draws, 1 + static_cast<int>(seed % 8), /*has_batch=*/true);
    const Shape moved = MovedShape(d.data, d.indices, d.batch_dims);
    for (const gcap_dtype_t type : kAllTypes) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << gcap_dtype_name(type) << ", " << ToString(d.data)
                                        << " by " << ToString(d.indices) << ", " << d.batch_dims << " of the batch");
      const DeviceTensor x(type, d.data, draws.Elements(type, Count(d.data), -50, 50), draws.Int(0, 1));
      const DeviceTensor indices(GCAP_DTYPE_I64, d.indices, d.content), y(type, moved, draws.Int(0, 1));
      const gcap_tensor_t x_view = x.view(), indices_view = indices.view(), y_view = y.view();
      GCAP_ASSERT_OK(gcap_gather_nd(stream_, &x_view, &indices_view, static_cast<int>(d.batch_dims), &y_view));
      Synchronize();
      const Values in = x.Get();
      Values expected;
      Shape place;
      for (int64_t i = 0; i < Count(moved); ++i) {
        const bool is_inside =
            PlaceOfSlice(d.data, d.indices, d.content, d.batch_dims, Unravel(i, moved), Inside, &place);
        expected.push_back(is_inside ? in[Ravel(place, d.data)] : 0.0);
      }
      EXPECT_EQ(y.Get(), expected);
    }
  }
}

TEST_F(Indexed, UpdatesOfSlicesAreCombinedInEachType) {
  for (unsigned seed = 0; seed < 32; ++seed) {
    Draws draws(seed);
    const SlicesDraw d = DrawSlices(&draws, 1 + static_cast<int>(seed % 8), /*has_batch=*/false);
    const Shape moved = MovedShape(d.data, d.indices, 0);
    for (const gcap_scatter_op_t op : kReductions) {
      for (const gcap_dtype_t type :
           {GCAP_DTYPE_F32, GCAP_DTYPE_F16, GCAP_DTYPE_BF16, GCAP_DTYPE_I64, GCAP_DTYPE_I32}) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed << ", op " << op << ", " << gcap_dtype_name(type) << ", "
                                          << ToString(d.data) << " by " << ToString(d.indices));
        Values before = SmallNumbers(&draws, type, Count(d.data), op);
        const Values given = SmallNumbers(&draws, type, Count(moved), op);
        const DeviceTensor y(type, d.data, before, draws.Int(0, 3)), updates(type, moved, given);
        const DeviceTensor indices(GCAP_DTYPE_I64, d.indices, d.content);
        const gcap_tensor_t y_view = y.view(), indices_view = indices.view(), updates_view = updates.view();
        GCAP_ASSERT_OK(gcap_scatter_nd(stream_, op, &indices_view, &updates_view, &y_view));
        Synchronize();
        Shape place;
        for (int64_t i = 0; i < Count(moved); ++i) {
          PlaceOfSlice(d.data, d.indices, d.content, 0, Unravel(i, moved), Nearest, &place);
          double& element = before[Ravel(place, d.data)];
          element = Combined(op, element, given[i]);
        }
        EXPECT_EQ(y.Get(), before);
      }
    }
  }
}

// Rows of 16 elements, aligned and not.
TEST_F(Indexed, SlicesReplaceRowsInEachType) {
  for (const gcap_dtype_t type : kAllTypes) {
    for (const size_t offset : {size_t{0}, size_t{1}}) {
      SCOPED_TRACE(::testing::Message() << gcap_dtype_name(type) << ", " << offset << " elements behind");
      Draws draws(7);
      Values expected = draws.Elements(type, 5 * 16, -50, 50);
      const Values given = draws.Elements(type, 3 * 16, -50, 50);
      const DeviceTensor y(type, {5, 16}, expected, offset), updates(type, {3, 16}, given);
      const DeviceTensor indices(GCAP_DTYPE_I64, {3, 1}, {3, -5, std::ldexp(1.0, 62)});
      const gcap_tensor_t y_view = y.view(), indices_view = indices.view(), updates_view = updates.view();
      GCAP_ASSERT_OK(gcap_scatter_nd(stream_, GCAP_SCATTER_NONE, &indices_view, &updates_view, &y_view));
      Synchronize();
      const int64_t kRows[] = {3, 0, 4};
      for (int64_t i = 0; i < 3; ++i) std::copy_n(given.begin() + i * 16, 16, expected.begin() + kRows[i] * 16);
      EXPECT_EQ(y.Get(), expected);
    }
  }
}

// --- Edges ----------------------------------------------------------------------------------------------------------

TEST_F(Indexed, ANanIsTheExtremumOfItsPlace) {
  for (const gcap_dtype_t type : kFloatTypes) {
    for (const gcap_scatter_op_t op : kReductions) {
      const DeviceTensor y(type, {4}, {1, kNan, 1, 1}), updates(type, {4}, {2, 2, kNan, 2});
      const DeviceTensor indices(GCAP_DTYPE_I64, {4}, {0, 1, 2, 2});
      const gcap_tensor_t y_view = y.view(), indices_view = indices.view(), updates_view = updates.view();
      GCAP_ASSERT_OK(gcap_scatter_elements(stream_, op, &indices_view, &updates_view, 0, &y_view));
      Synchronize();
      const Values after = y.Get();
      EXPECT_EQ(after[0], Combined(op, 1, 2));
      EXPECT_TRUE(std::isnan(after[1]));
      EXPECT_TRUE(std::isnan(after[2]));
      EXPECT_EQ(after[3], 1.0);
    }
  }
}

// Many updates of one place: none is lost.
TEST_F(Indexed, EachOfManyUpdatesCounts) {
  const int64_t count = 2000;
  for (const gcap_dtype_t type : {GCAP_DTYPE_F32, GCAP_DTYPE_I64, GCAP_DTYPE_I32, GCAP_DTYPE_F16, GCAP_DTYPE_BF16}) {
    SCOPED_TRACE(gcap_dtype_name(type));
    // Of bf16, sums beyond 256 are not exact.
    const int64_t places = type == GCAP_DTYPE_BF16 ? 10 : 1;
    const DeviceTensor y(type, {places}, Values(places, 0.0)), updates(type, {count}, Values(count, 1.0));
    Values content;
    for (int64_t i = 0; i < count; ++i) content.push_back(static_cast<double>(i % places));
    const DeviceTensor indices(GCAP_DTYPE_I32, {count}, content);
    const gcap_tensor_t y_view = y.view(), indices_view = indices.view(), updates_view = updates.view();
    GCAP_ASSERT_OK(gcap_scatter_elements(stream_, GCAP_SCATTER_ADD, &indices_view, &updates_view, 0, &y_view));
    Synchronize();
    EXPECT_EQ(y.Get(), Values(places, static_cast<double>(count / places)));
  }
}

TEST_F(Indexed, NothingThatMovesLaunchesNothing) {
  const DeviceTensor data(GCAP_DTYPE_F32, {2, 3});
  const gcap_tensor_t full = data.view();
  const gcap_tensor_t none = View(GCAP_DTYPE_F32, {0, 3}, nullptr);
  const gcap_tensor_t elements = View(GCAP_DTYPE_I64, {0, 3}, nullptr), slices = View(GCAP_DTYPE_I64, {0, 1}, nullptr);
  const Graph graph(stream_, [&] {
    GCAP_EXPECT_OK(gcap_gather_elements(stream_, &full, &elements, 0, &none));
    GCAP_EXPECT_OK(gcap_gather_nd(stream_, &full, &slices, 0, &none));
    GCAP_EXPECT_OK(gcap_scatter_elements(stream_, GCAP_SCATTER_ADD, &elements, &none, 0, &full));
    GCAP_EXPECT_OK(gcap_scatter_nd(stream_, GCAP_SCATTER_NONE, &slices, &none, &full));
  });
  EXPECT_EQ(graph.CountKernels(), 0u);
}

// What is gathered from an axis of 0 is out of range; into one nothing is scattered.
TEST_F(Indexed, AnAxisOfNothingHasNoPlaces) {
  const gcap_tensor_t none = View(GCAP_DTYPE_F32, {0, 3}, nullptr);
  const DeviceTensor y(GCAP_DTYPE_F32, {2, 3}), elements(GCAP_DTYPE_I64, {2, 3}, Values(6, 0.0));
  const DeviceTensor slices(GCAP_DTYPE_I64, {2, 1}, Values(2, 0.0));
  const gcap_tensor_t y_view = y.view(), elements_view = elements.view(), slices_view = slices.view();
  GCAP_EXPECT_OK(gcap_gather_elements(stream_, &none, &elements_view, 0, &y_view));
  Synchronize();
  EXPECT_EQ(y.Get(), Values(6, 0.0));
  GCAP_EXPECT_OK(gcap_gather_nd(stream_, &none, &slices_view, 0, &y_view));
  GCAP_EXPECT_OK(gcap_scatter_elements(stream_, GCAP_SCATTER_NONE, &elements_view, &y_view, 0, &none));
  GCAP_EXPECT_OK(gcap_scatter_nd(stream_, GCAP_SCATTER_MAX, &slices_view, &y_view, &none));
  Synchronize();
  EXPECT_EQ(y.Get(), Values(6, 0.0));
}

TEST_F(Indexed, ReplaysReadTheIndicesAgain) {
  const DeviceTensor x(GCAP_DTYPE_F32, {4}, {10, 11, 12, 13}), y(GCAP_DTYPE_F32, {2});
  DeviceTensor indices(GCAP_DTYPE_I64, {2, 1}, {0, 1});
  const gcap_tensor_t x_view = x.view(), indices_view = indices.view(), y_view = y.view();
  Graph graph(stream_, [&] { GCAP_EXPECT_OK(gcap_gather_nd(stream_, &x_view, &indices_view, 0, &y_view)); });
  EXPECT_EQ(graph.CountKernels(), 1u);
  indices.Set({-1, 2});
  graph.Replay();
  EXPECT_EQ(y.Get(), (Values{13, 12}));
  indices.Set({1, 4});
  graph.Replay();
  EXPECT_EQ(y.Get(), (Values{11, 0}));
}

TEST_F(Indexed, NamesTheBadTensor) {
  const DeviceTensor data(GCAP_DTYPE_F32, {4});
  const DeviceTensor index(GCAP_DTYPE_I64, {4, 1}, Values(4, 0.0));
  gcap_tensor_t x = data.view(), y = data.view(), indices = index.view();
  GCAP_EXPECT_FAILS(gcap_gather_nd(stream_, &x, &indices, 0, &y), GCAP_INVALID_ARGUMENT, "y overlaps x");
  GCAP_EXPECT_FAILS(gcap_scatter_nd(stream_, GCAP_SCATTER_NONE, &indices, &x, &y), GCAP_INVALID_ARGUMENT,
                    "y overlaps updates");
  const DeviceTensor other(GCAP_DTYPE_F32, {4});
  y = other.view();
  indices.data = nullptr;
  GCAP_EXPECT_FAILS(gcap_gather_nd(stream_, &x, &indices, 0, &y), GCAP_INVALID_ARGUMENT, "indices.data is NULL");
  indices.data = y.data;
  GCAP_EXPECT_FAILS(gcap_scatter_elements(stream_, GCAP_SCATTER_ADD, &indices, &x, 0, &y), GCAP_INVALID_ARGUMENT,
                    "y overlaps indices");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
