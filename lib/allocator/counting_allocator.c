// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The counting allocator: a decorator that passes every call on to another allocator and counts.
//
// The limit holds at every moment for all threads together: bytes are committed before the upstream is asked, and given
// up only after the upstream took them back. Sorting events by their number gives a possible order: an allocation draws
// its number after it has the memory, and a free before it returns the memory. So the next owner of an address always
// has a higher number.
//
// Invariant: the committed bytes are at least what the table of blocks counts as in use, and never more than the limit.
// Locking: the table's mutex, and atomics; none is held while the upstream or the event callback runs, so both may call
// gcap.

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "gcap/allocator_ops.h"
#include "lib/allocator/block_table.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/sized.h"

typedef struct counting_allocator {
  gcap_allocator_t* upstream;
  gcap_counting_allocator_options_t options;
  gcap_block_table_t blocks;
  atomic_size_t committed_bytes;
  atomic_uint_fast64_t num_events;
  atomic_uint_fast64_t num_trims;
} counting_allocator_t;

GCAP_SIZED_OPTIONS(static, gcap_counting_allocator_options);

static uint64_t next_sequence(counting_allocator_t* counting) { return atomic_fetch_add(&counting->num_events, 1) + 1; }

static void report(const counting_allocator_t* counting, const gcap_allocator_event_t* event) {
  if (counting->options.on_event != NULL) counting->options.on_event(counting->options.user, event);
}

static gcap_status_t commit(counting_allocator_t* counting, size_t bytes) {
  size_t limit = counting->options.limit_bytes;
  size_t committed = atomic_load(&counting->committed_bytes);
  do {
    if (limit != 0 && bytes > limit - committed) {
      return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED,
                         "%zu bytes were requested, %zu are in use and the counting allocator's limit is %zu", bytes,
                         committed, limit);
    }
  } while (!atomic_compare_exchange_weak(&counting->committed_bytes, &committed, committed + bytes));
  return NULL;
}

static gcap_status_t ask_upstream(counting_allocator_t* counting, const gcap_allocator_event_t* event, void** out_ptr) {
  if (event->kind == GCAP_ALLOCATOR_EVENT_RESERVE) {
    return gcap_allocator_reserve(counting->upstream, event->bytes, out_ptr);
  }
  if (event->stream == NULL) return gcap_allocator_alloc(counting->upstream, event->bytes, out_ptr);
  return gcap_allocator_alloc_on_stream(counting->upstream, event->bytes, event->stream, out_ptr);
}

// Enters what the upstream gave. What cannot be entered goes back, unless it is in use already.
static gcap_status_t enter(counting_allocator_t* counting, const gcap_allocator_event_t* event) {
  const gcap_block_t block = {
      .ptr = event->ptr,
      .bytes = event->bytes,
      .reserved = event->kind == GCAP_ALLOCATOR_EVENT_RESERVE,
      .number = event->block,
  };
  gcap_status_t status = gcap_block_table_enter(&counting->blocks, &block);
  if (status == NULL) return NULL;
  if (gcap_status_code(status) == GCAP_ALREADY_EXISTS) {
    return gcap_status_annotate(status, GCAP_LIBRARY_ERROR, "the upstream allocator gave memory that is in use");
  }
  return gcap_status_join(status, gcap_allocator_free(counting->upstream, event->ptr));
}

static gcap_status_t alloc_counted(counting_allocator_t* counting, gcap_allocator_event_t event, void** out_ptr) {
  GCAP_RETURN_IF_ERROR(commit(counting, event.bytes));
  gcap_status_t status = ask_upstream(counting, &event, &event.ptr);
  if (status == NULL) {
    event.block = event.sequence = next_sequence(counting);
    status = enter(counting, &event);
  }
  if (status != NULL) {
    atomic_fetch_sub(&counting->committed_bytes, event.bytes);
    return status;
  }
  *out_ptr = event.ptr;
  report(counting, &event);
  return NULL;
}

static gcap_status_t counting_alloc(void* self, size_t bytes, void** out_ptr) {
  return alloc_counted(self, (gcap_allocator_event_t){.kind = GCAP_ALLOCATOR_EVENT_ALLOC, .bytes = bytes}, out_ptr);
}

static gcap_status_t counting_alloc_on_stream(void* self, size_t bytes, gcap_stream_t* stream, void** out_ptr) {
  const gcap_allocator_event_t event = {.kind = GCAP_ALLOCATOR_EVENT_ALLOC, .bytes = bytes, .stream = stream};
  return alloc_counted(self, event, out_ptr);
}

static gcap_status_t counting_reserve(void* self, size_t bytes, void** out_ptr) {
  return alloc_counted(self, (gcap_allocator_event_t){.kind = GCAP_ALLOCATOR_EVENT_RESERVE, .bytes = bytes}, out_ptr);
}

static gcap_status_t counting_free(void* self, void* ptr) {
  counting_allocator_t* counting = self;
  gcap_block_t block;
  GCAP_RETURN_IF_ERROR(gcap_block_table_take(&counting->blocks, ptr, &block));
  const gcap_allocator_event_t event = {
      .kind = GCAP_ALLOCATOR_EVENT_FREE,
      .sequence = next_sequence(counting),
      .block = block.number,
      .bytes = block.bytes,
      .ptr = ptr,
  };
  gcap_status_t status = gcap_allocator_free(counting->upstream, ptr);
  if (status != NULL) return gcap_status_join(status, gcap_block_table_put_back(&counting->blocks, &block));
  atomic_fetch_sub(&counting->committed_bytes, block.bytes);
  report(counting, &event);
  return NULL;
}

static gcap_status_t counting_trim(void* self) {
  counting_allocator_t* counting = self;
  GCAP_RETURN_IF_ERROR(gcap_allocator_trim(counting->upstream));
  atomic_fetch_add(&counting->num_trims, 1);
  report(counting, &(gcap_allocator_event_t){.kind = GCAP_ALLOCATOR_EVENT_TRIM, .sequence = next_sequence(counting)});
  return NULL;
}

static void counting_get_stats(void* self, gcap_allocator_stats_t* out_stats) {
  counting_allocator_t* counting = self;
  gcap_block_table_get_stats(&counting->blocks, out_stats);
  out_stats->limit_bytes = counting->options.limit_bytes;
  out_stats->num_shrinkages = atomic_load(&counting->num_trims);
}

static void counting_destroy(void* self) {
  gcap_block_table_deinit(&((counting_allocator_t*)self)->blocks, "counting allocator");
  free(self);
}

gcap_status_t gcap_counting_allocator_create(gcap_allocator_t* upstream,
                                             const gcap_counting_allocator_options_t* options,
                                             gcap_allocator_t** out_allocator) {
  GCAP_RETURN_IF_NULL(out_allocator);
  *out_allocator = NULL;
  GCAP_RETURN_IF_NULL(upstream);
  gcap_counting_allocator_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_counting_allocator_options_read(options, &known));
  counting_allocator_t* counting = calloc(1, sizeof(*counting));
  if (counting == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a counting allocator");
  counting->upstream = upstream;
  counting->options = known;
  gcap_block_table_init(&counting->blocks);
  const gcap_allocator_ops_t ops = {
      .struct_version = GCAP_ALLOCATOR_OPS_VERSION,
      .device_id = gcap_allocator_device(upstream),
      .alignment = gcap_allocator_alignment(upstream),
      .self = counting,
      .alloc = counting_alloc,
      .free = counting_free,
      .alloc_on_stream = counting_alloc_on_stream,
      .reserve = counting_reserve,
      .trim = counting_trim,
      .get_stats = counting_get_stats,
      .destroy = counting_destroy,
  };
  gcap_status_t status = gcap_allocator_create(&ops, out_allocator);
  if (status != NULL) counting_destroy(counting);
  return status;
}

int gcap_allocator_event_format(const gcap_allocator_event_t* event, char* out_line, size_t line_bytes) {
  uintptr_t stream = (uintptr_t)event->stream;
  switch (event->kind) {
    case GCAP_ALLOCATOR_EVENT_ALLOC:
      return snprintf(out_line, line_bytes, "a %" PRIu64 " %zu %" PRIuPTR, event->block, event->bytes, stream);
    case GCAP_ALLOCATOR_EVENT_RESERVE:
      return snprintf(out_line, line_bytes, "r %" PRIu64 " %zu", event->block, event->bytes);
    case GCAP_ALLOCATOR_EVENT_FREE: return snprintf(out_line, line_bytes, "f %" PRIu64, event->block);
    case GCAP_ALLOCATOR_EVENT_TRIM: return snprintf(out_line, line_bytes, "t");
  }
  return snprintf(out_line, line_bytes, "? %d", (int)event->kind);
}
