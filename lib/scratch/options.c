// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// An arena's options. Values only, so there is nothing to lock.

#include "lib/scratch/options.h"

GCAP_SIZED_OPTIONS(, gcap_scratch_options,                         //
                   .initial_chunk_bytes = (size_t)1 << 20,         //
                   .initial_growth_chunk_bytes = (size_t)2 << 20,  //
                   .max_extend_bytes = (size_t)1 << 30,            //
                   .max_dead_bytes_per_chunk = (size_t)128 << 20);
