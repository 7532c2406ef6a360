// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Actions of the checks, and suppressions.
//
// The idea: both come from the environment first, read at the first question, and calls change them. A suppression is
// the name of a function, kernel or annotation with the reason why a report that holds it says nothing; what was
// dropped is told at exit, so that none outlives its reason unseen. Locking: the global mutex.
#include "sim/check/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gcap_sim.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/check/shadow.h"
#include "sim/check/suspect.h"

typedef struct suppression {
  gcap_sim_check_kind_t kind;
  char* name;
  char* reason;
  size_t dropped;
} suppression_t;

static const char* const check_names[GCAP_SIM_CHECK_COUNT] = {
    "race",    "use_after_free", "baked_pointer", "host_memory", "uninitialized", "out_of_bounds",
    "overlap", "stale_update",   "leak",          "capture",     "escaped_work",  "refused_call"};
static const char* const action_names[] = {"abort", "record", "error", "off", "warn", "default"};
#define ACTION_LIST "abort, record, error, off, warn, default"

#define CHECK_LIST                                                                                                \
  "race, use_after_free, baked_pointer, host_memory, uninitialized, out_of_bounds, overlap, stale_update, leak, " \
  "capture, escaped_work, refused_call"

static struct {
  bool ready;
  bool recording;
  gcap_sim_action_t actions[GCAP_SIM_CHECK_COUNT];
  suppression_t* suppressions;
  size_t num_suppressions;
  size_t capacity;
} policy;

// --- Names ----------------------------------------------------------------------------------------------------------

static bool is(const char* text, size_t length, const char* name) {
  return strlen(name) == length && strncmp(text, name, length) == 0;
}

// The check of that name, GCAP_SIM_CHECK_COUNT for `all`, or -1.
static int find_check(const char* text, size_t length) {
  for (int i = 0; i < GCAP_SIM_CHECK_COUNT; ++i) {
    if (is(text, length, check_names[i])) return i;
  }
  return is(text, length, "all") ? GCAP_SIM_CHECK_COUNT : -1;
}

static int find_action(const char* text, size_t length) {
  for (int i = 0; i <= GCAP_SIM_ACTION_DEFAULT; ++i) {
    if (is(text, length, action_names[i])) return i;
  }
  return -1;
}

// --- The environment ------------------------------------------------------------------------------------------------

// A mistake aborts. What a right program may do on purpose does not: leave handles to the end, or try a capture.
static gcap_sim_action_t default_of(int kind) {
  if (kind < GCAP_SIM_CHECK_LEAK) return GCAP_SIM_ACTION_ABORT;
  return kind == GCAP_SIM_CHECK_LEAK ? GCAP_SIM_ACTION_RECORD : GCAP_SIM_ACTION_WARN;
}

static void set_action(gcap_sim_check_kind_t kind, gcap_sim_action_t action) {
  for (int i = 0; i < GCAP_SIM_CHECK_COUNT; ++i) {
    if (kind != GCAP_SIM_CHECK_COUNT && (int)kind != i) continue;
    policy.actions[i] = action == GCAP_SIM_ACTION_DEFAULT ? default_of(i) : action;
  }
}

static void read_actions(const char* text) {
  while (*text) {
    size_t length = strcspn(text, ",");
    size_t name = strcspn(text, "=,");
    int kind = find_check(text, name);
    int action = name < length ? find_action(text + name + 1, length - name - 1) : -1;
    if (kind < 0 || action < 0) {
      gcap_sim_die_of_setting(
          "GCAP_SIM_CHECKS has '%.*s', expected check=action with a check of %s or all and an action of %s",
          (int)length, text, CHECK_LIST, ACTION_LIST);
    }
    set_action((gcap_sim_check_kind_t)kind, (gcap_sim_action_t)action);
    text += length;
    if (*text == ',') ++text;
  }
}

static char* copy_of(const char* text, size_t length) {
  char* copy = gcap_sim_calloc(length + 1, 1);
  memcpy(copy, text, length);
  return copy;
}

static size_t trimmed(const char* text, size_t length) {
  while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL) --length;
  return length;
}

static void suppress(int kind, const char* name, size_t name_length, const char* reason, size_t reason_length) {
  gcap_sim_reserve(&policy.suppressions, &policy.capacity, policy.num_suppressions + 1, sizeof(suppression_t));
  policy.suppressions[policy.num_suppressions++] = (suppression_t){.kind = (gcap_sim_check_kind_t)kind,
                                                                   .name = copy_of(name, name_length),
                                                                   .reason = copy_of(reason, reason_length)};
}

// `check:name # reason`. A name may hold colons and spaces, as those of C++ functions do.
static void read_suppression(const char* path, size_t number, const char* line) {
  line += strspn(line, " \t\r\n");
  if (*line == '\0' || *line == '#') return;
  size_t check = strcspn(line, ":");
  const char* mark = strstr(line, " #");
  int kind = find_check(line, check);
  size_t end = mark != NULL ? (size_t)(mark - line) : 0;
  size_t name_length = end > check ? trimmed(line + check + 1, end - check - 1) : 0;
  const char* reason = mark != NULL ? mark + 2 + strspn(mark + 2, " \t") : "";
  size_t reason_length = trimmed(reason, strlen(reason));
  if (kind < 0 || name_length == 0 || reason_length == 0) {
    gcap_sim_die_of_setting("%s:%zu is '%.*s', expected check:name # reason with a check of %s or all", path, number,
                            (int)trimmed(line, strlen(line)), line, CHECK_LIST);
  }
  suppress(kind, line + check + 1, name_length, reason, reason_length);
}

static void read_suppressions(const char* path) {
  FILE* file = fopen(path, "re");
  if (file == NULL)
    gcap_sim_die_of_setting("GCAP_SIM_SUPPRESSIONS is '%s', which cannot be read: %s", path, strerror(errno));
  char line[2048];
  for (size_t number = 1; fgets(line, sizeof(line), file) != NULL; ++number) read_suppression(path, number, line);
  fclose(file);
}

static void prepare(void) {
  if (policy.ready) return;
  policy.ready = true;
  set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_DEFAULT);
  const char* actions = getenv("GCAP_SIM_CHECKS");
  if (actions != NULL) read_actions(actions);
  const char* suppressions = getenv("GCAP_SIM_SUPPRESSIONS");
  if (suppressions != NULL && *suppressions) read_suppressions(suppressions);
}

// --- Questions ------------------------------------------------------------------------------------------------------

gcap_sim_action_t gcap_sim_check_action(gcap_sim_check_kind_t kind) {
  prepare();
  gcap_sim_action_t action = policy.actions[kind];
  bool goes_on = action == GCAP_SIM_ACTION_OFF || action == GCAP_SIM_ACTION_WARN;
  return policy.recording && !goes_on ? GCAP_SIM_ACTION_RECORD : action;
}

bool gcap_sim_check_looks(void) {
  prepare();
  for (int i = 0; i <= GCAP_SIM_CHECK_OVERLAP; ++i) {
    if (policy.actions[i] != GCAP_SIM_ACTION_OFF) return true;
  }
  return false;
}

void gcap_sim_check_record_all(bool on) { policy.recording = on; }

bool gcap_sim_check_suppressed(gcap_sim_check_kind_t kind, bool (*matches)(const char* name)) {
  for (size_t i = 0; i < policy.num_suppressions; ++i) {
    suppression_t* suppression = &policy.suppressions[i];
    if (suppression->kind != kind && suppression->kind != GCAP_SIM_CHECK_COUNT) continue;
    if (!matches(suppression->name)) continue;
    ++suppression->dropped;
    return true;
  }
  return false;
}

// --- Calls ----------------------------------------------------------------------------------------------------------

void gcap_sim_set_action(gcap_sim_check_kind_t kind, gcap_sim_action_t action) {
  gcap_sim_lock();
  prepare();
  if ((unsigned int)kind > GCAP_SIM_CHECK_COUNT || (unsigned int)action > GCAP_SIM_ACTION_DEFAULT) {
    gcap_sim_die("gcap_sim_set_action: check %d and action %d, expected 0..%d and 0..%d", (int)kind, (int)action,
                 GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_DEFAULT);
  }
  gcap_sim_suspect_tell(NULL);  // as the action was when they were found
  bool looked = gcap_sim_check_looks();
  set_action(kind, action);
  // What went on meanwhile is not known: nothing of before may be held against what comes.
  if (!looked && gcap_sim_check_looks()) gcap_sim_shadow_forget_accesses();
  gcap_sim_unlock();
}

void gcap_sim_suppress(gcap_sim_check_kind_t kind, const char* name, const char* reason) {
  gcap_sim_lock();
  prepare();
  if ((unsigned int)kind > GCAP_SIM_CHECK_COUNT || name == NULL || !*name || reason == NULL || !*reason) {
    gcap_sim_die("gcap_sim_suppress: check %d, name '%s' and reason '%s', expected a check, a name and a reason",
                 (int)kind, name != NULL ? name : "NULL", reason != NULL ? reason : "NULL");
  }
  suppress((int)kind, name, strlen(name), reason, strlen(reason));
  gcap_sim_unlock();
}

__attribute__((destructor)) static void tell_what_was_dropped(void) {
  for (size_t i = 0; i < policy.num_suppressions; ++i) {
    const suppression_t* suppression = &policy.suppressions[i];
    if (!suppression->dropped) continue;
    fprintf(stderr, "gcap sim: %zu reports dropped for %s:%s # %s\n", suppression->dropped,
            suppression->kind == GCAP_SIM_CHECK_COUNT ? "all" : check_names[suppression->kind], suppression->name,
            suppression->reason);
  }
}
