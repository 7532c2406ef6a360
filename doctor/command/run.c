// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// gcap-doctor run and audit: a program under the recorder, and the report of it.
//
// The idea: CUDA's driver loads the library that CUDA_INJECTION64_PATH names, into every process of the program, and
// each writes a file of events. What the program prints is its own: the report goes to standard error, after the
// program has ended. It is made in a process of its own, so that the folder of the events is removed and the program's
// code kept whatever becomes of the report. Locking: none.
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/command/cases.h"
#include "doctor/command/child.h"
#include "doctor/command/folder.h"
#include "doctor/command/installed.h"
#include "doctor/command/options.h"

enum {
  kMaxLimitMb = 1 << 20,
  kSignalled = 128,  // and the signal's number
};

typedef struct run {
  gcap_doctor_heap_t heap;
  const gcap_doctor_options_t* options;
  gcap_doctor_folder_t folder;
  bool audits;
  int code;  // the program's
} run_t;

// --- Before ----------------------------------------------------------------------------------------------------------

static void set_injection(const char* command, const char* library) {
  const char* set = getenv("CUDA_INJECTION64_PATH");
  char real[PATH_MAX];
  if (set != NULL && set[0] != '\0' && (realpath(set, real) == NULL || strcmp(real, library) != 0)) {
    gcap_doctor_say(
        "%s: CUDA_INJECTION64_PATH is '%s', another tool's: CUDA loads one, so the program gets %s in its "
        "place",
        command, set, library);
  }
  setenv("CUDA_INJECTION64_PATH", library, 1);
  // Ranges label nodes: less than what another tool does with them.
  set = getenv("NVTX_INJECTION64_PATH");
  if (set == NULL || set[0] == '\0') setenv("NVTX_INJECTION64_PATH", library, 1);
}

static bool is_good_limit(const char* command, const char* text) {
  char* end = NULL;
  long limit = strtol(text, &end, 10);
  if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && limit >= 1 && limit <= kMaxLimitMb) return true;
  gcap_doctor_say("%s: --limit-mb is '%s': expected a number of megabytes, 1 to %d", command, text, kMaxLimitMb);
  return false;
}

// Says what is wrong with the options, as far as that can be known before the program runs.
static int check_options(const gcap_doctor_options_t* options) {
  if (options->num_rest == 0) {
    gcap_doctor_say("%s: no program: expected gcap-doctor %s [OPTION...] -- PROGRAM [ARGUMENT...]", options->command,
                    options->command);
    return GCAP_DOCTOR_EXIT_MISUSE;
  }
  if (options->limit_mb != NULL && !is_good_limit(options->command, options->limit_mb)) return GCAP_DOCTOR_EXIT_MISUSE;
  if (options->cupti != NULL && access(options->cupti, R_OK) != 0) {
    gcap_doctor_say("%s: --cupti is '%s': expected the path of a libcupti.so", options->command, options->cupti);
    return GCAP_DOCTOR_EXIT_MISUSE;
  }
  for (int i = 0; i < GCAP_DOCTOR_NUM_OUTPUTS; ++i) {
    if (options->outputs[i] == NULL || strcmp(options->outputs[i], "-") != 0) continue;
    gcap_doctor_say("%s: %s is '-': expected a file, since standard output is the program's", options->command,
                    gcap_doctor_output_options[i]);
    return GCAP_DOCTOR_EXIT_MISUSE;
  }
  return gcap_doctor_can_write(options) ? GCAP_DOCTOR_EXIT_HEALTHY : GCAP_DOCTOR_EXIT_FILE;
}

// Where files of events go: where the option says, else the variable; else they go with the report.
static bool choose_folder(run_t* run) {
  const char* set = getenv("GCAP_DOCTOR_EVENTS");
  const bool is_set = set != NULL && set[0] != '\0';
  if (run->options->events == NULL && !is_set) return gcap_doctor_folder_make(&run->folder, &run->heap);
  const char* from = run->options->events != NULL ? "--events" : "GCAP_DOCTOR_EVENTS";
  return gcap_doctor_folder_take(&run->folder, &run->heap, from,
                                 run->options->events != NULL ? run->options->events : set);
}

// The audit follows frameworks' allocators by what interpreters run as they start.
static void set_audit(run_t* run) {
  const char* folder = gcap_doctor_installed_python(&run->heap);
  const char* set = getenv("PYTHONPATH");
  setenv("GCAP_DOCTOR_AUDIT", "1", 1);
  if (folder == NULL) {
    gcap_doctor_say("audit: share/gcap/doctor/python is not installed, so blocks of PyTorch and CuPy are not followed");
    return;
  }
  const bool is_set = set != NULL && set[0] != '\0';
  const char* path = is_set ? gcap_doctor_heap_print(&run->heap, "%s:%s", folder, set) : folder;
  setenv("PYTHONPATH", path, 1);
}

// The environment of the recorder; false after a sentence.
static bool set_environment(run_t* run) {
  const gcap_doctor_options_t* options = run->options;
  const char* library = gcap_doctor_installed_library(&run->heap);
  if (library == NULL || !choose_folder(run)) return false;
  gcap_doctor_folder_set_environment(&run->folder);
  char real[PATH_MAX];
  if (options->cupti != NULL && realpath(options->cupti, real) != NULL) setenv("GCAP_DOCTOR_CUPTI", real, 1);
  if (options->limit_mb != NULL) setenv("GCAP_DOCTOR_LIMIT_MB", options->limit_mb, 1);
  if (options->time) setenv("GCAP_DOCTOR_TIME", "1", 1);
  if (run->audits) set_audit(run);
  set_injection(options->command, library);
  return true;
}

// --- After -----------------------------------------------------------------------------------------------------------

static const char* command_line(run_t* run) {
  size_t bytes = 0;
  for (int i = 0; i < run->options->num_rest; ++i) bytes += strlen(run->options->rest[i]) + 1;
  char* line = gcap_doctor_heap_alloc(&run->heap, bytes);
  char* end = line;
  for (int i = 0; i < run->options->num_rest; ++i) {
    if (i != 0) *end++ = ' ';
    end = stpcpy(end, run->options->rest[i]);
  }
  return line;
}

// Reads the files, and leaves out processes that captured nothing if another one did. Returns whether a process was
// recorded.
static bool read_events(run_t* run, gcap_doctor_cases_t* cases) {
  size_t count, found = 0, dropped = 0;
  bool recorded = false;
  const char** names = gcap_doctor_folder_list(&run->folder, &count);
  for (size_t i = 0; i < count; ++i) {
    FILE* file = gcap_doctor_folder_open(&run->folder, names[i]);
    found += file != NULL;
    const char* path = gcap_doctor_heap_print(&run->heap, "%s/%s", run->folder.path, names[i]);
    if (file == NULL || !gcap_doctor_cases_add_file(cases, path, file)) continue;
    recorded |= gcap_doctor_case_is_recorded(&cases->items[cases->count - 1]);
    // At once: of a program with many processes most may have captured nothing.
    dropped += gcap_doctor_cases_drop_idle(cases);
  }
  free(names);
  if (dropped != 0) gcap_doctor_say("%zu more processes used CUDA and captured nothing", dropped);
  // A report is written all the same, so that no earlier one is taken for this run's.
  if (cases->count == 0) {
    gcap_doctor_cases_add_empty(cases, command_line(run), run->code < kSignalled,
                                found == 0 ? "the program made no call of CUDA's driver, so there is nothing to report"
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
    if (!recorded)
      gcap_doctor_say("%s: --exit-code: no process was recorded, so nothing is known of its captures",
                      run->options->command);
    if (code == GCAP_DOCTOR_EXIT_HEALTHY) code = recorded ? gcap_doctor_cases_exit_code(&cases) : GCAP_DOCTOR_EXIT_FILE;
  }
  gcap_doctor_cases_deinit(&cases);
  return code;
}

// The report, of a program that ended with this code. Its own code counts where the program's is 0.
static int report_apart(run_t* run, gcap_doctor_child_signals_t* signals, int code) {
  run->code = code;
  const int reported = gcap_doctor_child_call(signals, report, run);
  if (reported > kSignalled)
    gcap_doctor_say("%s: the report was ended by signal %d", run->options->command, reported - kSignalled);
  return code == 0 ? reported : code;
}

static int run_program(const gcap_doctor_options_t* options, bool audits) {
  int code = check_options(options);
  if (code != GCAP_DOCTOR_EXIT_HEALTHY) return code;
  run_t run = {.options = options, .audits = audits};
  gcap_doctor_child_signals_t signals;
  gcap_doctor_child_signals_take(&signals);
  gcap_doctor_heap_init(&run.heap);
  code = GCAP_DOCTOR_EXIT_FILE;
  if (set_environment(&run)) {
    bool started;
    code = gcap_doctor_child_run(&signals, options->rest, &started);
    if (started) code = report_apart(&run, &signals, code);
    gcap_doctor_folder_close(&run.folder);
  }
  gcap_doctor_heap_deinit(&run.heap);
  return code;
}

int gcap_doctor_run(const gcap_doctor_options_t* options) { return run_program(options, false); }

int gcap_doctor_audit(const gcap_doctor_options_t* options) { return run_program(options, true); }
