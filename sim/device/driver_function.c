// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the driver tells of a kernel: its name and its parameters. Locking: the global mutex.
#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/device/driver.h"
#include "sim/device/kernel.h"
#include "sim/device/library.h"
#include "sim/device/twin.h"

// A library's kernel has one parameter.
static cudaError_t get_payload(const gcap_sim_library_kernel_t* kernel, size_t index, size_t* offset, size_t* bytes) {
  if (index > 0 || offset == NULL) return cudaErrorInvalidValue;
  *offset = 0;
  if (bytes != NULL) *bytes = kernel->payload_bytes;
  return cudaSuccess;
}

static cudaError_t get_param(const void* function, size_t index, size_t* offset, size_t* bytes) {
  const gcap_sim_library_kernel_t* kernel = gcap_sim_library_kernel_find(function);
  if (kernel != NULL) return get_payload(kernel, index, offset, bytes);
  gcap_sim_twin_t* twin = gcap_sim_twin_find(function);
  return twin != NULL ? gcap_sim_kernel_param(twin, index, offset, bytes) : cudaErrorInvalidResourceHandle;
}

static cudaError_t get_name(const char** name, const void* function) {
  const gcap_sim_library_kernel_t* kernel = gcap_sim_library_kernel_find(function);
  const gcap_sim_twin_t* twin = gcap_sim_twin_find(function);
  if (name == NULL) return cudaErrorInvalidValue;
  if (kernel == NULL && twin == NULL) return cudaErrorInvalidResourceHandle;
  *name = kernel != NULL ? kernel->name : gcap_sim_kernel_name(twin);
  return cudaSuccess;
}

int gcap_sim_driver_function_param(const void* function, size_t index, size_t* offset, size_t* bytes) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cuFuncGetParamInfo);
  if (code == cudaSuccess) code = get_param(function, index, offset, bytes);
  return gcap_sim_leave_driver(code);
}

int gcap_sim_driver_kernel_param(const void* kernel, size_t index, size_t* offset, size_t* bytes) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cuKernelGetParamInfo);
  if (code == cudaSuccess) code = get_param(kernel, index, offset, bytes);
  return gcap_sim_leave_driver(code);
}

int gcap_sim_driver_function_name(const char** name, const void* function) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cuFuncGetName);
  if (code == cudaSuccess) code = get_name(name, function);
  return gcap_sim_leave_driver(code);
}

int gcap_sim_driver_kernel_name(const char** name, const void* kernel) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cuKernelGetName);
  if (code == cudaSuccess) code = get_name(name, kernel);
  return gcap_sim_leave_driver(code);
}
