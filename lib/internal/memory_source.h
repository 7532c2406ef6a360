// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// memory_source.h: for who takes memory from the driver and hands it out in pieces: whose a piece is now. The driver
// knows the whole alone, and does not see that a piece goes from one to the next.
#ifndef GCAP_LIB_INTERNAL_MEMORY_SOURCE_H_
#define GCAP_LIB_INTERNAL_MEMORY_SOURCE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Whose the piece is that an address is in.
typedef struct gcap_memory_claim {
  uintptr_t start;
  size_t bytes;
  uint64_t source;    // no two sources of a process have the same
  uint64_t hand_out;  // what no other hand-out of the source ever has; 0: the piece is handed out to nobody
  uint64_t keeper;    // what no other keeper of the source ever has; 0: no captured graph keeps the piece
  char name[64];      // of the keeper, or of who has the piece; "" for none
} gcap_memory_claim_t;

// Whether who had the memory at the earlier claim has it still, or the graphs keep it that kept it then.
static inline bool gcap_memory_claim_holds(const gcap_memory_claim_t* earlier, const gcap_memory_claim_t* now) {
  if (earlier->source != now->source) return false;
  return (earlier->hand_out != 0 && earlier->hand_out == now->hand_out) ||
         (earlier->keeper != 0 && earlier->keeper == now->keeper);
}

// One source, embedded in what hands out.
typedef struct gcap_memory_source {
  // `*out_found` false: the address is none of the source's. With `watch` the hand-out will be known again; without,
  // one that nobody watches is told by a number that it shares with all others. Neither adds nor removes a source, nor
  // calls back.
  //   RESOURCE_EXHAUSTED  no host memory to watch it
  gcap_status_t (*find)(struct gcap_memory_source* source, uintptr_t address, bool watch,
                        gcap_memory_claim_t* out_claim, bool* out_found);
  struct gcap_memory_source *previous, *next;
} gcap_memory_source_t;

void gcap_memory_source_add(gcap_memory_source_t* source);
// Afterwards it is not being called.
void gcap_memory_source_remove(gcap_memory_source_t* source);

// Asks the sources. Of several, one of which has its memory from another, the one with the smallest piece answers.
//   RESOURCE_EXHAUSTED  as a source
gcap_status_t gcap_memory_find_claim(uintptr_t address, bool watch, gcap_memory_claim_t* out_claim, bool* out_found);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_INTERNAL_MEMORY_SOURCE_H_
