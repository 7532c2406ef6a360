// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// managed.h: memory of one address for host and devices.
#ifndef GCAP_SIM_MEMORY_MANAGED_H_
#define GCAP_SIM_MEMORY_MANAGED_H_

#include <stddef.h>

#include "sim/memory/allocation.h"

// The managed allocation that the range, which is not empty, lies in; NULL when there is none.
gcap_sim_allocation_t* gcap_sim_managed_find(const void* address, size_t bytes);

#endif  // GCAP_SIM_MEMORY_MANAGED_H_
