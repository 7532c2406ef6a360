// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The simulator's own memory: there is enough, or the program stops. Locking: none; each call is on its own.
#include "sim/base/heap.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/die.h"

// A caller's count may be anything, and no machine has this much: said here, where the call is known.
#define MOST_BYTES ((size_t)1 << 40)

static void check_size(size_t count, size_t bytes) {
  if (bytes && count > MOST_BYTES / bytes) {
    gcap_sim_die("%zu times %zu bytes are too much for the simulator", count, bytes);
  }
}

void* gcap_sim_calloc(size_t count, size_t bytes) {
  check_size(count, bytes);
  void* memory = calloc(count ? count : 1, bytes ? bytes : 1);
  if (memory == NULL) gcap_sim_die("the machine has no memory left for the simulator");
  return memory;
}

void gcap_sim_reserve(void* items, size_t* capacity, size_t need, size_t bytes) {
  if (need <= *capacity) return;
  // Short, since most lists stay so: most nodes of a graph have one edge or two at an end.
  size_t grown = *capacity ? *capacity * 2 : 2;
  if (grown < need) grown = need;
  check_size(grown, bytes);
  void* old;
  memcpy(&old, items, sizeof(old));
  void* memory = realloc(old, grown * bytes);
  if (memory == NULL) gcap_sim_die("the machine has no memory left for the simulator");
  memcpy(items, &memory, sizeof(memory));
  *capacity = grown;
}
