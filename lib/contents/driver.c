// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Looks the driver's functions up, once. No lock: threads that come at the same time look them up each for itself, and
// the first of them publishes what it found.

#include "lib/contents/driver.h"

#include <stdatomic.h>
#include <string.h>

#include "lib/contents/inner.h"

// Functions came with different versions of CUDA; each is asked for as of the youngest.
#define DRIVER_VERSION 12040u

typedef void (*function_t)(void);
static const char* const names[] = {
    "cuGraphKernelNodeGetParams",
    "cuGraphExecKernelNodeSetParams",
    "cuFuncGetParamInfo",
    "cuFuncGetName",
    "cuMemAddressReserve",
    "cuMemAddressFree",
    "cuCtxGetCurrent",
    "cuPointerGetAttributes",
};
enum { kNumFunctions = sizeof(names) / sizeof(names[0]) };
_Static_assert(sizeof(gcap_driver_t) == kNumFunctions * sizeof(function_t), "a name for each member, in their order");

static gcap_driver_t shared;
static atomic_bool is_claimed, is_ready;

static gcap_status_t look_up(const char* name, void** out_function) {
  enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaGetDriverEntryPointByVersion(name, out_function, DRIVER_VERSION, cudaEnableDefault, &found)));
  if (found == cudaDriverEntryPointSuccess && *out_function != NULL) return NULL;
  return GCAP_STATUS(GCAP_UNIMPLEMENTED, "the driver has no %s as of CUDA %u.%u: a newer driver has", name,
                     DRIVER_VERSION / 1000, DRIVER_VERSION % 1000 / 10);
}

gcap_status_t gcap_driver_get(gcap_driver_t* out_driver) {
  if (atomic_load_explicit(&is_ready, memory_order_acquire)) {
    *out_driver = shared;
    return NULL;
  }
  void* functions[kNumFunctions];
  for (size_t i = 0; i < kNumFunctions; ++i) GCAP_RETURN_IF_ERROR(look_up(names[i], &functions[i]));
  memcpy(out_driver, functions, sizeof(functions));
  if (!atomic_exchange(&is_claimed, true)) {
    shared = *out_driver;
    atomic_store_explicit(&is_ready, true, memory_order_release);
  }
  return NULL;
}

gcap_status_t gcap_driver_status(int result, const char* name, const char* file, int line) {
  return result == 0 ? NULL : gcap_status_from_cuda((cudaError_t)result, name, file, line);
}

gcap_status_t gcap_driver_find_allocation(uintptr_t address, gcap_driver_allocation_t* out_allocation) {
  // CUpointer_attribute: memory type, device ordinal, buffer id, range start, range size.
  static const int attributes[] = {2, 9, 7, 11, 12};
  gcap_driver_t driver;
  GCAP_RETURN_IF_ERROR(gcap_driver_get(&driver));
  *out_allocation = (gcap_driver_allocation_t){.device = cudaInvalidDeviceId};
  void* values[] = {&out_allocation->type, &out_allocation->device, &out_allocation->buffer_id, &out_allocation->start,
                    &out_allocation->bytes};
  return GCAP_DRIVER("cuPointerGetAttributes", driver.pointer_attributes(5, attributes, values, address));
}
