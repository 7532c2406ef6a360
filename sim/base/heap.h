// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// heap.h: memory of the simulator itself.
#ifndef GCAP_SIM_BASE_HEAP_H_
#define GCAP_SIM_BASE_HEAP_H_

#include <stddef.h>

// Like calloc and realloc, but stop the program when the machine has no memory left.
void* gcap_sim_calloc(size_t count, size_t bytes);
// Grows the array at *items (of `bytes` each) to hold `need`; doubles, so that appending is cheap.
void gcap_sim_reserve(void* items, size_t* capacity, size_t need, size_t bytes);

#endif  // GCAP_SIM_BASE_HEAP_H_
