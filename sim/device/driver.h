// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// driver.h: the functions of the driver that the runtime hands out, by the driver's ABI. Each answers a CUresult.
#ifndef GCAP_SIM_DEVICE_DRIVER_H_
#define GCAP_SIM_DEVICE_DRIVER_H_

#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

// CUDA_KERNEL_NODE_PARAMS_v2. What names a kernel to the driver is its address, as CUfunction and as CUkernel.
typedef struct gcap_sim_driver_node {
  const void* func;
  unsigned int grid[3];
  unsigned int block[3];
  unsigned int shared_bytes;
  void** params;
  void** extra;
  const void* kern;  // looked at where there is no func
  void* ctx;
} gcap_sim_driver_node_t;

int gcap_sim_driver_reserve(uintptr_t* out, size_t bytes, size_t alignment, uintptr_t hint, unsigned long long flags);
int gcap_sim_driver_unreserve(uintptr_t address, size_t bytes);

int gcap_sim_driver_function_param(const void* function, size_t index, size_t* offset, size_t* bytes);
int gcap_sim_driver_kernel_param(const void* kernel, size_t index, size_t* offset, size_t* bytes);
int gcap_sim_driver_function_name(const char** name, const void* function);
int gcap_sim_driver_kernel_name(const char** name, const void* kernel);

int gcap_sim_driver_current_context(void** out);
int gcap_sim_driver_get_node(cudaGraphNode_t node, gcap_sim_driver_node_t* params);
int gcap_sim_driver_set_exec_node(cudaGraphExec_t exec, cudaGraphNode_t node, const gcap_sim_driver_node_t* params);

#endif  // GCAP_SIM_DEVICE_DRIVER_H_
