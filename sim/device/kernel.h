// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// kernel.h: kernels and their twins.
#ifndef GCAP_SIM_DEVICE_KERNEL_H_
#define GCAP_SIM_DEVICE_KERNEL_H_

#include <stddef.h>

#include "cuda_runtime_api.h"
#include "sim/api/types.h"
#include "sim/device/twin.h"

// How much dynamic shared memory a launch of the kernel may ask for. Fails with what a function that is no kernel
// earns.
cudaError_t gcap_sim_kernel_max_shared(const void* function, size_t* out);
// What the kernel needs; all 0 for a function that is no kernel.
gcap_sim_needs_t gcap_sim_kernel_needs(const void* function);
// What nvcc calls it, mangled, where nvcc compiled it.
const char* gcap_sim_kernel_name(const gcap_sim_twin_t* twin);
// Where a parameter lies behind the first, and its size, which `bytes` may be NULL for; an invalid value past the last.
cudaError_t gcap_sim_kernel_param(gcap_sim_twin_t* twin, size_t index, size_t* offset, size_t* bytes);
// A task of a kernel that is the given one but for the cluster, whose numbers of 0 stand for 1. Takes over the
// reference.
gcap_sim_task_t* gcap_sim_kernel_task_with_cluster(gcap_sim_task_t* task, dim3 cluster);
// What a node with the task is told to be: the pointers in it are the task's own. Stops the program when the task lacks
// copies of arguments, since nobody knows their sizes.
struct cudaKernelNodeParams gcap_sim_kernel_task_params(const gcap_sim_task_t* task);
// Makes the task of a launch, without clusters; on failure returns NULL and sets the code.
gcap_sim_task_t* gcap_sim_kernel_task(const void* function, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                                      cudaError_t* code);
// The same with arguments in one buffer.
gcap_sim_task_t* gcap_sim_kernel_task_of_extra(const void* function, dim3 grid, dim3 block, void** extra,
                                               size_t shared_bytes, cudaError_t* code);

#endif  // GCAP_SIM_DEVICE_KERNEL_H_
