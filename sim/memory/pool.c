// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Pools of stream-ordered memory: blocks, who may have them next, and when memory goes back to the device.
//
// The idea: a pool takes chunks from the device and cuts them into blocks. A freed block is pending: it may be taken
// only by an allocation that comes after the free, which the pool finds out as the real one does, in this order. The
// stream of the free takes it at once. Another stream takes it when a chain of events, or the legacy stream's implicit
// order, leads there; or when the free is seen to be done; or, when nothing else is left, with a wait put in. A
// synchronisation settles what is done, and what is settled joins its neighbours and is anybody's.
// Invariants: blocks of a chunk lie side by side and cover it; no two neighbours are both settled; a block is in a bin
// while settled, in the queue and a lane while pending, in no list while used. Cost: unless the device is full, a call
// looks at a bounded number of blocks, however many there are. Locking: the global mutex.
#include "sim/memory/pool.h"

#include <stdlib.h>

#include "cuda_runtime_api.h"
#include "sim/api/handle.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/device/properties.h"
#include "sim/memory/budget.h"
#include "sim/memory/vmem.h"
#include "sim/stream/mark.h"
#include "sim/stream/past.h"
#include "sim/stream/stream.h"

// What the device gives a pool at a time: measured, one small allocation reserves 32 MiB.
#define CHUNK_BYTES ((size_t)32 << 20)
// The least, when the device is nearly full: a large page.
#define MIN_CHUNK_BYTES ((size_t)2 << 20)
// Blocks of one list that a call looks at. The queue of pending ones turns, so each has its turn.
enum { kMaxLooks = 64 };
// More than there are addresses for pinned memory.
static const size_t kMaxHostBytes = (size_t)1 << 40;

typedef struct chunk {
  gcap_sim_link_t link;
  gcap_sim_pool_t* pool;
  char* base;
  size_t bytes;
  size_t busy;  // blocks that are used or pending
  gcap_sim_block_t* first;
} chunk_t;

typedef enum state { BLOCK_USED, BLOCK_PENDING, BLOCK_SETTLED } state_t;

struct gcap_sim_block {
  gcap_sim_link_t link;  // in a bin or in the queue of pending blocks
  gcap_sim_link_t lane;  // among those freed by the same stream
  chunk_t* chunk;
  char* base;
  size_t bytes;
  size_t asked;                   // of them by the caller, while used
  struct gcap_sim_block* before;  // neighbours in the chunk
  struct gcap_sim_block* after;
  state_t state;
  // Of a pending block: the free.
  gcap_sim_point_t freed;
  gcap_sim_mark_t* mark;
  int device;  // of the stream that freed it
  bool by_legacy;
  bool by_blocking;
};

static gcap_sim_link_t pools = {&pools, &pools};
static gcap_sim_pool_t* default_pools[GCAP_SIM_MAX_DEVICES];
static gcap_sim_pool_t* current_pools[GCAP_SIM_MAX_DEVICES];
static size_t num_pending;  // of all pools

// --- Lists ----------------------------------------------------------------------------------------------------------

static void list_init(gcap_sim_link_t* list) { list->previous = list->next = list; }

static void list_insert(gcap_sim_link_t* before, gcap_sim_link_t* link) {
  link->next = before->next;
  link->previous = before;
  before->next->previous = link;
  before->next = link;
}

static void list_remove(gcap_sim_link_t* link) {
  link->previous->next = link->next;
  link->next->previous = link->previous;
}

#define OWNER(type, member, pointer) ((type*)(void*)((char*)(pointer)-offsetof(type, member)))

static gcap_sim_block_t* block_of(gcap_sim_link_t* link) { return OWNER(gcap_sim_block_t, link, link); }

static gcap_sim_block_t* block_of_lane(gcap_sim_link_t* lane) { return OWNER(gcap_sim_block_t, lane, lane); }

// --- Settled blocks -------------------------------------------------------------------------------------------------

// Four bins for each power of two of granules.
static size_t bin_of(size_t bytes) {
  size_t granules = bytes / GCAP_SIM_ALIGNMENT;
  size_t log = 0;
  while (granules >> (log + 1)) ++log;
  size_t quarter = log >= 2 ? (granules >> (log - 2)) & 3 : 0;
  size_t bin = log * 4 + quarter;
  return bin < GCAP_SIM_POOL_BINS ? bin : GCAP_SIM_POOL_BINS - 1;
}

static void join(gcap_sim_block_t* block, gcap_sim_block_t* after) {
  block->bytes += after->bytes;
  block->after = after->after;
  if (after->after != NULL) after->after->before = block;
  free(after);
}

// Puts a block that is in no list among the settled ones, and joins it with its neighbours.
static void settle(gcap_sim_block_t* block) {
  block->state = BLOCK_SETTLED;
  --block->chunk->busy;
  if (block->after != NULL && block->after->state == BLOCK_SETTLED) {
    list_remove(&block->after->link);
    join(block, block->after);
  }
  if (block->before != NULL && block->before->state == BLOCK_SETTLED) {
    block = block->before;
    list_remove(&block->link);
    join(block, block->after);
  }
  list_insert(&block->chunk->pool->bins[bin_of(block->bytes)], &block->link);
}

static gcap_sim_block_t* find_settled(gcap_sim_pool_t* pool, size_t bytes) {
  for (size_t bin = bin_of(bytes); bin < GCAP_SIM_POOL_BINS; ++bin) {
    // In the first bin some are too small, in the others none.
    size_t looks = kMaxLooks;
    for (gcap_sim_link_t* link = pool->bins[bin].next; link != &pool->bins[bin] && looks > 0;
         link = link->next, --looks) {
      if (block_of(link)->bytes >= bytes) return block_of(link);
    }
  }
  return NULL;
}

// --- Pending blocks -------------------------------------------------------------------------------------------------

static gcap_sim_link_t* lane_of(gcap_sim_pool_t* pool, unsigned long long stream) {
  return &pool->lanes[stream % GCAP_SIM_POOL_LANES];
}

static void add_pending(gcap_sim_block_t* block) {
  gcap_sim_pool_t* pool = block->chunk->pool;
  block->state = BLOCK_PENDING;
  list_insert(pool->pending.previous, &block->link);
  list_insert(lane_of(pool, block->freed.stream), &block->lane);
  ++pool->num_pending;
  ++num_pending;
}

static void remove_pending(gcap_sim_block_t* block) {
  list_remove(&block->link);
  list_remove(&block->lane);
  gcap_sim_mark_release(block->mark);
  block->mark = NULL;
  --block->chunk->pool->num_pending;
  --num_pending;
}

static bool settle_if_done(gcap_sim_block_t* block) {
  if (block->mark != NULL && !block->mark->done) return false;
  remove_pending(block);
  settle(block);
  return true;
}

// Does what the stream will be given next come after the free, as far as the calls so far tell?
static bool follows(const gcap_sim_stream_t* stream, const gcap_sim_block_t* block) {
  if (stream->id == block->freed.stream) return true;
  if (stream->device == block->device) {
    if (stream->legacy && block->by_blocking) return true;
    if (block->by_legacy && (stream->flags & cudaStreamNonBlocking) == 0) return true;
  }
  return gcap_sim_past_holds(stream->past, block->freed);
}

static gcap_sim_block_t* smaller(gcap_sim_block_t* a, gcap_sim_block_t* b) {
  return a == NULL || b->bytes < a->bytes ? b : a;
}

// The smallest fitting one of the blocks that the stream `id` freed.
static gcap_sim_block_t* find_in_lane(gcap_sim_pool_t* pool, const gcap_sim_stream_t* stream, unsigned long long id,
                                      size_t bytes) {
  gcap_sim_block_t* found = NULL;
  gcap_sim_link_t* lane = lane_of(pool, id);
  size_t looks = kMaxLooks;
  for (gcap_sim_link_t* link = lane->next; link != lane && looks > 0; link = link->next, --looks) {
    gcap_sim_block_t* block = block_of_lane(link);
    if (block->freed.stream == id && block->bytes >= bytes && follows(stream, block)) found = smaller(found, block);
  }
  return found;
}

static gcap_sim_block_t* find_followed(gcap_sim_pool_t* pool, const gcap_sim_stream_t* stream, size_t bytes) {
  for (size_t i = 0; stream->past != NULL && i < stream->past->count; ++i) {
    gcap_sim_block_t* block = find_in_lane(pool, stream, stream->past->points[i].stream, bytes);
    if (block != NULL) return block;
  }
  return NULL;
}

// Turns the queue: settles what is done, if that may be looked at, and finds what implicit order leads to.
static gcap_sim_block_t* turn_queue(gcap_sim_pool_t* pool, const gcap_sim_stream_t* stream, size_t bytes) {
  gcap_sim_block_t* found = NULL;
  size_t looks = pool->num_pending < kMaxLooks ? pool->num_pending : kMaxLooks;
  for (; looks > 0; --looks) {
    gcap_sim_block_t* block = block_of(pool->pending.next);
    if (pool->opportunistic && settle_if_done(block)) continue;
    list_remove(&block->link);
    list_insert(pool->pending.previous, &block->link);
    if (pool->follow_events && block->bytes >= bytes && follows(stream, block)) found = smaller(found, block);
  }
  return found;
}

static gcap_sim_block_t* find_any_pending(gcap_sim_pool_t* pool, size_t bytes) {
  for (gcap_sim_link_t* link = pool->pending.next; link != &pool->pending; link = link->next) {
    if (block_of(link)->bytes >= bytes) return block_of(link);
  }
  return NULL;
}

// --- Chunks ---------------------------------------------------------------------------------------------------------

static size_t whole(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

static bool within_limit(const gcap_sim_pool_t* pool, size_t bytes) {
  return pool->max_bytes == 0 || (pool->reserved <= pool->max_bytes && bytes <= pool->max_bytes - pool->reserved);
}

bool gcap_sim_pool_is_on_host(const gcap_sim_pool_t* pool) { return pool->device == GCAP_SIM_PINNED_SPACE; }

// Pinned memory has no limit but the addresses.
static bool take_budget(const gcap_sim_pool_t* pool, size_t bytes) {
  return gcap_sim_pool_is_on_host(pool) || gcap_sim_budget_take(pool->device, bytes);
}

static void give_budget_back(const gcap_sim_pool_t* pool, size_t bytes) {
  if (!gcap_sim_pool_is_on_host(pool)) gcap_sim_budget_give_back(pool->device, bytes);
}

static gcap_sim_block_t* add_chunk(gcap_sim_pool_t* pool, size_t bytes) {
  if (!within_limit(pool, bytes) || !take_budget(pool, bytes)) return NULL;
  char* base = gcap_sim_vmem_take(pool->device, bytes);
  if (base == NULL) {
    give_budget_back(pool, bytes);
    return NULL;
  }
  chunk_t* chunk = gcap_sim_calloc(1, sizeof(*chunk));
  *chunk = (chunk_t){.pool = pool, .base = base, .bytes = bytes, .busy = 1};
  list_insert(&pool->chunks, &chunk->link);
  pool->reserved += bytes;
  if (pool->reserved_high < pool->reserved) pool->reserved_high = pool->reserved;
  gcap_sim_block_t* block = gcap_sim_calloc(1, sizeof(*block));
  *block = (gcap_sim_block_t){.chunk = chunk, .base = base, .bytes = bytes};
  chunk->first = block;  // joining and splitting keep the lower part, so this one stays
  settle(block);
  return block;
}

static gcap_sim_block_t* grow(gcap_sim_pool_t* pool, size_t bytes) {
  gcap_sim_block_t* block = add_chunk(pool, whole(bytes, CHUNK_BYTES));
  return block != NULL ? block : add_chunk(pool, whole(bytes, MIN_CHUNK_BYTES));
}

static void remove_chunk(chunk_t* chunk) {
  gcap_sim_pool_t* pool = chunk->pool;
  pool->reserved -= chunk->bytes;
  give_budget_back(pool, chunk->bytes);
  gcap_sim_vmem_give_back(pool->device, chunk->base, chunk->bytes);
  list_remove(&chunk->link);
  list_remove(&chunk->first->link);
  free(chunk->first);
  free(chunk);
}

void gcap_sim_pool_trim(gcap_sim_pool_t* pool, size_t keep) {
  gcap_sim_link_t* link = pool->chunks.next;
  while (link != &pool->chunks && pool->reserved > keep) {
    chunk_t* chunk = OWNER(chunk_t, link, link);
    link = link->next;
    if (chunk->busy == 0 && pool->reserved - chunk->bytes >= keep) remove_chunk(chunk);
  }
}

static void settle_all_done(gcap_sim_pool_t* pool) {
  gcap_sim_link_t* link = pool->pending.next;
  while (link != &pool->pending) {
    gcap_sim_block_t* block = block_of(link);
    link = link->next;
    settle_if_done(block);
  }
}

// A destroyed pool goes when nobody holds its memory any more.
static void finish_destroyed(gcap_sim_pool_t* pool) {
  if (pool->handle != NULL || pool->num_used > 0 || pool->num_pending > 0) return;
  gcap_sim_pool_trim(pool, 0);
  list_remove(&pool->all);
  free(pool);
}

void gcap_sim_pools_release_unused(int device) {
  gcap_sim_link_t* link = pools.next;
  while (link != &pools) {
    gcap_sim_pool_t* pool = OWNER(gcap_sim_pool_t, all, link);
    link = link->next;
    if (pool->device != device) continue;
    settle_all_done(pool);
    gcap_sim_pool_trim(pool, 0);
  }
}

// --- Taking and freeing ---------------------------------------------------------------------------------------------

// Cuts off what is more than needed; it stays what the block is, settled or pending.
static void split(gcap_sim_block_t* block, size_t bytes) {
  if (block->bytes - bytes < GCAP_SIM_ALIGNMENT) return;
  gcap_sim_block_t* rest = gcap_sim_calloc(1, sizeof(*rest));
  *rest = *block;
  rest->base += bytes;
  rest->bytes -= bytes;
  rest->before = block;
  if (rest->after != NULL) rest->after->before = rest;
  block->after = rest;
  block->bytes = bytes;
  ++block->chunk->busy;
  if (block->state == BLOCK_PENDING) {
    gcap_sim_mark_retain(rest->mark);
    add_pending(rest);
  } else {
    rest->state = BLOCK_USED;  // for the time it takes to settle
    settle(rest);
  }
}

// Takes the block out of the lists that it is in.
static void use(gcap_sim_block_t* block, size_t bytes, size_t asked) {
  gcap_sim_pool_t* pool = block->chunk->pool;
  if (block->state == BLOCK_PENDING) {
    split(block, bytes);
    remove_pending(block);
  } else {
    list_remove(&block->link);
    block->state = BLOCK_USED;
    ++block->chunk->busy;
    split(block, bytes);
  }
  block->state = BLOCK_USED;
  block->asked = asked;
  ++pool->num_used;
  pool->used += block->asked;
  if (pool->used_high < pool->used) pool->used_high = pool->used;
}

gcap_sim_block_t* gcap_sim_pool_take(gcap_sim_pool_t* pool, size_t bytes, gcap_sim_stream_t* stream, bool* pending,
                                     gcap_sim_mark_t** wait) {
  *wait = NULL;
  *pending = false;
  if (bytes > (gcap_sim_pool_is_on_host(pool) ? kMaxHostBytes : gcap_sim_budget_total(pool->device))) return NULL;
  size_t asked = bytes;
  bytes = whole(bytes, GCAP_SIM_ALIGNMENT);
  gcap_sim_block_t* block = NULL;
  if (pool->num_pending > 0) {
    block = find_in_lane(pool, stream, stream->id, bytes);
    if (block == NULL && pool->follow_events) block = find_followed(pool, stream, bytes);
    if (block == NULL) block = turn_queue(pool, stream, bytes);
  }
  if (block == NULL) block = find_settled(pool, bytes);
  if (block == NULL) block = grow(pool, bytes);
  if (block == NULL && pool->internal) {
    block = find_any_pending(pool, bytes);
    if (block != NULL) *wait = gcap_sim_mark_retain(block->mark);
  }
  if (block == NULL) return NULL;
  *pending = block->state == BLOCK_PENDING;
  use(block, bytes, asked);
  return block;
}

gcap_sim_pool_t* gcap_sim_block_pool(const gcap_sim_block_t* block) { return block->chunk->pool; }

char* gcap_sim_block_base(const gcap_sim_block_t* block) { return block->base; }

bool gcap_sim_block_is_open_to(const gcap_sim_block_t* block, int device) {
  const gcap_sim_pool_t* pool = block->chunk->pool;
  return !gcap_sim_pool_is_on_host(pool) || pool->access[device] != cudaMemAccessFlagsProtNone;
}

static void give_up(gcap_sim_block_t* block) {
  gcap_sim_pool_t* pool = block->chunk->pool;
  --pool->num_used;
  pool->used -= block->asked;
}

void gcap_sim_pool_free_later(gcap_sim_block_t* block, gcap_sim_stream_t* stream, gcap_sim_mark_t* mark) {
  give_up(block);
  block->freed = (gcap_sim_point_t){.stream = stream->id, .order = ++stream->frees};
  block->mark = mark;
  block->device = stream->device;
  block->by_legacy = stream->legacy;
  block->by_blocking = !stream->legacy && (stream->flags & cudaStreamNonBlocking) == 0;
  add_pending(block);
}

void gcap_sim_pool_free_now(gcap_sim_block_t* block) {
  gcap_sim_pool_t* pool = block->chunk->pool;
  give_up(block);
  settle(block);
  finish_destroyed(pool);
}

// --- Synchronisation ------------------------------------------------------------------------------------------------

bool gcap_sim_pools_pending(void) { return num_pending > 0; }

static void settle_lane(gcap_sim_pool_t* pool, unsigned long long stream) {
  gcap_sim_link_t* lane = lane_of(pool, stream);
  gcap_sim_link_t* link = lane->next;
  while (link != lane) {
    gcap_sim_block_t* block = block_of_lane(link);
    link = link->next;
    settle_if_done(block);
  }
}

void gcap_sim_pools_synchronised(unsigned long long stream) {
  gcap_sim_link_t* link = pools.next;
  while (link != &pools) {
    gcap_sim_pool_t* pool = OWNER(gcap_sim_pool_t, all, link);
    link = link->next;
    if (pool->num_pending > 0 && stream) settle_lane(pool, stream);
    // A few at a time suffice for a single stream: what stays pending is seen by a later call.
    if (pool->num_pending > 0 && (!stream || pool->num_pending <= kMaxLooks)) settle_all_done(pool);
    if (pool->reserved > pool->release_threshold) gcap_sim_pool_trim(pool, (size_t)pool->release_threshold);
    finish_destroyed(pool);
  }
}

// --- Pools ----------------------------------------------------------------------------------------------------------

gcap_sim_pool_t* gcap_sim_pool_create(int device) {
  gcap_sim_pool_t* pool = gcap_sim_calloc(1, sizeof(*pool));
  pool->device = device;
  pool->follow_events = pool->opportunistic = pool->internal = true;
  if (!gcap_sim_pool_is_on_host(pool)) pool->access[device] = cudaMemAccessFlagsProtReadWrite;
  list_init(&pool->chunks);
  list_init(&pool->pending);
  for (size_t i = 0; i < GCAP_SIM_POOL_BINS; ++i) list_init(&pool->bins[i]);
  for (size_t i = 0; i < GCAP_SIM_POOL_LANES; ++i) list_init(&pool->lanes[i]);
  list_insert(pools.previous, &pool->all);
  pool->handle = gcap_sim_handle_create(GCAP_SIM_POOL, pool);
  return pool;
}

void gcap_sim_pool_destroy(gcap_sim_pool_t* pool) {
  for (int i = 0; i < GCAP_SIM_MAX_DEVICES; ++i) {
    if (current_pools[i] == pool) current_pools[i] = default_pools[i];
  }
  gcap_sim_handle_destroy(pool->handle);
  pool->handle = NULL;
  settle_all_done(pool);
  finish_destroyed(pool);
}

gcap_sim_pool_t* gcap_sim_pool_default(int device) {
  if (default_pools[device] == NULL) {
    default_pools[device] = gcap_sim_pool_create(device);
    gcap_sim_handle_keep(default_pools[device]->handle);
  }
  return default_pools[device];
}

gcap_sim_pool_t* gcap_sim_pool_current(int device) {
  if (current_pools[device] == NULL) current_pools[device] = gcap_sim_pool_default(device);
  return current_pools[device];
}

void gcap_sim_pool_set_current(int device, gcap_sim_pool_t* pool) { current_pools[device] = pool; }
