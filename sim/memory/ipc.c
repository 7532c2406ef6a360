// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Memory and events that processes share: there are none.
//
// The idea: CUDA documents cudaErrorNotSupported for each of these functions, as the answer on a platform without the
// feature, such as Tegra. The devices say so too (cudaDevAttrIpcEventSupport is 0). A simulated process has memory of
// its own, so no handle could be honored in another one. Locking: the global mutex.
#include "cuda_runtime_api.h"
#include "sim/api/api.h"

static cudaError_t refuse(gcap_sim_api_t function) {
  cudaError_t code = gcap_sim_enter(function);
  return gcap_sim_leave(code == cudaSuccess ? cudaErrorNotSupported : code);
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  (void)handle, (void)event;
  return refuse(GCAP_SIM_API_cudaIpcGetEventHandle);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  (void)event, (void)handle;
  return refuse(GCAP_SIM_API_cudaIpcOpenEventHandle);
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* devPtr) {
  (void)handle, (void)devPtr;
  return refuse(GCAP_SIM_API_cudaIpcGetMemHandle);
}

cudaError_t cudaIpcOpenMemHandle(void** devPtr, cudaIpcMemHandle_t handle, unsigned int flags) {
  (void)devPtr, (void)handle, (void)flags;
  return refuse(GCAP_SIM_API_cudaIpcOpenMemHandle);
}

cudaError_t cudaIpcCloseMemHandle(void* devPtr) {
  (void)devPtr;
  return refuse(GCAP_SIM_API_cudaIpcCloseMemHandle);
}
