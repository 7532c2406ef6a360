// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lines, byte by byte: a file whose writer died may have long stretches of zeros, which take no memory. Locking: none.
#include "doctor/events/lines.h"

#include "doctor/base/heap.h"

static int next_byte(gcap_doctor_lines_t* lines) {
  if (lines->at >= lines->end) return EOF;
  const int byte = lines->file != NULL ? getc_unlocked(lines->file) : (unsigned char)lines->bytes[lines->at];
  if (byte != EOF) ++lines->at;
  return byte;
}

bool gcap_doctor_lines_next(gcap_doctor_lines_t* lines) {
  size_t length = 0;
  int byte = 0;
  while (byte != '\n' && (byte = next_byte(lines)) != EOF) {
    if (byte == '\0') {
      length = 0;
      continue;
    }
    while (length + 1 >= lines->capacity) {
      lines->line = gcap_doctor_heap_grow(lines->line, lines->capacity, &lines->capacity, 1);
    }
    lines->line[length++] = (char)byte;
  }
  if (length != 0) lines->line[length] = '\0';
  return length != 0;
}
