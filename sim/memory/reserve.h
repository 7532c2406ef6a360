// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// reserve.h: ranges of addresses without memory. Guarded by the global mutex.
#ifndef GCAP_SIM_MEMORY_RESERVE_H_
#define GCAP_SIM_MEMORY_RESERVE_H_

#include <stdbool.h>

// Is the address in a range that a caller has reserved?
bool gcap_sim_is_reserved(const void* address);

#endif  // GCAP_SIM_MEMORY_RESERVE_H_
