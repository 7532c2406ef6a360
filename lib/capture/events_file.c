// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A file of events, line by line. Nothing here is shared, so nothing is locked.

#include "lib/capture/events_file.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rules/event_text.h"

enum { kThreadNameBytes = 16 };  // Linux's limit

static void append(void* file, const char* bytes, size_t size) { fwrite(bytes, 1, size, file); }

static void write_text(FILE* file, const char* key, const char* text, size_t length) {
  fprintf(file, "\t%s=", key);
  gcap_event_write_text(text, length, append, file);
}

void gcap_events_file_write_string(FILE* file, const char* key, const char* text) {
  write_text(file, key, text, strlen(text));
}

bool gcap_events_file_write_place(FILE* file, uint32_t id, const char* source, int line) {
  if (source == NULL || source[0] == '\0') return false;
  fprintf(file, "frame\tid=%" PRIu32, id);
  gcap_events_file_write_string(file, "module", program_invocation_name);
  fputs("\toffset=0x0", file);
  gcap_events_file_write_string(file, "file", source);
  fprintf(file, "\tline=%d\nstack\tid=%" PRIu32 "\tc=%" PRIu32 "\n", line, id, id);
  return true;
}

bool gcap_events_file_write_labels(FILE* file, uint32_t id, const char* labels) {
  if (labels[0] == '\0') return false;
  fprintf(file, "range\tid=%" PRIu32, id);
  gcap_events_file_write_string(file, "text", labels);
  fputs("\n", file);
  return true;
}

void gcap_events_file_write_operation(FILE* file, const char* operation) {
  const size_t length = strlen(operation);
  const char* open = strchr(operation, '(');
  const char* close = strrchr(operation, ')');
  if (open == NULL || open == operation || strcspn(operation, " <") < (size_t)(open - operation)) {
    write_text(file, "function", operation, length);
    return;
  }
  const char* end = close != NULL && close > open ? close : operation + length;  // a text that was cut off
  write_text(file, "function", operation, (size_t)(open - operation));
  write_text(file, "arguments", open + 1, (size_t)(end - open - 1));
}

static void write_head(FILE* file) {
  char name[kThreadNameBytes] = "";
  (void)pthread_getname_np(pthread_self(), name, sizeof(name));
  fprintf(file, "gcap-events\tversion=1\tpid=%ld\ttime=%lld", (long)getpid(), (long long)time(NULL));
  gcap_events_file_write_string(file, "program", program_invocation_name);
  fprintf(file, "\nthread\tid=1\tos=%ld", syscall(SYS_gettid));
  gcap_events_file_write_string(file, "name", name);
  fputs("\n", file);
}

gcap_status_t gcap_events_file_open(const char* path, FILE** out_file) {
  *out_file = fopen(path, "we");  // no program that is started meanwhile gets it
  if (*out_file == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the file of events %s cannot be written: %s", path, strerror(errno));
  }
  write_head(*out_file);
  return NULL;
}

gcap_status_t gcap_events_file_close(FILE* file, const char* path) {
  const bool is_whole = fflush(file) == 0 && !ferror(file);
  const int error = errno;
  if (fclose(file) == 0 && is_whole) return NULL;
  return GCAP_STATUS(GCAP_UNAVAILABLE, "the file of events %s is incomplete: %s", path, strerror(error));
}
