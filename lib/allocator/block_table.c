// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The table of blocks: a hash table from address to block. One mutex guards the table and the counters; the allocators
// that use it are about to call the driver anyway.

#include "lib/allocator/block_table.h"

#include <inttypes.h>

#include "gcap/log.h"
#include "lib/internal/run_trace.h"

typedef struct cell {
  uint64_t key;
  gcap_block_t block;
} cell_t;

static uint64_t key_of(const void* ptr) { return (uint64_t)(uintptr_t)ptr; }

void gcap_block_table_init(gcap_block_table_t* table) {
  *table = (gcap_block_table_t){.cells = {.cell_bytes = sizeof(cell_t)}};
  pthread_mutex_init(&table->mutex, NULL);
}

void gcap_block_table_deinit(gcap_block_table_t* table, const char* allocator_name) {
  if (table->cells.count > 0) {
    gcap_log(GCAP_LOG_WARNING, "the %s was destroyed with %zu blocks (%" PRIu64 " bytes) handed out; they are lost",
             allocator_name, table->cells.count, table->stats.in_use_bytes);
  }
  for (size_t i = 0; i < table->cells.capacity; ++i) {
    const cell_t* cell = gcap_hash_table_used_at(&table->cells, i);
    if (cell != NULL) gcap_life_release(cell->block.life);
  }
  gcap_hash_table_deinit(&table->cells);
  pthread_mutex_destroy(&table->mutex);
}

// Called with the mutex held, as are the next two.
static gcap_status_t insert(gcap_block_table_t* table, const gcap_block_t* block) {
  const uint64_t key = key_of(block->ptr);
  cell_t* cell = gcap_hash_table_find(&table->cells, key);
  if (cell != NULL) {
    return GCAP_STATUS(GCAP_ALREADY_EXISTS, "address %p is handed out already, as %zu bytes", block->ptr,
                       cell->block.bytes);
  }
  cell = gcap_hash_table_insert(&table->cells, key);
  if (cell == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to note an allocation");
  cell->block = *block;
  gcap_allocator_stats_t* stats = &table->stats;
  stats->in_use_bytes += block->bytes;
  if (stats->max_in_use_bytes < stats->in_use_bytes) stats->max_in_use_bytes = stats->in_use_bytes;
  return NULL;
}

static void count(gcap_allocator_stats_t* stats, const gcap_block_t* block) {
  ++stats->num_allocs;
  stats->num_reserves += block->reserved;
  if (stats->max_alloc_bytes < block->bytes) stats->max_alloc_bytes = block->bytes;
}

static bool remove_block(gcap_block_table_t* table, const void* ptr, gcap_block_t* out_block) {
  cell_t* cell = gcap_hash_table_find(&table->cells, key_of(ptr));
  if (cell == NULL) return false;
  *out_block = cell->block;
  gcap_hash_table_remove(&table->cells, cell);
  table->stats.in_use_bytes -= out_block->bytes;
  return true;
}

gcap_status_t gcap_block_table_enter(gcap_block_table_t* table, const gcap_block_t* block) {
  pthread_mutex_lock(&table->mutex);
  gcap_status_t status = insert(table, block);
  if (status == NULL) count(&table->stats, block);
  pthread_mutex_unlock(&table->mutex);
  return status;
}

gcap_status_t gcap_block_table_add(gcap_block_table_t* table, void* ptr, size_t bytes, bool reserved) {
  const gcap_block_t block = {.ptr = ptr, .bytes = bytes, .reserved = reserved};
  gcap_status_t status = gcap_block_table_enter(table, &block);
  gcap_trace_initialization(GCAP_INITIALIZED_MEMORY);
  return status;
}

gcap_status_t gcap_block_table_take(gcap_block_table_t* table, void* ptr, gcap_block_t* out_block) {
  *out_block = (gcap_block_t){0};
  pthread_mutex_lock(&table->mutex);
  bool found = remove_block(table, ptr, out_block);
  pthread_mutex_unlock(&table->mutex);
  if (found) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "address %p is not handed out by this allocator: foreign, inside a block, or freed already", ptr);
}

gcap_status_t gcap_block_table_put_back(gcap_block_table_t* table, const gcap_block_t* block) {
  pthread_mutex_lock(&table->mutex);
  gcap_status_t status = insert(table, block);
  pthread_mutex_unlock(&table->mutex);
  if (status != NULL) gcap_life_release(block->life);
  return status;
}

void gcap_block_table_get_stats(gcap_block_table_t* table, gcap_allocator_stats_t* out_stats) {
  pthread_mutex_lock(&table->mutex);
  *out_stats = table->stats;
  pthread_mutex_unlock(&table->mutex);
  // Nothing is rounded and nothing is cached: what is asked for is what is held.
  out_stats->requested_in_use_bytes = out_stats->in_use_bytes;
  out_stats->total_allocated_bytes = out_stats->in_use_bytes;
}
