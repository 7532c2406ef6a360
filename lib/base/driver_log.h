// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// driver_log.h: what the driver's own log of errors says of a call that failed, which is more than the call's answer.
// The log is there from CUDA 12.9 on.
#ifndef GCAP_LIB_BASE_DRIVER_LOG_H_
#define GCAP_LIB_BASE_DRIVER_LOG_H_

#include <cuda_runtime_api.h>

#include "lib/base/capture_hooks.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the log holds for this thread. A thread begins with the first.
typedef enum gcap_driver_log_state {
  GCAP_DRIVER_LOG_UNKNOWN,  // the thread has not looked yet whether the process listens
  GCAP_DRIVER_LOG_EMPTY,
  GCAP_DRIVER_LOG_TOLD,  // there are messages
} gcap_driver_log_state_t;

extern GCAP_THREAD_LOCAL gcap_driver_log_state_t gcap_thread_driver_log;

enum { GCAP_DRIVER_LOG_BYTES = 512 };  // of the reasons of one failure, with their end

// Drops this thread's messages. The first call of a process that comes outside of a capture scope has the process
// listen; CUDA is up by then, since a call of this thread succeeded. If listening fails, there are no messages.
void gcap_driver_log_begin(void);

// After a call that succeeded: whatever the log has told before is of other calls.
static inline void gcap_driver_log_succeeded(void) {
  if (gcap_thread_driver_log != GCAP_DRIVER_LOG_EMPTY) gcap_driver_log_begin();
}

// After a call that failed: writes the reasons that the log gives for this failure, "" for none, and drops the
// thread's messages. `call` is the text of the call. A message is of this failure if the log has told it on this
// thread, after all others and after the last call that succeeded, with the same error, and of the driver's function
// that does what the function in `call` does.
void gcap_driver_log_take(cudaError_t error, const char* call, char out_text[GCAP_DRIVER_LOG_BYTES]);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_BASE_DRIVER_LOG_H_
