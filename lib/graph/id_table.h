// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// id_table.h: a hash table from annotation id to slot: open addressing, linear probing, at most half full.
#ifndef GCAP_LIB_GRAPH_ID_TABLE_H_
#define GCAP_LIB_GRAPH_ID_TABLE_H_

#include <stdbool.h>
#include <stddef.h>

typedef struct id_table {
  struct {
    int id;
    void* slot;  // NULL: empty
  } * cells;
  size_t capacity;  // 0 or a power of two
  size_t count;
} id_table_t;

// The slot of `id`, or NULL.
void* id_table_find(const id_table_t* table, int id);
// Adds an id that is not there. False when there is no memory; the table is unchanged then.
bool id_table_insert(id_table_t* table, int id, void* slot);
// Removes an id that is there.
void id_table_remove(id_table_t* table, int id);
void id_table_deinit(id_table_t* table);

#endif  // GCAP_LIB_GRAPH_ID_TABLE_H_
