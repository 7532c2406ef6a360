// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Variables of devices that nvcc registers: their first contents, and their end.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "gcap_sim.h"
#include "test/nvcc/host_object.h"

namespace {

using gcap_test::HostObject;

// The first contents are the machine code's; where that does not tell them they are unknown.
TEST(NvccVariableDeathTest, AVariableBeginsAsTheMachineCodeSays) {
  static char table, zero, unknown, other_size;
  HostObject object({}, {{"table", 4, {1, 2, 3, 4}}, {"_ZN2ns4zeroE", 4, {}}, {"other_size", 8, {}}});
  object.AddVariable(&table, "table", 4).AddVariable(&zero, "_ZN2ns4zeroE", 4);
  object.AddVariable(&unknown, "unknown", 4).AddVariable(&other_size, "other_size", 4).End();
  uint32_t value = 77;
  EXPECT_EQ(cudaSuccess, cudaMemcpyFromSymbol(&value, &table, sizeof(value)));
  EXPECT_EQ(0x04030201u, value);
  EXPECT_EQ(cudaSuccess, cudaMemcpyFromSymbol(&value, &zero, sizeof(value)));
  EXPECT_EQ(0u, value);
  for (const void* symbol : {&unknown, &other_size}) {
    EXPECT_DEATH((void)cudaMemcpyFromSymbol(&value, symbol, sizeof(value)), "uninitialized");
    EXPECT_EQ(cudaSuccess, cudaMemcpyToSymbol(symbol, &value, sizeof(value)));
    EXPECT_EQ(cudaSuccess, cudaMemcpyFromSymbol(&value, symbol, sizeof(value)));
  }
}

// int x = 7; int* p = &x: only a linker knows the address, and the machine code has something else in its place.
TEST(NvccVariableDeathTest, AVariableWithAnAddressInItBeginsUnknown) {
  static char before, pointer, pointer_without_addend, after;
  HostObject object({}, {{"before", 4, {1, 0, 0, 0}},
                         {"pointer", 8, std::vector<char>(8), 4},
                         {"pointer_without_addend", 8, std::vector<char>(8), 9},
                         {"after", 4, {2, 0, 0, 0}}});
  object.AddVariable(&before, "before", 4).AddVariable(&pointer, "pointer", 8);
  object.AddVariable(&pointer_without_addend, "pointer_without_addend", 8).AddVariable(&after, "after", 4).End();
  uint32_t value = 77;
  EXPECT_EQ(cudaSuccess, cudaMemcpyFromSymbol(&value, &before, sizeof(value)));
  EXPECT_EQ(1u, value);
  EXPECT_EQ(cudaSuccess, cudaMemcpyFromSymbol(&value, &after, sizeof(value)));
  EXPECT_EQ(2u, value);
  for (const void* symbol : {&pointer, &pointer_without_addend}) {
    EXPECT_DEATH((void)cudaMemcpyFromSymbol(&value, symbol, sizeof(value)), "uninitialized");
  }
}

TEST(NvccVariableDeathTest, AVariableGoesWithItsObject) {
  static char variable;
  size_t bytes = 0;
  {
    HostObject object;
    object.AddVariable(&variable, "variable", 8).End();
    HostObject again;
    again.AddVariable(&variable, "variable", 8).End();
    EXPECT_EQ(cudaSuccess, cudaGetSymbolSize(&bytes, &variable));
    EXPECT_EQ(8u, bytes);
  }
  EXPECT_EQ(cudaErrorInvalidSymbol, cudaGetSymbolSize(&bytes, &variable));
  (void)cudaGetLastError();
}

}  // namespace
