// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cuda_guard.h: per-thread CUDA state that our own calls borrow and give back: the current device, the capture mode.
#ifndef GCAP_LIB_INTERNAL_CUDA_GUARD_H_
#define GCAP_LIB_INTERNAL_CUDA_GUARD_H_

#include <cuda_runtime_api.h>

#include "gcap/status.h"

// Makes `device_id` current; `*out_previous` is what gcap_device_pop restores.
static inline gcap_status_t gcap_device_push(int device_id, int* out_previous) {
  *out_previous = device_id;
  int current = 0;
  // No GCAP_CUDA unless it fails: it cannot break a capture, so a ledger need not hear of it before each kernel.
  cudaError_t error = cudaGetDevice(&current);
  if (error != cudaSuccess) return gcap_status_from_cuda(error, "cudaGetDevice(&current)", __FILE__, __LINE__);
  if (current == device_id) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaSetDevice(device_id)));
  *out_previous = current;
  return NULL;
}

// Restores the device that was current before the push on `device_id`.
static inline gcap_status_t gcap_device_pop(int device_id, int previous) {
  return previous == device_id ? NULL : GCAP_CUDA(cudaSetDevice(previous));
}

// A device that is current while a function is called, which may not return.
typedef struct gcap_lent_device {
  int id;  // -1: none is lent
  int previous;
} gcap_lent_device_t;

static inline void gcap_device_give_back_on_unwind(gcap_lent_device_t* device) {
  if (device->id >= 0) gcap_status_ignore(gcap_device_pop(device->id, device->previous));  // the exception tells
}

static inline gcap_status_t gcap_device_lend(int device_id, gcap_lent_device_t* device) {
  gcap_status_t status = gcap_device_push(device_id, &device->previous);
  device->id = status == NULL ? device_id : -1;
  return status;
}

static inline gcap_status_t gcap_device_give_back(gcap_lent_device_t* device) {
  const gcap_lent_device_t lent = *device;
  device->id = -1;
  return lent.id < 0 ? NULL : gcap_device_pop(lent.id, lent.previous);
}

// Lets the thread make calls that a capture of another thread in global mode would forbid, and that would break it
// (rule R14 and R26 of the capture rules): a wait for a stream of ours cannot hurt somebody else's capture.
static inline gcap_status_t gcap_relaxed_push(enum cudaStreamCaptureMode* out_previous) {
  *out_previous = cudaStreamCaptureModeRelaxed;
  return GCAP_CUDA(cudaThreadExchangeStreamCaptureMode(out_previous));
}

static inline gcap_status_t gcap_relaxed_pop(enum cudaStreamCaptureMode previous) {
  return GCAP_CUDA(cudaThreadExchangeStreamCaptureMode(&previous));
}

// Waits for a stream without disturbing a capture of another thread.
static inline gcap_status_t gcap_relaxed_synchronize(cudaStream_t stream) {
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  gcap_status_t status = GCAP_CUDA(cudaStreamSynchronize(stream));
  return gcap_status_join(status, gcap_relaxed_pop(mode));
}

// Both, for calls that get or give back memory of a device. `device_id` -1: on whatever device is current.
typedef struct gcap_thread_setting {
  int device_id;
  enum cudaStreamCaptureMode mode;
} gcap_thread_setting_t;

static inline gcap_status_t gcap_thread_restore_device(int device_id, const gcap_thread_setting_t* previous) {
  return device_id < 0 ? NULL : gcap_device_pop(device_id, previous->device_id);
}

static inline gcap_status_t gcap_thread_enter(int device_id, gcap_thread_setting_t* out_previous) {
  if (device_id >= 0) GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &out_previous->device_id));
  gcap_status_t status = gcap_relaxed_push(&out_previous->mode);
  return status == NULL ? NULL : gcap_status_join(status, gcap_thread_restore_device(device_id, out_previous));
}

static inline gcap_status_t gcap_thread_leave(int device_id, const gcap_thread_setting_t* previous) {
  gcap_status_t status = gcap_relaxed_pop(previous->mode);
  return gcap_status_join(status, gcap_thread_restore_device(device_id, previous));
}

// Gets memory of a device, or gives it back, without disturbing a capture, also one of this thread. `*out_memory` has
// the memory also if only the thread's setting could not be restored; else a failure leaves NULL.
static inline gcap_status_t gcap_relaxed_malloc(int device_id, size_t bytes, void** out_memory) {
  gcap_thread_setting_t previous;
  *out_memory = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(device_id, &previous));
  gcap_status_t status = GCAP_CUDA(cudaMalloc(out_memory, bytes));
  return gcap_status_join(status, gcap_thread_leave(device_id, &previous));
}

static inline gcap_status_t gcap_relaxed_free(int device_id, void* memory) {
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(device_id, &previous));
  gcap_status_t status = GCAP_CUDA(cudaFree(memory));
  return gcap_status_join(status, gcap_thread_leave(device_id, &previous));
}

#endif  // GCAP_LIB_INTERNAL_CUDA_GUARD_H_
