// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Stacks: return addresses of the C stack by backtrace(), and the frames of Python by python.c.
//
// Addresses are described once: a loaded file's id is kept by its path, its address and its build id, since another
// file may take the place of one that was unloaded; a frame's by its address and its file's id; a stack's by the ids of
// its frames. An address is written as what tools such as addr2line take: less the address at which its file was
// loaded. Locking: the tables'; the loader's lock is not taken (elf_symbol.c).
#include "doctor/record/stacks.h"

#include <execinfo.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/base/build_id.h"
#include "doctor/record/elf_symbol.h"
#include "doctor/record/intern.h"
#include "doctor/record/python.h"

enum {
  kMaxOwnFrames = 12,
  // Seeds of hashes: frames of C and of Python share a table.
  kCFrame = 1,
  kPythonFrame = 2,
  kStack = 3,
  kModule = 4,
};

static gcap_doctor_intern_t modules = {.lock = PTHREAD_MUTEX_INITIALIZER};
static gcap_doctor_intern_t frames = {.lock = PTHREAD_MUTEX_INITIALIZER};
static gcap_doctor_intern_t stacks = {.lock = PTHREAD_MUTEX_INITIALIZER};
static char executable[4096];
static uintptr_t own_begin, own_end;  // the recorder's code

static int find_own(struct dl_phdr_info* info, size_t size, void* user) {
  (void)size;
  (void)user;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    const uintptr_t end = begin + info->dlpi_phdr[i].p_memsz;
    const uintptr_t here = (uintptr_t)gcap_doctor_stacks_start;
    if (info->dlpi_phdr[i].p_type != PT_LOAD || here < begin || here >= end) continue;
    own_begin = begin;
    own_end = end;
    return 1;
  }
  return 0;
}

void gcap_doctor_stacks_start(void) {
  void* address[2];
  backtrace(address, 2);
  dl_iterate_phdr(find_own, NULL);
  const ssize_t length = readlink("/proc/self/exe", executable, sizeof(executable) - 1);
  executable[length > 0 ? length : 0] = '\0';
}

static const char* path_of(const struct link_map* module) {
  if (module->l_name != NULL && module->l_name[0] != '\0') return module->l_name;
  return executable[0] != '\0' ? executable : "?";
}

// The id of the loaded file that the address is in.
static uint32_t module_id(gcap_doctor_thread_t* thread, const struct link_map* module, const void* address) {
  char build[GCAP_DOCTOR_BUILD_ID_TEXT];
  gcap_doctor_elf_build_id(address, build);
  const char* path = path_of(module);
  uint64_t key = gcap_doctor_hash(kModule, &module->l_addr, sizeof(module->l_addr));
  key = gcap_doctor_hash(gcap_doctor_hash(key, path, strlen(path)), build, strlen(build));
  uint32_t id = gcap_doctor_intern_find(&modules, key, &thread->definitions, &thread->defined);
  if (id != 0) return id;
  gcap_doctor_line_t fields = {0};
  gcap_doctor_line_field(&fields, "path", path);
  if (build[0] != '\0') gcap_doctor_line_field(&fields, "build", build);
  id = gcap_doctor_intern_add(&modules, key, "module", &fields, &thread->definitions, &thread->defined);
  gcap_doctor_line_free(&fields);
  return id;
}

// A return address as file, offset and function. The call is before it: it may be another function's first byte.
static void describe(const struct link_map* module, uint32_t loaded, const void* address, gcap_doctor_line_t* out) {
  if (module == NULL) {
    gcap_doctor_line_field(out, "module", "?");
    gcap_doctor_line_hex(out, "offset", (uintptr_t)address);
    return;
  }
  const char* function = gcap_doctor_elf_name(module, (const char*)address - 1);
  gcap_doctor_line_number(out, "loaded", loaded);
  gcap_doctor_line_hex(out, "offset", (uintptr_t)address - module->l_addr);
  if (function != NULL) gcap_doctor_line_field(out, "function", function);
}

// `module` is NULL, and `loaded` 0, for an address in no file.
static uint32_t c_frame(gcap_doctor_thread_t* thread, const struct link_map* module, uint32_t loaded,
                        const void* address) {
  const uint64_t key = gcap_doctor_hash(gcap_doctor_hash(kCFrame, &address, sizeof(address)), &loaded, sizeof(loaded));
  uint32_t id = gcap_doctor_intern_find(&frames, key, &thread->definitions, &thread->defined);
  if (id != 0) return id;
  gcap_doctor_line_t fields = {0};
  // An interpreter may have been loaded since the start.
  if (module != NULL) gcap_doctor_python_look_in(module);
  describe(module, loaded, address, &fields);
  id = gcap_doctor_intern_add(&frames, key, "frame", &fields, &thread->definitions, &thread->defined);
  gcap_doctor_line_free(&fields);
  return id;
}

uint32_t gcap_doctor_stack_python_frame(gcap_doctor_thread_t* thread, const char* file, uint32_t line,
                                        const char* function) {
  const uint64_t key = gcap_doctor_hash(gcap_doctor_hash(kPythonFrame + ((uint64_t)line << 8), file, strlen(file)),
                                        function, strlen(function));
  uint32_t id = gcap_doctor_intern_find(&frames, key, &thread->definitions, &thread->defined);
  if (id != 0) return id;
  gcap_doctor_line_t fields = {0};
  gcap_doctor_line_field(&fields, "file", file);
  gcap_doctor_line_number(&fields, "line", line);
  gcap_doctor_line_field(&fields, "function", function);
  id = gcap_doctor_intern_add(&frames, key, "pyframe", &fields, &thread->definitions, &thread->defined);
  gcap_doctor_line_free(&fields);
  return id;
}

// The frames outside of the recorder. NOTE: backtrace() stops where there is no unwinding information, as in code that
// was generated at run time.
static size_t c_frames(gcap_doctor_thread_t* thread, uint32_t* ids) {
  void* addresses[GCAP_DOCTOR_MAX_C_FRAMES];
  const int count = backtrace(addresses, GCAP_DOCTOR_MAX_C_FRAMES);
  size_t num_ids = 0;
  int first = 0;
  // A library in the place of backtrace() would stand before the recorder.
  for (int i = 0; i < count && i < kMaxOwnFrames; ++i) {
    if ((uintptr_t)addresses[i] >= own_begin && (uintptr_t)addresses[i] < own_end) first = i + 1;
  }
  // Neighbours on a stack are mostly of one file, which is looked up once.
  const struct link_map* module = NULL;
  uint32_t loaded = 0;
  for (int i = first; i < count; ++i) {
    const char* call = (const char*)addresses[i] - 1;
    const struct link_map* of = gcap_doctor_elf_module(call);
    if (of != module) loaded = of != NULL ? module_id(thread, of, call) : 0;
    module = of;
    if (module != NULL && loaded == 0) continue;
    const uint32_t id = c_frame(thread, module, loaded, addresses[i]);
    if (id != 0) ids[num_ids++] = id;
  }
  return num_ids;
}

static uint32_t stack_id(gcap_doctor_thread_t* thread, const uint32_t* c, size_t num_c, const uint32_t* python,
                         size_t num_python, const char* why) {
  uint64_t key = gcap_doctor_hash(kStack, c, num_c * sizeof(c[0]));
  key = gcap_doctor_hash(key, python, num_python * sizeof(python[0]));
  if (why != NULL) key = gcap_doctor_hash(key, why, strlen(why));
  uint32_t id = gcap_doctor_intern_find(&stacks, key, &thread->definitions, &thread->defined);
  if (id != 0) return id;
  gcap_doctor_line_t fields = {0};
  gcap_doctor_line_ids(&fields, "c", c, num_c);
  gcap_doctor_line_ids(&fields, "py", python, num_python);
  if (why != NULL) gcap_doctor_line_field(&fields, "why", why);
  id = gcap_doctor_intern_add(&stacks, key, "stack", &fields, &thread->definitions, &thread->defined);
  gcap_doctor_line_free(&fields);
  return id;
}

uint32_t gcap_doctor_stack_record(gcap_doctor_thread_t* thread) {
  uint32_t c[GCAP_DOCTOR_MAX_C_FRAMES], python[GCAP_DOCTOR_MAX_PYTHON_FRAMES];
  const char* why = NULL;
  const size_t num_c = c_frames(thread, c);
  const size_t num_python = gcap_doctor_python_stack(thread, python, &why);
  return stack_id(thread, c, num_c, python, num_python, why);
}

uint32_t gcap_doctor_stack_of_python(gcap_doctor_thread_t* thread, const uint32_t* python, size_t count) {
  return stack_id(thread, NULL, 0, python, count, NULL);
}
