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

#include "doctor/command/options.h"

enum { kNotStarted = 126, kNotFound = 127, kSignalled = 128 };

static const int kHandedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

void gcap_child_signals_take(gcap_child_signals_t* out_signals) {
  sigset_t* watched = &out_signals->watched;
  sigemptyset(watched);
  sigaddset(watched, SIGCHLD);
  for (size_t i = 0; i < sizeof(kHandedOn) / sizeof(kHandedOn[0]); ++i) sigaddset(watched, kHandedOn[i]);
  sigprocmask(SIG_BLOCK, watched, &out_signals->mask);
  // Where its end is ignored, the kernel throws what it ended with away.
  const struct sigaction by_default = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
  sigaction(SIGCHLD, &by_default, &out_signals->on_child);
  sigaction(SIGPIPE, &ignored, &out_signals->on_pipe);
}

// The signals that came until now are the last child's, not the next one's.
static void forget_signals(const sigset_t* watched) {
  const struct timespec now = {0};
  while (sigtimedwait(watched, NULL, &now) > 0) continue;
}

// In the child: returns only if the program does not start.
static void start(char** arguments, const gcap_child_signals_t* signals, int errors) {
  sigaction(SIGCHLD, &signals->on_child, NULL);
  sigaction(SIGPIPE, &signals->on_pipe, NULL);
  sigprocmask(SIG_SETMASK, &signals->mask, NULL);
  execvp(arguments[0], arguments);
  int error = errno;
  if (write(errors, &error, sizeof(error)) < 0) _exit(kNotStarted);
  _exit(kNotFound);
}

// Waits for the child's end. Returns what waitpid tells of it. SIGUSR1 and SIGUSR2 are the program's alone.
static int wait_for(pid_t pid, const sigset_t* watched, bool is_program) {
  for (;;) {
    int state;
    pid_t ended = waitpid(pid, &state, WNOHANG);
    if (ended == pid) return state;
    if (ended < 0 && errno != EINTR) return 0;
    siginfo_t info;
    int number = sigwaitinfo(watched, &info);
    const bool is_wanted = is_program || (number != SIGUSR1 && number != SIGUSR2);
    if (number > 0 && number != SIGCHLD && is_wanted && info.si_code <= 0) kill(pid, number);
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

static int code_of(int state) { return WIFSIGNALED(state) ? kSignalled + WTERMSIG(state) : WEXITSTATUS(state); }

int gcap_child_run(const gcap_child_signals_t* signals, char** arguments, bool* out_started) {
  int ends[2];
  *out_started = false;
  if (pipe2(ends, O_CLOEXEC) != 0) return say_not_started(arguments[0], errno);
  pid_t pid = fork();
  if (pid == 0) start(arguments, signals, ends[1]);
  int error = pid < 0 ? errno : 0;
  close(ends[1]);
  if (pid > 0) error = start_error(ends[0]);
  close(ends[0]);
  int state = pid > 0 ? wait_for(pid, &signals->watched, true) : 0;
  forget_signals(&signals->watched);
  *out_started = error == 0;
  return error != 0 ? say_not_started(arguments[0], error) : code_of(state);
}

// In the child. A signal for the program that comes late ends no report.
static _Noreturn void call_and_end(const gcap_child_signals_t* signals, int (*call)(void* argument), void* argument) {
  sigset_t mask = signals->mask;
  sigaddset(&mask, SIGUSR1);
  sigaddset(&mask, SIGUSR2);
  sigprocmask(SIG_SETMASK, &mask, NULL);
  exit(call(argument));
}

int gcap_child_call(const gcap_child_signals_t* signals, int (*call)(void* argument), void* argument) {
  fflush(NULL);  // or the child would write it too
  pid_t pid = fork();
  if (pid == 0) call_and_end(signals, call, argument);
  return pid > 0 ? code_of(wait_for(pid, &signals->watched, false)) : call(argument);
}
