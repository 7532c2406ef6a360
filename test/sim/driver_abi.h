// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// driver_abi.h: functions of the driver as a program without its header gets and calls them.
#ifndef GCAP_TEST_SIM_DRIVER_ABI_H_
#define GCAP_TEST_SIM_DRIVER_ABI_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "cuda_runtime.h"

namespace gcap::testing {

// CUDA_KERNEL_NODE_PARAMS_v2.
struct DriverNode {
  void* func;
  unsigned int grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** params;
  void** extra;
  void* kern;
  void* ctx;
};
static_assert(sizeof(DriverNode) == 72);

using GetAttribute = int (*)(void*, int, unsigned long long);
using GetNode = int (*)(cudaGraphNode_t, DriverNode*);
using SetExecNode = int (*)(cudaGraphExec_t, cudaGraphNode_t, const DriverNode*);
using GetParam = int (*)(void*, size_t, size_t*, size_t*);
using GetName = int (*)(const char**, void*);
using Reserve = int (*)(uintptr_t*, size_t, size_t, uintptr_t, unsigned long long);
using Unreserve = int (*)(uintptr_t, size_t);

template <typename Function>
Function DriverEntry(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status;
  EXPECT_EQ(cudaSuccess, cudaGetDriverEntryPointByVersion(name, &function, 13000, cudaEnableDefault, &status));
  EXPECT_EQ(cudaDriverEntryPointSuccess, status) << name;
  return reinterpret_cast<Function>(function);
}

// CU_LAUNCH_PARAM_*.
inline void* const kExtraEnd = nullptr;
inline void* const kExtraBuffer = reinterpret_cast<void*>(1);
inline void* const kExtraBytes = reinterpret_cast<void*>(2);

}  // namespace gcap::testing

#endif  // GCAP_TEST_SIM_DRIVER_ABI_H_
