// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// arena.h: the parts of the scratch arena, shared by the files of this folder alone.
//
// Locking. Each stream has a lock over its pool, its cache and all blocks that name it as their state. The fast path
// (fast_path.c) takes that one lock alone, which no two streams share; the thread that uses the stream, without any
// atomic exchange (streams.c). Everything else holds the arena: its mutex and, below it, the lock of every stream
// (gcap_scratch_lock_arena). Blocks change hands between streams only then, so a lock of one stream is enough to see
// that a neighbour is the same stream's, and to join with it.
#ifndef GCAP_LIB_SCRATCH_ARENA_H_
#define GCAP_LIB_SCRATCH_ARENA_H_

#include <pthread.h>

#include "lib/internal/run_trace.h"
#include "lib/internal/stream_watch.h"
#include "lib/scratch/pages.h"
#include "lib/scratch/pool.h"
#include "lib/scratch/test_hooks.h"

// What two threads write is kept this far apart.
#define GCAP_SCRATCH_LINE_BYTES 64

// One piece of memory from upstream.
typedef struct gcap_scratch_region {
  char* base;
  size_t bytes;
  gcap_scratch_block_t* first;       // lowest
  struct gcap_scratch_region* next;  // on a list of regions that are being given back
  bool reserved;                     // one block for gcap_allocator_reserve, given back when that is freed
} gcap_scratch_region_t;

// Larger blocks go straight to the pool, where they are joined at once: for them cutting and joining costs nothing
// beside the work that they are for, and keeping them whole costs memory.
#define GCAP_SCRATCH_MAX_CACHED_BYTES ((size_t)1 << 20)
#define GCAP_SCRATCH_NUM_CACHE_BINS 81  // gcap_scratch_pool_bin of that, and one

// The right of one thread to enter a stream's lock by saying so. It is never given to another thread.
typedef struct gcap_scratch_bias {
  const void* thread;   // gcap_scratch_this_thread of it
  atomic_bool entered;  // written by that thread alone
} gcap_scratch_bias_t;

enum { GCAP_SCRATCH_NUM_BIASES = 4 };

// What the arena knows of one stream. Its memory stays one of a stream until the arena ends.
typedef struct gcap_scratch_stream_state {
  char apart_below[GCAP_SCRATCH_LINE_BYTES];
  _Atomic(gcap_scratch_bias_t*) bias;  // NULL: none, or the arena is held; then `locked` counts
  atomic_bool locked;                  // also while the arena is held
  _Atomic(gcap_stream_t*) stream;      // NULL: forgotten
  gcap_scratch_reservation_t* open;    // the reservation that its allocations are diverted to
  gcap_scratch_block_t* spares;        // block structs to use again, linked by `next`
  // Counters; of its blocks, and as in gcap_allocator_stats_t.
  uint64_t in_use_bytes, num_allocs, requested_in_use_bytes, num_frees, max_in_use_bytes, max_alloc_bytes;
  size_t num_cached;
  uint8_t cache_credit[GCAP_SCRATCH_NUM_CACHE_BINS];  // see fast_path.c
  gcap_scratch_block_t*
      cache[GCAP_SCRATCH_NUM_CACHE_BINS];  // by gcap_scratch_pool_bin, most recently freed first, linked by `next`
  gcap_scratch_pool_t pool;                // free blocks of the arena that carry its tag
  bool cannot_grow;                        // its request of now: it captures, or there is no memory
  size_t num_reservations;
  size_t num_calls;  // that get memory for it, and may have let go of the arena
  bool prepared;     // a capture is about to need what it has (gcap_scratch_reservation_prepare)
  gcap_scratch_bias_t biases[GCAP_SCRATCH_NUM_BIASES];
  gcap_scratch_bias_t* resting_bias;  // `bias` while the arena is held
  unsigned num_biases;                // ever given
  unsigned num_intrusions;            // by threads without the bias; when there are many, no thread has it any more
  uint64_t finished_point;            // of nobody's timeline: what comes before it is finished
  uint64_t peak_bytes;                // most ever handed out at a time, as of when max_in_use_bytes last started anew
  struct gcap_scratch_stream_state* next;
  char apart_above[GCAP_SCRATCH_LINE_BYTES];
} gcap_scratch_stream_state_t;

// Blocks handed out for it.
static inline uint64_t gcap_scratch_num_live(const gcap_scratch_stream_state_t* state) {
  return state->num_allocs - state->num_frees;
}

// The most that it ever had handed out at a time.
static inline uint64_t gcap_scratch_peak_bytes(const gcap_scratch_stream_state_t* state) {
  return state->peak_bytes > state->max_in_use_bytes ? state->peak_bytes : state->max_in_use_bytes;
}

static inline gcap_stream_t* gcap_scratch_stream_of(const gcap_scratch_stream_state_t* state) {
  return atomic_load_explicit(&state->stream, memory_order_relaxed);
}

#define GCAP_SCRATCH_LABEL_BYTES 192

struct gcap_scratch_reservation {
  gcap_scratch_t* scratch;
  gcap_scratch_stream_state_t* state;
  gcap_scratch_pool_t pool;                    // its free blocks
  size_t bytes;                                // of all its blocks
  size_t num_live;                             // of its blocks
  size_t num_graphs;                           // that share it: releases that are owed
  size_t num_keepers;                          // other reservations that have a share of it
  char label[GCAP_SCRATCH_LABEL_BYTES];        // their names, for reports; may be empty
  struct gcap_scratch_zone_copy* zone_copies;  // red_zones.c
  struct gcap_scratch_kept* kept;              // others that it has a share of, see gcap_scratch_reservation_keep
  gcap_scratch_reservation_t* next;
};

// From a stream to what the arena knows of it: a table that is looked into without a lock. It is filled anew under the
// mutex; who looks meanwhile may find nothing and takes the slow way.
typedef struct gcap_scratch_directory {
  struct gcap_scratch_directory* outgrown;  // a reader may still be in it, so it goes with the arena
  unsigned shift;                           // of a hash, so that it becomes a place
  size_t mask;                              // the number of places, a power of two, less one; half of them are free
  _Atomic(gcap_scratch_stream_state_t*) places[];
} gcap_scratch_directory_t;

static inline size_t gcap_scratch_first_place(const gcap_scratch_directory_t* directory, const gcap_stream_t* stream) {
  return (size_t)((uint64_t)(uintptr_t)stream * UINT64_C(0x9E3779B97F4A7C15) >> directory->shift);
}

typedef struct gcap_scratch_debug gcap_scratch_debug_t;  // debug.h

// Less than one byte in so many of what is asked for is wasted by handing out a block whole.
#define GCAP_SCRATCH_MAX_DEAD_SHARE 8

struct gcap_scratch {
  // Read by the fast path, written seldom.
  uint64_t number;                               // no two arenas of a process have the same
  _Atomic(gcap_scratch_directory_t*) directory;  // NULL: no stream yet
  atomic_size_t deficit_bytes;                   // what captures lacked since the last growth
  gcap_scratch_debug_t* debug;                   // NULL: no debug option is set; else every call takes the slow way
  gcap_scratch_pages_t pages;

  gcap_allocator_t* upstream;
  gcap_scratch_options_t options;
  bool can_bias;
  char apart[GCAP_SCRATCH_LINE_BYTES];
  pthread_mutex_t mutex;

  gcap_scratch_region_t** regions;  // by address
  size_t num_regions, region_capacity;
  // Regions on their way in or out, while the arena is not held: they keep their place in `regions` and their share of
  // the limit.
  size_t num_regions_in_transit, in_transit_bytes;
  size_t num_waiting_calls;  // calls that let go of the arena to wait for something else, and will be back
  size_t next_region_bytes;  // the next region has at least so many

  gcap_scratch_pool_t untagged;  // free blocks that nobody uses any more
  // Stands for the streams of requests that named none (unknown_stream.c): the state of their blocks, and its pool
  // holds those that were freed and may be in use by any stream. It is on no list and has no stream, and its lock is
  // never free: whatever concerns it goes the slow way.
  gcap_scratch_stream_state_t unknown_stream;
  uint64_t num_device_waits;  // begun: nobody's timeline
  gcap_allocator_t* view;     // gcap_scratch_allocator
  gcap_stream_watch_t watch;
  gcap_scratch_stream_state_t* streams;
  size_t num_streams;
  gcap_scratch_stream_state_t* forgotten;  // structs to use again
  gcap_scratch_reservation_t* reservations;
  gcap_scratch_block_t* spares;     // block structs of no stream, linked by `next`
  struct gcap_scratch_slab* slabs;  // where the block structs lie
  size_t num_slabs;
  gcap_scratch_test_hooks_t test_hooks;
  // Of all streams together the counters of the arena itself, and of forgotten streams.
  gcap_allocator_stats_t stats;
};

// Whether a free block is given for a request without being cut: what it has too much stays with it, unused. The rule
// is ONNX Runtime's max_dead_bytes_per_chunk, but for the share of the request, which keeps waste in proportion.
static inline bool gcap_scratch_fits_whole(const gcap_scratch_t* scratch, const gcap_scratch_block_t* block,
                                           size_t bytes) {
  const size_t dead_bytes = block->bytes - bytes;  // huge when the block is too small
  return dead_bytes <= scratch->options.max_dead_bytes_per_chunk && dead_bytes < bytes / GCAP_SCRATCH_MAX_DEAD_SHARE;
}

// The functions below are called while the arena is held, unless they say otherwise; those that reach upstream let go
// of it meanwhile, and say so.

// --- streams.c --------------------------------------------------------------------------------------------------------

// Names the calling thread.
static inline const void* gcap_scratch_this_thread(void) { return &gcap_thread_run_trace; }

// Enters by a bias of the calling thread; false when the arena is held, or was meanwhile.
static inline bool gcap_scratch_lock_by_bias(gcap_scratch_stream_state_t* state, gcap_scratch_bias_t* bias) {
  atomic_store_explicit(&bias->entered, true, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);  // the rest of the fence is the holder's (streams.c)
  if (atomic_load_explicit(&state->bias, memory_order_acquire) == bias) return true;
  atomic_store_explicit(&bias->entered, false, memory_order_release);
  return false;
}
// Takes the lock of one stream: gives what gcap_scratch_unlock_stream is to be called with, or NULL when the calling
// thread had better hold the arena. Called with no lock of it held.
atomic_bool* gcap_scratch_lock_stream_slowly(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state);
static inline atomic_bool* gcap_scratch_lock_stream(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  gcap_scratch_bias_t* bias = atomic_load_explicit(&state->bias, memory_order_acquire);
  const bool mine = bias != NULL && bias->thread == gcap_scratch_this_thread();
  return mine && gcap_scratch_lock_by_bias(state, bias) ? &bias->entered
                                                        : gcap_scratch_lock_stream_slowly(scratch, state);
}
static inline void gcap_scratch_unlock_stream(atomic_bool* entered) {
  atomic_store_explicit(entered, false, memory_order_release);
}
// Makes the calling thread the one that enters the state's lock without an exchange, unless threads have come and gone
// too often. `intruder`: it only freed a block.
void gcap_scratch_note_thread(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, bool intruder);
// Whether threads can have a bias in this process.
bool gcap_scratch_can_bias(void);
// Holds the arena. Called with no lock of it held.
void gcap_scratch_lock_arena(gcap_scratch_t* scratch);
void gcap_scratch_unlock_arena(gcap_scratch_t* scratch);

// Lets go of the arena for a while, in the middle of a call: it does not end meanwhile.
static inline void gcap_scratch_pause_lock(gcap_scratch_t* scratch) {
  ++scratch->num_waiting_calls;
  gcap_scratch_unlock_arena(scratch);
}
static inline void gcap_scratch_resume_lock(gcap_scratch_t* scratch) {
  gcap_scratch_lock_arena(scratch);
  --scratch->num_waiting_calls;
}

// What the arena knows of `stream`, made if there is nothing.
gcap_status_t gcap_scratch_get_stream(gcap_scratch_t* scratch, gcap_stream_t* stream,
                                      gcap_scratch_stream_state_t** out_state) GCAP_NODISCARD;
// The same if there is something, else NULL. While the arena is not held it may be overlooked.
static inline gcap_scratch_stream_state_t* gcap_scratch_find_stream(gcap_scratch_t* scratch,
                                                                    const gcap_stream_t* stream) {
  const gcap_scratch_directory_t* directory = atomic_load_explicit(&scratch->directory, memory_order_acquire);
  gcap_scratch_stream_state_t* state = NULL;
  size_t place = directory == NULL ? 0 : gcap_scratch_first_place(directory, stream);
  if (directory == NULL) return NULL;
  do {
    state = atomic_load_explicit(&directory->places[place++ & directory->mask], memory_order_acquire);
  } while (state != NULL && gcap_scratch_stream_of(state) != stream);
  return state;
}
// Takes a state with nothing to its name, and no stream any more, off the list.
void gcap_scratch_remove_stream(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state);
// Frees what is known of the streams; the arena ends.
void gcap_scratch_free_streams(gcap_scratch_t* scratch);

// Blocks handed out, and their bytes.
uint64_t gcap_scratch_num_live_of_all(const gcap_scratch_t* scratch);
uint64_t gcap_scratch_in_use_bytes(const gcap_scratch_t* scratch);
// Brings the arena's own peak up to date with those of the streams, which start anew.
void gcap_scratch_fold_peaks(gcap_scratch_t* scratch);

// --- fast_path.c --------------------------------------------------------------------------------------------------------

// For a stream that is new.
void gcap_scratch_cache_init(gcap_scratch_stream_state_t* state);
// Moves a stream's cached blocks to its pool, joined with their neighbours. Called with the stream's lock.
void gcap_scratch_flush(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state);
void gcap_scratch_flush_all(gcap_scratch_t* scratch);
// Makes a detached block a live one of `state`, and back. Called with the stream's lock.
void gcap_scratch_make_live(gcap_scratch_stream_state_t* state, size_t requested_bytes, gcap_scratch_block_t* block);
void gcap_scratch_make_free(gcap_scratch_stream_state_t* state, gcap_scratch_block_t* block);

// --- scratch.c ------------------------------------------------------------------------------------------------------

// Grows by what captures lacked, so that their next try succeeds. If that fails the deficit is forgotten: the next
// capture will report it again, and the caller is not to blame. Lets go of the arena.
void gcap_scratch_make_up_deficit(gcap_scratch_t* scratch);
// Allocation and free in all other cases. Hold nothing.
gcap_status_t gcap_scratch_alloc_slowly(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream,
                                        void** out_ptr) GCAP_NODISCARD;
gcap_status_t gcap_scratch_free_slowly(gcap_scratch_t* scratch, void* ptr) GCAP_NODISCARD;
// Allocation for no stream; with `reserved`, of a region of its own.
gcap_status_t gcap_scratch_alloc_untagged(gcap_scratch_t* scratch, size_t bytes, bool reserved,
                                          void** out_ptr) GCAP_NODISCARD;

// --- region.c -------------------------------------------------------------------------------------------------------

// A region of one untagged block, which is in no pool yet. Holds nothing.
gcap_status_t gcap_scratch_region_create(gcap_scratch_t* scratch, void* base, size_t bytes, gcap_scratch_block_t* block,
                                         gcap_scratch_region_t** out_region) GCAP_NODISCARD;
// Frees the region's description. It consists of one block, which is in no pool.
void gcap_scratch_region_destroy(gcap_scratch_t* scratch, gcap_scratch_region_t* region);

// A block struct, for a stream or, with NULL, for none; NULL when there is no memory.
gcap_scratch_block_t* gcap_scratch_block_new(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state);
// Gives one back. With a state its lock is enough.
void gcap_scratch_block_recycle(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state,
                                gcap_scratch_block_t* block);
void gcap_scratch_free_blocks(gcap_scratch_t* scratch);

// The region of an address; NULL when there is none.
gcap_scratch_region_t* gcap_scratch_find_region(const gcap_scratch_t* scratch, const void* ptr);
// The live block that starts at `ptr`.
//   INVALID_ARGUMENT  there is none, and why
gcap_status_t gcap_scratch_find_live(gcap_scratch_t* scratch, void* ptr,
                                     gcap_scratch_block_t** out_block) GCAP_NODISCARD;

// The pool that a free block belongs to.
gcap_scratch_pool_t* gcap_scratch_pool_of(gcap_scratch_t* scratch, const gcap_scratch_block_t* block);
// Takes `bytes` of a free block out of its pool; what it has too much stays there as another block.
//   RESOURCE_EXHAUSTED  no host memory; the block is still in its pool
gcap_status_t gcap_scratch_detach(gcap_scratch_t* scratch, size_t bytes, gcap_scratch_block_t** block) GCAP_NODISCARD;
// The same; they are the lowest of the block.
gcap_status_t gcap_scratch_detach_bottom(gcap_scratch_t* scratch, gcap_scratch_block_t* block,
                                         size_t bytes) GCAP_NODISCARD;
// The same for a block of `state`, whose lock is enough. NULL when that would need host memory.
gcap_scratch_block_t* gcap_scratch_detach_own(gcap_scratch_stream_state_t* state, gcap_scratch_block_t* block,
                                              size_t bytes);
// Puts a free block into its pool, merged with the neighbours that carry the same tag; gives the block it became.
gcap_scratch_block_t* gcap_scratch_put(gcap_scratch_t* scratch, gcap_scratch_block_t* block);
// The same for a block of `state`, whose lock is enough.
void gcap_scratch_put_own(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, gcap_scratch_block_t* block);
// Joins a block and its upper neighbour, both in no pool. The tag of the lower one stays, with the later sync id.
void gcap_scratch_merge_upper(gcap_scratch_t* scratch, gcap_scratch_block_t* block);

// --- upstream.c -----------------------------------------------------------------------------------------------------

// Bytes held from upstream, with those on their way.
size_t gcap_scratch_held_bytes(const gcap_scratch_t* scratch);
// Gets a region of at least `bytes`; gives its one block, which is in its pool. Lets go of the arena.
gcap_status_t gcap_scratch_grow(gcap_scratch_t* scratch, size_t bytes, gcap_scratch_block_t** out_block) GCAP_NODISCARD;
// The same; with `reserved`, a region of just that size for gcap_allocator_reserve. *out_is_short tells whether it was
// the limit, or upstream's lack of memory, that failed it: then it helps to give something back.
gcap_status_t gcap_scratch_get_region(gcap_scratch_t* scratch, size_t bytes, bool reserved,
                                      gcap_scratch_block_t** out_block, bool* out_is_short) GCAP_NODISCARD;
// Gives every region that is one untagged block back upstream; those that upstream refuses stay. Lets go of the arena.
gcap_status_t gcap_scratch_give_back_idle(gcap_scratch_t* scratch) GCAP_NODISCARD;
// Gives a reserved region back upstream, whose block is in no pool. When upstream refuses, it stays as it was. Lets go
// of the arena.
gcap_status_t gcap_scratch_give_back_reserved(gcap_scratch_t* scratch, gcap_scratch_region_t* region) GCAP_NODISCARD;

// --- place.c --------------------------------------------------------------------------------------------------------

// Takes the tag off every block whose stream is known to have finished with it, so that its region may be idle; without
// `all` not of streams whose capture counts on what they have.
void gcap_scratch_settle(gcap_scratch_t* scratch, bool all);
// Takes the tag of `state` off all its blocks.
void gcap_scratch_untag(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state);
// Detaches the `bytes` that `state` asked for, or all where that is not much more, from a free block of at least so
// many.
gcap_status_t gcap_scratch_take(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes,
                                gcap_scratch_block_t** block) GCAP_NODISCARD;
// Free memory.
typedef struct gcap_scratch_supply {
  size_t bytes, longest_bytes;  // together, and in a row
} gcap_scratch_supply_t;
// What `state` may have, or only what carries its tag or is in its open reservation.
gcap_scratch_supply_t gcap_scratch_count_supply(const gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state,
                                                bool own);
// A free block of at least `bytes` that `state` may have and that is not its own; NULL when there is none.
gcap_scratch_block_t* gcap_scratch_find_elsewhere(gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state,
                                                  size_t bytes);
// Makes `bytes` of a free block that `state` may have its own.
gcap_status_t gcap_scratch_claim(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state,
                                 gcap_scratch_block_t* block, size_t bytes) GCAP_NODISCARD;
// Detaches a block of `bytes` that `state` may have now, and gives it to the open reservation if there is one. NULL
// when there is no such block.
gcap_status_t gcap_scratch_place(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes,
                                 gcap_scratch_block_t** out_block) GCAP_NODISCARD;

// --- unknown_stream.c -----------------------------------------------------------------------------------------------------

void gcap_scratch_unknown_stream_init(gcap_scratch_t* scratch);
static inline bool gcap_scratch_is_unknown_stream(const gcap_scratch_t* scratch,
                                                  const gcap_scratch_stream_state_t* state) {
  return state == &scratch->unknown_stream;
}
// Counts a block of nobody's as free, and back.
void gcap_scratch_unknown_stream_free(gcap_scratch_t* scratch, gcap_scratch_block_t* block);
void gcap_scratch_unknown_stream_undo_free(gcap_scratch_t* scratch, gcap_scratch_block_t* block);
// Waits for the device, if no capture forbids it: then what was freed for nobody until now is free for all. False when
// that was not so. Lets go of the arena.
//   CUDA_ERROR  the runtime refused; the blocks stay as they were
gcap_status_t gcap_scratch_wait_for_device(gcap_scratch_t* scratch, bool* out_waited) GCAP_NODISCARD;
// Whether `bytes` would lie in one piece once the device was waited for.
bool gcap_scratch_wait_would_help(const gcap_scratch_t* scratch, size_t bytes);

// The point of a state's timeline that comes next: all that was done until now comes before it.
static inline uint64_t gcap_scratch_next_point(const gcap_scratch_t* scratch,
                                               const gcap_scratch_stream_state_t* state) {
  if (gcap_scratch_is_unknown_stream(scratch, state)) return scratch->num_device_waits + 1;
  return gcap_stream_sync_id(gcap_scratch_stream_of(state)) + 1;
}

// --- stream_end.c ------------------------------------------------------------------------------------------------------

// A stream is about to be destroyed. Holds nothing.
void gcap_scratch_stream_ends(gcap_stream_watch_t* watch, gcap_stream_t* stream);

// --- out_of_memory.c -------------------------------------------------------------------------------------------------------

typedef struct gcap_scratch_request {
  gcap_scratch_stream_state_t* state;
  size_t bytes;           // whole granules
  bool reserved;          // a region of its own
  bool anew;              // what is free is not enough, so it must grow
  gcap_status_t trouble;  // of a request that succeeded: what failed on the way
} gcap_scratch_request_t;

// Gets a detached block, by growing if need be, and by giving back what can be spared if that fails. Lets go of the
// arena.
gcap_status_t gcap_scratch_obtain(gcap_scratch_t* scratch, gcap_scratch_request_t* request,
                                  gcap_scratch_block_t** out_block) GCAP_NODISCARD;
// Logs and forgets the trouble of a request. Holds nothing.
void gcap_scratch_log_trouble(gcap_scratch_request_t* request);

// --- report.c -------------------------------------------------------------------------------------------------------

// gcap_scratch_describe with `separator` between the parts.
int gcap_scratch_describe_held(const gcap_scratch_t* scratch, const char* separator, char* out_text, size_t text_bytes);

// --- allocator_view.c -----------------------------------------------------------------------------------------------

gcap_status_t gcap_scratch_view_create(gcap_scratch_t* scratch) GCAP_NODISCARD;

// --- reservation.c --------------------------------------------------------------------------------------------------

// Makes a block that is in no pool the reservation's, if it is not yet.
void gcap_scratch_reservation_adopt(gcap_scratch_reservation_t* reservation, gcap_scratch_block_t* block);
// Lets `other` last as long as the open one.
//   RESOURCE_EXHAUSTED   no host memory
//   FAILED_PRECONDITION  `other` lasts as long as this one already
gcap_status_t gcap_scratch_reservation_keep(gcap_scratch_reservation_t* open,
                                            gcap_scratch_reservation_t* other) GCAP_NODISCARD;

#endif  // GCAP_LIB_SCRATCH_ARENA_H_
