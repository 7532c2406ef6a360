// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// slow_path.h: allocation and free in all cases that the fast path leaves over. Called with no lock of the arena held,
// but where one says otherwise.
#ifndef GCAP_LIB_SCRATCH_SLOW_PATH_H_
#define GCAP_LIB_SCRATCH_SLOW_PATH_H_

#include "lib/scratch/arena.h"

// As gcap_scratch_alloc and gcap_scratch_free.
gcap_status_t gcap_scratch_alloc_slowly(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream,
                                        void** out_ptr) GCAP_NODISCARD;
gcap_status_t gcap_scratch_free_slowly(gcap_scratch_t* scratch, void* ptr) GCAP_NODISCARD;
// Frees a live block while the arena is locked. `out_event` is for gcap_scratch_debug_report; what red zones have found
// is in `out_damage`, and the block was freed then. The other failures, after which it stays live, are those of
// gcap_scratch_free. With `forced`, for a block that nobody else will free, it is no reason against it that the debug
// options cannot look at the block or fill it: that too is in `out_damage`.
gcap_status_t gcap_scratch_free_live(gcap_scratch_t* scratch, gcap_scratch_block_t* block, bool forced,
                                     gcap_allocator_event_t* out_event, gcap_status_t* out_damage) GCAP_NODISCARD;
// Allocation for no stream; with `reserved`, of a region of its own.
gcap_status_t gcap_scratch_alloc_untagged(gcap_scratch_t* scratch, size_t bytes, bool reserved,
                                          void** out_ptr) GCAP_NODISCARD;

#endif  // GCAP_LIB_SCRATCH_SLOW_PATH_H_
