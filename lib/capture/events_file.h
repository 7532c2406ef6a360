// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// events_file.h: a file of events, docs/doctor_events.md: its first lines, and what each line of a call consists of.
#ifndef GCAP_LIB_CAPTURE_EVENTS_FILE_H_
#define GCAP_LIB_CAPTURE_EVENTS_FILE_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes or empties the file, and writes its first lines: that of the program, and that of the calling thread, whose id
// is 1.
//   INVALID_ARGUMENT  the file cannot be written
gcap_status_t gcap_events_file_open(const char* path, FILE** out_file) GCAP_NODISCARD;
//   UNAVAILABLE  the file is incomplete
gcap_status_t gcap_events_file_close(FILE* file, const char* path) GCAP_NODISCARD;

// A field with a text.
void gcap_events_file_write_string(FILE* file, const char* key, const char* text);
// A stack of this id, of one frame at the place. False, and nothing is written: the place is not known.
bool gcap_events_file_write_place(FILE* file, uint32_t id, const char* source, int line);
// A range of this id, of the labels that were open. False, and nothing is written: none were.
bool gcap_events_file_write_labels(FILE* file, uint32_t id, const char* labels);
// The fields of what was called: "cudaMalloc(&x, 64)" is a function and its arguments; another text is all function.
void gcap_events_file_write_operation(FILE* file, const char* operation);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_CAPTURE_EVENTS_FILE_H_
