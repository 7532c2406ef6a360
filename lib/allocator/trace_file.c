// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Trace files. The lines of a trace have no number, so their order matters: a thread waits until all earlier lines are
// written. The wait is short: a thread that drew a lower number is about to write, and waits for nothing else.
// Locking: the file's mutex.

#include "lib/allocator/trace_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gcap_trace_file {
  FILE* stream;
  pthread_mutex_t mutex;
  pthread_cond_t written;
  uint64_t num_written;
  int error;  // errno of the first write that failed
};

gcap_status_t gcap_trace_file_create(const char* path, gcap_trace_file_t** out_file) {
  *out_file = NULL;
  gcap_trace_file_t* file = calloc(1, sizeof(*file));
  if (file == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for trace file %s", path);
  file->stream = fopen(path, "w");
  if (file->stream == NULL) {
    gcap_status_t status =
        GCAP_STATUS(GCAP_INVALID_ARGUMENT, "trace file %s cannot be written: %s", path, strerror(errno));
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

void gcap_trace_file_on_event(void* user, const gcap_allocator_event_t* event) {
  gcap_trace_file_t* file = user;
  char line[96];  // a letter and three numbers of 64 bits
  gcap_allocator_event_format(event, line, sizeof(line));
  pthread_mutex_lock(&file->mutex);
  while (file->num_written + 1 != event->sequence) pthread_cond_wait(&file->written, &file->mutex);
  note_error(file, fprintf(file->stream, "%s\n", line));
  ++file->num_written;
  pthread_cond_broadcast(&file->written);
  pthread_mutex_unlock(&file->mutex);
}

void gcap_trace_file_flush(gcap_trace_file_t* file) {
  pthread_mutex_lock(&file->mutex);
  note_error(file, fflush(file->stream));
  pthread_mutex_unlock(&file->mutex);
}

gcap_status_t gcap_trace_file_destroy(gcap_trace_file_t* file) {
  if (file == NULL) return NULL;
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
