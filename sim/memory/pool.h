// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pool.h: pools of stream-ordered memory, for the files that allocate from them and for those that order streams.
#ifndef GCAP_SIM_MEMORY_POOL_H_
#define GCAP_SIM_MEMORY_POOL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"
#include "sim/api/types.h"
#include "sim/base/thread.h"

typedef struct gcap_sim_link {
  struct gcap_sim_link* previous;
  struct gcap_sim_link* next;
} gcap_sim_link_t;

// Settled blocks by size, four lists for each power of two; the last one takes all that is larger.
#define GCAP_SIM_POOL_BINS 128
// Pending blocks by the stream that freed them.
#define GCAP_SIM_POOL_LANES 1024

struct gcap_sim_pool {
  cudaMemPool_t handle;  // NULL once destroyed; the pool lives on while it has blocks in use
  gcap_sim_link_t all;
  int device;  // GCAP_SIM_PINNED_SPACE for a pool in the memory of the host
  bool follow_events;
  bool opportunistic;
  bool internal;
  uint64_t release_threshold;
  size_t max_bytes;  // 0 for none but the device's
  size_t used;
  size_t used_high;
  size_t reserved;
  size_t reserved_high;
  enum cudaMemAccessFlags access[GCAP_SIM_MAX_DEVICES];
  gcap_sim_link_t chunks;
  gcap_sim_link_t bins[GCAP_SIM_POOL_BINS];
  gcap_sim_link_t lanes[GCAP_SIM_POOL_LANES];
  gcap_sim_link_t pending;  // oldest look first
  size_t num_pending;
  size_t num_used;
};

// On a device, or in pinned memory for GCAP_SIM_PINNED_SPACE.
gcap_sim_pool_t* gcap_sim_pool_create(int device);
bool gcap_sim_pool_is_on_host(const gcap_sim_pool_t* pool);
void gcap_sim_pool_destroy(gcap_sim_pool_t* pool);
// The pool that cudaMallocAsync takes from on the device, and the one that was there first.
gcap_sim_pool_t* gcap_sim_pool_current(int device);
gcap_sim_pool_t* gcap_sim_pool_default(int device);
void gcap_sim_pool_set_current(int device, gcap_sim_pool_t* pool);

// Memory for an allocation of `stream`; NULL when there is none. It is free once all of the stream's work so far is
// done, if *pending, and once *wait is reached, if that is not NULL.
gcap_sim_block_t* gcap_sim_pool_take(gcap_sim_pool_t* pool, size_t bytes, gcap_sim_stream_t* stream, bool* pending,
                                     gcap_sim_mark_t** wait);
gcap_sim_pool_t* gcap_sim_block_pool(const gcap_sim_block_t* block);
char* gcap_sim_block_base(const gcap_sim_block_t* block);
// Does the block's pool let work on the device use the block? Measured of pools of the host alone.
bool gcap_sim_block_is_open_to(const gcap_sim_block_t* block, int device);
// The block is free once `mark`, of a free just queued in `stream`, is reached. Takes over the reference.
void gcap_sim_pool_free_later(gcap_sim_block_t* block, gcap_sim_stream_t* stream, gcap_sim_mark_t* mark);
void gcap_sim_pool_free_now(gcap_sim_block_t* block);
// Gives memory back until no more than `keep` bytes are reserved, as far as unused memory goes.
void gcap_sim_pool_trim(gcap_sim_pool_t* pool, size_t keep);

// Gives back what pools of the device hold and nobody uses.
void gcap_sim_pools_release_unused(int device);
// Is there a free that no synchronisation has seen done?
bool gcap_sim_pools_pending(void);
// The host has waited for the stream with this id, or, if 0, for a device: frees that are done are known to be.
void gcap_sim_pools_synchronised(unsigned long long stream);

#endif  // GCAP_SIM_MEMORY_POOL_H_
