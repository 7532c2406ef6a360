// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// child.h: the program that gcap-doctor runs.
#ifndef GCAP_DOCTOR_COMMAND_CHILD_H_
#define GCAP_DOCTOR_COMMAND_CHILD_H_

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// Runs the program in the environment of this process, with its standard input and outputs, until it ends, and hands on
// the signals that this process gets meanwhile. Returns its exit code, 128 and the signal's number if a signal ended
// it, and after a sentence 127 if there is no such program, or 126 if it cannot be started. One at a time: it waits for
// signals.
int gcap_child_run(char** arguments, bool* out_started);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_COMMAND_CHILD_H_
