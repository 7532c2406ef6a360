// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The texts of the reports.
//
// The idea: each finding says what and where, names both calls, and ends with what to do. Locking: the global mutex.
#include "sim/check/findings.h"

#include <stdio.h>

#include "gcap_sim.h"
#include "sim/check/origin.h"
#include "sim/check/report.h"
#include "sim/check/shadow.h"

static const char* verb(bool is_write) { return is_write ? "write" : "read"; }

static bool in_one_graph(const gcap_sim_site_t* a, const gcap_sim_site_t* b) {
  return a->launch != NULL && a->launch == b->launch;
}

static const char* order_remedy(const gcap_sim_site_t* first, const gcap_sim_site_t* second, char* text, size_t bytes) {
  if (in_one_graph(first, second)) return "Nothing orders them. Remedy: a dependency between the two nodes.";
  if (!second->stream.is_stream) {
    return "Nothing orders them. Remedy: the host waits for the stream before it touches the memory.";
  }
  if (!first->stream.is_stream) {
    return "Nothing orders them. Remedy: the host touches the memory before it makes the call, or "
           "waits for the stream.";
  }
  char names[2][GCAP_SIM_STREAM_NAME_BYTES];
  snprintf(
      text, bytes,
      "Nothing orders them. Remedy: an event recorded after the first, on %s, for which %s waits before the second.",
      gcap_sim_stream_name_text(names[0], &first->stream), gcap_sim_stream_name_text(names[1], &second->stream));
  return text;
}

// The bytes of the segment that the touch concerns.
static void print_where(const char* what, const gcap_sim_touch_t* touch, const gcap_sim_segment_t* segment) {
  uintptr_t begin = touch->address > segment->span.begin ? touch->address : segment->span.begin;
  uintptr_t end = touch->address + touch->bytes;
  uintptr_t segment_end = segment->span.begin + segment->span.bytes;
  if (segment_end < end) end = segment_end;
  gcap_sim_report_print("gcap sim: %s %zu bytes of ", what, (size_t)(end - begin));
  gcap_sim_report_memory(segment->memory, (const void*)begin);
}

void gcap_sim_found_race(const gcap_sim_touch_t* touch, const gcap_sim_segment_t* segment,
                         const gcap_sim_epoch_t* earlier, const char* earlier_verb) {
  if (!gcap_sim_report_begin(GCAP_SIM_CHECK_RACE, earlier->site->origin, touch->site->origin)) return;
  char text[256];
  print_where("race on", touch, segment);
  gcap_sim_report_site(earlier_verb, earlier->site);
  gcap_sim_report_site(verb(touch->is_write), touch->site);
  gcap_sim_report_end(order_remedy(earlier->site, touch->site, text, sizeof(text)));
}

void gcap_sim_found_early_use(const gcap_sim_touch_t* touch, const gcap_sim_memory_t* memory) {
  if (!gcap_sim_report_begin(GCAP_SIM_CHECK_RACE, memory->allocated, touch->site->origin)) return;
  gcap_sim_report_print("gcap sim: race on %zu bytes of ", touch->bytes);
  gcap_sim_report_memory(memory, (const void*)touch->address);
  gcap_sim_report_site(verb(touch->is_write), touch->site);
  gcap_sim_report_end(
      "The memory is there only in the order of the stream that allocates it, and nothing orders the two. Remedy: an "
      "event recorded after the allocation, for which the other stream waits.");
}

static gcap_sim_check_kind_t kind_of_free(const gcap_sim_memory_t* memory) {
  return memory->of_device ? GCAP_SIM_CHECK_USE_AFTER_FREE : GCAP_SIM_CHECK_HOST_MEMORY;
}

void gcap_sim_found_use_after_free(const gcap_sim_touch_t* touch, const gcap_sim_memory_t* memory) {
  if (!gcap_sim_report_begin(kind_of_free(memory), memory->released, touch->site->origin)) return;
  gcap_sim_report_print("gcap sim: use after free of %zu bytes of ", touch->bytes);
  gcap_sim_report_memory(memory, (const void*)touch->address);
  gcap_sim_report_origin("freed by ", memory->released);
  gcap_sim_report_site(verb(touch->is_write), touch->site);
  gcap_sim_report_end("Remedy: free the memory after the last work that uses it, in the order of its stream.");
}

void gcap_sim_found_second_free(const gcap_sim_memory_t* memory) {
  const gcap_sim_origin_t* call = gcap_sim_origin_current();
  if (!gcap_sim_report_begin(GCAP_SIM_CHECK_REFUSED_CALL, memory->released, call)) return;
  gcap_sim_report_print("gcap sim: refused call: a second free of ");
  gcap_sim_report_memory(memory, (const void*)memory->begin);
  gcap_sim_report_origin("freed by ", memory->released);
  gcap_sim_report_origin("freed again by ", call);
  gcap_sim_report_end("Remedy: one owner, who frees the memory once.");
}

void gcap_sim_found_unordered_free(const gcap_sim_touch_t* touch, const gcap_sim_memory_t* memory,
                                   const gcap_sim_epoch_t* access, const char* access_verb) {
  if (!gcap_sim_report_begin(kind_of_free(memory), access->site->origin, touch->site->origin)) return;
  gcap_sim_report_print("gcap sim: free of memory that may still be in use, ");
  gcap_sim_report_memory(memory, (const void*)memory->begin);
  gcap_sim_report_site(access_verb, access->site);
  gcap_sim_report_site("free", touch->site);
  gcap_sim_report_end(
      "Nothing orders them. Remedy: an event recorded after the use, for which the stream of the free waits before "
      "it.");
}

void gcap_sim_found_unordered_reuse(const gcap_sim_touch_t* touch, const gcap_sim_segment_t* segment,
                                    const gcap_sim_epoch_t* earlier, const char* earlier_verb) {
  if (!gcap_sim_report_begin(GCAP_SIM_CHECK_RACE, earlier->site->origin, touch->site->origin)) return;
  print_where("race on reused memory,", touch, segment);
  gcap_sim_report_site(earlier_verb, earlier->site);
  gcap_sim_report_site("hand-out", touch->site);
  gcap_sim_report_end(
      "Nothing orders them. Remedy: an event recorded after the first, for which the stream that gets the memory "
      "waits.");
}

void gcap_sim_found_baked_pointer(const gcap_sim_touch_t* touch, const gcap_sim_memory_t* memory) {
  gcap_sim_check_kind_t kind = memory->of_device ? GCAP_SIM_CHECK_BAKED_POINTER : GCAP_SIM_CHECK_HOST_MEMORY;
  if (!gcap_sim_report_begin(kind, memory->released, touch->site->origin)) return;
  gcap_sim_report_print("gcap sim: a graph uses memory that was freed after its capture: ");
  gcap_sim_report_memory(memory, (const void*)touch->address);
  gcap_sim_report_origin("freed by ", memory->released);
  gcap_sim_report_site(verb(touch->is_write), touch->site);
  gcap_sim_report_end("Remedy: keep the memory until the graph is launched no more, or update the graph.");
}

void gcap_sim_found_freed_host_memory(const gcap_sim_touch_t* touch, bool registered,
                                      const gcap_sim_stack_t* freed_at) {
  const char* what = registered ? "registered memory was" : "a graph uses pageable memory that was";
  const char* when = registered ? "while the runtime had it" : "after its capture";
  if (!gcap_sim_report_begin(GCAP_SIM_CHECK_HOST_MEMORY, NULL, touch->site->origin)) return;
  gcap_sim_report_print("gcap sim: %s freed %s: %zu bytes at %p\n", what, when, touch->bytes, (void*)touch->address);
  gcap_sim_report_stack("freed by free or realloc", freed_at);
  gcap_sim_report_site(verb(touch->is_write), touch->site);
  gcap_sim_report_end(registered ? "Remedy: cudaHostUnregister, which waits for the work, before the memory is freed."
                                 : "Remedy: keep the memory until the graph is launched no more, or copy it to other.");
}

void gcap_sim_found_uninitialized(const gcap_sim_site_t* reader, const gcap_sim_memory_t* memory, uintptr_t begin,
                                  uintptr_t end) {
  const gcap_sim_origin_t* allocated = memory != NULL ? memory->allocated : NULL;
  if (!gcap_sim_report_begin(GCAP_SIM_CHECK_UNINITIALIZED, allocated, reader->origin)) return;
  gcap_sim_report_print("gcap sim: read of uninitialized memory, %zu bytes of ", (size_t)(end - begin));
  gcap_sim_report_memory(memory, (const void*)begin);
  gcap_sim_report_site("read", reader);
  gcap_sim_report_end("Nothing has written these bytes. Remedy: fill the memory, or read only what was written.");
}

void gcap_sim_found_out_of_bounds(const gcap_sim_touch_t* touch, const gcap_sim_memory_t* memory) {
  if (!gcap_sim_report_begin(GCAP_SIM_CHECK_OUT_OF_BOUNDS, memory->allocated, touch->site->origin)) return;
  size_t offset = (size_t)(touch->address - memory->begin);
  gcap_sim_report_print("gcap sim: out of bounds: %s of %zu bytes at offset %zu of an allocation of %zu bytes, ",
                        verb(touch->is_write), touch->bytes, offset, memory->bytes);
  gcap_sim_report_memory(memory, (const void*)touch->address);
  gcap_sim_report_site(verb(touch->is_write), touch->site);
  gcap_sim_report_end("Remedy: a larger allocation, or a smaller access.");
}

void gcap_sim_found_unreachable(const gcap_sim_touch_t* touch) {
  if (!gcap_sim_report_begin(GCAP_SIM_CHECK_OUT_OF_BOUNDS, NULL, touch->site->origin)) return;
  gcap_sim_report_print("gcap sim: out of bounds: %s of %zu bytes at %p, which no allocation holds\n",
                        verb(touch->is_write), touch->bytes, (void*)touch->address);
  gcap_sim_report_site(verb(touch->is_write), touch->site);
  gcap_sim_report_end("A device reaches device and pinned memory only. Remedy: copy the data there.");
}

void gcap_sim_found_overlap(const gcap_sim_memory_t* memory, const gcap_sim_memory_t* other) {
  if (!gcap_sim_report_begin(GCAP_SIM_CHECK_OVERLAP, other->allocated, memory->allocated)) return;
  gcap_sim_report_print("gcap sim: overlapping allocations: %zu bytes at %p, ", memory->bytes, (void*)memory->begin);
  gcap_sim_report_memory(memory, (const void*)memory->begin);
  gcap_sim_report_print("  and %zu bytes at %p, ", other->bytes, (void*)other->begin);
  gcap_sim_report_memory(other, (const void*)other->begin);
  gcap_sim_report_end("Both are live. Remedy: the sub-allocator must not hand out bytes that it has not got back.");
}
