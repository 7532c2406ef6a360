// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// symbols.h: functions, files and lines for the C frames of a recording.
#ifndef GCAP_DOCTOR_SYMBOLS_SYMBOLS_H_
#define GCAP_DOCTOR_SYMBOLS_SYMBOLS_H_

#include <stdbool.h>

#include "doctor/events/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

// Gives the C frames of the stacks for which `wanted` is true, by their indices, what addr2line, or a program with its
// options, says of them: function, file, line, and the functions that were inlined, as frames of their own. C++ names
// are readable afterwards. A frame of a module that is gone, or has nothing to say, stays as it is.
//
// GCAP_DOCTOR_SYMBOLIZER names the program; `none` for none. GCAP_DOCTOR_SYMBOLIZER_SECONDS is the most that all of it
// may take; 2 by default.
void gcap_symbols_resolve(gcap_recording_t* recording, const bool* wanted);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_SYMBOLS_SYMBOLS_H_
