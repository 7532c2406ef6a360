// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// library.h: kernels of the simulated libraries, as the driver knows them. Guarded by the global mutex.
#ifndef GCAP_SIM_DEVICE_LIBRARY_H_
#define GCAP_SIM_DEVICE_LIBRARY_H_

#include "cuda_runtime_api.h"
#include "sim/api/submit.h"
#include "sim/api/types.h"

// The kernel of that handle, which is its address; NULL when it is none of a library. It lives for ever.
const gcap_sim_library_kernel_t* gcap_sim_library_kernel_find(const void* handle);
// The task of a launch with these parameters; on failure returns NULL and sets the code.
gcap_sim_task_t* gcap_sim_library_params_task(const gcap_sim_library_kernel_t* kernel,
                                              const struct cudaKernelNodeParams* params, cudaError_t* code);
// What a node with the task is told to be.
struct cudaKernelNodeParams gcap_sim_library_task_params(const gcap_sim_task_t* task);

#endif  // GCAP_SIM_DEVICE_LIBRARY_H_
