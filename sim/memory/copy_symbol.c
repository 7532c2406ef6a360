// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Copies to and from variables of a device.
//
// The idea: a variable's part is found first, and is memory of the device then. Measured: a copy of nothing looks at
// nothing. Locking: the global mutex.
#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/device/variable.h"
#include "sim/memory/copy.h"
#include "sim/stream/stream.h"

static gcap_sim_copy_t row(void* dst, const void* src, size_t count, enum cudaMemcpyKind kind) {
  return (gcap_sim_copy_t){.dst = dst, .src = src, .width = count, .height = 1, .kind = kind};
}

static cudaError_t make_to(gcap_sim_copy_t* out, const void* symbol, const void* src, size_t count, size_t offset,
                           enum cudaMemcpyKind kind) {
  void* part = NULL;
  cudaError_t code = count > 0 ? gcap_sim_variable_part(symbol, count, offset, kind, false, &part) : cudaSuccess;
  *out = row(part, src, count, kind);
  return code;
}

static cudaError_t make_from(gcap_sim_copy_t* out, void* dst, const void* symbol, size_t count, size_t offset,
                             enum cudaMemcpyKind kind) {
  void* part = NULL;
  cudaError_t code = count > 0 ? gcap_sim_variable_part(symbol, count, offset, kind, true, &part) : cudaSuccess;
  *out = row(dst, part, count, kind);
  return code;
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* src, size_t count, size_t offset,
                               enum cudaMemcpyKind kind) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpyToSymbol);
  gcap_sim_copy_t copy;
  if (code == cudaSuccess) code = make_to(&copy, symbol, src, count, offset, kind);
  if (code == cudaSuccess) code = gcap_sim_copy_sync(&copy);
  return gcap_sim_leave(code);
}

cudaError_t cudaMemcpyFromSymbol(void* dst, const void* symbol, size_t count, size_t offset, enum cudaMemcpyKind kind) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpyFromSymbol);
  gcap_sim_copy_t copy;
  if (code == cudaSuccess) code = make_from(&copy, dst, symbol, count, offset, kind);
  if (code == cudaSuccess) code = gcap_sim_copy_sync(&copy);
  return gcap_sim_leave(code);
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* src, size_t count, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpyToSymbolAsync);
  gcap_sim_copy_t copy;
  if (code == cudaSuccess) code = make_to(&copy, symbol, src, count, offset, kind);
  if (code == cudaSuccess) code = gcap_sim_copy_async(&copy, gcap_sim_stream_get(stream));
  return gcap_sim_leave(code);
}

cudaError_t cudaMemcpyFromSymbolAsync(void* dst, const void* symbol, size_t count, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpyFromSymbolAsync);
  gcap_sim_copy_t copy;
  if (code == cudaSuccess) code = make_from(&copy, dst, symbol, count, offset, kind);
  if (code == cudaSuccess) code = gcap_sim_copy_async(&copy, gcap_sim_stream_get(stream));
  return gcap_sim_leave(code);
}
