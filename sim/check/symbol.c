// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Names for return addresses.
//
// The idea: the module and the offset in it are always known, from the list of loaded objects. For more the program
// addr2line is asked, once for each module of a stack that holds new addresses, and what it answers is kept. It is a
// process of its own, so that reports need no library and nothing of the debug information stays in memory.
// GCAP_SIM_SYMBOLIZER names another program with the same options, or `none`. Locking: the global mutex.
#include "sim/check/symbol.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/heap.h"
#include "sim/check/origin.h"

extern char** environ;

// One function at an address; there are several where calls were inlined, innermost first.
typedef struct frame {
  struct frame* next;
  char* function;
  char* place;  // file:line; NULL when it is not known
} frame_t;

typedef struct symbol {
  void* address;
  char* module;  // NULL for code in no module
  uintptr_t offset;
  frame_t* frames;
} symbol_t;

static struct {
  symbol_t** slots;  // a hash table by address
  size_t capacity;   // a power of two
  size_t count;
} symbols;

static char* copy_of(const char* text) {
  char* copy = gcap_sim_calloc(strlen(text) + 1, 1);
  return strcpy(copy, text);
}

// --- Modules --------------------------------------------------------------------------------------------------------

typedef struct module {
  const char* name;
  uintptr_t address;
  uintptr_t base;
} module_t;

static int match_module(struct dl_phdr_info* info, size_t size, void* argument) {
  (void)size;
  module_t* module = argument;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    if (info->dlpi_phdr[i].p_type != PT_LOAD || module->address - begin >= info->dlpi_phdr[i].p_memsz) continue;
    module->name = info->dlpi_name;
    module->base = info->dlpi_addr;
    return 1;
  }
  return 0;
}

static const char* executable(void) {
  static char path[4096];
  if (!path[0] && readlink("/proc/self/exe", path, sizeof(path) - 1) <= 0) strcpy(path, "the program");
  return path;
}

// --- The table ------------------------------------------------------------------------------------------------------

static symbol_t** place_of(const void* address) {
  size_t at = ((uintptr_t)address * UINT64_C(0x9E3779B97F4A7C15)) >> 32 & (symbols.capacity - 1);
  while (symbols.slots[at] != NULL && symbols.slots[at]->address != address) at = (at + 1) & (symbols.capacity - 1);
  return &symbols.slots[at];
}

static void grow(void) {
  symbol_t** old = symbols.slots;
  size_t capacity = symbols.capacity;
  symbols.capacity = capacity ? 2 * capacity : 256;
  symbols.slots = gcap_sim_calloc(symbols.capacity, sizeof(symbol_t*));
  for (size_t i = 0; i < capacity; ++i) {
    if (old[i] != NULL) *place_of(old[i]->address) = old[i];
  }
  free(old);
}

// The symbol of an address, and whether it is new: then it has no frames yet.
static symbol_t* symbol_of(void* address, bool* is_new) {
  if (2 * symbols.count >= symbols.capacity) grow();
  symbol_t** place = place_of(address);
  *is_new = *place == NULL;
  if (*place != NULL) return *place;
  symbol_t* symbol = gcap_sim_calloc(1, sizeof(*symbol));
  // The call is before the address it returns to, and may be the last instruction of its line.
  module_t module = {.address = (uintptr_t)address - 1};
  dl_iterate_phdr(match_module, &module);
  symbol->address = address;
  if (module.name != NULL) symbol->module = copy_of(module.name[0] ? module.name : executable());
  symbol->offset = module.address - module.base;
  ++symbols.count;
  return *place = symbol;
}

// --- The symboliser -------------------------------------------------------------------------------------------------

static const char* symbolizer(void) {
  const char* name = getenv("GCAP_SIM_SYMBOLIZER");
  if (name == NULL || !name[0]) return "addr2line";
  return strcmp(name, "none") == 0 ? NULL : name;
}

// Starts the program with its output in a pipe, which it returns; -1 when that cannot be.
static int start(char* const* arguments, pid_t* pid) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  int error = posix_spawnp(pid, arguments[0], &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error == 0) return ends[0];
  close(ends[0]);
  return -1;
}

// "?" for a file, or a file without a line: of a stripped module that is a guess, and names one that the linker
// brought.
static bool is_place_known(const char* place) {
  const char* line = strrchr(place, ':');
  return place[0] != '?' && (line == NULL || line[1] != '?');
}

static void add_frame(symbol_t* symbol, const char* function, const char* place) {
  frame_t** last = &symbol->frames;
  while (*last != NULL) last = &(*last)->next;
  *last = gcap_sim_calloc(1, sizeof(**last));
  (*last)->function = copy_of(function);
  // Where a build runs in a sandbox, the compiler saw the sources below this.
  static const char sandbox[] = "/proc/self/cwd/";
  if (strncmp(place, sandbox, sizeof(sandbox) - 1) == 0) place += sizeof(sandbox) - 1;
  if (is_place_known(place)) (*last)->place = copy_of(place);
}

static bool read_line(FILE* in, char* line, size_t bytes) {
  if (fgets(line, (int)bytes, in) == NULL) return false;
  char* end = strpbrk(line, "\n");
  if (end != NULL) *end = '\0';
  char* note = strstr(line, " (discriminator");
  if (note != NULL) *note = '\0';
  return true;
}

// For each address its own line, then two lines a function. The addresses come back in the order of the question.
static void read_answer(FILE* in, symbol_t** asked, size_t count) {
  char line[2048];
  char place[2048];
  size_t next = 0;
  symbol_t* symbol = NULL;
  while (read_line(in, line, sizeof(line))) {
    if (strncmp(line, "0x", 2) == 0) {
      symbol = next < count ? asked[next++] : NULL;
      continue;
    }
    if (!read_line(in, place, sizeof(place))) return;
    if (symbol != NULL && line[0] != '?') add_frame(symbol, line, place);
  }
}

static bool same_module(const symbol_t* a, const symbol_t* b) {
  return a->module != NULL && b->module != NULL ? strcmp(a->module, b->module) == 0 : a->module == b->module;
}

static void ask(symbol_t** asked, size_t count) {
  char* arguments[GCAP_SIM_MAX_FRAMES + 5];
  char offsets[GCAP_SIM_MAX_FRAMES][24];
  size_t n = 0;
  arguments[n++] = (char*)symbolizer();
  if (arguments[0] == NULL || asked[0]->module == NULL) return;
  arguments[n++] = "-afiC";
  arguments[n++] = "-e";
  arguments[n++] = asked[0]->module;
  for (size_t i = 0; i < count; ++i) {
    snprintf(offsets[i], sizeof(offsets[i]), "0x%llx", (unsigned long long)asked[i]->offset);
    arguments[n++] = offsets[i];
  }
  arguments[n] = NULL;
  pid_t pid;
  int fd = start(arguments, &pid);
  FILE* in = fd >= 0 ? fdopen(fd, "r") : NULL;
  if (in != NULL) {
    read_answer(in, asked, count);
    fclose(in);
  }
  if (fd < 0) return;
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
}

static void resolve(const gcap_sim_stack_t* stack) {
  symbol_t* fresh[GCAP_SIM_MAX_FRAMES];
  size_t count = 0;
  for (size_t i = 0; i < stack->count; ++i) {
    bool is_new;
    symbol_t* symbol = symbol_of(stack->frames[i], &is_new);
    if (is_new) fresh[count++] = symbol;
  }
  while (count > 0) {
    symbol_t* asked[GCAP_SIM_MAX_FRAMES];
    size_t num_asked = 0;
    size_t left = 0;
    const symbol_t* first = fresh[0];
    for (size_t i = 0; i < count; ++i) {
      if (same_module(fresh[i], first)) {
        asked[num_asked++] = fresh[i];
      } else {
        fresh[left++] = fresh[i];
      }
    }
    ask(asked, num_asked);
    count = left;
  }
}

// --- Questions ------------------------------------------------------------------------------------------------------

static const symbol_t* known_symbol(void* address) { return *place_of(address); }

// A function is meant also without what its name has at the end: a C++ function's parameters, and cuBLAS's _v2, which a
// header adds.
static bool has_function(const symbol_t* symbol, const char* name) {
  size_t length = strlen(name);
  for (const frame_t* frame = symbol->frames; frame != NULL; frame = frame->next) {
    if (strncmp(frame->function, name, length) != 0) continue;
    const char* rest = frame->function + length;
    if (rest[0] == '\0' || rest[0] == '(' || strcmp(rest, "_v2") == 0) return true;
  }
  return false;
}

// A library enters the simulator from below the function that was called: what is above that is its own affair.
static size_t first_of_caller(const gcap_sim_origin_t* origin) {
  for (size_t i = 0; origin->call[0] && i < origin->stack->count; ++i) {
    if (has_function(known_symbol(origin->stack->frames[i]), origin->call)) return i + 1;
  }
  return 0;
}

static bool begins_with(const char* text, const char* prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

// What hides who called whom: the machinery of std::function and its like, and what nvcc puts between a launch and the
// runtime.
static bool is_machinery(const frame_t* frame) {
  const char* name = frame->function;
  if (begins_with(name, "void ")) name += 5;
  return (frame->place != NULL && begins_with(frame->place, "/usr/include/c++/")) ||
         begins_with(name, "__cudaLaunchKernel_helper") || begins_with(name, "__device_stub__") ||
         begins_with(name, "__wrapper__device_stub_");
}

static void print_symbol(FILE* out, const char* indent, const symbol_t* symbol) {
  if (symbol->frames == NULL) {
    const char* module = symbol->module != NULL ? symbol->module : "unknown code";
    fprintf(out, "%sat %s+0x%llx\n", indent, module, (unsigned long long)symbol->offset);
  }
  for (const frame_t* frame = symbol->frames; frame != NULL; frame = frame->next) {
    if (is_machinery(frame)) continue;
    fprintf(out, "%sat %s", indent, frame->function);
    if (frame->place != NULL) fprintf(out, " (%s)", frame->place);
    fputc('\n', out);
  }
}

// What starts every program, and every test of GoogleTest, tells nothing.
static bool is_test_runner(const symbol_t* symbol) {
  if (symbol->frames == NULL) return false;
  const char* name = symbol->frames->function;
  if (begins_with(name, "void ")) name += 5;
  return begins_with(name, "testing::internal::") || strcmp(name, "testing::Test::Run()") == 0;
}

void gcap_sim_symbol_print(FILE* out, const char* indent, const gcap_sim_origin_t* origin) {
  const gcap_sim_stack_t* stack = origin->stack;
  if (stack == NULL) return;
  resolve(stack);
  for (size_t i = first_of_caller(origin); i < stack->count; ++i) {
    const symbol_t* symbol = known_symbol(stack->frames[i]);
    if (is_test_runner(symbol)) return;
    print_symbol(out, indent, symbol);
    if (has_function(symbol, "main")) return;
  }
}

bool gcap_sim_symbol_has(const gcap_sim_stack_t* stack, const char* name) {
  if (stack == NULL) return false;
  resolve(stack);
  for (size_t i = 0; i < stack->count; ++i) {
    if (has_function(known_symbol(stack->frames[i]), name)) return true;
  }
  return false;
}
