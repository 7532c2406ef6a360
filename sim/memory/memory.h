// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// memory.h: cudaMalloc and its kin, and the frees that do not wait for a stream.
#ifndef GCAP_SIM_MEMORY_MEMORY_H_
#define GCAP_SIM_MEMORY_MEMORY_H_

#include <stddef.h>

#include "cuda_runtime_api.h"
#include "sim/api/types.h"

// The free checks that the address may
// be freed so; gcap_sim_free_allocation frees any that is claimed.
cudaError_t gcap_sim_allocate(void** out, size_t bytes, enum cudaMemoryType type);
cudaError_t gcap_sim_free_now(void* address, enum cudaMemoryType type);
void gcap_sim_free_allocation(gcap_sim_allocation_t* allocation);

#endif  // GCAP_SIM_MEMORY_MEMORY_H_
