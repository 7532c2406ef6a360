// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// access.h: the list of byte ranges that a library call reads and writes, and its submission.
#ifndef GCAP_SIM_LIBRARY_ACCESS_H_
#define GCAP_SIM_LIBRARY_ACCESS_H_

#include <stddef.h>
#include <stdint.h>

#include "sim/cudart/submit.h"

// Grows as needed; zero-initialise, and let sim_access_submit free it.
typedef struct sim_access_list {
  gcap_sim_access_t* items;
  size_t count;
  size_t capacity;
  int out_of_memory;
} sim_access_list_t;

typedef enum sim_access_kind { SIM_READ = 0, SIM_WRITE = 1 } sim_access_kind_t;

// Adds [base, base + bytes).
void sim_access_add(sim_access_list_t* list, const void* base, size_t bytes, sim_access_kind_t kind);

// Adds an array of `rank` (at most 4) dimensions with non-negative strides in elements, exactly: gaps between its rows
// are not touched. A NULL base or an empty array adds nothing.
void sim_access_add_strided(sim_access_list_t* list, const void* base, size_t element_bytes, size_t rank,
                            const int64_t* dims, const int64_t* strides, sim_access_kind_t kind);

// Submits `run` over a copy of the payload with the list's accesses, then empties the list.
cudaError_t sim_access_submit(sim_access_list_t* list, cudaStream_t stream, const char* name, void (*run)(void*),
                              const void* payload, size_t payload_bytes);

#endif  // GCAP_SIM_LIBRARY_ACCESS_H_
