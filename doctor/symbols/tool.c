// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Asks a program, and waits no longer than is allowed.
//
// The idea: the program writes into a pipe, which is polled until its end or the deadline; then the program is killed,
// so that it is gone in every case. Locking: none.
#include "doctor/symbols/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/base/clock.h"

extern char** environ;

// Starts the program with its output in a pipe, which it returns; -1 when that cannot be, with the error in *out_error.
static int start(char* const* arguments, pid_t* pid, int* out_error) {
  int ends[2];
  *out_error = EMFILE;
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  *out_error = posix_spawnp(pid, arguments[0], &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (*out_error == 0) return ends[0];
  close(ends[0]);
  return -1;
}

// Waits for more in the pipe; false at the deadline.
static bool wait_for_more(int fd, uint64_t deadline_ns) {
  for (;;) {
    uint64_t now = gcap_doctor_clock_now_ns();
    if (now >= deadline_ns) return false;
    struct pollfd about = {.fd = fd, .events = POLLIN};
    int ready = poll(&about, 1, (int)((deadline_ns - now) / 1000000 + 1));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// Reads to the end of the pipe; false where the time is over first.
static bool read_all(gcap_doctor_heap_t* heap, int fd, uint64_t deadline_ns, char** out_text) {
  char* text = NULL;
  size_t length = 0, capacity = 0;
  bool ended = false;
  while (!ended && wait_for_more(fd, deadline_ns)) {
    char bytes[4096];
    ssize_t got = read(fd, bytes, sizeof(bytes));
    ended = got == 0 || (got < 0 && errno != EINTR);
    for (ssize_t i = 0; i < got; ++i) {
      text = gcap_doctor_heap_grow(text, length, &capacity, 1);
      text[length++] = bytes[i];
    }
  }
  *out_text = gcap_doctor_heap_copy(heap, text != NULL ? text : "", length);
  free(text);
  return ended;
}

gcap_doctor_tool_result_t gcap_doctor_tool_ask(gcap_doctor_heap_t* heap, char* const* arguments, uint64_t deadline_ns,
                                               char** out_text) {
  *out_text = gcap_doctor_heap_copy(heap, "", 0);
  pid_t pid;
  int error, state = 0;
  int fd = start(arguments, &pid, &error);
  if (fd < 0) return error == ENOENT || error == EACCES ? GCAP_DOCTOR_TOOL_MISSING : GCAP_DOCTOR_TOOL_FAILED;
  bool ended = read_all(heap, fd, deadline_ns, out_text);
  close(fd);
  if (!ended) kill(pid, SIGKILL);
  while (waitpid(pid, &state, 0) < 0 && errno == EINTR) continue;
  return ended && WIFEXITED(state) && WEXITSTATUS(state) == 0 ? GCAP_DOCTOR_TOOL_ANSWERED : GCAP_DOCTOR_TOOL_FAILED;
}
