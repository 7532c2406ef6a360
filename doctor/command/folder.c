// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The folder of a run's files of events.
//
// The idea: the program has the folder while it runs, and may put links, pipes and folders into it, or another folder
// in its place. So the folder is held by a descriptor, a file is read only if it is a regular one, and nothing is
// removed but regular files with names of events. A folder that the user named may be another run's too: there a file
// is this run's if its first line says so. Locking: none.
#include "doctor/command/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "doctor/command/options.h"

// --- Making ----------------------------------------------------------------------------------------------------------

// Another one for each run on this machine.
static const char* name_run(gcap_doctor_heap_t* heap) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return gcap_doctor_heap_print(heap, "%ld.%lld.%09ld", (long)getpid(), (long long)now.tv_sec, now.tv_nsec);
}

static int open_folder(const char* path) { return open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }

bool gcap_doctor_folder_make(gcap_doctor_folder_t* out_folder, gcap_doctor_heap_t* heap) {
  const char* temporary = getenv("TMPDIR");
  if (temporary == NULL || temporary[0] == '\0') temporary = "/tmp";
  char real[PATH_MAX];
  char* path = realpath(temporary, real) != NULL ? gcap_doctor_heap_print(heap, "%s/gcap-doctor.XXXXXX", real) : NULL;
  const int folder = path != NULL && mkdtemp(path) != NULL ? open_folder(path) : -1;
  if (folder < 0) {
    gcap_doctor_say("run: cannot make a folder in %s: %s; set TMPDIR, or give --events", temporary, strerror(errno));
    return false;
  }
  *out_folder = (gcap_doctor_folder_t){heap, path, "run.", name_run(heap), folder, true};
  return true;
}

bool gcap_doctor_folder_take(gcap_doctor_folder_t* out_folder, gcap_doctor_heap_t* heap, const char* from,
                             const char* events) {
  const char* slash = strrchr(events, '/');
  const char* name = slash != NULL ? slash + 1 : events;
  const char* named = slash == NULL     ? "."
                      : slash == events ? "/"
                                        : gcap_doctor_heap_copy(heap, events, (size_t)(slash - events));
  char real[PATH_MAX];
  const bool is_good = name[0] != '\0' && realpath(named, real) != NULL && access(real, W_OK) == 0;
  const int folder = is_good ? open_folder(real) : -1;
  if (folder < 0) {
    gcap_doctor_say("run: %s is '%s': expected a name in a folder that can be written to", from, events);
    return false;
  }
  *out_folder = (gcap_doctor_folder_t){
      heap, gcap_doctor_heap_copy(heap, real, strlen(real)), NULL, name_run(heap), folder, false};
  out_folder->prefix = gcap_doctor_heap_print(heap, "%s.", name);
  return true;
}

void gcap_doctor_folder_set_environment(const gcap_doctor_folder_t* folder) {
  // The recorder adds '.' and the process's number.
  const int length = (int)strlen(folder->prefix) - 1;
  setenv("GCAP_DOCTOR_EVENTS", gcap_doctor_heap_print(folder->heap, "%s/%.*s", folder->path, length, folder->prefix),
         1);
  setenv("GCAP_DOCTOR_RUN", folder->run, 1);
}

// --- Reading ---------------------------------------------------------------------------------------------------------

static bool is_events(const gcap_doctor_folder_t* folder, const char* name) {
  static const char kDigits[] = "0123456789";
  size_t length = strlen(folder->prefix);
  if (strncmp(name, folder->prefix, length) != 0) return false;
  size_t digits = strspn(name + length, kDigits);
  const char* rest = name + length + digits;
  size_t more = rest[0] == '.' ? strspn(rest + 1, kDigits) : 0;
  return digits != 0 && strcmp(rest + (more != 0 ? more + 1 : 0), ".events") == 0;
}

static int by_text(const void* left, const void* right) { return strcmp(*(char* const*)left, *(char* const*)right); }

const char** gcap_doctor_folder_list(const gcap_doctor_folder_t* folder, size_t* out_count) {
  const char** names = NULL;
  size_t capacity = 0;
  *out_count = 0;
  const int again = openat(folder->descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* open = again >= 0 ? fdopendir(again) : NULL;
  for (struct dirent* entry; open != NULL && (entry = readdir(open)) != NULL;) {
    if (!is_events(folder, entry->d_name)) continue;
    names = gcap_doctor_heap_grow(names, *out_count, &capacity, sizeof(*names));
    names[(*out_count)++] = gcap_doctor_heap_copy(folder->heap, entry->d_name, strlen(entry->d_name));
  }
  if (open != NULL) closedir(open);
  if (*out_count != 0) qsort(names, *out_count, sizeof(*names), by_text);
  return names;
}

// Whether the first line has the field run=RUN; the file stands at its beginning again.
static bool is_of_run(const gcap_doctor_folder_t* folder, FILE* file) {
  char line[512];  // the recorder writes the field before the command line
  const char* field = fgets(line, sizeof(line), file) != NULL ? strstr(line, "\trun=") : NULL;
  rewind(file);
  const size_t length = strlen(folder->run);
  return field != NULL && strncmp(field + 5, folder->run, length) == 0 && strchr("\t\n", field[5 + length]) != NULL;
}

FILE* gcap_doctor_folder_open(const gcap_doctor_folder_t* folder, const char* name) {
  // O_NONBLOCK: a pipe may have no writer.
  const int file = openat(folder->descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  struct stat about;
  if (file < 0 && errno != ELOOP) gcap_doctor_say("cannot read %s/%s: %s", folder->path, name, strerror(errno));
  FILE* stream = file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode) ? fdopen(file, "r") : NULL;
  if (stream == NULL && file >= 0) close(file);
  if (stream == NULL || folder->is_temporary || is_of_run(folder, stream)) return stream;
  fclose(stream);
  return NULL;
}

// --- The end ---------------------------------------------------------------------------------------------------------

static void remove_files(const gcap_doctor_folder_t* folder) {
  size_t count;
  const char** names = gcap_doctor_folder_list(folder, &count);
  for (size_t i = 0; i < count; ++i) {
    struct stat about;
    if (fstatat(folder->descriptor, names[i], &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(about.st_mode)) {
      unlinkat(folder->descriptor, names[i], 0);
    }
  }
  free(names);
}

void gcap_doctor_folder_close(gcap_doctor_folder_t* folder) {
  struct stat made, there;
  if (folder->is_temporary) {
    remove_files(folder);
    const bool is_there = lstat(folder->path, &there) == 0;
    if (is_there &&
        (fstat(folder->descriptor, &made) != 0 || made.st_dev != there.st_dev || made.st_ino != there.st_ino)) {
      gcap_doctor_say("run: %s stays: the program put something else in the place of the folder of the events",
                      folder->path);
    } else if (is_there && rmdir(folder->path) != 0) {
      gcap_doctor_say("run: the folder %s stays: it has what the program put there", folder->path);
    }
  }
  close(folder->descriptor);
}
