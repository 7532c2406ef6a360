// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a program may set on a device, how a device is named on its bus, and what a reset leaves.
//
// The idea: flags, limits and the wish for a cache are kept and given back; no simulated work depends on them. A reset
// waits for the device's work and then takes away what belongs to the device: streams, events, pools, memory. Graphs
// and executables belong to the process and stay; one that names memory of before the reset must not be launched.
// Locking: the global mutex.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_profiler_api.h"
#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/device/device.h"
#include "sim/device/peer.h"
#include "sim/device/properties.h"
#include "sim/device/variable.h"
#include "sim/memory/allocation.h"
#include "sim/memory/memory.h"
#include "sim/memory/pool.h"
#include "sim/stream/event.h"
#include "sim/stream/scheduler.h"
#include "sim/stream/stream.h"

enum { kNumLimits = 7 };

// What a GPU of compute capability 9.0 starts with. The depth of device-side synchronisation is gone since 9.0.
static const size_t default_limits[kNumLimits] = {
    [cudaLimitStackSize] = 1024,
    [cudaLimitPrintfFifoSize] = (size_t)1 << 20,
    [cudaLimitMallocHeapSize] = (size_t)8 << 20,
    [cudaLimitDevRuntimePendingLaunchCount] = 2048,
    [cudaLimitMaxL2FetchGranularity] = 128,
};

static struct {
  bool has_limits;  // the limits were changed
  size_t limits[kNumLimits];
  unsigned int flags;
  enum cudaFuncCache cache;
} devices[GCAP_SIM_MAX_DEVICES];

static bool is_device(int device) { return device >= 0 && device < gcap_sim_device_count(); }

// --- Limits ---------------------------------------------------------------------------------------------------------

static cudaError_t judge_limit(enum cudaLimit limit) {
  if ((unsigned int)limit >= kNumLimits) return cudaErrorInvalidValue;
  return limit == cudaLimitDevRuntimeSyncDepth ? cudaErrorUnsupportedLimit : cudaSuccess;
}

// What a limit may be at most, and the step to which its values are rounded up, as measured.
static const struct {
  size_t most;
  size_t step;
} limit_rules[kNumLimits] = {
    [cudaLimitStackSize] = {((size_t)512 << 10) - 1, 16},  // of local memory that a thread can have
    [cudaLimitPrintfFifoSize] = {SIZE_MAX, 256},
    [cudaLimitMallocHeapSize] = {SIZE_MAX, 1},
    [cudaLimitDevRuntimePendingLaunchCount] = {SIZE_MAX, 1},
    [cudaLimitMaxL2FetchGranularity] = {128, 1},
    [cudaLimitPersistingL2CacheSize] = {GCAP_SIM_MAX_PERSISTING_BYTES, 1},
};

static cudaError_t set_limit(enum cudaLimit limit, size_t value) {
  cudaError_t code = judge_limit(limit);
  if (code == cudaSuccess && value > limit_rules[limit].most) code = cudaErrorInvalidValue;
  if (code != cudaSuccess) return code;
  size_t step = limit_rules[limit].step;
  value = value / step * step + (value % step ? step : 0);
  int device = gcap_sim_thread()->device;
  if (!devices[device].has_limits) memcpy(devices[device].limits, default_limits, sizeof(default_limits));
  devices[device].has_limits = true;
  devices[device].limits[limit] = value;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceSetLimit);
  if (code == cudaSuccess) code = set_limit(limit, value);
  return gcap_sim_leave(code);
}

cudaError_t cudaDeviceGetLimit(size_t* pValue, enum cudaLimit limit) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceGetLimit);
  if (code == cudaSuccess && pValue == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) code = judge_limit(limit);
  if (code == cudaSuccess) {
    int device = gcap_sim_thread()->device;
    *pValue = devices[device].has_limits ? devices[device].limits[limit] : default_limits[limit];
  }
  return gcap_sim_leave(code);
}

// Measured: a thread that has not used a device yet is told so.
cudaError_t cudaCtxResetPersistingL2Cache(void) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaCtxResetPersistingL2Cache);
  if (code == cudaSuccess && !gcap_sim_thread()->uses_device) code = cudaErrorDeviceUninitialized;
  return gcap_sim_leave(code);
}

// There is no cache to configure: the wish is kept.
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cacheConfig) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceSetCacheConfig);
  if (code == cudaSuccess && (unsigned int)cacheConfig > cudaFuncCachePreferEqual) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) devices[gcap_sim_thread()->device].cache = cacheConfig;
  return gcap_sim_leave(code);
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache* pCacheConfig) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceGetCacheConfig);
  if (code == cudaSuccess && pCacheConfig == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *pCacheConfig = devices[gcap_sim_thread()->device].cache;
  return gcap_sim_leave(code);
}

// The banks of compute capability 9.0 have four bytes, whatever is wished.
cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig* pConfig) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceGetSharedMemConfig);
  if (code == cudaSuccess && pConfig == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *pConfig = cudaSharedMemBankSizeFourByte;
  return gcap_sim_leave(code);
}

cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceSetSharedMemConfig);
  if (code == cudaSuccess && (unsigned int)config > cudaSharedMemBankSizeEightByte) code = cudaErrorInvalidValue;
  return gcap_sim_leave(code);
}

// No profiler looks.
cudaError_t cudaProfilerStart(void) { return gcap_sim_leave(gcap_sim_enter(GCAP_SIM_API_cudaProfilerStart)); }

cudaError_t cudaProfilerStop(void) { return gcap_sim_leave(gcap_sim_enter(GCAP_SIM_API_cudaProfilerStop)); }

// --- Flags ----------------------------------------------------------------------------------------------------------

// One way of waiting at most.
static bool are_flags(unsigned int flags) {
  unsigned int schedule = flags & cudaDeviceScheduleMask;
  return (flags & ~(unsigned int)cudaDeviceMask) == 0 && (schedule & (schedule - 1)) == 0;
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaSetDeviceFlags);
  if (code == cudaSuccess && !are_flags(flags)) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) devices[gcap_sim_thread()->device].flags = flags;
  return gcap_sim_leave(code);
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGetDeviceFlags);
  if (code == cudaSuccess && flags == NULL) code = cudaErrorInvalidValue;
  // Mapping host memory is always possible, and said so whether or not it was asked for.
  if (code == cudaSuccess) *flags = devices[gcap_sim_thread()->device].flags | cudaDeviceMapHost;
  return gcap_sim_leave(code);
}

cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaInitDevice);
  if (code == cudaSuccess && !is_device(device)) code = cudaErrorInvalidDevice;
  // Measured: other bits of `flags` mean nothing.
  bool given = (flags & cudaInitDeviceFlagsAreValid) != 0;
  if (code == cudaSuccess && given && !are_flags(deviceFlags)) code = cudaErrorInvalidValue;
  if (code == cudaSuccess && given) devices[device].flags = deviceFlags;
  return gcap_sim_leave(code);
}

// --- Names on the bus -----------------------------------------------------------------------------------------------

static void bus_id(char out[16], int device) {
  snprintf(out, 16, "0000:%02X:00.0", (unsigned int)(unsigned char)(device + 1));
}

cudaError_t cudaDeviceGetPCIBusId(char* pciBusId, int len, int device) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceGetPCIBusId);
  if (code == cudaSuccess && !is_device(device)) code = cudaErrorInvalidDevice;
  if (code == cudaSuccess && (pciBusId == NULL || len < 1)) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) {
    char id[16];
    bus_id(id, device);
    // Measured: what is too long for the place is cut, and refused.
    if (snprintf(pciBusId, (size_t)len, "%s", id) >= len) code = cudaErrorInvalidValue;
  }
  return gcap_sim_leave(code);
}

// The domain and the function may be left out. A device that cannot be there gets the bus 0.
static bool parse_bus_id(const char* text, unsigned int* bus) {
  unsigned int domain = 0;
  unsigned int slot = 0;
  int end = 0;
  if (sscanf(text, "%x:%x:%x%n", &domain, bus, &slot, &end) != 3) {
    domain = 0;
    if (sscanf(text, "%x:%x%n", bus, &slot, &end) != 2) return false;
  }
  if (domain != 0 || slot != 0) *bus = 0;
  return text[end] == '\0' || strcmp(text + end, ".0") == 0;
}

static cudaError_t by_bus_id(int* out, const char* text) {
  unsigned int bus;
  if (out == NULL || text == NULL || !parse_bus_id(text, &bus)) return cudaErrorInvalidValue;
  if (bus < 1 || bus > (unsigned int)gcap_sim_device_count()) return cudaErrorInvalidDevice;
  *out = (int)bus - 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* pciBusId) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceGetByPCIBusId);
  if (code == cudaSuccess) code = by_bus_id(device, pciBusId);
  return gcap_sim_leave(code);
}

// --- Reset ----------------------------------------------------------------------------------------------------------

static void destroy_stream(void* object, void* user) {
  gcap_sim_stream_t* stream = object;
  if (stream->device == *(const int*)user) gcap_sim_stream_destroy(stream);
}

static void destroy_event(void* object, void* user) {
  gcap_sim_event_t* event = object;
  if (event->device == *(const int*)user) gcap_sim_event_destroy(event);
}

static void destroy_pool(void* object, void* user) {
  gcap_sim_pool_t* pool = object;
  int device = *(const int*)user;
  if (pool->device == device && pool != gcap_sim_pool_default(device)) gcap_sim_pool_destroy(pool);
}

typedef struct doomed {
  int device;
  gcap_sim_allocation_t** items;
  size_t count;
  size_t capacity;
} doomed_t;

static void collect(void* object, void* user) {
  gcap_sim_allocation_t* allocation = object;
  doomed_t* doomed = user;
  if (allocation->device != doomed->device || !allocation->claimed) return;
  gcap_sim_reserve(&doomed->items, &doomed->capacity, doomed->count + 1, sizeof(gcap_sim_allocation_t*));
  ++allocation->refs;
  doomed->items[doomed->count++] = allocation;
}

static void free_memory(int device) {
  doomed_t doomed = {.device = device};
  gcap_sim_allocation_each(collect, &doomed);
  for (size_t i = 0; i < doomed.count; ++i) {
    // A free may give up the lock while it waits, and another thread use that for a free of its own.
    if (doomed.items[i]->claimed) gcap_sim_free_allocation(doomed.items[i]);
    gcap_sim_allocation_release(doomed.items[i]);
  }
  free(doomed.items);
}

static void reset(int device) {
  gcap_sim_wait_for_device(device);
  gcap_sim_handle_each(GCAP_SIM_STREAM, destroy_stream, &device);
  gcap_sim_handle_each(GCAP_SIM_EVENT, destroy_event, &device);
  free_memory(device);
  gcap_sim_handle_each(GCAP_SIM_POOL, destroy_pool, &device);
  gcap_sim_pools_release_unused(device);
  gcap_sim_peer_reset(device);
  gcap_sim_variables_reset(device);
  memset(&devices[device], 0, sizeof(devices[device]));
}

cudaError_t cudaDeviceReset(void) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceReset);
  if (code == cudaSuccess) reset(gcap_sim_thread()->device);
  return gcap_sim_leave(code);
}
