// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Functions of the driver that the runtime hands out, and what they tell of a pointer.
//
// The idea: of the driver there is what asks about pointers, reserves addresses, and reads and sets a graph's kernels;
// to a program that looks for another function this is a driver without it. The functions have no public header: a
// program that uses them has the driver's, or its own types. They are calls like the runtime's, counted, logged and hit
// by faults, but keep no error. Locking: the global mutex.
#include "sim/device/driver.h"

#include <stdint.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/die.h"
#include "sim/memory/allocation.h"
#include "sim/memory/pool.h"

// The driver's CUresult and CUpointer_attribute, as far as they are needed.
enum { kSuccess = 0, kInvalidValue = 1 };
enum {
  kMemoryType = 2,
  kDevicePointer = 3,
  kHostPointer = 4,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kRangeStart = 11,
  kRangeSize = 12,
  kMapped = 13,
  kMempoolHandle = 17,
  kLastAttribute = 21
};
enum { kTypeHost = 1, kTypeDevice = 2 };

// --- Attributes -----------------------------------------------------------------------------------------------------

static const gcap_sim_allocation_t* find(unsigned long long address) {
  const gcap_sim_allocation_t* allocation = gcap_sim_allocation_find((const void*)(uintptr_t)address);
  return allocation != NULL && (allocation->claimed || allocation->of_symbol) ? allocation : NULL;
}

static unsigned int memory_type(const gcap_sim_allocation_t* allocation) {
  return allocation->type == cudaMemoryTypeHost ? kTypeHost : kTypeDevice;
}

static int get_pointer(void** out, const gcap_sim_allocation_t* allocation, int attribute, unsigned long long address) {
  if (attribute == kHostPointer && allocation->type == cudaMemoryTypeDevice) return kInvalidValue;
  *out = (void*)(uintptr_t)address;
  return kSuccess;
}

// The attribute of an address in the allocation.
static int get(void* data, int attribute, const gcap_sim_allocation_t* allocation, unsigned long long address) {
  const bool managed = allocation->type == cudaMemoryTypeManaged, mapped = true;
  switch (attribute) {
    case kMemoryType: *(unsigned int*)data = memory_type(allocation); return kSuccess;
    case kDevicePointer:
    case kHostPointer: return get_pointer(data, allocation, attribute, address);
    case kBufferId: *(unsigned long long*)data = allocation->id; return kSuccess;
    case kIsManaged: *(bool*)data = managed; return kSuccess;
    case kDeviceOrdinal: *(int*)data = allocation->device; return kSuccess;
    case kRangeStart: *(void**)data = allocation->base; return kSuccess;
    case kRangeSize: *(size_t*)data = allocation->bytes; return kSuccess;
    case kMapped: *(bool*)data = mapped; return kSuccess;
    case kMempoolHandle:
      *(cudaMemPool_t*)data = allocation->block != NULL ? gcap_sim_block_pool(allocation->block)->handle : NULL;
      return kSuccess;
    default: gcap_sim_die("cuPointerGetAttribute: attribute %d is not modelled", attribute);
  }
}

static bool is_attribute(int attribute) { return attribute > 0 && attribute <= kLastAttribute; }

static int get_one(void* data, int attribute, unsigned long long address) {
  const gcap_sim_allocation_t* allocation = find(address);
  bool ok = data != NULL && is_attribute(attribute) && allocation != NULL;
  return ok ? get(data, attribute, allocation, address) : kInvalidValue;
}

static int get_attribute(void* data, int attribute, unsigned long long address) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cuPointerGetAttribute);
  if (code == cudaSuccess) code = (cudaError_t)get_one(data, attribute, address);
  return gcap_sim_leave_driver(code);
}

// Of an address in no memory. Measured: a range is left as it is.
static void get_nothing(void* data, int attribute) {
  switch (attribute) {
    case kRangeStart:
    case kRangeSize: return;
    case kIsManaged:
    case kMapped: *(bool*)data = false; return;
    case kMemoryType:
    case kDeviceOrdinal: *(int*)data = attribute == kDeviceOrdinal ? cudaInvalidDeviceId : 0; return;
    default: *(void**)data = NULL; return;
  }
}

// What comes before a bad attribute is written.
static int get_several(unsigned int count, const int* attributes, void** data, unsigned long long address) {
  const gcap_sim_allocation_t* allocation = find(address);
  for (unsigned int i = 0; i < count; ++i) {
    if (!is_attribute(attributes[i]) || data[i] == NULL) return kInvalidValue;
    if (allocation == NULL || get(data[i], attributes[i], allocation, address) != kSuccess) {
      get_nothing(data[i], attributes[i]);
    }
  }
  return kSuccess;
}

static int get_attributes(unsigned int count, const int* attributes, void** data, unsigned long long address) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cuPointerGetAttributes);
  if (code == cudaSuccess && (count == 0 || attributes == NULL || data == NULL)) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) code = (cudaError_t)get_several(count, attributes, data, address);
  return gcap_sim_leave_driver(code);
}

// --- Entry points ---------------------------------------------------------------------------------------------------

typedef void (*function_t)(void);

static const struct {
  const char* name;
  unsigned int version;  // the first CUDA with it, in the form that there is here
  function_t function;
} entries[] = {{"cuPointerGetAttribute", 4000, (function_t)get_attribute},
               {"cuPointerGetAttributes", 7000, (function_t)get_attributes},
               {"cuMemAddressReserve", 10020, (function_t)gcap_sim_driver_reserve},
               {"cuCtxGetCurrent", 4000, (function_t)gcap_sim_driver_current_context},
               {"cuMemAddressFree", 10020, (function_t)gcap_sim_driver_unreserve},
               {"cuGraphKernelNodeGetParams", 12000, (function_t)gcap_sim_driver_get_node},
               {"cuGraphExecKernelNodeSetParams", 12000, (function_t)gcap_sim_driver_set_exec_node},
               {"cuFuncGetName", 12030, (function_t)gcap_sim_driver_function_name},
               {"cuKernelGetName", 12030, (function_t)gcap_sim_driver_kernel_name},
               {"cuFuncGetParamInfo", 12040, (function_t)gcap_sim_driver_function_param},
               {"cuKernelGetParamInfo", 12040, (function_t)gcap_sim_driver_kernel_param}};

static enum cudaDriverEntryPointQueryResult look_up(const char* name, unsigned int version, function_t* out) {
  *out = NULL;
  for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); ++i) {
    if (strcmp(entries[i].name, name) != 0) continue;
    if (version < entries[i].version) return cudaDriverEntryPointVersionNotSufficent;
    *out = entries[i].function;
    return cudaDriverEntryPointSuccess;
  }
  return cudaDriverEntryPointSymbolNotFound;
}

static cudaError_t get_entry(const char* name, void** out, unsigned int version, unsigned long long flags,
                             enum cudaDriverEntryPointQueryResult* status) {
  const unsigned long long known = cudaEnableLegacyStream | cudaEnablePerThreadDefaultStream;
  if (version > CUDART_VERSION || (flags & ~known) != 0) return cudaErrorInvalidValue;
  if (name == NULL || out == NULL) {
    gcap_sim_die("cudaGetDriverEntryPoint: the name or the place is NULL: the real runtime uses both");
  }
  function_t function;
  const enum cudaDriverEntryPointQueryResult found = look_up(name, version, &function);
  memcpy(out, &function, sizeof(function));
  if (status != NULL) *status = found;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** funcPtr, unsigned int cudaVersion,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult* driverStatus) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGetDriverEntryPointByVersion);
  if (code == cudaSuccess) code = get_entry(symbol, funcPtr, cudaVersion, flags, driverStatus);
  return gcap_sim_leave(code);
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** funcPtr, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult* driverStatus) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGetDriverEntryPoint);
  if (code == cudaSuccess) code = get_entry(symbol, funcPtr, CUDART_VERSION, flags, driverStatus);
  return gcap_sim_leave(code);
}
