// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Host memory that devices reach: pinned allocations, and the caller's own memory once registered.
//
// The idea: registered memory is an allocation whose bytes stay the caller's. Devices and the host see both kinds at
// one address. Locking: the global mutex.
#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/thread.h"
#include "sim/memory/allocation.h"
#include "sim/memory/host_range.h"
#include "sim/memory/memory.h"
#include "sim/stream/scheduler.h"

#define ALLOC_FLAGS (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined)
#define REGISTER_FLAGS \
  (cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory | cudaHostRegisterReadOnly)

static void find_combined(void* owner, void* user) {
  const gcap_sim_allocation_t* allocation = owner;
  bool combined = allocation->type == cudaMemoryTypeHost && (allocation->flags & cudaHostAllocWriteCombined) != 0;
  if (combined) *(unsigned int*)user = allocation->flags;
}

// What cudaHostGetFlags will tell. Measured: mapped always; portable only of memory that is write-combined too, and
// there the first piece of what is left decides for those that come beside it.
static unsigned int flags_told(unsigned int flags) {
  if (!(flags & cudaHostAllocWriteCombined)) return cudaHostAllocMapped;
  unsigned int told = flags | cudaHostAllocMapped;
  gcap_sim_allocation_each(find_combined, &told);
  return told;
}

static cudaError_t allocate(void** out, size_t bytes, unsigned int flags) {
  if (out == NULL || (flags & ~(unsigned int)ALLOC_FLAGS) != 0) return cudaErrorInvalidValue;
  unsigned int told = flags_told(flags);
  cudaError_t code = gcap_sim_allocate(out, bytes, cudaMemoryTypeHost);
  if (code == cudaSuccess && bytes) gcap_sim_allocation_find(*out)->flags = told;
  return code;
}

cudaError_t cudaHostAlloc(void** pHost, size_t size, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaHostAlloc);
  if (code == cudaSuccess) code = allocate(pHost, size, flags);
  return gcap_sim_leave(code);
}

cudaError_t cudaMallocHost(void** ptr, size_t size) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMallocHost);
  if (code == cudaSuccess) code = allocate(ptr, size, cudaHostAllocDefault);
  return gcap_sim_leave(code);
}

cudaError_t cudaFreeHost(void* ptr) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaFreeHost);
  const gcap_sim_allocation_t* allocation = code == cudaSuccess ? gcap_sim_allocation_find(ptr) : NULL;
  if (allocation != NULL && allocation->registered) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) code = gcap_sim_free_now(ptr, cudaMemoryTypeHost);
  return gcap_sim_leave(code);
}

// --- The caller's own memory ----------------------------------------------------------------------------------------

static cudaError_t register_memory(void* address, size_t bytes, unsigned int flags) {
  if (address == NULL || bytes == 0 || (flags & ~(unsigned int)REGISTER_FLAGS) != 0) return cudaErrorInvalidValue;
  // The memory that a program has is no memory of an I/O device.
  if ((flags & cudaHostRegisterIoMemory) || bytes > UINTPTR_MAX - (uintptr_t)address) return cudaErrorInvalidValue;
  const gcap_sim_allocation_t* other = gcap_sim_allocation_overlap(address, bytes);
  if (other != NULL) return other->registered ? cudaErrorHostMemoryAlreadyRegistered : cudaErrorInvalidValue;
  if (!gcap_sim_is_host_memory(address, bytes)) return cudaErrorInvalidValue;
  gcap_sim_allocation_t* allocation =
      gcap_sim_allocation_create(address, bytes, cudaMemoryTypeHost, gcap_sim_thread()->device);
  allocation->registered = true;
  allocation->flags = (flags & cudaHostRegisterPortable) | cudaHostRegisterMapped;
  gcap_sim_allocation_claim(allocation);
  gcap_sim_allocation_begin(allocation);
  gcap_sim_allocation_release(allocation);  // being live holds it
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* ptr, size_t size, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaHostRegister);
  if (code == cudaSuccess) code = register_memory(ptr, size, flags);
  return gcap_sim_leave(code);
}

// What was registered at exactly this address.
static gcap_sim_allocation_t* registered_at(const void* address) {
  gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(address);
  return allocation != NULL && allocation->registered && allocation->base == address ? allocation : NULL;
}

static cudaError_t unregister_memory(void* address) {
  if (address == NULL) return cudaErrorInvalidValue;
  gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(address);
  if (allocation == NULL) return cudaErrorHostMemoryNotRegistered;
  if (registered_at(address) == NULL) return cudaErrorInvalidValue;
  gcap_sim_wait_for_device(allocation->device);
  // The wait may give up the lock: another thread may have been faster.
  allocation = registered_at(address);
  if (allocation == NULL) return cudaErrorHostMemoryNotRegistered;
  gcap_sim_allocation_disclaim(allocation);
  gcap_sim_allocation_end(allocation);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* ptr) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaHostUnregister);
  if (code == cudaSuccess) code = unregister_memory(ptr);
  return gcap_sim_leave(code);
}

// --- Questions ------------------------------------------------------------------------------------------------------

// The pinned or registered memory that holds the address.
static const gcap_sim_allocation_t* host_memory(const void* address) {
  const gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(address);
  return allocation != NULL && allocation->type == cudaMemoryTypeHost ? allocation : NULL;
}

// Measured: managed memory has flags too.
static const gcap_sim_allocation_t* memory_of_host(const void* address) {
  const gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(address);
  return allocation != NULL && allocation->type != cudaMemoryTypeDevice ? allocation : NULL;
}

cudaError_t cudaHostGetDevicePointer(void** pDevice, void* pHost, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaHostGetDevicePointer);
  if (code == cudaSuccess && (pDevice == NULL || flags != 0 || host_memory(pHost) == NULL)) {
    code = cudaErrorInvalidValue;
  }
  if (code == cudaSuccess) *pDevice = pHost;
  return gcap_sim_leave(code);
}

cudaError_t cudaHostGetFlags(unsigned int* pFlags, void* pHost) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaHostGetFlags);
  if (code == cudaSuccess && (pFlags == NULL || memory_of_host(pHost) == NULL)) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *pFlags = memory_of_host(pHost)->flags;
  return gcap_sim_leave(code);
}
