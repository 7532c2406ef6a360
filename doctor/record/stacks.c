// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Stacks: return addresses of the C stack by the unwinder that backtrace() has, and the frames of Python by python.c.
//
// To unwind costs more than all else of a call. So a thread keeps the stacks that it was last seen with, and the words
// of the stack that decided them: the return addresses, and whatever an unwinder of this processor may have taken for
// the place of a frame, which are the caller's frame pointer and the frame's own end wherever they stand in a frame. If
// a call begins where one of those did, and each of these words is what it was, the stack is the same; and where a
// stack that is unwound comes to a return address and a frame pointer of the last one, the rest of the words decides
// the rest. Code that is unloaded may leave its place to other code, so this is of one capture.
//
// Addresses are described once: a loaded file's id is kept by its path, its address and its build id, since another
// file may take the place of one that was unloaded; a frame's by its address and its file's id; a stack's by the ids of
// its frames. An address is written as what tools such as addr2line take: less the address at which its file was
// loaded. Locking: the tables'; the loader's lock is not taken (elf_symbol.c).
#include "doctor/record/stacks.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "doctor/base/build_id.h"
#include "doctor/base/path.h"
#include "doctor/record/elf_symbol.h"
#include "doctor/record/intern.h"
#include "doctor/record/python.h"
#include "doctor/record/switch.h"

enum {
  kMaxIds = 4096,     // of frames, that a thread keeps
  kMaxSeen = 32,      // stacks of a thread
  kMaxWords = 192,    // that decide one
  kFramePointer = 6,  // x86-64's number
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
static _Unwind_Reason_Code (*unwind)(_Unwind_Trace_Fn trace, void* user);
static _Unwind_Ptr (*get_address)(struct _Unwind_Context* context);
static _Unwind_Word (*get_frame)(struct _Unwind_Context* context);
static _Unwind_Word (*get_register)(struct _Unwind_Context* context, int number);

typedef struct word {
  uintptr_t address, value;
} word_t;

// Without the recorder's own ones.
typedef struct frame {
  uintptr_t address;  // where it goes on
  uintptr_t base;     // its frame pointer
  uint32_t word;      // index of the word that is its address
  uint32_t id;        // 0 without memory
} frame_t;

// A C stack as it was seen.
typedef struct seen {
  uintptr_t position;  // of the frame of the recorder's function that looked
  uint32_t epoch;      // of the switch
  bool is_decided;     // by its words
  uint32_t num_words, num_frames;
  word_t words[kMaxWords];  // from the innermost on
  frame_t frames[GCAP_DOCTOR_MAX_C_FRAMES];
  uint32_t python[GCAP_DOCTOR_MAX_PYTHON_FRAMES], num_python, stack;  // with these Python frames it is that stack
} seen_t;

struct gcap_doctor_seen {
  seen_t stacks[kMaxSeen];
  uint32_t last, next;    // of `stacks`
  gcap_doctor_map_t ids;  // of frames, by their addresses
  uint32_t ids_epoch;
};

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
  void* library = dlopen("libgcc_s.so.1", RTLD_NOW);
  void* symbols[] = {library != NULL ? dlsym(library, "_Unwind_Backtrace") : NULL,
                     library != NULL ? dlsym(library, "_Unwind_GetIP") : NULL,
                     library != NULL ? dlsym(library, "_Unwind_GetCFA") : NULL,
                     library != NULL ? dlsym(library, "_Unwind_GetGR") : NULL};
  if (symbols[0] != NULL && symbols[1] != NULL && symbols[2] != NULL && symbols[3] != NULL) {
    memcpy(&unwind, &symbols[0], sizeof(unwind));
    memcpy(&get_address, &symbols[1], sizeof(get_address));
    memcpy(&get_frame, &symbols[2], sizeof(get_frame));
    memcpy(&get_register, &symbols[3], sizeof(get_register));
  }
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
  const char* function = gcap_doctor_elf_name(module, loaded, (const char*)address - 1);
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

// --- Unwinding -------------------------------------------------------------------------------------------------------

typedef struct walk {
  const gcap_doctor_thread_t* thread;
  const seen_t* last;  // that the thread was seen with; NULL for none
  seen_t* out;
  uint32_t known;         // of the frames of `out`, counted from the outermost: they are those of `last`
  uintptr_t at;           // up to where words were looked at
  uintptr_t end, before;  // of the frame within, and the address in that frame
} walk_t;

// The word may be in what a sanitizer keeps of another frame.
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static uintptr_t word_at(uintptr_t address) {
  return *(const volatile uintptr_t*)address;
}

// Whether the stack has these words, from one on outwards. Each one tells that the next one is there to be read.
static bool is_on_stack(const seen_t* seen, uint32_t from) {
  for (uint32_t i = from; i < seen->num_words; ++i) {
    if (word_at(seen->words[i].address) != seen->words[i].value) return false;
  }
  return true;
}

static void add_word(seen_t* out, uintptr_t address, uintptr_t value) {
  if (out->num_words == kMaxWords) {
    out->is_decided = false;
  } else {
    out->words[out->num_words++] = (word_t){address, value};
  }
}

// The words of the frame within that decide where this one is, and the return address, which is that frame's last word.
static void add_words(walk_t* walk, uintptr_t address, uintptr_t end, uintptr_t base) {
  seen_t* out = walk->out;
  const uintptr_t slot = end - sizeof(address);
  if (!out->is_decided || slot < out->position) return;  // the unwinder's caller's
  if (slot < walk->at || slot >= walk->thread->stack_high || slot % sizeof(address) != 0 || word_at(slot) != address) {
    out->is_decided = false;
    return;
  }
  // A register that points elsewhere is no frame pointer.
  if (base < out->position || base >= walk->thread->stack_high) base = end;
  for (; walk->at < slot; walk->at += sizeof(address)) {
    const uintptr_t value = word_at(walk->at);
    if (value == base || value == end) add_word(out, walk->at, value);
  }
  add_word(out, slot, address);
  walk->at = end;
}

// Whether the rest of the stack is that of the last one; takes it, if so.
static bool take_rest(walk_t* walk, frame_t frame) {
  const seen_t* last = walk->last;
  seen_t* out = walk->out;
  uint32_t from = 0;
  // Of one that did not fit the outermost frames are missing.
  if (last == NULL || !last->is_decided || last->num_frames == GCAP_DOCTOR_MAX_C_FRAMES) return false;
  const word_t word = out->words[frame.word];
  while (from < last->num_frames && last->words[last->frames[from].word].address < word.address) ++from;
  if (from == last->num_frames) return false;
  const frame_t* same = &last->frames[from];
  if (last->words[same->word].address != word.address || same->address != frame.address || same->base != frame.base ||
      !is_on_stack(last, same->word)) {
    return false;
  }
  for (uint32_t i = same->word + 1; i < last->num_words; ++i)
    add_word(out, last->words[i].address, last->words[i].value);
  for (; from < last->num_frames && out->num_frames < GCAP_DOCTOR_MAX_C_FRAMES; ++from, ++walk->known) {
    out->frames[out->num_frames] = last->frames[from];
    out->frames[out->num_frames++].word += frame.word - same->word;
  }
  return true;
}

// In the callback the context's frame address is where the frame within it ends.
static _Unwind_Reason_Code step(struct _Unwind_Context* context, void* user) {
  walk_t* walk = user;
  seen_t* out = walk->out;
  const uintptr_t end = get_frame(context);
  frame_t frame = {.address = get_address(context)};
  if (frame.address == 0 || out->num_frames == GCAP_DOCTOR_MAX_C_FRAMES) return _URC_END_OF_STACK;
  if (frame.address == walk->before && end == walk->end) return _URC_END_OF_STACK;
  walk->before = frame.address;
  walk->end = end;
  if (out->is_decided) frame.base = get_register(context, kFramePointer);
  add_words(walk, frame.address, end, frame.base);
  if (frame.address >= own_begin && frame.address < own_end) return _URC_NO_REASON;
  if (out->num_words == 0) out->is_decided = false;
  frame.word = out->num_words - 1;
  if (out->is_decided && take_rest(walk, frame)) return _URC_END_OF_STACK;
  out->frames[out->num_frames++] = frame;
  return _URC_NO_REASON;
}

// The ids of the frames that are not known. NOTE: the unwinder stops where there is no unwinding information, as in
// code that was generated at run time.
static void describe_frames(gcap_doctor_thread_t* thread, seen_t* seen, uint32_t known) {
  struct gcap_doctor_seen* all = thread->seen;
  // Neighbours on a stack are mostly of one file, which is looked up once.
  const struct link_map* module = NULL;
  uint32_t loaded = 0;
  if (all->ids_epoch != seen->epoch || all->ids.count >= kMaxIds || !gcap_doctor_switch_is_capturing()) {
    gcap_doctor_map_clear(&all->ids);
    all->ids_epoch = seen->epoch;
  }
  for (uint32_t i = 0; i < seen->num_frames - known; ++i) {
    frame_t* frame = &seen->frames[i];
    frame->id = gcap_doctor_map_get(&all->ids, frame->address);
    if (frame->id != 0) continue;
    const char* call = (const char*)frame->address - 1;
    const struct link_map* of = gcap_doctor_elf_module(call);
    if (of != module) loaded = of != NULL ? module_id(thread, of, call) : 0;
    module = of;
    if (module == NULL || loaded != 0) frame->id = c_frame(thread, module, loaded, call + 1);
    if (frame->id != 0) gcap_doctor_map_set(&all->ids, frame->address, frame->id);
  }
}

void gcap_doctor_stacks_forget(gcap_doctor_thread_t* thread) {
  if (thread->seen != NULL) gcap_doctor_map_clear(&thread->seen->ids);
  free(thread->seen);
}

// The one among the thread's stacks that the thread is seen with again; NULL for none.
static seen_t* seen_again(struct gcap_doctor_seen* all, uintptr_t position, uint32_t epoch) {
  for (uint32_t i = 0; i < kMaxSeen; ++i) {
    seen_t* seen = &all->stacks[i];
    if (seen->position != position || seen->epoch != epoch || !seen->is_decided || !is_on_stack(seen, 0)) continue;
    all->last = i;
    return seen;
  }
  return NULL;
}

// The stack that the thread is seen with now; NULL without memory.
static seen_t* see(gcap_doctor_thread_t* thread, uintptr_t position) {
  const uint32_t epoch = gcap_doctor_switch_epoch();
#if defined(__x86_64__)
  const bool may_come_again =
      gcap_doctor_switch_is_capturing() && gcap_doctor_thread_has_on_stack(thread, (const void*)position);
#else
  const bool may_come_again = false;
#endif
  if (thread->seen == NULL) thread->seen = calloc(1, sizeof(*thread->seen));
  struct gcap_doctor_seen* all = thread->seen;
  if (all == NULL) return NULL;
  seen_t* seen = may_come_again ? seen_again(all, position, epoch) : NULL;
  if (seen != NULL) return seen;
  const seen_t* last = &all->stacks[all->last];
  if (&all->stacks[all->next] == last) all->next = (all->next + 1) % kMaxSeen;
  seen = &all->stacks[all->next];
  seen->num_words = seen->num_frames = seen->stack = 0;
  seen->position = position;
  seen->epoch = epoch;
  seen->is_decided = may_come_again;
  walk_t walk = {.thread = thread, .last = last->epoch == epoch ? last : NULL, .out = seen, .at = position};
  if (unwind != NULL) unwind(step, &walk);
  describe_frames(thread, seen, walk.known);
  all->last = all->next;
  all->next = (all->next + 1) % kMaxSeen;
  return seen;
}

// --- Stacks ----------------------------------------------------------------------------------------------------------

static size_t described(const seen_t* seen, uint32_t* out_ids) {
  size_t count = 0;
  for (uint32_t i = 0; i < seen->num_frames; ++i) {
    if (seen->frames[i].id != 0) out_ids[count++] = seen->frames[i].id;
  }
  return count;
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
  uint32_t python[GCAP_DOCTOR_MAX_PYTHON_FRAMES];
  const char* why = NULL;
  seen_t* seen = see(thread, (uintptr_t)__builtin_frame_address(0));
  if (seen == NULL) return 0;
  const size_t num_python = gcap_doctor_python_stack(thread, python, &why);
  const bool is_known = seen->stack != 0 && why == NULL && seen->num_python == num_python &&
                        memcmp(seen->python, python, num_python * sizeof(python[0])) == 0;
  if (is_known) return seen->stack;
  uint32_t c[GCAP_DOCTOR_MAX_C_FRAMES];
  const uint32_t id = stack_id(thread, c, described(seen, c), python, num_python, why);
  seen->stack = why == NULL ? id : 0;
  seen->num_python = (uint32_t)num_python;
  memcpy(seen->python, python, num_python * sizeof(python[0]));
  return id;
}

uint32_t gcap_doctor_stack_of_python(gcap_doctor_thread_t* thread, const uint32_t* python, size_t count) {
  return stack_id(thread, NULL, 0, python, count, NULL);
}

// --- The program's own part of a stack -------------------------------------------------------------------------------

static bool is_cudas(const struct link_map* module) {
  static const char* const names[] = {"libcuda.so", "libcudart.so", "libcupti.so", "libgcap_doctor.so",
                                      "libfake_cupti.so"};
  const char* base = gcap_doctor_base_name(path_of(module));
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (strncmp(base, names[i], strlen(names[i])) == 0) return true;
  }
  return false;
}

static _Unwind_Reason_Code find_program(struct _Unwind_Context* context, void* user) {
  const char* address = (const char*)get_address(context) - 1;
  const struct link_map* module = gcap_doctor_elf_module(address);
  if (module != NULL && is_cudas(module)) return _URC_NO_REASON;
  *(uintptr_t*)user = get_frame(context);
  return _URC_END_OF_STACK;
}

uintptr_t gcap_doctor_stacks_program_frame(void) {
  uintptr_t frame = 0;
  if (unwind != NULL) unwind(find_program, &frame);
  return frame;
}
