// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The driver's own log of errors. The driver tells a failure as messages: its reasons, of which there may be none, and
// then "Returning 900 (CUDA_ERROR_...) from cuStreamSynchronize". A callback of ours, registered once per process,
// keeps the messages of a thread in that thread's own buffer until the status of the failure takes them. If CUDA calls
// the callback on another thread than the one whose call failed, the failure finds nothing.
//
// Invariant: a buffer has the messages of one failure at most; what comes after a "Returning" begins anew. The callback
// may run under CUDA's own locks: it makes no CUDA call, allocates nothing and takes no lock. Locking: none, a buffer
// is its thread's own.
#include "lib/base/driver_log.h"

#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/printable.h"
#include "lib/base/stay_loaded.h"
#include "rules/rules.h"

GCAP_THREAD_LOCAL gcap_driver_log_state_t gcap_thread_driver_log;

#if CUDART_VERSION >= 12090

// A program may run with a runtime that is older than the headers it was compiled with.
#pragma weak cudaLogsRegisterCallback

enum { kFunctionBytes = 64 };  // of a driver's function; the longest name has 50

static GCAP_THREAD_LOCAL struct {
  char reasons[GCAP_DRIVER_LOG_BYTES];
  char function[kFunctionBytes];  // "" until the log has told what the driver returns
  int error;
} told;

static atomic_bool is_listening;

static void forget(void) {
  told.reasons[0] = told.function[0] = '\0';
  gcap_thread_driver_log = GCAP_DRIVER_LOG_EMPTY;
}

static void add_reason(const char* text) {
  static const char separator[] = "; ";
  const size_t used = strlen(told.reasons);
  const size_t separator_bytes = used == 0 ? 0 : sizeof(separator) - 1;
  const size_t room = sizeof(told.reasons) - 1 - used;
  if (room <= separator_bytes) return;
  memcpy(told.reasons + used, separator, separator_bytes);
  char* at = told.reasons + used + separator_bytes;
  const size_t bytes = gcap_printable_cut(text, room - separator_bytes);
  memcpy(at, text, bytes);
  at[bytes] = '\0';
}

static void on_message(void* user, cudaLogLevel level, char* message, size_t length) {
  (void)user;
  if (level != cudaLogLevelError || message == NULL) return;
  const int before = errno;
  if (told.function[0] != '\0') forget();
  char text[GCAP_DRIVER_LOG_BYTES];
  length = strnlen(message, length < sizeof(text) ? length : sizeof(text) - 1);
  while (length > 0 && isspace((unsigned char)message[length - 1])) --length;
  memcpy(text, message, length);
  text[length] = '\0';
  int error = 0;
  char function[kFunctionBytes];
  if (sscanf(text, "Returning %d (%*[A-Z0-9_]) from %63[A-Za-z0-9_]", &error, function) == 2) {
    told.error = error;
    strcpy(told.function, function);
  } else {
    add_reason(text);
  }
  gcap_thread_driver_log = GCAP_DRIVER_LOG_TOLD;
  errno = before;
}

static void listen(void) {
  if (cudaLogsRegisterCallback == NULL || atomic_exchange(&is_listening, true)) return;
  gcap_stay_loaded();
  const cudaError_t error = cudaLogsRegisterCallback(on_message, NULL, NULL);
  if (error != cudaSuccess) (void)cudaGetLastError();  // without the log a failure has its answer
}

void gcap_driver_log_begin(void) {
  if (!atomic_load_explicit(&is_listening, memory_order_relaxed)) {
    if (gcap_thread_captures()) return;
    listen();
  }
  forget();
}

// Whether the log has told of a call of the function that `call` begins with.
static bool tells_of(const char* call) {
  const char* name = gcap_rule_runtime_name(told.function);
  if (name == NULL) return false;
  const size_t length = strlen(name);
  return strncmp(call, name, length) == 0 && (call[length] == '(' || call[length] == '\0');
}

void gcap_driver_log_take(cudaError_t error, const char* call, char out_text[GCAP_DRIVER_LOG_BYTES]) {
  out_text[0] = '\0';
  if (gcap_thread_driver_log != GCAP_DRIVER_LOG_TOLD) return;
  if (told.function[0] != '\0' && told.error == (int)error && tells_of(call)) strcpy(out_text, told.reasons);
  forget();
}

#else

void gcap_driver_log_begin(void) { gcap_thread_driver_log = GCAP_DRIVER_LOG_EMPTY; }

void gcap_driver_log_take(cudaError_t error, const char* call, char out_text[GCAP_DRIVER_LOG_BYTES]) {
  (void)error;
  (void)call;
  out_text[0] = '\0';
}

#endif
