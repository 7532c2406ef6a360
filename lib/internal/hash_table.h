// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// hash_table.h: a hash table from a 64-bit word to a struct of the user's: open addressing with linear probing.
//
// A cell is the user's struct. Its first member is `uint64_t key`, and a key is never 0: a cell with the key 0 is
// empty. So a table whose keys are addresses needs nothing more, and one whose keys are numbers from 0 adds 1. A cell
// stays where it is until the next insertion or removal.
#ifndef GCAP_LIB_INTERNAL_HASH_TABLE_H_
#define GCAP_LIB_INTERNAL_HASH_TABLE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Thread: one at a time. A table that is all zero but for `cell_bytes` is empty.
typedef struct gcap_hash_table {
  char* cells;
  size_t cell_bytes;  // a multiple of 8
  size_t capacity;    // number of cells: 0 or a power of two
  size_t count;       // of the cells that are used: at most half of them
} gcap_hash_table_t;

static inline void* gcap_hash_table_at(const gcap_hash_table_t* table, size_t index) {
  return table->cells + index * table->cell_bytes;
}

// The cell at `index`, which is below the capacity; NULL when the cell is empty. To walk through the table.
static inline void* gcap_hash_table_used_at(const gcap_hash_table_t* table, size_t index) {
  void* cell = gcap_hash_table_at(table, index);
  return *(const uint64_t*)cell != 0 ? cell : NULL;
}

// Keys are often 1, 2, 3, … or addresses that share their low zero bits: a multiplication by the golden ratio spreads
// both over any power of two.
static inline size_t gcap_hash_table_home_of(const gcap_hash_table_t* table, uint64_t key) {
  return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (table->capacity - 1);
}

// The cell of `key`, or the empty one where the key belongs. The table has cells.
static inline void* gcap_hash_table_probe(const gcap_hash_table_t* table, uint64_t key) {
  size_t i = gcap_hash_table_home_of(table, key);
  for (;; i = (i + 1) & (table->capacity - 1)) {
    void* cell = gcap_hash_table_at(table, i);
    const uint64_t found = *(const uint64_t*)cell;
    if (found == key || found == 0) return cell;
  }
}

// The cell of `key`, or NULL. Inline: the replay of a graph looks one up.
static inline void* gcap_hash_table_find(const gcap_hash_table_t* table, uint64_t key) {
  if (table->capacity == 0) return NULL;
  void* cell = gcap_hash_table_probe(table, key);
  return *(const uint64_t*)cell == key ? cell : NULL;
}

// Makes room for `count` keys in all, so that no insertion up to that number fails. False when there is no memory; the
// table is unchanged then.
bool gcap_hash_table_reserve(gcap_hash_table_t* table, size_t count);

// Adds a key that is not there. Gives its cell, which is zero but for the key, or NULL when there is no memory; the
// table is unchanged then.
void* gcap_hash_table_insert(gcap_hash_table_t* table, uint64_t key);

// Removes the key of a used cell. Another cell may take its place.
void gcap_hash_table_remove(gcap_hash_table_t* table, void* cell);

// Frees the cells; the table is empty then.
void gcap_hash_table_deinit(gcap_hash_table_t* table);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_INTERNAL_HASH_TABLE_H_
