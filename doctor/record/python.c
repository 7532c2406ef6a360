// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The Python stack of the thread that made a call.
//
// PyTorch gives the interpreter's lock back before it calls CUDA, so the stack must be read without it. That is safe
// for a thread's own frames: they stand still while the thread is here. CPython does so itself in its fault handler,
// whose _Py_DumpTraceback writes the stack to a file: an exported symbol in 3.11 and 3.12, a hidden one in others,
// which is found where the interpreter has its table of symbols. Where there is none, and the thread holds the lock,
// the frames are asked for by the public functions. Nothing else of an interpreter is assumed, and where nothing works
// a stack says why.
//
// An interpreter that is there at the start is found by the loader's functions. One that comes later is found when code
// of it is on a stack, by elf_symbol.c: a callback must not take the loader's lock. Locking: none; the functions are
// loaded by the thread that takes a flag first, and others have no Python stack until they are.
#include "doctor/record/python.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/base/grow.h"
#include "doctor/record/elf_symbol.h"
#include "doctor/record/python_place.h"
#include "doctor/record/raised.h"
#include "doctor/record/stacks.h"
#include "doctor/record/switch.h"

enum {
  kMostPlaceFrames = 1 << 20,
};

typedef struct python {
  // Needed.
  int (*IsInitialized)(void);
  const char* (*GetVersion)(void);
  void* (*GetThisThreadState)(void);
  // One way or the other; each may be NULL.
  void (*DumpTraceback)(int file, void* state);
  void* (*CurrentState)(void);  // the state of the thread that holds the lock
  void* (*GetFrame)(void* state);
  void* (*GetBack)(void* frame);
  void* (*GetCode)(void* frame);
  int (*GetLineNumber)(void* frame);
  void* (*GetAttrString)(void* object, const char* name);
  const char* (*AsUtf8)(void* text);
  void (*DecRef)(void* object);
  void (*ErrFetch)(void** type, void** value, void** trace);
  void (*ErrRestore)(void* type, void* value, void* trace);
  int (*GcDisable)(void);
  int (*GcEnable)(void);
} python_t;

static python_t python;
static atomic_bool is_taken, is_found;

// --- Finding it ------------------------------------------------------------------------------------------------------

static bool load(const struct link_map* module, const char* name, void* out_function) {
  void* symbol = gcap_doctor_elf_exported(module, name);
  memcpy(out_function, &symbol, sizeof(symbol));
  return symbol != NULL;
}

static void load_others(const struct link_map* module) {
  if (!load(module, "_Py_DumpTraceback", &python.DumpTraceback)) {
    void* hidden = gcap_doctor_elf_hidden(module, "_Py_DumpTraceback");
    memcpy(&python.DumpTraceback, &hidden, sizeof(hidden));
  }
  if (!load(module, "PyThreadState_GetUnchecked", &python.CurrentState)) {
    load(module, "_PyThreadState_UncheckedGet", &python.CurrentState);
  }
  const bool has_frames =
      load(module, "PyThreadState_GetFrame", &python.GetFrame) && load(module, "PyFrame_GetBack", &python.GetBack) &&
      load(module, "PyFrame_GetCode", &python.GetCode) &&
      load(module, "PyFrame_GetLineNumber", &python.GetLineNumber) &&
      load(module, "PyObject_GetAttrString", &python.GetAttrString) &&
      load(module, "PyUnicode_AsUTF8", &python.AsUtf8) && load(module, "Py_DecRef", &python.DecRef) &&
      load(module, "PyErr_Fetch", &python.ErrFetch) && load(module, "PyErr_Restore", &python.ErrRestore);
  if (!has_frames) python.GetFrame = NULL;
  load(module, "PyGC_Disable", &python.GcDisable);
  load(module, "PyGC_Enable", &python.GcEnable);
}

void gcap_doctor_python_look_in(const struct link_map* module) {
  if (atomic_load(&is_found) || gcap_doctor_elf_exported(module, "Py_IsInitialized") == NULL) return;
  if (atomic_exchange(&is_taken, true)) return;  // for ever, once it is found
  if (load(module, "Py_IsInitialized", &python.IsInitialized) && load(module, "Py_GetVersion", &python.GetVersion) &&
      load(module, "PyGILState_GetThisThreadState", &python.GetThisThreadState)) {
    load_others(module);
    gcap_doctor_python_place_start(python.GetVersion());
    gcap_doctor_raised_start(module);
    atomic_store_explicit(&is_found, true, memory_order_release);
  } else {
    atomic_store(&is_taken, false);
  }
}

// An interpreter that was loaded for a plugin alone is not found by the program's names.
static int look_at_module(struct dl_phdr_info* info, size_t size, void* user) {
  (void)size;
  const char* name = info->dlpi_name != NULL ? strrchr(info->dlpi_name, '/') : NULL;
  if (name == NULL || strncmp(name, "/libpython", strlen("/libpython")) != 0) return 0;
  *(char**)user = strdup(info->dlpi_name);
  return 1;
}

void gcap_doctor_python_start(void) {
  void* symbol = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
  if (symbol == NULL) {
    char* path = NULL;
    dl_iterate_phdr(look_at_module, &path);
    void* library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (library != NULL) symbol = dlsym(library, "Py_IsInitialized");
    free(path);
  }
  const struct link_map* module = symbol != NULL ? gcap_doctor_elf_module(symbol) : NULL;
  if (module != NULL) gcap_doctor_python_look_in(module);
}

// --- By the interpreter's fault handler ------------------------------------------------------------------------------

// The fault handler writes what is not ASCII as \xe9, \u20ac or \U0001f600; here it becomes UTF-8, in place.
static void decode(char* text) {
  char* to = text;
  for (const char* from = text; *from != '\0';) {
    const int digits = from[0] != '\\' ? 0 : from[1] == 'x' ? 2 : from[1] == 'u' ? 4 : from[1] == 'U' ? 8 : 0;
    char number[9] = "";
    if (digits != 0) strncpy(number, from + 2, (size_t)digits);
    char* end = number;
    const unsigned long code = strtoul(number, &end, 16);
    // A plain backslash of a file's name is written as it is.
    if (digits == 0 || end != number + digits || code < 0x80 || code > 0x10ffff) {
      *to++ = *from++;
      continue;
    }
    from += 2 + digits;
    if (code < 0x800) {
      *to++ = (char)(0xc0 | code >> 6);
    } else {
      if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
      } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
      }
      *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (code & 0x3f));
  }
  *to = '\0';
}

//   File "a.py", line 12 in body
static uint32_t dumped_frame(gcap_doctor_thread_t* thread, char* line) {
  char* file = strstr(line, "File ");
  if (file == NULL) return 0;
  file += strlen("File ");
  char* number = strstr(file, ", line ");
  for (char* later = number; later != NULL; later = strstr(later + 1, ", line ")) number = later;
  char* function = number != NULL ? strstr(number, " in ") : NULL;
  if (function == NULL) return 0;
  *number = '\0';
  *function = '\0';
  const size_t length = strlen(file);
  if (length >= 2 && file[0] == '"' && file[length - 1] == '"') {
    file[length - 1] = '\0';
    ++file;
  }
  decode(file);
  decode(function + strlen(" in "));
  return gcap_doctor_stack_python_frame(thread, file, (uint32_t)strtoul(number + strlen(", line "), NULL, 10),
                                        function + strlen(" in "));
}

// Frames of the fault handler's text; `*out_shown` is how many it has, also beyond those that are kept.
static size_t read_dump(gcap_doctor_thread_t* thread, char* text, uint32_t* out_frames, uint32_t* out_shown) {
  size_t count = 0;
  char* rest = text;
  *out_shown = 0;
  for (char* line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
    if (strstr(line, "File ") == NULL) continue;
    ++*out_shown;
    const uint32_t id = count < GCAP_DOCTOR_MAX_PYTHON_FRAMES ? dumped_frame(thread, line) : 0;
    if (id != 0) out_frames[count++] = id;
  }
  return count;
}

static size_t dumped_frames(gcap_doctor_thread_t* thread, void* state, uint32_t* out_frames, uint32_t* out_shown) {
  static const size_t kMostBytes = 128 << 10;
  const int file = gcap_doctor_thread_scratch_file(thread);
  *out_shown = 0;
  if (file < 0) return 0;
  python.DumpTraceback(file, state);
  const off_t size = lseek(file, 0, SEEK_CUR);
  if (size <= 0) return 0;
  const size_t wanted = (size_t)size < kMostBytes ? (size_t)size : kMostBytes;
  char* text = malloc(wanted + 1);
  if (text == NULL) return 0;
  const ssize_t length = pread(file, text, wanted, 0);
  text[length > 0 ? length : 0] = '\0';
  const size_t count = read_dump(thread, text, out_frames, out_shown);
  free(text);
  return count;
}

// The stacks that the thread was seen with since the capture began, by their places.
static size_t known_frames(const gcap_doctor_thread_t* thread, uint64_t place, uint32_t* out_frames) {
  const uint32_t at = gcap_doctor_map_get(&thread->places, place);
  if (at == 0) return 0;
  const uint32_t* kept = &thread->place_frames[at - 1];
  memcpy(out_frames, kept + 1, kept[0] * sizeof(*kept));
  return kept[0];
}

static void keep_frames(gcap_doctor_thread_t* thread, uint64_t place, const uint32_t* frames, size_t count) {
  const size_t needed = thread->num_place_frames + 1 + count;
  if (!gcap_doctor_grow(&thread->place_frames, &thread->place_frame_capacity, needed, sizeof(*frames))) return;
  if (!gcap_doctor_map_set(&thread->places, place, (uint32_t)thread->num_place_frames + 1)) return;
  thread->place_frames[thread->num_place_frames] = (uint32_t)count;
  memcpy(&thread->place_frames[thread->num_place_frames + 1], frames, count * sizeof(*frames));
  thread->num_place_frames = needed;
}

// Code that is freed may leave its place to other code, so places are of one capture, and not too many.
static void forget_old_places(gcap_doctor_thread_t* thread) {
  const uint32_t epoch = gcap_doctor_switch_epoch();
  if (thread->place_epoch == epoch && thread->num_place_frames < kMostPlaceFrames) return;
  gcap_doctor_map_clear(&thread->places);
  thread->num_place_frames = 0;
  thread->place_epoch = epoch;
}

static size_t shown_frames(gcap_doctor_thread_t* thread, void* state, uint32_t* out_frames) {
  uint64_t place = 0;
  uint32_t frames = 0, shown = 0;
  forget_old_places(thread);
  const bool has_place = gcap_doctor_python_place(state, &place, &frames);
  size_t count = has_place ? known_frames(thread, place, out_frames) : 0;
  if (count != 0) return count;
  count = dumped_frames(thread, state, out_frames, &shown);
  if (has_place && shown != frames) {
    gcap_doctor_python_place_stop();
  } else if (has_place && count != 0) {
    gcap_doctor_python_place_shown(frames);
    keep_frames(thread, place, out_frames, count);
  }
  return count;
}

// --- By the public functions, with the lock --------------------------------------------------------------------------

static uint32_t held_frame(gcap_doctor_thread_t* thread, void* frame) {
  void* code = python.GetCode(frame);
  if (code == NULL) return 0;
  void* file = python.GetAttrString(code, "co_filename");
  void* function = python.GetAttrString(code, "co_name");
  const char* file_text = file != NULL ? python.AsUtf8(file) : NULL;
  const char* function_text = function != NULL ? python.AsUtf8(function) : NULL;
  const int line = python.GetLineNumber(frame);
  uint32_t id =
      gcap_doctor_stack_python_frame(thread, file_text != NULL ? file_text : "???", line > 0 ? (uint32_t)line : 0,
                                     function_text != NULL ? function_text : "???");
  if (file != NULL) python.DecRef(file);
  if (function != NULL) python.DecRef(function);
  python.DecRef(code);
  return id;
}

static size_t held_frames(gcap_doctor_thread_t* thread, void* state, uint32_t* out_frames) {
  void *type, *value, *trace;
  size_t count = 0;
  // Frames are objects in 3.11: to make them must not run the collector, which runs the program's code.
  const bool collects = python.GcDisable != NULL && python.GcEnable != NULL && python.GcDisable() == 1;
  python.ErrFetch(&type, &value, &trace);
  void* frame = python.GetFrame(state);
  while (frame != NULL) {
    if (count < GCAP_DOCTOR_MAX_PYTHON_FRAMES) {
      const uint32_t id = held_frame(thread, frame);
      if (id != 0) out_frames[count++] = id;
    }
    void* back = count < GCAP_DOCTOR_MAX_PYTHON_FRAMES ? python.GetBack(frame) : NULL;
    python.DecRef(frame);
    frame = back;
  }
  python.ErrRestore(type, value, trace);
  if (collects) python.GcEnable();
  return count;
}

size_t gcap_doctor_python_stack(gcap_doctor_thread_t* thread, uint32_t* out_frames, const char** out_why) {
  *out_why = NULL;
  if (!atomic_load_explicit(&is_found, memory_order_acquire) || python.IsInitialized() == 0) return 0;
  void* state = python.GetThisThreadState();
  if (state == NULL) {
    *out_why = "the thread runs no Python";
    return 0;
  }
  size_t count = 0;
  if (python.DumpTraceback != NULL) {
    count = shown_frames(thread, state, out_frames);
    if (count == 0) *out_why = "the interpreter showed no frames of the thread";
  } else if (python.GetFrame == NULL || python.CurrentState == NULL) {
    *out_why = "the interpreter has neither _Py_DumpTraceback nor PyThreadState_GetFrame, which 3.9 has";
  } else if (python.CurrentState() != state) {
    *out_why =
        "the interpreter hides _Py_DumpTraceback, and without it shows a stack to a thread that holds its lock alone";
  } else {
    count = held_frames(thread, state, out_frames);
    if (count == 0) *out_why = "the interpreter showed no frames of the thread";
  }
  return count;
}
