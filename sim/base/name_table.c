// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Names to values, for what callers name: functions of libraries, kinds of their handles.
//
// The idea: open addressing, at most half full, and nothing is ever removed, so a search ends at the first free slot.
// Locking: the global mutex.
#include "sim/base/name_table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/heap.h"

// FNV-1a: names are short, and one multiplication a byte is cheap beside the call that is named.
static size_t hash_of(const char* name) {
  uint64_t hash = UINT64_C(0xCBF29CE484222325);
  for (; *name; ++name) hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
  return (size_t)(hash ^ hash >> 32);
}

// The slot of the name, or the free one where it belongs.
static gcap_sim_name_slot_t* slot_of(gcap_sim_name_slot_t* slots, size_t capacity, const char* name) {
  size_t i = hash_of(name) & (capacity - 1);
  while (slots[i].name != NULL && strcmp(slots[i].name, name) != 0) i = (i + 1) & (capacity - 1);
  return &slots[i];
}

void* gcap_sim_name_find(const gcap_sim_name_table_t* table, const char* name) {
  return table->capacity ? slot_of(table->slots, table->capacity, name)->value : NULL;
}

static void grow(gcap_sim_name_table_t* table) {
  size_t capacity = table->capacity ? table->capacity * 2 : 64;
  gcap_sim_name_slot_t* slots = gcap_sim_calloc(capacity, sizeof(*slots));
  for (size_t i = 0; i < table->capacity; ++i) {
    if (table->slots[i].name != NULL) *slot_of(slots, capacity, table->slots[i].name) = table->slots[i];
  }
  free(table->slots);
  table->slots = slots;
  table->capacity = capacity;
}

void gcap_sim_name_add(gcap_sim_name_table_t* table, const char* name, void* value) {
  if (2 * (table->count + 1) > table->capacity) grow(table);
  *slot_of(table->slots, table->capacity, name) = (gcap_sim_name_slot_t){.name = name, .value = value};
  ++table->count;
}
