// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// occupancy.h: what a multiprocessor holds.
#ifndef GCAP_SIM_DEVICE_OCCUPANCY_H_
#define GCAP_SIM_DEVICE_OCCUPANCY_H_

#include <stddef.h>

#include "sim/nvcc/fat_binary.h"

// Blocks of so many threads of a kernel, with so much dynamic shared memory each, that a multiprocessor holds at a
// time.
size_t gcap_sim_occupancy(gcap_sim_needs_t needs, size_t threads, size_t shared_bytes);

#endif  // GCAP_SIM_DEVICE_OCCUPANCY_H_
