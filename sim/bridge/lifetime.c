// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lifetimes: memory that begins and ends, of the runtime and of sub-allocators that tell of theirs.
//
// The idea: an allocation and a free are accesses to all of the memory, in the order of the work or call that does
// them: a use that is not ordered after the one, or before the other, is a mistake whichever comes first on this run.
// Freed memory stays in the shadow, with the call that freed it, until much else has been freed or its addresses are
// given out again. A sub-allocator's memory is a part of what it came from, marked by operations of the stream that it
// names. Invariant: the queue holds freed memory alone, oldest first. Locking: the global mutex.
#include "sim/bridge/lifetime.h"

#include <stdlib.h>

#include "cuda_runtime_api.h"
#include "gcap_sim.h"
#include "sim/api/api.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/base/span.h"
#include "sim/bridge/access.h"
#include "sim/bridge/order.h"
#include "sim/bridge/task_access.h"
#include "sim/check/clock.h"
#include "sim/check/findings.h"
#include "sim/check/origin.h"
#include "sim/check/policy.h"
#include "sim/check/shadow.h"
#include "sim/check/watch.h"
#include "sim/memory/allocation.h"
#include "sim/stream/capture.h"
#include "sim/stream/scheduler.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

// How much freed memory is remembered: enough that a late use is told as such, little enough to cost nothing.
enum { kMaxFreed = 1024 };
#define MAX_FREED_BYTES ((size_t)256 << 20)

static struct {
  gcap_sim_memory_t* first;
  gcap_sim_memory_t* last;
  size_t count;
  size_t bytes;
} freed;

// --- Freed memory ---------------------------------------------------------------------------------------------------

// Forgets the segments that still belong to the memory.
static void forget(const gcap_sim_memory_t* memory) {
  uintptr_t end = memory->begin + memory->bytes;
  for (gcap_sim_segment_t* segment = gcap_sim_shadow_first(memory->begin);
       segment != NULL && segment->span.begin < end;) {
    uintptr_t begin = segment->span.begin;
    uintptr_t next = begin + segment->span.bytes;
    if (segment->memory == memory) gcap_sim_shadow_clear(begin, next);
    segment = gcap_sim_shadow_first(next);
  }
}

static void remember_freed(gcap_sim_memory_t* memory) {
  memory->next = NULL;
  if (freed.last != NULL) {
    freed.last->next = gcap_sim_memory_retain(memory);
  } else {
    freed.first = gcap_sim_memory_retain(memory);
  }
  freed.last = memory;
  ++freed.count;
  freed.bytes += memory->bytes;
  while (freed.count > 1 && (freed.count > kMaxFreed || freed.bytes > MAX_FREED_BYTES)) {
    gcap_sim_memory_t* oldest = freed.first;
    freed.first = oldest->next;
    --freed.count;
    freed.bytes -= oldest->bytes;
    forget(oldest);
    gcap_sim_memory_release(oldest);
  }
}

// --- Begin and end --------------------------------------------------------------------------------------------------

// An access to the memory's bytes that the actor does not come after. A stream-ordered allocation counts as one, but
// not for `ignore_allocation`.
static const gcap_sim_epoch_t* find_unordered(const gcap_sim_actor_t* actor, const gcap_sim_memory_t* memory,
                                              bool ignore_allocation, const gcap_sim_segment_t** where) {
  uintptr_t end = memory->begin + memory->bytes;
  const gcap_sim_segment_t* segment = gcap_sim_shadow_first(memory->begin);
  for (; segment != NULL && segment->span.begin < end;
       segment = gcap_sim_shadow_first(segment->span.begin + segment->span.bytes)) {
    const gcap_sim_epoch_t* write = &segment->write;
    *where = segment;
    bool skip = write->site == NULL || (segment->allocation && ignore_allocation);
    if (!skip && !gcap_sim_clock_knows(actor->clock, write->timeline, write->time)) return write;
    const gcap_sim_epoch_t* read = gcap_sim_segment_unordered(segment, actor->clock, false);
    if (read == NULL) read = gcap_sim_segment_unordered(segment, actor->clock, true);
    if (read != NULL) return read;
  }
  return NULL;
}

static gcap_sim_touch_t touch_of(const gcap_sim_actor_t* actor, const gcap_sim_memory_t* memory) {
  return (gcap_sim_touch_t){.site = actor->site, .address = memory->begin, .bytes = memory->bytes, .is_write = true};
}

static void check_free(const gcap_sim_actor_t* actor, const gcap_sim_memory_t* memory) {
  if (!gcap_sim_check_looks()) return;
  const gcap_sim_segment_t* segment;
  // The host may free what was allocated in the order of a stream and never used.
  const gcap_sim_epoch_t* access = find_unordered(actor, memory, actor->clock == gcap_sim_order_host(), &segment);
  if (access == NULL) return;
  gcap_sim_touch_t touch = touch_of(actor, memory);
  gcap_sim_found_unordered_free(&touch, memory, access, gcap_sim_segment_verb(segment, access));
}

static void set_released(gcap_sim_memory_t* memory, gcap_sim_origin_t* call) {
  gcap_sim_origin_retain(call);
  gcap_sim_origin_release(memory->released);
  memory->released = call;
}

// Gives the range to the memory; what was there before is forgotten.
static gcap_sim_segment_t* begin_anew(gcap_sim_memory_t* memory, bool initialized) {
  uintptr_t end = memory->begin + memory->bytes;
  gcap_sim_shadow_clear(memory->begin, end);
  memory->freed = false;
  set_released(memory, NULL);  // what a graph frees begins again with its next launch
  gcap_sim_memory_begun(memory);
  gcap_sim_segment_t* segment = gcap_sim_shadow_insert(memory->begin, end, memory);
  segment->initialized = initialized;
  return segment;
}

// The host's own order needs no note: whoever got the address comes after the call.
static void begin(const gcap_sim_actor_t* actor, gcap_sim_memory_t* memory, bool initialized) {
  gcap_sim_segment_t* segment = begin_anew(memory, initialized);
  if (actor->clock == gcap_sim_order_host()) return;
  segment->allocation = true;
  gcap_sim_segment_set_write(segment, gcap_sim_actor_now(actor));
}

static void end(const gcap_sim_actor_t* actor, gcap_sim_memory_t* memory) {
  check_free(actor, memory);
  uintptr_t limit = memory->begin + memory->bytes;
  gcap_sim_shadow_clear(memory->begin, limit);
  gcap_sim_segment_set_write(gcap_sim_shadow_insert(memory->begin, limit, memory), gcap_sim_actor_now(actor));
  memory->freed = true;
  set_released(memory, actor->site->origin);
}

// --- Allocations of the runtime -------------------------------------------------------------------------------------

static const char* kind_of(enum cudaMemoryType type) {
  if (type == cudaMemoryTypeDevice) return "device memory";
  return type == cudaMemoryTypeManaged ? "managed memory" : "pinned memory";
}

gcap_sim_memory_t* gcap_sim_memory_create(const gcap_sim_allocation_t* allocation) {
  gcap_sim_memory_t* memory = gcap_sim_calloc(1, sizeof(*memory));
  *memory = (gcap_sim_memory_t){.refs = 1,
                                .begin = (uintptr_t)allocation->base,
                                .bytes = allocation->bytes,
                                .of_device = allocation->type == cudaMemoryTypeDevice,
                                .kind = kind_of(allocation->type),
                                .allocated = gcap_sim_origin_retain(gcap_sim_origin_current())};
  return memory;
}

void gcap_sim_memory_begins(gcap_sim_allocation_t* allocation) {
  gcap_sim_memory_t* memory = allocation->memory;
  memory->of_graph = allocation->of_graph;
  gcap_sim_actor_t actor = gcap_sim_actor_current();
  if (allocation->live) check_free(&actor, memory);  // a launch frees by itself what the one before it left
  begin(&actor, memory, !memory->of_device);         // what the host writes is not seen
  if (allocation->registered) memory->watch = gcap_sim_watch_begin(allocation->base);
  gcap_sim_site_release(actor.site);
}

void gcap_sim_memory_is_there(gcap_sim_allocation_t* allocation, bool initialized) {
  begin_anew(allocation->memory, initialized);
}

void gcap_sim_memory_ends(gcap_sim_allocation_t* allocation) {
  gcap_sim_memory_t* memory = allocation->memory;
  gcap_sim_actor_t actor = gcap_sim_actor_current();
  end(&actor, memory);
  if (allocation->registered) {
    gcap_sim_watch_end(memory->watch);
    memory->watch = NULL;
    gcap_sim_shadow_clear(memory->begin, memory->begin + memory->bytes);  // it lives on, as the program's own
  } else if (!memory->of_graph) {
    remember_freed(memory);
  }
  gcap_sim_site_release(actor.site);
}

void gcap_sim_memory_free_queued(gcap_sim_memory_t* memory) { set_released(memory, gcap_sim_origin_current()); }

void gcap_sim_memory_free_refused(const void* address) {
  const gcap_sim_memory_t* memory = gcap_sim_memory_at((uintptr_t)address);
  if (memory == NULL || memory->begin != (uintptr_t)address || memory->released == NULL) return;
  gcap_sim_found_second_free(memory);
}

// --- Sub-allocations ------------------------------------------------------------------------------------------------

// The live ones by address, in the order of the calls.
static gcap_sim_span_t* annotated;

static gcap_sim_memory_t* part_create(const void* address, size_t bytes, const char* name) {
  gcap_sim_memory_t* parent = gcap_sim_memory_at((uintptr_t)address);
  gcap_sim_memory_t* memory = gcap_sim_calloc(1, sizeof(*memory));
  *memory = (gcap_sim_memory_t){.refs = 1,
                                .begin = (uintptr_t)address,
                                .bytes = bytes,
                                .of_device = parent == NULL || parent->of_device,
                                .kind = parent != NULL ? parent->kind : "memory",
                                .name = name,
                                .parent = gcap_sim_memory_retain(parent),
                                .allocated = gcap_sim_origin_retain(gcap_sim_origin_current())};
  memory->span = (gcap_sim_span_t){.begin = memory->begin, .bytes = bytes, .owner = memory};
  return memory;
}

static void submit_note(gcap_sim_memory_t* memory, bool begins, cudaStream_t handle) {
  gcap_sim_stream_t* stream = gcap_sim_stream_get(handle);
  gcap_sim_task_t* task =
      gcap_sim_task_create(GCAP_SIM_TASK_NOTE, begins ? "sub-allocation" : "free of a sub-allocation");
  task->u.note.memory = gcap_sim_memory_retain(memory);
  task->u.note.begins = begins;
  if (stream->member != NULL || stream->head != NULL) {
    gcap_sim_submit_task(stream, task);  // what a capture that is invalid by now refuses has no launch to be checked
  } else {
    gcap_sim_run_at_once(stream, task);
    gcap_sim_task_release(task);
  }
}

void gcap_sim_annotate_alloc(const void* address, size_t bytes, cudaStream_t stream, const char* name) {
  gcap_sim_begin_call("gcap_sim_annotate_alloc");
  if (address == NULL || bytes == 0) {
    gcap_sim_die("gcap_sim_annotate_alloc: %zu bytes at %p are no memory", bytes, address);
  }
  gcap_sim_memory_t* memory = part_create(address, bytes, name);
  for (;;) {
    gcap_sim_memory_t* other = gcap_sim_span_overlap(annotated, address, bytes);
    if (other == NULL) break;
    gcap_sim_found_overlap(memory, other);
    gcap_sim_span_remove(&annotated, &other->span);
    gcap_sim_memory_release(other);
  }
  gcap_sim_span_insert(&annotated, &memory->span);
  submit_note(memory, true, stream);
  gcap_sim_unlock();
}

void gcap_sim_annotate_free(const void* address, cudaStream_t stream) {
  gcap_sim_begin_call("gcap_sim_annotate_free");
  gcap_sim_memory_t* memory = gcap_sim_span_find(annotated, address);
  if (memory == NULL || memory->begin != (uintptr_t)address) {
    gcap_sim_die("gcap_sim_annotate_free: no live sub-allocation begins at %p", address);
  }
  gcap_sim_span_remove(&annotated, &memory->span);
  submit_note(memory, false, stream);
  gcap_sim_memory_release(memory);
  gcap_sim_unlock();
}

bool gcap_sim_memory_noted(const gcap_sim_actor_t* actor, gcap_sim_memory_t* memory, bool begins) {
  if (!begins) {
    end(actor, memory);
    return true;
  }
  const gcap_sim_segment_t* segment = NULL;
  const gcap_sim_epoch_t* access = find_unordered(actor, memory, false, &segment);
  gcap_sim_touch_t touch = touch_of(actor, memory);
  if (access != NULL) gcap_sim_found_unordered_reuse(&touch, segment, access, gcap_sim_segment_verb(segment, access));
  begin(actor, memory, !memory->of_device);
  return true;
}
