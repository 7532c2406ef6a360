// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Statuses. A status is one heap block that ends in its message, so that making one is one allocation and freeing it
// one free. Whoever changes a status owns it: join lets the message grow in place, annotate and clone build a new one.
// When the heap is empty a static status of the same code stands in, which nobody changes.
//
// However many failures are joined, a message stays short: the first failure is whole, kJoinedBytes of the next ones
// are there, and of all others their number and the last one. So a join costs no more than a message's length.
// No locking: a status belongs to one thread at a time.

#include "gcap/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/capture_hooks.h"
#include "lib/base/driver_log.h"
#include "lib/base/printable.h"
#include "lib/base/rename.h"

enum {
  kTextBytes = 65536,   // of one failure: what has more is not a name, a key or a path but somebody's data
  kJoinedBytes = 4096,  // of later failures in a message: some dozens, or one with a long story
  kCallBytes = 256,     // of a call in the message of its failure; gcap_status_info_t has all of it
  kLastBytes = 1024,    // of the last failure, if there were more
};

static const gcap_code_t last_code = GCAP_REPLAY_DIFFERS;

struct gcap_status {
  gcap_code_t code;
  cudaError_t cuda_error;
  const char* file;
  int line;
  uint64_t num_failures;  // itself, and those that were joined
  uint64_t num_unsaid;    // of them, that the message only counts
  size_t joined_bytes;    // of the message: the later failures that it tells
  size_t unsaid_bytes;    // of the message: its end, which counts the others
  size_t message_offset;  // into text; the message follows the call
  char text[];
};

// What stands in for a status that there is no memory for: one for each code, since callers decide by the code. LEAKED
// says that an object is gone, CAPTURE_INVALIDATED that the work was not done.
#define WITHOUT_MEMORY(code_) [code_] = {.code = code_, .file = __FILE__, .line = __LINE__, .num_failures = 1}
static struct gcap_status without_memory[] = {
    WITHOUT_MEMORY(GCAP_INVALID_ARGUMENT),
    WITHOUT_MEMORY(GCAP_FAILED_PRECONDITION),
    WITHOUT_MEMORY(GCAP_NOT_FOUND),
    WITHOUT_MEMORY(GCAP_ALREADY_EXISTS),
    WITHOUT_MEMORY(GCAP_RESOURCE_EXHAUSTED),
    WITHOUT_MEMORY(GCAP_UNAVAILABLE),
    WITHOUT_MEMORY(GCAP_CAPTURE_INVALIDATED),
    WITHOUT_MEMORY(GCAP_CUDA_ERROR),
    WITHOUT_MEMORY(GCAP_LIBRARY_ERROR),
    WITHOUT_MEMORY(GCAP_UNIMPLEMENTED),
    WITHOUT_MEMORY(GCAP_INTERNAL),
    WITHOUT_MEMORY(GCAP_LEAKED),
    WITHOUT_MEMORY(GCAP_CANCELLED),
    WITHOUT_MEMORY(GCAP_DEVICE_LOST),
    WITHOUT_MEMORY(GCAP_REPLAY_DIFFERS),
};
static const char without_memory_message[] = "no host memory left to describe a failure";

static bool is_static(const struct gcap_status* status) {
  return status >= without_memory && status <= &without_memory[last_code];
}

static gcap_status_t static_of(gcap_code_t code) {
  const bool is_known = code > GCAP_OK && code <= last_code;
  return &without_memory[is_known ? code : GCAP_RESOURCE_EXHAUSTED];
}

// Like `like`, with these texts, which are made printable. The message is "<prefix>: <message>"; `prefix` may be NULL.
static gcap_status_t status_new(const struct gcap_status* like, const char* call, const char* prefix,
                                const char* message) {
  static const char separator[] = ": ";
  const size_t call_bytes = gcap_printable(call, NULL, 0) + 1;
  const size_t prefix_length = prefix == NULL ? 0 : gcap_printable(prefix, NULL, 0);
  const size_t separator_length = prefix == NULL ? 0 : sizeof(separator) - 1;
  const size_t message_bytes = gcap_printable(message, NULL, 0) + 1;
  gcap_status_t status = malloc(sizeof(*status) + call_bytes + prefix_length + separator_length + message_bytes);
  if (status == NULL) return static_of(like->code);
  *status = *like;
  status->message_offset = call_bytes;
  char* at = status->text;
  gcap_printable(call, at, call_bytes);
  at += call_bytes;
  if (prefix != NULL) gcap_printable(prefix, at, prefix_length + 1);
  at += prefix_length;
  memcpy(at, separator, separator_length);
  gcap_printable(message, at + separator_length, message_bytes);
  return status;
}

// Formats into a heap string of a bounded length; NULL when there is no memory or the format is broken.
static char* format_text(const char* format, va_list args) {
  char* text = NULL;
  const int length = vasprintf(&text, format, args);
  if (length < 0) return NULL;
  if (length > kTextBytes) strcpy(text + gcap_printable_cut(text, kTextBytes - strlen("...")), "...");
  return text;
}

// Codes that mean: work that the caller issued is missing. In a capture they make the graph wrong.
static bool loses_work(gcap_code_t code) {
  return code == GCAP_CUDA_ERROR || code == GCAP_LIBRARY_ERROR || code == GCAP_RESOURCE_EXHAUSTED ||
         code == GCAP_DEVICE_LOST;
}

// The errors after which CUDA answers every call of the process with an error.
static bool loses_device(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable: return true;
    default: return false;
  }
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
  if (message == NULL) return observed(static_of(code));
  const struct gcap_status like = {.code = code, .file = file, .line = line, .num_failures = 1};
  gcap_status_t status = status_new(&like, "", NULL, message);
  free(message);
  return observed(status);
}

// Out of line: its buffer would cost every call that succeeds.
static __attribute__((noinline)) gcap_status_t describe_cuda_failure(cudaError_t error, const char* call,
                                                                     const char* file, int line) {
  (void)cudaGetLastError();  // the status carries the error from here on
  char reasons[GCAP_DRIVER_LOG_BYTES];
  gcap_driver_log_take(error, call, reasons);
  char message[kCallBytes + sizeof(reasons) + 256];
  const size_t call_bytes = gcap_printable_cut(call, kCallBytes);
  snprintf(message, sizeof(message), "%.*s%s failed: %s (%d), %s%s%s", (int)call_bytes, call,
           call[call_bytes] == '\0' ? "" : "...", cudaGetErrorName(error), (int)error, cudaGetErrorString(error),
           reasons[0] == '\0' ? "" : "; the driver's log: ", reasons);
  const struct gcap_status like = {.code = loses_device(error) ? GCAP_DEVICE_LOST : GCAP_CUDA_ERROR,
                                   .cuda_error = error,
                                   .file = file,
                                   .line = line,
                                   .num_failures = 1};
  return observed(status_new(&like, call, NULL, message));
}

gcap_status_t gcap_status_from_cuda(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) gcap_driver_log_succeeded();
  gcap_status_t status = error == cudaSuccess ? NULL : describe_cuda_failure(error, call, file, line);
  // Afterwards: the ledger asks the driver, which may fail too.
  gcap_note(call, error, NULL, file, line);
  return status;
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
    case GCAP_CANCELLED: return "CANCELLED";
    case GCAP_DEVICE_LOST: return "DEVICE_LOST";
    case GCAP_REPLAY_DIFFERS: return "REPLAY_DIFFERS";
  }
  return "unknown gcap_code_t";
}

const char* gcap_status_message(gcap_status_t status) {
  if (status == NULL) return "OK";
  return is_static(status) ? without_memory_message : status->text + status->message_offset;
}

static const char* cuda_call_of(gcap_status_t status) { return is_static(status) ? "" : status->text; }

// A caller of a newer version finds zeros in what this one does not know.
void gcap_status_read_info(gcap_status_t status, gcap_status_info_t* out_info) {
  gcap_status_info_t info = {.cuda_call = "", .file = ""};
  if (status != NULL) {
    info.cuda_error = status->cuda_error;
    info.cuda_call = cuda_call_of(status);
    info.file = status->file;
    info.line = status->line;
  }
  info.struct_size = out_info->struct_size;
  memset(out_info, 0, info.struct_size);
  memcpy(out_info, &info, info.struct_size < sizeof(info) ? info.struct_size : sizeof(info));
}

// Adds what `later` says to the message of `status`. Without memory the message stays, and the next join counts
// `later`.
static gcap_status_t append(gcap_status_t status, gcap_status_t later) {
  const char* text = gcap_status_message(later);
  const size_t whole_bytes = strlen(text);
  size_t told_bytes = gcap_printable_cut(text, kJoinedBytes);
  const bool is_told = status->num_unsaid == 0 && status->joined_bytes + told_bytes <= kJoinedBytes;
  const uint64_t num_unsaid = is_told ? 0 : status->num_unsaid + later->num_failures;
  if (!is_told) told_bytes = gcap_printable_cut(text, kLastBytes);
  char lead[64] = "; then: ";
  if (num_unsaid == 1) snprintf(lead, sizeof(lead), "; and 1 more failure: ");
  if (num_unsaid > 1) snprintf(lead, sizeof(lead), "; and %" PRIu64 " more failures, the last: ", num_unsaid);
  const char* mark = told_bytes < whole_bytes ? "..." : "";
  const size_t added_bytes = strlen(lead) + told_bytes + strlen(mark);
  const size_t kept_bytes = strlen(gcap_status_message(status)) - status->unsaid_bytes;

  status->num_failures += later->num_failures;
  gcap_status_t grown = realloc(status, sizeof(*status) + status->message_offset + kept_bytes + added_bytes + 1);
  if (grown == NULL) {
    status->num_unsaid += later->num_failures;
    return status;
  }
  snprintf(grown->text + grown->message_offset + kept_bytes, added_bytes + 1, "%s%.*s%s", lead, (int)told_bytes, text,
           mark);
  grown->num_unsaid = num_unsaid;
  if (is_told) grown->joined_bytes += added_bytes;
  if (!is_told) grown->unsaid_bytes = added_bytes;
  return grown;
}

gcap_status_t gcap_status_join(gcap_status_t first, gcap_status_t later) {
  if (first == NULL || later == NULL) return first != NULL ? first : later;
  if (is_static(first)) first = status_new(first, "", NULL, without_memory_message);
  if (!is_static(first)) first = append(first, later);
  gcap_status_free(later);
  return first;
}

gcap_status_t gcap_status_annotate(gcap_status_t status, gcap_code_t code, const char* format, ...) {
  if (status == NULL) return NULL;
  va_list args;
  va_start(args, format);
  char* prefix = format_text(format, args);
  va_end(args);
  gcap_status_t annotated = NULL;
  if (prefix != NULL) annotated = status_new(status, cuda_call_of(status), prefix, gcap_status_message(status));
  free(prefix);
  const bool is_new = annotated != NULL && !is_static(annotated);
  if (!is_new) annotated = is_static(status) ? static_of(code) : status;  // the code is worth more than the prefix
  if (!is_static(annotated)) annotated->code = code;
  if (is_new) gcap_status_free(status);
  return annotated;
}

// NULL: it is not there.
static const char* find_name(const char* message, const char* known) {
  const size_t length = strlen(known);
  const char* at = strstr(message, known);
  while (at != NULL && at[length] >= '0' && at[length] <= '9') at = strstr(at + 1, known);
  return at;
}

gcap_status_t gcap_status_rename(gcap_status_t status, const char* known, const char* name) {
  if (status == NULL) return NULL;
  const char* message = gcap_status_message(status);
  const char* at = find_name(message, known);
  if (at == NULL) return gcap_status_annotate(status, status->code, "%s", name);
  char* text = NULL;
  const int length = asprintf(&text, "%.*s%s%s", (int)(at - message), message, name, at + strlen(known));
  if (length < 0) return status;
  gcap_status_t renamed = status_new(status, cuda_call_of(status), NULL, text);
  free(text);
  if (is_static(renamed)) return status;
  gcap_status_free(status);
  return renamed;
}

gcap_status_t gcap_status_clone(gcap_status_t status) {
  return status == NULL ? NULL : status_new(status, cuda_call_of(status), NULL, gcap_status_message(status));
}

void gcap_status_free(gcap_status_t status) {
  if (!is_static(status)) free(status);
}

void gcap_status_ignore(gcap_status_t status) { gcap_status_free(status); }
