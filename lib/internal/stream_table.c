// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The stream table: open addressing, keyed by the handle's value. Readers take no lock: they read the cells under a
// sequence number (sequence.h). They never follow an entry, which may be gone.
//
// Invariants: a handle has one cell or none; the cell's wrapper is that of the newest entry, the others hang behind it.
// At most half of the cells are used, and no cell that a probe passes is empty: a removal closes its gap. A table that
// became too small stays allocated, for a reader may still be in it; each is twice as large as the one before, so all
// the outgrown ones together are smaller than the last, which fits the most wrappers that were ever live at once.
//
// Locking: table_mutex is held by every writer, and by a reader that was disturbed too often.

#include "lib/internal/stream_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/internal/forked.h"
#include "lib/internal/sequence.h"

typedef struct cell {
  atomic_uintptr_t handle;  // 0: empty, for the handle 0 is an alias
  _Atomic(void*) wrapper;
  gcap_stream_entry_t* newest;  // read by writers alone
} cell_t;

typedef struct table {
  unsigned log2_cells;
  size_t used;
  struct table* outgrown;
  cell_t cells[];
} table_t;

enum { kFirstLog2Cells = 6 };  // 32 streams: more than most processes have

static pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;
static gcap_sequence_t sequence;  // of the cells
static _Atomic(table_t*) current_table;

static size_t num_cells(const table_t* table) { return (size_t)1 << table->log2_cells; }

// Handles are heap addresses, or small numbers: a multiplication spreads both over the high bits.
static size_t home_of(const table_t* table, uintptr_t handle) {
  return (size_t)(((uint64_t)handle * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - table->log2_cells));
}

// The cell of the handle, or the empty one where it would go. Bounded, for a reader's probe may see cells on the move.
static size_t find_cell(table_t* table, uintptr_t handle) {
  size_t mask = num_cells(table) - 1;
  size_t i = home_of(table, handle);
  for (size_t probes = 0; probes <= mask; ++probes, i = (i + 1) & mask) {
    uintptr_t at = atomic_load_explicit(&table->cells[i].handle, memory_order_acquire);
    if (at == handle || at == 0) break;
  }
  return i;
}

static void* wrapper_of(table_t* table, cudaStream_t handle) {
  if (table == NULL) return NULL;
  cell_t* cell = &table->cells[find_cell(table, (uintptr_t)handle)];
  // Where a writer is at work this may be the wrapper of another handle; the sequence tells.
  if (atomic_load_explicit(&cell->handle, memory_order_acquire) != (uintptr_t)handle) return NULL;
  return atomic_load_explicit(&cell->wrapper, memory_order_acquire);
}

void* gcap_stream_table_find(cudaStream_t handle) {
  if (gcap_stream_is_alias(handle)) return NULL;
  for (int disturbances = 0; disturbances < GCAP_SEQUENCE_PATIENCE; ++disturbances) {
    uint64_t number = 0;
    if (!gcap_sequence_begin_read(&sequence, &number)) continue;
    void* wrapper = wrapper_of(atomic_load_explicit(&current_table, memory_order_acquire), handle);
    if (gcap_sequence_end_read(&sequence, number)) return wrapper;
  }
  pthread_mutex_lock(&table_mutex);
  void* wrapper = wrapper_of(atomic_load_explicit(&current_table, memory_order_relaxed), handle);
  pthread_mutex_unlock(&table_mutex);
  return wrapper;
}

// --- Writers, with table_mutex held ---------------------------------------------------------------------------------

static void set_cell(cell_t* cell, uintptr_t handle, gcap_stream_entry_t* newest) {
  cell->newest = newest;
  atomic_store_explicit(&cell->wrapper, newest != NULL ? newest->wrapper : NULL, memory_order_release);
  atomic_store_explicit(&cell->handle, handle, memory_order_release);
}

// Empties a cell, and moves those behind it up whose probe would end there.
static void clear_cell(table_t* table, size_t gap) {
  size_t mask = num_cells(table) - 1;
  for (size_t i = (gap + 1) & mask;; i = (i + 1) & mask) {
    cell_t* cell = &table->cells[i];
    uintptr_t handle = atomic_load_explicit(&cell->handle, memory_order_relaxed);
    if (handle == 0) break;
    bool passes_gap = ((i - home_of(table, handle)) & mask) >= ((i - gap) & mask);
    if (!passes_gap) continue;
    set_cell(&table->cells[gap], handle, cell->newest);
    gap = i;
  }
  set_cell(&table->cells[gap], 0, NULL);
  --table->used;
}

// Makes sure of room for one more handle.
static gcap_status_t reserve(void) {
  table_t* old = atomic_load_explicit(&current_table, memory_order_relaxed);
  if (old != NULL && 2 * (old->used + 1) <= num_cells(old)) return NULL;
  unsigned log2_cells = old != NULL ? old->log2_cells + 1 : kFirstLog2Cells;
  table_t* grown = calloc(1, sizeof(*grown) + ((size_t)1 << log2_cells) * sizeof(cell_t));
  if (grown == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the table of streams");
  grown->log2_cells = log2_cells;
  grown->outgrown = old;
  for (size_t i = 0; old != NULL && i < num_cells(old); ++i) {
    uintptr_t handle = atomic_load_explicit(&old->cells[i].handle, memory_order_relaxed);
    if (handle == 0) continue;
    set_cell(&grown->cells[find_cell(grown, handle)], handle, old->cells[i].newest);
    ++grown->used;
  }
  atomic_store_explicit(&current_table, grown, memory_order_release);
  return NULL;
}

static bool is_same_stream(const gcap_stream_entry_t* a, const gcap_stream_entry_t* b) {
  return a->id != 0 && a->id == b->id;
}

// Takes `stale` and all behind it off the table: their handle value is another stream's by now, as far as one knows.
static void unlist_all(gcap_stream_entry_t* stale, const gcap_stream_entry_t* newest) {
  while (stale != NULL) {
    gcap_stream_entry_t* older = stale->older;
    stale->listed = false;
    stale->older = NULL;
    if (stale->id != 0 && newest->id != 0) {
      gcap_life_end(stale->life);
      stale->life = NULL;
    }
    stale = older;
  }
}

// Puts the entry before its handle's others. There is room.
static void list_newest(gcap_stream_entry_t* entry) {
  table_t* table = atomic_load_explicit(&current_table, memory_order_relaxed);
  cell_t* cell = &table->cells[find_cell(table, (uintptr_t)entry->handle)];
  gcap_stream_entry_t* before = cell->newest;
  if (before == NULL) ++table->used;
  if (before != NULL && is_same_stream(before, entry)) {
    entry->older = before;
  } else {
    unlist_all(before, entry);
  }
  entry->listed = true;
  gcap_sequence_begin_change(&sequence);
  set_cell(cell, (uintptr_t)entry->handle, entry);
  gcap_sequence_end_change(&sequence);
}

gcap_status_t gcap_stream_table_add(gcap_stream_entry_t* entry, cudaStream_t handle, unsigned long long id,
                                    void* wrapper, gcap_stream_wait_t wait) {
  *entry = (gcap_stream_entry_t){0};
  if (gcap_stream_is_alias(handle)) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked("a wrapper of a stream"));
  gcap_watch_forks();
  pthread_mutex_lock(&table_mutex);
  gcap_status_t status = reserve();
  gcap_life_t* life = status == NULL ? gcap_life_create() : NULL;
  if (status == NULL && life == NULL) {
    status = GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the life of a stream");
  }
  if (status == NULL) {
    *entry = (gcap_stream_entry_t){.handle = handle, .id = id, .wrapper = wrapper, .wait = wait, .life = life};
    list_newest(entry);
  }
  pthread_mutex_unlock(&table_mutex);
  return status;
}

// Takes the entry out of its handle's chain.
static void unlist(gcap_stream_entry_t* entry) {
  table_t* table = atomic_load_explicit(&current_table, memory_order_relaxed);
  size_t i = find_cell(table, (uintptr_t)entry->handle);
  cell_t* cell = &table->cells[i];
  if (cell->newest != entry) {
    gcap_stream_entry_t* newer = cell->newest;
    while (newer->older != entry) newer = newer->older;
    newer->older = entry->older;
    return;
  }
  gcap_sequence_begin_change(&sequence);
  if (entry->older != NULL) {
    set_cell(cell, (uintptr_t)entry->handle, entry->older);
  } else {
    clear_cell(table, i);
  }
  gcap_sequence_end_change(&sequence);
}

void gcap_stream_table_remove(gcap_stream_entry_t* entry) {
  pthread_mutex_lock(&table_mutex);
  if (entry->listed) unlist(entry);
  gcap_life_t* life = entry->life;
  *entry = (gcap_stream_entry_t){0};
  pthread_mutex_unlock(&table_mutex);
  gcap_life_end(life);
}

// The newest entry of the handle, or NULL. Called with table_mutex held.
static gcap_stream_entry_t* newest_of(cudaStream_t handle) {
  table_t* table = atomic_load_explicit(&current_table, memory_order_relaxed);
  if (table == NULL || gcap_stream_is_alias(handle)) return NULL;
  return table->cells[find_cell(table, (uintptr_t)handle)].newest;
}

void* gcap_stream_table_find_only(cudaStream_t handle, gcap_stream_wait_t* out_wait) {
  pthread_mutex_lock(&table_mutex);
  const gcap_stream_entry_t* newest = newest_of(handle);
  bool is_only = newest != NULL && newest->older == NULL;
  void* wrapper = is_only ? newest->wrapper : NULL;
  *out_wait = is_only ? newest->wait : NULL;
  pthread_mutex_unlock(&table_mutex);
  return wrapper;
}

gcap_life_t* gcap_stream_table_life(cudaStream_t handle) {
  pthread_mutex_lock(&table_mutex);
  const gcap_stream_entry_t* newest = newest_of(handle);
  gcap_life_t* life = newest != NULL ? gcap_life_retain(newest->life) : NULL;
  pthread_mutex_unlock(&table_mutex);
  return life;
}
