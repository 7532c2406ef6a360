// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// occupancy.h: what a multiprocessor holds.
#ifndef GCAP_SIM_DEVICE_OCCUPANCY_H_
#define GCAP_SIM_DEVICE_OCCUPANCY_H_

#include <stddef.h>

// Blocks of so many threads, with so much shared memory each, that a multiprocessor holds at a time.
size_t gcap_sim_occupancy(size_t threads, size_t shared_bytes);

#endif  // GCAP_SIM_DEVICE_OCCUPANCY_H_
