// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A daemon closes all descriptors, and opens its data base where the recorder's file was. A file is known by its device
// and number.
//
// A write to a pipe that nobody reads, or beyond the size that a file may have, sends a signal that ends the program.
// The recorder's own writes send none: where one may, the signals are kept away. To ask first is cheaper. NOTE: a
// program that lowers what a file may have just then, by another thread, gets the signal. Locking: none, the caller's.
#include "doctor/record/own_file.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bool gcap_doctor_own_file_take(gcap_doctor_own_file_t* file, int descriptor) {
  struct stat status;
  file->descriptor = -1;
  if (descriptor < 0) return false;
  if (fstat(descriptor, &status) != 0) {
    const int error = errno;
    close(descriptor);
    errno = error;
    return false;
  }
  *file = (gcap_doctor_own_file_t){descriptor, status.st_dev, status.st_ino};
  return true;
}

bool gcap_doctor_own_file_is_there(const gcap_doctor_own_file_t* file) {
  struct stat status;
  return file->descriptor >= 0 && fstat(file->descriptor, &status) == 0 && status.st_dev == file->device &&
         status.st_ino == file->number;
}

// At the descriptor's own place where `offset` is -1.
static ssize_t write_at(int descriptor, const char* bytes, size_t size, off_t offset) {
  return offset < 0 ? write(descriptor, bytes, size) : pwrite(descriptor, bytes, size, offset);
}

static ssize_t write_quietly(int descriptor, const char* bytes, size_t size, off_t offset) {
  sigset_t quiet, before, pending;
  sigemptyset(&quiet);
  sigaddset(&quiet, SIGPIPE);
  sigaddset(&quiet, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &quiet, &before);
  // One that waits already is the program's, which blocks it.
  sigpending(&pending);
  const ssize_t written = write_at(descriptor, bytes, size, offset);
  const int error = errno, number = error == EPIPE ? SIGPIPE : SIGXFSZ;
  if (written < 0 && (error == EPIPE || error == EFBIG) && sigismember(&pending, number) == 0) {
    const struct timespec none = {0};
    sigemptyset(&quiet);
    sigaddset(&quiet, number);
    sigtimedwait(&quiet, NULL, &none);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = error;
  return written;
}

ssize_t gcap_doctor_write_quietly(int descriptor, const char* bytes, size_t size) {
  return write_quietly(descriptor, bytes, size, -1);
}

// Whether a file may have so many bytes.
static bool may_have(uint64_t size) {
  struct rlimit allowed;
  return getrlimit(RLIMIT_FSIZE, &allowed) == 0 && (allowed.rlim_cur == RLIM_INFINITY || size <= allowed.rlim_cur);
}

static void take_back(const gcap_doctor_own_file_t* file, off_t offset, size_t size) {
  struct stat status;
  if (size == 0 || fstat(file->descriptor, &status) != 0 || status.st_size != offset + (off_t)size) return;
  if (ftruncate(file->descriptor, offset) != 0) return;
}

bool gcap_doctor_own_file_write(const gcap_doctor_own_file_t* file, const char* bytes, size_t size, uint64_t offset) {
  size_t done = 0;
  if (!gcap_doctor_own_file_is_there(file)) {
    errno = EBADF;
    return false;
  }
  const bool is_quiet = may_have(offset + size);  // and the file is no pipe
  while (done < size) {
    const off_t at = (off_t)(offset + done);
    const ssize_t more = is_quiet ? write_at(file->descriptor, bytes + done, size - done, at)
                                  : write_quietly(file->descriptor, bytes + done, size - done, at);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) {
      const int error = errno;
      take_back(file, (off_t)offset, done);
      errno = error;
      return false;
    }
    done += (size_t)more;
  }
  return true;
}

void gcap_doctor_own_file_close(gcap_doctor_own_file_t* file) {
  if (gcap_doctor_own_file_is_there(file)) close(file->descriptor);
  file->descriptor = -1;
}
