// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The debug options: what they need to know of each block that is handed out stands in a table of their own, so that
// blocks cost nothing more when no such option is set.
//
// Calls are numbered while the arena is locked, when they are done, and each number is reported, so none is missing. A
// block that upstream takes back, for which the arena is unlocked, is unknown here from before that.
// Locking: the arena is locked, but for reports.

#include "lib/scratch/debug.h"

#include <stdlib.h>

#include "lib/base/capture_hooks.h"
#include "lib/scratch/red_zones.h"
#include "lib/scratch/reservation.h"

enum { kBuckets = 1024 };  // a power of two; more blocks than that are seldom live

typedef struct gcap_scratch_debug {
  bool red_zones, poison_on_free;
  uint64_t num_calls;
  gcap_scratch_live_t* live[kBuckets];  // by address
  gcap_scratch_record_t record;
  gcap_scratch_zone_reader_t reader;
} debug_t;

// --- Life -----------------------------------------------------------------------------------------------------------

gcap_status_t gcap_scratch_debug_create(gcap_scratch_t* scratch) {
  const gcap_scratch_options_t* options = &scratch->options;
  if (!options->red_zones && !options->poison_on_free && options->recorded_operations == 0 &&
      options->on_event == NULL) {
    return NULL;
  }
  debug_t* debug = calloc(1, sizeof(*debug));
  if (debug == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for scratch's debug options");
  gcap_status_t status = gcap_scratch_record_init(&debug->record, options->recorded_operations);
  if (status != NULL) {
    free(debug);
    return status;
  }
  debug->red_zones = options->red_zones;
  debug->poison_on_free = options->poison_on_free;
  debug->reader.to_host = scratch->device_id < 0 ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
  debug->reader.record = &debug->record;
  scratch->debug = debug;
  scratch->zone_bytes = debug->red_zones ? GCAP_SCRATCH_GRANULE_BYTES : 0;
  return NULL;
}

void gcap_scratch_debug_destroy(gcap_scratch_t* scratch) {
  if (scratch->debug == NULL) return;
  gcap_scratch_record_deinit(&scratch->debug->record);
  free(scratch->debug);
}

// --- What is handed out ---------------------------------------------------------------------------------------------

// The link to the live block at an address, or to the end of its bucket.
static gcap_scratch_live_t** find_live(debug_t* debug, const void* ptr) {
  gcap_scratch_live_t** link = &debug->live[(uintptr_t)ptr / GCAP_SCRATCH_GRANULE_BYTES % kBuckets];
  while (*link != NULL && (*link)->ptr != ptr) link = &(*link)->next;
  return link;
}

static void add_live(debug_t* debug, gcap_scratch_live_t* live) {
  gcap_scratch_live_t** link = find_live(debug, live->ptr);
  live->next = *link;
  *link = live;
}

static gcap_status_t fence(const debug_t* debug, gcap_scratch_live_t* live) {
  if (!debug->red_zones || live->stream == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_scratch_is_capturing(live->stream, &live->captured));
  return gcap_scratch_zones_write(live);
}

gcap_status_t gcap_scratch_debug_note_alloc(gcap_scratch_t* scratch, void* ptr, size_t requested_bytes,
                                            gcap_stream_t* stream, gcap_allocator_event_t* out_event) {
  debug_t* debug = scratch->debug;
  *out_event = (gcap_allocator_event_t){0};
  if (debug == NULL) return NULL;
  gcap_scratch_live_t* live = malloc(sizeof(*live));
  if (live == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to note a scratch block");
  *live = (gcap_scratch_live_t){.ptr = ptr, .bytes = requested_bytes, .stream = stream};
  gcap_status_t status = fence(debug, live);
  if (status != NULL) {
    free(live);
    return status;
  }
  live->number = ++debug->num_calls;
  add_live(debug, live);
  gcap_scratch_record_add(&debug->record, live, live->number);
  *out_event = (gcap_allocator_event_t){
      .kind = GCAP_ALLOCATOR_EVENT_ALLOC,
      .sequence = live->number,
      .block = live->number,
      .bytes = requested_bytes,
      .ptr = ptr,
      .stream = stream,
  };
  return NULL;
}

// Looks at a block's zones: now, or in the graph that wrote them. Where a block was allocated in a graph and is freed
// outside, or the other way round, what the zones should be is unknown.
static gcap_status_t look_at_zones(const debug_t* debug, const gcap_scratch_live_t* live,
                                   gcap_scratch_reservation_t* reservation, gcap_status_t* out_damage) {
  bool capturing = false;
  GCAP_RETURN_IF_ERROR(gcap_scratch_is_capturing(live->stream, &capturing));
  if (capturing != live->captured) return NULL;
  if (capturing) return reservation != NULL ? gcap_scratch_zones_capture(&debug->reader, reservation, live) : NULL;
  return gcap_thread_captures() ? NULL : gcap_scratch_zones_check(&debug->reader, live, out_damage);
}

// The poison comes last: where the zones cannot be read the block stays handed out, as it was.
static gcap_status_t inspect(const debug_t* debug, const gcap_scratch_live_t* live,
                             gcap_scratch_reservation_t* reservation, gcap_status_t* out_damage) {
  if (live->stream == NULL) return NULL;
  if (debug->red_zones) GCAP_RETURN_IF_ERROR(look_at_zones(debug, live, reservation, out_damage));
  if (!debug->poison_on_free) return NULL;
  gcap_status_t status = gcap_scratch_poison(live);
  if (status == NULL) return NULL;
  gcap_status_free(*out_damage);  // it is found again when the block is freed again
  *out_damage = NULL;
  return status;
}

gcap_status_t gcap_scratch_debug_begin_free(gcap_scratch_t* scratch, const gcap_scratch_block_t* block, bool forced,
                                            gcap_scratch_live_t** out_live, gcap_status_t* out_damage) {
  debug_t* debug = scratch->debug;
  *out_live = NULL;
  *out_damage = NULL;
  if (debug == NULL) return NULL;
  gcap_scratch_live_t** link = find_live(debug, gcap_scratch_block_base(block) + scratch->zone_bytes);
  gcap_scratch_live_t* live = *link;
  gcap_status_t status = inspect(debug, live, gcap_scratch_block_reservation(block), out_damage);
  if (status != NULL && !forced) return status;
  *out_damage = gcap_status_join(*out_damage, status);
  *link = live->next;
  *out_live = live;
  return NULL;
}

void gcap_scratch_debug_end_free(gcap_scratch_t* scratch, gcap_scratch_live_t* live,
                                 gcap_allocator_event_t* out_event) {
  debug_t* debug = scratch->debug;
  *out_event = (gcap_allocator_event_t){0};
  if (live == NULL) return;
  *out_event = (gcap_allocator_event_t){
      .kind = GCAP_ALLOCATOR_EVENT_FREE,
      .sequence = ++debug->num_calls,
      .block = live->number,
      .bytes = live->bytes,
      .ptr = live->ptr,
  };
  gcap_scratch_record_add(&debug->record, live, out_event->sequence);
  free(live);
}

void gcap_scratch_debug_undo_free(gcap_scratch_t* scratch, gcap_scratch_live_t* live) {
  if (live != NULL) add_live(scratch->debug, live);
}

void gcap_scratch_debug_forget_stream(gcap_scratch_t* scratch, const gcap_stream_t* stream) {
  if (scratch->debug == NULL) return;
  for (size_t i = 0; i < kBuckets; ++i) {
    for (gcap_scratch_live_t* live = scratch->debug->live[i]; live != NULL; live = live->next) {
      if (live->stream == stream) live->stream = NULL;
    }
  }
}

// --- Validation -----------------------------------------------------------------------------------------------------

// What is wrong with the zones of a block that is handed out.
static gcap_status_t validate_live(const debug_t* debug, const gcap_scratch_live_t* live) {
  bool capturing = false;
  gcap_status_t damage = NULL;
  if (live->stream == NULL || live->captured) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_scratch_is_capturing(live->stream, &capturing));
  if (!capturing) GCAP_RETURN_IF_ERROR(gcap_scratch_zones_check(&debug->reader, live, &damage));
  return damage;
}

static gcap_status_t validate_graphs(const gcap_scratch_t* scratch) {
  for (const gcap_scratch_reservation_t* r = scratch->reservations; r != NULL; r = r->next) {
    gcap_stream_t* stream = gcap_scratch_stream_of(gcap_scratch_reservation_state(r));
    bool capturing = false;
    if (stream == NULL) continue;  // it was destroyed
    GCAP_RETURN_IF_ERROR(gcap_scratch_is_capturing(stream, &capturing));
    if (!capturing) GCAP_RETURN_IF_ERROR(gcap_scratch_zones_check_copies(&scratch->debug->reader, r));
  }
  return NULL;
}

gcap_status_t gcap_scratch_debug_validate(gcap_scratch_t* scratch, size_t num_live) {
  const debug_t* debug = scratch->debug;
  if (debug == NULL) return NULL;
  const bool reads_zones = debug->red_zones && !gcap_thread_captures();
  size_t num_known = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    for (const gcap_scratch_live_t* live = debug->live[i]; live != NULL; live = live->next) {
      ++num_known;
      if (reads_zones) GCAP_RETURN_IF_ERROR(validate_live(debug, live));
    }
  }
  if (num_known != num_live) {
    return GCAP_STATUS(GCAP_INTERNAL, "scratch: %zu blocks are live, the debug options know of %zu", num_live,
                       num_known);
  }
  return reads_zones ? validate_graphs(scratch) : NULL;
}

gcap_scratch_history_t gcap_scratch_debug_history(const gcap_scratch_t* scratch, const void* ptr) {
  return gcap_scratch_history_of(scratch->debug == NULL ? NULL : &scratch->debug->record, ptr);
}

gcap_status_t gcap_scratch_debug_explain(const gcap_scratch_t* scratch, const void* ptr, gcap_status_t status) {
  return scratch->debug == NULL ? status : gcap_scratch_with_history(&scratch->debug->record, ptr, status);
}

// --- Events ---------------------------------------------------------------------------------------------------------

void gcap_scratch_debug_note_trim(gcap_scratch_t* scratch, gcap_allocator_event_t* out_event) {
  *out_event = (gcap_allocator_event_t){0};
  if (scratch->debug == NULL) return;
  *out_event = (gcap_allocator_event_t){.kind = GCAP_ALLOCATOR_EVENT_TRIM, .sequence = ++scratch->debug->num_calls};
}

void gcap_scratch_debug_report(gcap_scratch_t* scratch, const gcap_allocator_event_t* event) {
  if (event->sequence == 0 || scratch->options.on_event == NULL) return;
  scratch->options.on_event(scratch->options.user, event);
}
