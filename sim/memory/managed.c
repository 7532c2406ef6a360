// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Managed memory: there is none.
//
// The idea: the devices say so (managedMemory and pageableMemoryAccess are 0), and the functions answer what the
// documentation gives for such a device and for memory that is not managed. A program that can do without takes its
// other path; one that cannot learns why. Locking: the global mutex.
#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/stream/capture.h"
#include "sim/stream/stream.h"

cudaError_t cudaMallocManaged(void** devPtr, size_t size, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMallocManaged);
  bool attach = flags == cudaMemAttachGlobal || flags == cudaMemAttachHost;
  if (code == cudaSuccess) code = devPtr != NULL && size && attach ? cudaErrorNotSupported : cudaErrorInvalidValue;
  return gcap_sim_leave(code);
}

cudaError_t cudaMemPrefetchAsync(const void* devPtr, size_t count, struct cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream) {
  (void)devPtr, (void)count, (void)location, (void)flags;
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemPrefetchAsync);
  if (code == cudaSuccess) code = gcap_sim_gate_ordered(gcap_sim_stream_get(stream));
  if (code == cudaSuccess) code = cudaErrorInvalidValue;
  return gcap_sim_leave(code);
}

cudaError_t cudaMemAdvise(const void* devPtr, size_t count, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location) {
  (void)devPtr, (void)count, (void)advice, (void)location;
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemAdvise);
  if (code == cudaSuccess) code = cudaErrorInvalidValue;
  return gcap_sim_leave(code);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* devPtr, size_t length, unsigned int flags) {
  (void)devPtr, (void)length, (void)flags;
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamAttachMemAsync);
  if (code == cudaSuccess) code = gcap_sim_gate_not_capturing(gcap_sim_stream_get(stream));
  if (code == cudaSuccess) code = cudaErrorInvalidValue;
  return gcap_sim_leave(code);
}
