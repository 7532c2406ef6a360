// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// keys.h: the keys of a graph manager, each with the slot of its id. Called with the manager's mutex held.
#ifndef GCAP_LIB_GRAPH_KEYS_H_
#define GCAP_LIB_GRAPH_KEYS_H_

#include <stddef.h>
#include <stdint.h>

#include "gcap/run.h"
#include "lib/internal/hash_table.h"

struct gcap_graph_slot;

// A key that is known: a copy of the caller's.
typedef struct gcap_graph_known_key {
  struct gcap_graph_slot* slot;
  struct gcap_graph_known_key* next;  // of the same hash
  uint64_t hash;
  size_t size;
  unsigned char bytes[];
} gcap_graph_known_key_t;

// Of all zeros but for `table.cell_bytes` (gcap_graph_keys_init) it is empty.
typedef struct gcap_graph_keys {
  gcap_hash_table_t table;
  uint32_t num_given;  // ids, so far
} gcap_graph_keys_t;

void gcap_graph_keys_init(gcap_graph_keys_t* keys);
// When no key is known.
void gcap_graph_keys_deinit(gcap_graph_keys_t* keys);

// The slot of the known key that is equal to a key that was checked; NULL: there is none. Each known key has a slot.
struct gcap_graph_slot* gcap_graph_keys_find(const gcap_graph_keys_t* keys, const gcap_graph_key_t* key);

// Copies a key that is not known. It has no slot yet. NULL when there is no memory.
gcap_graph_known_key_t* gcap_graph_keys_add(gcap_graph_keys_t* keys, const gcap_graph_key_t* key);
// Lets the key lead to a slot of its own. The slot that it leads to, if any, is there still.
void gcap_graph_keys_lead(gcap_graph_keys_t* keys, gcap_graph_known_key_t* known, struct gcap_graph_slot* slot);

// Forgets the key, whose slot is there still; NULL is fine.
void gcap_graph_keys_remove(gcap_graph_keys_t* keys, gcap_graph_known_key_t* known);

// The next id of a key: below GCAP_GRAPH_ID_NONE, downwards. An id comes back after all others were given.
int gcap_graph_keys_next_id(gcap_graph_keys_t* keys);

#endif  // GCAP_LIB_GRAPH_KEYS_H_
