// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// vmem.h: address space.
#ifndef GCAP_SIM_MEMORY_VMEM_H_
#define GCAP_SIM_MEMORY_VMEM_H_

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/thread.h"

// One space for each device, and one for pinned host memory.
enum { GCAP_SIM_PINNED_SPACE = GCAP_SIM_MAX_DEVICES, GCAP_SIM_NUM_SPACES };

// A range that is in no other's hands, at a multiple of GCAP_SIM_ALIGNMENT; NULL when there is none.
void* gcap_sim_vmem_take(int space, size_t bytes);
// Gives a whole range back. Its bytes stay accessible, and it is not taken again soon.
void gcap_sim_vmem_give_back(int space, void* base, size_t bytes);
// Gives all bytes of a range, or of a part of one, the value. Large ranges get pages that share memory until they are
// written.
void gcap_sim_vmem_fill(void* base, size_t bytes, unsigned char value);
// Does the range reach into addresses that have no memory yet?
bool gcap_sim_vmem_is_bare(const void* address, size_t bytes);

#endif  // GCAP_SIM_MEMORY_VMEM_H_
