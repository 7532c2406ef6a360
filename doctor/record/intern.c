// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Ids of frames and stacks.
//
// The idea: an id's line stands in the file before each line that uses the id, and yet no lock is held while a thread
// writes. So the line is kept until the thread that made the id has written it; a thread that uses the id before
// writes the line too. A line that is in the file twice defines the same thing. Locking: the table's own, and within
// it nothing but memory.
#include "doctor/record/intern.h"

#include <stdlib.h>
#include <string.h>

static void* grown(void* items, size_t count, size_t* capacity, size_t item_bytes) {
  if (count < *capacity) return items;
  const size_t larger = *capacity != 0 ? 2 * *capacity : 64;
  void* moved = realloc(items, larger * item_bytes);
  if (moved != NULL) *capacity = larger;
  return moved;
}

static void remember(gcap_defined_t* defined, gcap_intern_t* table, uint32_t id) {
  void* items = grown(defined->items, defined->count, &defined->capacity, sizeof(*defined->items));
  if (items == NULL) return;  // the line will be written again by others, which is harmless
  defined->items = items;
  defined->items[defined->count].table = table;
  defined->items[defined->count++].id = id;
}

static uint32_t find_locked(gcap_intern_t* table, uint64_t key, gcap_line_t* out, gcap_defined_t* defined) {
  uint32_t id = gcap_map_get(&table->ids, key);
  if (id == 0 || table->lines[id - 1] == NULL) return id;
  for (size_t i = 0; i < defined->count; ++i) {
    if (defined->items[i].table == table && defined->items[i].id == id) return id;
  }
  gcap_line_append(out, table->lines[id - 1], strlen(table->lines[id - 1]));
  remember(defined, table, id);
  return id;
}

uint32_t gcap_intern_find(gcap_intern_t* table, uint64_t key, gcap_line_t* out, gcap_defined_t* defined) {
  pthread_mutex_lock(&table->lock);
  uint32_t id = find_locked(table, key, out, defined);
  pthread_mutex_unlock(&table->lock);
  return id;
}

static uint32_t add_locked(gcap_intern_t* table, uint64_t key, const char* kind, const gcap_line_t* fields) {
  void* lines = grown(table->lines, table->count, &table->capacity, sizeof(*table->lines));
  if (lines == NULL || fields->failed) return 0;
  table->lines = lines;
  const uint32_t id = (uint32_t)table->count + 1;
  gcap_line_t line = {0};
  gcap_line_begin(&line, kind);
  gcap_line_number(&line, "id", id);
  gcap_line_append(&line, fields->data, fields->size);
  gcap_line_append(&line, "\n", 2);  // with the '\0'
  if (line.failed || !gcap_map_set(&table->ids, key, id)) {
    gcap_line_free(&line);
    return 0;
  }
  table->lines[table->count++] = line.data;
  return id;
}

uint32_t gcap_intern_add(gcap_intern_t* table, uint64_t key, const char* kind, const gcap_line_t* fields,
                         gcap_line_t* out, gcap_defined_t* defined) {
  pthread_mutex_lock(&table->lock);
  uint32_t id = find_locked(table, key, out, defined);
  if (id == 0 && add_locked(table, key, kind, fields) != 0) id = find_locked(table, key, out, defined);
  pthread_mutex_unlock(&table->lock);
  return id;
}

void gcap_intern_publish(gcap_defined_t* defined, bool written) {
  for (size_t i = 0; written && i < defined->count; ++i) {
    gcap_intern_t* table = defined->items[i].table;
    pthread_mutex_lock(&table->lock);
    char** line = &table->lines[defined->items[i].id - 1];
    free(*line);
    *line = NULL;
    pthread_mutex_unlock(&table->lock);
  }
  defined->count = 0;
}
