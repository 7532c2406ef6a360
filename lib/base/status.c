// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Statuses. A status is one heap block that ends in its message, so that making one is one allocation and freeing it
// one free. It is immutable: join and annotate build a new one. When the heap is empty a static status stands in.
// No locking: a status belongs to one thread at a time.

#include "gcap/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/capture_hooks.h"

struct gcap_status {
  gcap_code_t code;
  cudaError_t cuda_error;
  const char* file;
  int line;
  size_t call_offset;  // into text; the call follows the message
  char text[];
};

static struct gcap_status out_of_memory = {.code = GCAP_RESOURCE_EXHAUSTED, .file = __FILE__, .line = __LINE__};
static const char out_of_memory_message[] = "no host memory left to describe a failure";

static gcap_status_t status_new(const struct gcap_status* like, const char* message, const char* call) {
  size_t message_bytes = strlen(message) + 1;
  size_t call_bytes = strlen(call) + 1;
  gcap_status_t status = malloc(sizeof(*status) + message_bytes + call_bytes);
  if (status == NULL) return &out_of_memory;
  *status = *like;
  status->call_offset = message_bytes;
  memcpy(status->text, message, message_bytes);
  memcpy(status->text + message_bytes, call, call_bytes);
  return status;
}

// Formats into a heap string; NULL when there is no memory or the format is broken.
static char* format_text(const char* format, va_list args) {
  char* text = NULL;
  return vasprintf(&text, format, args) < 0 ? NULL : text;
}

// Codes that mean: work that the caller issued is missing. In a capture they make the graph wrong.
static bool loses_work(gcap_code_t code) {
  return code == GCAP_CUDA_ERROR || code == GCAP_LIBRARY_ERROR || code == GCAP_RESOURCE_EXHAUSTED;
}

static gcap_status_t observed(gcap_status_t status) {
  if (gcap_thread_captures() && loses_work(status->code)) gcap_thread_capture_hooks->fail(status);
  return status;
}

gcap_status_t gcap_status_make(gcap_code_t code, const char* file, int line, const char* format, ...) {
  va_list args;
  va_start(args, format);
  char* message = format_text(format, args);
  va_end(args);
  if (message == NULL) return observed(&out_of_memory);
  const struct gcap_status like = {.code = code, .file = file, .line = line};
  gcap_status_t status = status_new(&like, message, "");
  free(message);
  return observed(status);
}

// Out of line: its buffer would cost every call that succeeds.
static __attribute__((noinline)) gcap_status_t describe_cuda_failure(cudaError_t error, const char* call,
                                                                     const char* file, int line) {
  (void)cudaGetLastError();  // the status carries the error from here on
  char message[512];
  snprintf(message, sizeof(message), "%s failed: %s (%d), %s", call, cudaGetErrorName(error), (int)error,
           cudaGetErrorString(error));
  const struct gcap_status like = {.code = GCAP_CUDA_ERROR, .cuda_error = error, .file = file, .line = line};
  return observed(status_new(&like, message, call));
}

gcap_status_t gcap_status_from_cuda(cudaError_t error, const char* call, const char* file, int line) {
  if (gcap_thread_captures() && gcap_thread_capture_hooks->note != NULL) {
    gcap_thread_capture_hooks->note(call, NULL, file, line);
  }
  return error == cudaSuccess ? NULL : describe_cuda_failure(error, call, file, line);
}

gcap_code_t gcap_status_code(gcap_status_t status) { return status == NULL ? GCAP_OK : status->code; }

const char* gcap_code_name(gcap_code_t code) {
  switch (code) {
    case GCAP_OK: return "OK";
    case GCAP_INVALID_ARGUMENT: return "INVALID_ARGUMENT";
    case GCAP_FAILED_PRECONDITION: return "FAILED_PRECONDITION";
    case GCAP_NOT_FOUND: return "NOT_FOUND";
    case GCAP_ALREADY_EXISTS: return "ALREADY_EXISTS";
    case GCAP_RESOURCE_EXHAUSTED: return "RESOURCE_EXHAUSTED";
    case GCAP_UNAVAILABLE: return "UNAVAILABLE";
    case GCAP_CAPTURE_INVALIDATED: return "CAPTURE_INVALIDATED";
    case GCAP_CUDA_ERROR: return "CUDA_ERROR";
    case GCAP_LIBRARY_ERROR: return "LIBRARY_ERROR";
    case GCAP_UNIMPLEMENTED: return "UNIMPLEMENTED";
    case GCAP_INTERNAL: return "INTERNAL";
    case GCAP_LEAKED: return "LEAKED";
  }
  return "unknown gcap_code_t";
}

const char* gcap_status_message(gcap_status_t status) {
  if (status == NULL) return "OK";
  return status == &out_of_memory ? out_of_memory_message : status->text;
}

cudaError_t gcap_status_cuda_error(gcap_status_t status) { return status == NULL ? cudaSuccess : status->cuda_error; }

const char* gcap_status_cuda_call(gcap_status_t status) {
  return status == NULL || status == &out_of_memory ? "" : status->text + status->call_offset;
}

const char* gcap_status_file(gcap_status_t status) { return status == NULL ? "" : status->file; }

int gcap_status_line(gcap_status_t status) { return status == NULL ? 0 : status->line; }

// A copy of `like` with another message; `like` stays as it is.
static gcap_status_t with_message(gcap_status_t like, gcap_code_t code, const char* format, ...) {
  va_list args;
  va_start(args, format);
  char* message = format_text(format, args);
  va_end(args);
  if (message == NULL) return &out_of_memory;
  struct gcap_status header = *like;
  header.code = code;
  gcap_status_t status = status_new(&header, message, gcap_status_cuda_call(like));
  free(message);
  return status;
}

gcap_status_t gcap_status_join(gcap_status_t first, gcap_status_t later) {
  if (first == NULL || later == NULL) return first != NULL ? first : later;
  gcap_status_t joined =
      with_message(first, first->code, "%s; then: %s", gcap_status_message(first), gcap_status_message(later));
  gcap_status_free(first);
  gcap_status_free(later);
  return joined;
}

gcap_status_t gcap_status_annotate(gcap_status_t status, gcap_code_t code, const char* format, ...) {
  if (status == NULL) return NULL;
  va_list args;
  va_start(args, format);
  char* prefix = format_text(format, args);
  va_end(args);
  gcap_status_t annotated =
      with_message(status, code, "%s: %s", prefix == NULL ? "" : prefix, gcap_status_message(status));
  free(prefix);
  gcap_status_free(status);
  return annotated;
}

gcap_status_t gcap_status_clone(gcap_status_t status) {
  return status == NULL ? NULL : with_message(status, status->code, "%s", gcap_status_message(status));
}

void gcap_status_free(gcap_status_t status) {
  if (status != &out_of_memory) free(status);
}

void gcap_status_ignore(gcap_status_t status) { gcap_status_free(status); }
