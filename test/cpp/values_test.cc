// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What gcap.hpp makes of statuses, results, exceptions, structs and tensors.

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "gcap/gcap.hpp"
#include "gtest/gtest.h"
#include "test/support/expect_status.h"

struct MyHalf {
  uint16_t bits;
};

template <>
struct gcap::dtype<MyHalf> : std::integral_constant<gcap_dtype_t, GCAP_DTYPE_F16> {};

namespace gcap {
namespace testing {
namespace {

gcap_status_t NotFound() { return GCAP_STATUS(GCAP_NOT_FOUND, "no layer 3"); }

TEST(Status, IsWhatACFunctionReturns) {
  status none = nullptr;
  EXPECT_TRUE(none.ok());
  EXPECT_EQ(none.code(), GCAP_OK);
  status failed = NotFound();
  EXPECT_FALSE(failed.ok());
  EXPECT_STREQ(failed.message(), "no layer 3");
  EXPECT_NE(std::string(failed.info().file).find("values_test.cc"), std::string::npos);
  none = std::move(failed);
  EXPECT_TRUE(failed.ok());
  EXPECT_EQ(none.code(), GCAP_NOT_FOUND);
  status& itself = none;
  none = std::move(itself);
  EXPECT_EQ(none.code(), GCAP_NOT_FOUND);
  none = NotFound();  // frees the first one
  GCAP_EXPECT_FAILS(none.release(), GCAP_NOT_FOUND, "layer 3");
  EXPECT_TRUE(none.ok());
}

TEST(Status, GoesUpThroughFunctionsThatReturnOne) {
  const auto fails = []() -> status {
    GCAP_RETURN_IF_ERROR(NotFound());
    return {};
  };
  EXPECT_EQ(fails().code(), GCAP_NOT_FOUND);
}

TEST(Error, HasTheStatusAndSoHaveItsCopies) {
  try {
    check(nullptr);
    check(NotFound());
    FAIL() << "nothing was thrown";
  } catch (const error& thrown) {
    error copy(thrown);
    EXPECT_STREQ(copy.what(), "no layer 3");
    EXPECT_EQ(copy.failure().code(), GCAP_NOT_FOUND);
    copy = thrown;
    EXPECT_STREQ(thrown.what(), "no layer 3");
    EXPECT_STREQ(copy.what(), "no layer 3");
  }
}

TEST(Result, HasAValueOrAFailure) {
  const auto half = [](int number) -> result<int> {
    if (status failure = number % 2 == 0 ? nullptr : NotFound(); !failure.ok()) return failure;
    return number / 2;
  };
  EXPECT_TRUE(half(8));
  EXPECT_EQ(*half(8), 4);
  EXPECT_EQ(half(8).value_or_throw(), 4);
  EXPECT_FALSE(half(7));
  EXPECT_EQ(half(7).failure().code(), GCAP_NOT_FOUND);
  EXPECT_THROW((void)half(7).value_or_throw(), error);
}

TEST(FilledBy, HasTheDefaults) {
  EXPECT_EQ(filled_by<gcap_graph_manager_options_init>().min_num_runs_before_capture, 2u);
  EXPECT_EQ(filled_by<gcap_run_init>().struct_size, sizeof(gcap_run_t));
}

TEST(Tensor, HasTheTypeOfItsElements) {
  float f32 = 0;
  const bool truth = false;
  long l = 0;
  long long ll = 0;
  int32_t i32 = 0;
  MyHalf mine = {};
  EXPECT_EQ(tensor(&f32).dtype, GCAP_DTYPE_F32);
  EXPECT_EQ(tensor(&truth).dtype, GCAP_DTYPE_BOOL);
  EXPECT_EQ(tensor(static_cast<int8_t*>(nullptr)).dtype, GCAP_DTYPE_I8);
  EXPECT_EQ(tensor(static_cast<uint8_t*>(nullptr)).dtype, GCAP_DTYPE_U8);
  EXPECT_EQ(tensor(&l).dtype, GCAP_DTYPE_I64);
  EXPECT_EQ(tensor(&ll).dtype, GCAP_DTYPE_I64);
  EXPECT_EQ(tensor(&i32).dtype, GCAP_DTYPE_I32);
  EXPECT_EQ(tensor(&mine).dtype, GCAP_DTYPE_F16);
  EXPECT_EQ(tensor(static_cast<__half*>(nullptr)).dtype, GCAP_DTYPE_F16);
  EXPECT_EQ(tensor(static_cast<const __nv_bfloat16*>(nullptr)).dtype, GCAP_DTYPE_BF16);
}

TEST(Tensor, HasTheShapeThatIsGiven) {
  float data[6] = {};
  const gcap_tensor_t matrix = tensor(data, {2, 3});
  EXPECT_EQ(matrix.data, data);
  ASSERT_EQ(matrix.rank, 2);
  EXPECT_EQ(matrix.shape[0], 2);
  EXPECT_EQ(matrix.shape[1], 3);
  EXPECT_EQ(gcap_tensor_bytes(&matrix), sizeof(data));
  EXPECT_EQ(tensor(data).rank, 0);
  const int64_t shape[GCAP_MAX_RANK + 1] = {1, 1, 1, 1, 1, 1, 1, 6, 1};
  const gcap_tensor_t deep = tensor(data, shape, GCAP_MAX_RANK);
  EXPECT_EQ(deep.rank, GCAP_MAX_RANK);
  EXPECT_EQ(deep.shape[7], 6);
  EXPECT_EQ(tensor(data, shape, GCAP_MAX_RANK + 1).rank, -1);
}

TEST(Binding, BorrowsATensor) {
  float data[6] = {};
  const gcap_tensor_t matrix = tensor(data, {2, 3});
  const gcap_graph_binding_t binding = binding_of("x", matrix);
  EXPECT_STREQ(binding.name, "x");
  EXPECT_EQ(binding.address, data);
  EXPECT_EQ(binding.rank, 2);
  EXPECT_EQ(binding.shape, matrix.shape);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
