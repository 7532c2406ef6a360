// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the elementwise operators refuse: each message names the argument, its value and what is allowed. Nothing is
// launched, so the addresses are of no memory.

#include "gcap/kit/ops/elementwise.h"
#include "test/ops/tensors.h"

namespace gcap {
namespace testing {
namespace {

constexpr gcap_code_t kBad = GCAP_INVALID_ARGUMENT;

class ElementwiseRefusal : public OpTest {
 protected:
  // A tensor of four elements at the `i`th of places that are far apart.
  static gcap_tensor_t Four(gcap_dtype_t type, uintptr_t i) {
    return View(type, {4}, reinterpret_cast<void*>((i + 1) << 20));
  }
  gcap_status_t Binary(gcap_binary_op_t op) { return gcap_binary(stream_, op, &a_, &b_, &y_); }
  gcap_status_t Unary(gcap_unary_op_t op) { return gcap_unary(stream_, op, &a_, &y_); }

  gcap_tensor_t a_ = Four(GCAP_DTYPE_F32, 0), b_ = Four(GCAP_DTYPE_F32, 1), y_ = Four(GCAP_DTYPE_F32, 2);
  gcap_tensor_t condition_ = Four(GCAP_DTYPE_BOOL, 3);
};

TEST_F(ElementwiseRefusal, NamesTheArgumentThatIsNull) {
  const auto add = GCAP_BINARY_ADD;
  GCAP_EXPECT_FAILS(gcap_binary(nullptr, add, &a_, &b_, &y_), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_binary(stream_, add, nullptr, &b_, &y_), kBad, "a is NULL");
  GCAP_EXPECT_FAILS(gcap_binary(stream_, add, &a_, nullptr, &y_), kBad, "b is NULL");
  GCAP_EXPECT_FAILS(gcap_binary(stream_, add, &a_, &b_, nullptr), kBad, "y is NULL");
  GCAP_EXPECT_FAILS(gcap_where(nullptr, &condition_, &a_, &b_, &y_), kBad, "stream is NULL");
  GCAP_EXPECT_FAILS(gcap_where(stream_, nullptr, &a_, &b_, &y_), kBad, "condition is NULL");
  GCAP_EXPECT_FAILS(gcap_where(stream_, &condition_, nullptr, &b_, &y_), kBad, "a is NULL");
  GCAP_EXPECT_FAILS(gcap_where(stream_, &condition_, &a_, nullptr, &y_), kBad, "b is NULL");
  GCAP_EXPECT_FAILS(gcap_where(stream_, &condition_, &a_, &b_, nullptr), kBad, "y is NULL");
  const auto one_input = [&](gcap_stream_t* stream, const gcap_tensor_t* x, const gcap_tensor_t* y, const char* text) {
    GCAP_EXPECT_FAILS(gcap_unary(stream, GCAP_UNARY_RELU, x, y), kBad, text);
    GCAP_EXPECT_FAILS(gcap_leaky_relu(stream, 0.1f, x, y), kBad, text);
    GCAP_EXPECT_FAILS(gcap_clip(stream, 0.0, 1.0, x, y), kBad, text);
    GCAP_EXPECT_FAILS(gcap_cast(stream, x, y), kBad, text);
  };
  one_input(nullptr, &a_, &y_, "stream is NULL");
  one_input(stream_, nullptr, &y_, "x is NULL");
  one_input(stream_, &a_, nullptr, "y is NULL");
}

TEST_F(ElementwiseRefusal, NamesTheOperator) {
  GCAP_EXPECT_FAILS(Binary(static_cast<gcap_binary_op_t>(12)), kBad, "op is 12, allowed are 0..11");
  GCAP_EXPECT_FAILS(Binary(static_cast<gcap_binary_op_t>(-1)), kBad, "op is -1, allowed are 0..11");
  GCAP_EXPECT_FAILS(Unary(static_cast<gcap_unary_op_t>(13)), kBad, "op is 13, allowed are 0..12");
  GCAP_EXPECT_FAILS(Unary(static_cast<gcap_unary_op_t>(100)), kBad, "op is 100, allowed are 0..12");
  GCAP_EXPECT_FAILS(gcap_clip(stream_, NAN, 1.0, &a_, &y_), kBad, "low is a NaN");
  GCAP_EXPECT_FAILS(gcap_clip(stream_, 0.0, NAN, &a_, &y_), kBad, "high is a NaN");
}

TEST_F(ElementwiseRefusal, NamesRankTypeDimensionAndAddress) {
  const gcap_tensor_t good = b_;
  b_.rank = 9;
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_ADD), kBad, "b.rank is 9, allowed are 0..8");
  b_.rank = -1;
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_ADD), kBad, "b.rank is -1, allowed are 0..8");
  b_ = good;
  b_.dtype = static_cast<gcap_dtype_t>(8);
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_ADD), kBad, "b.dtype is 8, allowed are 0..7");
  b_ = good;
  b_.shape[0] = -4;
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_ADD), kBad, "b.shape[0] is -4, allowed are 0..1099511627776");
  b_ = View(GCAP_DTYPE_F32, {int64_t{1} << 39, 0, 4}, nullptr);  // 2^41 elements but for the 0
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_ADD), kBad, "b is [549755813888,0,4], allowed are up to 1099511627776");
  b_ = good;
  b_.data = nullptr;
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_ADD), kBad, "b.data is NULL, allowed only without elements; b is [4]");
  b_.data = static_cast<char*>(good.data) + 2;
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_ADD), kBad, "b.data is 0x200002, must be a multiple of 4");
}

TEST_F(ElementwiseRefusal, NamesTypesThatDoNotFit) {
  b_.dtype = GCAP_DTYPE_F16;
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_ADD), kBad, "b is f16, must be f32: the type of a");
  b_.dtype = GCAP_DTYPE_F32;
  y_.dtype = GCAP_DTYPE_I32;
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_ADD), kBad, "y is i32, must be f32: the type of a");
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_LESS), kBad, "y is i32, must be bool: the type of a comparison");
  GCAP_EXPECT_FAILS(Unary(GCAP_UNARY_EXP), kBad, "y is i32, must be f32: the type of x");
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_OR), kBad, "OR is not defined for f32, allowed are bool");
  GCAP_EXPECT_FAILS(Unary(GCAP_UNARY_NOT), kBad, "NOT is not defined for f32, allowed are bool");
  a_.dtype = GCAP_DTYPE_BOOL;
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_POW), kBad, "POW is not defined for bool");
  a_.dtype = GCAP_DTYPE_I32;
  GCAP_EXPECT_FAILS(Unary(GCAP_UNARY_TANH), kBad, "TANH is not defined for i32, allowed are f32, f16, bf16");
  GCAP_EXPECT_FAILS(gcap_leaky_relu(stream_, 0.1f, &a_, &y_), kBad, "leaky_relu is not defined for i32");
  GCAP_EXPECT_FAILS(gcap_where(stream_, &a_, &b_, &b_, &y_), kBad, "condition is i32, must be bool");
  GCAP_EXPECT_FAILS(gcap_where(stream_, &condition_, &a_, &b_, &y_), kBad, "b is f32, must be i32: the type of a");
  GCAP_EXPECT_FAILS(gcap_where(stream_, &condition_, &b_, &b_, &y_), kBad, "y is i32, must be f32: the type of a");
}

TEST_F(ElementwiseRefusal, NamesShapesThatDoNotFit) {
  b_.shape[0] = 3;
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_ADD), kBad, "b.shape[0] is 3, allowed are 1 and 4");
  b_ = View(GCAP_DTYPE_F32, {2, 1}, b_.data);
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_ADD), kBad, "y is [4], must be [2,4]: the broadcast shape of the inputs");
  b_ = View(GCAP_DTYPE_F32, {0}, nullptr);
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_ADD), kBad, "b.shape[0] is 0, allowed are 1 and 4");
  y_ = View(GCAP_DTYPE_F32, {2, 2}, y_.data);
  GCAP_EXPECT_FAILS(Unary(GCAP_UNARY_EXP), kBad, "y is [2,2], must be [4]: the shape of x");
  GCAP_EXPECT_FAILS(gcap_cast(stream_, &a_, &y_), kBad, "y is [2,2], must be [4]");
}

TEST_F(ElementwiseRefusal, NamesTensorsThatOverlap) {
  y_.data = static_cast<char*>(a_.data) + 4;
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_ADD), kBad, "y is 16 bytes at 0x100004, a is 16 bytes at 0x100000");
  GCAP_EXPECT_FAILS(Unary(GCAP_UNARY_EXP), kBad, "y overlaps x");
  y_.data = a_.data;
  a_ = View(GCAP_DTYPE_F32, {}, a_.data);  // one element, which is read again after it was written
  GCAP_EXPECT_FAILS(Binary(GCAP_BINARY_ADD), kBad, "y overlaps a");
  a_ = View(GCAP_DTYPE_F16, {4}, a_.data);
  GCAP_EXPECT_FAILS(gcap_cast(stream_, &a_, &y_), kBad, "y overlaps x");
  y_.data = static_cast<char*>(condition_.data) - 12;
  GCAP_EXPECT_FAILS(gcap_where(stream_, &condition_, &b_, &b_, &y_), kBad, "y overlaps condition");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
