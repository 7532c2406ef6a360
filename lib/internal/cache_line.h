// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cache_line.h: memory for structs whose first fields are read together, and often when nothing else of them is.
#ifndef GCAP_LIB_INTERNAL_CACHE_LINE_H_
#define GCAP_LIB_INTERNAL_CACHE_LINE_H_

#include <stdlib.h>
#include <string.h>

// Of the processors that CUDA runs beside.
#define GCAP_CACHE_LINE_BYTES ((size_t)64)

// Zeroed memory that begins a line of the cache; NULL when there is none. Freed by free.
static inline void* gcap_calloc_line(size_t bytes) {
  const size_t rounded = (bytes + GCAP_CACHE_LINE_BYTES - 1) & ~(GCAP_CACHE_LINE_BYTES - 1);
  void* memory = aligned_alloc(GCAP_CACHE_LINE_BYTES, rounded);
  return memory != NULL ? memset(memory, 0, rounded) : NULL;
}

#endif  // GCAP_LIB_INTERNAL_CACHE_LINE_H_
