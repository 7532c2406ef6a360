// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// allocation.h: device and pinned memory.
#ifndef GCAP_SIM_MEMORY_ALLOCATION_H_
#define GCAP_SIM_MEMORY_ALLOCATION_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"
#include "sim/api/types.h"
#include "sim/base/span.h"
#include "sim/check/shadow.h"
#include "sim/memory/advice.h"

// Callers name an allocation from the call that makes it to the call that frees it: it is claimed. Device work may
// touch it from the work that maps it to the work that unmaps it: it is live. Both are the same for cudaMalloc. A pool
// may give a claimed allocation the address of one that is live until its queued free runs.
struct gcap_sim_allocation {
  uint64_t id;  // never used again
  size_t refs;  // one for being live, one for each task that names it
  char* base;
  size_t bytes;  // as asked for
  enum cudaMemoryType type;
  int device;
  unsigned int flags;       // of cudaHostAlloc or cudaHostRegister
  bool live;                // mapped: between the work that allocates it and the work that frees it
  bool claimed;             // owned by the caller: no call has freed it yet, though the work of one may still be queued
  bool of_symbol;           // a variable of a device, which nobody owns
  bool of_graph;            // made by an allocation node: its address is its own also while nobody claims it
  bool registered;          // the caller's own host memory
  size_t range_bytes;       // of address space that goes back with it; 0 when that is not its own
  bool is_fresh;            // a range of addresses whose memory nobody has written
  size_t budget_bytes;      // taken from the device's budget on its behalf
  gcap_sim_block_t* block;  // of the pool that it comes from, while claimed
  gcap_sim_span_t named;    // in the tree while claimed, of a graph or of a variable
  uint64_t graph;           // the serial of the graph whose node allocates it
  gcap_sim_allocation_t* before;  // of a graph's: the freed one whose address it has again, a reference; NULL for none
  gcap_sim_allocation_t* first;   // and the first that had it; NULL for that one itself
  bool again;                     // another one has its address again, and is found in its place
  uint64_t freeing_graph;         // the serial of the graph with the last free node that was made for it
  struct cudaMemAccessDesc* access;  // of a graph's: what its node was asked for, a block of its own; NULL for none
  size_t num_access;
  bool coming;                // scratch: a launch that is being judged will allocate it
  gcap_sim_advice_t* advice;  // of managed memory: what was said of its pages
  gcap_sim_memory_t* memory;  // what the checks know of it
};

// The allocation that holds the address: claimed by the caller, owned by a graph, or a variable. NULL when there is
// none.
gcap_sim_allocation_t* gcap_sim_allocation_find(const void* address);
// One of these that shares bytes with the range.
gcap_sim_allocation_t* gcap_sim_allocation_overlap(const void* address, size_t bytes);
void gcap_sim_allocation_each(void (*visit)(void* allocation, void* user), void* user);
// Claimed allocations of the kind "device memory", "pinned memory", "registered memory" or "managed memory", or of
// all when NULL.
size_t gcap_sim_allocation_count(const char* kind);

// An allocation with one reference, neither claimed nor live.
gcap_sim_allocation_t* gcap_sim_allocation_create(void* base, size_t bytes, enum cudaMemoryType type, int device);
// The same, in a range of address space of its own; NULL when that is used up.
gcap_sim_allocation_t* gcap_sim_allocation_create_range(size_t bytes, enum cudaMemoryType type, int device);
// The same, at the address of one of a graph that the graph has freed.
gcap_sim_allocation_t* gcap_sim_allocation_create_again(gcap_sim_allocation_t* freed);
// Makes it that of a graph: callers find it from now on, claimed or not.
void gcap_sim_allocation_give_to_graph(gcap_sim_allocation_t* allocation);
// Makes it that of a variable: callers find it from now on.
void gcap_sim_allocation_give_to_symbol(gcap_sim_allocation_t* allocation);
// The caller becomes its owner, or is no longer.
void gcap_sim_allocation_claim(gcap_sim_allocation_t* allocation);
void gcap_sim_allocation_disclaim(gcap_sim_allocation_t* allocation);
// Maps and unmaps it, in the order of the device's work: the start and the end of its contents.
void gcap_sim_allocation_begin(gcap_sim_allocation_t* allocation);
void gcap_sim_allocation_end(gcap_sim_allocation_t* allocation);
void gcap_sim_allocation_release(gcap_sim_allocation_t* allocation);

#endif  // GCAP_SIM_MEMORY_ALLOCATION_H_
