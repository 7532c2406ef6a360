// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// debug.h: what the debug options ask of each allocation and free. While one is set every call takes the slow way, and
// comes by here with the arena held.
#ifndef GCAP_LIB_SCRATCH_DEBUG_H_
#define GCAP_LIB_SCRATCH_DEBUG_H_

#include "lib/scratch/arena.h"

// Bytes that nobody has a reason to write again and again: as a number of any type they are odd, but not extreme.
#define GCAP_SCRATCH_ZONE_BYTE 0xA5
// NaN in every floating-point format that GPUs know, and -1 as an integer.
#define GCAP_SCRATCH_POISON_BYTE 0xFF

// What is handed out.
typedef struct gcap_scratch_live {
  char* ptr;
  size_t bytes;           // asked for
  uint64_t number;        // of the call that gave it
  gcap_stream_t* stream;  // NULL: none, so that nothing is ever written to it, nor checked
  bool captured;          // its zones are written by a graph, whenever that runs
  struct gcap_scratch_live* next;
} gcap_scratch_live_t;

// One remembered call.
typedef struct gcap_scratch_call {
  uint64_t number;
  uint64_t block;  // the number of the call that gave the block; equal to `number` for an allocation
  char* ptr;
  size_t bytes;
  bool has_stream;
  cudaStream_t stream;   // of the block; 0 is one
  unsigned long thread;  // pthread_self
  uint64_t time_ns;      // CLOCK_MONOTONIC
} gcap_scratch_call_t;

enum { GCAP_SCRATCH_DEBUG_BUCKETS = 1024 };  // a power of two; more blocks than that are seldom live

struct gcap_scratch_debug {
  bool red_zones, poison_on_free;
  enum cudaMemcpyKind to_host;  // from the memory of upstream
  uint64_t num_calls;
  gcap_scratch_live_t* live[GCAP_SCRATCH_DEBUG_BUCKETS];  // by address
  gcap_scratch_call_t* calls;                             // a ring of this many places, the youngest
  size_t num_remembered;                                  // one at (num_recorded - 1) % num_remembered
  uint64_t num_recorded;
};

// Bytes before what is handed out; after it there are as many, behind what rounding adds.
static inline size_t gcap_scratch_zone_bytes(const gcap_scratch_t* scratch) {
  return scratch->debug != NULL && scratch->debug->red_zones ? GCAP_SCRATCH_GRANULE_BYTES : 0;
}

// --- debug.c --------------------------------------------------------------------------------------------------------

// Makes what the options ask for; NULL when they ask for nothing. The functions below then do nothing.
//   INVALID_ARGUMENT    recorded_operations is too large
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_scratch_debug_create(const gcap_scratch_options_t* options, const gcap_allocator_t* upstream,
                                        gcap_scratch_debug_t** out_debug) GCAP_NODISCARD;
void gcap_scratch_debug_destroy(gcap_scratch_debug_t* debug);

// A block was just handed out for `stream`. `out_event` is what gcap_scratch_debug_report wants; sequence 0 if nothing.
// On failure the block goes back.
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          the zones cannot be written
gcap_status_t gcap_scratch_debug_note_alloc(gcap_scratch_t* scratch, void* ptr, size_t requested_bytes,
                                            gcap_stream_t* stream, gcap_allocator_event_t* out_event) GCAP_NODISCARD;
// A live block is about to be taken back, which it is not on failure. What was found wrong with it is in `out_damage`.
// `out_live` goes to one of the two functions below.
//   CUDA_ERROR  the zones cannot be read, or the poison not be written
gcap_status_t gcap_scratch_debug_begin_free(gcap_scratch_t* scratch, const gcap_scratch_block_t* block,
                                            gcap_scratch_live_t** out_live, gcap_status_t* out_damage) GCAP_NODISCARD;
// It was taken back.
void gcap_scratch_debug_end_free(gcap_scratch_t* scratch, gcap_scratch_live_t* live, gcap_allocator_event_t* out_event);
// It stays handed out.
void gcap_scratch_debug_undo_free(gcap_scratch_t* scratch, gcap_scratch_live_t* live);
// The stream is about to be destroyed: its blocks are no stream's from now on.
void gcap_scratch_debug_forget_stream(gcap_scratch_t* scratch, const gcap_stream_t* stream);
void gcap_scratch_debug_note_trim(gcap_scratch_t* scratch, gcap_allocator_event_t* out_event);

// Checks the zones of what is handed out and of what graphs used, as far as no capture forbids it, and that `num_live`
// blocks are known to be handed out.
//   INTERNAL    what is wrong
//   CUDA_ERROR  zones cannot be read
gcap_status_t gcap_scratch_debug_validate(gcap_scratch_t* scratch, size_t num_live) GCAP_NODISCARD;

// Tells the caller's callback. Called when the arena was let go.
void gcap_scratch_debug_report(gcap_scratch_t* scratch, const gcap_allocator_event_t* event);

// --- record.c -------------------------------------------------------------------------------------------------------

gcap_status_t gcap_scratch_record_create(gcap_scratch_debug_t* debug, size_t num_remembered) GCAP_NODISCARD;
void gcap_scratch_record_add(gcap_scratch_debug_t* debug, const gcap_scratch_live_t* live, uint64_t number);

// What the record knows of an address, as the end of a sentence: "; it was allocated as …". Empty without a record.
typedef struct gcap_scratch_history {
  char text[384];
} gcap_scratch_history_t;
gcap_scratch_history_t gcap_scratch_history_of(const gcap_scratch_debug_t* debug, const void* ptr);
// The same failure with the history at the end of its message. NULL is fine.
gcap_status_t gcap_scratch_with_history(const gcap_scratch_t* scratch, const void* ptr,
                                        gcap_status_t status) GCAP_NODISCARD;

// --- red_zones.c ----------------------------------------------------------------------------------------------------

// Whether work given to the stream now becomes part of a graph.
gcap_status_t gcap_scratch_is_capturing(gcap_stream_t* stream, bool* out_capturing) GCAP_NODISCARD;
// Writes both zones of a block in the order of its stream.
gcap_status_t gcap_scratch_zones_write(const gcap_scratch_live_t* live) GCAP_NODISCARD;
// Reads them, behind all that the stream was given, and tells what is wrong. NULL in `out_damage`: nothing.
gcap_status_t gcap_scratch_zones_check(const gcap_scratch_debug_t* debug, const gcap_scratch_live_t* live,
                                       gcap_status_t* out_damage) GCAP_NODISCARD;
// Makes the graph that the block's stream is captured for bring its zones to the host, and looks at what replays
// brought. They go with the reservation.
gcap_status_t gcap_scratch_zones_capture(gcap_scratch_reservation_t* reservation,
                                         const gcap_scratch_live_t* live) GCAP_NODISCARD;
gcap_status_t gcap_scratch_zones_check_copies(const gcap_scratch_debug_t* debug,
                                              const gcap_scratch_reservation_t* reservation) GCAP_NODISCARD;
void gcap_scratch_zones_free_copies(gcap_scratch_reservation_t* reservation);
// Fills a block in the order of its stream.
gcap_status_t gcap_scratch_poison(const gcap_scratch_live_t* live) GCAP_NODISCARD;

#endif  // GCAP_LIB_SCRATCH_DEBUG_H_
