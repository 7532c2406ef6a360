// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The ledger: a hash table from address to size with linear probing. It is at most half full, and a removal shifts the
// cells behind it back, so there are no tombstones and a look-up probes a cell or two. One mutex guards the table and
// the counters; the allocators that use it are about to call the driver anyway.

#include "lib/allocator/ledger.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "gcap/log.h"
#include "lib/base/capture_hooks.h"
#include "lib/internal/run_trace.h"

#define FIRST_CAPACITY 64u  // a power of two; an arena or a session's weights seldom need more

void gcap_ledger_init(gcap_ledger_t* ledger) {
  *ledger = (gcap_ledger_t){0};
  pthread_mutex_init(&ledger->mutex, NULL);
}

void gcap_ledger_deinit(gcap_ledger_t* ledger, const char* allocator_name) {
  if (ledger->count > 0) {
    gcap_log(GCAP_LOG_WARNING, "the %s was destroyed with %zu blocks (%" PRIu64 " bytes) handed out; they are lost",
             allocator_name, ledger->count, ledger->stats.in_use_bytes);
  }
  for (size_t i = 0; i < ledger->capacity; ++i) {
    if (ledger->cells[i].ptr != NULL) gcap_life_release(ledger->cells[i].life);
  }
  free(ledger->cells);
  pthread_mutex_destroy(&ledger->mutex);
}

// Addresses share their low zero bits: a multiplication by the golden ratio spreads the rest.
static size_t home_of(const gcap_ledger_t* ledger, const void* ptr) {
  return (size_t)(((uint64_t)(uintptr_t)ptr * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (ledger->capacity - 1);
}

// The cell of `ptr`, or the empty one where it belongs.
static size_t probe(const gcap_ledger_t* ledger, const void* ptr) {
  size_t i = home_of(ledger, ptr);
  while (ledger->cells[i].ptr != NULL && ledger->cells[i].ptr != ptr) i = (i + 1) & (ledger->capacity - 1);
  return i;
}

// Makes room for one more entry.
static gcap_status_t make_room(gcap_ledger_t* ledger) {
  if (2 * (ledger->count + 1) <= ledger->capacity) return NULL;
  gcap_ledger_t larger = {.capacity = ledger->capacity == 0 ? FIRST_CAPACITY : 2 * ledger->capacity};
  larger.cells = calloc(larger.capacity, sizeof(*larger.cells));
  if (larger.cells == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to note an allocation");
  for (size_t i = 0; i < ledger->capacity; ++i) {
    if (ledger->cells[i].ptr != NULL) larger.cells[probe(&larger, ledger->cells[i].ptr)] = ledger->cells[i];
  }
  free(ledger->cells);
  ledger->cells = larger.cells;
  ledger->capacity = larger.capacity;
  return NULL;
}

static gcap_status_t insert(gcap_ledger_t* ledger, const gcap_ledger_entry_t* entry) {
  GCAP_RETURN_IF_ERROR(make_room(ledger));
  size_t i = probe(ledger, entry->ptr);
  if (ledger->cells[i].ptr != NULL) {
    return GCAP_STATUS(GCAP_ALREADY_EXISTS, "address %p is handed out already, as %zu bytes", entry->ptr,
                       ledger->cells[i].bytes);
  }
  ledger->cells[i] = *entry;
  ++ledger->count;
  gcap_allocator_stats_t* stats = &ledger->stats;
  stats->in_use_bytes += entry->bytes;
  if (stats->max_in_use_bytes < stats->in_use_bytes) stats->max_in_use_bytes = stats->in_use_bytes;
  return NULL;
}

static void remove_cell(gcap_ledger_t* ledger, size_t hole) {
  size_t mask = ledger->capacity - 1;
  for (size_t i = (hole + 1) & mask; ledger->cells[i].ptr != NULL; i = (i + 1) & mask) {
    // A cell may move into the hole unless its home lies cyclically between the hole and itself.
    size_t distance_home = (i - home_of(ledger, ledger->cells[i].ptr)) & mask;
    if (distance_home >= ((i - hole) & mask)) {
      ledger->cells[hole] = ledger->cells[i];
      hole = i;
    }
  }
  ledger->cells[hole].ptr = NULL;
  --ledger->count;
}

gcap_status_t gcap_ledger_enter(gcap_ledger_t* ledger, const gcap_ledger_entry_t* entry) {
  pthread_mutex_lock(&ledger->mutex);
  gcap_status_t status = insert(ledger, entry);
  if (status == NULL) {
    ++ledger->stats.num_allocs;
    ledger->stats.num_reserves += entry->reserved;
    if (ledger->stats.max_alloc_bytes < entry->bytes) ledger->stats.max_alloc_bytes = entry->bytes;
  }
  pthread_mutex_unlock(&ledger->mutex);
  return status;
}

gcap_status_t gcap_ledger_add(gcap_ledger_t* ledger, void* ptr, size_t bytes, bool reserved) {
  const gcap_ledger_entry_t entry = {.ptr = ptr, .bytes = bytes, .reserved = reserved};
  gcap_status_t status = gcap_ledger_enter(ledger, &entry);
  gcap_trace_initialization();  // memory from the driver, which a capture must find done
  return status;
}

gcap_status_t gcap_ledger_take(gcap_ledger_t* ledger, void* ptr, gcap_ledger_entry_t* out_entry) {
  *out_entry = (gcap_ledger_entry_t){0};
  pthread_mutex_lock(&ledger->mutex);
  size_t i = ledger->capacity == 0 ? 0 : probe(ledger, ptr);
  bool found = ledger->capacity != 0 && ledger->cells[i].ptr != NULL;
  if (found) {
    *out_entry = ledger->cells[i];
    remove_cell(ledger, i);
    ledger->stats.in_use_bytes -= out_entry->bytes;
  }
  pthread_mutex_unlock(&ledger->mutex);
  if (found) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "address %p is not handed out by this allocator: foreign, inside a block, or freed already", ptr);
}

gcap_status_t gcap_ledger_put_back(gcap_ledger_t* ledger, const gcap_ledger_entry_t* entry) {
  pthread_mutex_lock(&ledger->mutex);
  gcap_status_t status = insert(ledger, entry);
  pthread_mutex_unlock(&ledger->mutex);
  if (status != NULL) gcap_life_release(entry->life);
  return status;
}

void gcap_ledger_log_after_free(gcap_status_t status) {
  if (status != NULL) gcap_log(GCAP_LOG_ERROR, "after giving memory back: %s", gcap_status_message(status));
  gcap_status_free(status);
}

void gcap_ledger_get_stats(gcap_ledger_t* ledger, gcap_allocator_stats_t* out_stats) {
  pthread_mutex_lock(&ledger->mutex);
  *out_stats = ledger->stats;
  pthread_mutex_unlock(&ledger->mutex);
  // Nothing is rounded and nothing is cached: what is asked for is what is held.
  out_stats->requested_in_use_bytes = out_stats->in_use_bytes;
  out_stats->total_allocated_bytes = out_stats->in_use_bytes;
}

gcap_status_t gcap_allocator_check_not_capturing(const char* operation) {
  if (!gcap_thread_captures()) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "%s is refused while this thread captures: it would invalidate the capture. Get memory before "
                     "the capture begins, give it back after it ends",
                     operation);
}

gcap_status_t gcap_allocator_refuse_in_capture(bool reserved, size_t bytes, const char* source) {
  if (!gcap_thread_captures()) return NULL;
  gcap_status_t status = GCAP_STATUS(
      GCAP_FAILED_PRECONDITION,
      "%s of %zu bytes (%s) is refused while this thread captures: it would invalidate the capture. Get memory before "
      "the capture begins",
      reserved ? "gcap_allocator_reserve" : "gcap_allocator_alloc", bytes, source);
  gcap_thread_capture_hooks->fail(status);
  return status;
}
