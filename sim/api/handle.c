// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Handles.
//
// The idea: what callers hold is never an address. A handle packs a tag, the kind, a generation and an index into one
// table, so that a look-up tells a live handle from one of another kind, a destroyed one, or a stray pointer, and never
// touches memory that is gone. The tag makes the value no valid address: code that follows it faults at once.
// Invariant: an entry's generation grows each time its slot is freed. Locking: the global mutex.
#include "sim/api/handle.h"

#include <stdio.h>

#include "cuda_runtime_api.h"
#include "sim/api/log.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/check/origin.h"
#include "sim/check/report.h"

#define HANDLE_TAG UINT64_C(0x5A)
// 24 bits of index hold 16 million live handles; 24 bits of generation catch a stale one until its slot was reused as
// often. The low 4 bits stay zero, so no handle equals cudaStreamLegacy or cudaStreamPerThread.
enum { kHandleBits = 24 };
#define HANDLE_MASK ((UINT64_C(1) << kHandleBits) - 1)

typedef struct entry {
  void* object;  // NULL in a free slot
  uint32_t generation;
  gcap_sim_kind_t kind;
  size_t next_free;
  gcap_sim_origin_t* origin;  // NULL for what the program need not destroy
  // Of the handle that the slot had before: the calls that made and destroyed it.
  gcap_sim_origin_t* last_made;
  gcap_sim_origin_t* last_destroyed;
} entry_t;

static struct {
  entry_t* entries;
  size_t count;
  size_t capacity;
  size_t first_free;  // index + 1; 0 when there is none
  size_t live[GCAP_SIM_KIND_COUNT];
} registry;

static const char* const kind_names[GCAP_SIM_KIND_COUNT] = {"stream", "event",       "graph",      "graph node",
                                                            "exec",   "user object", "memory pool"};

static void* handle_pack(gcap_sim_kind_t kind, uint32_t generation, size_t index) {
  uint64_t bits = HANDLE_TAG << 56 | (uint64_t)kind << 52 | (generation & HANDLE_MASK) << 28 | (uint64_t)index << 4;
  return (void*)(uintptr_t)bits;
}

void* gcap_sim_handle_create(gcap_sim_kind_t kind, void* object) {
  size_t index = registry.first_free;
  if (index) {
    --index;
    registry.first_free = registry.entries[index].next_free;
  } else {
    index = registry.count++;
    if (index > HANDLE_MASK) gcap_sim_die("more than %llu live handles", (unsigned long long)HANDLE_MASK);
    gcap_sim_reserve(&registry.entries, &registry.capacity, registry.count, sizeof(entry_t));
    registry.entries[index] = (entry_t){.generation = 1};
  }
  entry_t* entry = &registry.entries[index];
  entry->object = object;
  entry->kind = kind;
  entry->origin = kind == GCAP_SIM_NODE ? NULL : gcap_sim_origin_retain(gcap_sim_origin_current());
  ++registry.live[kind];
  void* handle = handle_pack(kind, entry->generation, index);
  if (gcap_sim_log_on) gcap_sim_log_made(kind, handle);
  return handle;
}

static size_t handle_index(const void* handle) { return ((uintptr_t)handle >> 4) & HANDLE_MASK; }

// The live entry behind a handle; NULL, and why, when there is none.
static entry_t* find(gcap_sim_kind_t kind, const void* handle, const char** why) {
  uint64_t bits = (uintptr_t)handle;
  size_t index = handle_index(handle);
  *why = "is no handle that the simulator gave out";
  if (bits >> 56 != HANDLE_TAG || index >= registry.count || (bits & 15) != 0) return NULL;
  *why = "is the handle of another kind of object";
  if ((bits >> 52 & 15) != kind) return NULL;
  entry_t* entry = &registry.entries[index];
  *why = "was destroyed";
  if (entry->object == NULL || entry->kind != kind || (bits >> 28 & HANDLE_MASK) != (entry->generation & HANDLE_MASK)) {
    return NULL;
  }
  return entry;
}

// The slot that the handle had last, if nothing has lived and died there since; else NULL.
static const entry_t* grave_of(const void* handle) {
  size_t index = handle_index(handle);
  if ((uintptr_t)handle >> 56 != HANDLE_TAG || index >= registry.count) return NULL;
  const entry_t* entry = &registry.entries[index];
  return ((uintptr_t)handle >> 28 & HANDLE_MASK) == ((entry->generation - 1) & HANDLE_MASK) ? entry : NULL;
}

static _Noreturn void refuse(gcap_sim_kind_t kind, const void* handle, const char* why) {
  gcap_sim_report_begin_stop();
  gcap_sim_report_print("gcap sim: %s: %s %p %s\n", gcap_sim_thread()->call, kind_names[kind], handle, why);
  gcap_sim_report_origin("used by ", gcap_sim_origin_current());
  const entry_t* grave = grave_of(handle);
  if (grave != NULL) {
    gcap_sim_report_origin("made by ", grave->last_made);
    gcap_sim_report_origin("destroyed by ", grave->last_destroyed);
  }
  gcap_sim_report_stop(
      "A GPU's answer is undefined. Remedy: use a handle from the call that makes it to the call that destroys it.");
}

void* gcap_sim_handle_get(gcap_sim_kind_t kind, const void* handle) {
  if (gcap_sim_log_on) gcap_sim_log_handle(kind, handle);
  if (handle == NULL) return NULL;
  const char* why;
  const entry_t* entry = find(kind, handle, &why);
  if (entry == NULL) refuse(kind, handle, why);
  return entry->object;
}

void* gcap_sim_handle_peek(gcap_sim_kind_t kind, const void* handle) {
  const char* why;
  const entry_t* entry = find(kind, handle, &why);
  return entry != NULL ? entry->object : NULL;
}

const char* gcap_sim_handle_label(char label[GCAP_SIM_LABEL_BYTES], gcap_sim_kind_t kind, const void* handle) {
  unsigned long long number = handle_index(handle) + 1;
  unsigned long long generation = (uintptr_t)handle >> 28 & HANDLE_MASK;
  if (kind == GCAP_SIM_STREAM && (handle == NULL || handle == cudaStreamLegacy)) {
    snprintf(label, GCAP_SIM_LABEL_BYTES, "legacy stream");
  } else if (kind == GCAP_SIM_STREAM && handle == cudaStreamPerThread) {
    snprintf(label, GCAP_SIM_LABEL_BYTES, "per-thread stream");
  } else if (handle == NULL) {
    snprintf(label, GCAP_SIM_LABEL_BYTES, "no %s", kind_names[kind]);
  } else if ((uintptr_t)handle >> 56 != HANDLE_TAG) {
    snprintf(label, GCAP_SIM_LABEL_BYTES, "a foreign %s", kind_names[kind]);
  } else if (generation == 1) {
    snprintf(label, GCAP_SIM_LABEL_BYTES, "%s %llu", kind_names[kind], number);
  } else {
    snprintf(label, GCAP_SIM_LABEL_BYTES, "%s %llu.%llu", kind_names[kind], number, generation);
  }
  return label;
}

void gcap_sim_handle_destroy(void* handle) {
  size_t index = handle_index(handle);
  entry_t* entry = &registry.entries[index];
  --registry.live[entry->kind];
  entry->object = NULL;
  gcap_sim_origin_release(entry->last_made);
  gcap_sim_origin_release(entry->last_destroyed);
  entry->last_made = entry->origin;
  entry->last_destroyed = gcap_sim_origin_retain(gcap_sim_origin_current());
  entry->origin = NULL;
  ++entry->generation;
  entry->next_free = registry.first_free;
  registry.first_free = index + 1;
}

void gcap_sim_handle_keep(void* handle) {
  entry_t* entry = &registry.entries[handle_index(handle)];
  --registry.live[entry->kind];
  gcap_sim_origin_release(entry->origin);
  entry->origin = NULL;
}

void gcap_sim_handle_origins(void (*visit)(const char* kind, const gcap_sim_origin_t* origin, void* user), void* user) {
  for (size_t i = 0; i < registry.count; ++i) {
    const entry_t* entry = &registry.entries[i];
    if (entry->object != NULL && entry->origin != NULL) visit(kind_names[entry->kind], entry->origin, user);
  }
}

void gcap_sim_handle_each(gcap_sim_kind_t kind, void (*visit)(void* object, void* user), void* user) {
  for (size_t i = 0; i < registry.count; ++i) {
    if (registry.entries[i].object != NULL && registry.entries[i].kind == kind) visit(registry.entries[i].object, user);
  }
}

size_t gcap_sim_handle_count(gcap_sim_kind_t kind) { return registry.live[kind]; }

const char* gcap_sim_kind_name(gcap_sim_kind_t kind) { return kind_names[kind]; }
