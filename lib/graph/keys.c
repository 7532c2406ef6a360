// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Keys: bytes of the caller's that name a graph. A table leads from the hash of the bytes to the known keys of that
// hash, and each of these to the slot of its id, so a replay by key hashes, probes once and compares once. Two keys of
// one hash are in one cell, as a list.
//
// Locking: the manager's mutex.

#include "lib/graph/keys.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

// What the table looks up: begins with the hash, which is never 0.
typedef struct cell {
  uint64_t hash;
  gcap_graph_known_key_t* first;
} cell_t;

// Eight bytes at a time. Each step is invertible for given bytes, so keys that differ in one word only never collide.
static inline uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9FB21C651E98DF25);
  return hash ^ hash >> 32;
}

static uint64_t hash_of(const unsigned char* bytes, size_t size) {
  uint64_t hash = mix(size, size);
  uint64_t word = 0;
  for (; size >= sizeof(word); bytes += sizeof(word), size -= sizeof(word)) {
    memcpy(&word, bytes, sizeof(word));
    hash = mix(hash, word);
  }
  word = 0;
  memcpy(&word, bytes, size);
  hash = mix(hash, word);
  return hash != 0 ? hash : 1;
}

void gcap_graph_keys_init(gcap_graph_keys_t* keys) {
  *keys = (gcap_graph_keys_t){.table = {.cell_bytes = sizeof(cell_t)}};
}

void gcap_graph_keys_deinit(gcap_graph_keys_t* keys) { gcap_hash_table_deinit(&keys->table); }

gcap_graph_known_key_t* gcap_graph_keys_find(const gcap_graph_keys_t* keys, const gcap_graph_key_t* key) {
  const cell_t* cell = gcap_hash_table_find(&keys->table, hash_of(key->bytes, key->size));
  gcap_graph_known_key_t* known = cell != NULL ? cell->first : NULL;
  while (known != NULL && (known->size != key->size || memcmp(known->bytes, key->bytes, key->size) != 0)) {
    known = known->next;
  }
  return known;
}

gcap_graph_known_key_t* gcap_graph_keys_add(gcap_graph_keys_t* keys, const gcap_graph_key_t* key) {
  const uint64_t hash = hash_of(key->bytes, key->size);
  gcap_graph_known_key_t* known = malloc(sizeof(*known) + key->size);
  cell_t* cell = known != NULL ? gcap_hash_table_find(&keys->table, hash) : NULL;
  if (known != NULL && cell == NULL) cell = gcap_hash_table_insert(&keys->table, hash);
  if (cell == NULL) {
    free(known);
    return NULL;
  }
  *known = (gcap_graph_known_key_t){.next = cell->first, .hash = hash, .size = key->size};
  memcpy(known->bytes, key->bytes, key->size);
  cell->first = known;
  return known;
}

void gcap_graph_keys_remove(gcap_graph_keys_t* keys, gcap_graph_known_key_t* known) {
  if (known == NULL) return;
  cell_t* cell = gcap_hash_table_find(&keys->table, known->hash);
  gcap_graph_known_key_t** link = &cell->first;
  while (*link != known) link = &(*link)->next;
  *link = known->next;
  if (cell->first == NULL) gcap_hash_table_remove(&keys->table, cell);
  free(known);
}

int gcap_graph_keys_next_id(gcap_graph_keys_t* keys) {
  const uint32_t count = (uint32_t)INT_MAX;  // -2 down to INT_MIN
  return GCAP_GRAPH_ID_NONE - 1 - (int)(keys->num_given++ % count);
}
