// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The memory behind the allocation nodes of graphs.
//
// The idea: capture fixes an address and takes no memory; the first launch brings the memory, and it stays with the
// graph, freed nodes included, until a trim or the end of graph and executable, as measured. What graphs hold is
// `used`; what the device set aside for them is `reserved`, which only a trim lowers. Two allocations of one graph
// never share memory here, though lifetimes that do not meet would allow it. Locking: the global mutex.
#include "sim/graph/graph_memory.h"

#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/thread.h"
#include "sim/device/device.h"
#include "sim/device/properties.h"
#include "sim/memory/allocation.h"
#include "sim/memory/budget.h"

// What the device sets aside at a time, as measured.
#define STEP_BYTES ((size_t)32 << 20)

static struct {
  size_t used;
  size_t used_high;
  size_t reserved;
  size_t reserved_high;
} graphs[GCAP_SIM_MAX_DEVICES];

gcap_sim_allocation_t* gcap_sim_graph_allocation_create(size_t bytes, int device) {
  if (bytes > gcap_sim_budget_total(device)) return NULL;
  gcap_sim_allocation_t* allocation = gcap_sim_allocation_create_range(bytes, cudaMemoryTypeDevice, device);
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

static void drop_unused(void* owner, void* user) {
  gcap_sim_allocation_t* allocation = owner;
  const int* device = user;
  if (!allocation->of_graph || allocation->device != *device) return;
  if (!allocation->live && !allocation->claimed) gcap_sim_graph_memory_drop(allocation);
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
