// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The driver's log of errors: a refused call's reason, if one is known, and what the driver returns.
//
// The idea: an H200's log (driver 580, CUDA 13.0) is imitated for the calls of which the record has the log. Of all
// other failures, and of injected ones, nothing is logged. Locking: the global mutex, also while a callback runs, which
// may make no call of CUDA.
#include "sim/api/driver_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"

struct CUlogsCallbackEntry_st {
  struct CUlogsCallbackEntry_st* next;
  cudaLogsCallback_t function;
  void* data;
};

static struct CUlogsCallbackEntry_st* listeners;

static const char* driver_function(const char* function) {
  static const struct {
    const char* function;
    const char* driver;
  } known[] = {
      {"cudaEventQuery", "cuEventQuery"},
      {"cudaMalloc", "cuMemAlloc_v2"},
      {"cudaStreamEndCapture", "cuStreamEndCapture"},
      {"cudaStreamSynchronize", "cuStreamSynchronize"},
  };
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
    if (strcmp(known[i].function, function) == 0) return known[i].driver;
  }
  return NULL;
}

static const char* driver_error(cudaError_t error) {
  switch (error) {
    case cudaErrorStreamCaptureUnsupported: return "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
    case cudaErrorStreamCaptureInvalidated: return "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
    case cudaErrorStreamCaptureUnmatched: return "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED";
    case cudaErrorStreamCaptureUnjoined: return "CUDA_ERROR_STREAM_CAPTURE_UNJOINED";
    case cudaErrorStreamCaptureImplicit: return "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT";
    case cudaErrorStreamCaptureWrongThread: return "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD";
    case cudaErrorCapturedEvent: return "CUDA_ERROR_CAPTURED_EVENT";
    default: return NULL;
  }
}

static void tell(const char* text) {
  for (struct CUlogsCallbackEntry_st* entry = listeners; entry != NULL; entry = entry->next) {
    char message[256];  // a callback may write to what it is given
    const int length = snprintf(message, sizeof(message), "%s", text);
    entry->function(entry->data, cudaLogLevelError, message, (size_t)length);
  }
}

void gcap_sim_driver_log_tell(void) {
  const gcap_sim_thread_t* thread = gcap_sim_thread();
  const char* function = driver_function(thread->call);
  const char* error = driver_error(thread->refused);
  if (listeners == NULL || function == NULL || error == NULL) return;
  if (thread->refused_why != NULL) tell(thread->refused_why);
  char text[256];
  snprintf(text, sizeof(text), "Returning %d (%s) from %s", (int)thread->refused, error, function);
  tell(text);
}

cudaError_t cudaLogsRegisterCallback(cudaLogsCallback_t callbackFunc, void* userData,
                                     cudaLogsCallbackHandle* callback_out) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaLogsRegisterCallback);
  if (code == cudaSuccess && callbackFunc == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) {
    struct CUlogsCallbackEntry_st* entry = gcap_sim_calloc(1, sizeof(*entry));
    *entry = (struct CUlogsCallbackEntry_st){.next = listeners, .function = callbackFunc, .data = userData};
    listeners = entry;
    if (callback_out != NULL) *callback_out = entry;
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaLogsUnregisterCallback(cudaLogsCallbackHandle callback) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaLogsUnregisterCallback);
  if (code == cudaSuccess) {
    struct CUlogsCallbackEntry_st** link = &listeners;
    while (*link != NULL && *link != callback) link = &(*link)->next;
    code = *link != NULL ? cudaSuccess : cudaErrorInvalidValue;
    if (code == cudaSuccess) {
      *link = callback->next;
      free(callback);
    }
  }
  return gcap_sim_leave(code);
}
