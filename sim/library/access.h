// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// access.h: the list of byte ranges that a library call reads and writes, and its submission.
#ifndef GCAP_SIM_LIBRARY_ACCESS_H_
#define GCAP_SIM_LIBRARY_ACCESS_H_

#include <stddef.h>
#include <stdint.h>

#include "sim/api/submit.h"

typedef enum gcap_sim_access_kind { GCAP_SIM_READ = 0, GCAP_SIM_WRITE = 1 } gcap_sim_access_kind_t;

// Adds [base, base + bytes).
void gcap_sim_access_add(gcap_sim_access_list_t* list, const void* base, size_t bytes, gcap_sim_access_kind_t kind);

// Adds an array of `rank` (at most 5) dimensions with non-negative strides in elements, exactly: gaps between its rows
// are not touched. A NULL base or an empty array adds nothing.
void gcap_sim_access_add_strided(gcap_sim_access_list_t* list, const void* base, size_t element_bytes, size_t rank,
                                 const int64_t* dims, const int64_t* strides, gcap_sim_access_kind_t kind);

// Submits the kernel over a copy of the payload.
cudaError_t gcap_sim_access_submit(cudaStream_t stream, const gcap_sim_library_kernel_t* kernel, const void* payload);

#endif  // GCAP_SIM_LIBRARY_ACCESS_H_
