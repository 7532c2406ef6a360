// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A copy from pinned memory reads that memory when the stream comes to the copy, which may be long after the call. So
// there is a ring of slots, and a slot is written again only when the event behind its copy has passed. Where none has,
// the copy is from pageable memory, which the call has read when it returns: nobody waits. The block itself needs no
// such care: the next copy comes behind the launch that reads the block, on the same stream.
//
// Locking: none; the manager's mutex is held over a write.

#include "lib/graph/value_block.h"

#include <stdlib.h>
#include <string.h>

#include "lib/internal/capture_check.h"
#include "lib/internal/cuda_event.h"

static gcap_status_t allocate(size_t count, bool is_of_graph, gcap_graph_value_block_t** out_block) {
  gcap_graph_value_block_t* block = calloc(1, sizeof(*block));
  if (block != NULL) block->written = calloc(count, sizeof(*block->written));
  if (block == NULL || block->written == NULL) {
    free(block);
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu values on the device", count);
  }
  block->count = count;
  block->is_of_graph = is_of_graph;
  *out_block = block;
  return NULL;
}

static size_t bytes_of(const gcap_graph_value_block_t* block) { return block->count * sizeof(*block->device); }

static gcap_status_t take_memory(gcap_graph_value_block_t* block) {
  void *device = NULL, *pinned = NULL;
  gcap_status_t status = GCAP_CUDA(cudaMalloc(&device, bytes_of(block)));
  if (status == NULL) status = GCAP_CUDA(cudaMallocHost(&pinned, GCAP_GRAPH_VALUE_SLOTS * bytes_of(block)));
  block->device = device;
  block->pinned = pinned;
  return status;
}

gcap_status_t gcap_graph_value_block_create(size_t count, cudaStream_t stream, gcap_graph_value_block_t** out_block) {
  *out_block = NULL;
  gcap_graph_value_block_t* block = NULL;
  int device_id = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetDevice(stream, &device_id)));
  GCAP_RETURN_IF_ERROR(allocate(count, /*is_of_graph=*/true, &block));
  block->device_id = device_id;
  gcap_thread_setting_t previous;
  gcap_status_t status = gcap_thread_enter(device_id, &previous);
  if (status == NULL) status = gcap_status_join(take_memory(block), gcap_thread_leave(device_id, &previous));
  if (status != NULL) return gcap_status_join(status, gcap_graph_value_block_destroy(block));
  *out_block = block;
  return NULL;
}

// --- Of eager runs --------------------------------------------------------------------------------------------------

// The copy is from pageable memory, which the call has read when it returns.
static gcap_status_t take_eager(gcap_graph_value_block_t* block, cudaStream_t stream) {
  void* device = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMallocAsync(&device, bytes_of(block), stream)));
  block->device = device;
  return GCAP_CUDA(cudaMemcpyAsync(device, block->written, bytes_of(block), cudaMemcpyHostToDevice, stream));
}

gcap_status_t gcap_graph_value_block_create_eager(const gcap_changing_value_t* values, size_t count,
                                                  cudaStream_t stream, gcap_graph_value_block_t** out_block) {
  *out_block = NULL;
  gcap_graph_value_block_t* block = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_stream_not_capturing(stream, "a run with values in memory"));
  GCAP_RETURN_IF_ERROR(allocate(count, /*is_of_graph=*/false, &block));
  for (size_t i = 0; i < count; ++i) block->written[i] = values[i].now;
  gcap_status_t status = take_eager(block, stream);
  if (status != NULL) return gcap_status_join(status, gcap_graph_value_block_end_eager(block, stream));
  *out_block = block;
  return NULL;
}

static gcap_status_t free_in_order(void* device, cudaStream_t stream) {
  bool is_capturing = false;
  GCAP_RETURN_IF_ERROR(gcap_is_stream_capturing(stream, &is_capturing));
  if (!is_capturing) return GCAP_CUDA(cudaFreeAsync(device, stream));
  return GCAP_STATUS(GCAP_LEAKED, "stream %p is capturing at the end of a run: the memory of the run's values is kept",
                     (void*)stream);
}

static gcap_status_t free_after_wait(void* device, cudaStream_t stream) {
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_synchronize(stream));
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  gcap_status_t status = GCAP_CUDA(cudaFree(device));
  return gcap_status_join(status, gcap_relaxed_pop(mode));
}

gcap_status_t gcap_graph_value_block_end_eager(gcap_graph_value_block_t* block, cudaStream_t stream) {
  gcap_status_t status = block->device != NULL ? free_in_order(block->device, stream) : NULL;
  const bool may_wait = status != NULL && gcap_status_code(status) != GCAP_LEAKED;
  if (may_wait) status = gcap_status_join(status, free_after_wait(block->device, stream));
  return gcap_status_join(status, gcap_graph_value_block_destroy(block));
}

// --- The end --------------------------------------------------------------------------------------------------------

gcap_status_t gcap_graph_value_block_destroy(gcap_graph_value_block_t* block) {
  if (block == NULL) return NULL;
  enum cudaStreamCaptureMode mode;
  const bool frees = block->is_of_graph && block->device != NULL;
  gcap_status_t pushed = frees ? gcap_relaxed_push(&mode) : NULL;
  gcap_status_t status = NULL;
  for (size_t i = 0; i < GCAP_GRAPH_VALUE_SLOTS; ++i) {
    if (block->passed[i] != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaEventDestroy(block->passed[i])));
  }
  if (block->pinned != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaFreeHost(block->pinned)));
  if (frees) {
    status = gcap_status_join(status, GCAP_CUDA(cudaFree(block->device)));
    status = pushed != NULL ? gcap_status_join(pushed, status) : gcap_status_join(status, gcap_relaxed_pop(mode));
  }
  free(block->written);
  free(block);
  return status;
}

// --- Writes ---------------------------------------------------------------------------------------------------------

// Whether no copy reads the slot any more. Others capture meanwhile, perhaps in global mode.
static gcap_status_t find_is_free(gcap_graph_value_block_t* block, size_t slot, bool* out_is_free) {
  *out_is_free = true;
  if (block->passed[slot] == NULL) return gcap_event_create(block->device_id, &block->passed[slot]);
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  gcap_status_t status = gcap_event_query(block->passed[slot], out_is_free);
  return gcap_status_join(status, gcap_relaxed_pop(mode));
}

static gcap_status_t copy(const gcap_graph_value_block_t* block, const void* from, cudaStream_t stream) {
  return GCAP_CUDA(cudaMemcpyAsync(block->device, from, bytes_of(block), cudaMemcpyHostToDevice, stream));
}

// The copy is out, and no event is behind it: waiting for it is as good for the slot.
static gcap_status_t recover(gcap_graph_value_block_t* block, cudaStream_t stream, gcap_status_t failure) {
  gcap_status_t waited = gcap_relaxed_synchronize(stream);
  block->is_lost = waited != NULL;
  return gcap_status_join(failure, waited);
}

gcap_status_t gcap_graph_value_block_write(gcap_graph_value_block_t* block, const gcap_value_bytes_t* values,
                                           cudaStream_t stream, bool* out_torn) {
  *out_torn = false;
  if (block->is_written && memcmp(block->written, values, bytes_of(block)) == 0) return NULL;
  if (block->is_lost) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "a copy of values to the device could not be followed: release the id");
  }
  GCAP_RETURN_IF_ERROR(gcap_check_stream_not_capturing(stream, "a copy of values to the device"));
  const size_t slot = block->next;
  bool is_free = false;
  GCAP_RETURN_IF_ERROR(find_is_free(block, slot, &is_free));
  if (is_free) {
    gcap_value_bytes_t* pinned = block->pinned + slot * block->count;
    memcpy(pinned, values, bytes_of(block));
    GCAP_RETURN_IF_ERROR(copy(block, pinned, stream));
    block->next = (slot + 1) % GCAP_GRAPH_VALUE_SLOTS;
    gcap_status_t status = GCAP_CUDA(cudaEventRecord(block->passed[slot], stream));
    block->is_written = status == NULL;
    *out_torn = status != NULL;
    if (status != NULL) return recover(block, stream, status);
  } else {
    GCAP_RETURN_IF_ERROR(copy(block, values, stream));
  }
  block->is_written = true;
  memcpy(block->written, values, bytes_of(block));
  return NULL;
}
