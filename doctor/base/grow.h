// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// grow.h: room in a list that grows, for the command and for the recorder.
#ifndef GCAP_DOCTOR_BASE_GROW_H_
#define GCAP_DOCTOR_BASE_GROW_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Makes room for `need` items of `item_bytes` bytes each. `items` is the address of the pointer to the list, which is
// NULL at first and freed by free(); `*capacity` is how many items have room. The room at least doubles, so adding one
// item at a time is cheap. New items are not initialized.
// Returns false without memory, and where no size_t holds the bytes. The list then stays as it was.
static inline bool gcap_doctor_grow(void* items, size_t* capacity, size_t need, size_t item_bytes) {
  enum { kFewest = 16 };
  if (need <= *capacity) return true;
  size_t larger = *capacity > SIZE_MAX / 2 ? SIZE_MAX : 2 * *capacity;
  if (larger < kFewest) larger = kFewest;
  if (larger < need) larger = need;
  if (larger > SIZE_MAX / item_bytes) return false;
  // The list may have items of any type.
  void* list;
  memcpy(&list, items, sizeof(list));
  list = realloc(list, larger * item_bytes);
  if (list == NULL) return false;
  memcpy(items, &list, sizeof(list));
  *capacity = larger;
  return true;
}

#endif  // GCAP_DOCTOR_BASE_GROW_H_
