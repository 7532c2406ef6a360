// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// writer.h: the file of events of this process.
#ifndef GCAP_DOCTOR_RECORD_WRITER_H_
#define GCAP_DOCTOR_RECORD_WRITER_H_

#include <stdbool.h>
#include <stdint.h>

#include "doctor/record/text.h"

#pragma GCC visibility push(hidden)

// Makes the file PREFIX.PID.events and writes its first line. False, and said on stderr, if it cannot.
bool gcap_writer_open(const char* prefix, uint64_t limit_bytes);

// Whether lines are still taken: the file is open, and this is the process that opened it. Thread-safe.
bool gcap_writer_is_open(void);
// Whether lines are no longer taken; costs nothing. Thread-safe.
bool gcap_writer_is_full(void);
// Whole lines, by one write. Thread-safe. False if they were not written.
bool gcap_writer_write(const gcap_text_t* lines);
// No more lines are taken, for ever.
void gcap_writer_stop(void);

// A sentence for the reader, in the file if it is open, and on stderr. Thread-safe.
void gcap_writer_note(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Nanoseconds of the monotonic clock since gcap_writer_open.
uint64_t gcap_writer_now(void);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_WRITER_H_
