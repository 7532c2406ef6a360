// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Pinned ranges, sorted by address. They do not overlap: the driver refuses to pin memory twice. A program has few, and
// makes them seldom, so that moving the tail of an array is cheap. Locking: one lock, held over memory alone.
#include "doctor/record/pinned.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "doctor/base/grow.h"

typedef struct range {
  uintptr_t begin, end;
} range_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static range_t* ranges;
static size_t num_ranges, capacity;

// The first range that begins after `address`.
static size_t after(uintptr_t address) {
  size_t low = 0, high = num_ranges;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (ranges[middle].begin <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static void insert(range_t range) {
  size_t at = after(range.begin);
  // A range that was freed unseen is still here.
  if (at > 0 && ranges[at - 1].begin == range.begin) {
    ranges[at - 1] = range;
    return;
  }
  if (!gcap_doctor_grow(&ranges, &capacity, num_ranges + 1, sizeof(*ranges))) return;
  memmove(&ranges[at + 1], &ranges[at], (num_ranges - at) * sizeof(*ranges));
  ranges[at] = range;
  ++num_ranges;
}

void gcap_doctor_pinned_add(const void* address, size_t bytes) {
  if (address == NULL || bytes == 0) return;
  pthread_mutex_lock(&lock);
  insert((range_t){(uintptr_t)address, (uintptr_t)address + bytes});
  pthread_mutex_unlock(&lock);
}

void gcap_doctor_pinned_remove(const void* address) {
  pthread_mutex_lock(&lock);
  size_t at = after((uintptr_t)address);
  if (at > 0 && ranges[at - 1].begin == (uintptr_t)address) {
    memmove(&ranges[at - 1], &ranges[at], (num_ranges - at) * sizeof(*ranges));
    --num_ranges;
  }
  pthread_mutex_unlock(&lock);
}

bool gcap_doctor_pinned_has(const void* address) {
  pthread_mutex_lock(&lock);
  const size_t at = after((uintptr_t)address);
  const bool found = at > 0 && (uintptr_t)address < ranges[at - 1].end;
  pthread_mutex_unlock(&lock);
  return found;
}
