// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The table of the driver's calls, by CUPTI's numbers, made of driver_calls.inc; and what their names tell.
#include "doctor/record/driver_calls.h"

#include <stdatomic.h>
#include <string.h>

static const gcap_doctor_driver_call_t calls[GCAP_DOCTOR_NUM_DRIVER_CALLS] = {
#define DRIVER_ROLE(number, name, role_of_it) [number].role = GCAP_DOCTOR_ROLE_##role_of_it,
#define DRIVER_ARGUMENT(number, name, kind, field, offset) [number].at[GCAP_DOCTOR_ARGUMENT_##kind] = (offset) + 1,
#include "doctor/record/driver_calls.inc"
#undef DRIVER_ROLE
#undef DRIVER_ARGUMENT
};

const gcap_doctor_driver_call_t* gcap_doctor_driver_call(uint32_t callback) {
  return &calls[callback < GCAP_DOCTOR_NUM_DRIVER_CALLS ? callback : 0];
}

// Beginnings of names. These calls are legal in every capture, and libraries make them by the dozen.
static const char* const noise[] = {
    "cuCtxGet",
    "cuCtxPopCurrent",
    "cuCtxPushCurrent",
    "cuCtxSetCurrent",
    "cuDeviceCanAccessPeer",
    "cuDeviceComputeCapability",
    "cuDeviceGet",
    "cuDevicePrimaryCtxGetState",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem",
    "cuDriverGetVersion",
    "cuFuncGet",
    "cuFuncIsLoaded",
    "cuGetError",
    "cuGetExportTable",
    "cuGetProcAddress",
    "cuGraphDebugDotPrint",
    "cuGraphGet",
    "cuGraphKernelNodeGet",
    "cuGraphNodeGet",
    "cuInit",
    "cuKernelGet",
    "cuLibraryGet",
    "cuMemGetAddressRange",
    "cuMemHostGet",
    "cuModuleGet",
    "cuOccupancy",
    "cuStreamGetAttribute",
    "cuStreamGetCtx",
    "cuStreamGetDevice",
    "cuStreamGetFlags",
    "cuStreamGetGreenCtx",
    "cuStreamGetId",
    "cuStreamGetPriority",
    "cuTensorMapEncode",
};

bool gcap_doctor_driver_call_is_noise(uint32_t callback, const char* function) {
  // What the names said, by number: 1 noise, 2 not. Every thread that asks finds the same.
  static _Atomic uint8_t known[GCAP_DOCTOR_NUM_DRIVER_CALLS];
  if (callback >= GCAP_DOCTOR_NUM_DRIVER_CALLS) return false;
  uint8_t answer = atomic_load_explicit(&known[callback], memory_order_relaxed);
  if (answer == 0) {
    answer = 2;
    for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); ++i) {
      if (strncmp(function, noise[i], strlen(noise[i])) == 0) answer = 1;
    }
    atomic_store_explicit(&known[callback], answer, memory_order_relaxed);
  }
  return answer == 1;
}

static bool ends_with(const char* text, size_t length, const char* end) {
  const size_t size = strlen(end);
  return length >= size && memcmp(text + length - size, end, size) == 0;
}

bool gcap_doctor_driver_call_is_per_thread(const char* function) {
  const size_t length = strlen(function);
  return ends_with(function, length, "_ptsz") || ends_with(function, length, "_ptds");
}

size_t gcap_doctor_driver_call_name_length(const char* function) {
  size_t length = strlen(function);
  if (gcap_doctor_driver_call_is_per_thread(function)) length -= strlen("_ptsz");
  if (length > 3 && function[length - 1] >= '1' && function[length - 1] <= '9' && function[length - 2] == 'v' &&
      function[length - 3] == '_') {
    length -= 3;
  }
  return length;
}
