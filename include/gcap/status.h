// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// status.h: how gcap reports rare failures: a code that says what to do next, and a message that names the cause.
#ifndef GCAP_STATUS_H_
#define GCAP_STATUS_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#include "gcap/api.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the caller should do next.
typedef enum gcap_code {
  GCAP_OK = 0,
  GCAP_INVALID_ARGUMENT,     // fix the call
  GCAP_FAILED_PRECONDITION,  // fix the state first, then call again
  GCAP_NOT_FOUND,            // the named thing does not exist
  GCAP_ALREADY_EXISTS,       // the named thing exists
  GCAP_RESOURCE_EXHAUSTED,   // release memory, or raise a limit
  GCAP_UNAVAILABLE,          // retry later, or install something
  GCAP_CAPTURE_INVALIDATED,  // the capture failed and was undone: run eagerly
  GCAP_CUDA_ERROR,           // a CUDA runtime call failed; see gcap_status_get_info
  GCAP_LIBRARY_ERROR,        // cuBLASLt or cuDNN failed; the message has its code
  GCAP_UNIMPLEMENTED,        // this build or device cannot do it
  GCAP_INTERNAL,             // a bug in gcap
  GCAP_LEAKED,               // the object is gone, but a part of it was lost or is kept until the process ends: go on
  GCAP_CANCELLED,            // the work of a run stopped on purpose, by returning this code
  GCAP_DEVICE_LOST,     // a CUDA call failed because the device faulted: nothing on it works until the process ends
  GCAP_REPLAY_DIFFERS,  // a replay left other results than its work (graph_verify.h): the buffers have the work's
} gcap_code_t;

// Status: the outcome of a call. NULL means success. Any other value describes one failure. The value belongs to the
// caller, who ends it with gcap_status_free, gcap_status_ignore or gcap_status_join.
// Thread:   one thread at a time; may be handed from thread to thread.
// Capture:  every function here is legal while a stream is capturing.
// Lifetime: independent of what it describes: texts are copied, except `file`, which must be a literal.
// Errors:   functions that return a status return it as a value. If host memory is short, a new status, or a copy, is a
//           static one with the same code and without the texts, which is freed like any other: no code is ever lost.
typedef struct gcap_status* gcap_status_t;

// Texts: a message, and the text of a call, is one line. The message of one failure has 64 KiB at most; a cut is marked
// by "...". Control characters that came with a name, a key or a path are shown as \x and two hexadecimal digits (a
// newline is \x0a); UTF-8 stays as it is.

// Makes a status with a printf-style message. `code` must not be GCAP_OK. Use GCAP_STATUS, which fills file and line.
GCAP_API gcap_status_t gcap_status_make(gcap_code_t code, const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 4, 5), cold)) GCAP_NODISCARD;
#define GCAP_STATUS(code, ...) gcap_status_make((code), __FILE__, __LINE__, __VA_ARGS__)

// Turns the result of a CUDA runtime call into a status and clears the thread's last error, so that no later call is
// blamed. cudaSuccess gives NULL. `call` is the text of the call and is copied. A helper that makes all launches of a
// program passes what its callers know, so that a message names the kernel: "launch of attention" as `call`, and the
// caller's file and line. From CUDA 12.9 on, where the driver keeps a log of errors, the message ends in the reasons
// that the log gives for this failure, after "the driver's log:": a failure of a call that `call` begins with, answered
// on this thread, and newer than the last success and the last failure that this function was told of on this thread.
GCAP_API gcap_status_t gcap_status_from_cuda(cudaError_t error, const char* call, const char* file,
                                             int line) GCAP_NODISCARD;
#define GCAP_CUDA(call) gcap_status_from_cuda((call), #call, __FILE__, __LINE__)

// Returns early from the calling function if `expr` is not NULL.
#define GCAP_RETURN_IF_ERROR(expr)                         \
  do {                                                     \
    gcap_status_t gcap_status_tmp_ = (expr);               \
    if (gcap_status_tmp_ != NULL) return gcap_status_tmp_; \
  } while (0)

// NULL has the code GCAP_OK and the message "OK".
GCAP_API gcap_code_t gcap_status_code(gcap_status_t status);
GCAP_API const char* gcap_code_name(gcap_code_t code);           // "INVALID_ARGUMENT"
GCAP_API const char* gcap_status_message(gcap_status_t status);  // lives as long as the status

// Where a failure came from. The texts live as long as the status.
typedef struct gcap_status_info {
  size_t struct_size;      // set by gcap_status_get_info
  cudaError_t cuda_error;  // cudaSuccess if the cause was not a CUDA call
  const char* cuda_call;   // the text of the CUDA call; "" if the cause was not a CUDA call
  const char* file;        // where the status was made; "" for NULL
  int line;                // 0 for NULL
} gcap_status_info_t;

// Reads where the failure came from; NULL came from nowhere. Programs call gcap_status_get_info, which sets the size.
GCAP_API void gcap_status_read_info(gcap_status_t status, gcap_status_info_t* out_info);
static inline void gcap_status_get_info(gcap_status_t status, gcap_status_info_t* out_info) {
  out_info->struct_size = sizeof(*out_info);
  gcap_status_read_info(status, out_info);
}

// Joins a later failure to the first: the result has the code and call of `first`, and both messages. Consumes both
// arguments; either may be NULL. Any number of failures may be joined: the first message is always whole, later ones
// are told up to about 4 KiB together, and of all others the message has their number and the last one. If host memory
// is short, the result is `first`, whole.
GCAP_API gcap_status_t gcap_status_join(gcap_status_t first, gcap_status_t later) GCAP_NODISCARD;

// Wraps a failure: returns the status with a new code and with "<prefix>: " before its message. Consumes `status`. NULL
// gives NULL. If host memory is short, the result has the new code, without the prefix.
GCAP_API gcap_status_t gcap_status_annotate(gcap_status_t status, gcap_code_t code, const char* format, ...)
    __attribute__((format(printf, 3, 4))) GCAP_NODISCARD;

// Copies a status, for a function that both keeps and returns it. NULL gives NULL.
GCAP_API gcap_status_t gcap_status_clone(gcap_status_t status) GCAP_NODISCARD;

GCAP_API void gcap_status_free(gcap_status_t status);    // after its message was used; NULL is fine
GCAP_API void gcap_status_ignore(gcap_status_t status);  // a deliberate discard; give the reason beside the call

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_STATUS_H_
