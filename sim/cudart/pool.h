// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pool.h: pools of stream-ordered memory, for the files that allocate from them and for those that order streams.
#ifndef GCAP_SIM_CUDART_POOL_H_
#define GCAP_SIM_CUDART_POOL_H_

#include "core.h"

typedef struct sim_link {
  struct sim_link* previous;
  struct sim_link* next;
} sim_link_t;

// Settled blocks by size, four lists for each power of two; the last one takes all that is larger.
#define SIM_POOL_BINS 128
// Pending blocks by the stream that freed them.
#define SIM_POOL_LANES 1024

struct sim_pool {
  cudaMemPool_t handle;  // NULL once destroyed; the pool lives on while it has blocks in use
  sim_link_t all;
  int device;
  bool follow_events;
  bool opportunistic;
  bool internal;
  uint64_t release_threshold;
  size_t max_bytes;  // 0 for none but the device's
  size_t used;
  size_t used_high;
  size_t reserved;
  size_t reserved_high;
  enum cudaMemAccessFlags access[SIM_MAX_DEVICES];
  sim_link_t chunks;
  sim_link_t bins[SIM_POOL_BINS];
  sim_link_t lanes[SIM_POOL_LANES];
  sim_link_t pending;  // oldest look first
  size_t num_pending;
  size_t num_used;
};

sim_pool_t* sim_pool_create(int device);
void sim_pool_destroy(sim_pool_t* pool);
// The pool that cudaMallocAsync takes from on the device, and the one that was there first.
sim_pool_t* sim_pool_current(int device);
sim_pool_t* sim_pool_default(int device);
void sim_pool_set_current(int device, sim_pool_t* pool);

// Memory for an allocation of `stream`; NULL when there is none. It is free once all of the stream's work so far is
// done, if *pending, and once *wait is reached, if that is not NULL.
sim_block_t* sim_pool_take(sim_pool_t* pool, size_t bytes, sim_stream_t* stream, bool* pending, sim_mark_t** wait);
char* sim_block_base(const sim_block_t* block);
// The block is free once `mark`, of a free just queued in `stream`, is reached. Takes over the reference.
void sim_pool_free_later(sim_block_t* block, sim_stream_t* stream, sim_mark_t* mark);
void sim_pool_free_now(sim_block_t* block);
// Gives memory back until no more than `keep` bytes are reserved, as far as unused memory goes.
void sim_pool_trim(sim_pool_t* pool, size_t keep);

#endif  // GCAP_SIM_CUDART_POOL_H_
