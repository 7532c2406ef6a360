// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// id_table.h: a hash table from annotation id to slot: open addressing, linear probing, at most half full.
#ifndef GCAP_LIB_GRAPH_ID_TABLE_H_
#define GCAP_LIB_GRAPH_ID_TABLE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gcap_graph_id_table {
  struct {
    int id;
    void* slot;  // NULL: empty
  } * cells;
  size_t capacity;  // 0 or a power of two
  size_t count;
} gcap_graph_id_table_t;

// Ids are often 0, 1, 2, …: a multiplication by the golden ratio spreads them over any power of two.
static inline size_t gcap_graph_id_table_home_of(const gcap_graph_id_table_t* table, int id) {
  return (size_t)(((uint64_t)(uint32_t)id * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (table->capacity - 1);
}

// The cell of `id`, or the empty one where it belongs. There are cells.
static inline size_t gcap_graph_id_table_probe(const gcap_graph_id_table_t* table, int id) {
  size_t i = gcap_graph_id_table_home_of(table, id);
  while (table->cells[i].slot != NULL && table->cells[i].id != id) i = (i + 1) & (table->capacity - 1);
  return i;
}

// The slot of `id`, or NULL. Inline: every replay looks one up.
static inline void* gcap_graph_id_table_find(const gcap_graph_id_table_t* table, int id) {
  return table->capacity == 0 ? NULL : table->cells[gcap_graph_id_table_probe(table, id)].slot;
}

// Adds an id that is not there. False when there is no memory; the table is unchanged then.
bool gcap_graph_id_table_insert(gcap_graph_id_table_t* table, int id, void* slot);
// Removes an id that is there.
void gcap_graph_id_table_remove(gcap_graph_id_table_t* table, int id);
void gcap_graph_id_table_deinit(gcap_graph_id_table_t* table);

#endif  // GCAP_LIB_GRAPH_ID_TABLE_H_
