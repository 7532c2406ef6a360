// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Finds CUPTI. A program has it in one of many places: loaded already, in a wheel beside PyTorch, in the toolkit, or on
// the loader's path. They are tried in that order, so that a program gets the CUPTI of the CUDA that it came with.
// Locking: none; this runs once, before there are callbacks.
#include "doctor/record/cupti_find.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/record/writer.h"

enum {
  kMaxFolders = 256,
  kOldest = 18,  // CUDA 12.0: the first with ids of executables and of cloned nodes
};

static const char* const names[] = {"libcupti.so.13", "libcupti.so.12"};

// --- Where ----------------------------------------------------------------------------------------------------------

typedef struct search {
  char* loaded;  // the path of a CUPTI that is loaded
  char* folders[kMaxFolders];
  size_t num_folders;
} search_t;

static void add_folder(search_t* search, const char* base, size_t length, const char* below) {
  char* folder = NULL;
  if (search->num_folders == kMaxFolders) return;
  if (asprintf(&folder, "%.*s%s", (int)length, base, below) < 0) return;
  for (size_t i = 0; i < search->num_folders; ++i) {
    if (strcmp(search->folders[i], folder) == 0) {
      free(folder);
      return;
    }
  }
  search->folders[search->num_folders++] = folder;
}

static void add_wheels(search_t* search, const char* base, size_t length) {
  add_folder(search, base, length, "/nvidia/cu13/lib");
  add_folder(search, base, length, "/nvidia/cuda_cupti/lib");
}

// NVIDIA's wheels are under site-packages/nvidia, PyTorch is beside them.
static int look_at_module(struct dl_phdr_info* info, size_t size, void* user) {
  (void)size;
  search_t* search = user;
  const char* path = info->dlpi_name;
  if (path == NULL || path[0] == '\0') return 0;
  const char* name = strrchr(path, '/');
  name = name != NULL ? name + 1 : path;
  if (search->loaded == NULL && strncmp(name, "libcupti", strlen("libcupti")) == 0) search->loaded = strdup(path);
  const char* wheel = strstr(path, "/nvidia/");
  if (wheel != NULL) add_wheels(search, path, (size_t)(wheel - path));
  const char* torch = strstr(path, "/torch/lib/");
  if (torch != NULL) add_wheels(search, path, (size_t)(torch - path));
  if (torch != NULL) add_folder(search, path, (size_t)(torch - path), "/torch/lib");
  return 0;
}

static void add_toolkit(search_t* search, const char* root) {
  if (root == NULL || root[0] == '\0') return;
  add_folder(search, root, strlen(root), "/extras/CUPTI/lib64");
  add_folder(search, root, strlen(root), "/lib64");
  add_folder(search, root, strlen(root), "/targets/x86_64-linux/lib");
  add_folder(search, root, strlen(root), "/lib");
}

static void add_installed(search_t* search) {
  glob_t found;
  add_toolkit(search, getenv("CUDA_HOME"));
  add_toolkit(search, getenv("CUDA_PATH"));
  add_toolkit(search, "/usr/local/cuda");
  if (glob("/usr/local/cuda-*", 0, NULL, &found) == 0) {
    for (size_t i = found.gl_pathc; i > 0; --i) add_toolkit(search, found.gl_pathv[i - 1]);  // the newest first
    globfree(&found);
  }
}

static void* open_in(const char* folder) {
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) return library;
  }
  // PyTorch's wheel for CUDA 12 renames the library that it carries.
  char pattern[4096];
  glob_t found;
  snprintf(pattern, sizeof(pattern), "%s/libcupti-*.so*", folder);
  if (glob(pattern, 0, NULL, &found) != 0) return NULL;
  void* library = dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_LOCAL);
  globfree(&found);
  return library;
}

static void* open_found(void) {
  search_t search = {0};
  void* library = NULL;
  dl_iterate_phdr(look_at_module, &search);
  add_installed(&search);
  if (search.loaded != NULL) library = dlopen(search.loaded, RTLD_NOW | RTLD_NOLOAD);
  for (size_t i = 0; library == NULL && i < search.num_folders; ++i) library = open_in(search.folders[i]);
  for (size_t i = 0; library == NULL && i < sizeof(names) / sizeof(names[0]); ++i) {
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  }
  if (library == NULL) {
    gcap_doctor_writer_note(
        "no CUPTI was found, so nothing is recorded: libcupti.so.13 and libcupti.so.12 are not beside the libraries "
        "that "
        "are loaded, in no NVIDIA wheel near them, not under CUDA_HOME, CUDA_PATH or /usr/local/cuda*, and not on the "
        "loader's path; install it (pip install nvidia-cuda-cupti) or set GCAP_DOCTOR_CUPTI to the library.");
  }
  for (size_t i = 0; i < search.num_folders; ++i) free(search.folders[i]);
  free(search.loaded);
  return library;
}

static void* open_at(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    gcap_doctor_writer_note("GCAP_DOCTOR_CUPTI is '%s', which cannot be loaded (%s), so nothing is recorded.", path,
                            dlerror());
  }
  return library;
}

// --- What it has ----------------------------------------------------------------------------------------------------

// POSIX lets a function's address travel in a void*, C does not.
static bool load(const gcap_doctor_cupti_t* cupti, const char* name, void* out_function) {
  void* symbol = dlsym(cupti->library, name);
  memcpy(out_function, &symbol, sizeof(symbol));
  return symbol != NULL;
}

static const char* load_needed(gcap_doctor_cupti_t* cupti) {
  if (!load(cupti, "cuptiGetVersion", &cupti->GetVersion)) return "cuptiGetVersion";
  if (!load(cupti, "cuptiSubscribe", &cupti->Subscribe)) return "cuptiSubscribe";
  if (!load(cupti, "cuptiEnableCallback", &cupti->EnableCallback)) return "cuptiEnableCallback";
  if (!load(cupti, "cuptiGetGraphNodeId", &cupti->GetGraphNodeId)) return "cuptiGetGraphNodeId";
  return NULL;
}

static void load_others(gcap_doctor_cupti_t* cupti) {
  load(cupti, "cuptiGetGraphExecId", &cupti->GetGraphExecId);
  load(cupti, "cuptiGetResultString", &cupti->GetResultString);
  load(cupti, "cuptiActivityEnable", &cupti->ActivityEnable);
  load(cupti, "cuptiActivityFlushAll", &cupti->ActivityFlushAll);
  load(cupti, "cuptiActivityGetNextRecord", &cupti->ActivityGetNextRecord);
  load(cupti, "cuptiActivityRegisterCallbacks", &cupti->ActivityRegisterCallbacks);
  if (cupti->ActivityEnable == NULL || cupti->ActivityFlushAll == NULL || cupti->ActivityGetNextRecord == NULL) {
    cupti->ActivityRegisterCallbacks = NULL;
  }
}

static void tell_place(const gcap_doctor_cupti_t* cupti, char* out, size_t size) {
  struct link_map* map = NULL;
  const bool found = dlinfo(cupti->library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] != '\0';
  snprintf(out, size, "%s", found ? map->l_name : "CUPTI");
}

bool gcap_doctor_cupti_find(const char* path, gcap_doctor_cupti_t* out_cupti) {
  memset(out_cupti, 0, sizeof(*out_cupti));
  out_cupti->library = path != NULL ? open_at(path) : open_found();
  if (out_cupti->library == NULL) return false;
  char place[1024];
  tell_place(out_cupti, place, sizeof(place));
  const char* missing = load_needed(out_cupti);
  if (missing != NULL) {
    gcap_doctor_writer_note("'%s' has no function %s: it is no CUPTI of CUDA 12.0 or later, so nothing is recorded.",
                            place, missing);
    return false;
  }
  load_others(out_cupti);
  if (out_cupti->GetVersion(&out_cupti->version) != GCAP_DOCTOR_CUPTI_SUCCESS) out_cupti->version = 0;
  if (out_cupti->version != 0 && out_cupti->version < kOldest) {
    gcap_doctor_writer_note("'%s' has version %u, which is older than CUDA 12.0's (%d), so nothing is recorded.", place,
                            out_cupti->version, kOldest);
    return false;
  }
  return true;
}
