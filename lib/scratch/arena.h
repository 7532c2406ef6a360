// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// arena.h: the parts of the scratch arena, shared by the files of this folder alone.
#ifndef GCAP_LIB_SCRATCH_ARENA_H_
#define GCAP_LIB_SCRATCH_ARENA_H_

#include <pthread.h>

#include "lib/scratch/pool.h"

// One piece of memory from upstream.
typedef struct scratch_region {
  char* base;
  size_t bytes;
  scratch_block_t* first;       // lowest
  scratch_block_t** starts;     // by granule: the block that starts there, or NULL
  struct scratch_region* next;  // on a list of regions that are being given back
} scratch_region_t;

// What the arena knows of one stream.
typedef struct scratch_stream {
  gcap_stream_t* stream;
  scratch_pool_t pool;  // free blocks of the arena that carry its tag
  size_t num_live;      // blocks handed out for it
  size_t num_reservations;
  gcap_scratch_reservation_t* open;  // the reservation that its allocations are diverted to
  struct scratch_stream* next;
} scratch_stream_t;

struct gcap_scratch_reservation {
  gcap_scratch_t* scratch;
  scratch_stream_t* user;
  scratch_pool_t pool;  // its free blocks
  size_t bytes;         // of all its blocks
  size_t num_live;      // of its blocks
  gcap_scratch_reservation_t* next;
};

struct gcap_scratch {
  gcap_allocator_t* upstream;
  gcap_scratch_options_t options;
  pthread_mutex_t mutex;

  scratch_region_t** regions;  // by address
  size_t num_regions, region_capacity;
  // Regions on their way in or out, without the mutex: they keep their place in `regions` and their share of the limit.
  size_t num_absent, absent_bytes;
  size_t next_region_bytes;
  size_t deficit_bytes;  // what captures lacked since the last growth

  scratch_pool_t untagged;  // free blocks that nobody uses any more
  scratch_stream_t* streams;
  gcap_scratch_reservation_t* reservations;
  scratch_block_t* spares;  // block structs to use again, linked by `next`
  gcap_allocator_stats_t stats;
};

// All functions below are called with the mutex held; those that reach upstream let go of it meanwhile and say so.

// --- region.c -------------------------------------------------------------------------------------------------------

// A region of one untagged block that is in no pool yet. Needs no mutex.
gcap_status_t scratch_region_create(void* base, size_t bytes, scratch_region_t** out_region) GCAP_NODISCARD;
// Frees the region's description. It consists of one block, which is in no pool. Needs no mutex.
void scratch_region_destroy(scratch_region_t* region);

// The live block that starts at `ptr`.
//   INVALID_ARGUMENT  there is none, and why
gcap_status_t scratch_find_live(gcap_scratch_t* scratch, void* ptr, scratch_block_t** out_block) GCAP_NODISCARD;

// The pool that a free block belongs to.
scratch_pool_t* scratch_pool_of(gcap_scratch_t* scratch, const scratch_block_t* block);
// Takes a free block of at least `bytes` out of its pool; what it has too much stays there as another block.
//   RESOURCE_EXHAUSTED  no host memory; the block is still in its pool
gcap_status_t scratch_detach(gcap_scratch_t* scratch, scratch_block_t* block, size_t bytes) GCAP_NODISCARD;
// Puts a free block into its pool, merged with the neighbours that carry the same mark; gives the block it became.
scratch_block_t* scratch_put(gcap_scratch_t* scratch, scratch_block_t* block);
// Joins a block and its upper neighbour, both in no pool. The mark of the lower one stays, with the later sync id.
void scratch_merge_upper(gcap_scratch_t* scratch, scratch_block_t* block);

// --- upstream.c -----------------------------------------------------------------------------------------------------

// Bytes held from upstream, with those on their way.
size_t scratch_held_bytes(const gcap_scratch_t* scratch);
// Gets a region of at least `bytes`; gives its one block, which is in its pool. Lets go of the mutex.
gcap_status_t scratch_grow(gcap_scratch_t* scratch, size_t bytes, scratch_block_t** out_block) GCAP_NODISCARD;
// Gives every region that is one untagged block back upstream; those that upstream refuses stay. Lets go of the mutex.
gcap_status_t scratch_give_back_idle(gcap_scratch_t* scratch) GCAP_NODISCARD;

// --- scratch.c ------------------------------------------------------------------------------------------------------

// What the arena knows of `stream`, made if there is nothing.
gcap_status_t scratch_get_stream(gcap_scratch_t* scratch, gcap_stream_t* stream,
                                 scratch_stream_t** out_user) GCAP_NODISCARD;

// --- place.c --------------------------------------------------------------------------------------------------------

// Takes the tag off every block whose stream is known to have finished with it, so that its region may be idle.
void scratch_settle(gcap_scratch_t* scratch);
// Takes the tag of `user` off all its blocks.
void scratch_untag(gcap_scratch_t* scratch, scratch_stream_t* user);
// Detaches a block of `bytes` that `user` may have now, and gives it to the open reservation if there is one. NULL when
// there is no such block.
gcap_status_t scratch_place(gcap_scratch_t* scratch, scratch_stream_t* user, size_t bytes,
                            scratch_block_t** out_block) GCAP_NODISCARD;

// --- reservation.c --------------------------------------------------------------------------------------------------

// Makes a block that is in no pool the reservation's, if it is not yet.
void scratch_reservation_adopt(gcap_scratch_reservation_t* reservation, scratch_block_t* block);

#endif  // GCAP_LIB_SCRATCH_ARENA_H_
