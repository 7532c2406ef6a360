// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// map.h: numbers to numbers: handles, addresses and hashes to ids.
#ifndef GCAP_DOCTOR_RECORD_MAP_H_
#define GCAP_DOCTOR_RECORD_MAP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

// Zeroed is empty. Thread: one at a time.
typedef struct gcap_doctor_map {
  struct gcap_doctor_map_slot* slots;
  size_t count, capacity;
} gcap_doctor_map_t;

// The value of a key; 0 if it has none.
uint32_t gcap_doctor_map_get(const gcap_doctor_map_t* map, uint64_t key);
// False without memory. `value` is not 0.
bool gcap_doctor_map_set(gcap_doctor_map_t* map, uint64_t key, uint32_t value);
void gcap_doctor_map_remove(gcap_doctor_map_t* map, uint64_t key);
void gcap_doctor_map_clear(gcap_doctor_map_t* map);

// A number that differs for inputs that differ, to be trusted: 64 bits, and some millions of inputs at most.
uint64_t gcap_doctor_hash(uint64_t seed, const void* bytes, size_t size);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_MAP_H_
