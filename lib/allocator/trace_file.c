// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Trace files. The lines of a trace have no number, so their order matters: a thread waits until all earlier lines are
// written. The wait is short where the allocator runs no callback between the drawing of a number and the report. But a
// thread writes its line itself, so a slow disk slows all threads that report: a trace is for debugging.
// A regular file has one writer: a lock on the file (flock) keeps others out, of this process too.
// Locking: the file's mutex, with which a thread is not cancelled.

#include "lib/allocator/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct gcap_trace_file {
  FILE* stream;
  pthread_mutex_t mutex;
  pthread_cond_t written;
  uint64_t num_written;
  int error;  // errno of the first write that failed
};

static gcap_status_t refusal(const char* path) {
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "trace file %s cannot be written: %s", path, strerror(errno));
}

// Makes sure that nobody else writes a regular file, and empties it. Devices and pipes may have several writers.
static gcap_status_t take_over(int descriptor, const char* path) {
  struct stat info;
  if (fstat(descriptor, &info) != 0) return refusal(path);
  if (!S_ISREG(info.st_mode)) return NULL;
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "trace file %s is being written by another runtime, or another process; each needs its own",
                       path);
  }
  return ftruncate(descriptor, 0) == 0 ? NULL : refusal(path);
}

static gcap_status_t open_stream(const char* path, FILE** out_stream) {
  const int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return refusal(path);
  gcap_status_t status = take_over(descriptor, path);
  if (status == NULL) {
    *out_stream = fdopen(descriptor, "w");
    if (*out_stream == NULL) status = refusal(path);
    // A child process that exits would write a line again that is still in the buffer.
    if (*out_stream != NULL) (void)setvbuf(*out_stream, NULL, _IOLBF, BUFSIZ);
  }
  if (status != NULL) close(descriptor);
  return status;
}

gcap_status_t gcap_trace_file_create(const char* path, gcap_trace_file_t** out_file) {
  *out_file = NULL;
  gcap_trace_file_t* file = calloc(1, sizeof(*file));
  if (file == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for trace file %s", path);
  gcap_status_t status = open_stream(path, &file->stream);
  if (status != NULL) {
    free(file);
    return status;
  }
  pthread_mutex_init(&file->mutex, NULL);
  pthread_cond_init(&file->written, NULL);
  *out_file = file;
  return NULL;
}

static void note_error(gcap_trace_file_t* file, int result) {
  if (result < 0 && file->error == 0) file->error = errno;
}

int gcap_trace_line(const gcap_allocator_event_t* event, char* out_line, size_t line_bytes) {
  uintptr_t stream = (uintptr_t)event->stream;
  switch (event->kind) {
    case GCAP_ALLOCATOR_EVENT_ALLOC:
      return snprintf(out_line, line_bytes, "a %" PRIu64 " %zu %" PRIuPTR, event->block, event->bytes, stream);
    case GCAP_ALLOCATOR_EVENT_RESERVE:
      return snprintf(out_line, line_bytes, "r %" PRIu64 " %zu", event->block, event->bytes);
    case GCAP_ALLOCATOR_EVENT_FREE: return snprintf(out_line, line_bytes, "f %" PRIu64, event->block);
    case GCAP_ALLOCATOR_EVENT_TRIM: return snprintf(out_line, line_bytes, "t");
  }
  return snprintf(out_line, line_bytes, "? %d", (int)event->kind);
}

void gcap_trace_file_on_event(void* user, const gcap_allocator_event_t* event) {
  gcap_trace_file_t* file = user;
  char line[96];  // a letter and three numbers of 64 bits
  gcap_trace_line(event, line, sizeof(line));
  int cancel_state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  pthread_mutex_lock(&file->mutex);
  while (file->num_written + 1 != event->sequence) pthread_cond_wait(&file->written, &file->mutex);
  note_error(file, fprintf(file->stream, "%s\n", line));
  ++file->num_written;
  pthread_cond_broadcast(&file->written);
  pthread_mutex_unlock(&file->mutex);
  pthread_setcancelstate(cancel_state, NULL);
}

void gcap_trace_file_flush(gcap_trace_file_t* file) {
  pthread_mutex_lock(&file->mutex);
  note_error(file, fflush(file->stream));
  (void)flock(fileno(file->stream), LOCK_UN);
  pthread_mutex_unlock(&file->mutex);
}

gcap_status_t gcap_trace_file_destroy(gcap_trace_file_t* file) {
  if (file == NULL) return NULL;
  note_error(file, fflush(file->stream));
  (void)flock(fileno(file->stream), LOCK_UN);  // a child process may have the file open still
  note_error(file, fclose(file->stream));
  gcap_status_t status = NULL;
  if (file->error != 0) {
    status = GCAP_STATUS(GCAP_LIBRARY_ERROR, "the trace file is incomplete: %s", strerror(file->error));
  }
  pthread_cond_destroy(&file->written);
  pthread_mutex_destroy(&file->mutex);
  free(file);
  return status;
}
