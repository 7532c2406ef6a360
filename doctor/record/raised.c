// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The Python exceptions that meet a capture: one that the program is handling as a capture ends or as work goes on in
// one, and one that nobody catches while a capture is open. A framework that refuses an operation often calls no CUDA.
//
// A callback must not run the interpreter: its thread may not hold the interpreter's lock, and to wait for it could
// wait for ever. So a callback leaves a pending call, which any thread may, and which the interpreter runs on its main
// thread between two instructions, with the lock: at once after the call returns, when the exception is still handled.
// What nobody catches comes by an audit hook, of which the interpreter asks nothing but the lock. Only public functions
// are used, and only attributes that run no code of the program: a message is taken from `args`, and not by str(),
// which may be the program's own and call CUDA.
//
// Exceptions of other threads of the program are not seen, nor one that is handled in an open capture without a further
// call. An exception that was handled already as the capture began is none of the capture. Locking: none; but for the
// audit hook all is of the main thread alone.
#include "doctor/record/raised.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "doctor/record/calls.h"
#include "doctor/record/driver_calls.h"
#include "doctor/record/elf_symbol.h"
#include "doctor/record/repeats.h"
#include "doctor/record/stacks.h"
#include "doctor/record/switch.h"
#include "doctor/record/writer.h"

enum {
  kMaxText = 512,  // bytes of a message
  kKindBytes = 128,
};

typedef int (*audit_hook_t)(const char* event, void* arguments, void* user);

static struct {
  int (*IsInitialized)(void);
  int (*AddPendingCall)(int (*function)(void*), void* user);
  int (*AddAuditHook)(audit_hook_t hook, void* user);
  void (*GetExcInfo)(void** type, void** value, void** trace);
  void* (*GetAttrString)(void* object, const char* name);
  void* (*GetItem)(void* tuple, long at);
  const char* (*AsUtf8)(void* text);
  long (*AsLong)(void* number);
  void (*DecRef)(void* object);
  void (*Clear)(void);
  int (*GcDisable)(void);  // of 3.10 and later
  int (*GcEnable)(void);
  void* (*BuildValue)(const char* format, ...);
  const void* none;  // once it is asked for
} python;
static atomic_bool is_known;

// Of the main thread.
static struct {
  bool is_asked;       // a pending call is under way
  bool begins, ends;   // it follows the begin, the end of a capture
  uint64_t call;       // and this call
  const void* before;  // the exception that was handled as the capture began
  const void* last;    // that was seen last
  bool is_ready;
} state;

static bool load(const struct link_map* module, const char* name, void* out_function) {
  void* symbol = gcap_doctor_elf_exported(module, name);
  memcpy(out_function, &symbol, sizeof(symbol));
  return symbol != NULL;
}

void gcap_doctor_raised_start(const struct link_map* module) {
  load(module, "PyGC_Disable", &python.GcDisable);
  load(module, "PyGC_Enable", &python.GcEnable);
  const bool has_all = load(module, "Py_IsInitialized", &python.IsInitialized) &&
                       load(module, "Py_AddPendingCall", &python.AddPendingCall) &&
                       load(module, "PySys_AddAuditHook", &python.AddAuditHook) &&
                       load(module, "PyErr_GetExcInfo", &python.GetExcInfo) &&
                       load(module, "PyObject_GetAttrString", &python.GetAttrString) &&
                       load(module, "PyTuple_GetItem", &python.GetItem) &&
                       load(module, "PyUnicode_AsUTF8", &python.AsUtf8) &&
                       load(module, "PyLong_AsLong", &python.AsLong) && load(module, "Py_DecRef", &python.DecRef) &&
                       load(module, "PyErr_Clear", &python.Clear) && load(module, "Py_BuildValue", &python.BuildValue);
  atomic_store_explicit(&is_known, has_all, memory_order_release);
}

// --- Attributes ------------------------------------------------------------------------------------------------------

// A new reference; NULL for None and for what there is not.
static void* attribute(void* object, const char* name) {
  void* value = object != NULL ? python.GetAttrString(object, name) : NULL;
  if (value == NULL) python.Clear();
  if (value != python.none) return value;
  python.DecRef(value);
  return NULL;
}

static void release(void* object) {
  if (object != NULL) python.DecRef(object);
}

// An attribute's text, cut to its room where a character begins; "" if it is no text.
static void read_text(void* text, char* out, size_t size) {
  const char* bytes = text != NULL ? python.AsUtf8(text) : NULL;
  if (bytes == NULL) python.Clear();
  const size_t length = bytes != NULL ? gcap_doctor_line_cut(bytes, strlen(bytes), size - 1) : 0;
  if (length != 0) memcpy(out, bytes, length);
  out[length] = '\0';
}

static void read_attribute(void* object, const char* name, char* out, size_t size) {
  void* text = attribute(object, name);
  read_text(text, out, size);
  release(text);
}

// "RuntimeError", "torch.cuda.OutOfMemoryError".
static void read_kind(void* type, char* out) {
  char module[kKindBytes];
  read_attribute(type, "__module__", module, sizeof(module));
  if (strcmp(module, "builtins") == 0) module[0] = '\0';
  size_t length = strlen(module);
  memcpy(out, module, length);
  if (length != 0) out[length++] = '.';
  read_attribute(type, "__name__", out + length, kKindBytes);
}

// The first text of `args`: an OSError has its number before it.
static void read_message(void* value, char* out) {
  void* arguments = attribute(value, "args");
  out[0] = '\0';
  for (long i = 0; arguments != NULL && i < 2 && out[0] == '\0'; ++i) {
    void* item = python.GetItem(arguments, i);  // borrowed
    if (item == NULL) python.Clear();
    read_text(item, out, kMaxText);
  }
  release(arguments);
}

// --- The stack -------------------------------------------------------------------------------------------------------

typedef struct frames {
  gcap_doctor_thread_t* thread;
  uint32_t ids[GCAP_DOCTOR_MAX_PYTHON_FRAMES];  // outermost first
  size_t count;
} frames_t;

static void add_frame(frames_t* frames, void* frame, void* line) {
  char file[kMaxText], function[kMaxText];
  void* code = attribute(frame, "f_code");
  if (code == NULL) return;
  read_attribute(code, "co_filename", file, sizeof(file));
  read_attribute(code, "co_name", function, sizeof(function));
  release(code);
  const long number = line != NULL ? python.AsLong(line) : 0;
  const uint32_t id = gcap_doctor_stack_python_frame(frames->thread, file, number > 0 ? (uint32_t)number : 0, function);
  if (id == 0) return;
  if (frames->count == GCAP_DOCTOR_MAX_PYTHON_FRAMES) {
    memmove(frames->ids, frames->ids + 1, --frames->count * sizeof(frames->ids[0]));
  }
  frames->ids[frames->count++] = id;
}

// The frames around the one that the traceback begins with, which handles the exception.
static void add_outer(frames_t* frames, void* handler) {
  void* around[GCAP_DOCTOR_MAX_PYTHON_FRAMES];
  size_t count = 0;
  void* frame = attribute(handler, "f_back");
  for (; frame != NULL && count < GCAP_DOCTOR_MAX_PYTHON_FRAMES; frame = attribute(frame, "f_back")) {
    around[count++] = frame;
  }
  release(frame);
  while (count > 0) {
    void* line = attribute(around[--count], "f_lineno");
    add_frame(frames, around[count], line);
    release(line);
    release(around[count]);
  }
}

static uint32_t stack_of(gcap_doctor_thread_t* thread, void* value) {
  frames_t frames = {.thread = thread};
  void* trace = attribute(value, "__traceback__");
  for (bool is_first = true; trace != NULL; is_first = false) {
    void* frame = attribute(trace, "tb_frame");
    void* line = attribute(trace, "tb_lineno");
    void* next = attribute(trace, "tb_next");
    if (is_first) add_outer(&frames, frame);
    add_frame(&frames, frame, line);
    release(frame);
    release(line);
    release(trace);
    trace = next;
  }
  for (size_t i = 0; i < frames.count / 2; ++i) {
    const uint32_t id = frames.ids[i];
    frames.ids[i] = frames.ids[frames.count - 1 - i];
    frames.ids[frames.count - 1 - i] = id;
  }
  return frames.count != 0 ? gcap_doctor_stack_of_python(thread, frames.ids, frames.count) : 0;
}

// --- Lines -----------------------------------------------------------------------------------------------------------

static void write_line(gcap_doctor_thread_t* thread, void* type, void* value, uint64_t call) {
  char kind[2 * kKindBytes], text[kMaxText];
  read_kind(type, kind);
  read_message(value, text);
  const uint32_t stack = stack_of(thread, value);
  gcap_doctor_line_t* out = &thread->out;
  gcap_doctor_repeats_forget(out);  // the call may be a counted one
  gcap_doctor_line_begin(out, "raise");
  gcap_doctor_line_number(out, "n", gcap_doctor_call_new_number());
  gcap_doctor_line_number(out, "t", gcap_doctor_writer_now());
  gcap_doctor_line_number(out, "thread", thread->id);
  gcap_doctor_line_field(out, "type", kind);
  if (text[0] != '\0') gcap_doctor_line_field(out, "text", text);
  if (stack != 0) gcap_doctor_line_number(out, "stack", stack);
  if (call != 0) gcap_doctor_line_number(out, "call", call);
  gcap_doctor_line_end(out);
  gcap_doctor_thread_flush(thread);
}

// With the interpreter's lock, and no exception on its way. `call` is 0 for one that nobody catches.
static void write(void* type, void* value, uint64_t call) {
  if (!gcap_doctor_writer_is_open()) return;
  const int error = errno;
  gcap_doctor_thread_t* thread = gcap_doctor_thread_current();
  if (thread != NULL && !thread->is_busy) {
    // The collector runs the program's code.
    const bool collects = python.GcDisable != NULL && python.GcEnable != NULL && python.GcDisable() == 1;
    thread->is_busy = true;
    write_line(thread, type, value, call);
    thread->is_busy = false;
    if (collects) python.GcEnable();
  }
  errno = error;
}

// --- What nobody catches ---------------------------------------------------------------------------------------------

static int on_event(const char* event, void* arguments, void* user) {
  (void)user;
  if (strcmp(event, "sys.excepthook") != 0 || !gcap_doctor_switch_is_capturing()) return 0;
  void* type = python.GetItem(arguments, 1);
  void* value = type != NULL ? python.GetItem(arguments, 2) : NULL;
  if (value != NULL) {
    write(type, value, 0);
  } else {
    python.Clear();
  }
  return 0;
}

// --- What is handled -------------------------------------------------------------------------------------------------

static void see(void* type, void* value) {
  if (state.begins) state.before = value;
  const bool is_new = value != state.last || state.ends;
  state.last = value;
  if (value != NULL && value != state.before && is_new) write(type, value, state.call);
}

static void get_ready(void) {
  python.none = python.BuildValue("");
  if (python.AddAuditHook(on_event, NULL) != 0) python.Clear();
  state.is_ready = true;
}

static int look(void* user) {
  (void)user;
  gcap_doctor_thread_t* thread = gcap_doctor_thread_current();
  if (thread == NULL || !thread->is_main) return 0;  // another thread than the process's first one started Python
  void *type = NULL, *value = NULL, *trace = NULL;
  if (!state.is_ready) get_ready();
  python.GetExcInfo(&type, &value, &trace);
  see(type, value != python.none ? value : NULL);
  release(type);
  release(value);
  release(trace);
  state.is_asked = state.begins = state.ends = false;
  return 0;
}

void gcap_doctor_raised_ask(const gcap_doctor_thread_t* thread, uint8_t role, int result, uint64_t call) {
  if (!thread->is_main || thread->depth != 0 || !atomic_load_explicit(&is_known, memory_order_acquire)) return;
  const bool ends = role == GCAP_DOCTOR_ROLE_END;
  if (!ends && !gcap_doctor_switch_is_capturing()) return;
  if (role == GCAP_DOCTOR_ROLE_BEGIN && result == 0) state.begins = true;
  if (!state.ends) state.call = call;
  state.ends |= ends;
  if (!state.is_asked && python.IsInitialized() != 0) state.is_asked = python.AddPendingCall(look, NULL) == 0;
}
