// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lists that grow. No locking: a list belongs to one thread at a time.

#include "lib/internal/grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kFewest = 8 };

bool gcap_grow(void* items, size_t* room, size_t need, size_t item_bytes) {
  if (need <= *room) return true;
  size_t larger = *room > SIZE_MAX / 2 ? SIZE_MAX : 2 * *room;
  if (larger < kFewest) larger = kFewest;
  if (larger < need) larger = need;
  if (larger > SIZE_MAX / item_bytes) return false;
  // The list may have items of any type.
  void* list;
  memcpy(&list, items, sizeof(list));
  list = realloc(list, larger * item_bytes);
  if (list == NULL) return false;
  memcpy(items, &list, sizeof(list));
  *room = larger;
  return true;
}
