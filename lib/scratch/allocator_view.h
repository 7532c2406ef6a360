// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// allocator_view.h: the scratch as an allocator.
#ifndef GCAP_LIB_SCRATCH_ALLOCATOR_VIEW_H_
#define GCAP_LIB_SCRATCH_ALLOCATOR_VIEW_H_

#include "lib/scratch/arena.h"

// Makes what gcap_scratch_allocator gives; gcap_allocator_destroy ends it.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_scratch_view_create(gcap_scratch_t* scratch) GCAP_NODISCARD;

#endif  // GCAP_LIB_SCRATCH_ALLOCATOR_VIEW_H_
