// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// debug.h: what the debug options ask of each allocation and free. While one is set every call takes the slow way, and
// comes by here with the arena held.
#ifndef GCAP_LIB_SCRATCH_DEBUG_H_
#define GCAP_LIB_SCRATCH_DEBUG_H_

#include "lib/scratch/arena.h"

// Makes what the options ask for; NULL when they ask for nothing. The functions below then do nothing.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t scratch_debug_create(const gcap_scratch_options_t* options, scratch_debug_t** out_debug) GCAP_NODISCARD;
void scratch_debug_destroy(scratch_debug_t* debug);

// A block was just handed out for `stream`. `out_event` is what scratch_debug_report wants; sequence 0 if nothing.
//   RESOURCE_EXHAUSTED  no host memory; the block goes back
gcap_status_t scratch_debug_note_alloc(gcap_scratch_t* scratch, void* ptr, size_t requested_bytes,
                                       gcap_stream_t* stream, gcap_allocator_event_t* out_event) GCAP_NODISCARD;
// A live block is about to be taken back.
void scratch_debug_note_free(gcap_scratch_t* scratch, void* ptr, gcap_allocator_event_t* out_event);
void scratch_debug_note_trim(gcap_scratch_t* scratch, gcap_allocator_event_t* out_event);

// Tells the caller's callback. Called when the arena was let go.
void scratch_debug_report(gcap_scratch_t* scratch, const gcap_allocator_event_t* event);

#endif  // GCAP_LIB_SCRATCH_DEBUG_H_
