// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Keys: bytes of the caller's that name a graph. A cell of the table is one line of the cache: the hash of a key with
// the key's size, the slot of its id, and the key's first 48 bytes. So a look-up among many keys touches one line,
// hashes once and compares once. A longer key goes on in the copy that its slot has. Two keys of one hash and size are
// in one cell, as a list of such copies, of which the first is the one in the cell.
//
// Locking: the manager's mutex.

#include "lib/graph/keys.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/graph/slot.h"
#include "lib/internal/cache_line.h"

#define HEAD_BYTES ((size_t)48)

// What the table looks up: begins with the hash, which is never 0.
typedef struct cell {
  uint64_t hash;
  gcap_graph_slot_t* slot;  // NULL: not known yet
  unsigned char head[HEAD_BYTES];
} cell_t;
_Static_assert(sizeof(cell_t) == GCAP_CACHE_LINE_BYTES, "a look-up reads one line");

// Eight bytes. The step is invertible for a given word, and for a given hash.
static inline uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9FB21C651E98DF25);
  return hash ^ hash >> 32;
}

// Two words at a time, of which neither waits for the other. The size, of up to 256 bytes, is in the lowest byte: keys
// of two sizes never meet.
static uint64_t hash_of(const unsigned char* bytes, size_t size) {
  const uint64_t size_byte = size - 1;
  uint64_t even = size, odd = ~(uint64_t)size, words[2] = {0};
  for (; size >= sizeof(words); bytes += sizeof(words), size -= sizeof(words)) {
    memcpy(words, bytes, sizeof(words));
    even = mix(even, words[0]);
    odd = mix(odd, words[1]);
  }
  if (size != 0) {
    words[0] = words[1] = 0;
    memcpy(words, bytes, size);
    even = mix(even, words[0]);
    odd = mix(odd, words[1]);
  }
  const uint64_t hash = (mix(even, odd) & ~UINT64_C(0xFF)) | size_byte;
  return hash != 0 ? hash : UINT64_C(0x100);
}

void gcap_graph_keys_init(gcap_graph_keys_t* keys) {
  *keys = (gcap_graph_keys_t){.table = {.cell_bytes = sizeof(cell_t)}};
}

void gcap_graph_keys_deinit(gcap_graph_keys_t* keys) { gcap_hash_table_deinit(&keys->table); }

static size_t head_bytes(size_t size) { return size < HEAD_BYTES ? size : HEAD_BYTES; }

// Of one size.
static bool is_equal(const gcap_graph_known_key_t* known, const gcap_graph_key_t* key) {
  return memcmp(known->bytes, key->bytes, key->size) == 0;
}

gcap_graph_slot_t* gcap_graph_keys_find(const gcap_graph_keys_t* keys, const gcap_graph_key_t* key) {
  const cell_t* cell = gcap_hash_table_find(&keys->table, hash_of(key->bytes, key->size));
  if (cell == NULL) return NULL;
  const bool may_be_first = memcmp(cell->head, key->bytes, head_bytes(key->size)) == 0;
  if (may_be_first && (key->size <= HEAD_BYTES || is_equal(cell->slot->key, key))) return cell->slot;
  const gcap_graph_known_key_t* known = cell->slot->key->next;
  while (known != NULL && !is_equal(known, key)) known = known->next;
  return known != NULL ? known->slot : NULL;
}

// Makes a key the first of its cell.
static void put_first(cell_t* cell, const gcap_graph_known_key_t* known) {
  cell->slot = known->slot;
  memcpy(cell->head, known->bytes, head_bytes(known->size));
}

// Whether the key is the one in the cell. One without a slot is alone there, or behind another.
static bool is_first(const cell_t* cell, const gcap_graph_known_key_t* known) {
  return cell->slot == NULL || cell->slot->key == known;
}

gcap_graph_known_key_t* gcap_graph_keys_add(gcap_graph_keys_t* keys, const gcap_graph_key_t* key) {
  const uint64_t hash = hash_of(key->bytes, key->size);
  gcap_graph_known_key_t* known = calloc(1, sizeof(*known) + key->size);
  if (known == NULL) return NULL;
  known->hash = hash;
  known->size = key->size;
  memcpy(known->bytes, key->bytes, key->size);
  cell_t* cell = gcap_hash_table_find(&keys->table, hash);
  if (cell != NULL) {
    gcap_graph_known_key_t* first = cell->slot->key;
    known->next = first->next;
    first->next = known;
    return known;
  }
  cell = gcap_hash_table_insert(&keys->table, hash);
  if (cell == NULL) {
    free(known);
    return NULL;
  }
  put_first(cell, known);
  return known;
}

void gcap_graph_keys_lead(gcap_graph_keys_t* keys, gcap_graph_known_key_t* known, gcap_graph_slot_t* slot) {
  cell_t* cell = gcap_hash_table_find(&keys->table, known->hash);
  if (is_first(cell, known)) cell->slot = slot;
  known->slot = slot;
}

void gcap_graph_keys_remove(gcap_graph_keys_t* keys, gcap_graph_known_key_t* known) {
  if (known == NULL) return;
  cell_t* cell = gcap_hash_table_find(&keys->table, known->hash);
  if (!is_first(cell, known)) {
    gcap_graph_known_key_t* before = cell->slot->key;
    while (before->next != known) before = before->next;
    before->next = known->next;
  } else if (known->next != NULL) {
    put_first(cell, known->next);
  } else {
    gcap_hash_table_remove(&keys->table, cell);
  }
  free(known);
}

int gcap_graph_keys_next_id(gcap_graph_keys_t* keys) {
  const uint32_t count = (uint32_t)INT_MAX;  // -2 down to INT_MIN
  return GCAP_GRAPH_ID_NONE - 1 - (int)(keys->num_given++ % count);
}
