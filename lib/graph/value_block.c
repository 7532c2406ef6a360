// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A copy from pinned memory reads that memory when the stream comes to the copy, which may be long after the call. So
// there is a ring of slots in two halves. When a half is begun, an event is recorded behind the copies from the other
// one, and the event of its own earlier copies must have passed. So most copies are one call, and an event is recorded
// and asked once in half a ring. Where the event has not passed, the copy is from pageable memory, which the call has
// read when it returns: nobody waits. An event that could not be recorded is recorded later: until then no slot of its
// half is written. The block itself needs no such care: the next copy comes behind the launch that reads the block, on
// the same stream.
//
// Locking: none; the manager's mutex is held over a write.

#include "lib/graph/value_block.h"

#include <stdlib.h>
#include <string.h>

#include "lib/internal/capture_check.h"
#include "lib/internal/cuda_event.h"

static gcap_status_t allocate(size_t bytes, bool is_of_graph, gcap_graph_value_block_t** out_block) {
  gcap_graph_value_block_t* block = calloc(1, sizeof(*block) + bytes);
  if (block == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu bytes of values on the device", bytes);
  }
  block->bytes = bytes;
  block->is_of_graph = is_of_graph;
  *out_block = block;
  return NULL;
}

static size_t num_slots(size_t bytes) {
  size_t slots = GCAP_GRAPH_VALUE_SLOTS;
  while (slots > GCAP_GRAPH_VALUE_LEAST_SLOTS && slots * bytes > GCAP_GRAPH_VALUE_RING_BYTES) slots /= 2;
  return slots;
}

static gcap_status_t take_memory(gcap_graph_value_block_t* block) {
  void *device = NULL, *pinned = NULL;
  block->slots = num_slots(block->bytes);
  gcap_status_t status = GCAP_CUDA(cudaMalloc(&device, block->bytes));
  if (status == NULL) status = GCAP_CUDA(cudaMallocHost(&pinned, block->slots * block->bytes));
  block->device = device;
  block->pinned = pinned;
  for (size_t i = 0; status == NULL && i < 2; ++i) status = gcap_event_create(block->device_id, &block->passed[i]);
  return status;
}

gcap_status_t gcap_graph_value_block_create(size_t bytes, cudaStream_t stream, gcap_graph_value_block_t** out_block) {
  *out_block = NULL;
  gcap_graph_value_block_t* block = NULL;
  int device_id = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetDevice(stream, &device_id)));
  GCAP_RETURN_IF_ERROR(allocate(bytes, /*is_of_graph=*/true, &block));
  block->device_id = device_id;
  gcap_thread_setting_t previous;
  gcap_status_t status = gcap_thread_enter(device_id, &previous);
  if (status == NULL) {
    status = take_memory(block);
    status = gcap_status_join(status, gcap_thread_leave(device_id, &previous));
  }
  if (status != NULL) return gcap_status_join(status, gcap_graph_value_block_destroy(block));
  *out_block = block;
  return NULL;
}

gcap_status_t gcap_graph_value_block_serves(const gcap_graph_value_block_t* block, size_t bytes, cudaStream_t stream,
                                            bool* out_serves) {
  *out_serves = false;
  int device_id = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetDevice(stream, &device_id)));
  *out_serves = block->device_id == device_id && block->bytes == bytes;
  return NULL;
}

// --- Of eager runs --------------------------------------------------------------------------------------------------

// The copy is from pageable memory, which the call has read when it returns.
static gcap_status_t take_eager(gcap_graph_value_block_t* block, cudaStream_t stream) {
  void* device = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMallocAsync(&device, block->bytes, stream)));
  block->device = device;
  return GCAP_CUDA(cudaMemcpyAsync(device, block->written, block->bytes, cudaMemcpyHostToDevice, stream));
}

gcap_status_t gcap_graph_value_block_create_eager(const void* values, size_t bytes, cudaStream_t stream,
                                                  gcap_graph_value_block_t** out_block) {
  *out_block = NULL;
  gcap_graph_value_block_t* block = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_stream_not_capturing(stream, "a run with values in memory"));
  GCAP_RETURN_IF_ERROR(allocate(bytes, /*is_of_graph=*/false, &block));
  memcpy(block->written, values, bytes);
  gcap_status_t status = take_eager(block, stream);
  if (status != NULL) {
    return gcap_status_join(status, gcap_graph_value_block_end_eager(block, stream, /*is_drained=*/false));
  }
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

static gcap_status_t free_now(void* device) {
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  gcap_status_t status = GCAP_CUDA(cudaFree(device));
  return gcap_status_join(status, gcap_relaxed_pop(mode));
}

static gcap_status_t free_eager(void* device, cudaStream_t stream, bool is_drained) {
  if (is_drained) return free_now(device);
  gcap_status_t status = free_in_order(device, stream);
  if (status == NULL || gcap_status_code(status) == GCAP_LEAKED) return status;
  gcap_status_t waited = gcap_relaxed_synchronize(stream);
  return gcap_status_join(status, waited != NULL ? waited : free_now(device));
}

gcap_status_t gcap_graph_value_block_end_eager(gcap_graph_value_block_t* block, cudaStream_t stream, bool is_drained) {
  gcap_status_t status = block->device != NULL ? free_eager(block->device, stream, is_drained) : NULL;
  return gcap_status_join(status, gcap_graph_value_block_destroy(block));
}

// --- The end --------------------------------------------------------------------------------------------------------

gcap_status_t gcap_graph_value_block_destroy(gcap_graph_value_block_t* block) {
  if (block == NULL) return NULL;
  enum cudaStreamCaptureMode mode;
  const bool frees = block->is_of_graph && block->device != NULL;
  gcap_status_t pushed = frees ? gcap_relaxed_push(&mode) : NULL;
  gcap_status_t status = NULL;
  for (size_t i = 0; i < 2; ++i) {
    if (block->passed[i] != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaEventDestroy(block->passed[i])));
  }
  if (block->pinned != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaFreeHost(block->pinned)));
  if (frees) {
    status = gcap_status_join(status, GCAP_CUDA(cudaFree(block->device)));
    status = pushed != NULL ? gcap_status_join(pushed, status) : gcap_status_join(status, gcap_relaxed_pop(mode));
  }
  free(block);
  return status;
}

// --- Writes ---------------------------------------------------------------------------------------------------------

// Whether no copy reads the slots of a half any more. Others capture meanwhile, perhaps in global mode.
static gcap_status_t find_has_passed(const gcap_graph_value_block_t* block, size_t half, bool* out_has_passed) {
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  gcap_status_t status = gcap_event_query(block->passed[half], out_has_passed);
  return gcap_status_join(status, gcap_relaxed_pop(mode));
}

// Whether the next slot may be written.
static gcap_status_t find_is_free(gcap_graph_value_block_t* block, cudaStream_t stream, bool* out_is_free) {
  *out_is_free = true;
  const size_t slots_of_half = block->slots / 2;
  if ((block->next & (slots_of_half - 1)) != 0) return NULL;  // the half was begun
  const size_t half = block->next / slots_of_half;
  if (block->is_unmarked) GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(block->passed[1 - half], stream)));
  block->is_unmarked = false;
  return find_has_passed(block, half, out_is_free);
}

// Puts the values into the next slot, which is used up whatever becomes of its copy.
static const void* fill_slot(gcap_graph_value_block_t* block, const void* values) {
  unsigned char* slot = block->pinned + block->next * block->bytes;
  block->next = (block->next + 1) & (block->slots - 1);
  block->is_unmarked = (block->next & (block->slots / 2 - 1)) == 0;
  block->was_copied = true;
  return memcpy(slot, values, block->bytes);
}

gcap_status_t gcap_graph_value_block_write(gcap_graph_value_block_t* block, const void* values, cudaStream_t stream) {
  if (block->is_written && memcmp(block->written, values, block->bytes) == 0) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_stream_not_capturing(stream, "a copy of values to the device"));
  bool is_free = false;
  GCAP_RETURN_IF_ERROR(find_is_free(block, stream, &is_free));
  const void* from = is_free ? fill_slot(block, values) : values;
  block->is_written = false;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(block->device, from, block->bytes, cudaMemcpyHostToDevice, stream)));
  block->is_written = true;
  memcpy(block->written, values, block->bytes);
  return NULL;
}

gcap_status_t gcap_graph_value_block_settle(gcap_graph_value_block_t* block, cudaStream_t stream) {
  if (!block->was_copied) return NULL;
  gcap_status_t status = gcap_relaxed_synchronize(stream);
  if (status == NULL) return NULL;
  gcap_keep_for_ever(&block->kept);
  return gcap_status_annotate(status, GCAP_LEAKED, "a copy of values may be on its way, and its memory is kept");
}
