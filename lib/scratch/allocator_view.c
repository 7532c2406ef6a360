// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The scratch as an allocator: a table over the same calls, for code that is given an allocator and for requests that
// name no stream. It holds nothing, so there is nothing to lock.

#include "lib/scratch/allocator_view.h"

#include "gcap/allocator_ops.h"
#include "lib/internal/run_trace.h"
#include "lib/scratch/slow_path.h"
#include "lib/scratch/streams.h"

static gcap_status_t view_alloc(void* self, size_t bytes, void** out_ptr) {
  gcap_status_t status = gcap_scratch_alloc_untagged(self, bytes, /*reserved=*/false, out_ptr);
  gcap_trace_allocation(bytes);
  return status;
}

static gcap_status_t view_reserve(void* self, size_t bytes, void** out_ptr) {
  return gcap_scratch_alloc_untagged(self, bytes, /*reserved=*/true, out_ptr);
}

static gcap_status_t view_alloc_on_stream(void* self, size_t bytes, gcap_stream_t* stream, void** out_ptr) {
  return gcap_scratch_alloc(self, bytes, stream, out_ptr);
}

static gcap_status_t view_free(void* self, void* ptr) { return gcap_scratch_free(self, ptr); }
static gcap_status_t view_trim(void* self) { return gcap_scratch_trim(self); }
static void view_get_stats(void* self, gcap_allocator_stats_t* out_stats) { gcap_scratch_sum_stats(self, out_stats); }

gcap_status_t gcap_scratch_view_create(gcap_scratch_t* scratch) {
  const gcap_allocator_ops_t ops = {
      .struct_version = GCAP_ALLOCATOR_OPS_VERSION,
      .device_id = scratch->device_id,
      .alignment = GCAP_SCRATCH_GRANULE_BYTES,
      .self = scratch,
      .alloc = view_alloc,
      .free = view_free,
      .alloc_on_stream = view_alloc_on_stream,
      .reserve = view_reserve,
      .trim = view_trim,
      .get_stats = view_get_stats,
  };
  return gcap_allocator_create(&ops, &scratch->view);
}

gcap_allocator_t* gcap_scratch_allocator(gcap_scratch_t* scratch) { return scratch->view; }
