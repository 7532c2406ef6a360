// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs a program and hands signals on.
//
// The idea: signals are blocked before the fork and taken one by one, with the child's end among them, so none is lost
// between two steps and no handler runs. A terminal sends its signals to the program too, so those are not handed on.
// Locking: none; one thread.
#include "doctor/command/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/command/options.h"

enum { kNotStarted = 126, kNotFound = 127, kSignalled = 128 };

static const int kHandedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static void watched_signals(sigset_t* set) {
  sigemptyset(set);
  sigaddset(set, SIGCHLD);
  for (size_t i = 0; i < sizeof(kHandedOn) / sizeof(kHandedOn[0]); ++i) sigaddset(set, kHandedOn[i]);
}

// In the child: returns only if the program does not start.
static void start(char** arguments, const sigset_t* mask, const struct sigaction* on_child, int errors) {
  sigaction(SIGCHLD, on_child, NULL);
  sigprocmask(SIG_SETMASK, mask, NULL);
  execvp(arguments[0], arguments);
  int error = errno;
  if (write(errors, &error, sizeof(error)) < 0) _exit(kNotStarted);
  _exit(kNotFound);
}

// Waits for the child's end. Returns what waitpid tells of it.
static int wait_for(pid_t pid, const sigset_t* watched) {
  for (;;) {
    int state;
    pid_t ended = waitpid(pid, &state, WNOHANG);
    if (ended == pid) return state;
    if (ended < 0 && errno != EINTR) return 0;
    siginfo_t info;
    int number = sigwaitinfo(watched, &info);
    if (number > 0 && number != SIGCHLD && info.si_code <= 0) kill(pid, number);
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

// The fork, with the signals blocked. Returns the exit code.
static int run_blocked(char** arguments, const sigset_t* watched, const sigset_t* mask,
                       const struct sigaction* on_child, bool* out_started) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return say_not_started(arguments[0], errno);
  pid_t pid = fork();
  if (pid == 0) start(arguments, mask, on_child, ends[1]);
  int error = pid < 0 ? errno : 0;
  close(ends[1]);
  if (pid > 0) error = start_error(ends[0]);
  close(ends[0]);
  int state = pid > 0 ? wait_for(pid, watched) : 0;
  *out_started = error == 0;
  if (error != 0) return say_not_started(arguments[0], error);
  return WIFSIGNALED(state) ? kSignalled + WTERMSIG(state) : WEXITSTATUS(state);
}

int gcap_child_run(char** arguments, bool* out_started) {
  *out_started = false;
  sigset_t watched, mask;
  watched_signals(&watched);
  struct sigaction on_child, by_default = {.sa_handler = SIG_DFL};
  // Where it is ignored, the kernel throws ends away.
  sigaction(SIGCHLD, &by_default, &on_child);
  sigprocmask(SIG_BLOCK, &watched, &mask);
  int code = run_blocked(arguments, &watched, &mask, &on_child, out_started);
  sigprocmask(SIG_SETMASK, &mask, NULL);
  sigaction(SIGCHLD, &on_child, NULL);
  return code;
}
