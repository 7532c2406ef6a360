// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the operators that move elements refuse: each message names the argument, its value and what is allowed. Nothing
// is launched, so the addresses are of no memory.

#include "gcap/kit/ops/layout.h"
#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

constexpr gcap_code_t kBad = GCAP_INVALID_ARGUMENT;

class LayoutRefusal : public OpTest {
 protected:
  // A tensor at the `i`th of places that are far apart.
  static gcap_tensor_t At(uintptr_t i, const Shape& shape, gcap_dtype_t type = GCAP_DTYPE_F32) {
    return View(type, shape, reinterpret_cast<void*>((i + 1) << 20));
  }
  gcap_tensor_t x_ = At(0, {2, 3}), y_ = At(1, {3, 2});
  const int64_t zeros_[2] = {0, 0}, ones_[2] = {1, 1}, swap_[2] = {1, 0};
};

TEST_F(LayoutRefusal, OfTranspose) {
  const int64_t far[] = {1, 2}, low[] = {-1, 0};
  GCAP_EXPECT_FAILS(gcap_transpose(nullptr, &x_, swap_, &y_), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_transpose(stream_, nullptr, swap_, &y_), kBad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_transpose(stream_, &x_, nullptr, &y_), kBad, "perm is NULL");
  GCAP_EXPECT_FAILS(gcap_transpose(stream_, &x_, swap_, nullptr), kBad, "y is NULL");
  GCAP_EXPECT_FAILS(gcap_transpose(stream_, &x_, ones_, &y_), kBad, "perm[1] is 1, must be another one of 0..1");
  GCAP_EXPECT_FAILS(gcap_transpose(stream_, &x_, far, &y_), kBad, "perm[1] is 2");
  GCAP_EXPECT_FAILS(gcap_transpose(stream_, &x_, low, &y_), kBad, "perm[0] is -1");
  y_.shape[0] = 2;
  GCAP_EXPECT_FAILS(gcap_transpose(stream_, &x_, swap_, &y_), kBad, "y is [2,2], must be [3,2]: the shape of x in the");
  y_.shape[0] = 3, y_.dtype = GCAP_DTYPE_I32;
  GCAP_EXPECT_FAILS(gcap_transpose(stream_, &x_, swap_, &y_), kBad, "y is i32, must be f32: the type of x");
  y_.dtype = GCAP_DTYPE_F32, y_.data = x_.data;
  GCAP_EXPECT_FAILS(gcap_transpose(stream_, &x_, swap_, &y_), kBad, "y overlaps x");
  x_.rank = 9;
  GCAP_EXPECT_FAILS(gcap_transpose(stream_, &x_, swap_, &y_), kBad, "x.rank is 9");
}

TEST_F(LayoutRefusal, OfConcat) {
  gcap_tensor_t inputs[] = {At(2, {3, 1}), At(3, {3, 1})};
  GCAP_EXPECT_FAILS(gcap_concat(nullptr, inputs, 2, 1, &y_), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_concat(stream_, nullptr, 2, 1, &y_), kBad, "inputs is NULL");
  GCAP_EXPECT_FAILS(gcap_concat(stream_, inputs, 2, 1, nullptr), kBad, "y is NULL");
  GCAP_EXPECT_FAILS(gcap_concat(stream_, inputs, 0, 1, &y_), kBad, "num_inputs is 0, allowed are 1 and more");
  GCAP_EXPECT_FAILS(gcap_concat(stream_, inputs, 2, 2, &y_), kBad, "axis is 2, allowed are -2..1");
  GCAP_EXPECT_FAILS(gcap_concat(stream_, inputs, 1, 1, &y_), kBad, "y.shape[1] is 2, must be 1: the sum over inputs");
  GCAP_EXPECT_FAILS(gcap_concat(stream_, inputs, 2, 0, &y_), kBad, "inputs[0] is [3,1], must be [3,2]");
  inputs[1].dtype = GCAP_DTYPE_I32;
  GCAP_EXPECT_FAILS(gcap_concat(stream_, inputs, 2, 1, &y_), kBad, "inputs[1] is i32, must be f32");
  inputs[1] = At(3, {3});
  GCAP_EXPECT_FAILS(gcap_concat(stream_, inputs, 2, 1, &y_), kBad, "inputs[1] is [3], must be [3,2]");
  inputs[1] = At(1, {3, 1});
  GCAP_EXPECT_FAILS(gcap_concat(stream_, inputs, 2, 1, &y_), kBad, "y overlaps inputs[1]");
  inputs[1].rank = -1;
  GCAP_EXPECT_FAILS(gcap_concat(stream_, inputs, 2, 1, &y_), kBad, "inputs[1].rank is -1");
}

TEST_F(LayoutRefusal, OfSplit) {
  gcap_tensor_t outputs[] = {At(2, {2, 1}), At(3, {2, 2})};
  GCAP_EXPECT_FAILS(gcap_split(nullptr, &x_, 1, outputs, 2), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_split(stream_, nullptr, 1, outputs, 2), kBad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_split(stream_, &x_, 1, nullptr, 2), kBad, "outputs is NULL");
  GCAP_EXPECT_FAILS(gcap_split(stream_, &x_, 1, outputs, -1), kBad, "num_outputs is -1, allowed are 1 and more");
  GCAP_EXPECT_FAILS(gcap_split(stream_, &x_, -3, outputs, 2), kBad, "axis is -3, allowed are -2..1");
  GCAP_EXPECT_FAILS(gcap_split(stream_, &x_, 1, outputs, 1), kBad, "x.shape[1] is 3, must be 1: the sum over outputs");
  outputs[1].shape[0] = 1;
  GCAP_EXPECT_FAILS(gcap_split(stream_, &x_, 1, outputs, 2), kBad, "outputs[1] is [1,2], must be [2,2]");
  outputs[1] = At(2, {2, 2});
  GCAP_EXPECT_FAILS(gcap_split(stream_, &x_, 1, outputs, 2), kBad, "outputs[1] overlaps outputs[0]");
  outputs[1] = At(0, {2, 2});
  GCAP_EXPECT_FAILS(gcap_split(stream_, &x_, 1, outputs, 2), kBad, "x overlaps outputs[1]");
}

TEST_F(LayoutRefusal, OfSlice) {
  y_ = At(1, {2, 2});
  const int64_t far[] = {0, 3}, low[] = {-3, 0}, late[] = {0, 2}, back[] = {1, -1}, least[] = {1, INT64_MIN};
  GCAP_EXPECT_FAILS(gcap_slice(nullptr, &x_, zeros_, ones_, &y_), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_slice(stream_, nullptr, zeros_, ones_, &y_), kBad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_slice(stream_, &x_, nullptr, ones_, &y_), kBad, "starts is NULL");
  GCAP_EXPECT_FAILS(gcap_slice(stream_, &x_, zeros_, ones_, nullptr), kBad, "y is NULL");
  GCAP_EXPECT_FAILS(gcap_slice(stream_, &x_, zeros_, zeros_, &y_), kBad, "steps[0] is 0, allowed are all others");
  GCAP_EXPECT_FAILS(gcap_slice(stream_, &x_, far, ones_, &y_), kBad, "starts[1] is 3, allowed are -3..2");
  GCAP_EXPECT_FAILS(gcap_slice(stream_, &x_, low, ones_, &y_), kBad, "starts[0] is -3, allowed are -2..1");
  GCAP_EXPECT_FAILS(gcap_slice(stream_, &x_, late, nullptr, &y_), kBad,
                    "y.shape[1] is 2, allowed are 0..1 from 2 in steps of 1");
  GCAP_EXPECT_FAILS(gcap_slice(stream_, &x_, zeros_, back, &y_), kBad, "y.shape[1] is 2, allowed are 0..1 from 0");
  GCAP_EXPECT_FAILS(gcap_slice(stream_, &x_, late, least, &y_), kBad, "y.shape[1] is 2, allowed are 0..1 from 2");
  y_ = At(1, {2});
  GCAP_EXPECT_FAILS(gcap_slice(stream_, &x_, zeros_, ones_, &y_), kBad, "y.rank is 1, must be 2: the rank of x");
  y_ = At(0, {2, 2});
  GCAP_EXPECT_FAILS(gcap_slice(stream_, &x_, zeros_, ones_, &y_), kBad, "y overlaps x");
}

TEST_F(LayoutRefusal, OfGather) {
  gcap_tensor_t i = At(2, {4}, GCAP_DTYPE_I64);
  y_ = At(1, {4, 3});
  GCAP_EXPECT_FAILS(gcap_gather(nullptr, &x_, &i, 0, &y_), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_gather(stream_, nullptr, &i, 0, &y_), kBad, "x is NULL");
  GCAP_EXPECT_FAILS(gcap_gather(stream_, &x_, nullptr, 0, &y_), kBad, "indices is NULL");
  GCAP_EXPECT_FAILS(gcap_gather(stream_, &x_, &i, 0, nullptr), kBad, "y is NULL");
  GCAP_EXPECT_FAILS(gcap_gather(stream_, &x_, &i, 2, &y_), kBad, "axis is 2, allowed are -2..1");
  GCAP_EXPECT_FAILS(gcap_gather(stream_, &x_, &i, 1, &y_), kBad, "y is [4,3], must be [2,4]: the shape of x with that");
  i.dtype = GCAP_DTYPE_F32;
  GCAP_EXPECT_FAILS(gcap_gather(stream_, &x_, &i, 0, &y_), kBad,
                    "indices is not defined for f32, allowed are i64, i32");
  i = At(2, {1, 1, 1, 1, 1, 1, 1, 4}, GCAP_DTYPE_I32);
  GCAP_EXPECT_FAILS(gcap_gather(stream_, &x_, &i, 0, &y_), kBad,
                    "indices.rank is 8, allowed are 0..7 where x.rank is 2");
  i = At(1, {4}, GCAP_DTYPE_I32);
  GCAP_EXPECT_FAILS(gcap_gather(stream_, &x_, &i, 0, &y_), kBad, "y overlaps indices");
  i.rank = 9;
  GCAP_EXPECT_FAILS(gcap_gather(stream_, &x_, &i, 0, &y_), kBad, "indices.rank is 9");
  x_ = At(0, {});
  i = At(2, {4}, GCAP_DTYPE_I64);
  GCAP_EXPECT_FAILS(gcap_gather(stream_, &x_, &i, 0, &y_), kBad, "axis is 0, but rank 0 has no axis");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
