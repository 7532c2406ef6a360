// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Memory for callers that name no stream. Which streams use it is unknown, so there is no timeline to ask, and a free
// block is in one of three states that are never mixed: tagged with the stream that used it; tagged with the unknown
// stream, so that any stream may use it; and untagged, when no stream does. The second becomes the third only when the
// device was waited for; and only the third is given to a request that names no stream.
//
// The unknown stream's timeline counts the waits for the device that were begun: one that begins after the free, and
// ends well, covers it. So its blocks go through the same pools and are joined by the same rules as those of a stream,
// among themselves.
//
// cudaDeviceSynchronize breaks the captures of all threads (rule R12 of the capture rules), so there is none while a
// scope of gcap is open: the arena grows instead. A capture that somebody begins without gcap is not known.
// Locking: the arena is locked, and unlocked while the device is waited for.

#include "lib/scratch/unknown_stream.h"

#include "lib/base/capture_hooks.h"
#include "lib/internal/capture_gate.h"
#include "lib/internal/cuda_guard.h"
#include "lib/scratch/lock.h"

void gcap_scratch_unknown_stream_init(gcap_scratch_t* scratch) {
  gcap_scratch_stream_state_t* unknown = &scratch->unknown_stream;
  atomic_store_explicit(&unknown->locked, true, memory_order_relaxed);
  unknown->owner.stream = &unknown->owner;
  gcap_scratch_slabs_add_stream(&scratch->store.slabs, &unknown->owner);
}

static gcap_status_t synchronize(int device_id) {
  gcap_thread_setting_t before;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(device_id, &before));
  gcap_status_t status = GCAP_CUDA(cudaDeviceSynchronize());
  return gcap_status_join(status, gcap_thread_leave(device_id, &before));
}

gcap_status_t gcap_scratch_wait_for_device(gcap_scratch_t* scratch, bool* out_waited) {
  *out_waited = false;
  if (gcap_thread_captures() || !gcap_capture_gate_try_close()) return NULL;
  const uint64_t point = ++scratch->unknown_stream.begun_point;
  const int paused = gcap_scratch_pause_lock(scratch);
  gcap_status_t status = synchronize(scratch->device_id);
  gcap_capture_gate_open();
  gcap_scratch_resume_lock(scratch, paused);
  if (status != NULL) return status;
  if (scratch->unknown_stream.finished_point < point) scratch->unknown_stream.finished_point = point;
  *out_waited = true;
  return NULL;
}

bool gcap_scratch_wait_would_help(const gcap_scratch_t* scratch, size_t bytes) {
  const uintptr_t unknown_free = (uintptr_t)&scratch->unknown_stream.owner | GCAP_SCRATCH_FREE;
  for (size_t i = 0; i < scratch->store.num_regions; ++i) {
    size_t run_bytes = 0;
    for (const gcap_scratch_block_t* block = scratch->store.regions[i]->first; block != NULL; block = block->upper) {
      const uintptr_t tag = gcap_scratch_block_tag(block);
      const bool counts = tag == GCAP_SCRATCH_FREE || tag == unknown_free;
      run_bytes = counts ? run_bytes + block->bytes : 0;
      if (run_bytes >= bytes) return true;
    }
  }
  return false;
}
