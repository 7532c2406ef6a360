// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Copies and fills of rows and slices, and memory whose rows are padded for them.
//
// The idea: they are the copies and fills of copy.c with more than one row. Locking: the global mutex.
#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/submit.h"
#include "sim/base/lock.h"
#include "sim/device/properties.h"
#include "sim/memory/copy.h"
#include "sim/memory/memory.h"
#include "sim/stream/stream.h"

static gcap_sim_copy_t rows(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                            enum cudaMemcpyKind kind) {
  return (gcap_sim_copy_t){
      .dst = dst, .dst_pitch = dpitch, .src = src, .src_pitch = spitch, .width = width, .height = height, .kind = kind};
}

cudaError_t cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpy2DAsync);
  gcap_sim_copy_t copy = rows(dst, dpitch, src, spitch, width, height, kind);
  if (code == cudaSuccess) code = gcap_sim_copy_async(&copy, gcap_sim_stream_get(stream));
  return gcap_sim_leave(code);
}

cudaError_t cudaMemcpy2D(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpy2D);
  gcap_sim_copy_t copy = rows(dst, dpitch, src, spitch, width, height, kind);
  if (code == cudaSuccess) code = gcap_sim_copy_sync(&copy);
  return gcap_sim_leave(code);
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms* p, cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpy3DAsync);
  if (code == cudaSuccess) code = gcap_sim_judge_copy_params(p);
  if (code == cudaSuccess) {
    gcap_sim_copy_t copy = gcap_sim_copy_of_params(p);
    code = gcap_sim_copy_async(&copy, gcap_sim_stream_get(stream));
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms* p) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemcpy3D);
  if (code == cudaSuccess) code = gcap_sim_judge_copy_params(p);
  if (code == cudaSuccess) {
    gcap_sim_copy_t copy = gcap_sim_copy_of_params(p);
    code = gcap_sim_copy_sync(&copy);
  }
  return gcap_sim_leave(code);
}

// --- Fills ----------------------------------------------------------------------------------------------------------

static gcap_sim_fill_t fill_rows(void* address, size_t pitch, int value, size_t width, size_t height) {
  return (gcap_sim_fill_t){.dst = address,
                           .pitch = pitch,
                           .value = (unsigned char)value,
                           .element_bytes = 1,
                           .width = width,
                           .height = height};
}

cudaError_t cudaMemset2DAsync(void* devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemset2DAsync);
  gcap_sim_fill_t fill = fill_rows(devPtr, pitch, value, width, height);
  if (code == cudaSuccess) code = gcap_sim_fill_async(&fill, gcap_sim_stream_get(stream));
  return gcap_sim_leave(code);
}

cudaError_t cudaMemset2D(void* devPtr, size_t pitch, int value, size_t width, size_t height) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemset2D);
  gcap_sim_fill_t fill = fill_rows(devPtr, pitch, value, width, height);
  if (code == cudaSuccess) code = gcap_sim_fill_sync(&fill);
  return gcap_sim_leave(code);
}

cudaError_t gcap_sim_library_clear(void* address, size_t pitch, size_t width, size_t height, cudaStream_t stream) {
  gcap_sim_lock();
  gcap_sim_fill_t fill = fill_rows(address, pitch, 0, width, height);
  cudaError_t code = gcap_sim_fill_async(&fill, gcap_sim_stream_get(stream));
  gcap_sim_unlock();
  return code;
}

typedef cudaError_t (*fill_fn_t)(const gcap_sim_fill_t* fill, gcap_sim_stream_t* stream);

static cudaError_t fill_on_legacy_stream(const gcap_sim_fill_t* fill, gcap_sim_stream_t* unused) {
  (void)unused;
  return gcap_sim_fill_sync(fill);
}

// Slices that lie close are one fill of rows; others are a fill each, none of them made if there is no memory for all.
static cudaError_t fill_slices(struct cudaPitchedPtr to, int value, struct cudaExtent extent, fill_fn_t fill,
                               gcap_sim_stream_t* stream) {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
  bool close = extent.depth == 1 || to.ysize == extent.height;
  if (!close && to.ysize < extent.height) return cudaErrorInvalidValue;
  size_t slice_rows = close ? extent.height : to.ysize;
  if (extent.depth - 1 > (SIZE_MAX - extent.height) / slice_rows) return cudaErrorInvalidValue;
  size_t rows = (extent.depth - 1) * slice_rows + extent.height;
  const gcap_sim_fill_t all = fill_rows(to.ptr, to.pitch, value, extent.width, rows);
  if (close) return fill(&all, stream);
  if (to.ptr == NULL || to.pitch < extent.width || !gcap_sim_fill_has_memory(&all)) return cudaErrorInvalidValue;
  cudaError_t code = cudaSuccess;
  for (size_t i = 0; i < extent.depth && code == cudaSuccess; ++i) {
    char* slice = (char*)to.ptr + i * slice_rows * to.pitch;
    const gcap_sim_fill_t one = fill_rows(slice, to.pitch, value, extent.width, extent.height);
    code = fill(&one, stream);
  }
  return code;
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent,
                              cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemset3DAsync);
  if (code == cudaSuccess) {
    code = fill_slices(pitchedDevPtr, value, extent, gcap_sim_fill_async, gcap_sim_stream_get(stream));
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMemset3D);
  if (code == cudaSuccess) code = fill_slices(pitchedDevPtr, value, extent, fill_on_legacy_stream, NULL);
  return gcap_sim_leave(code);
}

// --- Padded memory --------------------------------------------------------------------------------------------------

static cudaError_t allocate_rows(void** out, size_t* pitch, size_t width, size_t height) {
  if (out == NULL || pitch == NULL) return cudaErrorInvalidValue;
  if (width > SIZE_MAX - GCAP_SIM_ALIGNMENT) return cudaErrorInvalidValue;
  size_t padded = (width + GCAP_SIM_ALIGNMENT - 1) / GCAP_SIM_ALIGNMENT * GCAP_SIM_ALIGNMENT;
  if (height && padded > SIZE_MAX / height) return cudaErrorMemoryAllocation;
  cudaError_t code = gcap_sim_allocate(out, padded * height, cudaMemoryTypeDevice);
  if (code == cudaSuccess) *pitch = height ? padded : 0;
  return code;
}

cudaError_t cudaMallocPitch(void** devPtr, size_t* pitch, size_t width, size_t height) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMallocPitch);
  if (code == cudaSuccess) code = allocate_rows(devPtr, pitch, width, height);
  return gcap_sim_leave(code);
}

static cudaError_t allocate_slices(struct cudaPitchedPtr* out, struct cudaExtent extent) {
  if (out == NULL) return cudaErrorInvalidValue;
  void* base;
  size_t pitch;
  // Measured: the product of height and depth may overflow, and is what is left of it.
  cudaError_t code = allocate_rows(&base, &pitch, extent.width, extent.height * extent.depth);
  if (code != cudaSuccess) return code;
  *out = (struct cudaPitchedPtr){.ptr = base, .pitch = pitch, .xsize = extent.width, .ysize = extent.height};
  return cudaSuccess;
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr* pitchedDevPtr, struct cudaExtent extent) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaMalloc3D);
  if (code == cudaSuccess) code = allocate_slices(pitchedDevPtr, extent);
  return gcap_sim_leave(code);
}
