// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The id table. At most half full, so a look-up probes a cell or two; a removal shifts the cells behind it back, so
// there are no tombstones and the table never degrades.

#include "lib/graph/id_table.h"

#include <stdlib.h>

static bool grow(gcap_graph_id_table_t* table) {
  gcap_graph_id_table_t larger = {.capacity = table->capacity == 0 ? 16 : 2 * table->capacity, .count = table->count};
  larger.cells = calloc(larger.capacity, sizeof(*larger.cells));
  if (larger.cells == NULL) return false;
  for (size_t i = 0; i < table->capacity; ++i) {
    if (table->cells[i].slot != NULL)
      larger.cells[gcap_graph_id_table_probe(&larger, table->cells[i].id)] = table->cells[i];
  }
  free(table->cells);
  *table = larger;
  return true;
}

bool gcap_graph_id_table_insert(gcap_graph_id_table_t* table, int id, void* slot) {
  if (2 * (table->count + 1) > table->capacity && !grow(table)) return false;
  size_t i = gcap_graph_id_table_probe(table, id);
  table->cells[i].id = id;
  table->cells[i].slot = slot;
  ++table->count;
  return true;
}

void gcap_graph_id_table_remove(gcap_graph_id_table_t* table, int id) {
  size_t mask = table->capacity - 1;
  size_t hole = gcap_graph_id_table_probe(table, id);
  for (size_t i = (hole + 1) & mask; table->cells[i].slot != NULL; i = (i + 1) & mask) {
    // A cell may move into the hole unless its home lies cyclically between the hole and itself.
    size_t distance_home = (i - gcap_graph_id_table_home_of(table, table->cells[i].id)) & mask;
    if (distance_home >= ((i - hole) & mask)) {
      table->cells[hole] = table->cells[i];
      hole = i;
    }
  }
  table->cells[hole].slot = NULL;
  --table->count;
}

void gcap_graph_id_table_deinit(gcap_graph_id_table_t* table) {
  free(table->cells);
  *table = (gcap_graph_id_table_t){0};
}
