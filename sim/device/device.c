// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Devices: how many there are, what they say about themselves, the versions of runtime and driver.
//
// The idea: all devices are alike and described once, as constants. Each has a legacy stream that always exists.
// Locking: the global mutex; the number of devices is read from the environment once, under it.
#include "sim/device/device.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/die.h"
#include "sim/base/thread.h"
#include "sim/device/properties.h"
#include "sim/memory/budget.h"
#include "sim/memory/pool.h"
#include "sim/stream/scheduler.h"
#include "sim/stream/stream.h"

static int num_devices;
static gcap_sim_stream_t* legacy[GCAP_SIM_MAX_DEVICES];

int gcap_sim_device_count(void) {
  if (num_devices) return num_devices;
  const char* text = getenv("GCAP_SIM_DEVICES");
  long count = 1;
  if (text != NULL) {
    char* end;
    count = strtol(text, &end, 10);
    if (*end || end == text || count < 1 || count > GCAP_SIM_MAX_DEVICES) {
      gcap_sim_die_of_setting("GCAP_SIM_DEVICES is '%s', expected 1..%d", text, GCAP_SIM_MAX_DEVICES);
    }
  }
  num_devices = (int)count;
  return num_devices;
}

gcap_sim_stream_t* gcap_sim_legacy_stream(int device) {
  if (legacy[device] == NULL) {
    legacy[device] = gcap_sim_stream_create(device, cudaStreamDefault, 0);
    legacy[device]->legacy = true;
  }
  return legacy[device];
}

static bool is_device(int device) { return device >= 0 && device < gcap_sim_device_count(); }

cudaError_t cudaGetDeviceCount(int* count) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGetDeviceCount);
  if (code == cudaSuccess && count == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *count = gcap_sim_device_count();
  return gcap_sim_leave(code);
}

cudaError_t cudaSetDevice(int device) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaSetDevice);
  if (code == cudaSuccess && !is_device(device)) code = cudaErrorInvalidDevice;
  if (code == cudaSuccess) {
    gcap_sim_thread()->device = device;
    gcap_sim_thread()->uses_device = true;
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGetDevice(int* device) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGetDevice);
  if (code == cudaSuccess && device == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *device = gcap_sim_thread()->device;
  return gcap_sim_leave(code);
}

static void describe(struct cudaDeviceProp* prop, int device) {
  memset(prop, 0, sizeof(*prop));
  strcpy(prop->name, "gcap simulator");
  prop->totalGlobalMem = gcap_sim_budget_total(device);
  prop->sharedMemPerBlock = GCAP_SIM_SHARED_BYTES;
  prop->sharedMemPerBlockOptin = GCAP_SIM_SHARED_BYTES_OPTIN;
  prop->sharedMemPerMultiprocessor = GCAP_SIM_SHARED_BYTES_SM;
  prop->reservedSharedMemPerBlock = GCAP_SIM_SHARED_BYTES_RESERVED;
  prop->regsPerBlock = GCAP_SIM_REGISTERS;
  prop->regsPerMultiprocessor = GCAP_SIM_REGISTERS;
  prop->warpSize = GCAP_SIM_WARP;
  prop->memPitch = 0x7fffffff;
  prop->maxThreadsPerBlock = GCAP_SIM_MAX_THREADS;
  prop->maxThreadsDim[0] = GCAP_SIM_MAX_BLOCK_X;
  prop->maxThreadsDim[1] = GCAP_SIM_MAX_BLOCK_Y;
  prop->maxThreadsDim[2] = GCAP_SIM_MAX_BLOCK_Z;
  prop->maxGridSize[0] = GCAP_SIM_MAX_GRID_X;
  prop->maxGridSize[1] = GCAP_SIM_MAX_GRID_YZ;
  prop->maxGridSize[2] = GCAP_SIM_MAX_GRID_YZ;
  prop->totalConstMem = 65536;
  prop->major = GCAP_SIM_COMPUTE_MAJOR;
  prop->minor = GCAP_SIM_COMPUTE_MINOR;
  prop->textureAlignment = GCAP_SIM_ALIGNMENT;
  prop->multiProcessorCount = GCAP_SIM_MULTIPROCESSORS;
  prop->canMapHostMemory = 1;
  prop->concurrentKernels = 1;
  prop->texturePitchAlignment = 32;
  prop->cooperativeLaunch = 1;
  prop->clusterLaunch = 1;
  prop->hostRegisterSupported = 1;
  prop->canUseHostPointerForRegisteredMem = 1;
  prop->persistingL2CacheMaxSize = GCAP_SIM_MAX_PERSISTING_BYTES;
  prop->accessPolicyMaxWindowSize = GCAP_SIM_MAX_WINDOW_BYTES;
  prop->pciBusID = device + 1;
  prop->asyncEngineCount = 3;
  prop->unifiedAddressing = 1;
  prop->maxThreadsPerMultiProcessor = GCAP_SIM_MAX_RESIDENT_THREADS;
  prop->maxBlocksPerMultiProcessor = GCAP_SIM_MAX_RESIDENT_BLOCKS;
  prop->streamPrioritiesSupported = 1;
  prop->memoryPoolsSupported = 1;
  prop->managedMemory = 1;
  prop->concurrentManagedAccess = 1;
  prop->surfaceAlignment = GCAP_SIM_ALIGNMENT;
  prop->ECCEnabled = 1;
  prop->memoryBusWidth = GCAP_SIM_BUS_BITS;
  prop->l2CacheSize = GCAP_SIM_L2_BYTES;
  prop->globalL1CacheSupported = 1;
  prop->localL1CacheSupported = 1;
  prop->computePreemptionSupported = 1;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* prop, int device) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGetDeviceProperties);
  if (code == cudaSuccess && prop == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess && !is_device(device)) code = cudaErrorInvalidDevice;
  if (code == cudaSuccess) describe(prop, device);
  return gcap_sim_leave(code);
}

// The first device is as good as any other.
cudaError_t cudaChooseDevice(int* device, const struct cudaDeviceProp* prop) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaChooseDevice);
  if (code == cudaSuccess && (device == NULL || prop == NULL)) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *device = 0;
  return gcap_sim_leave(code);
}

static bool attribute(enum cudaDeviceAttr attr, int device, int* value) {
  static const struct {
    enum cudaDeviceAttr attr;
    int value;
  } table[] = {
      {cudaDevAttrMaxThreadsPerBlock, GCAP_SIM_MAX_THREADS},
      {cudaDevAttrMaxBlockDimX, GCAP_SIM_MAX_BLOCK_X},
      {cudaDevAttrMaxBlockDimY, GCAP_SIM_MAX_BLOCK_Y},
      {cudaDevAttrMaxBlockDimZ, GCAP_SIM_MAX_BLOCK_Z},
      {cudaDevAttrMaxGridDimX, GCAP_SIM_MAX_GRID_X},
      {cudaDevAttrMaxGridDimY, GCAP_SIM_MAX_GRID_YZ},
      {cudaDevAttrMaxGridDimZ, GCAP_SIM_MAX_GRID_YZ},
      {cudaDevAttrMaxSharedMemoryPerBlock, GCAP_SIM_SHARED_BYTES},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, GCAP_SIM_SHARED_BYTES_OPTIN},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, GCAP_SIM_SHARED_BYTES_SM},
      {cudaDevAttrWarpSize, 32},
      {cudaDevAttrMultiProcessorCount, GCAP_SIM_MULTIPROCESSORS},
      {cudaDevAttrClockRate, GCAP_SIM_CLOCK_KHZ},
      {cudaDevAttrTextureAlignment, GCAP_SIM_ALIGNMENT},
      {cudaDevAttrGpuOverlap, 1},
      {cudaDevAttrKernelExecTimeout, 0},
      {cudaDevAttrSurfaceAlignment, GCAP_SIM_ALIGNMENT},
      {cudaDevAttrEccEnabled, 1},
      {cudaDevAttrTccDriver, 0},
      {cudaDevAttrMemoryClockRate, GCAP_SIM_MEMORY_CLOCK_KHZ},
      {cudaDevAttrGlobalMemoryBusWidth, GCAP_SIM_BUS_BITS},
      {cudaDevAttrL2CacheSize, GCAP_SIM_L2_BYTES},
      {cudaDevAttrTexturePitchAlignment, 32},
      {cudaDevAttrGlobalL1CacheSupported, 1},
      {cudaDevAttrLocalL1CacheSupported, 1},
      {cudaDevAttrIsMultiGpuBoard, 0},
      {cudaDevAttrMultiGpuBoardGroupID, 0},
      {cudaDevAttrHostNativeAtomicSupported, 0},
      {cudaDevAttrSingleToDoublePrecisionPerfRatio, 2},
      {cudaDevAttrComputePreemptionSupported, 1},
      {cudaDevAttrReserved92, 0},
      {cudaDevAttrReserved93, 0},
      {cudaDevAttrCanFlushRemoteWrites, 0},
      {cudaDevAttrMemSyncDomainCount, 4},
      {cudaDevAttrNumaConfig, 0},
      {cudaDevAttrNumaId, -1},
      {cudaDevAttrMpsEnabled, 0},
      {cudaDevAttrHostNumaId, 0},
      {cudaDevAttrD3D12CigSupported, 0},
      {cudaDevAttrVulkanCigSupported, 0},
      {cudaDevAttrHostNumaMultinodeIpcSupported, 0},
      {cudaDevAttrOnlyPartialHostNativeAtomicSupported, 0},
      // Of arrays, textures and surfaces there are none; programs that ask for all attributes are told what a GPU of
      // this compute capability has (CUDA C++ Programming Guide, technical specifications).
      {cudaDevAttrMaxTexture1DWidth, 131072},
      {cudaDevAttrMaxTexture2DWidth, 131072},
      {cudaDevAttrMaxTexture2DHeight, 65536},
      {cudaDevAttrMaxTexture3DWidth, 16384},
      {cudaDevAttrMaxTexture3DHeight, 16384},
      {cudaDevAttrMaxTexture3DDepth, 16384},
      {cudaDevAttrMaxTexture2DLayeredWidth, 32768},
      {cudaDevAttrMaxTexture2DLayeredHeight, 32768},
      {cudaDevAttrMaxTexture2DLayeredLayers, 2048},
      {cudaDevAttrMaxTexture1DLayeredWidth, 32768},
      {cudaDevAttrMaxTexture1DLayeredLayers, 2048},
      {cudaDevAttrMaxTexture2DGatherWidth, 32768},
      {cudaDevAttrMaxTexture2DGatherHeight, 32768},
      {cudaDevAttrMaxTexture3DWidthAlt, 8192},
      {cudaDevAttrMaxTexture3DHeightAlt, 8192},
      {cudaDevAttrMaxTexture3DDepthAlt, 32768},
      {cudaDevAttrMaxTextureCubemapWidth, 32768},
      {cudaDevAttrMaxTextureCubemapLayeredWidth, 32768},
      {cudaDevAttrMaxTextureCubemapLayeredLayers, 2046},
      {cudaDevAttrMaxSurface1DWidth, 32768},
      {cudaDevAttrMaxSurface2DWidth, 131072},
      {cudaDevAttrMaxSurface2DHeight, 65536},
      {cudaDevAttrMaxSurface3DWidth, 16384},
      {cudaDevAttrMaxSurface3DHeight, 16384},
      {cudaDevAttrMaxSurface3DDepth, 16384},
      {cudaDevAttrMaxSurface1DLayeredWidth, 32768},
      {cudaDevAttrMaxSurface1DLayeredLayers, 2048},
      {cudaDevAttrMaxSurface2DLayeredWidth, 32768},
      {cudaDevAttrMaxSurface2DLayeredHeight, 32768},
      {cudaDevAttrMaxSurface2DLayeredLayers, 2048},
      {cudaDevAttrMaxSurfaceCubemapWidth, 32768},
      {cudaDevAttrMaxSurfaceCubemapLayeredWidth, 32768},
      {cudaDevAttrMaxSurfaceCubemapLayeredLayers, 2046},
      {cudaDevAttrMaxTexture1DLinearWidth, 1 << 28},
      {cudaDevAttrMaxTexture2DLinearWidth, 131072},
      {cudaDevAttrMaxTexture2DLinearHeight, 65000},
      {cudaDevAttrMaxTexture2DLinearPitch, 2097120},
      {cudaDevAttrMaxTexture2DMipmappedWidth, 32768},
      {cudaDevAttrMaxTexture2DMipmappedHeight, 32768},
      {cudaDevAttrMaxTexture1DMipmappedWidth, 32768},
      // What is not modelled, devices do not have.
      {cudaDevAttrSparseCudaArraySupported, 0},
      {cudaDevAttrTimelineSemaphoreInteropSupported, 0},
      {cudaDevAttrGPUDirectRDMASupported, 0},
      {cudaDevAttrGPUDirectRDMAFlushWritesOptions, 0},
      {cudaDevAttrGPUDirectRDMAWritesOrdering, 0},
      {cudaDevAttrDeferredMappingCudaArraySupported, 0},
      {cudaDevAttrIntegrated, 0},
      {cudaDevAttrCanMapHostMemory, 1},
      {cudaDevAttrComputeMode, cudaComputeModeDefault},
      {cudaDevAttrConcurrentKernels, 1},
      {cudaDevAttrAsyncEngineCount, 3},
      {cudaDevAttrUnifiedAddressing, 1},
      {cudaDevAttrComputeCapabilityMajor, GCAP_SIM_COMPUTE_MAJOR},
      {cudaDevAttrComputeCapabilityMinor, GCAP_SIM_COMPUTE_MINOR},
      {cudaDevAttrStreamPrioritiesSupported, 1},
      {cudaDevAttrManagedMemory, 1},
      {cudaDevAttrConcurrentManagedAccess, 1},
      {cudaDevAttrHostRegisterSupported, 1},
      {cudaDevAttrHostRegisterReadOnlySupported, 0},
      {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
      {cudaDevAttrCooperativeLaunch, 1},
      {cudaDevAttrClusterLaunch, 1},
      {cudaDevAttrMaxPersistingL2CacheSize, GCAP_SIM_MAX_PERSISTING_BYTES},
      {cudaDevAttrMaxAccessPolicyWindowSize, GCAP_SIM_MAX_WINDOW_BYTES},
      {cudaDevAttrMaxThreadsPerMultiProcessor, GCAP_SIM_MAX_RESIDENT_THREADS},
      {cudaDevAttrMaxBlocksPerMultiprocessor, GCAP_SIM_MAX_RESIDENT_BLOCKS},
      {cudaDevAttrMaxRegistersPerBlock, GCAP_SIM_REGISTERS},
      {cudaDevAttrMaxRegistersPerMultiprocessor, GCAP_SIM_REGISTERS},
      {cudaDevAttrReservedSharedMemoryPerBlock, GCAP_SIM_SHARED_BYTES_RESERVED},
      {cudaDevAttrTotalConstantMemory, 65536},
      {cudaDevAttrIpcEventSupport, 0},
      {cudaDevAttrMemoryPoolSupportedHandleTypes, 0},
      {cudaDevAttrHostMemoryPoolsSupported, 1},
      {cudaDevAttrHostNumaMemoryPoolsSupported, 1},
      {cudaDevAttrPciDeviceId, 0},
      {cudaDevAttrPciDomainId, 0},
      {cudaDevAttrMaxPitch, 0x7fffffff},
      {cudaDevAttrPageableMemoryAccess, 0},
      {cudaDevAttrMemoryPoolsSupported, 1},
      // Without a name by now: memory operations of streams, and cooperative launches of several devices, as measured.
      {cudaDevAttrReserved94, 0},
      {cudaDevAttrReserved96, 1},
      {cudaDevAttrPageableMemoryAccessUsesHostPageTables, 0},
      {cudaDevAttrDirectManagedMemAccessFromHost, 0},
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
  if (value == NULL || (int)attr < 1 || attr >= cudaDevAttrMax) return cudaErrorInvalidValue;
  if (!is_device(device)) return cudaErrorInvalidDevice;
  if (!attribute(attr, device, value)) gcap_sim_die("cudaDeviceGetAttribute: attribute %d is not modelled", (int)attr);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attr, int device) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceGetAttribute);
  if (code == cudaSuccess) code = get_attribute(value, attr, device);
  return gcap_sim_leave(code);
}

cudaError_t cudaDeviceSynchronize(void) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceSynchronize);
  if (code == cudaSuccess) {
    gcap_sim_wait_for_device(gcap_sim_thread()->device);
    gcap_sim_pools_synchronised(0);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDeviceGetStreamPriorityRange);
  if (code == cudaSuccess && leastPriority != NULL) *leastPriority = GCAP_SIM_LEAST_PRIORITY;
  if (code == cudaSuccess && greatestPriority != NULL) *greatestPriority = GCAP_SIM_GREATEST_PRIORITY;
  return gcap_sim_leave(code);
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaRuntimeGetVersion);
  if (code == cudaSuccess && runtimeVersion == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *runtimeVersion = CUDART_VERSION;
  return gcap_sim_leave(code);
}

cudaError_t cudaDriverGetVersion(int* driverVersion) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaDriverGetVersion);
  if (code == cudaSuccess && driverVersion == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *driverVersion = CUDART_VERSION;
  return gcap_sim_leave(code);
}

// What an element of an array would be: a value, of which nothing is asked.
struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind f) {
  (void)gcap_sim_enter(GCAP_SIM_API_cudaCreateChannelDesc);
  (void)gcap_sim_leave(cudaSuccess);
  return (struct cudaChannelFormatDesc){.x = x, .y = y, .z = z, .w = w, .f = f};
}
