// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// host_range.h: does the process have memory there?
#ifndef GCAP_SIM_MEMORY_HOST_RANGE_H_
#define GCAP_SIM_MEMORY_HOST_RANGE_H_

#include <stdbool.h>
#include <stddef.h>

#include "sim/memory/copy.h"

// Has the process memory everywhere in the range?
bool gcap_sim_is_host_memory(const void* address, size_t bytes);
// Stop the program when pageable memory that the copy reads or writes is none.
void gcap_sim_check_source(const gcap_sim_copy_t* copy);
void gcap_sim_check_destination(const gcap_sim_copy_t* copy);

#endif  // GCAP_SIM_MEMORY_HOST_RANGE_H_
