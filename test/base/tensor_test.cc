// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Tests of gcap/tensor.h.

#include "gcap/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

TEST(Dtype, HasItsNameAndItsSizeInBytes) {
  const struct {
    gcap_dtype_t dtype;
    const char* name;
    size_t bytes;
  } rows[] = {
      {GCAP_DTYPE_F32, "f32", sizeof(float)},
      {GCAP_DTYPE_F16, "f16", sizeof(uint16_t)},
      {GCAP_DTYPE_BF16, "bf16", sizeof(uint16_t)},
      {GCAP_DTYPE_I64, "i64", sizeof(int64_t)},
      {GCAP_DTYPE_I32, "i32", sizeof(int32_t)},
      {GCAP_DTYPE_BOOL, "bool", 1},
      {GCAP_DTYPE_I8, "i8", 1},
      {GCAP_DTYPE_U8, "u8", 1},
  };
  for (const auto& row : rows) {
    EXPECT_STREQ(gcap_dtype_name(row.dtype), row.name);
    EXPECT_EQ(gcap_dtype_bytes(row.dtype), row.bytes) << row.name;
  }
}

TEST(Dtype, UnknownOneHasNoSize) {
  for (int value : {-1, GCAP_DTYPE_U8 + 1}) {
    EXPECT_EQ(gcap_dtype_bytes(static_cast<gcap_dtype_t>(value)), 0u) << value;
    EXPECT_STREQ(gcap_dtype_name(static_cast<gcap_dtype_t>(value)), "unknown type") << value;
  }
}

TEST(Memory, KindsHaveNames) {
  EXPECT_STREQ(gcap_memory_kind_name(GCAP_MEMORY_DEVICE), "device");
  EXPECT_STREQ(gcap_memory_kind_name(GCAP_MEMORY_HOST), "host");
  EXPECT_STREQ(gcap_memory_kind_name(GCAP_MEMORY_PINNED), "pinned");
  EXPECT_STREQ(gcap_memory_kind_name(static_cast<gcap_memory_kind_t>(3)), "unknown kind");
}

TEST(Tensor, CountsElementsAndBytes) {
  gcap_tensor_t scalar = {};
  EXPECT_EQ(gcap_tensor_elements(&scalar), 1);
  EXPECT_EQ(gcap_tensor_bytes(&scalar), 4u);
  gcap_tensor_t matrix = {nullptr, GCAP_DTYPE_I64, 2, {3, 5}};
  EXPECT_EQ(gcap_tensor_elements(&matrix), 15);
  EXPECT_EQ(gcap_tensor_bytes(&matrix), 120u);
  gcap_tensor_t empty = {nullptr, GCAP_DTYPE_F16, 3, {2, 0, 7}};
  EXPECT_EQ(gcap_tensor_elements(&empty), 0);
  EXPECT_EQ(gcap_tensor_bytes(&empty), 0u);
}

}  // namespace
