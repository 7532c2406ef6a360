// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Allocations: what an address is, and how one comes into being and goes.
//
// The idea: device memory is host memory underneath, filled with a pattern when its contents begin, so that a read of
// bytes that nobody wrote shows. A tree by address holds what callers may name; what device work finds at an address
// the checker knows (sim/check/shadow.h). Invariants: the tree holds no two allocations that share bytes; an allocation
// in the tree has references. Locking: the global mutex.
#include "sim/memory/allocation.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/submit.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/base/span.h"
#include "sim/bridge/lifetime.h"
#include "sim/check/shadow.h"
#include "sim/graph/graph_memory.h"
#include "sim/memory/budget.h"
#include "sim/memory/vmem.h"

#define PATTERN 0xA5
// Only the beginning of a huge allocation is filled: enough to be noticed, cheap enough for tests of limits.
#define MAX_PATTERN_BYTES ((size_t)64 << 20)

static gcap_sim_span_t* named;
static uint64_t last_id;

typedef enum kind { DEVICE_MEMORY, PINNED_MEMORY, REGISTERED_MEMORY, MANAGED_MEMORY, NUM_KINDS } kind_t;

static const char* const kind_names[NUM_KINDS] = {"device memory", "pinned memory", "registered memory",
                                                  "managed memory"};
static size_t num_claimed[NUM_KINDS];

static kind_t kind_of(const gcap_sim_allocation_t* allocation) {
  if (allocation->type == cudaMemoryTypeDevice) return DEVICE_MEMORY;
  if (allocation->type == cudaMemoryTypeManaged) return MANAGED_MEMORY;
  return allocation->registered ? REGISTERED_MEMORY : PINNED_MEMORY;
}

// --- Look-ups -------------------------------------------------------------------------------------------------------

gcap_sim_allocation_t* gcap_sim_allocation_find(const void* address) { return gcap_sim_span_find(named, address); }

gcap_sim_allocation_t* gcap_sim_allocation_overlap(const void* address, size_t bytes) {
  return gcap_sim_span_overlap(named, address, bytes);
}

void gcap_sim_allocation_each(void (*visit)(void* allocation, void* user), void* user) {
  gcap_sim_span_each(named, visit, user);
}

size_t gcap_sim_allocation_count(const char* kind) {
  size_t count = 0;
  for (kind_t k = 0; k < NUM_KINDS; ++k) {
    if (kind == NULL || strcmp(kind_names[k], kind) == 0) count += num_claimed[k];
  }
  return count;
}

int gcap_sim_is_device_range(const void* p, size_t bytes) {
  gcap_sim_lock();
  const gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(p);
  bool reaches = allocation != NULL && allocation->type != cudaMemoryTypeHost;
  int inside = reaches && bytes <= allocation->bytes - (size_t)((uintptr_t)p - (uintptr_t)allocation->base);
  gcap_sim_unlock();
  return inside;
}

// --- Life -----------------------------------------------------------------------------------------------------------

gcap_sim_allocation_t* gcap_sim_allocation_create(void* base, size_t bytes, enum cudaMemoryType type, int device) {
  gcap_sim_allocation_t* allocation = gcap_sim_calloc(1, sizeof(*allocation));
  allocation->id = ++last_id;
  allocation->refs = 1;
  allocation->base = base;
  allocation->bytes = bytes;
  allocation->type = type;
  allocation->device = device;
  allocation->named = (gcap_sim_span_t){.begin = (uintptr_t)base, .bytes = bytes, .owner = allocation};
  allocation->memory = gcap_sim_memory_create(allocation);
  return allocation;
}

static int space_of(const gcap_sim_allocation_t* allocation) {
  return allocation->type == cudaMemoryTypeDevice ? allocation->device : GCAP_SIM_PINNED_SPACE;
}

gcap_sim_allocation_t* gcap_sim_allocation_create_range(size_t bytes, enum cudaMemoryType type, int device) {
  // One byte more: the address one past the end is that of no other allocation.
  size_t range_bytes = bytes + 1;
  void* base = range_bytes
                   ? gcap_sim_vmem_take(type == cudaMemoryTypeDevice ? device : GCAP_SIM_PINNED_SPACE, range_bytes)
                   : NULL;
  if (base == NULL) return NULL;
  gcap_sim_allocation_t* allocation = gcap_sim_allocation_create(base, bytes, type, device);
  allocation->range_bytes = range_bytes;
  allocation->is_fresh = true;
  return allocation;
}

gcap_sim_allocation_t* gcap_sim_allocation_create_again(gcap_sim_allocation_t* freed) {
  gcap_sim_allocation_t* allocation = gcap_sim_allocation_create(freed->base, freed->bytes, freed->type, freed->device);
  ++freed->refs;
  allocation->before = freed;
  allocation->first = freed->first != NULL ? freed->first : freed;
  freed->again = true;
  gcap_sim_span_remove(&named, &freed->named);
  return allocation;
}

// Takes a graph's allocation out of the tree; the one that had its address before is found again.
static void take_from_graph(gcap_sim_allocation_t* allocation) {
  gcap_sim_span_remove(&named, &allocation->named);
  gcap_sim_graph_memory_drop(allocation);
  if (allocation->before == NULL) return;
  allocation->before->again = false;
  gcap_sim_span_insert(&named, &allocation->before->named);
}

static void destroy(gcap_sim_allocation_t* allocation) {
  if (allocation->of_graph) take_from_graph(allocation);
  if (allocation->range_bytes) {
    gcap_sim_vmem_give_back(space_of(allocation), allocation->base, allocation->range_bytes);
  }
  gcap_sim_memory_release(allocation->memory);
  free(allocation->access);
  free(allocation->advice);
  free(allocation);
}

void gcap_sim_allocation_release(gcap_sim_allocation_t* allocation) {
  while (allocation != NULL && --allocation->refs == 0) {
    gcap_sim_allocation_t* before = allocation->before;
    destroy(allocation);
    allocation = before;
  }
}

void gcap_sim_allocation_give_to_graph(gcap_sim_allocation_t* allocation) {
  allocation->of_graph = true;
  gcap_sim_span_insert(&named, &allocation->named);
}

void gcap_sim_allocation_give_to_symbol(gcap_sim_allocation_t* allocation) {
  allocation->of_symbol = true;
  allocation->live = true;
  gcap_sim_span_insert(&named, &allocation->named);
}

void gcap_sim_allocation_claim(gcap_sim_allocation_t* allocation) {
  if (allocation->claimed) return;
  allocation->claimed = true;
  ++num_claimed[kind_of(allocation)];
  if (!allocation->of_graph) gcap_sim_span_insert(&named, &allocation->named);
}

void gcap_sim_allocation_disclaim(gcap_sim_allocation_t* allocation) {
  if (!allocation->claimed) return;
  allocation->claimed = false;
  --num_claimed[kind_of(allocation)];
  if (!allocation->of_graph) gcap_sim_span_remove(&named, &allocation->named);
}

// Memory that was written before is filled where it is: to map it anew costs more than to write it.
static void fill_with_pattern(gcap_sim_allocation_t* allocation) {
  const size_t bytes = allocation->bytes < MAX_PATTERN_BYTES ? allocation->bytes : MAX_PATTERN_BYTES;
  if (allocation->is_fresh) {
    gcap_sim_vmem_fill(allocation->base, bytes, PATTERN);
  } else {
    memset(allocation->base, PATTERN, bytes);
  }
  allocation->is_fresh = false;
}

void gcap_sim_allocation_begin(gcap_sim_allocation_t* allocation) {
  gcap_sim_memory_begins(allocation);
  if (!allocation->registered) fill_with_pattern(allocation);
  if (allocation->live) return;  // a launch with auto-free takes over what the last one left
  // Should a trim have come between the launch and its work, the memory comes back, unless others have it by now.
  if (allocation->of_graph && !gcap_sim_graph_memory_bring(allocation)) {
    gcap_sim_die("a graph's memory was trimmed while its launch was pending, and the device has no more");
  }
  allocation->live = true;
  ++allocation->refs;
}

void gcap_sim_allocation_end(gcap_sim_allocation_t* allocation) {
  if (!allocation->live) return;
  gcap_sim_memory_ends(allocation);
  allocation->live = false;
  if (!allocation->of_graph && allocation->budget_bytes) {
    gcap_sim_budget_give_back(allocation->device, allocation->budget_bytes);
    allocation->budget_bytes = 0;
  }
  gcap_sim_allocation_release(allocation);
}
