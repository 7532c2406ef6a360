// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The hash table. At most half of the cells are used, so a look-up probes one or two. Invariant: no empty cell lies
// between a key's home and its cell. A removal keeps that by moving later cells up, so there are no tombstones and a
// table never degrades. The cells begin a line of the cache, so that a cell of a line's size is one line. No locking: a
// table belongs to one thread at a time.

#include "lib/internal/hash_table.h"

#include <stdlib.h>
#include <string.h>

#include "lib/internal/cache_line.h"

enum { kFirstCapacity = 16 };  // eight keys: what many tables never outgrow

static uint64_t key_of(const void* cell) { return *(const uint64_t*)cell; }

bool gcap_hash_table_reserve(gcap_hash_table_t* table, size_t count) {
  if (2 * count <= table->capacity) return true;
  gcap_hash_table_t larger = *table;
  if (larger.capacity == 0) larger.capacity = kFirstCapacity;
  while (larger.capacity < 2 * count) larger.capacity *= 2;
  size_t bytes = 0;
  const bool too_many = __builtin_mul_overflow(larger.capacity, larger.cell_bytes, &bytes);
  larger.cells = too_many ? NULL : gcap_calloc_line(bytes);
  if (larger.cells == NULL) return false;
  for (size_t i = 0; i < table->capacity; ++i) {
    const void* cell = gcap_hash_table_used_at(table, i);
    if (cell != NULL) memcpy(gcap_hash_table_probe(&larger, key_of(cell)), cell, table->cell_bytes);
  }
  free(table->cells);
  *table = larger;
  return true;
}

void* gcap_hash_table_insert(gcap_hash_table_t* table, uint64_t key) {
  if (!gcap_hash_table_reserve(table, table->count + 1)) return NULL;
  void* cell = gcap_hash_table_probe(table, key);
  *(uint64_t*)cell = key;
  ++table->count;
  return cell;
}

void gcap_hash_table_remove(gcap_hash_table_t* table, void* cell) {
  const size_t mask = table->capacity - 1;
  size_t hole = (size_t)((char*)cell - table->cells) / table->cell_bytes;
  for (size_t i = (hole + 1) & mask; gcap_hash_table_used_at(table, i) != NULL; i = (i + 1) & mask) {
    // A cell may move into the hole unless its home lies cyclically between the hole and itself.
    const void* later = gcap_hash_table_at(table, i);
    size_t distance_home = (i - gcap_hash_table_home_of(table, key_of(later))) & mask;
    if (distance_home < ((i - hole) & mask)) continue;
    memcpy(gcap_hash_table_at(table, hole), later, table->cell_bytes);
    hole = i;
  }
  memset(gcap_hash_table_at(table, hole), 0, table->cell_bytes);
  --table->count;
}

void gcap_hash_table_deinit(gcap_hash_table_t* table) {
  free(table->cells);
  *table = (gcap_hash_table_t){.cell_bytes = table->cell_bytes};
}
