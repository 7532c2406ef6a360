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

#include "doctor/base/grow.h"
#include "doctor/record/room.h"

static void remember(gcap_doctor_defined_t* defined, gcap_doctor_intern_t* table, uint32_t id) {
  // Without memory the line will be written again by others, which is harmless.
  if (!gcap_doctor_grow(&defined->items, &defined->capacity, defined->count + 1, sizeof(*defined->items))) return;
  defined->items[defined->count].table = table;
  defined->items[defined->count++].id = id;
}

static uint32_t find_locked(gcap_doctor_intern_t* table, uint64_t key, gcap_doctor_line_t* out,
                            gcap_doctor_defined_t* defined) {
  uint32_t id = gcap_doctor_map_get(&table->ids, key);
  if (id == 0 || table->lines[id - 1] == NULL) return id;
  for (size_t i = 0; i < defined->count; ++i) {
    if (defined->items[i].table == table && defined->items[i].id == id) return id;
  }
  gcap_doctor_line_append(out, table->lines[id - 1], strlen(table->lines[id - 1]));
  remember(defined, table, id);
  return id;
}

uint32_t gcap_doctor_intern_find(gcap_doctor_intern_t* table, uint64_t key, gcap_doctor_line_t* out,
                                 gcap_doctor_defined_t* defined) {
  pthread_mutex_lock(&table->lock);
  uint32_t id = find_locked(table, key, out, defined);
  pthread_mutex_unlock(&table->lock);
  return id;
}

static uint32_t add_locked(gcap_doctor_intern_t* table, uint64_t key, const char* kind,
                           const gcap_doctor_line_t* fields, bool has_room) {
  if (fields->failed || !has_room) return 0;
  if (!gcap_doctor_grow(&table->lines, &table->capacity, table->count + 1, sizeof(*table->lines))) return 0;
  const uint32_t id = (uint32_t)table->count + 1;
  gcap_doctor_line_t line = {0};
  gcap_doctor_line_begin(&line, kind);
  gcap_doctor_line_number(&line, "id", id);
  gcap_doctor_line_append(&line, fields->data, fields->size);
  gcap_doctor_line_append(&line, "\n", 2);  // with the '\0'
  if (line.failed || !gcap_doctor_map_set(&table->ids, key, id)) {
    gcap_doctor_line_free(&line);
    return 0;
  }
  table->lines[table->count++] = line.data;
  return id;
}

uint32_t gcap_doctor_intern_add(gcap_doctor_intern_t* table, uint64_t key, const char* kind,
                                const gcap_doctor_line_t* fields, gcap_doctor_line_t* out,
                                gcap_doctor_defined_t* defined) {
  const bool has_room = gcap_doctor_room_has_definitions();
  pthread_mutex_lock(&table->lock);
  uint32_t id = find_locked(table, key, out, defined);
  if (id == 0 && add_locked(table, key, kind, fields, has_room) != 0) id = find_locked(table, key, out, defined);
  pthread_mutex_unlock(&table->lock);
  return id;
}

void gcap_doctor_intern_publish(gcap_doctor_defined_t* defined, bool written) {
  for (size_t i = 0; written && i < defined->count; ++i) {
    gcap_doctor_intern_t* table = defined->items[i].table;
    pthread_mutex_lock(&table->lock);
    char** line = &table->lines[defined->items[i].id - 1];
    free(*line);
    *line = NULL;
    pthread_mutex_unlock(&table->lock);
  }
  defined->count = 0;
}
