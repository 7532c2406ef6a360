// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// lines.h: the lines of a file, or of a part of one in memory.
#ifndef GCAP_DOCTOR_EVENTS_LINES_H_
#define GCAP_DOCTOR_EVENTS_LINES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Begins with `file`, or with `bytes` and their number as `end`; of a file `end` is where to stop.
typedef struct gcap_doctor_lines {
  FILE* file;  // NULL for memory
  const char* bytes;
  uint64_t at, end;  // bytes that were read, and that are there
  char* line;        // a buffer as getline's; free it
  size_t capacity;
} gcap_doctor_lines_t;

// Puts the next line into `line`, with its newline unless the end came first. A zero is where bytes were not written:
// what stands before it in a line is no line. False at the end.
bool gcap_doctor_lines_next(gcap_doctor_lines_t* lines);

#endif  // GCAP_DOCTOR_EVENTS_LINES_H_
