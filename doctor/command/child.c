// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs a program, or a function of this one, in a child, and hands signals on.
//
// The idea: signals are blocked before the fork and taken one by one, with the child's end among them, so none is lost
// between two steps and no handler runs. A terminal sends its signals to the child too, so those are not handed on. A
// function in a child may run out of memory, crash or be interrupted: what it leaves behind is still cleaned up here.
// Locking: none; one thread.
#include "doctor/command/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "doctor/base/clock.h"
#include "doctor/command/options.h"

enum {
  kNotStarted = 126,
  kNotFound = 127,
  kSignalled = 128,
  kSameSignalNs = 500000000,
};

static const int kHandedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

void gcap_doctor_child_signals_take(gcap_doctor_child_signals_t* out_signals) {
  sigset_t* watched = &out_signals->watched;
  sigemptyset(watched);
  sigaddset(watched, SIGCHLD);
  for (size_t i = 0; i < sizeof(kHandedOn) / sizeof(kHandedOn[0]); ++i) sigaddset(watched, kHandedOn[i]);
  out_signals->last_ns = 0;
  sigprocmask(SIG_BLOCK, watched, &out_signals->mask);
  // Where its end is ignored, the kernel throws what it ended with away.
  const struct sigaction by_default = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
  sigaction(SIGCHLD, &by_default, &out_signals->on_child);
  sigaction(SIGPIPE, &ignored, &out_signals->on_pipe);
}

// In the child: returns only if the program does not start.
static void start(char** arguments, const gcap_doctor_child_signals_t* signals, int errors) {
  sigaction(SIGCHLD, &signals->on_child, NULL);
  sigaction(SIGPIPE, &signals->on_pipe, NULL);
  sigprocmask(SIG_SETMASK, &signals->mask, NULL);
  execvp(arguments[0], arguments);
  int error = errno;
  if (write(errors, &error, sizeof(error)) < 0) _exit(kNotStarted);
  _exit(kNotFound);
}

// A signal of those that end a process. Returns whether it is one with the last one.
static bool is_repeated(gcap_doctor_child_signals_t* signals) {
  const uint64_t now = gcap_doctor_clock_now_ns(), last = signals->last_ns;
  signals->last_ns = now;
  return last != 0 && now - last < kSameSignalNs;
}

// What a signal does to the child: a program has it itself; a function is ended. Returns the number of the signal that
// ended it, else 0.
static int hand_on(gcap_doctor_child_signals_t* signals, pid_t pid, bool is_program, const siginfo_t* info) {
  const int number = info->si_signo;
  const bool is_users = number == SIGUSR1 || number == SIGUSR2;
  const bool repeated = !is_users && is_repeated(signals);
  if (is_program && info->si_code <= 0) kill(pid, number);
  if (is_program || is_users || repeated) return 0;
  kill(pid, SIGKILL);
  return number;
}

// Waits for the child's end. Returns its exit code, or 128 and the number of the signal that ended it.
static int wait_for(gcap_doctor_child_signals_t* signals, pid_t pid, bool is_program) {
  int ended_by = 0;
  for (;;) {
    int state;
    pid_t ended = waitpid(pid, &state, WNOHANG);
    if (ended == pid && !WIFSIGNALED(state)) return WEXITSTATUS(state);
    if (ended == pid) return kSignalled + (ended_by != 0 ? ended_by : WTERMSIG(state));
    if (ended < 0 && errno != EINTR) return 0;
    siginfo_t info;
    int number = sigwaitinfo(&signals->watched, &info);
    if (number > 0 && number != SIGCHLD && ended_by == 0) ended_by = hand_on(signals, pid, is_program, &info);
  }
}

// What came before the end of the program was seen is the program's, and no reason to end the report.
static void take_pending(gcap_doctor_child_signals_t* signals) {
  const struct timespec no_time = {0};
  for (int number; (number = sigtimedwait(&signals->watched, NULL, &no_time)) > 0;) {
    if (number != SIGCHLD && number != SIGUSR1 && number != SIGUSR2) (void)is_repeated(signals);
  }
}

static int say_not_started(const char* program, int error) {
  gcap_doctor_say("run: cannot start '%s': %s", program, strerror(error));
  return error == ENOENT || error == ENOTDIR ? kNotFound : kNotStarted;
}

// What the child could not start for; 0 if it did.
static int start_error(int errors) {
  int error = 0;
  ssize_t got;
  do {
    got = read(errors, &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  return got == sizeof(error) ? error : 0;
}

int gcap_doctor_child_run(gcap_doctor_child_signals_t* signals, char** arguments, bool* out_started) {
  int ends[2];
  *out_started = false;
  if (pipe2(ends, O_CLOEXEC) != 0) return say_not_started(arguments[0], errno);
  pid_t pid = fork();
  if (pid == 0) start(arguments, signals, ends[1]);
  int error = pid < 0 ? errno : 0;
  close(ends[1]);
  if (pid > 0) error = start_error(ends[0]);
  close(ends[0]);
  int code = pid > 0 ? wait_for(signals, pid, true) : 0;
  take_pending(signals);
  *out_started = error == 0;
  return error != 0 ? say_not_started(arguments[0], error) : code;
}

int gcap_doctor_child_call(gcap_doctor_child_signals_t* signals, int (*call)(void* argument), void* argument) {
  fflush(NULL);  // or the child would write it too
  pid_t pid = fork();
  // There the signals stay blocked: this process decides.
  if (pid == 0) exit(call(argument));
  return pid > 0 ? wait_for(signals, pid, false) : call(argument);
}
