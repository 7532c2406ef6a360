// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reports.
//
// The idea: a report is one text in a fixed shape: what and where, the calls on each side with their stacks, what is
// missing, how to run it again. It is told once for each pair of stacks, as a loop would repeat it, until the next
// gcap_sim_check. Invariant: what lies in the previous list was counted by the last gcap_sim_check. Locking: the global
// mutex.
#include "sim/check/report.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gcap_sim.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/base/random.h"
#include "sim/check/origin.h"
#include "sim/check/policy.h"
#include "sim/check/shadow.h"
#include "sim/check/symbol.h"

enum { kMaxNames = 16, kMaxStacks = 8 };

typedef struct texts {
  char** items;
  size_t count;
  size_t capacity;
} texts_t;

static texts_t current;
static texts_t previous;
static texts_t older;  // whose texts a caller may still hold

typedef struct keys {
  uint64_t* items;
  size_t count;
  size_t capacity;
} keys_t;

static keys_t told;    // since the last gcap_sim_check
static keys_t warned;  // of all the process

static void (*at_error)(void);

// The report under way.
static struct {
  gcap_sim_check_kind_t kind;  // GCAP_SIM_CHECK_COUNT: of no check
  FILE* out;
  char* text;
  size_t bytes;
  const char* names[kMaxNames];
  size_t num_names;
  const gcap_sim_stack_t* stacks[kMaxStacks];
  size_t num_stacks;
} report;

// --- Once for each pair ---------------------------------------------------------------------------------------------

static uint64_t key_of(const gcap_sim_origin_t* origin) {
  if (origin == NULL) return 0;
  // Without stacks the names of the calls must do.
  return origin->stack != NULL ? origin->stack->hash : (uint64_t)(uintptr_t)origin->call;
}

static bool is_new(keys_t* keys, uint64_t key) {
  for (size_t i = 0; i < keys->count; ++i) {
    if (keys->items[i] == key) return false;
  }
  gcap_sim_reserve(&keys->items, &keys->capacity, keys->count + 1, sizeof(uint64_t));
  keys->items[keys->count++] = key;
  return true;
}

static void open_report(gcap_sim_check_kind_t kind) {
  memset(&report, 0, sizeof(report));
  report.kind = kind;
  report.out = open_memstream(&report.text, &report.bytes);
  if (report.out == NULL) gcap_sim_die("the machine has no memory left for a report");
}

bool gcap_sim_report_begin(gcap_sim_check_kind_t kind, const gcap_sim_origin_t* first,
                           const gcap_sim_origin_t* second) {
  gcap_sim_action_t action = gcap_sim_check_action(kind);
  if (action == GCAP_SIM_ACTION_OFF) return false;
  // Which of the two came first is up to the schedule.
  uint64_t key = (key_of(first) + key_of(second)) * GCAP_SIM_CHECK_COUNT + (uint64_t)kind;
  if (kind != GCAP_SIM_CHECK_LEAK && !is_new(action == GCAP_SIM_ACTION_WARN ? &warned : &told, key)) return false;
  open_report(kind);
  return true;
}

void gcap_sim_report_begin_stop(void) { open_report(GCAP_SIM_CHECK_COUNT); }

// --- Parts ----------------------------------------------------------------------------------------------------------

static void note_name(const char* name) {
  if (name != NULL && report.num_names < kMaxNames) report.names[report.num_names++] = name;
}

static void note_origin(const gcap_sim_origin_t* origin) {
  note_name(origin->call);
  if (report.num_stacks < kMaxStacks) report.stacks[report.num_stacks++] = origin->stack;
}

void gcap_sim_report_print(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(report.out, format, arguments);
  va_end(arguments);
}

void gcap_sim_report_origin(const char* role, const gcap_sim_origin_t* origin) {
  if (origin == NULL) return;
  note_origin(origin);
  gcap_sim_report_print("  %s%s, call #%llu, thread %llu\n", role, origin->call, (unsigned long long)origin->number,
                        (unsigned long long)origin->thread);
  gcap_sim_symbol_print(report.out, "      ", origin);
}

void gcap_sim_report_stack(const char* what, const gcap_sim_stack_t* stack) {
  if (report.num_stacks < kMaxStacks) report.stacks[report.num_stacks++] = stack;
  gcap_sim_report_print("  %s\n", what);
  const gcap_sim_origin_t place = {.call = "", .stack = stack};
  gcap_sim_symbol_print(report.out, "      ", &place);
}

void gcap_sim_report_site(const char* verb, const gcap_sim_site_t* site) {
  char role[256];
  note_name(site->name);
  int length = snprintf(role, sizeof(role), "%s by %s", verb, site->what);
  if (site->name != NULL) length += snprintf(role + length, sizeof(role) - (size_t)length, " `%.128s`", site->name);
  if (site->stream.is_stream) {
    char stream[GCAP_SIM_STREAM_NAME_BYTES];
    length += snprintf(role + length, sizeof(role) - (size_t)length, " on %s",
                       gcap_sim_stream_name_text(stream, &site->stream));
  }
  snprintf(role + length, sizeof(role) - (size_t)length, ": ");
  gcap_sim_report_origin(role, site->origin);
  gcap_sim_report_origin("    in the graph launched by ", site->launch);
}

void gcap_sim_report_memory(const gcap_sim_memory_t* memory, const void* address) {
  if (memory == NULL) {
    gcap_sim_report_print("pageable memory %p\n", address);
    return;
  }
  note_name(memory->name);
  gcap_sim_report_print("%s", memory->kind);
  if (memory->name != NULL) gcap_sim_report_print(" `%s`", memory->name);
  gcap_sim_report_print(" %p + %zu of %zu bytes\n", (void*)memory->begin, (size_t)((uintptr_t)address - memory->begin),
                        memory->bytes);
  gcap_sim_report_origin("allocated by ", memory->allocated);
}

// --- The end --------------------------------------------------------------------------------------------------------

static bool holds(const char* name) {
  for (size_t i = 0; i < report.num_names; ++i) {
    if (strcmp(report.names[i], name) == 0) return true;
  }
  for (size_t i = 0; i < report.num_stacks; ++i) {
    if (gcap_sim_symbol_has(report.stacks[i], name)) return true;
  }
  return false;
}

static void keep(char* text) {
  gcap_sim_reserve(&current.items, &current.capacity, current.count + 1, sizeof(char*));
  current.items[current.count++] = text;
}

void gcap_sim_report_at_error(void (*function)(void)) { at_error = function; }

static void finish(const char* remedy) {
  gcap_sim_report_print("  %s\n", remedy);
  if (report.kind != GCAP_SIM_CHECK_LEAK) {
    gcap_sim_report_print("  Seed %llu: run with GCAP_SIM_SEED=%llu.\n", (unsigned long long)gcap_sim_seed(),
                          (unsigned long long)gcap_sim_seed());
  }
  if (fclose(report.out) != 0) gcap_sim_die("the machine has no memory left for a report");
}

void gcap_sim_report_stop(const char* remedy) {
  finish(remedy);
  fputs(report.text, stderr);
  abort();
}

void gcap_sim_report_end(const char* remedy) {
  finish(remedy);
  if (gcap_sim_check_suppressed(report.kind, holds)) {
    free(report.text);
    return;
  }
  fputs(report.text, stderr);
  fflush(stderr);
  gcap_sim_action_t action = gcap_sim_check_action(report.kind);
  if (action == GCAP_SIM_ACTION_WARN) {
    free(report.text);
    return;
  }
  keep(report.text);
  if (action == GCAP_SIM_ACTION_ABORT) abort();
  if (action == GCAP_SIM_ACTION_ERROR && at_error != NULL) at_error();
}

size_t gcap_sim_report_take(void) {
  for (size_t i = 0; i < older.count; ++i) free(older.items[i]);
  texts_t spent = older;
  older = previous;
  previous = current;
  current = spent;
  current.count = 0;
  gcap_sim_report_tell_again();
  return previous.count;
}

size_t gcap_sim_report_count(void) { return current.count; }

void gcap_sim_report_tell_again(void) { told.count = 0; }

const char* gcap_sim_report(size_t index) {
  gcap_sim_lock();
  const texts_t* texts = current.count ? &current : &previous;
  const char* text = index < texts->count ? texts->items[index] : NULL;
  gcap_sim_unlock();
  return text;
}
