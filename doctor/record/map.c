// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A hash table with open addressing, at most three quarters full. A removed entry is filled by those behind it, so a
// program that makes and destroys for ever leaves no graves. Locking: the caller's.
#include "doctor/record/map.h"

#include <stdlib.h>
#include <string.h>

struct gcap_doctor_map_slot {
  uint64_t key;
  uint32_t value;  // 0 for a free slot
};

static uint64_t mix(uint64_t x) {
  x ^= x >> 31;
  x *= UINT64_C(0x9e3779b97f4a7c15);
  x ^= x >> 29;
  x *= UINT64_C(0xd6e8feb86659fd93);
  return x ^ (x >> 32);
}

// The slot of a key, or the free one where it would go.
static size_t find(const gcap_doctor_map_t* map, uint64_t key) {
  size_t i = mix(key) & (map->capacity - 1);
  while (map->slots[i].value != 0 && map->slots[i].key != key) i = (i + 1) & (map->capacity - 1);
  return i;
}

uint32_t gcap_doctor_map_get(const gcap_doctor_map_t* map, uint64_t key) {
  return map->capacity != 0 ? map->slots[find(map, key)].value : 0;
}

static bool grow(gcap_doctor_map_t* map) {
  gcap_doctor_map_t larger = {.capacity = map->capacity != 0 ? 2 * map->capacity : 64, .count = map->count};
  larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
  if (larger.slots == NULL) return false;
  for (size_t i = 0; i < map->capacity; ++i) {
    if (map->slots[i].value != 0) larger.slots[find(&larger, map->slots[i].key)] = map->slots[i];
  }
  free(map->slots);
  *map = larger;
  return true;
}

bool gcap_doctor_map_set(gcap_doctor_map_t* map, uint64_t key, uint32_t value) {
  if (4 * (map->count + 1) > 3 * map->capacity && !grow(map)) return false;
  struct gcap_doctor_map_slot* slot = &map->slots[find(map, key)];
  map->count += slot->value == 0;
  slot->key = key;
  slot->value = value;
  return true;
}

void gcap_doctor_map_remove(gcap_doctor_map_t* map, uint64_t key) {
  if (map->capacity == 0) return;
  const size_t mask = map->capacity - 1;
  size_t hole = find(map, key);
  if (map->slots[hole].value == 0) return;
  --map->count;
  for (size_t i = (hole + 1) & mask; map->slots[i].value != 0; i = (i + 1) & mask) {
    // An entry may move back into the hole if its home is not between the two.
    const size_t home = mix(map->slots[i].key) & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    map->slots[hole] = map->slots[i];
    hole = i;
  }
  map->slots[hole].value = 0;
}

void gcap_doctor_map_clear(gcap_doctor_map_t* map) {
  free(map->slots);
  memset(map, 0, sizeof(*map));
}

uint64_t gcap_doctor_hash(uint64_t seed, const void* bytes, size_t size) {
  const unsigned char* at = bytes;
  uint64_t hash = mix(seed + size + 1);
  for (; size >= 8; size -= 8, at += 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    hash = mix(hash ^ word) + word;
  }
  uint64_t rest = 0;
  if (size != 0) memcpy(&rest, at, size);
  return mix(hash ^ rest);
}
