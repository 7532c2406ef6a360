// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Allocation and free, at once or in stream order, and what an address is.
//
// The idea: cudaMalloc and pinned memory begin at the call and end at the call. A stream-ordered free takes the
// allocation from the caller at once and ends it in the order of its stream; in a capture, allocation and free are
// nodes. Locking: the global mutex.
#include "sim/memory/memory.h"

#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/api/log.h"
#include "sim/api/submit.h"
#include "sim/base/die.h"
#include "sim/base/lock.h"
#include "sim/base/thread.h"
#include "sim/bridge/lifetime.h"
#include "sim/graph/graph_params.h"
#include "sim/memory/allocation.h"
#include "sim/memory/budget.h"
#include "sim/memory/pool.h"
#include "sim/memory/reserve.h"
#include "sim/stream/capture.h"
#include "sim/stream/mark.h"
#include "sim/stream/scheduler.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

// --- Allocation and free --------------------------------------------------------------------------------------------

// Takes the budget too, for device memory.
static gcap_sim_allocation_t* create(size_t bytes, enum cudaMemoryType type) {
  int device = gcap_sim_thread()->device;
  bool counted = type == cudaMemoryTypeDevice;
  if (counted && !gcap_sim_budget_take(device, bytes)) return NULL;
  gcap_sim_allocation_t* allocation = gcap_sim_allocation_create_range(bytes, type, device);
  if (counted && allocation == NULL) gcap_sim_budget_give_back(device, bytes);
  if (counted && allocation != NULL) allocation->budget_bytes = bytes;
  return allocation;
}

cudaError_t gcap_sim_allocate(void** out, size_t bytes, enum cudaMemoryType type) {
  gcap_sim_note_argument("%zu bytes", bytes);
  if (out == NULL) return cudaErrorInvalidValue;
  *out = NULL;
  if (bytes == 0) return cudaSuccess;
  gcap_sim_allocation_t* allocation = create(bytes, type);
  if (allocation == NULL) return cudaErrorMemoryAllocation;
  gcap_sim_allocation_claim(allocation);
  gcap_sim_allocation_begin(allocation);
  *out = allocation->base;
  gcap_sim_allocation_release(allocation);  // being live holds it
  return cudaSuccess;
}

// The allocation that starts at the address and may be freed as memory of this type. What comes from a pool of the host
// is freed as the memory of other pools is, and managed memory as that of devices.
static gcap_sim_allocation_t* freeable(const void* address, enum cudaMemoryType type) {
  gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(address);
  bool ok = allocation != NULL && allocation->claimed && !allocation->registered && allocation->base == address;
  if (!ok) return NULL;
  bool as_device = allocation->block != NULL || allocation->type == cudaMemoryTypeManaged;
  return type == (as_device ? cudaMemoryTypeDevice : allocation->type) ? allocation : NULL;
}

static cudaError_t refuse_free(const void* address) {
  gcap_sim_memory_free_refused(address);
  return cudaErrorInvalidValue;
}

void gcap_sim_free_allocation(gcap_sim_allocation_t* allocation) {
  gcap_sim_block_t* block = allocation->block;
  gcap_sim_allocation_disclaim(allocation);
  // The real calls synchronise too, by specification or by habit; not for memory of a pool, which is taken to be idle.
  if (block == NULL || !allocation->live) gcap_sim_wait_for_device(allocation->device);
  gcap_sim_allocation_end(allocation);
  if (block != NULL) gcap_sim_pool_free_now(block);
}

cudaError_t gcap_sim_free_now(void* address, enum cudaMemoryType type) {
  if (address == NULL) return cudaSuccess;
  gcap_sim_allocation_t* allocation = freeable(address, type);
  if (allocation == NULL) return refuse_free(address);
  gcap_sim_free_allocation(allocation);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** devPtr, size_t size) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMalloc);
  // Measured: what allocates nothing disturbs no capture.
  if (code == cudaSuccess && devPtr != NULL && size) code = gcap_sim_gate_unsafe();
  if (code == cudaSuccess) code = gcap_sim_allocate(devPtr, size, cudaMemoryTypeDevice);
  return gcap_sim_leave(code);
}

cudaError_t cudaFree(void* devPtr) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaFree);
  if (code == cudaSuccess) code = gcap_sim_free_now(devPtr, cudaMemoryTypeDevice);
  return gcap_sim_leave(code);
}

// --- Stream-ordered allocation --------------------------------------------------------------------------------------

static gcap_sim_task_t* memory_task(gcap_sim_task_kind_t kind, gcap_sim_allocation_t* allocation) {
  gcap_sim_task_t* task = gcap_sim_task_create(kind, kind == GCAP_SIM_TASK_ALLOC ? "mem alloc" : "mem free");
  task->u.allocation = allocation;
  return task;
}

static cudaError_t allocate_in_capture(void** out, size_t bytes, int device, gcap_sim_stream_t* stream) {
  cudaError_t code;
  const gcap_sim_edges_t* deps = gcap_sim_member_deps(stream->member);
  gcap_sim_task_t* task =
      gcap_sim_graph_alloc_task(stream->member->capture->graph, deps->items, deps->count, bytes, device, &code);
  if (task == NULL) return code;
  void* address = task->u.allocation->base;
  code = gcap_sim_submit_task(stream, task);
  if (code == cudaSuccess) *out = address;
  return code;
}

// The allocation begins in the order of its stream: at once, when nothing is in its way.
static cudaError_t allocate_from_pool(void** out, size_t bytes, gcap_sim_pool_t* pool, gcap_sim_stream_t* stream) {
  bool pending;
  gcap_sim_mark_t* wait;
  gcap_sim_block_t* block = gcap_sim_pool_take(pool, bytes, stream, &pending, &wait);
  if (block == NULL) return cudaErrorMemoryAllocation;
  bool on_host = gcap_sim_pool_is_on_host(pool);
  gcap_sim_allocation_t* allocation =
      gcap_sim_allocation_create(gcap_sim_block_base(block), bytes, on_host ? cudaMemoryTypeHost : cudaMemoryTypeDevice,
                                 on_host ? stream->device : pool->device);
  allocation->block = block;
  gcap_sim_allocation_claim(allocation);
  *out = allocation->base;
  gcap_sim_task_t* task = memory_task(GCAP_SIM_TASK_ALLOC, allocation);
  if (pending || stream->head != NULL) {
    gcap_sim_enqueue(stream, task, NULL, wait);
  } else {
    gcap_sim_run_at_once(stream, task);
    gcap_sim_task_release(task);
  }
  gcap_sim_mark_release(wait);
  return cudaSuccess;
}

// For a stream that was let in. Without a pool, the stream's device says which one.
static cudaError_t allocate_on(void** out, size_t bytes, gcap_sim_pool_t* pool, gcap_sim_stream_t* stream) {
  *out = NULL;
  if (bytes == 0) return cudaSuccess;
  if (pool == NULL) pool = gcap_sim_pool_current(stream->device);
  if (stream->member != NULL && gcap_sim_pool_is_on_host(pool)) {
    gcap_sim_die("%s: a graph with memory of the host is not modelled", gcap_sim_thread()->call);
  }
  if (stream->member != NULL) return allocate_in_capture(out, bytes, pool->device, stream);
  return allocate_from_pool(out, bytes, pool, stream);
}

static cudaError_t allocate_async(void** out, size_t bytes, gcap_sim_pool_t* pool, cudaStream_t handle) {
  gcap_sim_note_argument("%zu bytes", bytes);
  if (out == NULL) return cudaErrorInvalidValue;
  gcap_sim_stream_t* stream = gcap_sim_stream_get(handle);
  cudaError_t code = gcap_sim_gate_ordered(stream);
  if (code == cudaSuccess && stream->member == NULL) code = gcap_sim_gate_unsafe();
  return code == cudaSuccess ? allocate_on(out, bytes, pool, stream) : code;
}

cudaError_t cudaMallocAsync(void** devPtr, size_t size, cudaStream_t hStream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMallocAsync);
  if (code == cudaSuccess) code = allocate_async(devPtr, size, NULL, hStream);
  return gcap_sim_leave(code);
}

cudaError_t cudaMallocFromPoolAsync(void** ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMallocFromPoolAsync);
  if (code == cudaSuccess) {
    gcap_sim_pool_t* pool = gcap_sim_handle_get(GCAP_SIM_POOL, memPool);
    code = pool != NULL ? allocate_async(ptr, size, pool, stream) : cudaErrorInvalidValue;
  }
  return gcap_sim_leave(code);
}

static cudaError_t free_on(void* address, gcap_sim_stream_t* stream) {
  cudaError_t code;
  if (stream->member != NULL) {
    gcap_sim_task_t* task = gcap_sim_graph_free_task(stream->member->capture->graph, address, &code);
    return task != NULL ? gcap_sim_submit_task(stream, task) : code;
  }
  gcap_sim_allocation_t* allocation = freeable(address, cudaMemoryTypeDevice);
  if (allocation == NULL) return refuse_free(address);
  if (allocation->type == cudaMemoryTypeManaged) return cudaErrorNotSupported;
  gcap_sim_memory_free_queued(allocation->memory);
  ++allocation->refs;
  gcap_sim_task_t* task = memory_task(GCAP_SIM_TASK_FREE, allocation);
  gcap_sim_block_t* block = allocation->block;
  gcap_sim_allocation_disclaim(allocation);
  gcap_sim_enqueue(stream, task, NULL, NULL);
  if (block != NULL) gcap_sim_pool_free_later(block, stream, gcap_sim_stream_last_mark(stream));
  return cudaSuccess;
}

static cudaError_t free_async(void* address, cudaStream_t handle) {
  gcap_sim_stream_t* stream = gcap_sim_stream_get(handle);
  cudaError_t code = gcap_sim_gate_ordered(stream);
  if (code == cudaSuccess && stream->member == NULL) code = gcap_sim_gate_unsafe();
  if (code != cudaSuccess || address == NULL) return code;  // freeing NULL is nothing to do, measured outside a capture
  return free_on(address, stream);
}

cudaError_t cudaFreeAsync(void* devPtr, cudaStream_t hStream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaFreeAsync);
  if (code == cudaSuccess) code = free_async(devPtr, hStream);
  return gcap_sim_leave(code);
}

// --- Libraries ------------------------------------------------------------------------------------------------------

cudaError_t gcap_sim_library_allocate(void** out, size_t bytes, cudaStream_t handle) {
  gcap_sim_lock();
  gcap_sim_stream_t* stream = gcap_sim_stream_get(handle);
  cudaError_t code = gcap_sim_gate_ordered(stream);
  if (code == cudaSuccess) code = allocate_on(out, bytes, NULL, stream);
  gcap_sim_unlock();
  return code;
}

cudaError_t gcap_sim_library_free(void* address, cudaStream_t handle) {
  gcap_sim_lock();
  gcap_sim_stream_t* stream = gcap_sim_stream_get(handle);
  cudaError_t code = gcap_sim_gate_ordered(stream);
  if (code == cudaSuccess) code = free_on(address, stream);
  gcap_sim_unlock();
  return code;
}

// --- Questions ------------------------------------------------------------------------------------------------------

static void describe(struct cudaPointerAttributes* attributes, const void* ptr) {
  memset(attributes, 0, sizeof(*attributes));
  const gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(ptr);
  if (allocation == NULL || !(allocation->claimed || allocation->of_symbol)) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = gcap_sim_is_reserved(ptr) ? NULL : (void*)(uintptr_t)ptr;  // measured
    return;
  }
  attributes->type = allocation->type;
  attributes->device = allocation->device;
  attributes->devicePointer = (void*)(uintptr_t)ptr;
  if (allocation->type != cudaMemoryTypeDevice) attributes->hostPointer = (void*)(uintptr_t)ptr;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* ptr) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaPointerGetAttributes);
  if (code == cudaSuccess && attributes == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) describe(attributes, ptr);
  return gcap_sim_leave(code);
}
