// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// launch.h: launches of kernels.
#ifndef GCAP_SIM_DEVICE_LAUNCH_H_
#define GCAP_SIM_DEVICE_LAUNCH_H_

#include <stddef.h>

#include "cuda_runtime_api.h"
#include "sim/device/twin.h"

// All blocks of a cooperative grid must be on the device at a time.
cudaError_t gcap_sim_judge_cooperative(const void* function, dim3 grid, dim3 block, size_t shared_bytes);

// Can the grid be cut into these clusters, and does the kernel take them?
cudaError_t gcap_sim_judge_cluster(const gcap_sim_twin_t* twin, dim3 grid, dim3 cluster);

#endif  // GCAP_SIM_DEVICE_LAUNCH_H_
