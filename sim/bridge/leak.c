// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Leaks: handles and allocations that are left, by the place where they were made.
//
// The idea: whatever lives keeps its origin, so a leak is found by looking at what there is, and told once for all that
// one place of the program has made. Locking: the global mutex.
#include "sim/bridge/leak.h"

#include <stdlib.h>
#include <string.h>

#include "gcap_sim.h"
#include "sim/api/handle.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/base/span.h"
#include "sim/check/origin.h"
#include "sim/check/policy.h"
#include "sim/check/report.h"
#include "sim/check/shadow.h"
#include "sim/check/suspect.h"
#include "sim/memory/allocation.h"

// The last call whose leak was told. What is told once is not told again, or one leak would fail every test after the
// one that made it.
static uint64_t told_until;

typedef struct object {
  gcap_sim_span_t span;
  const char* kind;
  gcap_sim_origin_t* origin;
} object_t;

static gcap_sim_span_t* objects;

typedef struct left {
  const char* kind;
  size_t bytes;  // of an allocation
  const gcap_sim_origin_t* origin;
} left_t;

typedef struct list {
  left_t* items;
  size_t count;
  size_t capacity;
} list_t;

void gcap_sim_leak_object_made(const char* kind, const void* address) {
  object_t* object = gcap_sim_calloc(1, sizeof(*object));
  object->span = (gcap_sim_span_t){.begin = (uintptr_t)address, .bytes = 1, .owner = object};
  object->kind = kind;
  object->origin = gcap_sim_origin_retain(gcap_sim_origin_current());
  gcap_sim_span_insert(&objects, &object->span);
}

void gcap_sim_leak_object_gone(const void* address) {
  object_t* object = gcap_sim_span_find(objects, address);
  gcap_sim_span_remove(&objects, &object->span);
  gcap_sim_origin_release(object->origin);
  free(object);
}

// --- What is left ---------------------------------------------------------------------------------------------------

static void add(list_t* list, left_t left) {
  if (left.origin->number <= told_until) return;
  gcap_sim_reserve(&list->items, &list->capacity, list->count + 1, sizeof(left_t));
  list->items[list->count++] = left;
}

static void add_handle(const char* kind, const gcap_sim_origin_t* origin, void* user) {
  add(user, (left_t){.kind = kind, .origin = origin});
}

static void add_allocation(void* owner, void* user) {
  const gcap_sim_allocation_t* allocation = owner;
  if (!allocation->claimed) return;
  const gcap_sim_memory_t* memory = allocation->memory;
  add(user, (left_t){.kind = memory->kind, .bytes = memory->bytes, .origin = memory->allocated});
}

static void add_object(void* owner, void* user) {
  const object_t* object = owner;
  add(user, (left_t){.kind = object->kind, .origin = object->origin});
}

static int compare(const void* a, const void* b) {
  const left_t* left = a;
  const left_t* right = b;
  int kinds = strcmp(left->kind, right->kind);
  if (kinds) return kinds;
  const gcap_sim_stack_t* stacks[] = {left->origin->stack, right->origin->stack};
  if (stacks[0] != stacks[1]) return (uintptr_t)stacks[0] < (uintptr_t)stacks[1] ? -1 : 1;
  return left->origin->number < right->origin->number ? -1 : left->origin->number > right->origin->number;
}

static bool same_place(const left_t* a, const left_t* b) {
  return strcmp(a->kind, b->kind) == 0 && a->origin->stack == b->origin->stack &&
         strcmp(a->origin->call, b->origin->call) == 0;
}

static void tell(const left_t* items, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) bytes += items[i].bytes;
  if (!gcap_sim_report_begin(GCAP_SIM_CHECK_LEAK, items[0].origin, NULL)) return;
  gcap_sim_report_print("gcap sim: leak of %zu of the kind \"%s\"", count, items[0].kind);
  if (bytes) gcap_sim_report_print(", %zu bytes", bytes);
  gcap_sim_report_print("\n");
  gcap_sim_report_origin(count == 1 ? "made by " : "the first made by ", items[0].origin);
  gcap_sim_report_end("Remedy: destroy or free what was made.");
}

static void tell_all(void) {
  list_t list = {0};
  gcap_sim_handle_origins(add_handle, &list);
  gcap_sim_allocation_each(add_allocation, &list);
  gcap_sim_span_each(objects, add_object, &list);
  if (list.count) qsort(list.items, list.count, sizeof(left_t), compare);
  for (size_t first = 0, next; first < list.count; first = next) {
    for (next = first + 1; next < list.count && same_place(&list.items[first], &list.items[next]);) ++next;
    tell(&list.items[first], next - first);
  }
  for (size_t i = 0; i < list.count; ++i) {
    if (list.items[i].origin->number > told_until) told_until = list.items[i].origin->number;
  }
  free(list.items);
}

size_t gcap_sim_check(void) {
  gcap_sim_lock();
  gcap_sim_suspect_tell(NULL);
  if (gcap_sim_check_action(GCAP_SIM_CHECK_LEAK) != GCAP_SIM_ACTION_OFF) tell_all();
  size_t reports = gcap_sim_report_take();
  gcap_sim_unlock();
  return reports;
}

void gcap_sim_leak_forked(uint64_t num_calls) {
  told_until = num_calls;
  gcap_sim_suspect_forget();
}

// After the program's own destructors.
__attribute__((destructor)) static void tell_at_exit(void) {
  gcap_sim_lock();
  gcap_sim_suspect_tell(NULL);
  if (gcap_sim_check_action(GCAP_SIM_CHECK_LEAK) != GCAP_SIM_ACTION_OFF) tell_all();
  gcap_sim_unlock();
}
