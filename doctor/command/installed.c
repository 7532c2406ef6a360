// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Finds what is installed with the command.
//
// The idea: all is looked for from the folder of the command itself, so that a prefix, a wheel or a build's folder can
// be moved. Locking: none.
#include "doctor/command/installed.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/command/options.h"

enum { kMaxPath = 4096 };

// From the command's folder: a prefix, as CMake installs it and as the wheel has it; the folder of CMake's build; that
// of Bazel's.
static const char* const kLibraryFolders[] = {
    "../lib", "../lib64", "../lib/x86_64-linux-gnu", "../lib/aarch64-linux-gnu", ".", "../record",
};
static const char* const kPageFolders[] = {
    "../share/gcap/doctor/rules",
    "gcap-doctor.runfiles/gcap/docs/rules",   // Bazel 4
    "gcap-doctor.runfiles/_main/docs/rules",  // Bazel with modules
};

static const char* const kPythonFolders[] = {
    "../share/gcap/doctor/python",
    "gcap-doctor.runfiles/gcap/doctor/python",
    "gcap-doctor.runfiles/_main/doctor/python",
};

// The folder that the command lies in.
static const char* own_folder(gcap_doctor_heap_t* heap) {
  char path[kMaxPath];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length <= 0) return ".";
  path[length] = '\0';
  char* slash = strrchr(path, '/');
  return gcap_doctor_heap_copy(heap, path, slash != NULL ? (size_t)(slash - path) : 0);
}

// The absolute path of a file that can be read, without links; NULL for none.
static const char* real_file(gcap_doctor_heap_t* heap, const char* path) {
  char real[kMaxPath + 1];
  if (realpath(path, real) == NULL || access(real, R_OK) != 0) return NULL;
  return gcap_doctor_heap_copy(heap, real, strlen(real));
}

static const char* find(gcap_doctor_heap_t* heap, const char* const* folders, size_t count, const char* name) {
  const char* own = own_folder(heap);
  for (size_t i = 0; i < count; ++i) {
    const char* found = real_file(heap, gcap_doctor_heap_print(heap, "%s/%s/%s", own, folders[i], name));
    if (found != NULL) return found;
  }
  return NULL;
}

const char* gcap_doctor_installed_library(gcap_doctor_heap_t* heap) {
  const char* wanted = getenv("GCAP_DOCTOR_LIBRARY");
  const char* found;
  if (wanted != NULL && wanted[0] != '\0') {
    found = real_file(heap, wanted);
    if (found == NULL) gcap_doctor_say("GCAP_DOCTOR_LIBRARY is '%s': expected the path of libgcap_doctor.so", wanted);
    return found;
  }
  found = find(heap, kLibraryFolders, sizeof(kLibraryFolders) / sizeof(kLibraryFolders[0]), "libgcap_doctor.so");
  if (found == NULL) {
    gcap_doctor_say(
        "libgcap_doctor.so, which records, is neither in %s nor in ../lib beside it: install gcap anew, or set "
        "GCAP_DOCTOR_LIBRARY to its path",
        own_folder(heap));
  }
  return found;
}

const char* gcap_doctor_installed_package(gcap_doctor_heap_t* heap) {
  // In the wheel the command lies in gcap_doctor/bin.
  const char* folder = gcap_doctor_heap_print(heap, "%s/../..", own_folder(heap));
  const char* found = real_file(heap, gcap_doctor_heap_print(heap, "%s/gcap_doctor/vet.py", folder));
  return found != NULL ? folder : NULL;
}

const char* gcap_doctor_installed_rule_page(gcap_doctor_heap_t* heap, const char* rule) {
  char* end = NULL;
  unsigned long number = isdigit((unsigned char)rule[1]) ? strtoul(rule + 1, &end, 10) : 0;
  if (end == NULL || *end != '\0') return NULL;
  const char* wanted = getenv("GCAP_DOCTOR_RULES");
  if (wanted != NULL && wanted[0] != '\0')
    return real_file(heap, gcap_doctor_heap_print(heap, "%s/r%lu.md", wanted, number));
  size_t count = sizeof(kPageFolders) / sizeof(kPageFolders[0]);
  return find(heap, kPageFolders, count, gcap_doctor_heap_print(heap, "r%lu.md", number));
}

const char* gcap_doctor_installed_python(gcap_doctor_heap_t* heap) {
  const char* wanted = getenv("GCAP_DOCTOR_PYTHON");
  if (wanted != NULL && wanted[0] != '\0') return wanted;
  const char* file = find(heap, kPythonFolders, sizeof(kPythonFolders) / sizeof(kPythonFolders[0]), "sitecustomize.py");
  return file != NULL ? gcap_doctor_heap_copy(heap, file, (size_t)(strrchr(file, '/') - file)) : NULL;
}
