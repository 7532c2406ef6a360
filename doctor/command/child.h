// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// child.h: the program that gcap-doctor runs, and work that must not take this process with it.
#ifndef GCAP_DOCTOR_COMMAND_CHILD_H_
#define GCAP_DOCTOR_COMMAND_CHILD_H_

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What signals were before this process took them, and what came of them.
typedef struct gcap_doctor_child_signals {
  sigset_t watched, mask;
  struct sigaction on_child, on_pipe;
  uint64_t last_ns;  // when the last of the signals came that end a process; 0 for none
} gcap_doctor_child_signals_t;

// From here to its end no signal but SIGKILL ends this process before it has cleaned up: those that end a process are
// blocked, and a write to a pipe that nobody reads fails.
void gcap_doctor_child_signals_take(gcap_doctor_child_signals_t* out_signals);

// Runs the program in the environment of this process, with its standard input and outputs, until it ends, and hands on
// the signals that this process gets meanwhile. Returns its exit code, 128 and the signal's number if a signal ended
// it, and after a sentence 127 if there is no such program, or 126 if it cannot be started. One at a time: it waits for
// signals.
int gcap_doctor_child_run(gcap_doctor_child_signals_t* signals, char** arguments, bool* out_started);

// Calls the function in a child of this process, and returns what it returned, or 128 and the number of the signal that
// ended it. The signals that end a process end the child; but not one that comes right after another, as timeout and
// some service managers send them, to the process and to its group. What the function does to memory is gone with the
// child.
int gcap_doctor_child_call(gcap_doctor_child_signals_t* signals, int (*call)(void* argument), void* argument);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_DOCTOR_COMMAND_CHILD_H_
