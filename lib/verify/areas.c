// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Areas: pieces of memory that may share bytes, as pieces that do not, so that each byte is copied once. Nothing is
// locked: the areas are the caller's.

#include <stdlib.h>

#include "lib/verify/inner.h"

static int compare_areas(const void* a, const void* b) {
  const gcap_area_t *x = a, *y = b;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

size_t gcap_areas_merge(gcap_area_t* areas, size_t count) {
  if (count == 0) return 0;
  qsort(areas, count, sizeof(*areas), compare_areas);
  size_t last = 0;
  for (size_t i = 1; i < count; ++i) {
    const gcap_area_t next = areas[i];
    gcap_area_t* area = &areas[last];
    if (next.begin >= area->begin + area->bytes) {
      areas[++last] = next;
      continue;
    }
    const size_t bytes = (size_t)(next.begin - area->begin) + next.bytes;
    if (bytes > area->bytes) area->bytes = bytes;
    if (next.owner < area->owner) area->owner = next.owner;
  }
  return last + 1;
}

size_t gcap_areas_find(const gcap_area_t* areas, const void* address) {
  const char* at = address;
  size_t i = 0;
  while (at < areas[i].begin || at >= areas[i].begin + areas[i].bytes) ++i;
  return i;
}
