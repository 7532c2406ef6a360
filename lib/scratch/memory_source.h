// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// memory_source.h: what an arena tells an audit of graphs: whose an address is.
#ifndef GCAP_LIB_SCRATCH_MEMORY_SOURCE_H_
#define GCAP_LIB_SCRATCH_MEMORY_SOURCE_H_

#include "lib/scratch/arena.h"

// Called without the arena's lock.
void gcap_scratch_source_add(gcap_scratch_t* scratch);
void gcap_scratch_source_remove(gcap_scratch_t* scratch);

#endif  // GCAP_LIB_SCRATCH_MEMORY_SOURCE_H_
