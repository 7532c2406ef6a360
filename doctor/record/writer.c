// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The file of events. Lines go into it by one write, each to a place that room.c gives: those of several threads do not
// mix, and a crash leaves whole lines. A child of fork() has the parent's descriptor, so each write asks whose process
// this is: a page that the kernel clears in a child tells, without a call. Locking: none here.
#include "doctor/record/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "doctor/record/own_file.h"
#include "doctor/record/room.h"

enum {
  kRoom = 64 << 10,   // what is left of what a file may have
  kLeast = 16 << 10,  // of a limit: the first line and some calls
  kMaxFiles = 100,    // of one process
};

static struct {
  atomic_bool open, is_started;
  gcap_doctor_own_file_t file;
  const int* is_ours;  // in a page of its own
  pid_t pid;
  uint64_t start_ns;
} writer = {.file = {.descriptor = -1}};

static uint64_t clock_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

uint64_t gcap_doctor_writer_now(void) { return clock_ns(CLOCK_MONOTONIC) - writer.start_ns; }

// The command line, its words separated by spaces.
static void read_program(char* out, size_t size) {
  ssize_t length = -1;
  int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    length = read(file, out, size - 1);
    close(file);
  }
  out[length > 0 ? length : 0] = '\0';
  while (length > 0 && out[length - 1] == '\0') --length;
  for (ssize_t i = 0; i < length; ++i) {
    if (out[i] == '\0') out[i] = ' ';
  }
}

// The file stays below the size that a file of this process may have.
static uint64_t within_allowed(uint64_t limit_bytes) {
  struct rlimit allowed;
  if (getrlimit(RLIMIT_FSIZE, &allowed) != 0 || allowed.rlim_cur == RLIM_INFINITY) return limit_bytes;
  const uint64_t most = allowed.rlim_cur > kRoom ? allowed.rlim_cur - kRoom : 0;
  return most < limit_bytes ? most : limit_bytes;
}

// The nanoseconds of Unix time at which the process began, to a tick of the kernel's; UINT64_MAX if it is not known.
static uint64_t start_of_process(void) {
  char text[1024];
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file >= 0 ? read(file, text, sizeof(text) - 1) : -1;
  if (file >= 0) close(file);
  text[length > 0 ? length : 0] = '\0';
  const char* at = strrchr(text, ')');  // behind the name; field 22 is the twentieth from there
  for (int i = 0; at != NULL && i < 20; ++i) at = strchr(at + 1, ' ');
  const long ticks = sysconf(_SC_CLK_TCK);
  if (at == NULL || ticks <= 0) return UINT64_MAX;
  const uint64_t since_boot = strtoull(at, NULL, 10) * (UINT64_C(1000000000) / (uint64_t)ticks);
  return clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) + since_boot;
}

// Whether the file is of this process: of a program that it ran before exec().
static bool is_of_process(const char* path, uint64_t start_ns) {
  static const uint64_t kTickNs = 20000000;
  struct stat status;
  if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) return false;
  const uint64_t changed_ns = (uint64_t)status.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)status.st_mtim.tv_nsec;
  return start_ns != UINT64_MAX && changed_ns + kTickNs >= start_ns;
}

// A new file, the user's alone; what was there is neither followed nor written to. -1, and errno, if there can be none.
static int make_file(const char* prefix, int pid, char* path, size_t size) {
  const uint64_t start_ns = start_of_process();
  for (int i = 1; i <= kMaxFiles; ++i) {
    char number[16] = "";
    if (i > 1) snprintf(number, sizeof(number), ".%d", i);
    if ((size_t)snprintf(path, size, "%s.%d%s.events", prefix, pid, number) >= size) {
      errno = ENAMETOOLONG;
      return -1;
    }
    if (is_of_process(path, start_ns)) continue;
    unlink(path);
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    // Another user's, in a folder where each may remove his own.
    if (file >= 0 || errno != EEXIST) return file;
  }
  errno = EEXIST;
  return -1;
}

static bool write_first_line(const char* run) {
  char program[2048];
  read_program(program, sizeof(program));
  gcap_doctor_line_t first = {0};
  gcap_doctor_line_begin(&first, "gcap-events");
  gcap_doctor_line_number(&first, "version", 3);
  gcap_doctor_line_number(&first, "pid", (uint64_t)writer.pid);
  gcap_doctor_line_number(&first, "time", clock_ns(CLOCK_REALTIME) / UINT64_C(1000000000));
  if (run != NULL) gcap_doctor_line_field(&first, "run", run);
  gcap_doctor_line_field(&first, "program", program);
  gcap_doctor_line_end(&first);
  const bool written = gcap_doctor_writer_define(&first);
  gcap_doctor_line_free(&first);
  return written;
}

// Says why there is no file.
static bool refuse(const char* path) {
  gcap_doctor_writer_stop();
  gcap_doctor_writer_say("'%.1000s' cannot be written (%s), so nothing is recorded; GCAP_DOCTOR_EVENTS says where.",
                         path, strerror(errno));
  return false;
}

// NOTE: a kernel before 4.14 does not clear the page; there a handler of fork() stops the child.
static bool make_page(void) {
  const size_t size = (size_t)sysconf(_SC_PAGESIZE);
  int* page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  (void)madvise(page, size, MADV_WIPEONFORK);
  *page = 1;
  writer.is_ours = page;
  return true;
}

bool gcap_doctor_writer_open(const char* prefix, const char* run, uint64_t limit_bytes) {
  char path[4096];
  writer.pid = getpid();
  const uint64_t limit = within_allowed(limit_bytes);
  writer.start_ns = clock_ns(CLOCK_MONOTONIC);
  if (limit < kLeast) {
    gcap_doctor_writer_say("RLIMIT_FSIZE lets a file have fewer than %d bytes, so nothing is recorded.",
                           kLeast + kRoom);
    return false;
  }
  const int file = make_file(prefix, (int)writer.pid, path, sizeof(path));
  if (!gcap_doctor_own_file_take(&writer.file, file) || !make_page()) return refuse(path);
  gcap_doctor_room_start(limit);
  atomic_store(&writer.open, true);
  return write_first_line(run) || refuse(path);
}

bool gcap_doctor_writer_is_full(void) { return !atomic_load_explicit(&writer.open, memory_order_relaxed); }

bool gcap_doctor_writer_is_open(void) { return !gcap_doctor_writer_is_full() && *writer.is_ours != 0; }

// It stays in the file.
static void note_in_file(const char* sentence) {
  gcap_doctor_line_t line = {0};
  gcap_doctor_line_begin(&line, "note");
  gcap_doctor_line_field(&line, "text", sentence);
  gcap_doctor_line_end(&line);
  if (!line.failed) gcap_doctor_room_write(&writer.file, line.data, line.size, true, false);
  gcap_doctor_line_free(&line);
}

// To stderr. It may be a pipe that nobody reads: that must not kill the program.
static void say(const char* sentence) {
  char line[2112];
  const int size = snprintf(line, sizeof(line), "gcap-doctor: %s\n", sentence);
  const size_t most = size < (int)sizeof(line) ? (size_t)size : sizeof(line) - 1;
  line[most - 1] = '\n';
  if (gcap_doctor_write_quietly(STDERR_FILENO, line, most) < 0) return;
}

void gcap_doctor_writer_started(void) { atomic_store(&writer.is_started, true); }

// The first thread to see the end says it; nobody writes after it.
static void stop_with_note(const char* sentence) {
  const int error = errno;
  if (atomic_exchange(&writer.open, false)) note_in_file(sentence);
  errno = error;
}

static bool write_or_stop(const gcap_doctor_line_t* lines, bool is_definition, bool is_within) {
  if (lines->size == 0) return true;
  if (lines->failed || !gcap_doctor_writer_is_open()) return false;
  if (gcap_doctor_room_write(&writer.file, lines->data, lines->size, is_definition, is_within)) return true;
  char sentence[200];
  snprintf(sentence, sizeof(sentence), "the recording stopped: writing to its file failed (%s).", strerror(errno));
  if (!is_within) stop_with_note(sentence);
  return false;
}

bool gcap_doctor_writer_write(const gcap_doctor_line_t* lines) { return write_or_stop(lines, false, false); }
bool gcap_doctor_writer_define(const gcap_doctor_line_t* lines) { return write_or_stop(lines, true, false); }

void gcap_doctor_writer_finish(gcap_doctor_line_t* lines, bool is_within) {
  gcap_doctor_line_begin(lines, "end");
  gcap_doctor_line_number(lines, "t", gcap_doctor_writer_now());
  gcap_doctor_line_end(lines);
  write_or_stop(lines, false, is_within);
  gcap_doctor_writer_stop();
}

void gcap_doctor_writer_stop(void) { atomic_store(&writer.open, false); }

void gcap_doctor_writer_note(const char* format, ...) {
  char sentence[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof(sentence), format, arguments);
  va_end(arguments);
  if (gcap_doctor_writer_is_open()) note_in_file(sentence);
  if (!atomic_load(&writer.is_started)) say(sentence);
}

void gcap_doctor_writer_say(const char* format, ...) {
  char sentence[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof(sentence), format, arguments);
  va_end(arguments);
  say(sentence);
}
