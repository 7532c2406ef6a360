// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Memory for callers that name no stream. Nobody knows which streams use it, so there is no timeline to ask, and a free
// block is in one of three states that are never mixed: tagged with the stream that used it; used by nobody knows whom,
// of no tag at all; and synchronised, in use by nobody. The second becomes the third only when the device was waited
// for; and only the third is given to a request that names no stream.
//
// Blocks of the second state have `nobody` for a state, whose timeline counts the waits for the device that were begun:
// one that begins after the free, and ends well, covers it. So they go through the same pools and are joined by the
// same rules as those of a stream, among themselves.
//
// cudaDeviceSynchronize breaks the captures of all threads (rule R12 of the capture rules), so there is none while a
// scope of gcap is open: the arena grows instead. Of a capture that somebody begins without gcap nobody can know.
// Locking: the arena is held, and let go while the device is waited for.

#include "lib/base/capture_hooks.h"
#include "lib/internal/capture_gate.h"
#include "lib/internal/cuda_guard.h"
#include "lib/scratch/arena.h"

void gcap_scratch_unknown_stream_init(gcap_scratch_t* scratch) {
  atomic_store_explicit(&scratch->unknown_stream.locked, true, memory_order_relaxed);
}

void gcap_scratch_unknown_stream_free(gcap_scratch_t* scratch, gcap_scratch_block_t* block) {
  gcap_scratch_stream_state_t* unknown = &scratch->unknown_stream;
  ++unknown->num_frees;
  unknown->in_use_bytes -= block->bytes;
  unknown->requested_in_use_bytes -= block->requested_bytes;
  gcap_scratch_block_set_phase(block, GCAP_SCRATCH_FREE);
  block->used_before = gcap_scratch_next_point(scratch, unknown);
}

void gcap_scratch_unknown_stream_undo_free(gcap_scratch_t* scratch, gcap_scratch_block_t* block) {
  gcap_scratch_stream_state_t* unknown = &scratch->unknown_stream;
  --unknown->num_frees;
  unknown->in_use_bytes += block->bytes;
  unknown->requested_in_use_bytes += block->requested_bytes;
  gcap_scratch_block_set_phase(block, GCAP_SCRATCH_LIVE);
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
  const uint64_t point = ++scratch->num_device_waits;
  gcap_scratch_pause_lock(scratch);
  gcap_status_t status = synchronize(gcap_allocator_device(scratch->upstream));
  gcap_capture_gate_open();
  gcap_scratch_resume_lock(scratch);
  if (status != NULL) return status;
  if (scratch->unknown_stream.finished_point < point) scratch->unknown_stream.finished_point = point;
  *out_waited = true;
  return NULL;
}

bool gcap_scratch_wait_would_help(const gcap_scratch_t* scratch, size_t bytes) {
  for (size_t i = 0; i < scratch->num_regions; ++i) {
    size_t run_bytes = 0;
    for (const gcap_scratch_block_t* block = scratch->regions[i]->first; block != NULL; block = block->upper) {
      const bool counts = gcap_scratch_block_tag(block) == GCAP_SCRATCH_FREE ||
                          gcap_scratch_block_tag(block) == ((uintptr_t)&scratch->unknown_stream | GCAP_SCRATCH_FREE);
      run_bytes = counts ? run_bytes + block->bytes : 0;
      if (run_bytes >= bytes) return true;
    }
  }
  return false;
}
