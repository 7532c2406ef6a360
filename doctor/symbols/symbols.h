// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// symbols.h: what this machine's files tell of a recording's frames: functions, files and lines of those of C, and
// which of Python's are of installed packages.
#ifndef GCAP_DOCTOR_SYMBOLS_SYMBOLS_H_
#define GCAP_DOCTOR_SYMBOLS_SYMBOLS_H_

#include <stdbool.h>
#include <stdint.h>

#include "doctor/events/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

// When a report that begins now stops asking for symbols, on the monotonic clock: GCAP_DOCTOR_SYMBOLIZER_SECONDS from
// now, 2 by default. One time is for all recordings of a report.
uint64_t gcap_doctor_symbols_deadline(void);

// Gives the C frames of the stacks for which `wanted` is true, by their indices, what addr2line, or a program with its
// options, says of them until the deadline: function, file, line, and the functions that were inlined, as frames of
// their own. C++ names are readable afterwards. A frame of a module that is gone, or has nothing to say, stays as it
// is, and so do those for which no time is left.
//
// A module's file is asked only where its build id is the recorded one. Where it is another, the recording gets a note
// with both. Where the recording does not tell, or neither it nor the file has one, the file is asked, and a note says
// so.
//
// GCAP_DOCTOR_SYMBOLIZER names the program; `none` for none.
void gcap_doctor_symbols_resolve(gcap_doctor_recording_t* recording, const bool* wanted, uint64_t deadline_ns);

// Notes which Python frames are of files that are installed packages on this machine, wherever they were installed.
void gcap_doctor_symbols_find_installed(gcap_doctor_recording_t* recording);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_SYMBOLS_SYMBOLS_H_
