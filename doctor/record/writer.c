// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The file of events. It is opened for appending, and lines go into it by one write: those of several threads do not
// mix, and a crash leaves whole lines. Locking: none, the kernel orders the writes. A child of fork() has the parent's
// descriptor, so each write asks whose process this is.
#include "doctor/record/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "doctor/record/own_file.h"

static struct {
  atomic_bool open;
  gcap_own_file_t file;
  pid_t pid;
  uint64_t limit, start_ns;
  _Atomic uint64_t written;
} writer = {.file = {.descriptor = -1}};

static uint64_t clock_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

uint64_t gcap_writer_now(void) { return clock_ns(CLOCK_MONOTONIC) - writer.start_ns; }

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

// What of a line went out before the error is taken back, if nothing came behind it.
static void take_back(size_t bytes) {
  const off_t size = lseek(writer.file.descriptor, 0, SEEK_END);
  if (bytes != 0 && size >= (off_t)bytes && ftruncate(writer.file.descriptor, size - (off_t)bytes) != 0) return;
}

static bool write_all(const char* data, size_t size) {
  size_t done = 0;
  if (!gcap_own_file_is_there(&writer.file)) {
    errno = EBADF;
    return false;
  }
  while (done < size) {
    ssize_t more = write(writer.file.descriptor, data + done, size - done);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) {
      const int error = errno;
      take_back(done);
      errno = error;
      return false;
    }
    done += (size_t)more;
  }
  return true;
}

// A process that is not allowed larger files dies of a write.
static uint64_t within_allowed(uint64_t limit_bytes) {
  static const uint64_t kRoom = 64 << 10;  // for the last note
  struct rlimit allowed;
  if (getrlimit(RLIMIT_FSIZE, &allowed) != 0 || allowed.rlim_cur == RLIM_INFINITY) return limit_bytes;
  const uint64_t most = allowed.rlim_cur > kRoom ? allowed.rlim_cur - kRoom : 0;
  return most < limit_bytes ? most : limit_bytes;
}

bool gcap_writer_open(const char* prefix, uint64_t limit_bytes) {
  char path[4096];
  const pid_t pid = getpid();
  if ((size_t)snprintf(path, sizeof(path), "%s.%d.events", prefix, (int)pid) >= sizeof(path)) errno = ENAMETOOLONG;
  int file =
      strlen(path) < sizeof(path) - 1 ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644) : -1;
  if (!gcap_own_file_take(&writer.file, file)) {
    fprintf(stderr,
            "gcap-doctor: '%s' cannot be written (%s), so nothing is recorded; GCAP_DOCTOR_EVENTS says where.\n", path,
            strerror(errno));
    return false;
  }
  writer.pid = pid;
  writer.limit = within_allowed(limit_bytes);
  writer.start_ns = clock_ns(CLOCK_MONOTONIC);
  char program[2048];
  read_program(program, sizeof(program));
  gcap_text_t first = {0};
  gcap_text_line(&first, "gcap-events");
  gcap_text_number(&first, "version", 1);
  gcap_text_number(&first, "pid", (uint64_t)pid);
  gcap_text_number(&first, "time", clock_ns(CLOCK_REALTIME) / UINT64_C(1000000000));
  gcap_text_field(&first, "program", program);
  gcap_text_end(&first);
  atomic_store(&writer.open, true);
  const bool written = gcap_writer_write(&first);
  gcap_text_free(&first);
  return written;
}

bool gcap_writer_is_full(void) { return !atomic_load_explicit(&writer.open, memory_order_relaxed); }

bool gcap_writer_is_open(void) { return !gcap_writer_is_full() && getpid() == writer.pid; }

static void note_in_file(const char* sentence) {
  gcap_text_t line = {0};
  gcap_text_line(&line, "note");
  gcap_text_field(&line, "text", sentence);
  gcap_text_end(&line);
  if (!line.failed) write_all(line.data, line.size);
  gcap_text_free(&line);
}

static void say(const char* sentence) { fprintf(stderr, "gcap-doctor: %s\n", sentence); }

// The first thread to see the end says it; nobody writes after it.
static void stop_with_note(const char* sentence) {
  if (!atomic_exchange(&writer.open, false)) return;
  note_in_file(sentence);
  say(sentence);
}

bool gcap_writer_write(const gcap_text_t* lines) {
  if (lines->size == 0) return true;
  if (lines->failed || !gcap_writer_is_open()) return false;
  if (atomic_fetch_add(&writer.written, lines->size) + lines->size > writer.limit) {
    char sentence[160];
    snprintf(sentence, sizeof(sentence),
             "the recording stopped at %llu MB, the limit; GCAP_DOCTOR_LIMIT_MB sets another one.",
             (unsigned long long)(writer.limit >> 20));
    stop_with_note(sentence);
    return false;
  }
  if (write_all(lines->data, lines->size)) return true;
  char sentence[200];
  snprintf(sentence, sizeof(sentence), "the recording stopped: writing to its file failed (%s).", strerror(errno));
  stop_with_note(sentence);
  return false;
}

void gcap_writer_stop(void) { atomic_store(&writer.open, false); }

void gcap_writer_note(const char* format, ...) {
  char sentence[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof(sentence), format, arguments);
  va_end(arguments);
  if (gcap_writer_is_open()) note_in_file(sentence);
  say(sentence);
}
