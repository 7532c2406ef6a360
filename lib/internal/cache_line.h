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
  void* memory = NULL;
  return posix_memalign(&memory, GCAP_CACHE_LINE_BYTES, bytes) == 0 ? memset(memory, 0, bytes) : NULL;
}

#endif  // GCAP_LIB_INTERNAL_CACHE_LINE_H_
