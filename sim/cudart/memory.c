// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Device and pinned memory: allocation, stream-ordered allocation, what an address is.
//
// The idea: device memory is host memory underneath, filled with a pattern so that a read of bytes that nobody wrote
// shows. One table sorted by address holds every allocation. An allocation is claimed while its owner has not freed it,
// and live while it is mapped; the two differ for stream-ordered work that is still queued, and for allocation nodes of
// graphs, whose address is fixed at capture while each launch maps it anew.
// Invariant: the table holds exactly the allocations with references. Locking: the global mutex.
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "device.h"
#include "submit.h"

#define PATTERN 0xA5
// Only the beginning of a huge allocation is filled: enough to be noticed, cheap enough for tests of limits.
#define MAX_PATTERN_BYTES ((size_t)64 << 20)

static struct {
  sim_allocation_t** items;  // by ascending base
  size_t count;
  size_t capacity;
} table;

// Bytes in use on each device, and the share of graphs' allocation nodes.
static struct {
  size_t used;
  size_t graph_used;
  size_t graph_used_high;
  size_t graph_reserved;
  size_t graph_reserved_high;
} usage[SIM_MAX_DEVICES];

// --- The table ------------------------------------------------------------------------------------------------------

// How many allocations start at or below the address.
static size_t table_rank(const void* address) {
  size_t low = 0;
  size_t high = table.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if ((uintptr_t)table.items[middle]->base <= (uintptr_t)address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static void table_insert(sim_allocation_t* allocation) {
  size_t at = table_rank(allocation->base);
  sim_reserve(&table.items, &table.capacity, table.count + 1, sizeof(sim_allocation_t*));
  memmove(&table.items[at + 1], &table.items[at], (table.count - at) * sizeof(sim_allocation_t*));
  table.items[at] = allocation;
  table.count += 1;
}

static void table_remove(const sim_allocation_t* allocation) {
  size_t at = table_rank(allocation->base) - 1;
  table.count -= 1;
  memmove(&table.items[at], &table.items[at + 1], (table.count - at) * sizeof(sim_allocation_t*));
}

sim_allocation_t* sim_allocation_find(const void* address) {
  size_t rank = table_rank(address);
  if (rank == 0) return NULL;
  sim_allocation_t* allocation = table.items[rank - 1];
  if ((uintptr_t)address - (uintptr_t)allocation->base >= allocation->bytes) return NULL;
  return allocation->claimed || allocation->of_graph ? allocation : NULL;
}

size_t sim_allocation_count(const char* kind) {
  bool device = !kind || strcmp(kind, "device memory") == 0;
  bool pinned = !kind || strcmp(kind, "pinned memory") == 0;
  size_t count = 0;
  for (size_t i = 0; i < table.count; ++i) {
    const sim_allocation_t* allocation = table.items[i];
    if (allocation->claimed && (allocation->type == cudaMemoryTypeDevice ? device : pinned)) count += 1;
  }
  return count;
}

int sim_is_device_range(const void* p, size_t bytes) {
  sim_lock();
  const sim_allocation_t* allocation = sim_allocation_find(p);
  int inside = allocation && allocation->type == cudaMemoryTypeDevice &&
               bytes <= allocation->bytes - (size_t)((uintptr_t)p - (uintptr_t)allocation->base);
  sim_unlock();
  return inside;
}

void sim_check_accesses(const char* name, const gcap_sim_access_t* accesses, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const sim_allocation_t* allocation = sim_allocation_find(accesses[i].address);
    if (!allocation) continue;
    size_t offset = (size_t)((uintptr_t)accesses[i].address - (uintptr_t)allocation->base);
    if (accesses[i].bytes <= allocation->bytes - offset) continue;
    sim_die("%s %s %zu bytes at offset %zu of an allocation of %zu bytes", name,
            accesses[i].is_write ? "writes" : "reads", accesses[i].bytes, offset, allocation->bytes);
  }
}

// --- Life of an allocation ------------------------------------------------------------------------------------------

static void fill_with_pattern(const sim_allocation_t* allocation) {
  memset(allocation->base, PATTERN, allocation->bytes < MAX_PATTERN_BYTES ? allocation->bytes : MAX_PATTERN_BYTES);
}

// An allocation with one reference, in the table and not yet live. NULL when there is no room.
static sim_allocation_t* allocation_create(size_t bytes, enum cudaMemoryType type) {
  int device = sim_thread()->device;
  if (type == cudaMemoryTypeDevice && bytes > SIM_DEVICE_BYTES - usage[device].used) return NULL;
  void* base;
  if (posix_memalign(&base, SIM_ALIGNMENT, bytes) != 0) return NULL;
  sim_allocation_t* allocation = sim_calloc(1, sizeof(*allocation));
  allocation->refs = 1;
  allocation->base = base;
  allocation->bytes = bytes;
  allocation->type = type;
  allocation->device = device;
  table_insert(allocation);
  return allocation;
}

void sim_allocation_release(sim_allocation_t* allocation) {
  if (--allocation->refs > 0) return;
  table_remove(allocation);
  free(allocation->base);
  free(allocation);
}

static void count_graph_bytes(const sim_allocation_t* allocation) {
  int device = allocation->device;
  usage[device].graph_used += allocation->bytes;
  if (usage[device].graph_used_high < usage[device].graph_used) {
    usage[device].graph_used_high = usage[device].graph_used;
  }
  if (usage[device].graph_reserved < usage[device].graph_used) usage[device].graph_reserved = usage[device].graph_used;
  if (usage[device].graph_reserved_high < usage[device].graph_reserved) {
    usage[device].graph_reserved_high = usage[device].graph_reserved;
  }
}

void sim_allocation_begin(sim_allocation_t* allocation) {
  fill_with_pattern(allocation);
  if (allocation->live) return;  // a launch with auto-free takes over what the last one left
  allocation->live = true;
  allocation->refs += 1;
  if (allocation->type != cudaMemoryTypeDevice) return;
  usage[allocation->device].used += allocation->bytes;
  if (allocation->of_graph) count_graph_bytes(allocation);
}

void sim_allocation_end(sim_allocation_t* allocation) {
  if (!allocation->live) return;
  allocation->live = false;
  if (allocation->type == cudaMemoryTypeDevice) {
    usage[allocation->device].used -= allocation->bytes;
    if (allocation->of_graph) usage[allocation->device].graph_used -= allocation->bytes;
  }
  sim_allocation_release(allocation);
}

// --- Allocation and free --------------------------------------------------------------------------------------------

static cudaError_t allocate(void** out, size_t bytes, enum cudaMemoryType type) {
  if (!out) return cudaErrorInvalidValue;
  *out = NULL;
  if (bytes == 0) return cudaSuccess;
  sim_allocation_t* allocation = allocation_create(bytes, type);
  if (!allocation) return cudaErrorMemoryAllocation;
  allocation->claimed = true;
  sim_allocation_begin(allocation);
  *out = allocation->base;
  sim_allocation_release(allocation);  // being live holds it
  return cudaSuccess;
}

// The allocation that starts at the address and may be freed.
static sim_allocation_t* freeable(const void* address, enum cudaMemoryType type) {
  sim_allocation_t* allocation = sim_allocation_find(address);
  bool ok = allocation && allocation->claimed && allocation->base == address && allocation->type == type;
  return ok ? allocation : NULL;
}

static cudaError_t free_now(void* address, enum cudaMemoryType type) {
  if (!address) return cudaSuccess;
  sim_allocation_t* allocation = freeable(address, type);
  if (!allocation) return cudaErrorInvalidValue;
  allocation->claimed = false;
  sim_wait_for_device(allocation->device);  // the real calls synchronise too, by specification or by habit
  sim_allocation_end(allocation);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** devPtr, size_t size) {
  cudaError_t code = sim_enter(SIM_API_cudaMalloc);
  if (code == cudaSuccess) code = allocate(devPtr, size, cudaMemoryTypeDevice);
  return sim_leave(code);
}

cudaError_t cudaFree(void* devPtr) {
  cudaError_t code = sim_enter(SIM_API_cudaFree);
  if (code == cudaSuccess) code = free_now(devPtr, cudaMemoryTypeDevice);
  return sim_leave(code);
}

cudaError_t cudaHostAlloc(void** pHost, size_t size, unsigned int flags) {
  cudaError_t code = sim_enter(SIM_API_cudaHostAlloc);
  if (code == cudaSuccess && flags > (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined)) {
    code = cudaErrorInvalidValue;
  }
  if (code == cudaSuccess) code = allocate(pHost, size, cudaMemoryTypeHost);
  return sim_leave(code);
}

cudaError_t cudaMallocHost(void** ptr, size_t size) {
  cudaError_t code = sim_enter(SIM_API_cudaMallocHost);
  if (code == cudaSuccess) code = allocate(ptr, size, cudaMemoryTypeHost);
  return sim_leave(code);
}

cudaError_t cudaFreeHost(void* ptr) {
  cudaError_t code = sim_enter(SIM_API_cudaFreeHost);
  if (code == cudaSuccess) code = free_now(ptr, cudaMemoryTypeHost);
  return sim_leave(code);
}

// --- Stream-ordered allocation --------------------------------------------------------------------------------------

static sim_task_t* memory_task(sim_task_kind_t kind, sim_allocation_t* allocation) {
  sim_task_t* task = sim_task_create(kind, kind == SIM_TASK_ALLOC ? "mem alloc" : "mem free");
  task->u.allocation = allocation;
  return task;
}

// An allocation node: the address is the graph's for good, and each launch maps it.
static cudaError_t allocate_in_capture(void** out, size_t bytes, sim_stream_t* stream) {
  sim_allocation_t* allocation = allocation_create(bytes, cudaMemoryTypeDevice);
  if (!allocation) return cudaErrorMemoryAllocation;
  allocation->of_graph = true;
  *out = allocation->base;
  return sim_submit_task(stream, memory_task(SIM_TASK_ALLOC, allocation));
}

static cudaError_t allocate_async(void** out, size_t bytes, cudaStream_t handle) {
  if (!out) return cudaErrorInvalidValue;
  sim_stream_t* stream = sim_stream_get(handle);
  cudaError_t code = sim_gate_ordered(stream);
  if (code != cudaSuccess) return code;
  if (stream->member) {
    *out = NULL;
    return bytes ? allocate_in_capture(out, bytes, stream) : cudaSuccess;
  }
  code = sim_gate_unsafe();
  return code == cudaSuccess ? allocate(out, bytes, cudaMemoryTypeDevice) : code;
}

cudaError_t cudaMallocAsync(void** devPtr, size_t size, cudaStream_t hStream) {
  cudaError_t code = sim_enter(SIM_API_cudaMallocAsync);
  if (code == cudaSuccess) code = allocate_async(devPtr, size, hStream);
  return sim_leave(code);
}

static cudaError_t free_async(void* address, cudaStream_t handle) {
  sim_stream_t* stream = sim_stream_get(handle);
  cudaError_t code = sim_gate_ordered(stream);
  if (code == cudaSuccess && !stream->member) code = sim_gate_unsafe();
  if (code != cudaSuccess || !address) return code;  // freeing NULL is nothing to do, measured outside a capture
  sim_allocation_t* allocation = sim_allocation_find(address);
  if (!allocation || allocation->base != address || allocation->type != cudaMemoryTypeDevice) {
    return cudaErrorInvalidValue;
  }
  // A capture may free what a graph allocates; eager work what its caller owns.
  if (stream->member ? !allocation->of_graph : !allocation->claimed) return cudaErrorInvalidValue;
  if (!stream->member) allocation->claimed = false;
  allocation->refs += 1;
  return sim_submit_task(stream, memory_task(SIM_TASK_FREE, allocation));
}

cudaError_t cudaFreeAsync(void* devPtr, cudaStream_t hStream) {
  cudaError_t code = sim_enter(SIM_API_cudaFreeAsync);
  if (code == cudaSuccess) code = free_async(devPtr, hStream);
  return sim_leave(code);
}

// --- Questions ------------------------------------------------------------------------------------------------------

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  cudaError_t code = sim_enter(SIM_API_cudaMemGetInfo);
  if (code == cudaSuccess && (!free || !total)) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) {
    *total = SIM_DEVICE_BYTES;
    *free = SIM_DEVICE_BYTES - usage[sim_thread()->device].used;
  }
  return sim_leave(code);
}

static void describe(struct cudaPointerAttributes* attributes, const void* ptr) {
  memset(attributes, 0, sizeof(*attributes));
  const sim_allocation_t* allocation = sim_allocation_find(ptr);
  if (!allocation || !allocation->claimed) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = (void*)(uintptr_t)ptr;
    return;
  }
  attributes->type = allocation->type;
  attributes->device = allocation->device;
  attributes->devicePointer = (void*)(uintptr_t)ptr;
  if (allocation->type == cudaMemoryTypeHost) attributes->hostPointer = (void*)(uintptr_t)ptr;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* ptr) {
  cudaError_t code = sim_enter(SIM_API_cudaPointerGetAttributes);
  if (code == cudaSuccess && !attributes) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) describe(attributes, ptr);
  return sim_leave(code);
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
  cudaError_t code = sim_enter(SIM_API_cudaDeviceGraphMemTrim);
  if (code == cudaSuccess && (device < 0 || device >= sim_device_count())) code = cudaErrorInvalidDevice;
  if (code == cudaSuccess) usage[device].graph_reserved = usage[device].graph_used;
  return sim_leave(code);
}

static cudaError_t graph_memory(int device, enum cudaGraphMemAttributeType attr, void* value) {
  if (device < 0 || device >= sim_device_count()) return cudaErrorInvalidDevice;
  if (!value) return cudaErrorInvalidValue;
  uint64_t bytes = 0;
  switch (attr) {
    case cudaGraphMemAttrUsedMemCurrent: bytes = usage[device].graph_used; break;
    case cudaGraphMemAttrUsedMemHigh: bytes = usage[device].graph_used_high; break;
    case cudaGraphMemAttrReservedMemCurrent: bytes = usage[device].graph_reserved; break;
    case cudaGraphMemAttrReservedMemHigh: bytes = usage[device].graph_reserved_high; break;
    default: return cudaErrorInvalidValue;
  }
  memcpy(value, &bytes, sizeof(bytes));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr, void* value) {
  cudaError_t code = sim_enter(SIM_API_cudaDeviceGetGraphMemAttribute);
  if (code == cudaSuccess) code = graph_memory(device, attr, value);
  return sim_leave(code);
}
