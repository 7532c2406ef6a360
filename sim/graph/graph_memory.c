// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The memory behind the allocation nodes of graphs.
//
// The idea: capture fixes an address and takes no memory; the first launch brings the memory, and it stays with the
// graph, freed nodes included, until a trim or the end of graph and executable, as measured. What graphs hold is
// `used`; what the device set aside for them is `reserved`, which only a trim lowers. Two allocations of one graph
// share an address, and so their memory, when one comes after the free of the other. Locking: the global mutex.
#include "sim/graph/graph_memory.h"

#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/thread.h"
#include "sim/device/device.h"
#include "sim/device/properties.h"
#include "sim/graph/edges.h"
#include "sim/graph/graph.h"
#include "sim/memory/allocation.h"
#include "sim/memory/budget.h"
#include "sim/stream/task.h"

// What the device sets aside at a time, as measured.
#define STEP_BYTES ((size_t)32 << 20)

static struct {
  size_t used;
  size_t used_high;
  size_t reserved;
  size_t reserved_high;
} graphs[GCAP_SIM_MAX_DEVICES];

// How many nodes before a new allocation are looked at.
enum { kMaxLooks = 64 };

typedef struct walk {
  const gcap_sim_node_t* nodes[kMaxLooks];
  size_t count;
  uint64_t visit;
} walk_t;

static void walk_to(walk_t* walk, const gcap_sim_edge_t* edges, size_t count) {
  for (size_t i = 0; i < count && walk->count < kMaxLooks; ++i) {
    gcap_sim_node_t* node = edges[i].node;
    if (node->visit == walk->visit) continue;
    node->visit = walk->visit;
    walk->nodes[walk->count++] = node;
  }
}

// Measured: memory that a node before it has freed is given again to an allocation of the same size.
static gcap_sim_allocation_t* find_freed(const gcap_sim_graph_t* graph, const gcap_sim_edge_t* deps, size_t num_deps,
                                         size_t bytes, int device) {
  if (graph->num_memory_nodes == 0) return NULL;
  walk_t walk = {.visit = gcap_sim_graph_new_visit()};
  walk_to(&walk, deps, num_deps);
  for (size_t i = 0; i < walk.count; ++i) {
    const gcap_sim_node_t* node = walk.nodes[i];
    gcap_sim_allocation_t* freed = node->task->kind == GCAP_SIM_TASK_FREE ? node->task->u.allocation : NULL;
    bool fits = freed != NULL && freed->graph == graph->serial && !freed->again && freed->bytes == bytes;
    if (fits && freed->device == device) return freed;
    walk_to(&walk, node->in.items, node->in.count);
  }
  return NULL;
}

gcap_sim_allocation_t* gcap_sim_graph_allocation_create(const gcap_sim_graph_t* graph, const gcap_sim_edge_t* deps,
                                                        size_t num_deps, size_t bytes, int device) {
  if (bytes > gcap_sim_budget_total(device)) return NULL;
  gcap_sim_allocation_t* freed = find_freed(graph, deps, num_deps, bytes, device);
  gcap_sim_allocation_t* allocation = freed != NULL
                                          ? gcap_sim_allocation_create_again(freed)
                                          : gcap_sim_allocation_create_range(bytes, cudaMemoryTypeDevice, device);
  if (allocation != NULL) gcap_sim_allocation_give_to_graph(allocation);
  return allocation;
}

static size_t whole(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Makes `reserved` cover `used` and `more`.
static bool grow(int device, size_t more) {
  size_t need = whole(graphs[device].used + more, STEP_BYTES);
  if (need <= graphs[device].reserved) return true;
  if (!gcap_sim_budget_take(device, need - graphs[device].reserved)) return false;
  graphs[device].reserved = need;
  if (graphs[device].reserved_high < need) graphs[device].reserved_high = need;
  return true;
}

bool gcap_sim_graph_memory_bring(gcap_sim_allocation_t* allocation) {
  if (allocation->first != NULL) allocation = allocation->first;
  if (allocation->budget_bytes) return true;
  int device = allocation->device;
  size_t bytes = whole(allocation->bytes, GCAP_SIM_ALIGNMENT);
  if (!grow(device, bytes)) return false;
  allocation->budget_bytes = bytes;
  graphs[device].used += bytes;
  if (graphs[device].used_high < graphs[device].used) graphs[device].used_high = graphs[device].used;
  return true;
}

void gcap_sim_graph_memory_drop(gcap_sim_allocation_t* allocation) {
  graphs[allocation->device].used -= allocation->budget_bytes;
  allocation->budget_bytes = 0;
}

// Told of the last one that has the address.
static void drop_unused(void* owner, void* user) {
  gcap_sim_allocation_t* allocation = owner;
  const int* device = user;
  if (!allocation->of_graph || allocation->device != *device) return;
  for (const gcap_sim_allocation_t* each = allocation; each != NULL; each = each->before) {
    if (each->live || each->claimed) return;
  }
  gcap_sim_graph_memory_drop(allocation->first != NULL ? allocation->first : allocation);
}

static cudaError_t trim(int device) {
  if (device < 0 || device >= gcap_sim_device_count()) return cudaErrorInvalidDevice;
  gcap_sim_allocation_each(drop_unused, &device);
  size_t need = whole(graphs[device].used, STEP_BYTES);
  gcap_sim_budget_give_back(device, graphs[device].reserved - need);
  graphs[device].reserved = need;
  return cudaSuccess;
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceGraphMemTrim);
  if (code == cudaSuccess) code = trim(device);
  return gcap_sim_leave(code);
}

static cudaError_t get(int device, enum cudaGraphMemAttributeType attr, void* value) {
  if (device < 0 || device >= gcap_sim_device_count()) return cudaErrorInvalidDevice;
  if (value == NULL) return cudaErrorInvalidValue;
  uint64_t bytes = 0;
  switch (attr) {
    // Measured: memory is used by the step.
    case cudaGraphMemAttrUsedMemCurrent: bytes = whole(graphs[device].used, STEP_BYTES); break;
    case cudaGraphMemAttrUsedMemHigh: bytes = whole(graphs[device].used_high, STEP_BYTES); break;
    case cudaGraphMemAttrReservedMemCurrent: bytes = graphs[device].reserved; break;
    case cudaGraphMemAttrReservedMemHigh: bytes = graphs[device].reserved_high; break;
    default: return cudaErrorInvalidValue;
  }
  memcpy(value, &bytes, sizeof(bytes));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr, void* value) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceGetGraphMemAttribute);
  if (code == cudaSuccess) code = get(device, attr, value);
  return gcap_sim_leave(code);
}

// A high-water mark may be set to 0, which makes it the current value; nothing else may be set.
static cudaError_t set(int device, enum cudaGraphMemAttributeType attr, const void* value) {
  if (device < 0 || device >= gcap_sim_device_count()) return cudaErrorInvalidDevice;
  uint64_t bytes;
  if (value == NULL) return cudaErrorInvalidValue;
  memcpy(&bytes, value, sizeof(bytes));
  if (bytes != 0) return cudaErrorInvalidValue;
  if (attr == cudaGraphMemAttrUsedMemHigh) {
    graphs[device].used_high = graphs[device].used;
  } else if (attr == cudaGraphMemAttrReservedMemHigh) {
    graphs[device].reserved_high = graphs[device].reserved;
  } else {
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr, void* value) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceSetGraphMemAttribute);
  if (code == cudaSuccess) code = set(device, attr, value);
  return gcap_sim_leave(code);
}
