// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// slow_path.h: allocation and free in all cases that the fast path leaves over. Called with no lock of the arena held.
#ifndef GCAP_LIB_SCRATCH_SLOW_PATH_H_
#define GCAP_LIB_SCRATCH_SLOW_PATH_H_

#include "gcap/scratch.h"

// As gcap_scratch_alloc and gcap_scratch_free.
gcap_status_t gcap_scratch_alloc_slowly(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream,
                                        void** out_ptr) GCAP_NODISCARD;
gcap_status_t gcap_scratch_free_slowly(gcap_scratch_t* scratch, void* ptr) GCAP_NODISCARD;
// Allocation for no stream; with `reserved`, of a region of its own.
gcap_status_t gcap_scratch_alloc_untagged(gcap_scratch_t* scratch, size_t bytes, bool reserved,
                                          void** out_ptr) GCAP_NODISCARD;

#endif  // GCAP_LIB_SCRATCH_SLOW_PATH_H_
