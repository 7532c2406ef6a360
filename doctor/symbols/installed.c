// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Python files of installed packages.
//
// The idea: where pip installs, be it `pip install --target` into any folder, a folder `NAME.dist-info` lies beside the
// package. The package is the outermost folder around the file that has an `__init__.py`. Each folder is looked at
// once. Locking: none.
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/base/path.h"
#include "doctor/symbols/symbols.h"

typedef struct folder {
  const char* path;  // with its last slash
  bool has_packages;
} folder_t;

typedef struct finder {
  gcap_doctor_heap_t heap;
  folder_t* folders;
  size_t num_folders, capacity;
} finder_t;

// The folder that the file's package is in, with its last slash.
static char* folder_of(finder_t* finder, const char* file) {
  char* folder = gcap_doctor_heap_copy(&finder->heap, file, (size_t)(gcap_doctor_base_name(file) - file));
  for (;;) {
    const char* init = gcap_doctor_heap_print(&finder->heap, "%s__init__.py", folder);
    if (strcmp(folder, "/") == 0 || access(init, F_OK) != 0) return folder;
    folder[strlen(folder) - 1] = '\0';
    folder[gcap_doctor_base_name(folder) - folder] = '\0';
  }
}

static bool has_packages(const char* folder) {
  static const char kEnd[] = ".dist-info";
  DIR* entries = opendir(folder);
  bool has = false;
  for (struct dirent* entry; entries != NULL && !has && (entry = readdir(entries)) != NULL;) {
    const size_t length = strlen(entry->d_name);
    has = length > strlen(kEnd) && strcmp(entry->d_name + length - strlen(kEnd), kEnd) == 0;
  }
  if (entries != NULL) closedir(entries);
  return has;
}

static bool is_installed(finder_t* finder, const char* file) {
  const char* path = folder_of(finder, file);
  for (size_t i = 0; i < finder->num_folders; ++i) {
    if (strcmp(finder->folders[i].path, path) == 0) return finder->folders[i].has_packages;
  }
  finder->folders =
      gcap_doctor_heap_grow(finder->folders, finder->num_folders, &finder->capacity, sizeof(*finder->folders));
  finder->folders[finder->num_folders] = (folder_t){path, has_packages(path)};
  return finder->folders[finder->num_folders++].has_packages;
}

void gcap_doctor_symbols_find_installed(gcap_doctor_recording_t* recording) {
  finder_t finder = {0};
  gcap_doctor_heap_init(&finder.heap);
  for (size_t i = 0; i < recording->num_frames; ++i) {
    gcap_doctor_event_frame_t* frame = &recording->frames[i];
    if (frame->module == NULL && frame->file[0] == '/') frame->is_installed = is_installed(&finder, frame->file);
  }
  free(finder.folders);
  gcap_doctor_heap_deinit(&finder.heap);
}
