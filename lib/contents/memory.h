// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// memory.h: what memory an address is in, as the driver, gcap's arenas and the application's allocator know it.
#ifndef GCAP_LIB_CONTENTS_MEMORY_H_
#define GCAP_LIB_CONTENTS_MEMORY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/graph_contents.h"
#include "lib/contents/inner.h"
#include "lib/internal/memory_source.h"

typedef struct gcap_memory {
  // To the driver.
  unsigned type;  // CUmemorytype; 0: it knows no memory there
  uint64_t buffer_id;
  uintptr_t start;
  size_t bytes;
  bool has_claim;  // an arena of gcap has it
  gcap_memory_claim_t claim;
  bool has_block;  // the application's allocator has it
  gcap_graph_block_t block;
} gcap_memory_t;

// Looks. With `watch` what is there will be known again.
// Capture: legal.
//   RESOURCE_EXHAUSTED  no host memory to watch
//   UNIMPLEMENTED       as gcap_driver_get
//   CUDA_ERROR          the driver does not tell
gcap_status_t gcap_memory_look(const gcap_block_finder_t* finder, uintptr_t address, bool watch,
                               gcap_memory_t* out_memory);

// Whether nobody has the memory.
bool gcap_memory_is_nobodys(const gcap_memory_t* memory);
// Whether who had the memory has it still.
bool gcap_memory_is_same(const gcap_memory_t* earlier, const gcap_memory_t* now);
// What became of memory that is not the same: two blocks may look alike. "" if it is the same.
const char* gcap_memory_name_change(const gcap_memory_t* earlier, const gcap_memory_t* now);
// ", the address of scratch that graph 3 keeps"; "" of memory that no captured graph keeps.
void gcap_memory_write_keeper(uintptr_t address, char* text, size_t capacity);
// "buffer id 17, 4096 bytes at 0x7f3c00000000"
void gcap_memory_write(const gcap_memory_t* memory, char* text, size_t capacity);

#endif  // GCAP_LIB_CONTENTS_MEMORY_H_
