// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// debug.h: what the debug options ask of each allocation and free. While one is set every call takes the slow path, and
// comes by here with the arena locked. Without any the functions do nothing.
#ifndef GCAP_LIB_SCRATCH_DEBUG_H_
#define GCAP_LIB_SCRATCH_DEBUG_H_

#include "lib/scratch/arena.h"
#include "lib/scratch/record.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes what the arena's options ask for.
//   INVALID_ARGUMENT    recorded_operations is too large
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_scratch_debug_create(gcap_scratch_t* scratch) GCAP_NODISCARD;
void gcap_scratch_debug_destroy(gcap_scratch_t* scratch);

// A block was just handed out for `stream`. `out_event` is what gcap_scratch_debug_report wants; sequence 0 if nothing.
// On failure the block goes back.
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          the zones cannot be written
gcap_status_t gcap_scratch_debug_note_alloc(gcap_scratch_t* scratch, void* ptr, size_t requested_bytes,
                                            gcap_stream_t* stream, gcap_allocator_event_t* out_event) GCAP_NODISCARD;
// A live block is about to be taken back, which it is not on failure. What was found wrong with it is in `out_damage`.
// `out_live` goes to one of the two functions below. With `forced` what follows is told in `out_damage` as well.
//   CUDA_ERROR          the zones cannot be read, or the poison not be written
//   RESOURCE_EXHAUSTED  no host memory to watch the zones of a graph's block
gcap_status_t gcap_scratch_debug_begin_free(gcap_scratch_t* scratch, const gcap_scratch_block_t* block, bool forced,
                                            gcap_scratch_live_t** out_live, gcap_status_t* out_damage) GCAP_NODISCARD;
// It was taken back.
void gcap_scratch_debug_end_free(gcap_scratch_t* scratch, gcap_scratch_live_t* live, gcap_allocator_event_t* out_event);
// It stays handed out.
void gcap_scratch_debug_undo_free(gcap_scratch_t* scratch, gcap_scratch_live_t* live);
// The stream is about to be destroyed: its blocks are no stream's from now on.
void gcap_scratch_debug_forget_stream(gcap_scratch_t* scratch, const gcap_stream_t* stream);
void gcap_scratch_debug_note_trim(gcap_scratch_t* scratch, gcap_allocator_event_t* out_event);

// gcap_scratch_history_of of the arena's record.
gcap_scratch_history_t gcap_scratch_debug_history(const gcap_scratch_t* scratch, const void* ptr);
// gcap_scratch_with_history of the arena's record.
gcap_status_t gcap_scratch_debug_explain(const gcap_scratch_t* scratch, const void* ptr,
                                         gcap_status_t status) GCAP_NODISCARD;
// Checks the zones of what is handed out and of what graphs used, as far as no capture forbids it, and that `num_live`
// blocks are known to be handed out.
//   INTERNAL    what is wrong
//   CUDA_ERROR  zones cannot be read
gcap_status_t gcap_scratch_debug_validate(gcap_scratch_t* scratch, size_t num_live) GCAP_NODISCARD;

// Tells the caller's callback. Called when the arena was unlocked.
void gcap_scratch_debug_report(gcap_scratch_t* scratch, const gcap_allocator_event_t* event);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_SCRATCH_DEBUG_H_
