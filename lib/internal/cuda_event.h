// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cuda_event.h: events without timing, which our modules make, record and ask in the same way.
#ifndef GCAP_LIB_INTERNAL_CUDA_EVENT_H_
#define GCAP_LIB_INTERNAL_CUDA_EVENT_H_

#include <stdbool.h>

#include "lib/internal/cuda_guard.h"

// Makes an event that the streams of the device can record. Whatever fails, none is left.
static inline gcap_status_t gcap_event_create(int device_id, cudaEvent_t* out_event) {
  *out_event = NULL;
  int previous = 0;
  cudaEvent_t event = NULL;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status = GCAP_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const bool made = status == NULL;
  status = gcap_status_join(status, gcap_device_pop(device_id, previous));
  if (status == NULL) {
    *out_event = event;
  } else if (made) {
    status = gcap_status_join(status, GCAP_CUDA(cudaEventDestroy(event)));
  }
  return status;
}

// Makes one that is recorded behind all that `stream`, which is of the device, was given so far.
static inline gcap_status_t gcap_event_record_new(int device_id, cudaStream_t stream, cudaEvent_t* out_event) {
  GCAP_RETURN_IF_ERROR(gcap_event_create(device_id, out_event));
  gcap_status_t status = GCAP_CUDA(cudaEventRecord(*out_event, stream));
  if (status == NULL) return NULL;
  status = gcap_status_join(status, GCAP_CUDA(cudaEventDestroy(*out_event)));
  *out_event = NULL;
  return status;
}

// Tells whether the recorded point is reached. That it is not is an answer, not a failure.
static inline gcap_status_t gcap_event_query(cudaEvent_t event, bool* out_reached) {
  cudaError_t answer = cudaEventQuery(event);
  *out_reached = answer == cudaSuccess;
  if (answer == cudaErrorNotReady) {
    (void)cudaGetLastError();
    answer = cudaSuccess;
  }
  return gcap_status_from_cuda(answer, "cudaEventQuery(event)", __FILE__, __LINE__);
}

#endif  // GCAP_LIB_INTERNAL_CUDA_EVENT_H_
