// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// block_table.h: the blocks that an allocator without a cache has handed out, so that a foreign or freed address is
// told apart before the driver or a callback sees it, and the counters are right.
#ifndef GCAP_LIB_ALLOCATOR_BLOCK_TABLE_H_
#define GCAP_LIB_ALLOCATOR_BLOCK_TABLE_H_

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/allocator.h"
#include "lib/internal/hash_table.h"
#include "lib/internal/life.h"

typedef struct gcap_block {
  void* ptr;
  size_t bytes;
  bool reserved;  // asked for by gcap_allocator_reserve
  // Of the allocators that have use for them; else all zero.
  uint64_t number;      // tells the block from others at the same address
  cudaStream_t stream;  // where it is freed
  gcap_life_t* life;    // of that stream's wrapper, retained
} gcap_block_t;

// Thread: thread-safe. Its mutex is never held across a call of anybody else's code.
typedef struct gcap_block_table {
  pthread_mutex_t mutex;
  gcap_hash_table_t cells;  // by address
  gcap_allocator_stats_t stats;
} gcap_block_table_t;

void gcap_block_table_init(gcap_block_table_t* table);
// Logs what is still handed out: nobody gives it back any more.
void gcap_block_table_deinit(gcap_block_table_t* table, const char* allocator_name);

// Enters and counts a new allocation; the block's life is the table's then.
//   ALREADY_EXISTS      its address is handed out already; the older block stays
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_block_table_enter(gcap_block_table_t* table, const gcap_block_t* block) GCAP_NODISCARD;

// The same for memory from the driver or a callback, which a capture must find done: tells the thread's run so.
gcap_status_t gcap_block_table_add(gcap_block_table_t* table, void* ptr, size_t bytes, bool reserved) GCAP_NODISCARD;

// Takes a block out, so that of two threads which free the same address only one goes on. Its life is the caller's
// then.
//   INVALID_ARGUMENT  `ptr` is not handed out
gcap_status_t gcap_block_table_take(gcap_block_table_t* table, void* ptr, gcap_block_t* out_block) GCAP_NODISCARD;

// Puts back a block whose memory could not be given back, so that its owner can try again. Its life is the table's
// again, also on failure.
gcap_status_t gcap_block_table_put_back(gcap_block_table_t* table, const gcap_block_t* block) GCAP_NODISCARD;

void gcap_block_table_get_stats(gcap_block_table_t* table, gcap_allocator_stats_t* out_stats);

#endif  // GCAP_LIB_ALLOCATOR_BLOCK_TABLE_H_
