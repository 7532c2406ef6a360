// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// writer.h: the file of events of this process.
#ifndef GCAP_DOCTOR_RECORD_WRITER_H_
#define GCAP_DOCTOR_RECORD_WRITER_H_

#include <stdbool.h>
#include <stdint.h>

#include "doctor/record/line.h"

#pragma GCC visibility push(hidden)

// Makes the file PREFIX.PID.events and writes its first line. False, and said on stderr, if it cannot. Where an earlier
// program of this process, before exec(), made that file, it is PREFIX.PID.2.events, and so on. `run` may be NULL.
bool gcap_doctor_writer_open(const char* prefix, const char* run, uint64_t limit_bytes);
// From now on nothing is said on stderr, which may be any file of the program's.
void gcap_doctor_writer_started(void);

// Whether lines are still taken: the file is open, and this is the process that opened it. Thread-safe.
bool gcap_doctor_writer_is_open(void);
// Whether lines are no longer taken; costs nothing. Thread-safe.
bool gcap_doctor_writer_is_full(void);
// Whole lines, by one write. Thread-safe. False if they were not written.
bool gcap_doctor_writer_write(const gcap_doctor_line_t* lines);
// The same for lines that others refer to: they stay in the file where others give way to newer ones.
bool gcap_doctor_writer_define(const gcap_doctor_line_t* lines);
// The lines, with the last one of all. No more lines are taken, for ever. `is_within`: the calling thread may have been
// interrupted as it wrote.
void gcap_doctor_writer_finish(gcap_doctor_line_t* lines, bool is_within);
// No more lines are taken, for ever.
void gcap_doctor_writer_stop(void);

// A sentence for the reader, in the file if it is open, and, at the start, on stderr. Thread-safe.
void gcap_doctor_writer_note(const char* format, ...) __attribute__((format(printf, 1, 2)));
// A sentence on stderr; at the start, and what an audit has to tell before the device faults.
void gcap_doctor_writer_say(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Nanoseconds of the monotonic clock since gcap_doctor_writer_open.
uint64_t gcap_doctor_writer_now(void);

#pragma GCC visibility pop

#endif  // GCAP_DOCTOR_RECORD_WRITER_H_
