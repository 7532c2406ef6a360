// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The debug options: what they need to know of each block that is handed out stands in a table of their own, so that
// blocks cost nothing more when no such option is set.
//
// Calls are numbered while the arena is held, an allocation's when the block is there, a free's before it goes back, so
// the numbers tell an order that was; and each number is reported, so none is missing.
// Locking: the arena is held, but for reports.

#include "lib/scratch/debug.h"

#include <stdlib.h>

enum { kBuckets = 1024 };  // a power of two; more blocks than that are live only for a while

// What is handed out.
typedef struct tenant {
  char* ptr;
  size_t bytes;
  uint64_t number;  // of the allocation
  struct tenant* next;
} tenant_t;

struct scratch_debug {
  uint64_t num_calls;
  tenant_t* tenants[kBuckets];  // by address
};

// --- Life -----------------------------------------------------------------------------------------------------------

gcap_status_t scratch_debug_create(const gcap_scratch_options_t* options, scratch_debug_t** out_debug) {
  *out_debug = NULL;
  if (options->on_event == NULL) return NULL;
  scratch_debug_t* debug = calloc(1, sizeof(*debug));
  if (debug == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for scratch's debug options");
  *out_debug = debug;
  return NULL;
}

void scratch_debug_destroy(scratch_debug_t* debug) { free(debug); }

// --- What is handed out ---------------------------------------------------------------------------------------------

// The link to the tenant at an address, or to the end of its bucket.
static tenant_t** find_tenant(scratch_debug_t* debug, const void* ptr) {
  tenant_t** link = &debug->tenants[(uintptr_t)ptr / SCRATCH_GRANULE_BYTES % kBuckets];
  while (*link != NULL && (*link)->ptr != ptr) link = &(*link)->next;
  return link;
}

gcap_status_t scratch_debug_note_alloc(gcap_scratch_t* scratch, void* ptr, size_t requested_bytes,
                                       gcap_stream_t* stream, gcap_allocator_event_t* out_event) {
  scratch_debug_t* debug = scratch->debug;
  *out_event = (gcap_allocator_event_t){0};
  if (debug == NULL) return NULL;
  tenant_t* tenant = malloc(sizeof(*tenant));
  if (tenant == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to note a scratch block");
  tenant_t** link = find_tenant(debug, ptr);
  *tenant = (tenant_t){.ptr = ptr, .bytes = requested_bytes, .number = ++debug->num_calls, .next = *link};
  *link = tenant;
  *out_event = (gcap_allocator_event_t){
      .kind = GCAP_ALLOCATOR_EVENT_ALLOC,
      .sequence = tenant->number,
      .block = tenant->number,
      .bytes = requested_bytes,
      .ptr = ptr,
      .stream = stream,
  };
  return NULL;
}

void scratch_debug_note_free(gcap_scratch_t* scratch, void* ptr, gcap_allocator_event_t* out_event) {
  scratch_debug_t* debug = scratch->debug;
  *out_event = (gcap_allocator_event_t){0};
  if (debug == NULL) return;
  tenant_t** link = find_tenant(debug, ptr);
  tenant_t* tenant = *link;
  *link = tenant->next;
  *out_event = (gcap_allocator_event_t){
      .kind = GCAP_ALLOCATOR_EVENT_FREE,
      .sequence = ++debug->num_calls,
      .block = tenant->number,
      .bytes = tenant->bytes,
      .ptr = ptr,
  };
  free(tenant);
}

// --- Events ---------------------------------------------------------------------------------------------------------

void scratch_debug_note_trim(gcap_scratch_t* scratch, gcap_allocator_event_t* out_event) {
  *out_event = (gcap_allocator_event_t){0};
  if (scratch->debug == NULL) return;
  *out_event = (gcap_allocator_event_t){.kind = GCAP_ALLOCATOR_EVENT_TRIM, .sequence = ++scratch->debug->num_calls};
}

void scratch_debug_report(gcap_scratch_t* scratch, const gcap_allocator_event_t* event) {
  if (event->sequence == 0 || scratch->options.on_event == NULL) return;
  scratch->options.on_event(scratch->options.user, event);
}
