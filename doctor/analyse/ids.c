// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A sorted array, searched by halving. Ids that come again at once, as those of a loop's nodes do, are not even added.
// Locking: none.
#include "doctor/analyse/ids.h"

#include <stdlib.h>

#include "doctor/base/heap.h"
#include "doctor/events/recording.h"

void gcap_doctor_ids_add(gcap_doctor_ids_t* ids, uint32_t id) {
  if (id == GCAP_DOCTOR_NONE || (ids->count != 0 && ids->items[ids->count - 1] == id)) return;
  ids->items = gcap_doctor_heap_grow(ids->items, ids->count, &ids->capacity, sizeof(*ids->items));
  ids->items[ids->count++] = id;
}

static int compare(const void* left, const void* right) {
  const uint32_t a = *(const uint32_t*)left, b = *(const uint32_t*)right;
  return a < b ? -1 : a > b;
}

void gcap_doctor_ids_finish(gcap_doctor_ids_t* ids) {
  if (ids->count == 0) return;
  qsort(ids->items, ids->count, sizeof(*ids->items), compare);
  size_t kept = 1;
  for (size_t i = 1; i < ids->count; ++i) {
    if (ids->items[i] != ids->items[kept - 1]) ids->items[kept++] = ids->items[i];
  }
  ids->count = kept;
}

void gcap_doctor_ids_deinit(gcap_doctor_ids_t* ids) { free(ids->items); }

uint32_t gcap_doctor_ids_find(const gcap_doctor_ids_t* ids, uint32_t id) {
  size_t low = 0, high = ids->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (ids->items[middle] == id) return (uint32_t)middle;
    if (ids->items[middle] < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return GCAP_DOCTOR_NONE;
}
