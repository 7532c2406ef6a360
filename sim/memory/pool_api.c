// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Memory pools as callers see them: creation, attributes, access, a device's default and current pool.
//
// The idea: what the pool does is pool.c's; here are the arguments and their codes. A pool lives in the memory of a
// device or of the host, which is one node. It may be made with handles for other processes, but the functions that use
// those stop the program, so the devices say that they support none. Locking: the global mutex.
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/base/die.h"
#include "sim/device/device.h"
#include "sim/memory/pool.h"
#include "sim/memory/vmem.h"

static bool is_device(int device) { return device >= 0 && device < gcap_sim_device_count(); }

// Handles that a GPU under Linux gives out.
#define KNOWN_HANDLES (cudaMemHandleTypePosixFileDescriptor | cudaMemHandleTypeFabric)

// Where a pool at the location has its memory; false for a location that is none.
static bool find_space(struct cudaMemLocation location, int* out) {
  switch (location.type) {
    case cudaMemLocationTypeDevice: *out = location.id; return is_device(location.id);
    case cudaMemLocationTypeHost: *out = GCAP_SIM_PINNED_SPACE; return true;
    case cudaMemLocationTypeHostNuma: *out = GCAP_SIM_PINNED_SPACE; return location.id == 0;
    default: return false;
  }
}

static cudaError_t create(cudaMemPool_t* out, const struct cudaMemPoolProps* props) {
  if (out == NULL || props == NULL || props->allocType != cudaMemAllocationTypePinned) return cudaErrorInvalidValue;
  for (size_t i = 0; i < sizeof(props->reserved); ++i) {
    if (props->reserved[i] != 0) return cudaErrorInvalidValue;
  }
  if ((props->handleTypes & ~(unsigned int)KNOWN_HANDLES) != 0) return cudaErrorInvalidValue;
  int space;
  if (!find_space(props->location, &space)) return cudaErrorInvalidValue;
  gcap_sim_pool_t* pool = gcap_sim_pool_create(space);
  pool->max_bytes = props->maxSize;
  *out = pool->handle;
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* memPool, const struct cudaMemPoolProps* poolProps) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemPoolCreate);
  if (code == cudaSuccess) code = create(memPool, poolProps);
  return gcap_sim_leave(code);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemPoolDestroy);
  if (code == cudaSuccess) {
    gcap_sim_pool_t* pool = gcap_sim_handle_get(GCAP_SIM_POOL, memPool);
    bool is_default = pool != NULL && !gcap_sim_pool_is_on_host(pool) && pool == gcap_sim_pool_default(pool->device);
    if (pool != NULL && !is_default) {
      gcap_sim_pool_destroy(pool);
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemPoolTrimTo);
  if (code == cudaSuccess) {
    gcap_sim_pool_t* pool = gcap_sim_handle_get(GCAP_SIM_POOL, memPool);
    if (pool != NULL) {
      gcap_sim_pool_trim(pool, minBytesToKeep);
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}

// --- Attributes -----------------------------------------------------------------------------------------------------

// The switch behind an attribute; NULL when it is none.
static bool* switch_of(gcap_sim_pool_t* pool, enum cudaMemPoolAttr attr) {
  if (attr == cudaMemPoolReuseFollowEventDependencies) return &pool->follow_events;
  if (attr == cudaMemPoolReuseAllowOpportunistic) return &pool->opportunistic;
  return attr == cudaMemPoolReuseAllowInternalDependencies ? &pool->internal : NULL;
}

static cudaError_t set_bytes(gcap_sim_pool_t* pool, enum cudaMemPoolAttr attr, uint64_t bytes) {
  if (attr == cudaMemPoolAttrReleaseThreshold) {
    pool->release_threshold = bytes;
    return cudaSuccess;
  }
  // A high-water mark may be set to 0, which makes it the current value.
  if (bytes != 0) return cudaErrorInvalidValue;
  if (attr == cudaMemPoolAttrUsedMemHigh) {
    pool->used_high = pool->used;
  } else if (attr == cudaMemPoolAttrReservedMemHigh) {
    pool->reserved_high = pool->reserved;
  } else {
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

static cudaError_t set_attribute(gcap_sim_pool_t* pool, enum cudaMemPoolAttr attr, const void* value) {
  if (pool == NULL) return cudaErrorInvalidValue;
  if (value == NULL) gcap_sim_die("cudaMemPoolSetAttribute: the value is NULL: the real runtime reads it");
  bool* on = switch_of(pool, attr);
  if (on != NULL) {
    int setting;
    memcpy(&setting, value, sizeof(setting));
    *on = setting != 0;
    return cudaSuccess;
  }
  uint64_t bytes;
  memcpy(&bytes, value, sizeof(bytes));
  return set_bytes(pool, attr, bytes);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void* value) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemPoolSetAttribute);
  if (code == cudaSuccess) code = set_attribute(gcap_sim_handle_get(GCAP_SIM_POOL, memPool), attr, value);
  return gcap_sim_leave(code);
}

static cudaError_t get_attribute(gcap_sim_pool_t* pool, enum cudaMemPoolAttr attr, void* value) {
  if (pool == NULL || value == NULL) return cudaErrorInvalidValue;
  const bool* on = switch_of(pool, attr);
  if (on != NULL) {
    int setting = *on;
    memcpy(value, &setting, sizeof(setting));
    return cudaSuccess;
  }
  uint64_t bytes;
  switch (attr) {
    case cudaMemPoolAttrReleaseThreshold: bytes = pool->release_threshold; break;
    case cudaMemPoolAttrReservedMemCurrent: bytes = pool->reserved; break;
    case cudaMemPoolAttrReservedMemHigh: bytes = pool->reserved_high; break;
    case cudaMemPoolAttrUsedMemCurrent: bytes = pool->used; break;
    case cudaMemPoolAttrUsedMemHigh: bytes = pool->used_high; break;
    default: return cudaErrorInvalidValue;
  }
  memcpy(value, &bytes, sizeof(bytes));
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void* value) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemPoolGetAttribute);
  if (code == cudaSuccess) code = get_attribute(gcap_sim_handle_get(GCAP_SIM_POOL, memPool), attr, value);
  return gcap_sim_leave(code);
}

// --- Access ---------------------------------------------------------------------------------------------------------

static bool is_access(enum cudaMemAccessFlags flags) {
  return flags == cudaMemAccessFlagsProtNone || flags == cudaMemAccessFlagsProtRead ||
         flags == cudaMemAccessFlagsProtReadWrite;
}

// The pool's own device keeps its access.
static cudaError_t judge_access(const gcap_sim_pool_t* pool, const struct cudaMemAccessDesc* desc) {
  if (!is_access(desc->flags)) return cudaErrorInvalidValue;
  if (desc->location.type != cudaMemLocationTypeDevice) return cudaErrorNotSupported;
  if (!is_device(desc->location.id)) return cudaErrorInvalidDevice;
  if (desc->flags == cudaMemAccessFlagsProtRead) return cudaErrorNotSupported;
  bool taken = desc->location.id == pool->device && desc->flags == cudaMemAccessFlagsProtNone;
  return taken ? cudaErrorInvalidDevice : cudaSuccess;
}

// All or nothing.
static cudaError_t set_access(gcap_sim_pool_t* pool, const struct cudaMemAccessDesc* descs, size_t count) {
  if (pool == NULL) return cudaErrorInvalidValue;
  if (count > 0 && descs == NULL) {
    gcap_sim_die("cudaMemPoolSetAccess: the descriptors are NULL: the real runtime reads them");
  }
  for (size_t i = 0; i < count; ++i) {
    cudaError_t code = judge_access(pool, &descs[i]);
    if (code != cudaSuccess) return code;
  }
  for (size_t i = 0; i < count; ++i) pool->access[descs[i].location.id] = descs[i].flags;
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t memPool, const struct cudaMemAccessDesc* descList, size_t count) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemPoolSetAccess);
  if (code == cudaSuccess) code = set_access(gcap_sim_handle_get(GCAP_SIM_POOL, memPool), descList, count);
  return gcap_sim_leave(code);
}

// Measured: the host is told to have no access to a device's pool, nor is a part of the host that is none. Its own
// pools are its own.
static cudaError_t get_access(enum cudaMemAccessFlags* flags, const gcap_sim_pool_t* pool,
                              const struct cudaMemLocation* location) {
  if (pool == NULL || location == NULL) return cudaErrorInvalidValue;
  int space;
  const bool is_place = find_space(*location, &space);
  if (!is_place && location->type != cudaMemLocationTypeHostNuma) return cudaErrorInvalidValue;
  if (flags == NULL) gcap_sim_die("cudaMemPoolGetAccess: the place is NULL: the real runtime writes it");
  enum cudaMemAccessFlags of_host =
      gcap_sim_pool_is_on_host(pool) ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
  if (!is_place) of_host = cudaMemAccessFlagsProtNone;
  *flags = space == GCAP_SIM_PINNED_SPACE ? of_host : pool->access[space];
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags* flags, cudaMemPool_t memPool,
                                 struct cudaMemLocation* location) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemPoolGetAccess);
  if (code == cudaSuccess) code = get_access(flags, gcap_sim_handle_get(GCAP_SIM_POOL, memPool), location);
  return gcap_sim_leave(code);
}

// --- A device's pools -----------------------------------------------------------------------------------------------

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* memPool, int device) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceGetDefaultMemPool);
  if (code == cudaSuccess && memPool == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess && !is_device(device)) code = cudaErrorInvalidDevice;
  if (code == cudaSuccess) *memPool = gcap_sim_pool_default(device)->handle;
  return gcap_sim_leave(code);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* memPool, int device) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceGetMemPool);
  if (code == cudaSuccess && (memPool == NULL || !is_device(device))) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *memPool = gcap_sim_pool_current(device)->handle;
  return gcap_sim_leave(code);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceSetMemPool);
  if (code == cudaSuccess && !is_device(device)) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) {
    gcap_sim_pool_t* pool = gcap_sim_handle_get(GCAP_SIM_POOL, memPool);
    if (pool != NULL && pool->device == device) {
      gcap_sim_pool_set_current(device, pool);
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}
