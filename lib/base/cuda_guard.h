// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cuda_guard.h: per-thread CUDA state that our own calls borrow and give back: the current device, the capture mode.
#ifndef GCAP_LIB_BASE_CUDA_GUARD_H_
#define GCAP_LIB_BASE_CUDA_GUARD_H_

#include <cuda_runtime_api.h>

#include "gcap/status.h"

// Makes `device_id` current; `*out_previous` is what gcap_device_pop restores.
static inline gcap_status_t gcap_device_push(int device_id, int* out_previous) {
  *out_previous = device_id;
  int current = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaGetDevice(&current)));
  if (current == device_id) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaSetDevice(device_id)));
  *out_previous = current;
  return NULL;
}

// Restores the device that was current before the push on `device_id`.
static inline gcap_status_t gcap_device_pop(int device_id, int previous) {
  return previous == device_id ? NULL : GCAP_CUDA(cudaSetDevice(previous));
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

#endif  // GCAP_LIB_BASE_CUDA_GUARD_H_
