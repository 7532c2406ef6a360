// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// When may time pass by itself? When the program does nothing: then it may be waiting for work of the device by means
// of its own, a condition variable that a host function signals, say.
//
// The idea: a pause alone does not tell, for on a loaded machine a thread may be off the processor for long, and time
// that passed then would make the interleaving depend on the load. So a pause counts only when the kernel says that
// every other thread sleeps; and a thread that spins is known by the processor time that it has had, not by the clock.
// Locking: gcap_sim_wait_ms gives up the global mutex, as waits on conditions do.
#include "sim/base/silence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/base/lock.h"

bool gcap_sim_wait_ms(pthread_cond_t* condition, unsigned milliseconds) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += milliseconds / 1000;
  until.tv_nsec += (long)(milliseconds % 1000) * 1000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    ++until.tv_sec;
  }
  return pthread_cond_timedwait(condition, gcap_sim_mutex(), &until) != ETIMEDOUT;
}

// The state letter follows the name, which is in brackets and may itself hold any character.
static bool runs(const char* task) {
  char path[64];
  char text[512];
  if (snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", task) >= (int)sizeof(path)) return false;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;  // it has ended meanwhile
  const ssize_t length = read(file, text, sizeof(text) - 1);
  close(file);
  text[length > 0 ? length : 0] = '\0';
  const char* bracket = strrchr(text, ')');
  return bracket != NULL && bracket[1] == ' ' && bracket[2] == 'R';
}

// Without the heap, whose blocks a test may be counting meanwhile: opendir takes some.
bool gcap_sim_others_sleep(void) {
  const int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (tasks < 0) return true;  // no way to tell: the pause must do
  const long self = syscall(SYS_gettid);
  _Alignas(struct dirent64) char entries[1024];
  bool found = false;
  for (long bytes; !found && (bytes = syscall(SYS_getdents64, tasks, entries, sizeof(entries))) > 0;) {
    for (long at = 0; !found && at < bytes; at += ((const struct dirent64*)(entries + at))->d_reclen) {
      const char* task = ((const struct dirent64*)(entries + at))->d_name;
      found = task[0] != '.' && atol(task) != self && runs(task);
    }
  }
  close(tasks);
  return !found;
}

uint64_t gcap_sim_processor_ms(void) {
  struct timespec time = {0};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}
