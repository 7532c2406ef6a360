// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What each kind of task touches.
//
// The idea: just before a task runs, its clock is complete and its ranges are known: twins and libraries declare
// theirs, copies and fills have rows. All reads come before all writes, since a task may read what it overwrites.
// A task of a graph keeps, for each address that it names, to what memory it belonged when the node was made. A kernel
// with a twin names what its arguments point into: what the kernel touches may depend on memory that has its contents
// only when the kernel runs, so the twin is asked then alone.
// Invariant: at most one task acts at a time, but for host functions, each on its own thread. Locking: the global
// mutex.
#include "sim/bridge/task_access.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "gcap_sim.h"
#include "sim/api/api.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/base/thread.h"
#include "sim/bridge/access.h"
#include "sim/bridge/chains.h"
#include "sim/bridge/lifetime.h"
#include "sim/bridge/order.h"
#include "sim/check/clock.h"
#include "sim/check/findings.h"
#include "sim/check/origin.h"
#include "sim/check/policy.h"
#include "sim/check/shadow.h"
#include "sim/check/watch.h"
#include "sim/device/twin.h"
#include "sim/graph/program.h"
#include "sim/memory/allocation.h"
#include "sim/memory/copy.h"
#include "sim/stream/scheduler.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

// The task under way, and the host functions under way, which are few.
static gcap_sim_actor_t acting;
static bool is_acting;
static _Thread_local gcap_sim_actor_t host_function;
static _Thread_local bool in_host_function;

// Does the task stand for a kernel without a twin?
static bool is_skipped(const gcap_sim_task_t* task) {
  return task->kind == GCAP_SIM_TASK_KERNEL && task->u.kernel.twin->kernel.run == NULL;
}

// --- Who ------------------------------------------------------------------------------------------------------------

static gcap_sim_site_t* site_create(const gcap_sim_task_t* task, const gcap_sim_stream_t* stream,
                                    gcap_sim_origin_t* launch) {
  gcap_sim_site_t* site = gcap_sim_calloc(1, sizeof(*site));
  bool has_name = task->kind == GCAP_SIM_TASK_KERNEL || task->kind == GCAP_SIM_TASK_LIBRARY;
  *site = (gcap_sim_site_t){.refs = 1,
                            .what = is_skipped(task)                     ? "skipped kernel"
                                    : task->kind == GCAP_SIM_TASK_KERNEL ? "kernel"
                                    : has_name                           ? "library"
                                                                         : task->name,
                            .name = has_name ? task->name : NULL,
                            .stream = stream->name,
                            .origin = gcap_sim_origin_retain(task->origin),
                            .launch = gcap_sim_origin_retain(launch)};
  return site;
}

static gcap_sim_actor_t actor_of(gcap_sim_stream_t* stream, const gcap_sim_task_t* task, uint32_t node) {
  const gcap_sim_kernel_launch_t* launch = stream->head != NULL ? stream->head->launch : NULL;
  gcap_sim_clock_t* clock = launch != NULL ? gcap_sim_chains_clock(stream, launch, node) : &stream->clock;
  return (gcap_sim_actor_t){.clock = clock, .site = site_create(task, stream, launch != NULL ? launch->origin : NULL)};
}

gcap_sim_actor_t gcap_sim_actor_current(void) {
  const gcap_sim_actor_t* actor = in_host_function ? &host_function : is_acting ? &acting : NULL;
  if (actor != NULL) return (gcap_sim_actor_t){.clock = actor->clock, .site = gcap_sim_site_retain(actor->site)};
  gcap_sim_clock_t* host = gcap_sim_order_host();
  gcap_sim_clock_tick(host);
  gcap_sim_site_t* site = gcap_sim_calloc(1, sizeof(*site));
  *site = (gcap_sim_site_t){.refs = 1, .what = "the host", .origin = gcap_sim_origin_retain(gcap_sim_origin_current())};
  return (gcap_sim_actor_t){.clock = host, .site = site};
}

// --- Kernels and libraries ------------------------------------------------------------------------------------------

static struct {
  gcap_sim_access_t* items;
  size_t capacity;
} declared = {NULL, 0};

static bool declares_nothing(const gcap_sim_task_t* task) {
  return task->kind == GCAP_SIM_TASK_KERNEL && !is_skipped(task) && task->u.kernel.twin->kernel.accesses == NULL;
}

static size_t ask(const gcap_sim_task_t* task) {
  gcap_sim_thread()->in_device_work = true;
  const size_t count = task->u.kernel.twin->kernel.accesses(&task->u.kernel.launch, task->u.kernel.args, declared.items,
                                                            declared.capacity);
  gcap_sim_thread()->in_device_work = false;
  return count;
}

// What the task declares, or what its arguments tell; the array is valid until the next question.
static const gcap_sim_access_t* declared_by(const gcap_sim_task_t* task, size_t* count) {
  *count = 0;
  if (task->kind == GCAP_SIM_TASK_LIBRARY) {
    *count = task->u.library.num_accesses;
    return task->u.library.accesses;
  }
  const gcap_sim_twin_t* twin = task->u.kernel.twin;
  if (declares_nothing(task)) return NULL;
  gcap_sim_reserve(&declared.items, &declared.capacity, 16, sizeof(gcap_sim_access_t));
  for (;;) {
    *count = is_skipped(task)
                 ? gcap_sim_signature_accesses(twin->signature, task->u.kernel.args, declared.items, declared.capacity)
                 : ask(task);
    if (*count <= declared.capacity) return declared.items;
    gcap_sim_reserve(&declared.items, &declared.capacity, *count, sizeof(gcap_sim_access_t));
  }
}

// Is there a twin that is asked when the kernel runs?
static bool is_asked_late(const gcap_sim_task_t* task) {
  return task->kind == GCAP_SIM_TASK_KERNEL && !is_skipped(task) && task->u.kernel.twin->kernel.accesses != NULL;
}

static const gcap_sim_memory_t* named_around(const gcap_sim_task_t* task, uintptr_t address) {
  for (size_t i = 0; i < task->num_named; ++i) {
    const gcap_sim_memory_t* memory = task->named[i];
    if (memory != NULL && address - memory->begin < memory->bytes) return memory;
  }
  return NULL;
}

// The memory of a range that a task of a graph touches, by the number of the range.
static const gcap_sim_memory_t* named_by(const gcap_sim_task_t* task, size_t index) {
  return index < task->num_named ? task->named[index] : NULL;
}

static const gcap_sim_memory_t* named_of(const gcap_sim_task_t* task, size_t index, const gcap_sim_access_t* access) {
  return is_asked_late(task) ? named_around(task, (uintptr_t)access->address) : named_by(task, index);
}

// A device has no other memory than what the runtime gave out.
static bool can_reach(const gcap_sim_actor_t* actor, const gcap_sim_access_t* access, const gcap_sim_memory_t* named) {
  if (access->bytes == 0 || named != NULL || gcap_sim_memory_at((uintptr_t)access->address) != NULL) return true;
  if (gcap_sim_allocation_find(access->address) != NULL) return true;  // not allocated yet: told as that
  gcap_sim_touch_t touch = {.site = actor->site,
                            .address = (uintptr_t)access->address,
                            .bytes = access->bytes,
                            .is_write = access->is_write != 0};
  gcap_sim_found_unreachable(&touch);
  return false;
}

// A word of a struct that is no address of the device's is a number.
static bool is_number(const gcap_sim_task_t* task, size_t index, const gcap_sim_access_t* access) {
  return is_skipped(task) && gcap_sim_signature_is_word(task->u.kernel.twin->signature, index) &&
         named_by(task, index) == NULL && gcap_sim_allocation_find(access->address) == NULL;
}

// What a kernel without a twin would have written: all that follows a pointer to what is not const, or anything.
static void write_unknown(const gcap_sim_actor_t* actor, const gcap_sim_task_t* task, const gcap_sim_access_t* accesses,
                          size_t count) {
  const gcap_sim_signature_t* signature = task->u.kernel.twin->signature;
  if (signature->reaches_all) gcap_sim_shadow_all_may_be_written();
  for (size_t i = 0; i < count; ++i) {
    if (!accesses[i].is_write && !gcap_sim_signature_is_word(signature, i)) continue;
    gcap_sim_access_may_write(actor, (uintptr_t)accesses[i].address);
  }
}

static bool touch_declared(const gcap_sim_actor_t* actor, const gcap_sim_task_t* task) {
  if (declares_nothing(task)) {
    // Not its arguments alone: memory may hold pointers to other memory.
    gcap_sim_shadow_all_may_be_written();
    return true;
  }
  size_t count;
  const gcap_sim_access_t* accesses = declared_by(task, &count);
  // Whether a kernel that is not run looks at what it is given, nobody knows.
  const gcap_sim_use_t use = is_skipped(task) ? GCAP_SIM_USE_COPY : GCAP_SIM_USE_VALUE;
  bool ok = true;
  for (int writes = 0; writes < 2; ++writes) {
    for (size_t i = 0; i < count; ++i) {
      if ((accesses[i].is_write != 0) != writes || is_number(task, i, &accesses[i])) continue;
      const gcap_sim_memory_t* named = named_of(task, i, &accesses[i]);
      ok = can_reach(actor, &accesses[i], named) &&
           gcap_sim_access_named(actor, (uintptr_t)accesses[i].address, accesses[i].bytes, accesses[i].is_write, use,
                                 named) &&
           ok;
    }
  }
  if (is_skipped(task)) write_unknown(actor, task, accesses, count);
  return ok;
}

// --- Copies and fills -----------------------------------------------------------------------------------------------

// Calls `visit` for each row of a copy.
typedef bool (*row_fn_t)(const gcap_sim_actor_t* actor, const gcap_sim_task_t* task, uintptr_t dst, uintptr_t src);

static bool each_row(const gcap_sim_actor_t* actor, const gcap_sim_task_t* task, row_fn_t visit) {
  const gcap_sim_copy_t* copy = &task->u.copy.copy;
  size_t slices = copy->depth ? copy->depth : 1;
  for (size_t slice = 0; slice < slices; ++slice) {
    for (size_t row = 0; row < copy->height; ++row) {
      uintptr_t dst = (uintptr_t)copy->dst + slice * copy->dst_slice + row * copy->dst_pitch;
      uintptr_t src = (uintptr_t)copy->src + slice * copy->src_slice + row * copy->src_pitch;
      if (!visit(actor, task, dst, src)) return false;
    }
  }
  return true;
}

static bool is_unwritten_row(const gcap_sim_actor_t* actor, const gcap_sim_task_t* task, uintptr_t dst, uintptr_t src) {
  (void)actor, (void)dst;
  return !gcap_sim_access_is_written(src, task->u.copy.copy.width);
}

static bool read_row_of_values(const gcap_sim_actor_t* actor, const gcap_sim_task_t* task, uintptr_t dst,
                               uintptr_t src) {
  (void)dst;
  return gcap_sim_access_named(actor, src, task->u.copy.copy.width, false, GCAP_SIM_USE_VALUE, named_by(task, 0));
}

static bool read_row(const gcap_sim_actor_t* actor, const gcap_sim_task_t* task, uintptr_t dst, uintptr_t src) {
  (void)dst;
  return gcap_sim_access_named(actor, src, task->u.copy.copy.width, false, GCAP_SIM_USE_COPY, named_by(task, 0));
}

// A copy to the host is the last that is seen of the values. But a rectangle of which a part was written is often
// copied whole, with its padding, and the host looks at that part alone.
static bool read_source(const gcap_sim_actor_t* actor, const gcap_sim_task_t* task) {
  const gcap_sim_copy_t* copy = &task->u.copy.copy;
  const bool is_rectangle = copy->height > 1 || copy->depth > 1;
  const bool is_for_device = copy->dst_type == cudaMemoryTypeDevice;
  const bool carries = is_for_device || (is_rectangle && !each_row(actor, task, is_unwritten_row));
  return each_row(actor, task, carries ? read_row : read_row_of_values);
}

static bool write_row(const gcap_sim_actor_t* actor, const gcap_sim_task_t* task, uintptr_t dst, uintptr_t src) {
  const gcap_sim_copy_t* copy = &task->u.copy.copy;
  if (!gcap_sim_access_named(actor, dst, copy->width, true, GCAP_SIM_USE_VALUE, named_by(task, 1))) return false;
  if (copy->dst_type == cudaMemoryTypeDevice && copy->src_type == cudaMemoryTypeDevice) {
    gcap_sim_access_carry(dst, src, copy->width);
  }
  return true;
}

// Is pageable memory still there that the copy names since its capture?
static bool is_kept(const gcap_sim_actor_t* actor, const gcap_sim_task_t* task) {
  const gcap_sim_copy_t* copy = &task->u.copy.copy;
  for (int target = 0; target < 2; ++target) {
    const gcap_sim_watch_t* watch = task->watched[target];
    if (watch == NULL || !gcap_sim_watch_freed(watch)) continue;
    gcap_sim_touch_t touch = {.site = actor->site,
                              .address = target ? (uintptr_t)copy->dst : (uintptr_t)copy->src,
                              .bytes = copy->width * copy->height,
                              .is_write = target};
    gcap_sim_found_freed_host_memory(&touch, false, gcap_sim_stack_of(watch->frames, watch->num_frames));
    return false;
  }
  return true;
}

static bool touch_copy(const gcap_sim_actor_t* actor, const gcap_sim_task_t* task) {
  bool staged = task->u.copy.staged != NULL;  // the host has read the source
  bool ok = is_kept(actor, task) && (staged || read_source(actor, task));
  if (!ok && task->watched[1] != NULL) return false;  // pageable memory, which may be gone itself
  // A copy without a source writes too, or whoever reads its target would be told that nobody did.
  return each_row(actor, task, write_row) && ok;
}

static bool touch_fill(const gcap_sim_actor_t* actor, const gcap_sim_task_t* task) {
  const gcap_sim_fill_t* fill = &task->u.fill;
  for (size_t row = 0; row < fill->height; ++row) {
    uintptr_t address = (uintptr_t)fill->dst + row * fill->pitch;
    size_t bytes = fill->width * fill->element_bytes;
    if (!gcap_sim_access_named(actor, address, bytes, true, GCAP_SIM_USE_VALUE, named_by(task, 0))) return false;
  }
  return true;
}

// --- Tasks ----------------------------------------------------------------------------------------------------------

static bool touch(const gcap_sim_actor_t* actor, const gcap_sim_task_t* task) {
  if (!gcap_sim_check_looks()) return true;
  switch (task->kind) {
    case GCAP_SIM_TASK_KERNEL:
    case GCAP_SIM_TASK_LIBRARY: return touch_declared(actor, task);
    case GCAP_SIM_TASK_COPY: return touch_copy(actor, task);
    case GCAP_SIM_TASK_FILL: return touch_fill(actor, task);
    case GCAP_SIM_TASK_NOTE: return gcap_sim_memory_noted(actor, task->u.note.memory, task->u.note.begins);
    default: return true;
  }
}

bool gcap_sim_access_begin(gcap_sim_stream_t* stream, const gcap_sim_task_t* task, uint32_t node) {
  acting = actor_of(stream, task, node);
  is_acting = true;
  return touch(&acting, task);
}

bool gcap_sim_access_begin_at_once(gcap_sim_stream_t* stream, const gcap_sim_task_t* task) {
  gcap_sim_order_at_once(stream);
  acting = (gcap_sim_actor_t){.clock = &stream->clock, .site = site_create(task, stream, NULL)};
  is_acting = true;
  return touch(&acting, task);
}

void gcap_sim_access_begin_host_function(gcap_sim_stream_t* stream, const gcap_sim_task_t* task, uint32_t node) {
  host_function = actor_of(stream, task, node);
  in_host_function = true;
}

void gcap_sim_access_end(void) {
  gcap_sim_actor_t* actor = in_host_function ? &host_function : &acting;
  gcap_sim_site_release(actor->site);
  actor->site = NULL;
  if (in_host_function) {
    gcap_sim_order_host_function_done(actor->clock);
    in_host_function = false;
  } else {
    is_acting = false;
  }
}

void gcap_sim_access_stage(const gcap_sim_copy_t* copy) {
  if (!gcap_sim_watch_any()) return;
  size_t slices = copy->depth ? copy->depth : 1;
  for (size_t slice = 0; slice < slices; ++slice) {
    for (size_t row = 0; row < copy->height; ++row) {
      gcap_sim_access_by_host((const char*)copy->src + slice * copy->src_slice + row * copy->src_pitch, copy->width,
                              false);
    }
  }
}

void gcap_sim_access_by_host(const void* address, size_t bytes, bool is_write) {
  if (!gcap_sim_check_looks()) return;
  gcap_sim_actor_t actor = gcap_sim_actor_current();
  gcap_sim_access_range(&actor, (uintptr_t)address, bytes, is_write, GCAP_SIM_USE_VALUE);
  gcap_sim_site_release(actor.site);
}

void gcap_sim_host_access(const void* address, size_t bytes, int is_write) {
  gcap_sim_begin_call("gcap_sim_host_access");
  gcap_sim_access_by_host(address, bytes, is_write != 0);
  gcap_sim_unlock();
}

// --- Tasks of graphs ------------------------------------------------------------------------------------------------

static void name_memory(gcap_sim_task_t* task, const void* address) {
  gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(address);
  task->named[task->num_named++] = allocation != NULL ? gcap_sim_memory_retain(allocation->memory) : NULL;
}

// What the words of a kernel's arguments point into.
static void name_arguments(gcap_sim_task_t* task) {
  const gcap_sim_kernel_t* kernel = &task->u.kernel.twin->kernel;
  size_t num_words = 0;
  for (size_t i = 0; i < kernel->num_args; ++i) num_words += kernel->arg_bytes[i] / sizeof(void*);
  if (num_words == 0) return;
  task->named = gcap_sim_calloc(num_words, sizeof(gcap_sim_memory_t*));
  for (size_t i = 0; i < kernel->num_args; ++i) {
    for (size_t at = 0; at + sizeof(void*) <= kernel->arg_bytes[i]; at += sizeof(void*)) {
      const void* word;
      memcpy(&word, (const char*)task->u.kernel.args[i] + at, sizeof(word));
      name_memory(task, word);
    }
  }
}

void gcap_sim_access_unbind(gcap_sim_task_t* task) {
  for (size_t i = 0; i < task->num_named; ++i) gcap_sim_memory_release(task->named[i]);
  free(task->named);
  for (int i = 0; i < 2; ++i) gcap_sim_watch_end(task->watched[i]);
}

void gcap_sim_access_bind(gcap_sim_task_t* task) {
  if (task->named != NULL) return;
  if (is_asked_late(task)) {
    name_arguments(task);
    return;
  }
  size_t count = 2;
  const gcap_sim_access_t* accesses = NULL;
  bool declares = task->kind == GCAP_SIM_TASK_KERNEL || task->kind == GCAP_SIM_TASK_LIBRARY;
  if (declares) accesses = declared_by(task, &count);
  if (count == 0) return;
  task->named = gcap_sim_calloc(count, sizeof(gcap_sim_memory_t*));
  for (size_t i = 0; declares && i < count; ++i) name_memory(task, accesses[i].address);
  if (task->kind == GCAP_SIM_TASK_COPY) {
    const gcap_sim_copy_t* copy = &task->u.copy.copy;
    name_memory(task, copy->src);
    name_memory(task, copy->dst);
    if (copy->src_type == cudaMemoryTypeUnregistered) task->watched[0] = gcap_sim_watch_begin(copy->src);
    if (copy->dst_type == cudaMemoryTypeUnregistered) task->watched[1] = gcap_sim_watch_begin(copy->dst);
  } else if (task->kind == GCAP_SIM_TASK_FILL) {
    name_memory(task, task->u.fill.dst);
  }
}
