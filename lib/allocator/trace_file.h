// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// trace_file.h: an allocator's events as lines of a file.
#ifndef GCAP_LIB_ALLOCATOR_TRACE_FILE_H_
#define GCAP_LIB_ALLOCATOR_TRACE_FILE_H_

#include "gcap/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_trace_file gcap_trace_file_t;

// Makes the file, or empties it.
//   INVALID_ARGUMENT    it cannot be written, and why; or somebody else is writing it
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_trace_file_create(const char* path, gcap_trace_file_t** out_file) GCAP_NODISCARD;

// Closes it. NULL is fine.
//   LIBRARY_ERROR  not all events are in the file, and why
gcap_status_t gcap_trace_file_destroy(gcap_trace_file_t* file) GCAP_NODISCARD;

// Writes an event as a line of a trace (gcap_allocator_event_t), without a newline. As snprintf: returns the line's
// length and truncates the line if there is no room.
int gcap_trace_line(const gcap_allocator_event_t* event, char* out_line, size_t line_bytes);

// Writes an event as a line (gcap_trace_line), behind those of lower numbers, for which it waits. `user` is
// the file. No number may be missing.
void gcap_trace_file_on_event(void* user, const gcap_allocator_event_t* event);

// For a file that is never destroyed: what is written so far is in the file then, and somebody else may write it anew.
void gcap_trace_file_flush(gcap_trace_file_t* file);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_ALLOCATOR_TRACE_FILE_H_
