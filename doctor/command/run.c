// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap-doctor run: a program under the recorder, and the report of it.
//
// The idea: CUDA's driver loads the library that CUDA_INJECTION64_PATH names, into every process of the program, and
// each writes a file of events. What the program prints is its own: the report goes to standard error, after the
// program has ended. It is made in a process of its own, so that the folder of the events is removed and the program's
// code kept whatever becomes of the report. Locking: none.
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/command/cases.h"
#include "doctor/command/child.h"
#include "doctor/command/installed.h"
#include "doctor/command/options.h"

enum {
  kMaxLimitMb = 1 << 20,
  kSignalled = 128,  // and the signal's number
};

// A file of events that was there before.
typedef struct known_file {
  const char* name;
  struct timespec changed;
  off_t bytes;
} known_file_t;

typedef struct run {
  gcap_doctor_heap_t heap;
  const gcap_doctor_options_t* options;
  const char* folder;  // where files of events are, absolute
  const char* prefix;  // what their names begin with, and '.'
  bool is_temporary;   // the folder was made for this run
  known_file_t* known;
  size_t num_known, known_capacity;
  int code;  // the program's
} run_t;

// --- Files of events -------------------------------------------------------------------------------------------------

// PREFIX.PID.events, or PREFIX.PID.N.events of a program that another one became.
static bool is_events(const run_t* run, const char* name) {
  static const char kDigits[] = "0123456789";
  size_t length = strlen(run->prefix);
  if (strncmp(name, run->prefix, length) != 0) return false;
  size_t digits = strspn(name + length, kDigits);
  const char* rest = name + length + digits;
  size_t more = rest[0] == '.' ? strspn(rest + 1, kDigits) : 0;
  return digits != 0 && strcmp(rest + (more != 0 ? more + 1 : 0), ".events") == 0;
}

static const char* path_of(run_t* run, const char* name) {
  return gcap_doctor_heap_print(&run->heap, "%s/%s", run->folder, name);
}

static void remember_known(run_t* run) {
  DIR* folder = opendir(run->folder);
  for (struct dirent* entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
    struct stat about;
    if (!is_events(run, entry->d_name) || stat(path_of(run, entry->d_name), &about) != 0) continue;
    run->known = gcap_doctor_heap_grow(run->known, run->num_known, &run->known_capacity, sizeof(*run->known));
    run->known[run->num_known++] = (known_file_t){
        gcap_doctor_heap_copy(&run->heap, entry->d_name, strlen(entry->d_name)), about.st_mtim, about.st_size};
  }
  if (folder != NULL) closedir(folder);
}

// Whether the file is as it was before the program ran.
static bool is_old(const run_t* run, const char* name, const struct stat* about) {
  for (size_t i = 0; i < run->num_known; ++i) {
    const known_file_t* known = &run->known[i];
    if (strcmp(known->name, name) == 0) {
      return known->bytes == about->st_size && known->changed.tv_sec == about->st_mtim.tv_sec &&
             known->changed.tv_nsec == about->st_mtim.tv_nsec;
    }
  }
  return false;
}

static int by_text(const void* left, const void* right) { return strcmp(*(char* const*)left, *(char* const*)right); }

// The paths of what the program's processes wrote, sorted. Freed by free().
static const char** find_events(run_t* run, size_t* out_count) {
  const char** paths = NULL;
  size_t capacity = 0;
  *out_count = 0;
  DIR* folder = opendir(run->folder);
  for (struct dirent* entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
    struct stat about;
    if (!is_events(run, entry->d_name)) continue;
    const char* path = path_of(run, entry->d_name);
    if (stat(path, &about) != 0 || is_old(run, entry->d_name, &about)) continue;
    paths = gcap_doctor_heap_grow(paths, *out_count, &capacity, sizeof(*paths));
    paths[(*out_count)++] = path;
  }
  if (folder != NULL) closedir(folder);
  if (*out_count != 0) qsort(paths, *out_count, sizeof(*paths), by_text);
  return paths;
}

// --- Before ----------------------------------------------------------------------------------------------------------

static bool make_folder(run_t* run) {
  const char* temporary = getenv("TMPDIR");
  if (temporary == NULL || temporary[0] == '\0') temporary = "/tmp";
  char* folder = gcap_doctor_heap_print(&run->heap, "%s/gcap-doctor.XXXXXX", temporary);
  if (mkdtemp(folder) == NULL) {
    gcap_doctor_say("run: cannot make a folder in %s: %s; set TMPDIR, or give --events", temporary, strerror(errno));
    return false;
  }
  run->is_temporary = true;
  run->prefix = "run.";
  run->folder = folder;
  return true;
}

// The folder of files of events, and what names begin with in it; `from` is the option or the variable that says so.
static bool take_prefix(run_t* run, const char* from, const char* events) {
  const char* slash = strrchr(events, '/');
  const char* name = slash != NULL ? slash + 1 : events;
  const char* folder = slash == NULL     ? "."
                       : slash == events ? "/"
                                         : gcap_doctor_heap_copy(&run->heap, events, (size_t)(slash - events));
  char real[PATH_MAX];
  if (name[0] == '\0' || realpath(folder, real) == NULL || access(real, W_OK) != 0) {
    gcap_doctor_say("run: %s is '%s': expected a name in a folder that can be written to", from, events);
    return false;
  }
  run->folder = gcap_doctor_heap_copy(&run->heap, real, strlen(real));
  run->prefix = gcap_doctor_heap_print(&run->heap, "%s.", name);
  return true;
}

static void set_injection(const char* library) {
  const char* set = getenv("CUDA_INJECTION64_PATH");
  char real[PATH_MAX];
  if (set != NULL && set[0] != '\0' && (realpath(set, real) == NULL || strcmp(real, library) != 0)) {
    gcap_doctor_say(
        "run: CUDA_INJECTION64_PATH is '%s', another tool's: CUDA loads one, so the program gets %s in its "
        "place",
        set, library);
  }
  setenv("CUDA_INJECTION64_PATH", library, 1);
}

static bool is_good_limit(const char* text) {
  char* end = NULL;
  long limit = strtol(text, &end, 10);
  if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && limit >= 1 && limit <= kMaxLimitMb) return true;
  gcap_doctor_say("run: --limit-mb is '%s': expected a number of megabytes, 1 to %d", text, kMaxLimitMb);
  return false;
}

// Says what is wrong with the options, as far as that can be known before the program runs.
static int check_options(const gcap_doctor_options_t* options) {
  if (options->num_rest == 0) {
    gcap_doctor_say("run: no program: expected gcap-doctor run [OPTION...] -- PROGRAM [ARGUMENT...]");
    return GCAP_DOCTOR_EXIT_MISUSE;
  }
  if (options->limit_mb != NULL && !is_good_limit(options->limit_mb)) return GCAP_DOCTOR_EXIT_MISUSE;
  if (options->cupti != NULL && access(options->cupti, R_OK) != 0) {
    gcap_doctor_say("run: --cupti is '%s': expected the path of a libcupti.so", options->cupti);
    return GCAP_DOCTOR_EXIT_MISUSE;
  }
  const char* files[] = {options->json, options->html, options->dot, options->trace};
  const char* names[] = {"--json", "--html", "--dot", "--trace"};
  for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i) {
    if (files[i] == NULL || strcmp(files[i], "-") != 0) continue;
    gcap_doctor_say("run: %s is '-': expected a file, since standard output is the program's", names[i]);
    return GCAP_DOCTOR_EXIT_MISUSE;
  }
  return gcap_doctor_can_write(options) ? GCAP_DOCTOR_EXIT_HEALTHY : GCAP_DOCTOR_EXIT_FILE;
}

// Where files of events go: where the option says, else the variable; else they go with the report.
static bool choose_folder(run_t* run) {
  const char* set = getenv("GCAP_DOCTOR_EVENTS");
  if (run->options->events != NULL) return take_prefix(run, "--events", run->options->events);
  return set != NULL && set[0] != '\0' ? take_prefix(run, "GCAP_DOCTOR_EVENTS", set) : make_folder(run);
}

// The environment of the recorder; false after a sentence.
static bool set_environment(run_t* run) {
  const gcap_doctor_options_t* options = run->options;
  const char* library = gcap_doctor_installed_library(&run->heap);
  if (library == NULL || !choose_folder(run)) return false;
  // The recorder adds '.' and the process's number.
  const char* prefix = path_of(run, run->prefix);
  setenv("GCAP_DOCTOR_EVENTS", gcap_doctor_heap_copy(&run->heap, prefix, strlen(prefix) - 1), 1);
  char real[PATH_MAX];
  if (options->cupti != NULL && realpath(options->cupti, real) != NULL) setenv("GCAP_DOCTOR_CUPTI", real, 1);
  if (options->limit_mb != NULL) setenv("GCAP_DOCTOR_LIMIT_MB", options->limit_mb, 1);
  if (options->time) setenv("GCAP_DOCTOR_TIME", "1", 1);
  set_injection(library);
  return true;
}

// --- After -----------------------------------------------------------------------------------------------------------

static const char* command_line(run_t* run) {
  const char* line = run->options->rest[0];
  for (int i = 1; i < run->options->num_rest; ++i)
    line = gcap_doctor_heap_print(&run->heap, "%s %s", line, run->options->rest[i]);
  return line;
}

// Reads the files, and leaves out processes that captured nothing if another one did. Returns whether a process was
// recorded.
static bool read_events(run_t* run, gcap_doctor_cases_t* cases) {
  size_t count, dropped = 0;
  bool recorded = false;
  const char** paths = find_events(run, &count);
  for (size_t i = 0; i < count; ++i) {
    if (!gcap_doctor_cases_add(cases, paths[i])) continue;
    recorded |= gcap_doctor_case_is_recorded(&cases->items[cases->count - 1]);
    // At once: of a program with many processes most may have captured nothing.
    dropped += gcap_doctor_cases_drop_idle(cases);
  }
  free(paths);
  if (dropped != 0) gcap_doctor_say("%zu more processes used CUDA and captured nothing", dropped);
  // A report is written all the same, so that no earlier one is taken for this run's.
  if (cases->count == 0) {
    gcap_doctor_cases_add_empty(cases, command_line(run), run->code < kSignalled,
                                count == 0 ? "the program made no call of CUDA's driver, so there is nothing to report"
                                           : "no file of events could be read");
  }
  return recorded;
}

// Reads what was recorded and reports. Returns GCAP_DOCTOR_EXIT_*.
static int report(void* argument) {
  run_t* run = argument;
  gcap_doctor_cases_t cases;
  gcap_doctor_cases_init(&cases);
  const bool recorded = read_events(run, &cases);
  gcap_doctor_cases_finish(&cases);
  if (!run->options->quiet) gcap_doctor_cases_print(stderr, &cases, run->options->colour);
  int code = gcap_doctor_cases_write(&cases, run->options) ? GCAP_DOCTOR_EXIT_HEALTHY : GCAP_DOCTOR_EXIT_FILE;
  if (run->options->exit_code) {
    if (!recorded) gcap_doctor_say("run: --exit-code: no process was recorded, so nothing is known of its captures");
    if (code == GCAP_DOCTOR_EXIT_HEALTHY) code = recorded ? gcap_doctor_cases_exit_code(&cases) : GCAP_DOCTOR_EXIT_FILE;
  }
  gcap_doctor_cases_deinit(&cases);
  return code;
}

static void remove_folder(const run_t* run) {
  DIR* folder = opendir(run->folder);
  for (struct dirent* entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) unlinkat(dirfd(folder), entry->d_name, 0);
  }
  if (folder != NULL) closedir(folder);
  rmdir(run->folder);
}

// The report, of a program that ended with this code. Its own code counts where the program's is 0.
static int report_apart(run_t* run, gcap_doctor_child_signals_t* signals, int code) {
  run->code = code;
  const int reported = gcap_doctor_child_call(signals, report, run);
  if (reported > kSignalled) gcap_doctor_say("run: the report was ended by signal %d", reported - kSignalled);
  return code == 0 ? reported : code;
}

int gcap_doctor_run(const gcap_doctor_options_t* options) {
  int code = check_options(options);
  if (code != GCAP_DOCTOR_EXIT_HEALTHY) return code;
  run_t run = {.options = options};
  gcap_doctor_child_signals_t signals;
  gcap_doctor_child_signals_take(&signals);
  gcap_doctor_heap_init(&run.heap);
  code = GCAP_DOCTOR_EXIT_FILE;
  if (set_environment(&run)) {
    remember_known(&run);
    bool started;
    code = gcap_doctor_child_run(&signals, options->rest, &started);
    if (started) code = report_apart(&run, &signals, code);
    if (run.is_temporary) remove_folder(&run);
  }
  free(run.known);
  gcap_doctor_heap_deinit(&run.heap);
  return code;
}
