// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The Python frame that a user would look at first.
//
// The idea: a framework may lie anywhere, so no list of frameworks tells; what tells is where the program lies. The
// main module is the outermost `<module>` of the recording that is not Python's own code, and its folder is the
// program's. A program that was installed as a package is its package; a script of a folder `bin` starts such a
// package, or, as pytest does, the program of somebody else, so it is nobody's. The rules, each for what the one before
// leaves:
//   1. the innermost frame in the program's folder, but for what is installed below it;
//   2. the innermost frame that is not installed, nor Python's own, nor the script that starts;
//   3. the innermost frame of the outermost package;
//   4. the innermost frame.
// Locking: none.
#include <ctype.h>
#include <string.h>

#include "doctor/base/path.h"
#include "doctor/events/recording.h"

static bool starts_with(const char* text, const char* start) { return strncmp(text, start, strlen(start)) == 0; }

// What follows the folder of installed packages, as "torch/_tensor.py"; NULL for a file elsewhere.
static const char* within_packages(const char* file) {
  static const char kPackages[] = "-packages/";  // site-packages, dist-packages
  const char* last = NULL;
  for (const char* at = file; (at = strstr(at, kPackages)) != NULL;) last = at += strlen(kPackages);
  return last;
}

// Of Python's own library, or of no file, as "<frozen runpy>".
static bool is_pythons(const char* file) {
  if (file[0] == '<') return true;
  if (within_packages(file) != NULL) return false;
  const char* library = strstr(file, "/lib/python");
  return library != NULL && isdigit((unsigned char)library[strlen("/lib/python")]);
}

// The script that an installation made to start a package: it has no ".py".
static bool is_starter(const char* file) {
  static const char kFolder[] = "/bin/";
  const char* name = gcap_doctor_base_name(file);
  return (size_t)(name - file) >= strlen(kFolder) && starts_with(name - strlen(kFolder), kFolder) &&
         strstr(name, ".py") == NULL;
}

static bool is_installed(const gcap_doctor_event_frame_t* frame) {
  return frame->is_installed || within_packages(frame->file) != NULL || is_pythons(frame->file);
}

// --- The program -----------------------------------------------------------------------------------------------------

static const gcap_doctor_event_frame_t* find_main(const gcap_doctor_recording_t* recording) {
  for (size_t i = 0; i < recording->num_stacks; ++i) {
    const gcap_doctor_event_stack_t* stack = &recording->stacks[i];
    uint32_t at = stack->num_python;
    while (at > 0 && is_pythons(recording->frames[stack->python[at - 1]].file)) --at;
    if (at == 0) continue;
    const gcap_doctor_event_frame_t* frame = &recording->frames[stack->python[at - 1]];
    if (strcmp(frame->function, "<module>") == 0) return frame;
  }
  return NULL;
}

void gcap_doctor_recording_find_program(gcap_doctor_recording_t* recording) {
  const gcap_doctor_event_frame_t* main = find_main(recording);
  if (main == NULL || is_starter(main->file)) return;
  const char* file = main->file;
  const char* package = within_packages(file);
  size_t length = (size_t)(gcap_doctor_base_name(file) - file);
  if (package != NULL) length = (size_t)(package - file) + strcspn(package, "/") + (strchr(package, '/') != NULL);
  if (file[0] == '/') {
    recording->main_folder = gcap_doctor_heap_copy(&recording->heap, file, length);
  } else if (recording->folder != NULL) {
    if (starts_with(file, "./")) {
      file += 2;
      length -= 2;
    }
    recording->main_folder = gcap_doctor_heap_print(&recording->heap, "%s/%.*s", recording->folder, (int)length, file);
  }
}

// --- Frames ----------------------------------------------------------------------------------------------------------

// In the program's folder. A relative path is as the command line has it.
static bool is_programs(const gcap_doctor_recording_t* recording, const gcap_doctor_event_frame_t* frame) {
  const char* folder = recording->main_folder;
  if (folder == NULL || frame->is_installed || is_pythons(frame->file)) return false;
  if (frame->file[0] != '/') return true;
  return starts_with(frame->file, folder) && within_packages(frame->file + strlen(folder)) == NULL;
}

// The characters of a path that name its package: up to the first slash behind the folder of packages.
static size_t package_length(const char* file) {
  const char* package = within_packages(file);
  if (package == NULL) return (size_t)(gcap_doctor_base_name(file) - file);
  return (size_t)(package - file) + strcspn(package, "/");
}

static bool is_in_package(const char* file, const char* of) {
  const size_t length = package_length(of);
  return package_length(file) == length && strncmp(file, of, length) == 0;
}

// By the third rule.
static uint32_t in_outermost_package(const gcap_doctor_recording_t* recording, const gcap_doctor_event_stack_t* stack) {
  uint32_t at = stack->num_python;
  while (at > 0 && (is_pythons(recording->frames[stack->python[at - 1]].file) ||
                    is_starter(recording->frames[stack->python[at - 1]].file))) {
    --at;
  }
  if (at == 0) return GCAP_DOCTOR_NONE;
  const char* outermost = recording->frames[stack->python[at - 1]].file;
  for (uint32_t i = 0; i < at; ++i) {
    const char* file = recording->frames[stack->python[i]].file;
    if (is_in_package(file, outermost)) return stack->python[i];
  }
  return GCAP_DOCTOR_NONE;
}

uint32_t gcap_doctor_recording_user_frame(const gcap_doctor_recording_t* recording, uint32_t stack) {
  if (stack >= recording->num_stacks || recording->stacks[stack].num_python == 0) return GCAP_DOCTOR_NONE;
  const gcap_doctor_event_stack_t* of = &recording->stacks[stack];
  for (uint32_t i = 0; i < of->num_python; ++i) {
    if (is_programs(recording, &recording->frames[of->python[i]])) return of->python[i];
  }
  for (uint32_t i = 0; i < of->num_python; ++i) {
    const gcap_doctor_event_frame_t* frame = &recording->frames[of->python[i]];
    if (!is_installed(frame) && !is_starter(frame->file)) return of->python[i];
  }
  const uint32_t frame = in_outermost_package(recording, of);
  return frame != GCAP_DOCTOR_NONE ? frame : of->python[0];
}
