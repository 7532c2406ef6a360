// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// name_table.h: a hash table from names to values.
#ifndef GCAP_SIM_BASE_NAME_TABLE_H_
#define GCAP_SIM_BASE_NAME_TABLE_H_

#include <stddef.h>

// The names are kept by pointer.
typedef struct gcap_sim_name_slot {
  const char* name;
  void* value;
} gcap_sim_name_slot_t;

typedef struct gcap_sim_name_table {
  gcap_sim_name_slot_t* slots;
  size_t capacity;  // a power of two, or 0
  size_t count;
} gcap_sim_name_table_t;

// The value of the name; NULL when it has none.
void* gcap_sim_name_find(const gcap_sim_name_table_t* table, const char* name);
// Adds a name that is not in the table.
void gcap_sim_name_add(gcap_sim_name_table_t* table, const char* name, void* value);

#endif  // GCAP_SIM_BASE_NAME_TABLE_H_
