// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Devices: how many there are, what they say about themselves, the versions of runtime and driver.
//
// The idea: all devices are alike and described once, as constants. Each has a legacy stream that always exists.
// Locking: the global mutex; the number of devices is read from the environment once, under it.
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "device.h"

static int num_devices;
static sim_stream_t* legacy[SIM_MAX_DEVICES];

int sim_device_count(void) {
  if (num_devices) return num_devices;
  const char* text = getenv("GCAP_SIM_DEVICES");
  long count = 1;
  if (text) {
    char* end;
    count = strtol(text, &end, 10);
    if (*end || end == text || count < 1 || count > SIM_MAX_DEVICES) {
      sim_die("GCAP_SIM_DEVICES is '%s', expected 1..%d", text, SIM_MAX_DEVICES);
    }
  }
  num_devices = (int)count;
  return num_devices;
}

sim_stream_t* sim_legacy_stream(int device) {
  if (!legacy[device]) {
    legacy[device] = sim_stream_create(device, cudaStreamDefault, 0);
    legacy[device]->legacy = true;
  }
  return legacy[device];
}

static bool is_device(int device) { return device >= 0 && device < sim_device_count(); }

cudaError_t cudaGetDeviceCount(int* count) {
  cudaError_t code = sim_enter(SIM_API_cudaGetDeviceCount);
  if (code == cudaSuccess && !count) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *count = sim_device_count();
  return sim_leave(code);
}

cudaError_t cudaSetDevice(int device) {
  cudaError_t code = sim_enter(SIM_API_cudaSetDevice);
  if (code == cudaSuccess && !is_device(device)) code = cudaErrorInvalidDevice;
  if (code == cudaSuccess) {
    sim_thread()->device = device;
    sim_thread()->uses_device = true;
  }
  return sim_leave(code);
}

cudaError_t cudaGetDevice(int* device) {
  cudaError_t code = sim_enter(SIM_API_cudaGetDevice);
  if (code == cudaSuccess && !device) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *device = sim_thread()->device;
  return sim_leave(code);
}

static void describe(struct cudaDeviceProp* prop, int device) {
  memset(prop, 0, sizeof(*prop));
  strcpy(prop->name, "gcap simulator");
  prop->totalGlobalMem = sim_budget_total(device);
  prop->sharedMemPerBlock = SIM_SHARED_BYTES;
  prop->sharedMemPerBlockOptin = SIM_SHARED_BYTES_OPTIN;
  prop->sharedMemPerMultiprocessor = SIM_SHARED_BYTES_SM;
  prop->reservedSharedMemPerBlock = SIM_SHARED_BYTES_RESERVED;
  prop->regsPerBlock = SIM_REGISTERS;
  prop->regsPerMultiprocessor = SIM_REGISTERS;
  prop->warpSize = SIM_WARP;
  prop->memPitch = 0x7fffffff;
  prop->maxThreadsPerBlock = SIM_MAX_THREADS;
  prop->maxThreadsDim[0] = SIM_MAX_BLOCK_X;
  prop->maxThreadsDim[1] = SIM_MAX_BLOCK_Y;
  prop->maxThreadsDim[2] = SIM_MAX_BLOCK_Z;
  prop->maxGridSize[0] = SIM_MAX_GRID_X;
  prop->maxGridSize[1] = SIM_MAX_GRID_YZ;
  prop->maxGridSize[2] = SIM_MAX_GRID_YZ;
  prop->totalConstMem = 65536;
  prop->major = SIM_COMPUTE_MAJOR;
  prop->minor = SIM_COMPUTE_MINOR;
  prop->textureAlignment = SIM_ALIGNMENT;
  prop->multiProcessorCount = SIM_MULTIPROCESSORS;
  prop->canMapHostMemory = 1;
  prop->concurrentKernels = 1;
  prop->texturePitchAlignment = 32;
  prop->cooperativeLaunch = 1;
  prop->clusterLaunch = 1;
  prop->hostRegisterSupported = 1;
  prop->canUseHostPointerForRegisteredMem = 1;
  prop->persistingL2CacheMaxSize = SIM_MAX_PERSISTING_BYTES;
  prop->accessPolicyMaxWindowSize = SIM_MAX_WINDOW_BYTES;
  prop->pciBusID = device + 1;
  prop->asyncEngineCount = 3;
  prop->unifiedAddressing = 1;
  prop->maxThreadsPerMultiProcessor = SIM_MAX_RESIDENT_THREADS;
  prop->maxBlocksPerMultiProcessor = SIM_MAX_RESIDENT_BLOCKS;
  prop->streamPrioritiesSupported = 1;
  prop->memoryPoolsSupported = 1;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* prop, int device) {
  cudaError_t code = sim_enter(SIM_API_cudaGetDeviceProperties);
  if (code == cudaSuccess && !prop) code = cudaErrorInvalidValue;
  if (code == cudaSuccess && !is_device(device)) code = cudaErrorInvalidDevice;
  if (code == cudaSuccess) describe(prop, device);
  return sim_leave(code);
}

static bool attribute(enum cudaDeviceAttr attr, int device, int* value) {
  static const struct {
    enum cudaDeviceAttr attr;
    int value;
  } table[] = {
      {cudaDevAttrMaxThreadsPerBlock, SIM_MAX_THREADS},
      {cudaDevAttrMaxBlockDimX, SIM_MAX_BLOCK_X},
      {cudaDevAttrMaxBlockDimY, SIM_MAX_BLOCK_Y},
      {cudaDevAttrMaxBlockDimZ, SIM_MAX_BLOCK_Z},
      {cudaDevAttrMaxGridDimX, SIM_MAX_GRID_X},
      {cudaDevAttrMaxGridDimY, SIM_MAX_GRID_YZ},
      {cudaDevAttrMaxGridDimZ, SIM_MAX_GRID_YZ},
      {cudaDevAttrMaxSharedMemoryPerBlock, SIM_SHARED_BYTES},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, SIM_SHARED_BYTES_OPTIN},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, SIM_SHARED_BYTES_SM},
      {cudaDevAttrWarpSize, 32},
      {cudaDevAttrMultiProcessorCount, SIM_MULTIPROCESSORS},
      {cudaDevAttrIntegrated, 0},
      {cudaDevAttrCanMapHostMemory, 1},
      {cudaDevAttrComputeMode, cudaComputeModeDefault},
      {cudaDevAttrConcurrentKernels, 1},
      {cudaDevAttrAsyncEngineCount, 3},
      {cudaDevAttrUnifiedAddressing, 1},
      {cudaDevAttrComputeCapabilityMajor, SIM_COMPUTE_MAJOR},
      {cudaDevAttrComputeCapabilityMinor, SIM_COMPUTE_MINOR},
      {cudaDevAttrStreamPrioritiesSupported, 1},
      {cudaDevAttrManagedMemory, 0},
      {cudaDevAttrConcurrentManagedAccess, 0},
      {cudaDevAttrHostRegisterSupported, 1},
      {cudaDevAttrHostRegisterReadOnlySupported, 0},
      {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
      {cudaDevAttrCooperativeLaunch, 1},
      {cudaDevAttrClusterLaunch, 1},
      {cudaDevAttrMaxPersistingL2CacheSize, SIM_MAX_PERSISTING_BYTES},
      {cudaDevAttrMaxAccessPolicyWindowSize, SIM_MAX_WINDOW_BYTES},
      {cudaDevAttrMaxThreadsPerMultiProcessor, SIM_MAX_RESIDENT_THREADS},
      {cudaDevAttrMaxBlocksPerMultiprocessor, SIM_MAX_RESIDENT_BLOCKS},
      {cudaDevAttrMaxRegistersPerBlock, SIM_REGISTERS},
      {cudaDevAttrMaxRegistersPerMultiprocessor, SIM_REGISTERS},
      {cudaDevAttrReservedSharedMemoryPerBlock, SIM_SHARED_BYTES_RESERVED},
      {cudaDevAttrTotalConstantMemory, 65536},
      {cudaDevAttrIpcEventSupport, 0},
      {cudaDevAttrMemoryPoolSupportedHandleTypes, 0},
      {cudaDevAttrHostMemoryPoolsSupported, 0},
      {cudaDevAttrPciDeviceId, 0},
      {cudaDevAttrPciDomainId, 0},
      {cudaDevAttrMaxPitch, 0x7fffffff},
      {cudaDevAttrPageableMemoryAccess, 0},
      {cudaDevAttrMemoryPoolsSupported, 1},
  };
  if (attr == cudaDevAttrPciBusId) {
    *value = device + 1;
    return true;
  }
  for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); ++i) {
    if (table[i].attr != attr) continue;
    *value = table[i].value;
    return true;
  }
  return false;
}

static cudaError_t get_attribute(int* value, enum cudaDeviceAttr attr, int device) {
  if (!value || (int)attr < 1 || attr >= cudaDevAttrMax) return cudaErrorInvalidValue;
  if (!is_device(device)) return cudaErrorInvalidDevice;
  if (!attribute(attr, device, value)) sim_die("cudaDeviceGetAttribute: attribute %d is not modelled", (int)attr);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attr, int device) {
  cudaError_t code = sim_enter(SIM_API_cudaDeviceGetAttribute);
  if (code == cudaSuccess) code = get_attribute(value, attr, device);
  return sim_leave(code);
}

cudaError_t cudaDeviceSynchronize(void) {
  cudaError_t code = sim_enter(SIM_API_cudaDeviceSynchronize);
  if (code == cudaSuccess) {
    sim_wait_for_device(sim_thread()->device);
    sim_pools_synchronised(0);
  }
  return sim_leave(code);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  cudaError_t code = sim_enter(SIM_API_cudaDeviceGetStreamPriorityRange);
  if (code == cudaSuccess && leastPriority) *leastPriority = SIM_LEAST_PRIORITY;
  if (code == cudaSuccess && greatestPriority) *greatestPriority = SIM_GREATEST_PRIORITY;
  return sim_leave(code);
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  cudaError_t code = sim_enter(SIM_API_cudaRuntimeGetVersion);
  if (code == cudaSuccess && !runtimeVersion) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *runtimeVersion = CUDART_VERSION;
  return sim_leave(code);
}

cudaError_t cudaDriverGetVersion(int* driverVersion) {
  cudaError_t code = sim_enter(SIM_API_cudaDriverGetVersion);
  if (code == cudaSuccess && !driverVersion) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *driverVersion = CUDART_VERSION;
  return sim_leave(code);
}
